"""Scorers of scikit-learn choose: what they say, how sure that is, and what they cannot score."""

import warnings

import numpy as np
import pytest
from effort import INTERPRETED
from sklearn.datasets import make_classification, make_friedman1
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.metrics import (
    average_precision_score,
    f1_score,
    fbeta_score,
    get_scorer,
    get_scorer_names,
    make_scorer,
    roc_auc_score,
)

import forestprune as fp
from forestprune.interop.source import Source
from forestprune.select import influence, scoring
from forestprune.select.routed import RoutedRows

pytestmark = pytest.mark.skipif(INTERPRETED, reason="whole prunings, left to the compiled run")

TRAIN, HELD_OUT = slice(0, 200), slice(200, None)
NAMES = np.array(["no", "yes", "zebra"])
WEIGHTS = np.random.default_rng(0).integers(0, 4, 200).astype(float)


def classes(n_classes, names=NAMES):
    X, y = make_classification(
        400, 6, n_informative=4, n_classes=n_classes, flip_y=0.2, random_state=n_classes
    )
    y = names[y]
    model = GradientBoostingClassifier(n_estimators=12, random_state=0)
    return model.fit(X[TRAIN], y[TRAIN]), X, y


def numbers():
    X, y = make_friedman1(400, noise=2.0, random_state=0)
    y = np.abs(y) + 1.0  # for what takes no others
    return GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X[TRAIN], y[TRAIN]), X, y


TWO, THREE, TRUTH = classes(2), classes(3), classes(2, np.array([False, True]))
ONE_AND_TWO = classes(2, np.array([1, 2]))
AMOUNTS = numbers()

OF_TWO = ["accuracy", "balanced_accuracy", "f1_macro", "matthews_corrcoef", "neg_log_loss"]
OF_TWO += ["roc_auc", "roc_auc_ovr"]
OF_TRUTH = ["average_precision", "f1", "neg_brier_score", "precision", "recall"]
OF_THREE = ["accuracy", "f1_weighted", "neg_log_loss", "roc_auc_ovr", "top_k_accuracy"]
OF_NUMBERS = ["neg_mean_absolute_error", "neg_mean_squared_error", "neg_root_mean_squared_error"]
OF_NUMBERS += ["neg_mean_poisson_deviance", "neg_mean_gamma_deviance", "r2"]
OF_NUMBERS += ["explained_variance", "neg_median_absolute_error"]
BY_HAND = [
    make_scorer(fbeta_score, beta=2, pos_label="yes"),
    make_scorer(average_precision_score, response_method="predict_proba", pos_label="no"),
    make_scorer(roc_auc_score, response_method="decision_function"),
]
CASES = [(TWO, how) for how in OF_TWO + BY_HAND] + [(TRUTH, how) for how in OF_TRUTH]
CASES += [(THREE, how) for how in OF_THREE] + [(AMOUNTS, how) for how in OF_NUMBERS]


def name_of(case):
    return case if isinstance(case, str) else None


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("problem", "how"), CASES, ids=name_of)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")  # for native
def test_scores_are_those_of_the_exported_models(problem, how, weights, monkeypatch):
    model, X, y = problem
    monkeypatch.setattr(scoring, "RESAMPLES", 3)
    rows = {"X_val": X[HELD_OUT], "y_val": y[HELD_OUT], "sample_weight_val": weights}
    path = fp.prune_path(model, X[TRAIN], y[TRAIN], n_alphas=4, scoring=how, **rows)
    score = get_scorer(how) if isinstance(how, str) else how
    given = {} if weights is None else {"sample_weight": weights}
    # Of areas also where many rows end in the same leaves.
    for small, found in zip(path, path.validation.scores, strict=True):
        expected = score(small.to_native(), X[HELD_OUT], y[HELD_OUT], **given)
        assert found == pytest.approx(expected, abs=1e-9)
    expected = score(model, X[HELD_OUT], y[HELD_OUT], **given)
    assert path.validation.full == pytest.approx(expected, abs=1e-9)
    again = path.validate(X[HELD_OUT], y[HELD_OUT], sample_weight=weights, scoring=how)
    np.testing.assert_array_equal(again.scores, path.validation.scores)
    taken = path.select(tolerance=0.05)
    assert taken.validation.shortfall <= 0.05 + 1e-8
    by_others = path.select(tolerance=0.05, X=X[TRAIN], y=y[TRAIN], scoring=how)
    assert by_others.n_nodes <= path.n_nodes[-1]


def test_averages_that_are_the_same_are_ties():
    # Leaves of one class: probabilities are shares of the trees, added up in any order.
    _, X, y = THREE
    model = RandomForestClassifier(30, random_state=0).fit(X[TRAIN], y[TRAIN])
    rows = {"X_val": X[HELD_OUT], "y_val": y[HELD_OUT], "scoring": "roc_auc_ovr"}
    found = fp.prune_path(model, X[TRAIN], y[TRAIN], rule="layer", n_alphas=3, **rows).validation
    chances = model.predict_proba(X[HELD_OUT])
    expected = roc_auc_score(y[HELD_OUT], chances, multi_class="ovr")
    for said in (found.full, found.scores[-1], found.full_metrics["roc_auc"]):
        assert said == pytest.approx(expected, abs=1e-9)


OF_ONE = ["average_precision", "neg_brier_score", "f1", "jaccard", "precision", "recall"]
BY_ROW = [(TRUTH, name) for name in influence.OF_CLASSES]
BY_ROW += [(THREE, name) for name in influence.OF_CLASSES if name not in ("roc_auc", *OF_ONE[1:])]
BY_ROW += [(AMOUNTS, name) for name in influence.OF_NUMBERS]
BY_ROW += [(ONE_AND_TWO, name) for name in ("f1", "average_precision")]


@pytest.mark.sampled(2)
@pytest.mark.sampled(5)
@pytest.mark.parametrize(("problem", "name"), BY_ROW, ids=name_of)
def test_errors_by_row_are_those_of_a_bootstrap(problem, name, monkeypatch):
    model, X, y = problem
    # Half of the cases are about rows that have weights.
    weights = None if len(name) % 2 else WEIGHTS + 1.0
    rows = RoutedRows.of(Source.of(model), X[HELD_OUT], y[HELD_OUT], weights)
    monkeypatch.setattr(scoring, "RESAMPLES", 300)
    by_row, drawn = scoring.judge_for(rows, name), scoring.judge_for(rows, get_scorer(name))
    noise = np.random.default_rng(0).normal(0.0, 0.2 * rows.full.std(), rows.full.shape)
    raw = rows.full, np.maximum(rows.full + noise, 0.1 if problem is AMOUNTS else -np.inf)
    found, expected = ([judge.judge(each) for each in raw] for judge in (by_row, drawn))
    assert [each.score for each in found] == [each.score for each in expected]
    own, other = (
        [judge.standard_error(each) for each in both]
        for judge, both in ((by_row, found), (drawn, expected))
    )
    assert own == pytest.approx(other, rel=0.2, abs=1e-4)
    # Of a difference it is far less than each model's own: both are asked about the same rows.
    both = by_row.standard_error(*found), drawn.standard_error(*expected)
    assert both[0] == pytest.approx(both[1], rel=0.25, abs=1e-4)
    assert both[0] < 0.8 * own[0]
    for judge, each in ((by_row, found), (drawn, expected)):
        assert judge.standard_error(each[0], each[0]) == 0.0


def test_fewer_rows_are_drawn_than_there_are(monkeypatch):
    model, X, y = TWO
    rows = RoutedRows.of(Source.of(model), X[HELD_OUT], y[HELD_OUT])
    monkeypatch.setattr(scoring, "RESAMPLES", 300)
    errors = []
    for most in (1000, 50):
        monkeypatch.setattr(scoring, "MOST_DRAWN", most)
        judge = scoring.judge_for(rows, "matthews_corrcoef")
        errors.append(judge.standard_error(judge.judge(rows.full)))
    assert errors[0] == pytest.approx(errors[1], rel=0.15)


def test_names_are_those_of_scorers():
    # Older versions of scikit-learn have a few less.
    assert {*influence.OF_CLASSES, *influence.OF_NUMBERS} <= {*get_scorer_names()}


def no_number(estimator, X, y):
    return float("nan")


def no_weights(estimator, X, y):
    return float(np.mean(estimator.predict(X) == y))


FEW = {"y_val": np.where(THREE[2] == "zebra", "no", THREE[2])[HELD_OUT]}
ONE = {"y_val": np.full(200, "yes")}


@pytest.mark.parametrize(
    ("problem", "how", "more", "message"),
    [
        (TWO, "f1", {}, r"pos_label=1 .*make_scorer\(f1_score, pos_label='yes'\).* 'f1_macro'"),
        (TWO, make_scorer(f1_score), {}, "scoring=f1_score cannot .*pos_label='yes'"),
        (TWO, "r2", {}, "scoring=r2 cannot score these validation rows: could not convert"),
        (THREE, "roc_auc", {}, "has 3 classes, for which there are 'roc_auc_ovr', 'f1_macro'"),
        (THREE, "roc_auc_ovr", FEW, "of the model there is no row of 'zebra'"),
        (THREE, "neg_log_loss", FEW, "of the model there is no row of 'zebra'"),
        (TWO, "roc_auc", ONE, "has no value there. .* there is no row of 'no'"),
        (TWO, None, ONE, "Validation rows must be of two classes or more, got 'yes' only"),
        (TWO, no_number, {}, "scoring=no_number cannot .*: it has no value there"),
        (TWO, no_weights, {"sample_weight_val": WEIGHTS}, "Rows have weights: leave them out"),
        (AMOUNTS, "accuracy", {}, "continuous .*The model predicts numbers, not classes"),
        (
            AMOUNTS,
            "roc_auc",
            {},
            "rows: this model has none of the .*The model predicts numbers, not classes",
        ),
    ],
)
def test_what_cannot_be_scored_says_why(problem, how, more, message):
    model, X, y = problem
    rows = {"X_val": X[HELD_OUT], "y_val": y[HELD_OUT]} | more
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scikit-learn, about the same
        with pytest.raises(ValueError, match=message):
            fp.prune(model, X[TRAIN], y[TRAIN], max_nodes=30, n_alphas=6, scoring=how, **rows)


def test_a_scorer_does_not_warn_of_each_model():
    model, X, y = THREE
    with pytest.warns(UserWarning, match="y_pred contains classes not in y_true") as caught:
        fp.prune_path(
            model,
            X[TRAIN],
            y[TRAIN],
            n_alphas=10,
            scoring="balanced_accuracy",
            X_val=X[HELD_OUT],
            **FEW,
        )
    assert len([each for each in caught if "y_pred" in str(each.message)]) < 4


def test_rows_without_some_class_can_still_choose():
    model, X, y = THREE
    for how in (None, "accuracy", "f1_weighted"):
        rows = {"X_val": X[HELD_OUT]} | FEW
        small = fp.prune_path(model, X[TRAIN], y[TRAIN], n_alphas=4, scoring=how, **rows)[-1]
        assert np.isfinite(small.validation.score)
        assert "roc_auc" not in small.validation.metrics
        assert small.predict_proba(X).shape == (400, 3)


def test_counts_that_are_all_zero_have_nothing_to_be_explained():
    X, counts = AMOUNTS[1], np.round(AMOUNTS[2].clip(0))
    model = HistGradientBoostingRegressor(loss="poisson", max_iter=5).fit(X, counts)
    path = fp.prune_path(model, X, counts, n_alphas=4)
    assert path.score(X, np.zeros(400)).tolist() == [0.0] * len(path)
