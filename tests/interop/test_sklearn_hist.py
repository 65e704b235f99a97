"""Histogram-based boosting in and out: scikit-learn's own raw predictions are the truth."""

import io
import json
import pickle
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
from sklearn._loss.loss import HalfSquaredError
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.inspection import partial_dependence
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.utils.validation import check_is_fitted
from strategies import probing_rows, training_sets
from threadpoolctl import threadpool_limits

import forestprune as fp
from forestprune.forest.origin import origin_from_metadata
from forestprune.interop import sklearn_hist


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Fits this small are done before the threads have met; on a busy machine they wait long."""
    with threadpool_limits(1, user_api="openmp"):
        yield


def boosted(**params):
    # A rate of 1 and leaves of one row: a row that goes the wrong way is plain to see.
    defaults = {"max_iter": 4, "min_samples_leaf": 1, "learning_rate": 1.0, "random_state": 0}
    return HistGradientBoostingRegressor(**defaults | params)


MODELS = {
    "squared error": boosted,
    "absolute error": lambda: boosted(loss="absolute_error"),
    "quantile": lambda: boosted(loss="quantile", quantile=0.3),
    "poisson": lambda: boosted(loss="poisson", learning_rate=0.3),
    "gamma": lambda: boosted(loss="gamma", learning_rate=0.3),
    "early stopping": lambda: boosted(
        max_iter=30, early_stopping=True, n_iter_no_change=2, validation_fraction=0.3
    ),
    "scored on training rows": lambda: boosted(
        early_stopping=True, validation_fraction=None, scoring="r2"
    ),
    "few bins": lambda: boosted(max_bins=3, max_leaf_nodes=5, l2_regularization=1.0),
    "some features": lambda: boosted(max_features=0.5, max_depth=2),
}


@st.composite
def fitted(draw, name):
    """Draw a training set of numbers and fit the model called `name` to it."""
    X, y, weight = draw(training_sets(missing=True))
    if len(y) == 2:  # too few to set some aside
        X, y, weight = np.tile(X, (2, 1)), np.tile(y, 2), None
    # A column that is missing altogether, at least in the rows trained on, cannot be fitted.
    X[:, np.isnan(X).all(axis=0)] = 0.0
    y = np.abs(y) + 0.5 if name in ("poisson", "gamma") else y
    try:
        return MODELS[name]().fit(X, y, sample_weight=weight), X
    except ValueError as error:
        if "window shape" not in str(error):
            raise
        reject()


def rows_on_edges(forest, X):
    """Return rows on thresholds and beside them, with missing and infinite numbers."""
    rows = [probing_rows(forest, X)]
    for v in np.flatnonzero(forest.left >= 0):
        row = X[v % len(X)].copy()
        threshold = np.clip(forest.threshold[v], -1e308, 1e308)
        for x in np.nextafter(threshold, [-np.inf, np.inf]):
            row[forest.feature[v]] = x
            rows.append(row[np.newaxis].copy())
    for x in (np.nan, np.inf, -np.inf):
        for j in range(X.shape[1]):
            changed = X.copy()
            changed[:, j] = x
            rows.append(changed)
    return np.concatenate(rows)


def raw(model, X):
    return model._raw_predict(X)[:, 0]


def same(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def some_mask(forest, draw):
    """Draw which nodes to keep: a subtree with the same root, for each tree."""
    mask = np.ones(forest.n_nodes, dtype=bool)
    for start, end in zip(forest.offsets[:-1], forest.offsets[1:], strict=True):
        left = forest.left[start:end]
        for v in range(end - start):
            if left[v] >= 0 and (not mask[start + v] or draw(st.integers(0, 3)) == 0):
                mask[start + left[v] : start + left[v] + 2] = False
    return mask


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=examples(15))
@given(data=st.data())
def test_in_and_out_predict_what_the_library_does(name, data):
    model, X = data.draw(fitted(name))
    before = joblib.hash(model)
    forest = fp.Forest.from_model(model)
    native = forest.to_native()
    rows = rows_on_edges(forest, X)
    np.testing.assert_array_equal(forest.predict(rows), raw(model, rows))
    assert type(native) is type(model)
    same(raw(native, rows), raw(model, rows))
    same(native.predict(rows), model.predict(rows))
    assert joblib.hash(model) == before
    if forest.depths.all():
        assert fp.Forest.from_model(native).value.tolist() == forest.value.tolist()


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=examples(15))
@given(data=st.data())
def test_pruned_models_predict_what_the_pruned_forest_does(name, data):
    model, X = data.draw(fitted(name))
    forest = fp.Forest.from_model(model)
    kept = forest.keep(some_mask(forest, data.draw))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    pruned = replace(
        kept,
        value=kept.value + rng.normal(size=kept.value.shape),
        scale=rng.normal(size=kept.n_trees),
        base=rng.normal(size=1),
    )
    native = pruned.to_native()
    rows = rows_on_edges(forest, X)
    same(raw(native, rows), pruned.predict(rows))
    same(fp.Forest.from_model(native).predict(rows), pruned.predict(rows))
    compact = pruned.compact()
    assert native.n_iter_ == native.max_iter == max(1, compact.n_trees)
    depths = [tree.get_max_depth() for (tree,) in native._predictors]
    assert depths == ([d for d in pruned.depths if d] or [0])
    assert sum(tree.nodes.size for (tree,) in native._predictors) == max(1, compact.n_nodes)
    leaves = sum(tree.get_n_leaf_nodes() for (tree,) in native._predictors)
    assert leaves == max(1, np.count_nonzero(compact.left < 0))


@pytest.mark.parametrize("name", ["squared error", "absolute error"])
@settings(max_examples=examples(10))
@given(data=st.data())
def test_splits_are_the_average_of_their_leaves(name, data):
    forest = fp.Forest.from_model(data.draw(fitted(name))[0])
    order = [n for root in naive.from_forest(forest) for n in naive.level_order(root)]
    same(forest.value, [naive.average_of_leaves(node)[0] for node in order])


# Categories

COLUMNS = {
    "strings": (["a", "b", "c", "d"], ["e", ""]),
    "whole numbers": ([-3, 0, 7, 40, 1000], [1, 2]),
    "fractions": ([0.1, 0.5, float(np.float32(0.3))], [0.3, 0.0]),
    "truth values": ([False, True], []),
    "one string": (["a"], ["b"]),
}


@st.composite
def tables(draw):
    """Draw data frames to train on and to predict, some of their columns with categories."""
    kinds = draw(st.lists(st.sampled_from([*COLUMNS, "numbers"]), min_size=1, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    missing = draw(st.sampled_from([0.0, 0.3]))
    m = 120  # scikit-learn looks only at categories that came ten times
    train, test = {}, {}
    for i, kind in enumerate(kinds):
        if kind == "numbers":
            train[f"{i}"] = rng.normal(size=m)
            test[f"{i}"] = rng.normal(size=m)
            continue
        known, unknown = COLUMNS[kind]
        for table, values in ((train, known), (test, known + unknown)):
            entries = [values[k] for k in rng.integers(0, len(values), m)]
            gaps = rng.random(m) < missing
            gaps[0] = False  # a column must not be missing altogether
            entries = [None if gap else e for gap, e in zip(gaps, entries, strict=True)]
            table[f"{i}"] = pd.Categorical(entries, categories=values)
    y = rng.normal(size=m)
    for column in train.values():
        if isinstance(column, pd.Categorical):
            y += rng.normal(size=len(column.categories) + 1)[column.codes]
    return pd.DataFrame(train), y, pd.DataFrame(test)


@settings(max_examples=examples(60))
@given(data=st.data())
def test_categories_go_where_the_library_sends_them(data):
    train, y, test = data.draw(tables())
    model = boosted(max_iter=3).fit(train, y)
    before = joblib.hash(model)
    forest = fp.Forest.from_model(model)
    for rows in (train, test):
        np.testing.assert_array_equal(forest.predict(rows), raw(model, rows))
    assert joblib.hash(model) == before
    pruned = forest.keep(some_mask(forest, data.draw))
    native = pickle.loads(pickle.dumps(pruned.to_native()))
    again = fp.Forest.from_model(native)
    for rows in (train, test):
        same(raw(native, rows), pruned.predict(rows))
        same(again.predict(rows), pruned.predict(rows))
    assert again.input == forest.input


def mixed_table(m=120, seed=0):
    """Return a data frame with categories between columns of numbers, and a target."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "size": rng.normal(size=m),
            "kind": pd.Categorical(rng.choice(["x", "y", "z"], m)),
            "weight": rng.normal(size=m),
            "class": pd.Categorical(rng.choice([3, 5, 7], m)),
        }
    )
    table.loc[::7, "kind"] = np.nan
    table.loc[::5, "weight"] = np.nan
    y = table["size"] * (table["kind"] == "x") + (table["class"] == 5) + 0.1 * rng.normal(size=m)
    return table, y.to_numpy()


def test_columns_are_in_the_order_of_the_user():
    table, y = mixed_table()
    forest = fp.Forest.from_model(boosted().fit(table, y))
    assert forest.feature_names == ("size", "kind", "weight", "class")
    assert forest.input.categories == (None, ("x", "y", "z"), None, (3, 5, 7))
    categorical = np.unique(forest.feature[forest.category_set >= 0])
    assert set(categorical) <= {1, 3}
    assert {0, 2} & set(forest.feature[(forest.category_set < 0) & (forest.left >= 0)])


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16"])
@pytest.mark.parametrize("missing", [False, True])
def test_numbers_in_a_matrix_are_categories_not_codes(dtype, missing):
    rng = np.random.default_rng(0)
    X = np.column_stack([9 * rng.normal(size=90), rng.choice([-2.0, 10.0, 0.5], 90)])
    y = X[:, 0] + 3 * (X[:, 1] == 10)
    X = X.astype(dtype)
    if missing and dtype != "int16":
        X[::4, 1] = np.nan
    model = boosted(categorical_features=[1]).fit(X, y)
    forest = fp.Forest.from_model(model)
    native = forest.truncate(2).to_native()
    assert np.unique(forest.feature[forest.category_set >= 0]) == [1]
    rows = X.astype(float)
    rows[::3, 1] = [0.0, 1.0, 2.0, -1.0, np.nan] * 6  # codes to whoever mixes them up
    for table in (X, rows, rows.tolist(), rows.astype(object), pd.DataFrame(rows)):
        np.testing.assert_array_equal(forest.predict(table), raw(model, table))
        same(raw(native, table), forest.truncate(2).predict(table))


def test_strings_in_lists_and_object_arrays():
    table, y = mixed_table()
    rows = table.dropna().to_numpy().tolist()
    X = table.to_numpy()
    model = boosted(categorical_features=[1, 3]).fit(X, y)
    forest = fp.Forest.from_model(model)
    native = forest.to_native()
    for given_rows in (X, rows):
        np.testing.assert_array_equal(forest.predict(given_rows), raw(model, given_rows))
        same(raw(native, given_rows), raw(model, given_rows))


def test_none_is_a_category_in_polars_frames():
    """scikit-learn takes NaN for missing, but not the None that polars has instead."""
    rng = np.random.default_rng(0)
    kinds = rng.choice(["x", "y", "?"], 90)
    table = pl.DataFrame(
        {
            "kind": pl.Series([None if k == "?" else k for k in kinds], dtype=pl.Categorical),
            "size": rng.normal(size=90),
        }
    )
    y = rng.normal(size=90) + (kinds == "?")
    model = boosted().fit(table, y)
    forest = fp.Forest.from_model(model)
    assert forest.input.categories == (("x", "y", None), None)
    np.testing.assert_array_equal(forest.predict(table), raw(model, table))
    native = forest.truncate(2).to_native()
    same(raw(native, table), forest.truncate(2).predict(table))


def test_a_category_column_without_any_category():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.full(60, np.nan), rng.normal(size=60)])
    model = boosted(categorical_features=[True, False]).fit(X, X[:, 1])
    forest = fp.Forest.from_model(model)
    assert forest.input.categories == ((), None)
    rows = np.where(np.isnan(X), [np.nan, 0.0], X)
    rows[::2, 0] = 1.0
    try:
        expected = raw(model, rows)
    except ValueError:  # scikit-learn's encoder knows nothing but NaN here
        expected = raw(model, X)
        rows = X
    np.testing.assert_array_equal(forest.predict(rows), expected)
    same(raw(forest.to_native(), rows), expected)


def test_all_columns_categorical_and_as_many_categories_as_there_can_be():
    rng = np.random.default_rng(0)
    X = np.repeat(np.arange(255.0), 12)[:, np.newaxis] * 3
    y = rng.normal(size=255).repeat(12) + rng.normal(size=len(X)) * 0.01
    frame = pd.DataFrame(X, columns=["only"])
    model = boosted(categorical_features=["only"]).fit(frame, y)
    forest = fp.Forest.from_model(model)
    native = forest.to_native()
    assert set(vars(native)) == set(vars(model))
    rows = frame + rng.choice([0.0, 1.0], frame.shape)
    np.testing.assert_array_equal(forest.predict(rows), raw(model, rows))
    same(raw(native, rows), raw(model, rows))
    assert fp.Forest.from_model(native).input == forest.input


def test_one_category_and_missing_ones_are_told_apart_as_the_library_does():
    """scikit-learn leaves the set of such a split empty, or takes that of another split."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = np.column_stack([rng.choice([4.0, np.nan], 200), rng.choice([1.0, 2.0, 3.0], 200)])
        y = 2.0 * np.isnan(X[:, 0]) + (X[:, 1] == 2) + 0.1 * rng.normal(size=200)
        model = boosted(categorical_features=[0, 1]).fit(X, y)
        forest = fp.Forest.from_model(model)
        assert (forest.feature[forest.category_set >= 0] == 0).any()
        np.testing.assert_array_equal(forest.predict(X), raw(model, X))
        same(raw(forest.to_native(), X), raw(model, X))


# Thresholds that are no numbers


def test_a_split_on_being_missing_has_no_finite_threshold():
    X = np.array([1.0, 2.0, np.nan, np.nan]).repeat(3)[:, np.newaxis]
    model = boosted(max_iter=1).fit(X, np.array([0.0, 0.0, 1.0, 1.0]).repeat(3))
    assert model._predictors[0][0].nodes["num_threshold"][0] == np.inf
    forest = fp.Forest.from_model(model)
    assert np.isfinite(forest.threshold).all()
    rows = np.array([[np.nan], [np.inf], [-np.inf], [np.finfo(np.float64).max], [0.0]])
    expected = raw(model, rows)
    assert len(np.unique(expected)) == 2
    np.testing.assert_array_equal(forest.predict(rows), expected)
    assert np.isinf(rows[1:3]).all(), "the caller's numbers must stay as they are"
    native = forest.to_native()
    assert native._predictors[0][0].nodes["num_threshold"][0] == np.inf
    same(raw(native, rows), expected)


@pytest.mark.filterwarnings("ignore:invalid value encountered")
@pytest.mark.parametrize("values", [[-np.inf, 1.0], [1.0, np.inf], [-np.inf, np.inf, np.nan]])
def test_infinite_numbers_in_training(values):
    """The middle of minus infinity and a number is minus infinity, that of both ends is NaN."""
    X = np.repeat(values, 4)[:, np.newaxis]
    y = np.arange(float(len(values))).repeat(4)
    model = boosted(max_iter=2).fit(X, y)
    thresholds = model._predictors[0][0].nodes["num_threshold"]
    forest = fp.Forest.from_model(model)
    assert forest.max_depth > 0
    rows = np.array([[-np.inf], [-1e308], [0.0], [1e299], [1e305], [np.inf], [np.nan]])
    np.testing.assert_array_equal(forest.predict(rows), raw(model, rows))
    native = forest.to_native()
    same(raw(native, rows), raw(model, rows))
    if np.isneginf(thresholds).any():
        written = native._predictors[0][0].nodes["num_threshold"]
        np.testing.assert_array_equal(written, thresholds)


@pytest.mark.filterwarnings("ignore:invalid value encountered")
def test_a_threshold_that_is_nan_sends_every_number_right():
    """Without the constraint scikit-learn would say the same with an infinite threshold."""
    X = np.repeat([np.nan, -np.inf, np.inf], 4)[:, np.newaxis]
    model = boosted(max_iter=1, monotonic_cst=[1]).fit(X, np.repeat([0.0, 1.0, 1.0], 4))
    assert np.isnan(model._predictors[0][0].nodes["num_threshold"][0])
    forest = fp.Forest.from_model(model)
    rows = np.array([[-np.inf], [-1e308], [0.0], [1e308], [np.inf], [np.nan]])
    expected = raw(model, rows)
    assert len(np.unique(expected)) == 2
    np.testing.assert_array_equal(forest.predict(rows), expected)
    same(raw(forest.to_native(), rows), expected)


# The model written


@pytest.mark.parametrize("name", MODELS)
def test_the_pruned_model_is_a_proper_estimator(name):
    table, y = mixed_table()
    y = y - y.min() + 1
    model = MODELS[name]().fit(table, y)
    pruned = fp.Forest.from_model(model).truncate(1)
    native = pruned.to_native()
    check_is_fitted(native)
    assert list(native.feature_names_in_) == list(table.columns)
    assert native.n_features_in_ == 4
    assert native.is_categorical_.tolist() == [False, True, False, True]
    expected = model.get_params() | {"max_iter": native.n_iter_}
    assert clone(native).get_params() == native.get_params() == expected
    # String scores leave a bound method behind in a fitted model.
    assert set(vars(native)) == set(vars(model)) - {"_raw_predict"}
    assert len(pickle.dumps(native)) < len(pickle.dumps(model))
    file = io.BytesIO()
    joblib.dump(native, file)
    file.seek(0)
    np.testing.assert_array_equal(joblib.load(file).predict(table), native.predict(table))
    stages = list(native.staged_predict(table))
    assert len(stages) == native.n_iter_
    same(stages[-1], native.predict(table))
    with pytest.raises(NotFittedError):
        clone(native).predict(table)
    clone(native).fit(table, y).predict(table)
    # Columns are found by their names, as in the original.
    np.testing.assert_array_equal(
        native.predict(table[["class", "weight", "kind", "size"]]), native.predict(table)
    )


@pytest.mark.parametrize(
    "dtypes", [{}, {"kind": "string"}, {"class": float}, {"class": object}, {"size": "Float64"}]
)
def test_frames_with_other_types_of_column(dtypes):
    table, y = mixed_table()
    table = table.dropna().reset_index(drop=True).astype(dtypes)
    y = y[: len(table)]
    model = boosted(categorical_features=["kind", "class"]).fit(table, y)
    forest = fp.Forest.from_model(model)
    native = forest.truncate(2).to_native()
    np.testing.assert_array_equal(forest.predict(table), raw(model, table))
    same(raw(native, table), forest.truncate(2).predict(table))
    old, new = (m._preprocessor.named_transformers_["encoder"] for m in (model, native))
    for a, b in zip(old.categories_, new.categories_, strict=True):
        assert a.dtype == b.dtype
        assert a.tolist() == b.tolist()


def test_what_only_training_knew_is_not_claimed():
    table, y = mixed_table()
    model = MODELS["early stopping"]().fit(table, y)
    assert len(model.train_score_) == len(model.validation_score_) == model.n_iter_ + 1
    native = fp.Forest.from_model(model).truncate(1).to_native()
    assert native.do_early_stopping_
    assert native.train_score_.shape == native.validation_score_.shape == (0,)


@pytest.mark.parametrize("name", MODELS)
def test_training_can_go_on_from_the_pruned_model(name):
    table, y = mixed_table()
    y = y - y.min() + 1
    native = fp.Forest.from_model(MODELS[name]().fit(table, y)).truncate(2).to_native()
    kept, before = native.n_iter_, native.predict(table)
    trees = list(native._predictors)
    native.set_params(warm_start=True, max_iter=kept + 2).fit(table, y)
    assert native._predictors[:kept] == trees
    assert native.n_iter_ == kept + 2
    same(list(native.staged_predict(table))[kept - 1], before)


def test_going_on_without_pruning_makes_the_trees_that_the_original_would_make():
    table, y = mixed_table()
    model = boosted(learning_rate=0.3).fit(table, y)
    native = fp.Forest.from_model(model).to_native()
    for m in (model, native):
        m.set_params(warm_start=True, max_iter=7).fit(table, y)
    same(native.predict(table), model.predict(table))


def test_trees_keep_their_statistics():
    table, y = mixed_table()
    model = boosted().fit(table, y)
    native = fp.Forest.from_model(model).truncate(3).to_native()
    for (old,), (new,) in zip(model._predictors, native._predictors, strict=True):
        pairs = [(0, 0)]
        while pairs:
            a, b = pairs.pop()
            a, b = old.nodes[a], new.nodes[b]
            assert (a["count"], a["depth"]) == (b["count"], b["depth"])
            if b["is_leaf"]:
                assert b["gain"] == -1
                continue
            fields = ("feature_idx", "missing_go_to_left", "gain", "is_categorical")
            for name in (*fields, "num_threshold", "bin_threshold"):
                assert a[name] == b[name]
            if a["is_categorical"]:
                for sets in ("raw_left_cat_bitsets", "binned_left_cat_bitsets"):
                    np.testing.assert_array_equal(
                        getattr(old, sets)[a["bitset_idx"]], getattr(new, sets)[b["bitset_idx"]]
                    )
            pairs += [(a[side], b[side]) for side in ("left", "right")]


def test_partial_dependence_follows_the_trees():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    model = boosted().fit(X, X[:, 0] + X[:, 1] ** 2)
    native = fp.Forest.from_model(model).to_native()
    for feature in range(3):
        a, b = (
            partial_dependence(m, X, [feature], method="recursion")["average"]
            for m in (model, native)
        )
        same(a, b)


def test_exports_share_nothing_with_the_forest():
    X = np.random.default_rng(0).normal(size=(40, 2))
    forest = fp.Forest.from_model(boosted(monotonic_cst=[1, 0]).fit(X, X[:, 0]))
    native = forest.to_native()
    native.monotonic_cst[0] = -1
    native._predictors[0][0].nodes["value"][:] = 0
    native._baseline_prediction[:] = 9
    again = forest.to_native()
    assert again.monotonic_cst == [1, 0]
    same(raw(again, X), forest.predict(X))


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"interaction_cst": [{0, 1}, (2, 3)]}, {"interaction_cst": [[0, 1], [2, 3]]}),
        ({"monotonic_cst": {"size": 1}}, {"monotonic_cst": {"size": 1}}),
        ({"monotonic_cst": np.array([1, 0, -1, 0])}, {"monotonic_cst": [1, 0, -1, 0]}),
        (
            {"categorical_features": pd.Series([False, True, False, True])},
            {"categorical_features": [False, True, False, True]},
        ),
        (
            {"categorical_features": pd.Index(["kind", "class"])},
            {"categorical_features": ["kind", "class"]},
        ),
        ({"random_state": np.random.RandomState(0)}, {"random_state": None}),
        (
            {"scoring": make_scorer(mean_absolute_error), "early_stopping": True},
            {"scoring": "loss"},
        ),
    ],
)
def test_parameters_come_back_as_plain_data(params, expected):
    table, y = mixed_table()
    model = boosted(**params).fit(table, y)
    native = fp.Forest.from_model(model).to_native()
    expected = model.get_params() | expected
    actual = native.get_params()
    for name, value in expected.items():
        assert actual[name] == value, name
    clone(native).fit(table, y)


def test_a_feature_may_have_any_name():
    X = pd.DataFrame({"estimator": np.arange(20.0), "params": np.arange(20.0) % 3})
    model = boosted(monotonic_cst={"estimator": 1, "params": 0}).fit(X, X["estimator"])
    native = fp.Forest.from_model(model).to_native()
    assert native.monotonic_cst == {"estimator": 1, "params": 0}
    same(raw(native, X), raw(model, X))


@pytest.mark.parametrize("name", MODELS)
def test_a_saved_forest_still_goes_back(name, tmp_path):
    table, y = mixed_table()
    forest = fp.Forest.from_model(MODELS[name]().fit(table, y - y.min() + 1)).truncate(2)
    assert origin_from_metadata(json.loads(json.dumps(asdict(forest.origin)))) == forest.origin
    forest.save(tmp_path / "forest.npz")
    loaded = fp.Forest.load(tmp_path / "forest.npz")
    assert loaded == forest
    np.testing.assert_array_equal(raw(loaded.to_native(), table), raw(forest.to_native(), table))
    # Made constant and compacted before it was saved, it has no tree left.
    constant = forest.truncate(0).compact()
    assert constant.n_trees == 0
    constant.save(tmp_path / "constant.npz")
    native = fp.Forest.load(tmp_path / "constant.npz").to_native()
    same(raw(native, table), constant.predict(table))
    check_is_fitted(native)
    assert native.n_iter_ == 1


def test_the_model_predicts_where_the_package_is_not_installed(tmp_path):
    table, y = mixed_table()
    native = fp.Forest.from_model(boosted().fit(table, y)).truncate(2).to_native()
    predicts_alone(native, table, tmp_path)


@pytest.mark.skipif(INTERPRETED, reason="goes through pruning from the outside")
@pytest.mark.parametrize("rule", ["subtree", "layer"])
def test_pruning_gives_a_small_model_of_the_same_class(rule):
    table, y = mixed_table(400)
    model = boosted(max_iter=20, learning_rate=0.1, min_samples_leaf=5).fit(table, y)
    small = fp.prune(model, table, y, max_nodes=60, rule=rule)
    native = small.to_native()
    assert 0 < sum(tree.nodes.size for (tree,) in native._predictors) <= 60
    same(native.predict(table), small.predict(table))
    assert len(pickle.dumps(native)) < len(pickle.dumps(model)) / 2
    assert native.score(table, y) > (0.8 if rule == "subtree" else 0.5)


# What the sum of trees stands for, and what is refused


def test_what_the_sum_of_trees_stands_for_is_told():
    X, y = np.arange(20.0)[:, np.newaxis], np.arange(1.0, 21.0)
    words = {
        name: fp.Forest.from_model(make().fit(X, y)).origin.predicts
        for name, make in MODELS.items()
    }
    assert words["squared error"] == words["absolute error"] == "y"
    assert words["quantile"] == "the 0.3 quantile of y"
    assert words["gamma"] == words["poisson"] == "the log of the mean of y"


@pytest.mark.parametrize("y", [[2.5], [2.5, 2.5, 2.5]])
@pytest.mark.parametrize("weight", [None, 2.0])
def test_one_row_and_a_constant_target(y, weight):
    X = np.zeros((len(y), 1))
    model = boosted().fit(X, y, sample_weight=None if weight is None else np.full(len(y), weight))
    forest = fp.Forest.from_model(model)
    same(forest.predict(X), y)
    same(forest.to_native().predict(X), y)


class Stubborn(HistGradientBoostingRegressor):
    def predict(self, X):
        return super().predict(X) + 1


def test_subclasses_and_unfitted_models_are_refused():
    X, y = np.arange(20.0)[:, np.newaxis], np.arange(20.0)
    with pytest.raises(fp.UnsupportedModelError, match="subclass of HistGradientBoostingRegressor"):
        fp.Forest.from_model(Stubborn(max_iter=2).fit(X, y))
    with pytest.raises(NotFittedError):
        fp.Forest.from_model(HistGradientBoostingRegressor())


def test_a_loss_of_ones_own_is_refused():
    X, y = np.arange(20.0)[:, np.newaxis], np.arange(20.0)
    model = boosted(loss=HalfSquaredError()).fit(X, y)
    with pytest.raises(fp.UnsupportedModelError, match="its loss is one of 'squared_error'"):
        fp.Forest.from_model(model)


def test_dates_as_categories_are_refused():
    days = pd.Categorical(pd.to_datetime(["2020-01-01", "2021-05-05"] * 20))
    X = pd.DataFrame({"day": days, "x": np.arange(40.0)})
    model = boosted().fit(X, X["x"])
    with pytest.raises(fp.UnsupportedModelError, match="categories are strings, numbers or truth"):
        fp.Forest.from_model(model)


def test_node_fields_of_the_future_are_refused(monkeypatch):
    X, y = np.arange(20.0)[:, np.newaxis], np.arange(20.0)
    model = boosted().fit(X, y)
    monkeypatch.setattr(sklearn_hist, "_NODE_FIELDS", sklearn_hist._NODE_FIELDS - {"gain"})
    with pytest.raises(fp.UnsupportedModelError, match="store 'gain'"):
        fp.Forest.from_model(model)


def test_sets_that_would_be_looked_for_outside_the_arrays_are_refused():
    table, y = mixed_table()
    forest = fp.Forest.from_model(boosted().fit(table, y))
    numeric = int(np.flatnonzero((forest.left >= 0) & (forest.category_set < 0))[0])
    sets = forest.category_set.copy()
    sets[numeric] = 0
    with pytest.raises(fp.UnsupportedModelError, match="only on columns with categories"):
        replace(forest, category_set=sets).to_native()
    wide = {"set_offsets": forest.set_offsets * 9, "set_words": np.repeat(forest.set_words, 9)}
    with pytest.raises(fp.UnsupportedModelError, match="at most 256"):
        replace(forest, **wide).to_native()
