"""The scikit-learn classes keep scikit-learn's promises."""

import inspect
import pickle
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from forestprune import ForestPruneRegressor, ForestPruneRegressorCV, UnsupportedModelError
from forestprune.options import TABLE, Size

X, Y = make_friedman1(300, noise=1.0, random_state=0)
X_TEST, Y_TEST = make_friedman1(200, noise=1.0, random_state=1)

WEIGHTED = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)
BOOTSTRAP = dict.fromkeys(WEIGHTED, "a bootstrap draws rows whatever they weigh")
FOLDS = dict.fromkeys(WEIGHTED, "folds are made of rows whatever they weigh")


# As scikit-learn's own estimator, alone, does not pass it either.
BOOSTING = dict.fromkeys(WEIGHTED, "rows without weight still set thresholds")


def expected_failures(estimator):
    if isinstance(estimator, ForestPruneRegressorCV):
        return FOLDS
    return BOOTSTRAP if isinstance(estimator.estimator, RandomForestRegressor) else BOOSTING


@parametrize_with_checks(
    [
        ForestPruneRegressor(RandomForestRegressor(4, random_state=0), polish="ridge"),
        ForestPruneRegressor(GradientBoostingRegressor(n_estimators=20, random_state=0)),
        ForestPruneRegressor(RandomForestRegressor(4, random_state=0), polish="split", n_jobs=1),
        ForestPruneRegressorCV(RandomForestRegressor(3, random_state=0), cv=2, n_alphas=4),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def forest(n_trees=10):
    return RandomForestRegressor(n_trees, max_depth=5, random_state=0)


def test_an_unfitted_estimator_is_fitted_and_stays_unfitted():
    inner = forest()
    small = ForestPruneRegressor(inner, max_nodes=60, polish="ridge").fit(X, Y)
    assert not hasattr(inner, "estimators_")
    assert isinstance(small.estimator_, RandomForestRegressor)
    assert small.pruned_.n_nodes <= 60
    assert small.n_features_in_ == 10
    np.testing.assert_allclose(small.predict(X_TEST), small.estimator_.predict(X_TEST))
    assert small.score(X_TEST, Y_TEST) > 0.5


def test_a_fitted_estimator_is_used_as_it_is():
    inner = forest().fit(X, Y)
    trees = list(inner.estimators_)
    for given in (inner, FrozenEstimator(inner)):
        small = ForestPruneRegressor(given, alpha=0.5).fit(X_TEST, Y_TEST)
        assert small.pruned_.depths.size == 10
        assert inner.estimators_ == trees
        # Pruned, not fitted again: the thresholds are those of the forest that was given.
        known = {t for tree in trees for t in tree.tree_.threshold}
        kept = {t for tree in small.estimator_.estimators_ for t in tree.tree_.threshold}
        assert kept <= known | {-2.0}
        assert len(kept) > 10


def test_a_frozen_estimator_must_be_fitted():
    with pytest.raises(NotFittedError, match="must be fitted before it is pruned"):
        ForestPruneRegressor(FrozenEstimator(forest())).fit(X, Y)


def test_other_estimators_are_refused():
    with pytest.raises(UnsupportedModelError):
        ForestPruneRegressor(KNeighborsRegressor()).fit(X, Y)


def test_a_pipeline_comes_back_as_a_pipeline():
    pipeline = make_pipeline(StandardScaler(), forest())
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(10)])
    small = ForestPruneRegressor(pipeline, max_nodes=60).fit(frame, Y, sample_weight=np.ones(300))
    assert isinstance(small.estimator_, Pipeline)
    assert isinstance(small.estimator_[-1], RandomForestRegressor)
    np.testing.assert_allclose(small.predict(frame), small.estimator_.predict(frame))
    np.testing.assert_array_equal(small.feature_names_in_, frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        small.predict(frame.rename(columns={"x0": "other"}))


def test_inside_a_pipeline():
    outer = make_pipeline(StandardScaler(), ForestPruneRegressor(forest(), max_nodes=60))
    assert cross_val_score(outer, X, Y, cv=3).min() > 0.2


def test_grid_search_and_clone():
    search = GridSearchCV(
        ForestPruneRegressor(forest(5), n_alphas=10),
        {"max_nodes": [20, 60], "polish": [None, "ridge"], "estimator__max_depth": [3, 5]},
        cv=2,
    ).fit(X, Y)
    assert search.best_params_["polish"] == "ridge"
    assert search.best_estimator_.pruned_.n_nodes <= search.best_params_["max_nodes"]
    copy = clone(search.best_estimator_)
    assert copy.get_params()["max_nodes"] == search.best_params_["max_nodes"]
    assert not hasattr(copy, "pruned_")
    assert copy.set_params(alpha2=0.5).alpha2 == 0.5
    frozen = FrozenEstimator(forest(5).fit(X, Y))
    GridSearchCV(ForestPruneRegressor(frozen), {"alpha": [0.1, 1.0]}, cv=2).fit(X, Y)


def test_it_is_shown_with_its_estimator():
    html = ForestPruneRegressor(forest())._repr_html_()
    assert "ForestPruneRegressor" in html
    assert "RandomForestRegressor" in html


def test_weights_reach_the_forest_and_the_pruning():
    weights = np.where(X[:, 0] > 0.5, 5.0, 0.1)
    inner = GradientBoostingRegressor(n_estimators=20, random_state=0)
    small = ForestPruneRegressor(inner, alpha=0.3).fit(X, Y, sample_weight=weights)
    import forestprune as fp

    by_hand = fp.prune(
        clone(inner).fit(X, Y, sample_weight=weights), X, Y, alpha=0.3, sample_weight=weights
    )
    np.testing.assert_array_equal(small.predict(X_TEST), by_hand.predict(X_TEST))


def test_weights_that_the_estimator_cannot_use_are_refused():
    class NoWeights(RandomForestRegressor):
        def fit(self, X, y):
            return super().fit(X, y)

    with pytest.raises(TypeError, match="NoWeights cannot be fitted with weights"):
        ForestPruneRegressor(NoWeights()).fit(X, Y, sample_weight=np.ones(300))


def test_validation_rows_are_kept_from_fitting_and_pruning():
    small = ForestPruneRegressor(
        forest(), tolerance=0.05, validation_fraction=0.25, polish="ridge", random_state=0
    )
    for weights in (None, np.ones(300)):
        small.fit(X, Y, sample_weight=weights)
        cover = [tree.tree_.weighted_n_node_samples[0] for tree in small.estimator_.estimators_]
        assert set(cover) == {225.0}
        again = clone(small).fit(X, Y, sample_weight=weights)
        np.testing.assert_array_equal(again.predict(X), small.predict(X))
    with pytest.raises(ValueError, match="set validation_fraction"):
        ForestPruneRegressor(forest(), tolerance=0.05).fit(X, Y)
    with pytest.raises(ValueError, match="validation_fraction must be a number between 0 and 1"):
        ForestPruneRegressor(forest(), max_nodes=9, validation_fraction=1.5).fit(X, Y)


@pytest.mark.parametrize(
    "criteria", [{}, {"max_nodes": 60}, {"tolerance": 0.05}, {"one_standard_error": True}], ids=str
)
def test_cross_validation_chooses_by_the_folds(criteria):
    cv = KFold(4, shuffle=True, random_state=0)
    small = ForestPruneRegressorCV(forest(), cv=cv, n_alphas=12, polish="ridge", **criteria)
    small.fit(X, Y)
    assert small.scores_.shape == (len(small.path_), 4)
    mean = small.scores_.mean(axis=1)
    error = small.scores_.std(axis=1, ddof=1) / 2
    np.testing.assert_allclose(small.path_.validation.scores, mean)
    chosen = int(np.flatnonzero(small.path_.alphas == small.alpha_)[0])
    assert small.pruned_.n_nodes == small.path_.n_nodes[chosen]
    nodes = small.path_.n_nodes
    if "max_nodes" in criteria:
        assert nodes[chosen] <= 60
        assert mean[chosen] == mean[nodes <= 60].max()
    elif "tolerance" in criteria:
        assert nodes[chosen] == nodes[mean >= small.path_.validation.full - 0.05].min()
    elif "one_standard_error" in criteria:
        best = np.argmax(mean)
        assert nodes[chosen] == nodes[mean >= mean[best] - error[best]].min()
    else:
        assert mean[chosen] == mean.max()
    np.testing.assert_allclose(small.predict(X_TEST), small.estimator_.predict(X_TEST))


def test_the_scores_of_a_fold_are_those_of_models_that_did_not_see_it():
    import forestprune as fp

    small = ForestPruneRegressorCV(forest(5), cv=KFold(3), n_alphas=6, shrinkage=9.0).fit(X, Y)
    train, test = next(KFold(3).split(X))
    alphas = small.path_.alphas[:-1]
    fold = fp.prune_path(
        forest(5).fit(X[train], Y[train]), X[train], Y[train], alphas=alphas, shrinkage=9.0
    )
    expected = fold.score(X[test], Y[test])
    np.testing.assert_allclose(small.scores_[: expected.size, 0], expected)
    full = forest(5).fit(X[train], Y[train]).score(X[test], Y[test])
    assert small.scores_[-1, 0] == pytest.approx(full)


def test_cross_validation_of_a_fitted_forest_does_not_fit_it_again():
    inner = forest(5).fit(X, Y)
    small = ForestPruneRegressorCV(inner, cv=2, n_alphas=5, max_depth=3).fit(X, Y)
    assert small.pruned_.max_depth <= 3
    assert small.path_.source.forest.n_trees == 5


def test_your_own_alphas():
    small = ForestPruneRegressorCV(forest(5), cv=2, alphas=[3.0, 0.3]).fit(X, Y)
    np.testing.assert_array_equal(small.path_.alphas, [3.0, 0.3])
    assert small.alpha_ == 0.3


class Unfittable(RandomForestRegressor):
    def fit(self, X, y, sample_weight=None):
        raise AssertionError("bad options must be refused before the forest is fitted")


@pytest.mark.parametrize(
    "options",
    [
        {"polish": "lasso"},
        {"max_nodes": 1},
        {"tolerance": -1, "validation_fraction": 0.2},
        {"alpha": -1.0},
        {"one_standard_error": "no"},
    ],
    ids=str,
)
def test_bad_options_are_refused_before_fitting(options):
    with pytest.raises(ValueError, match="must be"):
        ForestPruneRegressor(Unfittable(), **options).fit(X, Y)


def test_one_fold_has_no_standard_error():
    one = [(np.arange(200), np.arange(200, 300))]
    small = ForestPruneRegressorCV(forest(3), cv=one, n_alphas=4).fit(X, Y)
    np.testing.assert_array_equal(small.path_.validation.standard_errors, 0.0)
    with pytest.raises(ValueError, match="at least two folds"):
        ForestPruneRegressorCV(Unfittable(), cv=one, one_standard_error=True).fit(X, Y)


@pytest.mark.parametrize("loss", ["poisson", "quantile"])
def test_models_are_pruned_in_their_own_loss(loss):
    X, y = make_friedman1(200, random_state=0)
    full = HistGradientBoostingRegressor(loss=loss, quantile=0.7, max_iter=30).fit(X, y)
    small = ForestPruneRegressor(clone(full), max_nodes=150, validation_fraction=0.2).fit(X, y)
    folds = ForestPruneRegressorCV(full, max_nodes=150, n_alphas=10, cv=2).fit(X, y)
    for estimator in (small, folds):
        assert 0 < estimator.pruned_.n_nodes <= 150
        np.testing.assert_allclose(estimator.predict(X), estimator.estimator_.predict(X))
        assert r2_score(full.predict(X), estimator.predict(X)) > 0.7
    # Folds are scored by the share of that loss that is explained.
    assert folds.path_.validation.name == "D squared"
    assert 0.3 < folds.path_.validation.full < 1.0


def test_sparse_rows():
    X, y = make_friedman1(100, random_state=0)
    X[X < 0.3] = 0.0
    rows = sparse.csr_matrix(X)
    forest = RandomForestRegressor(5, random_state=0).fit(X, y)
    small = ForestPruneRegressor(forest, max_nodes=60).fit(rows, y)
    dense = ForestPruneRegressor(forest, max_nodes=60).fit(X, y)
    np.testing.assert_array_equal(small.predict(rows), dense.predict(X))


@pytest.mark.parametrize("kind", [ForestPruneRegressor, ForestPruneRegressorCV])
def test_signatures_are_those_of_the_table(kind):
    own = {"estimator", "validation_fraction", "cv", "alphas"}
    signature = inspect.signature(kind).parameters
    shared = {name: each.default for name, each in signature.items() if name not in own}
    table = {name: each.default for name, each in TABLE.items()}
    if kind is ForestPruneRegressorCV:
        del table["alpha"]  # which the folds choose
    assert shared == table


def test_prune_takes_the_options_of_the_table():
    import forestprune as fp

    small = {name: each.default for name, each in inspect.signature(fp.prune).parameters.items()}
    assert {field.name: field.default for field in fields(Size)}.items() <= small.items()


def test_folds_say_how_sure_a_tolerance_is_kept_to():
    forest = RandomForestRegressor(8, max_depth=5, random_state=0)
    asked = {"tolerance": 0.1, "confidence": 0.9, "shrinkage": 100.0, "n_alphas": 15}
    fitted = ForestPruneRegressorCV(forest, cv=4, **asked).fit(X, Y)
    known, scores = fitted.path_.validation, fitted.scores_
    full = cross_val_score(forest, X, Y, cv=4)
    assert known.full == pytest.approx(full.mean())
    errors = (full - scores).std(axis=1, ddof=1) / 2.0
    np.testing.assert_allclose(known.shortfall_errors, errors, atol=1e-12)
    rmse = -cross_val_score(forest, X, Y, cv=4, scoring="neg_root_mean_squared_error")
    assert known.full_rmse == pytest.approx(rmse.mean())
    assert known.n_rows == len(Y)
    good = known.full - known.scores + 1.2815516 * errors <= 0.1
    assert fitted.pruned_.n_nodes == fitted.path_.n_nodes[good].min()
    assert fitted.pruned_.validation.score == known.scores[fitted.pruned_.index]
    one = [(np.arange(50), np.arange(50, 100))]
    with pytest.raises(ValueError, match="at least two folds"):
        ForestPruneRegressorCV(forest, cv=one, tolerance=0.1, confidence=0.9).fit(X, Y)


def test_validation_rows_of_an_estimator_are_known_afterwards():
    fitted = ForestPruneRegressor(
        RandomForestRegressor(8, max_depth=5, random_state=0),
        max_nodes=50,
        validation_fraction=0.25,
        n_alphas=10,
    ).fit(X, Y)
    assert fitted.pruned_.validation.n_rows == round(0.25 * len(Y))
    assert fitted.pruned_.path[fitted.pruned_.index].n_nodes == fitted.pruned_.n_nodes


def test_new_splits_in_estimators():
    options = {"max_nodes": 30, "polish": "split", "validation_fraction": 0.25, "random_state": 0}
    small = clone(ForestPruneRegressor(forest(), **options)).fit(X, Y)
    assert small.pruned_.n_new_splits > 0
    assert small.pruned_.n_nodes <= 30
    np.testing.assert_allclose(small.predict(X_TEST), small.estimator_.predict(X_TEST))
    copied = pickle.loads(pickle.dumps(small))
    np.testing.assert_array_equal(copied.predict(X_TEST), small.predict(X_TEST))
    assert copied.pruned_.n_new_splits == small.pruned_.n_new_splits
    grid = {"small__polish": [None, "split"]}
    steps = [("scale", StandardScaler()), ("small", clone(small))]
    found = GridSearchCV(Pipeline(steps), grid, cv=2).fit(X, Y)
    assert found.best_params_["small__polish"] == "split"
    assert found.best_score_ > 0.4


def test_folds_do_not_choose_new_splits():
    with pytest.raises(ValueError, match="ForestPruneRegressor with validation_fraction"):
        ForestPruneRegressorCV(forest(), polish="split").fit(X, Y)
