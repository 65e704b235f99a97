"""LightGBM in and out: the library's own raw predictions are the truth."""

import inspect
import io
import json
import pickle
import re
from contextlib import nullcontext
from dataclasses import asdict, replace

import joblib
import naive
import numpy as np
import pandas as pd
import polars as pl
import pytest
from effort import INTERPRETED, examples
from exported import predicts_alone
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from strategies import N_FEATURES, probing_rows, training_sets

import forestprune as fp
from forestprune.forest.origin import origin_from_metadata

lgb = pytest.importorskip("lightgbm")

from forestprune.interop import lightgbm as interop  # noqa: E402 - needs the library
from forestprune.interop import lightgbm_text  # noqa: E402
from forestprune.text import to_text  # noqa: E402

SMALL = {
    "num_leaves": 6,
    "learning_rate": 0.3,
    "min_data_in_leaf": 1,
    "min_data_in_bin": 1,
    "min_data_per_group": 1,
    "cat_smooth": 0.0,
    "cat_l2": 0.0,
    "max_cat_to_onehot": 2,
    "num_threads": 1,
    "verbose": -1,
    "seed": 0,
}
FOREST = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.7}
BOOSTERS = {
    "gbdt": {},
    "dart": {"boosting": "dart", "drop_rate": 0.5, "skip_drop": 0.0},
    "rf": FOREST,
    "goss": {"data_sample_strategy": "goss"},
    "lambda": {"lambda_l2": 1.0, "lambda_l1": 0.01, "path_smooth": 0.5},
    "extra trees": {"extra_trees": True, "boost_from_average": False},
    "monotone": {"monotone_constraints": [1, 0, -1]},
    "zero is missing": {"zero_as_missing": True},
    "nothing is missing": {"use_missing": False},
    "categorical": {"categorical_feature": [0, 2]},
    "categorical, zero is missing": {"categorical_feature": [1], "zero_as_missing": True},
    "one hot": {"categorical_feature": [1], "max_cat_to_onehot": 99},
}
OBJECTIVES = {
    "regression": "y",
    "regression_l1": "y",
    "huber": "y",
    "fair": "y",
    "mape": "y",
    "quantile": "the 0.9 quantile of y",
    "poisson": "the log of the mean of y",
    "gamma": "the log of the mean of y",
    "tweedie": "the log of the mean of y",
    "binary": "the log-odds of y",
    "cross_entropy": "the log-odds of y",
}
TINY = float(np.float32(1e-35))
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-36, -1e-36, TINY, -TINY, 1e-35, 1e300, 1e301]
SPECIAL += [float(np.nextafter(s * TINY, s * np.inf)) for s in (-1, 1)]
SPECIAL += [-1.0, -0.5, 0.5, 1.0, 1.9, 2.0, 2.5, 2**31, 2.0**32 + 1, -(2.0**32)]


def train(X, y, weight=None, rounds=3, **params):
    params = SMALL | params
    categorical = params.pop("categorical_feature", [])
    data = lgb.Dataset(X, y, weight=weight, categorical_feature=categorical)
    return lgb.train(params, data, rounds)


def train_or_reject(X, y, weight, **params):
    """Train; leave data aside that LightGBM fails on when leaves may have one row."""
    try:
        return train(X, y, weight, **params)
    except lgb.basic.LightGBMError as error:
        if "Check failed" not in str(error):
            raise
        reject()


def regressor(**params):
    return lgb.LGBMRegressor(**({"n_estimators": 4, "n_jobs": 1, "max_bin": 30} | SMALL | params))


def raw(model, X):
    """Return the prediction before any link function; of a random forest the average."""
    booster = model if isinstance(model, lgb.Booster) else model.booster_
    scores = booster.predict(X, raw_score=True)
    averages = "\naverage_output\n" in booster.model_to_string()
    used = booster.best_iteration if booster.best_iteration > 0 else booster.num_trees()
    return scores / used if averages else scores


def same(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def frozen(model):
    return pickle.dumps(model)


def rows_for(forest, X, seed=0):
    """Return rows on and beside thresholds, and rows of numbers that are special to LightGBM."""
    rng = np.random.default_rng(seed)
    odd = rng.choice(SPECIAL, size=(60, X.shape[1]))
    half = X[rng.integers(0, len(X), 60)].copy()
    some = rng.random(half.shape) < 0.4
    half[some] = odd[some]
    return np.concatenate([probing_rows(forest, X), odd, half])


@st.composite
def tables(draw, categorical=()):
    """Draw X, y and weights, with whole numbers in some columns."""
    X, y, weight = draw(training_sets(missing=True))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    for column in categorical:
        missing = np.isnan(X[:, column])
        X[:, column] = rng.choice([0, 1, 2, 3, 31, 32, 40], len(X))
        X[missing, column] = np.nan
    return X, y.astype(float), weight


# Prediction


@pytest.mark.parametrize("name", BOOSTERS)
@settings(max_examples=5 if INTERPRETED else examples(20))
@given(data=st.data())
def test_in_and_out_predict_what_the_library_does(name, data):
    params = BOOSTERS[name]
    X, y, weight = data.draw(tables(params.get("categorical_feature", ())))
    model = train_or_reject(X, y, weight, **params)
    before = frozen(model)
    forest = fp.Forest.from_model(model)
    native = forest.to_native()
    rows = rows_for(forest, X, data.draw(st.integers(0, 99)))
    same(forest.predict(rows), raw(model, rows))
    same(raw(native, rows), raw(model, rows))
    assert type(native) is lgb.Booster
    assert frozen(model) == before
    if forest.depths.all():
        # No tree was a constant, so nothing is rounded on the way.
        again = fp.Forest.from_model(native)
        for array in ("value", "threshold", "missing_left", "cover", "left", "set_words"):
            np.testing.assert_array_equal(getattr(again, array), getattr(forest, array))
        for extra in forest.node_extras:
            np.testing.assert_array_equal(again.node_extras[extra], forest.node_extras[extra])


@pytest.mark.parametrize("name", BOOSTERS)
@settings(max_examples=5 if INTERPRETED else examples(20))
@given(data=st.data())
def test_pruned_models_predict_what_the_pruned_forest_does(name, data):
    params = BOOSTERS[name]
    X, y, weight = data.draw(tables(params.get("categorical_feature", ())))
    forest = fp.Forest.from_model(train_or_reject(X, y, weight, **params))
    mask = np.ones(forest.n_nodes, dtype=bool)
    cut = data.draw(st.lists(st.integers(0, max(0, forest.n_nodes - 1)), max_size=6))
    for start, end in zip(forest.offsets, forest.offsets[1:], strict=False):
        left = forest.left[start:end]
        for node in np.flatnonzero(left >= 0):
            if not mask[start + node] or start + node in cut:
                mask[start + left[node] : start + left[node] + 2] = False
    pruned = forest.keep(mask)
    numbers = st.floats(-3, 3, width=32)
    size = pruned.n_trees
    pruned = replace(
        pruned,
        scale=data.draw(st.lists(numbers, min_size=size, max_size=size)),
        base=[data.draw(numbers)],
        value=pruned.value + data.draw(numbers),
    )
    native = pruned.to_native()
    rows = rows_for(forest, X)
    same(raw(native, rows), pruned.predict(rows))
    assert native.num_trees() == max(1, pruned.compact().n_trees)
    same(fp.Forest.from_model(native).predict(rows), pruned.predict(rows))


@pytest.mark.parametrize("sqrt", [False, True])
@pytest.mark.parametrize("boosting", [{}, FOREST])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective_says_what_it_predicts(objective, boosting, sqrt):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = np.exp(X[:, 0] + 0.1 * rng.normal(size=80))
    if objective in ("binary", "cross_entropy"):
        y = (y > 1).astype(float)
    model = train(X, y, objective=objective, reg_sqrt=sqrt, **boosting)
    forest = fp.Forest.from_model(model)
    same(forest.predict(X), raw(model, X))
    pruned = forest.truncate(2)
    native = pruned.to_native()
    same(raw(native, X), pruned.predict(X))
    # The link function is the original's.
    score = pruned.predict(X)
    if forest.origin.predicts == "the log of the mean of y":
        score = np.exp(score)
    elif forest.origin.predicts == "the log-odds of y":
        score = 1 / (1 + np.exp(-score))
    elif "square root" in forest.origin.predicts:
        score = np.sign(score) * score**2
    same(native.predict(X), score)
    expected = OBJECTIVES[objective]
    if sqrt and objective in ("regression", "regression_l1", "fair", "mape", "quantile"):
        expected = expected.removesuffix("y") + "the signed square root of y"
    assert forest.origin.predicts == expected


def test_the_slope_of_the_sigmoid_and_the_quantile_are_told():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    model = train(X, X[:, 0] > 0, objective="binary", sigmoid=2.5)
    assert fp.Forest.from_model(model).origin.predicts == "the log-odds of y, divided by 2.5"
    model = train(X, X[:, 0], objective="quantile", alpha=0.25)
    assert fp.Forest.from_model(model).origin.predicts == "the 0.25 quantile of y"
    bare = re.sub(r"\nparameters:[\s\S]*end of parameters\n", "", model.model_to_string())
    forest = fp.Forest.from_model(lgb.Booster(model_str=bare))
    assert forest.origin.predicts == "a quantile of y"
    same(raw(forest.truncate(1).to_native(), X), forest.truncate(1).predict(X))


@pytest.mark.parametrize(("rows", "params"), [(1, {}), (3, {}), (3, FOREST)])
def test_one_row_and_a_constant_target(rows, params):
    X = np.zeros((rows, 2))
    for y in (np.full(rows, 2.5), np.zeros(rows)):
        model = train(X, y, **params)
        forest = fp.Forest.from_model(model)
        same(forest.predict(X), raw(model, X))
        same(raw(forest.to_native(), X), raw(model, X))
        assert params or (forest.predict(X) == y).all()


def test_one_feature_one_tree():
    X = np.arange(20.0)[:, np.newaxis]
    model = train(X, X[:, 0] % 7, rounds=1)
    forest = fp.Forest.from_model(model)
    assert forest.n_trees == 1
    same(raw(forest.truncate(1).to_native(), X), forest.truncate(1).predict(X))


def test_a_model_without_any_tree():
    X = np.arange(20.0)[:, np.newaxis]
    booster = lgb.Booster(SMALL | {"objective": "regression"}, lgb.Dataset(X, X[:, 0]))
    forest = fp.Forest.from_model(booster)
    assert forest.n_trees == 0
    same(forest.predict(X), booster.predict(X))
    native = replace(forest, base=[0.1]).to_native()
    np.testing.assert_array_equal(native.predict(X), 0.1)


def test_the_constant_goes_where_the_library_puts_it():
    X = np.random.default_rng(0).normal(size=(60, 3))
    forest = fp.Forest.from_model(train(X, X[:, 0]))
    assert forest.tree_extras["shrinkage"].tolist() == [1.0, 0.3, 0.3]
    # Without the first tree the second takes the constant, and no longer counts as shrunk.
    rest = forest.truncate(np.array([0, 9, 9]))
    again = fp.Forest.from_model(rest.to_native())
    assert again.tree_extras["shrinkage"].tolist() == [1.0, 0.3]
    same(again.predict(X), rest.predict(X))


def test_splits_are_worth_the_mean_of_their_leaves():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    forest = fp.Forest.from_model(
        train(X, np.exp(X[:, 0]), rng.integers(1, 4, 80), objective="poisson")
    )
    order = [n for root in naive.from_forest(forest) for n in naive.level_order(root)]
    same(forest.value, [naive.average_of_leaves(node)[0] for node in order])
    assert (forest.cover > 0).all()
    splits = np.flatnonzero(forest.left >= 0)
    children = splits + forest.left[splits] - splits
    start = np.repeat(forest.offsets[:-1], np.diff(forest.offsets))[splits]
    for weight in (forest.cover, forest.node_extras["count"]):
        same(weight[splits], weight[start + children] + weight[start + children + 1])


def test_weights_are_the_cover():
    X = np.arange(40.0)[:, np.newaxis]
    weight = np.linspace(0.5, 3, 40)
    forest = fp.Forest.from_model(train(X, X[:, 0] % 5, weight))
    np.testing.assert_allclose(forest.cover[forest.offsets[:-1]], weight.sum(), rtol=1e-5)
    assert (forest.node_extras["count"][forest.offsets[:-1]] == 40).all()


def test_a_number_beside_zero_is_zero():
    X = np.array([-1.0, 0.0, 1.0] * 20)[:, np.newaxis]
    model = train(X, np.array([0.0, 5.0, 1.0] * 20))
    text = model.model_to_string()
    assert "-1.0000000180025095e-35" in text
    # Thresholds that training does not make, nearer to zero than LightGBM looks.
    for near in ("5e-36", "-5e-36", "0", "-0"):
        odd = re.sub(r"tree_sizes=.*\n", "", re.sub(r"-?1.0000000180025095e-35", near, text))
        for booster in (model, lgb.Booster(model_str=odd)):
            forest = fp.Forest.from_model(booster)
            rows = np.array(SPECIAL)[:, np.newaxis]
            same(forest.predict(rows), booster.predict(rows))
            same(forest.to_native().predict(rows), booster.predict(rows))


# Early stopping


@pytest.mark.parametrize("params", [{}, {"boosting": "rf", "bagging_freq": 1, "subsample": 0.5}])
def test_only_the_trees_that_predict_uses_are_read(params):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    y = X[:, 0] + rng.normal(size=100)
    train_set = lgb.Dataset(X[:50], y[:50])
    booster = lgb.train(
        SMALL | params,
        train_set,
        30,
        valid_sets=[lgb.Dataset(X[50:], y[50:], reference=train_set)],
        callbacks=[lgb.early_stopping(5, verbose=False)],
        keep_training_booster=True,
    )
    assert 0 < booster.best_iteration < booster.num_trees()
    forest = fp.Forest.from_model(booster)
    assert forest.n_trees == booster.best_iteration
    same(forest.predict(X), booster.predict(X))
    native = forest.to_native()
    assert native.num_trees() == booster.best_iteration
    assert native.best_iteration <= 0
    same(native.predict(X), booster.predict(X))
    assert f"[num_iterations: {forest.n_trees}]" in native.model_to_string()


def test_an_early_stopped_regressor():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    y = X[:, 0] + rng.normal(size=100)
    new = "eval_X" in inspect.signature(lgb.LGBMRegressor.fit).parameters
    held_out = {"eval_X": X[50:], "eval_y": y[50:]} if new else {"eval_set": [(X[50:], y[50:])]}
    model = regressor(n_estimators=50)
    model.fit(X[:50], y[:50], callbacks=[lgb.early_stopping(5, verbose=False)], **held_out)
    assert 0 < model.best_iteration_ < 50
    forest = fp.Forest.from_model(model)
    same(forest.predict(X), model.predict(X))
    native = forest.truncate(2).to_native()
    assert native.n_estimators == native.n_estimators_ == forest.n_trees
    assert native.best_iteration_ <= 0
    same(native.predict(X), forest.truncate(2).predict(X))


# Estimators


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    n = 300
    X = pd.DataFrame(
        {
            "size in m": rng.normal(size=n),
            "colour": pd.Categorical(rng.choice(["red", "green", "blue", "grey"], n)),
            "count": rng.integers(0, 5, n),
            "grade": pd.Categorical(rng.choice([10, 20, 30], n), ordered=True),
            "flag": rng.random(n) < 0.5,
        }
    )
    X.loc[::7, "size in m"] = np.nan
    X.loc[::11, "colour"] = None
    effect = X["colour"].astype(object).map({"red": 2.0, "green": -1.0}).fillna(0.0)
    y = effect + np.nan_to_num(X["size in m"]) + X["grade"].astype(float) / 10 + X["flag"]
    return X, (y + 0.1 * rng.normal(size=n)).to_numpy()


WRAPPERS = {
    "plain": {},
    "dart": {"boosting_type": "dart", "objective": "huber"},
    "rf": {"boosting_type": "rf", "subsample": 0.6, "subsample_freq": 1},
    "other names": {
        "num_iterations": 5,
        "lambda_l2": 1.0,
        "interaction_constraints": [[0, 1], [2]],
    },
    "seeded": {"random_state": np.random.RandomState(0), "importance_type": "gain"},
    "lists": {"interaction_constraints": [[0, 1], [2]], "max_bin": np.int64(20)},
    "arrays": {"monotone_constraints": np.array([1, 0, 0])},
}


@pytest.mark.filterwarnings("ignore:Found `num_iterations`", "ignore:Found 'num_iterations'")
@pytest.mark.parametrize("name", WRAPPERS)
def test_the_pruned_model_is_a_proper_estimator(name, tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"])
    y = (X["a"] * 2 + np.sin(3 * X["b"])).to_numpy()
    model = regressor(**WRAPPERS[name]).fit(X, y)
    before = frozen(model)
    forest = fp.Forest.from_model(model)
    assert frozen(model) == before
    same(forest.predict(X), model.predict(X))
    pruned = forest.truncate(2)
    native = pruned.to_native()
    assert type(native) is lgb.LGBMRegressor
    same(native.predict(X), pruned.predict(X))

    assert native.n_features_ == native.n_features_in_ == 3
    assert native.feature_name_ == ["a", "b", "c"]
    if hasattr(model, "feature_names_in_"):
        assert list(native.feature_names_in_) == ["a", "b", "c"]
    assert native.objective_ == model.objective_
    assert native.n_estimators_ == native.n_iter_ == native.n_estimators == forest.n_trees
    assert native.best_score_ == native.evals_result_ == {}
    assert native.feature_importances_.shape == (3,)
    assert 0 < native.feature_importances_.sum() < model.feature_importances_.sum()
    assert set(vars(native)) == set(vars(model))
    rounds = {"n_estimators", "num_iterations"}
    for params, others in (
        (native.get_params(), model.get_params()),
        (native.booster_.params, model.booster_.params),
    ):
        assert params.keys() == others.keys()
        for param, value in params.items():
            other = interop.plain(param, others[param])
            assert value == (forest.n_trees if param in rounds else other)

    assert len(pickle.dumps(native)) < len(pickle.dumps(model))
    file = io.BytesIO()
    joblib.dump(native, file)
    file.seek(0)
    same(joblib.load(file).predict(X), native.predict(X))
    native.booster_.save_model(tmp_path / "small.txt")
    model.booster_.save_model(tmp_path / "large.txt")
    assert (tmp_path / "small.txt").stat().st_size < (tmp_path / "large.txt").stat().st_size
    again = lgb.Booster(model_file=tmp_path / "small.txt")
    same(again.predict(X), native.predict(X))
    with pytest.raises(NotFittedError):
        clone(native).predict(X)
    clone(native).fit(X, y).predict(X)


def test_training_can_go_on_from_the_pruned_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] + X[:, 1] ** 2
    native = fp.Forest.from_model(train(X, y)).truncate(2).to_native()
    more = lgb.train(SMALL, lgb.Dataset(X, y), 2, init_model=native)
    assert more.num_trees() == 5
    assert np.var(more.predict(X) - y) < np.var(native.predict(X) - y)
    same(fp.Forest.from_model(more).predict(X), more.predict(X))


@pytest.mark.parametrize("depth", [0, 2])
@pytest.mark.parametrize("params", [{}, FOREST, {"categorical_feature": [2]}])
def test_the_library_can_explain_the_pruned_model(depth, params):
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=(200, 2)), rng.integers(0, 5, 200)]
    model = train(X, X[:, 0] + X[:, 2] % 2, **params)
    native = fp.Forest.from_model(model).truncate(depth).to_native()
    shap = native.predict(X, pred_contrib=True)
    same(shap.sum(axis=1), native.predict(X, raw_score=True))
    assert len(native.dump_model()["tree_info"]) == native.num_trees()
    table = native.trees_to_dataframe().set_index("node_index")
    leaves = np.reshape(native.predict(X, pred_leaf=True), (200, native.num_trees()))
    if depth:
        before = model.trees_to_dataframe().set_index("node_index")
        for column in ("count", "split_gain", "threshold", "decision_type"):
            assert table[column]["0-S0"] == before[column]["0-S0"]
        if params is not FOREST:
            for leaf, count in enumerate(np.bincount(leaves[:, 0])):
                assert table["count"][f"0-L{leaf}"] == count
                same(table["weight"][f"0-L{leaf}"], count)


# Categories


@pytest.mark.parametrize("kind", ["booster", "regressor"])
def test_categories_of_data_frames(frame, kind):
    X, y = frame
    if kind == "booster":
        model = train(X, y, categorical_feature="auto", rounds=6)
    else:
        model = regressor(n_estimators=6).fit(X, y)
    forest = fp.Forest.from_model(model)
    assert forest.category_set.size
    rows = X.copy()
    rows["colour"] = rows["colour"].cat.add_categories(["pink"])
    rows.loc[::5, "colour"] = "pink"
    rows["grade"] = rows["grade"].cat.add_categories([99])
    rows.loc[::3, "grade"] = 99
    reordered = X.copy()
    reordered["colour"] = reordered["colour"].cat.reorder_categories(
        ["red", "grey", "green", "blue"]
    )
    for table in (X, rows, reordered):
        same(forest.predict(table), raw(model, table))
    pruned = fp.prune(model, X, y, max_nodes=40)
    native = pruned.to_native()
    for table in (X, rows, reordered):
        same(raw(native, table), pruned.predict(table))
    # Codes in an array, with fractions, negative and unknown ones.
    codes = X.assign(colour=X["colour"].cat.codes, grade=X["grade"].cat.codes).to_numpy(float)
    codes[:: len(codes) // 20] += 0.7
    codes[1 :: len(codes) // 20] -= 1.3
    with pytest.warns(UserWarning, match="no column names"):
        same(forest.predict(codes), raw(model, codes))
    # polars marks categories as well; LightGBM itself cannot read them.
    other = pl.DataFrame(
        {name: pl.Series(X[name].astype(object).tolist(), strict=False) for name in X}
    ).with_columns(
        pl.col("colour").cast(pl.Categorical),
        pl.col("grade").cast(pl.String).cast(pl.Enum(["10", "20", "30"])),
    )
    levels = X.assign(grade=X["grade"].cat.rename_categories(["10", "20", "30"]))
    relabelled = train(levels, y, categorical_feature="auto", rounds=6)
    same(fp.Forest.from_model(relabelled).predict(other), raw(relabelled, levels))


def test_categories_have_names_though_other_columns_are_not_used():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": rng.normal(size=400)})
    X["unused"] = pd.Categorical(rng.choice(["a", "b", "c"], size=400))
    X["colour"] = pd.Categorical(rng.choice(["red", "green", "blue"], size=400))
    y = X["size"] + 3.0 * (X["colour"] == "red")
    model = regressor(n_estimators=5, min_child_samples=5, min_data_per_group=5).fit(X, y)
    small = fp.prune(model, X, y, max_trees=2)
    for forest in (small.forest, fp.Forest.from_model(small.to_native())):
        assert 1 not in forest.feature
        assert forest.input.known_categories[2] == ("blue", "green", "red")
        assert "colour in {'" in to_text(forest)
    assert "# colour: " in small.to_formula()


@pytest.mark.parametrize("first", [0, 1])
def test_categories_of_one_column_are_not_taken_for_those_of_another(first):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"store": rng.integers(first, 4, 400), "size": rng.normal(size=400)})
    X["colour"] = pd.Categorical(rng.choice(["red", "green", "blue", "x"], size=400))
    y = X["size"] + 3.0 * (X["store"] == 2) + (X["colour"] == "red")
    model = regressor(n_estimators=5, min_child_samples=5, min_data_per_group=5)
    forest = fp.Forest.from_model(model.fit(X, y, categorical_feature=["store"]))
    assert forest.input.truncated == (0,)
    assert forest.input.known_categories == {}
    assert "store in {2}" in to_text(forest)


def test_frames_that_mark_other_columns_are_refused(frame):
    X, y = frame
    forest = fp.Forest.from_model(train(X, y, categorical_feature="auto"))
    with pytest.raises(ValueError, match=r"mark 2 columns as categorical.*1: 'grade'"):
        forest.predict(X.assign(colour=0))
    numbers = X[["size in m", "count"]]
    forest = fp.Forest.from_model(train(numbers, y))
    same(forest.predict(numbers), raw(train(numbers, y), numbers))
    with pytest.raises(ValueError, match=r"mark 0 columns as categorical.*1: 'count'"):
        forest.predict(numbers.assign(count=numbers["count"].astype("category")))


def test_categories_by_number_in_a_frame(frame):
    X, y = frame
    y = y + 5 * (X["count"] % 2).to_numpy()
    model = train(X, y, categorical_feature=["count", "colour"], rounds=6)
    forest = fp.Forest.from_model(model)
    assert 2 in forest.input.truncated
    same(forest.predict(X), raw(model, X))


def test_categories_that_are_no_text_are_refused(frame):
    X, y = frame
    dates = pd.to_datetime(["2020-01-01", "2021-01-01"])
    X = X[["count"]].assign(day=pd.Categorical(dates[np.arange(len(X)) % 2]))
    model = lgb.train(SMALL, lgb.Dataset(X, y), 2, keep_training_booster=True)
    with pytest.raises(fp.UnsupportedModelError, match="strings or numbers"):
        fp.Forest.from_model(model)


# Rows of every make


def test_names_are_checked_as_far_as_the_library_keeps_them(frame):
    X, y = frame
    X = X[["size in m", "count"]]
    forest = fp.Forest.from_model(train(X, y))
    assert forest.feature_names == ("size_in_m", "count")
    same(forest.predict(X), forest.predict(X.rename(columns={"size in m": "size_in_m"})))
    with pytest.raises(ValueError, match="The columns of X must be"):
        forest.predict(X[["count", "size in m"]])
    for unnamed in (X.to_numpy(), pd.DataFrame(X.to_numpy())):
        forest = fp.Forest.from_model(train(unnamed, y))
        assert forest.feature_names is None
        same(forest.predict(X), forest.predict(X.to_numpy()))


@pytest.mark.parametrize("name", ["gbdt", "zero is missing", "categorical"])
def test_tables_of_every_make(name):
    rng = np.random.default_rng(0)
    X = rng.integers(-1, 4, size=(60, N_FEATURES)).astype(float)
    X[rng.random(X.shape) < 0.2] = np.nan
    y = np.nansum(X, axis=1) + (X[:, 0] == 0) * 3
    model = train(X, y, **BOOSTERS[name])
    forest = fp.Forest.from_model(model)
    expected = raw(model, X)
    stored = np.nan_to_num(X, nan=-9)
    for make in (sparse.csr_matrix, sparse.csc_matrix):
        table = make(stored)
        table.data[table.data == -9] = np.nan
        same(raw(model, table), expected)
        same(forest.predict(table), expected)
    same(forest.predict(sparse.coo_array(np.nan_to_num(X))), raw(model, np.nan_to_num(X)))
    for table in (
        X.astype(np.float32),
        np.asfortranarray(X),
        X.tolist(),
        pd.DataFrame(X),
        pd.DataFrame(X).convert_dtypes(),
        pl.DataFrame(X),
    ):
        same(forest.predict(table), expected)


def test_datasets_that_kept_their_rows(frame):
    X, y = frame
    model = train(X, y, categorical_feature="auto")
    forest = fp.Forest.from_model(model)
    expected = forest.predict(X)
    for data in (
        lgb.Dataset(X, y),
        lgb.Dataset(X, y, free_raw_data=False, params=SMALL).construct(),
    ):
        same(forest.predict(data), expected)
    for table in (X, X.assign(colour=X["colour"].cat.codes, grade=X["grade"].cat.codes).to_numpy()):
        part = lgb.Dataset(table, y, feature_name=list(X), free_raw_data=False).subset([5, 3, 8])
        with nullcontext() if table is X else pytest.warns(UserWarning, match="no column names"):
            same(forest.predict(part), expected[[3, 5, 8]])
    with pytest.raises(ValueError, match="free_raw_data=False"):
        forest.predict(lgb.Dataset(X, y, params=SMALL).construct())
    with pytest.raises(ValueError, match=r"reads its rows from rows\.csv"):
        forest.predict(lgb.Dataset("rows.csv"))
    with pytest.raises(ValueError, match=r"without init_score is required.*rates for y"):
        forest.predict(lgb.Dataset(X, y, init_score=np.ones(len(y))))
    more = lgb.Dataset(X, y, free_raw_data=False)
    lgb.train(SMALL, more, 1, init_model=model)  # writes an init_score of its own
    same(forest.predict(more), expected)


def test_datasets_in_pieces():
    class Rows(lgb.Sequence):
        batch_size = 10

        def __init__(self, array):
            self.array = array

        def __getitem__(self, index):
            return self.array[index]

        def __len__(self):
            return len(self.array)

    X = np.random.default_rng(0).normal(size=(50, 2))
    forest = fp.Forest.from_model(train(X, X[:, 0]))
    for data in ([X[:20], X[20:]], Rows(X), [Rows(X[:20]), Rows(X[20:])]):
        same(forest.predict(lgb.Dataset(data, X[:, 0], free_raw_data=False)), forest.predict(X))


# Pruning


@pytest.mark.skipif(INTERPRETED, reason="goes through the kernels from the outside")
@pytest.mark.parametrize("rule", ["subtree", "layer"])
@pytest.mark.parametrize("name", ["gbdt", "rf", "dart", "zero is missing", "categorical"])
def test_pruning_gives_back_a_booster(name, rule, tmp_path):
    rng = np.random.default_rng(0)
    X = np.c_[rng.integers(0, 6, 400), rng.normal(size=400), rng.integers(0, 4, 400)].astype(float)
    X[::9, 1] = np.nan
    y = np.nan_to_num(X[:, 1]) + (X[:, 0] % 3 == 0) + (X[:, 2] == 0)
    model = train(X, y, rounds=20, **BOOSTERS[name])
    pruned = fp.prune(model, X, y, max_nodes=60, rule=rule)
    native = pruned.to_native()
    same(raw(native, X), pruned.predict(X))
    table = native.trees_to_dataframe()
    assert 3 <= len(table) <= 60
    model.save_model(tmp_path / "large.txt")
    native.save_model(tmp_path / "small.txt")
    assert (tmp_path / "small.txt").stat().st_size < (tmp_path / "large.txt").stat().st_size
    same(raw(lgb.Booster(model_file=tmp_path / "small.txt"), X), pruned.predict(X))
    same(raw(pickle.loads(pickle.dumps(native)), X), pruned.predict(X))
    assert pruned.n_bytes < len(pickle.dumps(model))


@pytest.mark.parametrize("name", BOOSTERS)
def test_a_saved_forest_still_goes_back(name, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 5, size=(90, 3)).astype(float)
    forest = fp.Forest.from_model(train(X, X[:, 0] * X[:, 1], **BOOSTERS[name])).truncate(2)
    assert origin_from_metadata(json.loads(json.dumps(asdict(forest.origin)))) == forest.origin
    forest.save(tmp_path / "forest.npz")
    read = fp.Forest.load(tmp_path / "forest.npz")
    same(raw(read.to_native(), X), forest.predict(X))
    forest.truncate(0).compact().save(tmp_path / "constant.npz")
    constant = fp.Forest.load(tmp_path / "constant.npz").to_native()
    same(raw(constant, X), forest.truncate(0).predict(X))
    assert constant.num_trees() == 1
    assert len(np.unique(constant.predict(X))) == 1


def test_exports_share_nothing_with_the_forest():
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = regressor(interaction_constraints=[[0, 1], [2]]).fit(X, X[:, 0])
    forest = fp.Forest.from_model(model)
    forest.to_native().interaction_constraints.clear()
    assert forest.to_native().interaction_constraints == [[0, 1], [2]]


def test_extras_cannot_replace_what_was_checked():
    """A file may hold any extra; it must not send rows another way."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    X[::4, 0] = np.nan
    X[:, 2] = rng.integers(0, 4, 90)
    model = train(X, np.nan_to_num(X[:, 0], nan=2) + X[:, 2] % 2, categorical_feature=[2])
    forest = fp.Forest.from_model(model)
    rows = rows_for(forest, X)
    for wild in (0, 1, 2, 255):
        kinds = np.full(forest.n_nodes, wild, np.uint8)
        forged = replace(forest, node_extras=dict(forest.node_extras) | {"missing_type": kinds})
        same(raw(forged.to_native(), rows), forest.predict(rows))


def test_the_model_predicts_where_the_package_is_not_installed(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 3))
    native = fp.Forest.from_model(regressor().fit(X, X[:, 0])).truncate(2).to_native()
    predicts_alone(native, X, tmp_path)


# Files


@pytest.fixture
def model_text():
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=(100, 2)), rng.integers(0, 5, 100)]
    model = train(X, X[:, 0] + 3 * (X[:, 2] % 2), categorical_feature=[2])
    return model.model_to_string(), X, raw(model, X)


def test_files_are_read(model_text, tmp_path):
    text, X, expected = model_text
    # Wrong sizes end the process when the library sees them: look first, then try.
    assert "tree_sizes" not in lightgbm_text.compose_model(lightgbm_text.parse_model(text))
    for content in (
        text,
        text.replace("\n", "\r\n"),
        re.sub(r"tree_sizes=\d+", "tree_sizes=7", text),
        re.sub(r"(leaf_value=\S)", r"\g<1>0", text),
    ):
        (tmp_path / "model.txt").write_bytes(content.encode())
        booster = interop.load(tmp_path / "model.txt")
        assert type(booster) is lgb.Booster
        assert np.isfinite(booster.predict(X)).all()
        if "leaf_value=00" not in content:
            same(fp.Forest.from_model(booster).predict(X), booster.predict(X))
    # LightGBM 4 still reads what older versions wrote; those knew less of a tree.
    old = re.sub(r"\n(leaf_weight|internal_weight|is_linear|shrinkage)=.*", "", text)
    (tmp_path / "model.txt").write_text(old.replace("version=v4", "version=v3"))
    booster = interop.load(tmp_path / "model.txt")
    same(booster.predict(X), expected)
    same(
        fp.Forest.from_model(booster).truncate(2).to_native().predict(X),
        fp.Forest.from_model(booster).truncate(2).predict(X),
    )
    (tmp_path / "model.txt").write_text(text)
    same(raw(interop.load(str(tmp_path / "model.txt")), X), expected)


@pytest.mark.parametrize(
    ("pattern", "damage"),
    [
        (r"^tree\n", "forest\n"),
        (r"end of trees[\s\S]*", ""),
        (r"left_child=\S+", "left_child=1000000"),
        (r"left_child=\S+", "left_child=0"),
        (r"right_child=\S+", "right_child=-1000"),
        (r"split_feature=\d+", "split_feature=99999999"),
        (r"num_cat=[1-9]\d*", "num_cat=77"),
        (r"cat_boundaries=0 \d+", "cat_boundaries=0 900"),
        (r"cat_boundaries=0 \d+", "cat_boundaries=0 0 -1"),
        (r"cat_boundaries=0 (\d+)", r"cat_boundaries=\1 0"),
        (r"\nthreshold=0 ", "\nthreshold=99 "),
        (r"\nthreshold=0 ", "\nthreshold=-3 "),
        (r"num_leaves=\d+", "num_leaves=3"),
        (r"num_leaves=\d+", "num_leaves=0"),
        (r"num_leaves=\d+", "num_leaves=1000000000000000"),
        (r"num_leaves=\d+", "num_leaves=many"),
        (r"leaf_value=\S+", "leaf_value=abc"),
        (r"leaf_value=\S+", "leaf_value=nan"),
        (r"leaf_value=.*\n", ""),
        (r"threshold=\S+", "threshold=nan"),
        (r"max_feature_idx=.*\n", ""),
        (r"max_feature_idx=.*\n", "max_feature_idx=77\n"),
        (r"feature_infos=.*\n", ""),
    ],
)
def test_damaged_files_are_refused(model_text, tmp_path, pattern, damage, capfd):
    text = model_text[0]
    damaged = re.sub(pattern, damage, text, count=1)
    assert damaged != text
    (tmp_path / "model.txt").write_text(damaged)
    with pytest.raises(fp.InvalidForestError, match=r"model\.txt is not a model that LightGBM"):
        interop.load(tmp_path / "model.txt")


def test_files_of_another_kind_are_refused(model_text, tmp_path):
    path = tmp_path / "model.txt"
    for content in (b"", b"\x80\x04\x95\xff", json.dumps({"name": "tree"}).encode()):
        path.write_bytes(content)
        with pytest.raises(fp.InvalidForestError, match=r"save_model\('model.txt'\)"):
            interop.load(path)
    with pytest.raises(FileNotFoundError):
        interop.load(tmp_path / "none.txt")
    path.write_text(model_text[0].replace("num_tree_per_iteration=1", "num_tree_per_iteration=0"))
    with pytest.raises(fp.InvalidForestError, match="a tree for each class in every round"):
        interop.load(path)


def test_the_rest_of_the_text_stays_as_it_is(model_text):
    text = model_text[0]
    native = fp.Forest.from_model(lgb.Booster(model_str=text)).to_native().model_to_string()
    for part in (r"^[\s\S]*?(?=tree_sizes)", r"end of trees[\s\S]*"):
        assert re.search(part, native)[0] == re.search(part, text)[0]
    parsed = lightgbm_text.parse_model(text)
    assert lightgbm_text.parse_model(lightgbm_text.compose_model(parsed)) == parsed


# Refusals


class Stubborn(lgb.LGBMRegressor):
    def predict(self, X, **options):
        return super().predict(X, **options) + 1


class StubbornBooster(lgb.Booster):
    pass


def custom(score, data):
    return score - data.get_label(), np.ones_like(score)


def custom_for_regressor(y, score):
    return score - y, np.ones_like(score)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda X, y: Stubborn(n_estimators=2, n_jobs=1).fit(X, y), "subclass of LGBMRegressor"),
        (
            lambda X, y: StubbornBooster(model_str=train(X, y).model_to_string()),
            "subclass of Booster",
        ),
        (lambda X, y: lgb.Dataset(X, y), "required, got Dataset"),
        (lambda X, y: train(X, y > 0, objective="cross_entropy_lambda"), "cross_entropy_lambda"),
        (lambda X, y: train(X, y, linear_tree=True), "linear_tree=False"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_cannot_be_read_is_refused(make, message):
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = make(X, X[:, 0])
    with pytest.raises(fp.UnsupportedModelError, match=message):
        fp.Forest.from_model(model)


def test_an_unfitted_model_is_refused():
    with pytest.raises(NotFittedError):
        fp.Forest.from_model(lgb.LGBMRegressor())


@pytest.mark.parametrize(
    "make",
    [
        lambda X, y: train(X, y, objective=custom),
        lambda X, y: regressor(objective=custom_for_regressor).fit(X, y),
        lambda X, y: lgb.train(
            SMALL | {"objective": "lambdarank"},
            lgb.Dataset(X, y > 0, group=np.array([60], np.int32)),
            2,
        ),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_models_of_an_unknown_loss_are_pruned_towards_their_raw_sums(make):
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = make(X, X[:, 0])
    np.testing.assert_allclose(fp.Forest.from_model(model).predict(X), model.predict(X))
    with pytest.raises(ValueError, match="Leave y out"):
        fp.prune(model, X, X[:, 0], max_nodes=10)
    small = fp.prune(model, X, max_nodes=10, n_alphas=8)
    np.testing.assert_allclose(small.to_native().predict(X), small.predict(X))


def test_other_classes_cannot_be_written():
    X = np.random.default_rng(0).normal(size=(60, 3))
    forest = fp.Forest.from_model(train(X, X[:, 0]))
    other = replace(forest, origin=replace(forest.origin, model_class="CVBooster"))
    with pytest.raises(fp.UnsupportedModelError, match="not 'CVBooster'"):
        other.to_native()


def test_formats_of_the_future_are_refused(monkeypatch):
    X = np.random.default_rng(0).normal(size=(60, 3))
    monkeypatch.setattr(interop, "_FORMAT", "v3")
    with pytest.raises(fp.UnsupportedModelError, match="writes v4"):
        fp.Forest.from_model(train(X, X[:, 0]))


def _continued(first, second):
    """Return a model whose trees were trained in two ways."""
    rng = np.random.default_rng(0)
    X = rng.integers(-2, 3, size=(200, 1)).astype(float)
    X[::5] = np.nan
    y = np.nan_to_num(X[:, 0], nan=9.0) ** 2
    start = train(X, y, **first)
    params = SMALL | second
    categorical = params.pop("categorical_feature", [])
    data = lgb.Dataset(np.abs(X), y, categorical_feature=categorical)
    return lgb.train(params, data, 3, init_model=start), X


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"zero_as_missing": True}, {}),
        ({}, {"categorical_feature": [0]}),
    ],
)
def test_trees_that_take_a_column_differently_are_refused(first, second):
    model, _ = _continued(first, second)
    with pytest.raises(fp.UnsupportedModelError, match=r"'Column_0'.*the same parameters"):
        fp.Forest.from_model(model)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"zero_as_missing": True}, {"use_missing": False}),
        ({}, {"use_missing": False}),
    ],
)
def test_trees_may_differ_where_it_makes_no_difference(first, second):
    model, X = _continued(first, second)
    forest = fp.Forest.from_model(model)
    rows = rows_for(forest, X)
    same(forest.predict(rows), raw(model, rows))
    same(raw(forest.to_native(), rows), raw(model, rows))


@pytest.mark.filterwarnings("ignore:categorical_feature")
def test_columns_that_the_parameters_name():
    """LightGBM writes their names into its text and then cannot read it."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.integers(0, 4, 100), "b": pd.Categorical(list("xy") * 50)})
    params = {"categorical_feature": "name:a", "verbose": -1, "num_threads": 1}
    booster = lgb.train(params, lgb.Dataset(frame, frame.a * 2.0), 3)
    native = fp.Forest.from_model(booster).to_native()
    same(native.predict(frame), booster.predict(frame))
