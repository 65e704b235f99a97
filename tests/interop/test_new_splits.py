"""New splits in models of every library: what comes out predicts as the forest does."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from exported import predicts_alone
from new_trees import new_trees, probes, stump
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
from forestprune.forest.new_splits import split_limits, with_new_trees
from forestprune.forest.symmetric import is_symmetric

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
    y = np.random.default_rng(2).normal(size=M)
    if isinstance(X, np.ndarray):
        y += np.nan_to_num(X[:, 2]) + 4 * (X[:, 1] == 1)
    else:
        y += np.nan_to_num(X.c.to_numpy()) + 4 * (X.word == "red").to_numpy()
        y += X.code.cat.codes.to_numpy() % 2 * 3
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
    close(raw(native, X), forest.predict(X), forest)


def close(some, others, forest):
    rtol, atol = (2e-5, 2e-5) if forest.origin.library == "xgboost" else (1e-9, 1e-12)
    np.testing.assert_allclose(some, others, rtol=rtol, atol=atol)


def strange(X, forest):
    """Return rows with categories that no training row had, as far as the library takes them."""
    rows = X.copy()
    if forest.input.hashed is not None:
        rows["word"], rows["code"] = "purple", 77
    elif hasattr(X, "iloc") and forest.origin.library != "xgboost":  # which refuses them
        rows["word"] = pd.Categorical(["purple"] * M)
    return rows


@pytest.mark.sampled(2)
@pytest.mark.parametrize("every", [1, 2])
@pytest.mark.parametrize(("library", "name"), CASES)
def test_models_with_new_splits_predict_as_the_forest(library, name, every, tmp_path):
    model, X = MAKERS[library][0](name)
    forest = fp.Forest.from_model(model)
    rng = np.random.default_rng(len(name))
    chosen = range(0, forest.n_trees, every)
    trees = new_trees(forest, forest.input.matrix(X), rng, numbers=chosen)
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
    close(again.predict(rows), new.predict(rows), new)
    same(again.to_native(), new, rows)
    new.save(tmp_path / "forest.npz")
    assert fp.Forest.load(tmp_path / "forest.npz") == new
    for ending in registry.file_endings(library):
        if library != "sklearn" and ending in (".json", ".ubj", ".txt", ".cbm"):
            registry.save_model(native, tmp_path / f"model{ending}")
            loaded = fp.Forest.from_file(tmp_path / f"model{ending}")
            close(loaded.predict(rows), new.predict(rows), new)


def kind_of(library, name):
    """Return what a case's target is."""
    kind = MAKERS[library][1][name][1].partition(" without")[0]
    return "three" if "three" in kind else kind


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("library", "name"),
    [case for case in CASES if case[1] not in ("ranker", "no longer symmetric")],
)
def test_polished_models_predict_as_the_forest(library, name, tmp_path):
    model, X = MAKERS[library][0](name)
    # CatBoost's rows have words where others have categories.
    y = target(table() if hasattr(X, "iloc") else X, kind_of(library, name))
    small = fp.polish(model, X, y, shrinkage=1.0)
    forest = small.forest
    assert small.n_nodes <= small.full.n_nodes
    # A tree alone, or one of few rows, may have the best splits already.
    few = name.startswith(("tree", "log link"))
    assert few or forest.node_extras["new_split"].any()
    native = small.to_native()
    assert type(native) is type(model)
    rows = probes(forest, X)
    for table_ in (rows, strange(X, forest)):
        same(native, forest, table_)
    again = fp.Forest.from_model(native)
    close(again.predict(rows), forest.predict(rows), forest)
    small.save(tmp_path / "small.npz")
    assert fp.PrunedForest.load(tmp_path / "small.npz").forest == forest
    if forest.averages_distributions:
        leaves = forest.n_trees * forest.scaled_value[forest.left < 0] + forest.base
        assert (leaves >= -1e-12).all()
        assert (leaves <= 1.0 + 1e-12).all()
        if leaves.shape[1] > 1:
            np.testing.assert_allclose(leaves.sum(axis=1), 1.0)


def test_symmetric_models_keep_their_own_splits():
    model, X = catboost_case("no longer symmetric")
    with pytest.raises(UnsupportedModelError, match="symmetric"):
        fp.polish(model, X, target(X, "y"))
    small = fp.prune(model, X, target(X, "y"), rule="subtree", polish="split", max_nodes=20)
    assert small.forest.node_extras["new_split"].any()
    same(small.to_native(), small.forest, probes(small.forest, X))


def changed(library, name, **how):
    """Return a case's model with new splits in all trees, the forest with them, and the rows."""
    model, X = MAKERS[library][0](name)
    forest = fp.Forest.from_model(model)
    trees = new_trees(forest, forest.input.matrix(X), np.random.default_rng(4), **how)
    forest = with_new_trees(forest, trees, base=forest.base)
    return forest.to_native(), forest, X


def test_models_with_new_splits_need_nothing_of_this_package(tmp_path):
    native, _, X = changed("sklearn", "bagging")
    predicts_alone(native, X, tmp_path)


# What libraries do with models besides predicting


@pytest.mark.parametrize("name", ["forest", "bagging, two classes", "boosting, three classes"])
def test_importances_of_scikit_learn_come_from_what_leaves_say(name):
    native, forest, _ = changed("sklearn", name, numbers=[0])
    tree = np.ravel(native.estimators_)[0]
    value, left = tree.tree_.value, tree.tree_.children_left
    weight, impurity = tree.tree_.weighted_n_node_samples, tree.tree_.impurity
    assert (impurity[left < 0] == 0.0).all()
    # At the root, the variance of the leaves, by the definition of it; of shares, Gini's impurity.
    leaves, w = value[left < 0][:, :, :].reshape(np.sum(left < 0), -1), weight[left < 0]
    mean = np.average(leaves, axis=0, weights=w)
    np.testing.assert_allclose(
        impurity[0], np.average((leaves - mean) ** 2, axis=0, weights=w).sum()
    )
    if hasattr(native, "feature_importances_"):
        used = np.unique(forest.feature[forest.left >= 0])
        assert native.feature_importances_.sum() == pytest.approx(1.0)
        assert set(np.flatnonzero(native.feature_importances_)) <= set(used)
    assert (tree.feature_importances_ >= 0.0).all()
    assert tree.tree_.n_node_samples[0] == M


def test_xgboost_lists_new_splits_and_explains_them():
    xgboost = pytest.importorskip("xgboost")
    native, forest, X = changed("xgboost", "regressor")
    listed = native.get_booster().trees_to_dataframe()
    splits = listed[listed.Feature != "Leaf"]
    assert len(splits) == np.sum(forest.left >= 0) > 0
    gain = forest.node_extras["loss_change"][forest.left >= 0]
    np.testing.assert_allclose(np.sort(splits.Gain), np.sort(gain), rtol=1e-5)
    explained = native.get_booster().predict(xgboost.DMatrix(X), pred_contribs=True)
    np.testing.assert_allclose(explained.sum(axis=1), raw(native, X), rtol=1e-4, atol=1e-4)
    assert native.feature_importances_.any()


@pytest.mark.parametrize("name", ["regressor", "table"])
def test_lightgbm_lists_new_splits_and_explains_them(name):
    native, forest, X = changed("lightgbm", name)
    listed = native.booster_.trees_to_dataframe()
    splits = listed[listed.split_feature.notna()]
    assert len(splits) == np.sum(forest.left >= 0) > 0
    gain = native.booster_.feature_importance("gain").sum()
    assert gain == pytest.approx(forest.node_extras["split_gain"].sum(), rel=1e-4)
    explained = native.predict(X, pred_contrib=True)
    np.testing.assert_allclose(explained.sum(axis=1), raw(native, X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["depthwise", "table"])
def test_catboost_explains_new_splits(name):
    catboost = pytest.importorskip("catboost")
    native, _, X = changed("catboost", name)
    words = ["word", "code"] if name == "table" else None
    explained = native.get_feature_importance(catboost.Pool(X, cat_features=words), "ShapValues")
    np.testing.assert_allclose(explained.sum(axis=1), raw(native, X), rtol=1e-6, atol=1e-6)
    assert native.feature_importances_.any()


@pytest.mark.parametrize(
    "name", ["forest", "boosting", "bagging, three classes", "hist of a table", "hist, two classes"]
)
def test_scikit_learn_trains_on(name):
    native, _, X = changed("sklearn", name)
    before, y = raw(native, X), target(X, SKLEARN[name][1].partition(" without")[0])
    size = "max_iter" if "hist" in name else "n_estimators"
    more = native.get_params()[size] + 2
    native.set_params(warm_start=True, **{size: more})
    if name.startswith("bagging"):
        native.set_params(random_state=0)
    native.fit(X, y)
    assert len(getattr(native, "estimators_", getattr(native, "_predictors", ()))) == more
    if hasattr(native, "staged_predict") and "classes" not in name:
        stages = list(native.staged_predict(X))
        np.testing.assert_allclose(stages[more - 3], before)
        assert np.mean((stages[-1] - y) ** 2) < np.mean((before - y) ** 2)


def test_hist_gradient_boosting_trains_on_from_nearly_what_it_predicts():
    """A warm start looks at bins, of which only other splits tell something."""
    X = np.random.default_rng(0).normal(size=(400, 5))
    model = HistGradientBoostingRegressor(max_iter=30).fit(X, X[:, 0] + X[:, 2] * X[:, 1])
    original = fp.Forest.from_model(model)
    trees = new_trees(original, original.input.matrix(X), np.random.default_rng(0))
    # What is pruned away still tells of bins.
    stumps = original.truncate(0)
    new = with_new_trees(stumps, trees, base=stumps.base, original=original)
    native = new.to_native()
    bins = model._bin_mapper
    within = sum(
        tree.predict_binned(bins.transform(X), bins.missing_values_bin_idx_, 1)
        for (tree,) in native._predictors
    )
    predicted = new.predict(X) - native._baseline_prediction[0, 0]
    assert np.corrcoef(within, predicted)[0, 1] > 0.85
    blind = with_new_trees(stumps, trees, base=stumps.base)
    assert (blind.node_extras["bin_threshold"][blind.left >= 0] == 255 // 2).all()


def test_xgboost_trains_on():
    xgboost = pytest.importorskip("xgboost")
    for name in ("regressor", "table"):
        native, _, X = changed("xgboost", name)
        how = {"max_depth": 3, "n_jobs": 1, "enable_categorical": name == "table"}
        more = xgboost.XGBRegressor(n_estimators=2, **how)
        more.fit(X, target(X, "y"), xgb_model=native)
        begun = more.predict(X, iteration_range=(0, 4))
        np.testing.assert_allclose(begun, raw(native, X), rtol=1e-5, atol=1e-5)
        forest = fp.Forest.from_model(more)
        np.testing.assert_allclose(forest.predict(X), more.predict(X), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["regressor", "table", "zero is missing", "codes"])
def test_lightgbm_trains_on(name):
    lightgbm = pytest.importorskip("lightgbm")
    native, _, X = changed("lightgbm", name)
    params = {"num_leaves": 6, "num_threads": 1, "verbose": -1, "min_data_in_leaf": 5}
    params |= {"min_data_per_group": 1, "cat_smooth": 0.0}
    params |= {"zero_as_missing": name == "zero is missing"}
    more = lightgbm.LGBMRegressor(n_estimators=4, **params)
    how = {"categorical_feature": [1]} if name == "codes" else {}
    more.fit(X, target(X, "y"), init_model=native, **how)
    begun = more.predict(X, num_iteration=4)
    np.testing.assert_allclose(begun, raw(native, X), rtol=1e-9, atol=1e-9)
    # Old, new and further splits take each column in the same way.
    forest = fp.Forest.from_model(more)
    same(more, forest, probes(forest, X))


def test_catboost_trains_on():
    catboost = pytest.importorskip("catboost")
    native, _, X = changed("catboost", "depthwise")
    how = {"verbose": 0, "allow_writing_files": False, "thread_count": 1, "depth": 3}
    more = catboost.CatBoostRegressor(iterations=2, grow_policy="Depthwise", **how)
    more.fit(X, target(X, "y"), init_model=native)
    begun = more.predict(X, ntree_end=native.tree_count_)
    np.testing.assert_allclose(begun, raw(native, X), rtol=1e-9, atol=1e-9)


# Which splits may be


def limits(library, name):
    model, _ = MAKERS[library][0](name)
    return split_limits(fp.Forest.from_model(model), give_up_symmetry=True)


def test_where_missing_values_may_go():
    for library, name, expected in (
        ("sklearn", "tree", [-1] * 5),
        ("sklearn", "boosting", [-2] * 5),
        ("sklearn", "hist of a table", [-1] * 5),
        ("xgboost", "table", [-1] * 5),
        ("lightgbm", "table", [-1, 0, -1, 0, -1]),
        ("catboost", "depthwise", [1] * 5),
        ("catboost", "missing is high", [0] * 5),
        ("catboost", "table", [1, -2, 1, -2, 1]),
    ):
        assert limits(library, name).missing.tolist() == expected, (library, name)


@pytest.mark.parametrize(
    ("library", "name", "most"),
    [
        ("sklearn", "hist of a table", [0, 4, 0, 5, 0]),
        ("xgboost", "codes", [0, 2**24, 0, 0, 0]),
        ("lightgbm", "table", [0, 4, 0, 5, 0]),
        ("lightgbm", "codes", [0, 2**24, 0, 0, 0]),
    ],
)
def test_codes_of_categories(library, name, most):
    found = limits(library, name)
    assert found.max_category.tolist() == most
    assert found.categorical.tolist() == [number > 0 for number in most]
    assert found.usable.all()
    assert not found.one_category


def test_which_columns_may_meet():
    groups = ((0, 1), (1, 2))
    # Columns that no group names: as many as like together, none with another, and none at all.
    assert limits("sklearn", "hist, constrained").interactions == (*groups, (3, 4))
    assert limits("xgboost", "constrained").interactions == (*groups, (3,), (4,))
    found = limits("lightgbm", "constrained")
    assert found.interactions == groups
    assert found.usable.tolist() == [True, True, True, False, False]
    found = limits("sklearn", "hist, pairwise")
    assert (found.interactions, found.most_columns) == ((), 2)


def test_trees_in_bags_know_their_columns():
    model, X = sklearn_case("bagging")
    forest = fp.Forest.from_model(model)
    found = split_limits(forest).columns
    assert [np.flatnonzero(row).tolist() for row in found] == [
        sorted(columns.tolist()) for columns in model.estimators_features_
    ]
    # A split on another column would be written as one on some column that the tree does have.
    trees = new_trees(forest, forest.input.matrix(X), np.random.default_rng(0))
    swapped = with_new_trees(forest, trees, base=forest.base)
    swapped = replace(
        swapped, tree_extras=swapped.tree_extras | {"features": np.full((5, 2), [[3, 4]])}
    )
    with pytest.raises(UnsupportedModelError, match="the columns that bagging drew"):
        swapped.to_native()


def test_symmetric_trees_are_not_given_up_unasked():
    model, X = catboost_case("no longer symmetric")
    forest = fp.Forest.from_model(model)
    with pytest.raises(UnsupportedModelError, match=r"rule='subtree' first, which gives up"):
        split_limits(forest)
    assert split_limits(forest, give_up_symmetry=True).usable.all()
    pruned = fp.prune(model, X, target(X, "y"), max_nodes=40, rule="subtree")
    if not is_symmetric(pruned.forest):
        assert split_limits(pruned.forest).usable.all()


def test_catboost_has_no_splits_on_features_that_it_does_not_list():
    model, _ = catboost_case("depthwise")
    forest = fp.Forest.from_model(model)
    listed = [each for each in forest.origin.state["features"] if each["flat_feature_index"] != 1]
    origin = replace(forest.origin, state=forest.origin.state | {"features": listed})
    found = split_limits(replace(forest, origin=origin))
    assert found.usable.tolist() == [True, False, True, True, True]


def test_categories_of_catboost_are_asked_for_one_at_a_time():
    model, X = catboost_case("table")
    forest = fp.Forest.from_model(model)
    found, hashed = split_limits(forest), forest.input.hashed
    assert found.one_category
    # One code more is that of any other category.
    assert found.max_category.tolist() == [0, len(hashed[1]) + 1, 0, len(hashed[3]) + 1, 0]
    known = list(range(len(hashed[1])))
    for left in ([], known, [*known[1:-1], len(known)]):
        with pytest.raises(InvalidForestError, match="exactly one category of column 1"):
            with_new_trees(forest, {0: stump(1, left=left)}, base=forest.base)
    new = with_new_trees(forest, {0: stump(1, left=[*known[1:], len(known)])}, base=forest.base)
    same(new.to_native(), new, strange(X, new))
    same(new.to_native(), new, X)


def test_catboost_asks_only_for_categories_that_it_knows():
    catboost = pytest.importorskip("catboost")
    X = table().assign(word="always the same", code=1)
    model = catboost.CatBoostRegressor(
        iterations=3, grow_policy="Depthwise", verbose=0, allow_writing_files=False
    ).fit(X, target(numbers(), "y"), cat_features=["word", "code"])
    found = split_limits(fp.Forest.from_model(model))
    assert found.usable.tolist() == [True, False, True, False, True]


def test_borders_of_catboost_are_float32():
    model, X = catboost_case("depthwise")
    forest = fp.Forest.from_model(model)
    tree = new_trees(forest, forest.input.matrix(X), np.random.default_rng(1), numbers=[0])[0]
    split = tree.left >= 0
    for threshold in (0.1, 1 / 3, 1e-50, 1e300, -1e300):
        at = np.where(split, threshold, 0.0)
        new = with_new_trees(forest, {0: replace(tree, threshold=at)}, base=forest.base)
        written = new.threshold[: split.size][split]
        assert (written == written.astype(np.float32)).all()
        same(new.to_native(), new, probes(new, X))


def test_lightgbm_has_no_splits_on_columns_that_it_takes_it_does_not_say_how():
    lightgbm = pytest.importorskip("lightgbm")
    how = {"num_threads": 1, "verbose": -1, "min_data_in_leaf": 5}
    X = numbers()
    X[:, 1], X[:, 3], X[:, 4] = np.arange(M) % 3, 7.0, np.arange(M) % 2
    rows = lightgbm.Dataset(X, np.nan_to_num(X[:, 0]), categorical_feature=[1])
    found = split_limits(fp.Forest.from_model(lightgbm.train(how | {"num_leaves": 2}, rows, 2)))
    # One of categories that was never split on, and one that was constant.
    assert found.usable.tolist() == [True, False, True, False, True]
    rows = lightgbm.Dataset(X, np.nan_to_num(X[:, 0]))
    how |= {"num_leaves": 2, "zero_as_missing": True}
    found = split_limits(fp.Forest.from_model(lightgbm.train(how, rows, 2)))
    assert found.usable.tolist() == [True, False, False, False, False]
