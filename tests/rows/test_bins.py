"""Columns in bins: every row is where its bin says, before and after a library has compared it."""

from dataclasses import replace

import naive_splits
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from new_trees import stump
from sklearn.ensemble import ExtraTreesRegressor
from small_forests import small
from strategies import N_FEATURES, NUMBERS, forests, rows

import forestprune as fp
from forestprune.forest.new_splits import SplitLimits, split_limits, with_new_trees
from forestprune.kernels.records import MOST_BINS, NUMERIC
from forestprune.rows import bins as module
from forestprune.rows.bins import make_bins, most_bins

CODES = 41


def nameless(**changes):
    """Return a small forest whose columns have no names."""
    return small(input=fp.InputSpec(2), **changes)


def limits_of(kinds, *, one_category=False):
    """Return limits; of each column it is known whether it is one of categories, or None is."""
    categorical = np.array([kind == "set" for kind in kinds])
    known = {"set": -2, "none": -2, "left": 1, "right": 0, "either": -1}
    return SplitLimits(
        missing=np.array([known[kind] for kind in kinds], np.int8),
        categorical=categorical,
        usable=np.ones(len(kinds), bool),
        max_category=np.where(categorical, CODES, 0),
        one_category=one_category,
    )


def without_missing(X, kinds):
    """Return rows that have NaN only where it may be."""
    return np.where(np.isnan(X) & [kind == "none" for kind in kinds], 0.5, X)


kinds = st.lists(
    st.sampled_from(["set", "none", "left", "right", "either"]),
    min_size=N_FEATURES,
    max_size=N_FEATURES,
)


@given(forests(categorical=False), rows(), rows(), kinds, st.booleans(), st.sampled_from([1, 3]))
def test_rows_are_in_the_bins_that_borders_make(drawn, some, others, kinds, one, n_jobs):
    _, forest = drawn
    limits = limits_of(kinds, one_category=one)
    matrix = forest.input.matrix(without_missing(some, kinds))
    bins = make_bins(forest, matrix, limits)
    for X in (matrix, forest.input.matrix(without_missing(others, kinds))):
        expected = [
            [
                naive_splits.bin_of(
                    float(x),
                    bins.borders[column].tolist(),
                    categorical=kinds[column] == "set",
                    with_missing=kinds[column] != "none",
                )
                for x in X[:, column]
            ]
            for column in range(N_FEATURES)
        ]
        assert bins.of(X, n_jobs).tolist() == expected
    assert bins.columns.first[-1] <= most_bins(forest, limits)
    assert [bins.count(column) for column in range(N_FEATURES)] == [
        len(borders) + 1 + (kind in ("left", "right", "either"))
        for borders, kind in zip(bins.borders, kinds, strict=True)
    ]


@given(forests(categorical=False), rows())
def test_numbers_that_differ_are_told_apart_and_thresholds_are_borders(drawn, X):
    _, forest = drawn
    matrix = forest.input.matrix(X)
    bins = make_bins(forest, matrix, split_limits(forest))
    of_rows = bins.of(matrix)
    for column in range(N_FEATURES):
        own = forest.threshold[(forest.left >= 0) & (forest.feature == column)]
        assert set(own) <= set(bins.borders[column])
        x = matrix[:, column]
        there = ~np.isnan(x)
        assert np.unique(of_rows[column, there]).size == np.unique(x[there]).size
        # Between two numbers there is one border that is not the forest's own, or none.
        new = np.setdiff1d(bins.borders[column], own)
        between = np.searchsorted(np.unique(x[there]), new, side="right")
        assert np.unique(between).size == between.size


EXTREMES = [*NUMBERS, 1e-45, -1e-45, 2e-36, 1e-35, -1e-35, 1.1e-35, np.inf, -np.inf]
EXTREMES += [float(s * np.finfo(f).max) for s in (-1, 1) for f in ("f4", "f8")]


def fitted(library):
    """Return a small model of a library."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 1)), rng.normal(size=60)
    if library == "lightgbm":
        lightgbm = pytest.importorskip("lightgbm")
        return lightgbm.LGBMRegressor(n_estimators=1, min_data_in_leaf=5, verbose=-1).fit(X, y)
    if library == "catboost":
        catboost = pytest.importorskip("catboost")
        how = {"verbose": 0, "allow_writing_files": False, "grow_policy": "Depthwise"}
        return catboost.CatBoostRegressor(iterations=1, depth=2, **how).fit(X, y)
    if library == "xgboost":
        xgboost = pytest.importorskip("xgboost")
        return xgboost.XGBRegressor(n_estimators=1, max_depth=2, n_jobs=1).fit(X, y)
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.tree import DecisionTreeRegressor

    if library == "hist":
        return HistGradientBoostingRegressor(max_iter=1).fit(X, y)
    return DecisionTreeRegressor(max_depth=2).fit(X, y)


@pytest.fixture(scope="module")
def models():
    return {}


@pytest.mark.parametrize("library", ["sklearn", "hist", "xgboost", "lightgbm", "catboost"])
@given(x=st.lists(st.sampled_from(EXTREMES) | st.floats(width=32), min_size=1, max_size=8))
def test_thresholds_part_rows_as_their_bins_do(models, library, x):
    """Also if the library compares in its own way, and next to every border."""
    if library not in models:
        models[library] = fp.Forest.from_model(fitted(library))
    forest = models[library]
    x = np.array(x)[:, np.newaxis]
    if forest.input.ensure_all_finite is not False or library == "sklearn":
        x = x[np.isfinite(x[:, 0]) & (np.abs(x[:, 0]) <= float(np.finfo("f4").max))]
    if not x.size:
        return
    with np.errstate(over="ignore"):
        matrix = forest.input.matrix(x)
    bins = make_bins(forest, matrix, split_limits(forest))
    cells = [matrix, bins.borders[0][:, np.newaxis].astype(matrix.dtype)]
    for towards in (-1e38, 1e38):
        cells.append(np.nextafter(cells[1], cells[1].dtype.type(towards)))
    near = forest.input.matrix(np.concatenate(cells))
    found = bins.of(near)[0]
    for border, threshold in enumerate(bins.borders[0].tolist()):
        changed = with_new_trees(forest, {0: stump(0, threshold, missing_left=True)}, base=[0.0])
        assert np.isfinite(changed.threshold).all()
        codes = fp.encode(changed, near).codes[0]
        absent = bins.count(0) - 1 if bins.columns.missing[0] > -2 else -1
        assert ((codes == 0) == ((found <= border) | (found == absent))).all()


@pytest.mark.parametrize("missing", ["none", "either"])
def test_columns_with_many_numbers_and_many_thresholds_get_no_more_bins_than_fit(missing):
    rng = np.random.default_rng(0)
    x = rng.permutation(3000).astype(float)
    offsets = 3 * np.arange(301)
    numbers = {
        "offsets": offsets,
        "left": np.tile([1, -1, -1], 300),
        "feature": np.tile([0, -1, -1], 300),
        "threshold": np.ravel(np.column_stack([np.arange(300) + 0.25, np.zeros((300, 2))])),
        "missing_left": np.zeros(900, bool),
        "value": np.zeros((900, 1)),
        "cover": np.ones(900),
        "scale": np.ones(300),
    }
    forest = nameless(**numbers)
    matrix = forest.input.matrix(np.column_stack([x, np.full(3000, 7.0)]))
    bins = make_bins(forest, matrix, limits_of([missing, missing]))
    assert bins.count(0) <= MOST_BINS
    assert bins.borders[0].size > 200
    own = np.isin(bins.borders[0], forest.threshold)
    assert own.sum() == module.MOST_OWN
    # Where the forest has no thresholds, there are about as many rows in each bin.
    sizes = np.diff(np.searchsorted(np.sort(x), bins.borders[0][~own]))
    assert sizes.max() <= 2 * sizes.min()
    assert bins.of(matrix)[0].max() == bins.borders[0].size
    # A column with one number cannot be split.
    assert bins.borders[1].size == 0
    assert bins.of(matrix)[1].max() == 0


def test_about_as_many_rows_are_in_each_bin_however_numbers_are_spread():
    rng = np.random.default_rng(0)
    forest = nameless().truncate(0)
    often = np.repeat([0.0, 1.0], 4000)
    x = np.concatenate([often, rng.exponential(size=4000)])
    matrix = forest.input.matrix(np.column_stack([x, x]))
    bins = make_bins(forest, matrix, limits_of(["none", "either"]))
    for column in range(2):
        sizes = np.bincount(bins.of(matrix)[column])
        assert bins.count(column) <= MOST_BINS
        # The two numbers that are there so often have bins that no other border could part.
        assert np.sort(sizes)[-3] < 3 * len(x) / 255


def test_columns_without_numbers_and_with_few():
    forest = nameless()
    for x in ([np.nan], [np.nan, 1.0], [3.0, 3.0]):
        matrix = forest.input.matrix(np.column_stack([x, x]))
        bins = make_bins(forest, matrix, split_limits(forest))
        assert bins.borders[0].tolist() == [0.5, 2.5]  # the forest's own
        expected = [3 if np.isnan(each) else 1 if each == 1.0 else 2 for each in x]
        assert bins.of(matrix)[0].tolist() == expected


@pytest.mark.parametrize("most", [1.0, 3e38])
@pytest.mark.parametrize("kind", ["left", "right", "either"])
def test_a_border_parts_what_is_missing_from_all_numbers(kind, most):
    forest = nameless().truncate(0)
    x = np.array([np.nan, -most, 0.0, most, np.nan])
    matrix = forest.input.matrix(np.column_stack([x, np.zeros(5)]))
    bins = make_bins(forest, matrix, limits_of([kind, kind]))
    inner = [border for border in bins.borders[0] if -most <= border < most]
    beyond = np.setdiff1d(bins.borders[0], inner)
    assert beyond.size == 1
    assert np.isfinite(beyond).all()
    assert (beyond < -most) if kind == "left" else (beyond >= most)
    assert bins.borders[1].size == 0  # nothing is missing


def test_zeros_of_both_signs_are_one_number():
    forest = nameless().truncate(0)
    matrix = forest.input.matrix(np.array([[0.0, -0.0], [-0.0, 0.0]]))
    bins = make_bins(forest, matrix, limits_of(["none", "none"]))
    assert [borders.size for borders in bins.borders] == [0, 0]


def test_the_most_frequent_categories_get_bins():
    forest = nameless().truncate(0)
    rng = np.random.default_rng(0)
    often, rare = np.arange(0, 508, 2), np.arange(1, 509, 2)
    codes = rng.permutation(np.concatenate([often, often, rare])).astype(float)
    limits = replace(limits_of(["set", "none"]), max_category=np.array([600, 0]))
    matrix = forest.input.matrix(np.column_stack([codes, codes]))
    bins = make_bins(forest, matrix, limits)
    assert bins.count(0) == 255
    assert bins.borders[0].tolist() == often.tolist()
    strange = forest.input.matrix(np.array([[c, 0.0] for c in (2, 3, 599, 600, 1e9, -1, np.nan)]))
    assert bins.of(strange)[0].tolist() == [1, *[254] * 6]


def test_where_one_category_is_asked_for_the_last_code_is_any_other():
    forest = nameless().truncate(0)
    limits = replace(limits_of(["set", "set"], one_category=True), max_category=np.array([3, 3]))
    matrix = forest.input.matrix(np.array([[0.0, 2.0], [1.0, 2.0], [2.0, 2.0]]))
    bins = make_bins(forest, matrix, limits)
    assert [borders.tolist() for borders in bins.borders] == [[0.0, 1.0], []]
    assert bins.of(matrix).tolist() == [[0, 1, 2], [0, 0, 0]]


def test_of_many_rows_some_say_where_borders_are(monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS", 100)
    forest = nameless().truncate(0)
    x = np.arange(100_000.0)
    matrix = forest.input.matrix(np.column_stack([x, x]))
    bins = make_bins(forest, matrix, limits_of(["none", "either"]))
    sizes = np.bincount(bins.of(matrix)[0])
    assert sizes.size == 100
    assert sizes.max() < 1600
    assert (bins.columns.kind == NUMERIC).all()


def test_categories_have_no_order_that_a_sign_could_keep():
    forest = small(input=fp.InputSpec(2), origin=fp.Origin("sklearn", "Model", monotone=(1, -1)))
    matrix = forest.input.matrix(np.array([[0.0, 1.0], [1.0, 0.0]]))
    assert make_bins(forest, matrix, limits_of(["set", "either"])).columns.sign.tolist() == [0, -1]


def test_many_columns_have_fewer_borders_each():
    x = np.random.default_rng(0).random((2000, 400))
    y = x[:, 0] + 0.1 * np.random.default_rng(1).random(2000)
    model = ExtraTreesRegressor(40, max_depth=3, random_state=0).fit(x[:, :400], y)
    forest = fp.Forest.from_model(model)
    bins = make_bins(forest, forest.input.matrix(x), limits_of(["none"] * 400))
    for column in range(400):
        own = np.unique(forest.threshold[(forest.left >= 0) & (forest.feature == column)])
        kept = min(own.size, module.MOST_OWN)
        assert np.isin(own, bins.borders[column]).sum() == kept
        # Two that are wanted may be the same number.
        assert 45 <= bins.borders[column].size <= max(module.MOST_IN_ALL // 400, kept)
