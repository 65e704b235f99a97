"""The scikit-learn classifiers keep scikit-learn's promises, and speak of classes."""

import inspect
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import forestprune as fp
from forestprune import ForestPruneClassifier, ForestPruneClassifierCV, UnsupportedModelError

KINDS = [ForestPruneClassifier, ForestPruneClassifierCV]


def problem(n_classes):
    X, y = make_classification(
        400, 6, n_informative=4, n_classes=n_classes, flip_y=0.1, random_state=n_classes
    )
    return train_test_split(X, y, test_size=0.5, random_state=0)


X, X_TEST, Y, Y_TEST = problem(2)
X3, X3_TEST, Y3, Y3_TEST = problem(3)
NAMES = np.array(["no", "perhaps", "yes"])

WEIGHTED = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)
BOOTSTRAP = dict.fromkeys(WEIGHTED, "a bootstrap draws rows whatever they weigh")
FOLDS = dict.fromkeys(WEIGHTED, "folds are made of rows whatever they weigh")


def expected_failures(estimator):
    if isinstance(estimator, ForestPruneClassifierCV):
        return FOLDS
    return BOOTSTRAP if isinstance(estimator.estimator, RandomForestClassifier) else {}


@parametrize_with_checks(
    [
        ForestPruneClassifier(RandomForestClassifier(4, random_state=0)),
        ForestPruneClassifier(GradientBoostingClassifier(n_estimators=5, random_state=0)),
        ForestPruneClassifierCV(RandomForestClassifier(3, random_state=0), cv=2, n_alphas=3),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def forest(n_trees=8, **params):
    return RandomForestClassifier(n_trees, max_depth=5, random_state=0, **params)


def boosted(n_trees=8):
    return GradientBoostingClassifier(n_estimators=n_trees, random_state=0)


def made(kind, estimator, **options):
    """Return an estimator of a kind, with few folds if it has some."""
    folds = {"cv": 2, "shrinkage": 100.0, "n_alphas": 6}
    return kind(estimator, **((folds if kind is ForestPruneClassifierCV else {}) | options))


def assert_like_native(small, X):
    """What an estimator says is what the native model says."""
    native = small.estimator_
    np.testing.assert_array_equal(small.classes_, native.classes_)
    assert small.classes_.dtype == native.classes_.dtype
    np.testing.assert_array_equal(small.predict(X), native.predict(X))
    np.testing.assert_allclose(small.predict_proba(X), native.predict_proba(X), atol=1e-12)
    assert hasattr(small, "decision_function") == hasattr(native, "decision_function")
    if hasattr(small, "decision_function"):
        np.testing.assert_allclose(
            small.decision_function(X), native.decision_function(X), atol=1e-12
        )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("inner", [forest(), boosted()], ids=["averaged", "boosted"])
@pytest.mark.parametrize(
    ("labels", "labels_test", "rows", "rows_test"),
    [
        (Y, Y_TEST, X, X_TEST),
        (Y == 1, Y_TEST == 1, X, X_TEST),
        (NAMES[Y3], NAMES[Y3_TEST], X3, X3_TEST),
        (pd.Series(NAMES[Y], dtype=object), NAMES[Y_TEST], X, X_TEST),
    ],
    ids=["numbers", "truth", "names", "a column"],
)
def test_labels_of_every_kind(kind, inner, labels, labels_test, rows, rows_test):
    small = made(kind, inner, max_nodes=100).fit(rows, labels)
    assert 0 < small.pruned_.n_nodes <= 100
    assert not hasattr(inner, "estimators_")
    assert type(small.estimator_) is type(inner)
    assert small.n_features_in_ == 6
    np.testing.assert_array_equal(small.classes_, np.unique(labels))
    assert_like_native(small, rows_test)
    predicted = small.predict(rows_test)
    assert small.score(rows_test, labels_test) == accuracy_score(labels_test, predicted)
    assert small.score(rows_test, labels_test) > 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_a_fitted_classifier_is_used_as_it_is(kind):
    inner = forest().fit(X, NAMES[Y])
    for given in (inner, FrozenEstimator(inner)):
        small = made(kind, given, max_nodes=60).fit(X_TEST, NAMES[Y_TEST])
        known = {t for tree in inner.estimators_ for t in tree.tree_.threshold}
        kept = {t for tree in small.estimator_.estimators_ for t in tree.tree_.threshold}
        assert kept <= known | {-2.0}
        with pytest.raises(ValueError, match="must hold labels of the model") as caught:
            made(kind, given, max_nodes=60).fit(X_TEST, Y_TEST)
        assert "by number" not in str(caught.value)
    numbered = made(kind, forest().fit(X, Y), max_nodes=60)
    with pytest.raises(ValueError, match=r"which are 0, 1; got 'no', 'yes'\. .* number only"):
        numbered.fit(X_TEST, np.where(Y_TEST == 1, "no", "yes"))


def test_what_is_fitted_is_what_prune_gives():
    weights = np.where(X[:, 0] > 0, 3.0, 0.5)
    small = ForestPruneClassifier(boosted(), alpha=0.05).fit(X, Y, sample_weight=weights)
    full = boosted().fit(X, Y, sample_weight=weights)
    by_hand = fp.prune(full, X, Y, alpha=0.05, sample_weight=weights)
    np.testing.assert_array_equal(small.predict_proba(X_TEST), by_hand.predict_proba(X_TEST))
    assert small.pruned_.n_trees > 0
    plain = ForestPruneClassifier(boosted(), alpha=0.05).fit(X, Y)
    assert (plain.predict_proba(X_TEST) != small.predict_proba(X_TEST)).any()


@pytest.mark.parametrize("kind", KINDS)
def test_weights_reach_the_end_of_a_pipeline(kind):
    pipeline = make_pipeline(StandardScaler(), forest())
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(6)])
    weights = np.where(Y, 10.0, 1.0)
    small = made(kind, pipeline, max_nodes=60).fit(frame, NAMES[Y], sample_weight=weights)
    assert isinstance(small.estimator_, Pipeline)
    assert isinstance(small.estimator_[-1], RandomForestClassifier)
    assert_like_native(small, frame)
    np.testing.assert_array_equal(small.feature_names_in_, frame.columns)
    plain = made(kind, pipeline, max_nodes=60).fit(frame, NAMES[Y])
    # Rows that count for more are told from the others more often.
    assert (small.predict(frame) == "perhaps").sum() > (plain.predict(frame) == "perhaps").sum()


def test_inside_a_pipeline_and_a_grid_search():
    outer = make_pipeline(StandardScaler(), ForestPruneClassifier(forest(), n_alphas=5))
    search = GridSearchCV(
        outer,
        {
            "forestpruneclassifier__max_nodes": [20, 60],
            "forestpruneclassifier__estimator__max_depth": [2, 5],
        },
        cv=2,
        scoring="roc_auc_ovr",
    ).fit(X3, NAMES[Y3])
    assert search.best_score_ > 0.6
    best = search.best_estimator_[-1]
    assert best.pruned_.n_nodes <= best.max_nodes
    copy = clone(best)
    assert copy.get_params()["max_nodes"] == best.max_nodes
    assert not hasattr(copy, "pruned_")


@pytest.mark.parametrize("inner", [forest(), boosted()], ids=["averaged", "boosted"])
@pytest.mark.parametrize("ensemble", [True, False])
def test_calibrated(inner, ensemble):
    small = ForestPruneClassifier(inner, max_nodes=60)
    calibrated = CalibratedClassifierCV(small, cv=2, ensemble=ensemble).fit(X, NAMES[Y])
    assert roc_auc_score(Y_TEST, calibrated.predict_proba(X_TEST)[:, 1]) > 0.75
    prefit = CalibratedClassifierCV(FrozenEstimator(clone(small).fit(X, Y)), cv=2)
    assert prefit.fit(X_TEST, Y_TEST).score(X_TEST, Y_TEST) > 0.7


@pytest.mark.parametrize("kind", KINDS)
def test_together_with_others(kind):
    small, names = made(kind, boosted(4), max_nodes=60), NAMES[Y3]
    pair = [("small", small), ("plain", forest(4))]
    vote = VotingClassifier(pair, voting="soft").fit(X3, names, sample_weight=np.ones(200))
    stack = StackingClassifier(pair, cv=2).fit(X3, names)
    for model in (vote, stack):
        assert model.score(X3_TEST, NAMES[Y3_TEST]) > 0.5
    shares = cross_val_predict(small, X3, names, cv=2, method="predict_proba")
    assert shares.shape == (200, 3)
    tuned = TunedThresholdClassifierCV(made(kind, boosted(4), max_nodes=60), cv=2).fit(X, NAMES[Y])
    assert tuned.score(X_TEST, NAMES[Y_TEST]) > 0.6


@pytest.mark.parametrize("kind", KINDS)
def test_copies_are_alike(kind, tmp_path):
    small = made(kind, forest(4, class_weight={"no": 1.0, "perhaps": 4.0}), max_nodes=60)
    small.fit(X, NAMES[Y])
    assert small.pruned_.forest.origin.class_weight == (1.0, 4.0)
    joblib.dump(small, tmp_path / "small.joblib")
    for again in (pickle.loads(pickle.dumps(small)), joblib.load(tmp_path / "small.joblib")):
        np.testing.assert_array_equal(again.predict_proba(X), small.predict_proba(X))
        np.testing.assert_array_equal(again.classes_, small.classes_)
    np.testing.assert_array_equal(clone(small).fit(X, NAMES[Y]).predict(X), small.predict(X))


def test_methods_are_those_of_the_estimator():
    for inner, has_scores in (
        (forest(), False),
        (boosted(), True),
        (make_pipeline(boosted()), True),
        (FrozenEstimator(boosted().fit(X, Y)), True),
    ):
        assert hasattr(ForestPruneClassifier(inner), "decision_function") is has_scores
    small = ForestPruneClassifier(boosted(), max_nodes=60)
    for method in (small.predict, small.predict_proba, small.decision_function):
        with pytest.raises(NotFittedError):
            method(X)
    small.fit(X, Y)
    assert (small.decision_function(X) > 0).tolist() == (small.predict(X) == 1).tolist()
    with pytest.raises(ValueError, match="Reshape your data"):
        small.predict_proba(X[0])


# Rows to choose by


def test_validation_rows_have_their_share_of_each_class():
    rare = np.where(np.arange(200) % 20, "common", "rare")
    small = ForestPruneClassifier(
        forest(bootstrap=False), validation_fraction=0.2, n_alphas=5, shrinkage=1.0
    )
    shifted = X + 3.0 * (rare == "rare")[:, np.newaxis]
    for state in range(3):
        small.set_params(random_state=state).fit(shifted, rare)
        assert small.pruned_.validation.n_rows == 40
        # The forest has seen 8 of the 10 rare rows, among 160.
        shares = small.pruned_.path.source.forest.truncate(0).compact().base
        np.testing.assert_allclose(shares, 8 / 160)
    with pytest.raises(ValueError, match="least populated") as caught:
        small.fit(X, np.where(np.arange(200), "common", "once"))
    assert "each need a row of every class" in caught.value.__notes__[0]


SCORERS = {"roc_auc": roc_auc_score, "balanced_accuracy": balanced_accuracy_score}


@pytest.mark.parametrize("scoring", SCORERS)
def test_a_scorer_chooses_by_validation_rows(scoring):
    small = ForestPruneClassifier(
        forest(),
        validation_fraction=0.3,
        scoring=scoring,
        tolerance=0.02,
        shrinkage=100.0,
        n_alphas=8,
        random_state=0,
    ).fit(X, NAMES[Y])
    known, path = small.pruned_.validation, small.pruned_.path
    assert known.name == scoring
    assert small.pruned_.n_nodes == path.n_nodes[path.validation.within(0.02, None)].min()
    rows = train_test_split(X, Y, test_size=0.3, random_state=0, stratify=Y)
    said = small.predict_proba(rows[1])[:, 1]
    said = said if scoring == "roc_auc" else said > 0.5
    assert known.score == pytest.approx(SCORERS[scoring](rows[3], said))


@pytest.mark.parametrize("scoring", [None, "roc_auc_ovr", "balanced_accuracy"])
def test_folds_choose_among_names(scoring):
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    small = ForestPruneClassifierCV(
        forest(), cv=cv, scoring=scoring, shrinkage=100.0, n_alphas=6
    ).fit(X3, NAMES[Y3])
    assert small.scores_.shape == (len(small.path_), 3)
    mean = small.scores_.mean(axis=1)
    np.testing.assert_allclose(small.path_.validation.scores, mean)
    assert small.pruned_.validation.score == mean.max()
    assert small.pruned_.validation.name == (scoring or "D squared")
    assert {"accuracy", "log_loss"} <= {*small.pruned_.validation.metrics}
    if scoring is not None:  # the last point is the full model
        full = cross_val_score(forest(), X3, NAMES[Y3], cv=cv, scoring=scoring)
        np.testing.assert_allclose(small.scores_[-1], full)


def test_folds_have_their_share_of_each_class():
    order = np.argsort(Y3, kind="stable")  # in this order, plain folds would each be one class
    small = made(ForestPruneClassifierCV, forest(), cv=3).fit(X3[order], NAMES[Y3[order]])
    assert small.scores_.shape[1] == 3
    assert small.pruned_.validation.full_metrics["balanced_accuracy"] > 0.5
    assert small.classes_.tolist() == NAMES.tolist()


def test_folds_that_lack_a_class():
    order = np.argsort(Y3, kind="stable")
    rows, names = X3[order], NAMES[Y3[order]]
    with pytest.raises(ValueError, match="of 3 lack 'perhaps'"):
        made(ForestPruneClassifierCV, forest(), cv=KFold(3)).fit(rows, names)
    # A model that is fitted knows its classes.
    fitted = forest().fit(rows, names)
    small = made(ForestPruneClassifierCV, fitted, cv=KFold(3), scoring="accuracy").fit(rows, names)
    assert np.isfinite(small.scores_).all()
    assert small.score(X3_TEST, NAMES[Y3_TEST]) > 0.5
    with pytest.raises(ValueError, match="of two classes or more, got 'no' only"):
        made(ForestPruneClassifierCV, fitted, cv=KFold(3)).fit(rows, names)
    with pytest.raises(ValueError, match="scoring=roc_auc_ovr cannot score these validation rows"):
        made(ForestPruneClassifierCV, fitted, cv=KFold(3), scoring="roc_auc_ovr").fit(rows, names)


# What is refused


class Unfittable(RandomForestClassifier):
    def fit(self, X, y, sample_weight=None):
        raise AssertionError("must be refused before the forest is fitted")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("labels", "complaint"),
    [
        (np.full(200, "same"), "two classes or more, got one class, 'same'"),
        (np.linspace(0.0, 1.0, 200), "Unknown label type"),
        (np.column_stack([Y, Y]), "1d array"),
        (np.where(Y, np.nan, 1.0), "contains NaN"),
    ],
    ids=["one class", "numbers", "several outputs", "missing"],
)
def test_labels_that_are_none_are_refused_before_fitting(kind, labels, complaint):
    with pytest.raises(ValueError, match=complaint):
        kind(Unfittable()).fit(X, labels)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_classifier_is_refused(kind):
    for regressor in (RandomForestRegressor(2), make_pipeline(RandomForestRegressor(2))):
        with pytest.raises(UnsupportedModelError, match="prunes classifiers, but"):
            kind(regressor).fit(X, Y)
    with pytest.raises(UnsupportedModelError):
        kind(KNeighborsClassifier()).fit(X, Y)
    for model in (fp.Forest.from_model(forest().fit(X, Y)), "model.json"):
        with pytest.raises(UnsupportedModelError, match=r"takes estimators.*forestprune.prune\(\)"):
            kind(model).fit(X, Y)


def test_a_scorer_needs_rows_to_choose_by():
    with pytest.raises(ValueError, match="or use ForestPruneClassifierCV"):
        ForestPruneClassifier(Unfittable(), scoring="roc_auc").fit(X, Y)
    with pytest.raises(ValueError, match="scoring must be None, the name of a scorer"):
        ForestPruneClassifierCV(Unfittable(), scoring="auc").fit(X, Y)


# What the estimator can take


@pytest.mark.parametrize("kind", KINDS)
def test_tags_are_those_of_the_estimator(kind):
    for inner in (forest(), boosted(), HistGradientBoostingClassifier()):
        own, given = get_tags(kind(inner)), get_tags(inner)
        assert own.input_tags.allow_nan == given.input_tags.allow_nan
        assert own.input_tags.sparse == given.input_tags.sparse
        assert own.estimator_type == "classifier"
        assert not own.target_tags.multi_output


def test_sparse_and_missing_rows():
    few = np.where(X3 < 0.5, 0.0, X3)
    small = ForestPruneClassifier(forest().fit(few, Y3), max_nodes=60)
    dense = clone(small).set_params(estimator=small.estimator).fit(few, Y3)
    rows = sparse.csr_matrix(few)
    np.testing.assert_array_equal(small.fit(rows, Y3).predict_proba(rows), dense.predict_proba(few))
    holes = np.where(X3 > 1.5, np.nan, X3)
    histograms = HistGradientBoostingClassifier(max_iter=5, random_state=0)
    assert_like_native(ForestPruneClassifier(histograms, max_nodes=60).fit(holes, Y3), holes)


@pytest.mark.parametrize("kind", KINDS)
def test_signatures_are_those_of_regressors(kind):
    same = getattr(fp, kind.__name__.replace("Classifier", "Regressor"))
    assert inspect.signature(kind) == inspect.signature(same)
