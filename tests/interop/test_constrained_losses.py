"""Constraints hold in pruned classifiers, and for other losses than squared error."""

import catboost
import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from effort import INTERPRETED
from monotone import turns
from sklearn.datasets import make_friedman1
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.tree import DecisionTreeClassifier

import forestprune as fp

pytestmark = pytest.mark.skipif(INTERPRETED, reason="whole prunings, left to the compiled run")

# Not all of them agree with the data, so that refits pull at the constraints.
SIGNS = [1, 0, -1, 1, 0]
X, NUMBERS = make_friedman1(300, n_features=5, noise=2.0, random_state=0)
AMOUNTS = np.exp(0.15 * NUMBERS)
COUNTS = np.random.default_rng(0).poisson(AMOUNTS).astype(float)
TWO = (NUMBERS > 15.0).astype(int)
THREE = np.digitize(NUMBERS, [12.0, 17.0])
RARE = (NUMBERS > 19.0).astype(int)


def light(kind, **params):
    own = {"n_estimators": 15, "n_jobs": 1, "verbose": -1, "min_child_samples": 5}
    return kind(**own, monotone_constraints=SIGNS, **params)


def extreme(kind, **params):
    own = {"n_estimators": 15, "max_depth": 4, "n_jobs": 1}
    return kind(**own, monotone_constraints=tuple(SIGNS), **params)


def histograms(kind, **params):
    return kind(max_iter=15, min_samples_leaf=5, monotonic_cst=SIGNS, **params)


TREE = {"max_depth": 5, "monotonic_cst": SIGNS, "random_state": 0}
CASES = {
    "tree": (DecisionTreeClassifier(**TREE), TWO),
    "forest": (RandomForestClassifier(8, **TREE), TWO),
    "balanced": (RandomForestClassifier(8, class_weight="balanced", **TREE), RARE),
    "extra": (ExtraTreesClassifier(8, **TREE), TWO),
    "bagging": (BaggingClassifier(DecisionTreeClassifier(**TREE), 6, random_state=0), TWO),
    "histograms": (histograms(HistGradientBoostingClassifier), TWO),
    "histograms of counts": (histograms(HistGradientBoostingRegressor, loss="poisson"), COUNTS),
    "histograms of quantiles": (
        histograms(HistGradientBoostingRegressor, loss="quantile", quantile=0.8),
        NUMBERS,
    ),
    "xgboost": (extreme(xgb.XGBClassifier, scale_pos_weight=4.0), RARE),
    "xgboost, three": (extreme(xgb.XGBClassifier), THREE),
    "xgboost, amounts": (extreme(xgb.XGBRegressor, objective="reg:gamma"), AMOUNTS),
    "xgboost, medians": (extreme(xgb.XGBRegressor, objective="reg:absoluteerror"), NUMBERS),
    "lightgbm": (light(lgb.LGBMClassifier, class_weight="balanced"), RARE),
    "lightgbm, three": (light(lgb.LGBMClassifier), THREE),
    "lightgbm, tweedie": (light(lgb.LGBMRegressor, objective="tweedie"), COUNTS),
    "lightgbm, huber": (light(lgb.LGBMRegressor, objective="huber"), NUMBERS),
    "catboost": (
        catboost.CatBoostClassifier(
            iterations=15,
            depth=3,
            monotone_constraints=SIGNS,
            thread_count=1,
            verbose=0,
            allow_writing_files=False,
        ),
        TWO,
    ),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("options", [{"shrinkage": 0.0}, {"rule": "layer"}], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_pruned_models_keep_to_constraints(name, options):
    model, y = CASES[name]
    model.fit(X, y)
    rows = {"X_val": X[::3], "y_val": y[::3]}
    small = fp.prune(model, X, y, max_nodes=40, n_alphas=6, **rows, **options)
    assert small.n_trees > 0
    native = small.to_native()
    np.testing.assert_allclose(
        native.predict(X).astype(float).ravel(), small.predict(X), rtol=1e-5, atol=1e-5
    )
    rng = np.random.default_rng(0)
    outputs = small.forest.n_outputs
    for output in range(outputs):

        def predict(rows, output=output):
            return np.reshape(small.decision_function(rows), (len(rows), outputs))[:, output]

        broken, total = turns(predict, X, SIGNS, rng=rng, lines=40)
        assert total == 120
        assert broken == 0
