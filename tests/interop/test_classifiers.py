"""Classifiers of every library come in, are pruned, and go out as what they were."""

import pickle

import catboost
import joblib
import lightgbm as lgb
import numpy as np
import pandas as pd
import polars as pl
import pytest
import xgboost as xgb
from effort import INTERPRETED
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

import forestprune as fp
from forestprune.forest import response

pytestmark = pytest.mark.skipif(INTERPRETED, reason="whole prunings, left to the compiled run")

LABELS = {
    "text": np.array(["no", "yes"]),
    "truth": np.array([False, True]),
    "numbers": np.array([3, 5]),
    "three": np.array(["a", "b", "c"], dtype=object),
    "more": np.array([-1, 0, 4]),
}


def rows(labels):
    X, y = make_classification(
        160, 6, n_informative=4, n_redundant=0, n_classes=len(labels), random_state=0
    )
    return X, labels[y]


def light(**params):
    return lgb.LGBMClassifier(n_estimators=6, num_leaves=6, n_jobs=1, verbose=-1, **params)


def extreme(**params):
    return xgb.XGBClassifier(n_estimators=6, max_depth=3, n_jobs=1, **params)


OF_LABELS = {
    "tree": DecisionTreeClassifier(max_depth=4, random_state=0),
    "extra tree": ExtraTreeClassifier(max_depth=5, random_state=0),
    "forest": RandomForestClassifier(6, max_depth=4, random_state=0),
    "balanced": RandomForestClassifier(6, max_depth=4, class_weight="balanced", random_state=0),
    "extra": ExtraTreesClassifier(6, max_depth=4, random_state=0),
    "bagging": BaggingClassifier(n_estimators=4, max_features=0.5, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=6, random_state=0),
    "from zero": GradientBoostingClassifier(n_estimators=4, init="zero", random_state=0),
    "histograms": HistGradientBoostingClassifier(max_iter=6, min_samples_leaf=5),
    "lightgbm": light(min_child_samples=5),
}
OF_NUMBERS = {
    "xgboost": extreme(),
    "dart": extreme(booster="dart", rate_drop=0.3),
    "parallel": extreme(num_parallel_tree=2),
    "xgboost forest": xgb.XGBRFClassifier(n_estimators=4, max_depth=3, n_jobs=1),
}
OF_TWO = {
    "catboost": catboost.CatBoostClassifier(
        iterations=6, depth=3, thread_count=1, verbose=0, allow_writing_files=False
    ),
    "catboost, grown by depth": catboost.CatBoostClassifier(
        iterations=6,
        depth=3,
        grow_policy="Depthwise",
        thread_count=1,
        verbose=0,
        allow_writing_files=False,
    ),
}
CASES = [(name, kind) for name in OF_LABELS for kind in LABELS]
CASES += [(name, kind) for name in OF_TWO for kind in ("text", "truth", "numbers")]
CASES += [(name, kind) for name in OF_NUMBERS for kind in ("numbers", "more")]


def fitted(name, kind):
    X, y = rows(LABELS[kind])
    if name in OF_NUMBERS:
        y = np.searchsorted(LABELS[kind], y)
    return clone((OF_LABELS | OF_NUMBERS | OF_TWO)[name]).fit(X, y), X, y


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_in_and_out(name, kind):
    model, X, y = fitted(name, kind)
    before = joblib.hash(pickle.dumps(model))
    wide = 50.0 * X
    forest = fp.Forest.from_model(model)
    assert forest.origin.response == "class"
    np.testing.assert_array_equal(forest.origin.classes, model.classes_)
    raw = forest.predict(X)
    np.testing.assert_allclose(
        response.probabilities(forest.origin, raw), model.predict_proba(X), atol=1e-6
    )
    if name in OF_TWO:
        own = model.predict(X, prediction_type="RawFormulaVal")
        np.testing.assert_allclose(raw, own, atol=1e-9)
    if hasattr(model, "decision_function"):
        np.testing.assert_allclose(raw, model.decision_function(X), atol=1e-9)
    for small in (
        forest,
        forest.truncate(1),
        forest.truncate(np.arange(forest.n_trees) % 2).compact(),
        forest.truncate(0).compact(),
    ):
        native = small.to_native()
        assert type(native) is type(model)
        assert native.classes_.dtype == model.classes_.dtype
        np.testing.assert_array_equal(native.classes_, model.classes_)
        for given in (X, wide):
            expected = response.probabilities(small.origin, small.predict(given))
            found = native.predict_proba(given)
            np.testing.assert_allclose(found, expected, atol=1e-6)
            np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-6)
            assert found.min() >= 0.0
    if name not in OF_TWO:  # CatBoost's pickles differ each time
        assert joblib.hash(pickle.dumps(model)) == before
    assert y is not None


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "kind"), [case for case in CASES if case[1] in ("text", "more")])
def test_pruned_models_are_of_the_same_class(name, kind, tmp_path):
    model, X, y = fitted(name, kind)
    small = fp.prune(model, X, y, max_nodes=24, n_alphas=12, X_val=X[:60], y_val=y[:60])
    assert 3 <= small.n_nodes <= 24
    assert small.validation.metrics.keys() >= {"accuracy", "balanced_accuracy", "log_loss"}
    native = small.to_native()
    np.testing.assert_allclose(native.predict_proba(X), small.predict_proba(X), atol=1e-6)
    # Where two classes are as likely but for rounding, either may be taken.
    sure = np.diff(np.sort(small.predict_proba(X), axis=1)[:, -2:])[:, 0] > 1e-5
    np.testing.assert_array_equal(native.predict(X)[sure], small.predict(X)[sure])
    assert np.mean(native.predict(X) == y) > 1.1 / len(model.classes_)
    joblib.dump(native, tmp_path / "small")
    again = joblib.load(tmp_path / "small")
    np.testing.assert_array_equal(again.predict(X), native.predict(X))
    assert type(clone(native)) is type(model)
    small.save(tmp_path / "small.npz")
    loaded = fp.PrunedForest.load(tmp_path / "small.npz")
    np.testing.assert_array_equal(loaded.predict(X), small.predict(X))
    np.testing.assert_array_equal(loaded.classes_, model.classes_)
    # Without y, towards the model's own probabilities.
    own = fp.prune(model, X, max_nodes=24, n_alphas=12)
    assert own.n_nodes <= 24


@pytest.mark.parametrize("n_classes", [2, 3])
def test_boosters_and_their_files(n_classes, tmp_path):
    X, y = rows(np.arange(n_classes))
    models = {"m.json": extreme().fit(X, y).get_booster(), "m.txt": light().fit(X, y).booster_}
    for name, model in models.items():
        model.save_model(tmp_path / name)
        small = fp.prune(tmp_path / name, X, y, max_nodes=30, n_alphas=12)
        assert small.forest.origin.response == "probability"
        native = small.to_native()
        given = xgb.DMatrix(X) if name == "m.json" else X
        np.testing.assert_allclose(native.predict(given), small.predict(X), atol=1e-6)
        shares = small.predict_proba(X)
        assert shares.shape == (len(X), n_classes)
        expected = small.predict(X) if n_classes > 2 else small.predict(X)[:, np.newaxis]
        np.testing.assert_allclose(shares[:, -expected.shape[1] :], expected)


def test_several_targets_of_xgboost():
    X, y = rows(np.arange(2))
    targets = np.column_stack([X[:, 0] + y, X[:, 1]])
    model = xgb.XGBRegressor(n_estimators=5, max_depth=3, n_jobs=1).fit(X, targets)
    forest = fp.Forest.from_model(model)
    np.testing.assert_allclose(forest.predict(X), model.predict(X), atol=1e-5)
    small = fp.prune(model, X, targets, max_nodes=40, n_alphas=12)
    assert small.n_nodes <= 40
    np.testing.assert_allclose(small.to_native().predict(X), small.predict(X), atol=1e-5)


def test_rankers_and_functions_are_pruned_towards_their_raw_sums():
    X, y = rows(np.arange(2))
    queries = np.repeat(np.arange(16), 10)
    ranker = xgb.XGBRanker(n_estimators=4, max_depth=3, n_jobs=1).fit(X, y, qid=queries)
    function = xgb.XGBRegressor(
        n_estimators=4, max_depth=3, n_jobs=1, objective=lambda y, p: (p - y, np.ones_like(y))
    ).fit(X, y)
    for model in (ranker, function):
        with pytest.raises(ValueError, match="Leave y out"):
            fp.prune(model, X, y, max_nodes=12)
        small = fp.prune(model, X, max_nodes=12, n_alphas=12)
        np.testing.assert_allclose(small.to_native().predict(X), small.predict(X), atol=1e-5)


def test_a_balanced_model_stays_balanced():
    X, y = rows(np.arange(2))
    rare = np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:12]])
    X, y = X[rare], y[rare]
    model = RandomForestClassifier(8, max_depth=5, class_weight="balanced", random_state=0)
    model.fit(X, y)
    assert fp.Forest.from_model(model).origin.class_weight == "balanced"
    small = fp.prune(model, X, y, max_nodes=40, n_alphas=20)
    # Weighted, both classes have half of the mass, and so have predictions.
    weight = np.where(y == 1, 0.5 / 12, 0.5 / (y == 0).sum())
    assert np.average(small.predict_proba(X)[:, 1], weights=weight) == pytest.approx(0.5, abs=0.06)
    weighted = extreme(scale_pos_weight=4.0).fit(X, y)
    assert fp.Forest.from_model(weighted).origin.class_weight == (1.0, 4.0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda y: np.where(y == "yes", "maybe", y), r"labels of the model.*'maybe'"),
        (lambda y: (y == "yes").astype(int), "labels of the model"),
        (lambda y: np.linspace(0, 1, len(y)), "labels of the model"),
        (lambda y: y[:-1], "one label for each row"),
        (lambda y: np.column_stack([y, y]), "several labels a row are not taken"),
        (lambda y: np.column_stack([y == "no", y == "yes"]) * 0.5, "Probabilities and several"),
        (lambda y: np.where(y == "yes", None, y), "labels of the model.*None"),
        (lambda y: pd.Series(y).where(y == "yes").astype("category"), "labels of the model.*nan"),
        (lambda y: y.astype("S"), "labels of the model.*b'no'"),
        (lambda y: np.full(len(y), "yes"), "two classes or more, got 'yes' only"),
    ],
)
def test_labels_the_model_does_not_know_are_refused(wrong, message):
    model, X, y = fitted("forest", "text")
    with pytest.raises(ValueError, match=message):
        fp.prune(model, X, wrong(y), max_nodes=20)


@pytest.mark.parametrize(
    ("labels", "given"),
    [
        (np.arange(2), lambda y: y.astype(float)),
        (np.arange(2), lambda y: y == 1),
        (np.arange(2), lambda y: y.astype(object)),
        (np.arange(2), lambda y: y[:, np.newaxis].astype(np.int8)),
        (np.arange(2), lambda y: pd.Series(y, dtype="Int64")),
        (np.array([False, True]), lambda y: y.astype(int)),
        (np.array([0.0, 1.0]), lambda y: y.astype(int)),
        (LABELS["text"], lambda y: y.tolist()),
        (LABELS["text"], lambda y: pd.Series(y, dtype="category")),
        (LABELS["text"], lambda y: pd.DataFrame({"target": y})),
        (LABELS["text"], lambda y: pl.Series(y, dtype=pl.Categorical)),
    ],
)
def test_labels_may_come_in_any_wrapping(labels, given):
    X, y = rows(labels)
    model = GradientBoostingClassifier(n_estimators=4, random_state=0).fit(X, y)
    expected = fp.prune(model, X, y, max_nodes=20, n_alphas=6).predict_proba(X)
    small = fp.prune(model, X, given(y), max_nodes=20, n_alphas=6)
    np.testing.assert_array_equal(small.predict_proba(X), expected)
    assert small.predict(X).dtype == y.dtype


@pytest.mark.parametrize("name", ["forest", "boosting", "xgboost", "lightgbm"])
def test_classes_without_rows_stay_classes(name):
    model, X, y = fitted(name, "more")
    there = y != model.classes_[2]
    weights = np.where(there, 1.0, 0.0)
    left_out = fp.prune(model, X[there], y[there], max_nodes=24, n_alphas=6)
    weighted = fp.prune(model, X, y, max_nodes=24, n_alphas=6, sample_weight=weights)
    for small in (left_out, weighted):
        shares = small.to_native().predict_proba(X)
        np.testing.assert_allclose(shares, small.predict_proba(X), atol=1e-6)
        assert np.isfinite(shares).all()
        np.testing.assert_array_equal(small.classes_, model.classes_)
        # What the model knows of that class is drawn towards what these rows say: none is of it.
        assert shares[there, 2].mean() < model.predict_proba(X)[there, 2].mean()


@pytest.mark.parametrize("kind", ["text", "more"])
def test_models_without_a_tree_that_helps(kind):
    X, y = rows(LABELS[kind])
    alone = GradientBoostingClassifier(n_estimators=1, random_state=0).fit(X, y)
    assert 3 <= fp.prune(alone, X, y, max_nodes=40, n_alphas=6).n_nodes <= 40
    constant = GradientBoostingClassifier(n_estimators=3, min_samples_leaf=150).fit(X, y)
    with pytest.warns(UserWarning, match="a constant is left"):
        small = fp.prune(constant, X, y, max_nodes=40)
    shares = np.unique(y, return_counts=True)[1] / len(y)
    np.testing.assert_allclose(small.to_native().predict_proba(X[:2]), [shares, shares])


def test_models_without_an_answer_are_refused():
    X, y = rows(np.arange(2))
    with pytest.raises(fp.UnsupportedModelError, match="one target; this one has 2"):
        fp.Forest.from_model(DecisionTreeClassifier().fit(X, np.column_stack([y, y])))
    with pytest.raises(fp.UnsupportedModelError, match="two classes or more"):
        fp.Forest.from_model(DecisionTreeClassifier().fit(X, np.zeros(len(y))))


def test_exponential_boosting_is_pruned_towards_what_it_says():
    X, y = rows(np.arange(2))
    model = GradientBoostingClassifier(loss="exponential", n_estimators=5).fit(X, y)
    with pytest.raises(ValueError, match="Leave y out"):
        fp.prune(model, X, y, max_nodes=30)
    small = fp.prune(model, X, max_nodes=30)
    np.testing.assert_allclose(small.predict_proba(X), small.to_native().predict_proba(X))
    assert np.mean(small.predict(X) == model.predict(X)) > 0.8


def test_what_would_break_distributions_is_refused():
    model, X, y = fitted("forest", "text")
    for way in ({"polish": "ridge"}, {"rule": "layer", "joint": "ridge"}):
        with pytest.raises(ValueError, match="averages distributions over classes"):
            fp.prune(model, X, y, max_nodes=20, **way)
    stumps = RandomForestClassifier(5, max_depth=1, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="averages distributions over classes"):
        fp.prune(stumps, X, y, max_nodes=20, rule="oblivious")
    kept = fp.prune(stumps, X, y, max_nodes=20, rule="oblivious", refit=False)
    assert kept.predict_proba(X).min() >= 0.0
    boosted = fitted("boosting", "text")[0]
    with pytest.raises(ValueError, match="is for squared error"):
        fp.prune(boosted, X, y, max_nodes=20, rule="layer", joint="ridge")


@pytest.mark.parametrize("scoring", ["accuracy", "roc_auc", "neg_log_loss", "balanced_accuracy"])
def test_rows_choose_by_a_scorer(scoring):
    from sklearn.metrics import get_scorer

    model, X, y = fitted("boosting", "text")
    train, held_out = slice(None, None, 2), slice(1, None, 2)
    rows_of = {"X_val": X[held_out], "y_val": y[held_out]}
    small = fp.prune(
        model, X[train], y[train], tolerance=0.02, scoring=scoring, n_alphas=12, **rows_of
    )
    found, native = small.validation, small.to_native()
    assert found.name == scoring
    expected = get_scorer(scoring)(native, X[held_out], y[held_out])
    assert found.score == pytest.approx(expected, abs=1e-9)
    full = get_scorer(scoring)(model, X[held_out], y[held_out])
    assert found.full_score == pytest.approx(full, abs=1e-9)
    assert found.score >= full - 0.02 - 1e-9
    assert found.standard_error > 0.0
    with pytest.raises(ValueError, match="needs validation rows"):
        fp.prune(model, X, y, max_nodes=20, scoring=scoring)
    with pytest.raises(ValueError, match="name of a scorer"):
        fp.prune(model, X, y, max_nodes=20, scoring="nonsense", **rows_of)
