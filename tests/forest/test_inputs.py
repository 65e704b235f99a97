import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.ensemble import RandomForestRegressor

import forestprune as fp
from forestprune import InputSpec

NAMES = ("a", "b", "c")
X = np.array([[0.1, 2, 3], [1 / 3, 5, 6]])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "table",
    [
        X,
        np.asfortranarray(X),
        X.tolist(),
        X.astype(object),
        pd.DataFrame(X, columns=NAMES),
        pd.DataFrame(X, columns=NAMES).convert_dtypes(),
        pl.DataFrame(X, schema=list(NAMES)),
        pl.DataFrame(X, schema=list(NAMES)).with_columns(pl.col("c").cast(pl.Int32)),
    ],
)
def test_tables_of_every_make_become_the_same_matrix(table, dtype):
    matrix = InputSpec(n_features=3, dtype=dtype).matrix(table)
    assert matrix.dtype == dtype
    assert matrix.flags.c_contiguous
    np.testing.assert_array_equal(matrix, X.astype(dtype))


def test_missing_values_of_every_make_become_nan():
    expected = X.copy()
    expected[0, 1] = np.nan
    spec = InputSpec(n_features=3)
    nullable = pd.DataFrame(X, columns=NAMES).convert_dtypes()
    nullable.loc[0, "b"] = pd.NA
    nulls = pl.DataFrame({"a": X[:, 0], "b": [None, 5], "c": [3, 6]})
    for table in (expected, nullable, nulls):
        np.testing.assert_array_equal(spec.matrix(table), expected)


def test_finite_means_finite():
    nan, inf = np.array([[np.nan]]), np.array([[np.inf]])
    with pytest.raises(ValueError, match="NaN"):
        InputSpec(n_features=1, ensure_all_finite=True).matrix(nan)
    with pytest.raises(ValueError, match="infinity"):
        InputSpec(n_features=1).matrix(inf)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_largest_numbers_there_are_need_no_warning(dtype):
    largest = np.finfo(dtype).max
    # Added up in the order of any loop, some of their sums are infinite with either sign.
    extremes = np.repeat([largest, -largest], 16)[np.random.default_rng(0).permutation(32)]
    for column in (extremes, np.repeat([largest, -largest], 16), np.tile(extremes, 9)):
        matrix = InputSpec(n_features=1, dtype=dtype).matrix(column[:, np.newaxis])
        np.testing.assert_array_equal(matrix[:, 0], column)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_infinite_numbers_count_as_the_largest_that_thresholds_can_be(dtype):
    """So that a finite threshold can send all of them left."""
    rows = np.array([[np.inf, -np.inf, np.nan, 2.5]])
    most = np.finfo(dtype).max if dtype == "float64" else np.inf
    matrix = InputSpec(n_features=4, dtype=dtype, ensure_all_finite=False).matrix(rows)
    np.testing.assert_array_equal(matrix, np.array([[most, -most, np.nan, 2.5]], dtype))
    assert np.isinf(rows).sum() == 2


def test_lists_may_hold_categories():
    spec = InputSpec(n_features=2, categories=((7, 9), None), numbers="values")
    np.testing.assert_array_equal(spec.matrix([[9, 1.5], [7, 2]]), [[1, 1.5], [0, 2]])
    spec = InputSpec(n_features=3, categories=(("a", "b"), (7, 9), None), numbers="values")
    np.testing.assert_array_equal(spec.matrix([["b", 7, 1.5]]), [[1, 0, 1.5]])
    spec = InputSpec(n_features=2, categories=(("a", "b"), None), numbers="codes")
    np.testing.assert_array_equal(spec.matrix([[1, 1.5]]), [[1, 1.5]])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (X[:, :2], "X has 2 columns, but the model was trained on 3"),
        (X[0], r"X must be a table with a column for each of the 3 features, got shape \(3,\)"),
        (np.empty((0, 3)), "0 sample"),
        ([["x", 1, 2]], "could not convert"),
    ],
)
def test_shapes_and_types_are_checked(table, message):
    with pytest.raises(ValueError, match=message):
        InputSpec(n_features=3).matrix(table)


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_features": "3"},
        {"n_features": 3.0},
        {"n_features": -1},
        {"n_features": 10**30},
        {"n_features": True},
        {"n_features": 3, "dtype": "int8"},
        {"n_features": 3, "ensure_all_finite": "yes"},
        {"n_features": 1, "feature_names": "a"},
        {"n_features": 1, "feature_names": (1,)},
        {"n_features": 1, "marked_categories": ("a",)},
        {"n_features": 1, "categories": (None,), "marked_categories": (("a",),)},
    ],
)
def test_the_spec_checks_itself(wrong):
    with pytest.raises(TypeError, match=f"{list(wrong)[-1]} must be"):
        InputSpec(**wrong)


def test_a_spec_is_plain_data():
    spec = InputSpec(n_features=np.int64(2), feature_names=["a", "b"])
    assert spec == InputSpec(n_features=2, feature_names=("a", "b"))
    assert type(spec.n_features) is int


def test_names_of_which_some_are_strings_are_refused():
    with pytest.raises(TypeError, match="all strings or none, got 1 strings among 3"):
        InputSpec(n_features=3).matrix(pd.DataFrame(X, columns=["a", 1, 2]))


def test_sparse_is_refused():
    with pytest.raises(TypeError, match="toarray"):
        InputSpec(n_features=3).matrix(sparse.csr_array(X))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_text_columns_are_named(make):
    table = make({"a": [1.0, 2.0], "b": ["red", "blue"], "c": [1, 2]})
    with pytest.raises(ValueError, match="these columns are not: 'b'"):
        InputSpec(n_features=3).matrix(table)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_names_are_checked(make):
    spec = InputSpec(n_features=3, feature_names=NAMES)
    columns = dict(zip(NAMES, X.T, strict=True))
    spec.matrix(make(columns))
    with pytest.raises(ValueError, match="in the order of training"):
        spec.matrix(make({name: columns[name] for name in "cab"}))
    with pytest.raises(ValueError, match="Missing: 'c'; not seen at training: 'd'"):
        spec.matrix(make({"a": X[:, 0], "b": X[:, 1], "d": X[:, 2]}))
    with pytest.raises(ValueError, match="Missing: 'c'; not seen at training: none"):
        spec.matrix(make({"a": X[:, 0], "b": X[:, 1]}))
    many = make({f"x{i}": [1.0] for i in range(9)})
    with pytest.raises(ValueError, match="'x4' and 4 more"):
        spec.matrix(many)


def test_columns_without_names_are_taken_in_order_with_a_warning():
    spec = InputSpec(n_features=3, feature_names=NAMES)
    with pytest.warns(UserWarning, match="in the order of training"):
        spec.matrix(X)
    with pytest.warns(UserWarning, match="in the order of training"):
        spec.matrix(pd.DataFrame(X))


def test_the_warning_points_at_the_caller():
    model = RandomForestRegressor(2, random_state=0).fit(pd.DataFrame(X, columns=NAMES), [0, 1])
    forest = fp.Forest.from_model(model)
    for call in (forest.predict, lambda table: fp.encode(forest, table)):
        with pytest.warns(UserWarning, match="no column names") as caught:
            call(X)
        assert caught[0].filename == __file__


def test_frames_of_both_makes_predict_as_the_library_does():
    frame = pd.DataFrame(X, columns=NAMES)
    model = RandomForestRegressor(2, random_state=0).fit(frame, [0, 1])
    forest = fp.Forest.from_model(model)
    for table in (frame, pl.DataFrame({name: frame[name].to_numpy() for name in NAMES})):
        np.testing.assert_array_equal(forest.predict(table), model.predict(frame))


def test_underscores_stand_for_spaces():
    spec = InputSpec(n_features=2, feature_names=("the_a", "b"), underscores=True)
    for name in ("the a", "the_a"):
        spec.matrix(pd.DataFrame({name: [1.0], "b": [2.0]}))
    strict = InputSpec(n_features=2, feature_names=("the_a", "b"))
    with pytest.raises(ValueError, match="Missing: 'the_a'; not seen at training: 'the a'"):
        strict.matrix(pd.DataFrame({"the a": [1.0], "b": [2.0]}))
    with pytest.raises(ValueError, match="Missing: 'the_a'"):
        spec.matrix(pd.DataFrame({"thea": [1.0], "b": [2.0]}))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_a_frame_marks_the_columns_with_categories(make):
    spec = InputSpec(n_features=3, marked_categories=(("x", "y"), ("u",)))
    table = make({"a": ["y", "x", "z"], "b": [0.5, 1.5, 2.5], "c": ["u", "u", None]})
    if make is pd.DataFrame:
        table = table.astype({"a": "category", "c": "category"})
    else:
        table = table.with_columns(pl.col("a", "c").cast(pl.Categorical))
    expected = [[1, 0.5, 0], [0, 1.5, 0], [np.nan, 2.5, np.nan]]
    np.testing.assert_array_equal(spec.matrix(table), expected)
    np.testing.assert_array_equal(spec.matrix(np.array(expected)), expected)
    with pytest.raises(ValueError, match=r"must mark 1 columns .* it marks 2: 'a', 'c'"):
        InputSpec(n_features=3, marked_categories=(("x", "y"),)).matrix(table)
    with pytest.raises(ValueError, match=r"must mark 2 columns .* it marks 0: none"):
        spec.matrix(make({"a": [1.0], "b": [1.0], "c": [1.0]}))
