"""Models of all libraries, small ones, that are to be deployed; and rows that tell them apart."""

import warnings
from functools import cache

import numpy as np
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeRegressor
from strategies import probing_rows

import forestprune as fp

M = 300


def rows():
    """Return numbers with ties, some missing, and a column of categories as codes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(M, 5)).round(2)
    X[:, 4] = rng.integers(0, 40, M)
    return X


X = rows()
Y = X[:, 0] * np.sin(X[:, 1]) + (X[:, 4] % 3) + 0.3 * X[:, 2]
GAPS = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
GAPS[:, 4] = X[:, 4]
THREE = np.array(["low", "mid", "high"])[np.digitize(Y, np.quantile(Y, [0.3, 0.7]))]
TWO = Y > 1.0
BOTH = np.column_stack([Y, -(Y**2)])
COUNTS = np.random.default_rng(2).poisson(np.exp(Y / 2)).astype(float)


def of_sklearn():
    options = {"random_state": 0}
    yield DecisionTreeRegressor(max_depth=4, **options).fit(X, Y), X
    yield RandomForestRegressor(5, max_depth=5, **options).fit(GAPS, Y), GAPS
    yield RandomForestRegressor(4, max_depth=4, **options).fit(X, BOTH), X
    yield RandomForestClassifier(5, max_depth=5, **options).fit(GAPS, THREE), GAPS
    yield ExtraTreesRegressor(4, max_depth=5, **options).fit(X, Y), X
    yield ExtraTreesClassifier(4, max_depth=5, **options).fit(X, TWO), X
    yield BaggingRegressor(n_estimators=4, max_features=3, **options).fit(X, Y), X
    yield GradientBoostingRegressor(n_estimators=6, **options).fit(X, Y), X
    yield GradientBoostingClassifier(n_estimators=5, **options).fit(X, TWO), X
    yield GradientBoostingClassifier(n_estimators=4, **options).fit(X, THREE), X
    hist = {"max_iter": 5, "categorical_features": [4], "random_state": 0}
    yield HistGradientBoostingRegressor(**hist).fit(GAPS, Y), GAPS
    yield HistGradientBoostingRegressor(loss="poisson", **hist).fit(GAPS, COUNTS), GAPS
    yield HistGradientBoostingClassifier(**hist).fit(GAPS, TWO), GAPS
    yield HistGradientBoostingClassifier(**hist).fit(GAPS, THREE), GAPS


def of_xgboost():
    import xgboost

    options = {"n_estimators": 5, "max_depth": 4, "n_jobs": 1}
    three = np.unique(THREE, return_inverse=True)[1]
    yield xgboost.XGBRegressor(**options).fit(GAPS, Y), GAPS
    yield xgboost.XGBRegressor(missing=0.0, **options).fit(GAPS, Y), GAPS
    yield xgboost.XGBRegressor(booster="dart", rate_drop=0.5, **options).fit(X, Y), X
    yield xgboost.XGBRegressor(objective="count:poisson", **options).fit(X, COUNTS), X
    yield xgboost.XGBClassifier(**options).fit(GAPS, TWO), GAPS
    yield xgboost.XGBClassifier(**options).fit(GAPS, three), GAPS
    yield xgboost.XGBRFRegressor(**options).fit(X, Y), X
    by_type = {"feature_types": ["q"] * 4 + ["c"], "enable_categorical": True}
    yield xgboost.XGBRegressor(tree_method="hist", **by_type, **options).fit(GAPS, Y), GAPS


def of_lightgbm():
    import lightgbm

    options = {"n_estimators": 5, "num_leaves": 12, "n_jobs": 1, "verbose": -1}
    by_set = {"categorical_feature": [4]}
    yield lightgbm.LGBMRegressor(**options).fit(GAPS, Y, **by_set), GAPS
    yield lightgbm.LGBMRegressor(zero_as_missing=True, **options).fit(GAPS, Y, **by_set), GAPS
    yield lightgbm.LGBMRegressor(objective="poisson", **options).fit(X, COUNTS), X
    dart = lightgbm.LGBMRegressor(boosting_type="dart", **options)
    yield dart.fit(X, Y), X
    yield lightgbm.LGBMRegressor(objective="cross_entropy", **options).fit(X, TWO), X
    yield lightgbm.LGBMRegressor(reg_sqrt=True, **options).fit(X, Y), X
    yield lightgbm.LGBMClassifier(**options).fit(GAPS, TWO, **by_set), GAPS
    yield lightgbm.LGBMClassifier(**options).fit(GAPS, THREE, **by_set), GAPS
    yield lightgbm.LGBMClassifier(objective="multiclassova", **options).fit(X, THREE), X


def of_catboost():
    import catboost

    options = {"iterations": 5, "depth": 4, "thread_count": 1, "verbose": 0}
    options["allow_writing_files"] = False
    yield catboost.CatBoostRegressor(**options).fit(GAPS, Y), GAPS
    yield catboost.CatBoostRegressor(loss_function="MultiRMSE", **options).fit(X, BOTH), X
    yield catboost.CatBoostRegressor(loss_function="Poisson", **options).fit(X, COUNTS), X
    yield catboost.CatBoostRegressor(grow_policy="Lossguide", **options).fit(GAPS, Y), GAPS
    yield catboost.CatBoostClassifier(**options).fit(X, TWO), X
    yield catboost.CatBoostClassifier(**options).fit(X, THREE), X


LIBRARIES = {
    "sklearn": of_sklearn,
    "xgboost": of_xgboost,
    "lightgbm": of_lightgbm,
    "catboost": of_catboost,
}


@cache
def models_of(library):
    """Return the models of a library, each with the rows that it was fitted to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(LIBRARIES[library]())


def probes(forest, X):
    """Return rows on, just below and just above thresholds, in both precisions, and strange ones.

    Strange are categories that nobody has seen, numbers beside zero and, where the model takes
    them, infinite ones and NaN.
    """
    spec, rng = forest.input, np.random.default_rng(3)
    rows = [probing_rows(forest, np.asarray(X, dtype=np.float64))]
    splits = np.flatnonzero(forest.left >= 0)
    for toward in (-np.inf, np.inf):
        moved = X[splits % len(X)].astype(np.float64)
        near = np.clip(forest.threshold[splits], -1e38, 1e38)
        moved[np.arange(splits.size), forest.feature[splits]] = np.nextafter(near, toward)
        rows.append(moved)
    strange = [0.0, -0.0, 1e-36, -1e-36, 1e-34, 1e30, -1e30]
    if spec.ensure_all_finite is not True:
        strange.append(np.nan)
    if spec.ensure_all_finite is False:
        strange += [np.inf, -np.inf]
    mixed = X[rng.integers(0, len(X), 400)].astype(np.float64)
    places = rng.random(mixed.shape) < 0.3
    mixed[places] = rng.choice(strange, int(places.sum()))
    mixed[np.isinf(mixed[:, -1]), -1] = 5.0  # no library takes that for a category
    coded = X[rng.integers(0, len(X), 200)].astype(np.float64)
    coded[:, -1] = rng.choice([-1.0, 0.0, 7.0, 31.0, 32.0, 39.0, 40.0, 64.0, 300.0], 200)
    return np.concatenate([*rows, mixed, coded])


def forest_of(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fp.Forest.from_model(model)
