"""New splits in models of every library: what comes out predicts as the forest does."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from exported import predicts_alone
from new_trees import new_trees, probes
from sklearn.ensemble import (
    BaggingClassifier,
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
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

import forestprune as fp
from forestprune.exceptions import InvalidForestError, UnsupportedModelError
from forestprune.forest import registry
from forestprune.forest.new_splits import NewTree, split_limits, with_new_trees

M = 120
WORDS = ("red", "green", "blue", "grey")


def numbers(*, missing=True):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(M, 5)).astype(np.float32).astype(np.float64)
    X[:, 1] = rng.integers(0, 3, M)
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    return X


def table():
    """Return columns of numbers and of categories, these with NaN."""
    X, rng = numbers(), np.random.default_rng(1)
    words = pd.Categorical(rng.choice(WORDS, M), categories=WORDS)
    words[:5] = None
    codes = pd.Categorical(rng.integers(0, 5, M))
    return pd.DataFrame({"a": X[:, 0], "word": words, "b": X[:, 1], "code": codes, "c": X[:, 2]})


def target(X, kind):
    last = X[:, 2] if isinstance(X, np.ndarray) else X.c.to_numpy() + (X.word == "red") * 2
    y = np.nan_to_num(last) + np.random.default_rng(2).normal(size=M)
    if not isinstance(X, np.ndarray):
        y = y + X.code.cat.codes.to_numpy() % 2 * 3
    if kind == "several":
        return np.column_stack([y, y**2])
    if kind == "positive":
        return np.exp(y / 3)
    classes = {"two": 2, "three": 3, "ranks": 4}.get(kind)
    return y if classes is None else np.argsort(np.argsort(y)) * classes // M


# scikit-learn

SKLEARN = {
    "tree": (DecisionTreeRegressor(max_depth=3), "y"),
    "tree, no missing": (DecisionTreeRegressor(max_depth=3), "y without missing"),
    "extra tree": (ExtraTreeRegressor(max_depth=4), "several"),
    "forest": (RandomForestRegressor(4, max_depth=4), "several"),
    "extra trees": (ExtraTreesRegressor(4, max_depth=4), "y"),
    "bagging": (BaggingRegressor(DecisionTreeRegressor(max_depth=4), 5, max_features=0.5), "y"),
    "boosting": (GradientBoostingRegressor(n_estimators=4), "y without missing"),
    "boosting from zero": (
        GradientBoostingRegressor(n_estimators=4, init="zero", loss="huber"),
        "y without missing",
    ),
    "hist": (HistGradientBoostingRegressor(max_iter=4), "y"),
    "hist of a table": (HistGradientBoostingRegressor(max_iter=4, min_samples_leaf=5), "table"),
    "hist, log link": (HistGradientBoostingRegressor(loss="gamma", max_iter=4), "positive"),
    "hist, constrained": (
        HistGradientBoostingRegressor(max_iter=4, interaction_cst=[[0, 1], [1, 2]]),
        "y",
    ),
    "hist, pairwise": (HistGradientBoostingRegressor(max_iter=4, interaction_cst="pairwise"), "y"),
}
for classes in ("two", "three"):
    SKLEARN |= {
        f"tree, {classes} classes": (DecisionTreeClassifier(max_depth=3), classes),
        f"extra tree, {classes} classes": (ExtraTreeClassifier(max_depth=3), classes),
        f"forest, {classes} classes": (
            RandomForestClassifier(4, max_depth=4, criterion="entropy"),
            classes,
        ),
        f"extra trees, {classes} classes": (ExtraTreesClassifier(4, max_depth=4), classes),
        f"bagging, {classes} classes": (
            BaggingClassifier(DecisionTreeClassifier(max_depth=4), 5, max_features=3),
            classes,
        ),
        f"boosting, {classes} classes": (
            GradientBoostingClassifier(n_estimators=4),
            f"{classes} without missing",
        ),
        f"hist, {classes} classes": (HistGradientBoostingClassifier(max_iter=4), classes),
    }


def sklearn_case(name):
    model, kind = SKLEARN[name]
    if kind == "table":
        X = table()
        model.set_params(categorical_features="from_dtype")
    else:
        X = numbers(missing="without missing" not in kind)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    return model.fit(X, target(X, kind.partition(" without")[0])), X


# XGBoost

XGBOOST = {
    "regressor": ("XGBRegressor", "y", {}),
    "constrained": ("XGBRegressor", "y", {"interaction_constraints": "[[0, 1], [1, 2]]"}),
    "log link": ("XGBRegressor", "positive", {"objective": "reg:gamma"}),
    "parallel trees": ("XGBRegressor", "y", {"num_parallel_tree": 2}),
    "dart": ("XGBRegressor", "y", {"booster": "dart", "rate_drop": 0.5}),
    "two classes": ("XGBClassifier", "two", {}),
    "three classes": ("XGBClassifier", "three", {}),
    "several targets": ("XGBRegressor", "several", {}),
    "vectors": ("XGBRegressor", "several", {"multi_strategy": "multi_output_tree"}),
    "forest": ("XGBRFRegressor", "y", {}),
    "forest, three classes": ("XGBRFClassifier", "three", {}),
    "ranker": ("XGBRanker", "ranks", {}),
    "table": ("XGBRegressor", "table", {}),
    "table, three classes": ("XGBClassifier", "table of three", {}),
    "codes": ("XGBRegressor", "y", {"feature_types": ["q", "c", "q", "q", "q"]}),
    "booster": ("Booster", "y", {}),
}


def xgboost_case(name):
    library = pytest.importorskip("xgboost")
    cls, kind, params = XGBOOST[name]
    if name == "vectors" and tuple(map(int, library.__version__.split(".")[:2])) < (3, 2):
        pytest.skip("older versions do not keep how many rows pass a node")
    X = table() if kind.startswith("table") else numbers()
    y = target(X, "three" if "three" in kind else kind)
    if cls == "Booster":
        return library.train({"max_depth": 3, "nthread": 1}, library.DMatrix(X, y), 4), X
    model = getattr(library, cls)(
        **{"n_estimators": 4, "max_depth": 3, "n_jobs": 1, "max_cat_to_onehot": 2} | params,
        enable_categorical=kind.startswith("table") or name == "codes",
    )
    return model.fit(X, y, **({"group": [M // 2, M // 2]} if cls == "XGBRanker" else {})), X


# LightGBM

LIGHTGBM = {
    "regressor": ("LGBMRegressor", "y", {}),
    "constrained": ("LGBMRegressor", "y", {"interaction_constraints": [[0, 1], [1, 2]]}),
    "zero is missing": ("LGBMRegressor", "y", {"zero_as_missing": True}),
    "nothing is missing": ("LGBMRegressor", "y", {"use_missing": False}),
    "log link": ("LGBMRegressor", "positive", {"objective": "gamma"}),
    "dart": ("LGBMRegressor", "y", {"boosting_type": "dart", "drop_rate": 0.5}),
    "forest": (
        "LGBMRegressor",
        "y",
        {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.7},
    ),
    "two classes": ("LGBMClassifier", "two", {}),
    "three classes": ("LGBMClassifier", "three", {}),
    "ranker": ("LGBMRanker", "ranks", {}),
    "table": ("LGBMRegressor", "table", {}),
    "table, three classes": ("LGBMClassifier", "table of three", {}),
    "codes": ("LGBMRegressor", "y", {"categorical_feature": [1]}),
    "booster": ("Booster", "y", {}),
}


def lightgbm_case(name):
    library = pytest.importorskip("lightgbm")
    cls, kind, params = LIGHTGBM[name]
    X = table() if kind.startswith("table") else numbers()
    y = target(X, "three" if "three" in kind else kind)
    how = {"num_leaves": 6, "num_threads": 1, "verbose": -1, "min_data_in_leaf": 5}
    how |= {"min_data_per_group": 1, "cat_smooth": 0.0}
    if cls == "Booster":
        return library.train(how, library.Dataset(X, y), 4), X
    fit = {"group": [M // 2, M // 2]} if cls == "LGBMRanker" else {}
    if "categorical_feature" in params:
        fit["categorical_feature"] = params["categorical_feature"]
        params = {}
    return getattr(library, cls)(n_estimators=4, **how | params).fit(X, y, **fit), X


# CatBoost

CATBOOST = {
    "depthwise": ("CatBoostRegressor", "y", {"grow_policy": "Depthwise"}),
    "lossguide": ("CatBoostRegressor", "positive", {"grow_policy": "Lossguide"}),
    "no longer symmetric": ("CatBoostRegressor", "y", {}),
    "vectors": (
        "CatBoostRegressor",
        "several",
        {"grow_policy": "Depthwise", "loss_function": "MultiRMSE"},
    ),
    "missing is high": ("CatBoostRegressor", "y", {"grow_policy": "Depthwise", "nan_mode": "Max"}),
    "two classes": ("CatBoostClassifier", "two", {"grow_policy": "Depthwise"}),
    "three classes": ("CatBoostClassifier", "three", {"grow_policy": "Depthwise"}),
    "ranker": ("CatBoostRanker", "ranks", {"grow_policy": "Depthwise"}),
    "table": ("CatBoostRegressor", "table", {"grow_policy": "Depthwise"}),
    "table, three classes": ("CatBoostClassifier", "table of three", {"grow_policy": "Lossguide"}),
    "plain": ("CatBoost", "y", {"grow_policy": "Depthwise"}),
}


def catboost_case(name):
    library = pytest.importorskip("catboost")
    cls, kind, params = CATBOOST[name]
    X = table() if kind.startswith("table") else numbers()
    y = target(X, "three" if "three" in kind else kind)
    how = {"iterations": 6, "depth": 3, "thread_count": 1, "verbose": 0, "one_hot_max_size": 50}
    how |= {"allow_writing_files": False, "random_seed": 0} | params
    fit = {"group_id": np.arange(M) // 60} if cls == "CatBoostRanker" else {}
    if kind.startswith("table"):
        X = X.assign(word=X.word.astype(object).fillna("none"), code=X.code.astype(int))
        fit["cat_features"] = ["word", "code"]
    model = library.CatBoost(how) if cls == "CatBoost" else getattr(library, cls)(**how)
    return model.fit(X, y, **fit), X


MAKERS = {
    "sklearn": (sklearn_case, SKLEARN),
    "xgboost": (xgboost_case, XGBOOST),
    "lightgbm": (lightgbm_case, LIGHTGBM),
    "catboost": (catboost_case, CATBOOST),
}
CASES = [(library, name) for library, (_, names) in MAKERS.items() for name in names]


def raw(native, X):
    """Return what trees add up to, as the library itself says."""
    library, name = registry.library_of(native), type(native).__name__
    if library == "xgboost":
        if name == "Booster":
            import xgboost

            return native.predict(xgboost.DMatrix(X), output_margin=True)
        return native.predict(X, output_margin=True)
    if library == "lightgbm":
        summed = native.predict(X, raw_score=True)
        averaged = getattr(native, "boosting_type", "") == "rf"
        return native.predict(X) if averaged else summed
    if library == "catboost":
        if name == "CatBoostRanker":
            return native.predict(X)
        return native.predict(X, prediction_type="RawFormulaVal")
    if name.startswith("HistGradient"):
        return np.squeeze(native._raw_predict(X))
    if hasattr(native, "decision_function"):
        return native.decision_function(X)
    if hasattr(native, "predict_proba"):
        shares = native.predict_proba(X)
        return shares[:, 1] if shares.shape[1] == 2 else shares
    return native.predict(X)


def same(native, forest, X):
    precise = forest.origin.library != "xgboost"
    np.testing.assert_allclose(
        raw(native, X),
        forest.predict(X),
        **{"rtol": 1e-9 if precise else 2e-5, "atol": 1e-12 if precise else 2e-5},
    )


def strange(X, forest):
    """Return rows with categories that no training row had, as far as the library takes them."""
    rows = X.copy()
    if forest.input.hashed is not None:
        rows["word"], rows["code"] = "purple", 77
    elif hasattr(X, "iloc") and forest.origin.library != "xgboost":  # which refuses them
        rows["word"] = pd.Categorical(["purple"] * M)
    return rows


@pytest.mark.sampled(2)
@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize(("library", "name"), CASES)
def test_models_with_new_splits_predict_as_the_forest(library, name, share, tmp_path):
    model, X = MAKERS[library][0](name)
    forest = fp.Forest.from_model(model)
    rng = np.random.default_rng(len(name))
    chosen = np.flatnonzero(rng.random(forest.n_trees) <= share)
    trees = new_trees(forest, forest.input.matrix(X), rng, numbers=chosen.tolist())
    base = forest.base if forest.averages else forest.base + 0.25
    new = with_new_trees(forest, trees, base=base)
    assert any((tree.left >= 0).any() for tree in trees.values())
    rows = probes(new, X)
    native = new.to_native()
    assert type(native) is type(model)
    for table_ in (rows, strange(X, forest)):
        same(native, new, table_)
    # And once more, by every way that a model can take.
    same(pickle.loads(pickle.dumps(native)), new, rows)
    again = fp.Forest.from_model(native)
    np.testing.assert_allclose(again.predict(rows), new.predict(rows), rtol=2e-5, atol=2e-5)
    same(again.to_native(), new, rows)
    new.save(tmp_path / "forest.npz")
    assert fp.Forest.load(tmp_path / "forest.npz") == new
    for ending in {
        "xgboost": ["json", "ubj"],
        "lightgbm": ["txt"],
        "catboost": ["cbm", "json"],
    }.get(library, []):
        registry.save_model(native, tmp_path / f"model.{ending}")
        loaded = fp.Forest.from_file(tmp_path / f"model.{ending}")
        if library != "lightgbm" or "class" not in name:
            np.testing.assert_allclose(
                loaded.predict(rows), new.predict(rows), rtol=2e-5, atol=2e-5
            )
