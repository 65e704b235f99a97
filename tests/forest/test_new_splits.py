"""Trees with new splits: what becomes of the forest, and which splits may be."""

import sys
import types
from dataclasses import replace

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from new_trees import new_trees, stump
from small_forests import small
from strategies import forests, nodes, raw_tree, rows

import forestprune as fp
from forestprune.exceptions import InvalidForestError, UnsupportedModelError
from forestprune.forest import registry
from forestprune.forest.build import build_forest
from forestprune.forest.new_splits import (
    NewTree,
    SplitLimits,
    limits_of_rows,
    split_limits,
    with_new_trees,
)


def as_new_tree(root):
    """Return linked nodes as a NewTree; they come in level order already."""
    raw = raw_tree(root)
    size = raw.left.size
    return NewTree(
        left=raw.left,
        feature=raw.feature,  # leaves have odd ones, which must not matter
        threshold=raw.threshold,
        missing_left=raw.missing_left,
        value=raw.value,
        cover=raw.cover,
        gain=np.ones(size),
        rows=np.arange(size),
        left_categories=raw.left_categories,
    )


def chain(*columns):
    """Return a tree whose splits stand one below the other."""
    n = len(columns)
    left = np.full(2 * n + 1, -1)
    feature = np.full(2 * n + 1, -1)
    left[[0, *range(1, 2 * n - 1, 2)]] = range(1, 2 * n + 1, 2)
    feature[[0, *range(1, 2 * n - 1, 2)]] = columns
    size = left.size
    return NewTree(
        left=left,
        feature=feature,
        threshold=np.zeros(size),
        missing_left=np.zeros(size, bool),
        value=np.zeros((size, 1)),
        cover=np.ones(size),
        gain=np.zeros(size),
        rows=np.ones(size, int),
    )


@given(forests(categorical=False, min_trees=1), st.data())
def test_a_forest_with_new_trees_is_that_made_of_them(drawn, data):
    roots, forest = drawn
    outputs = forest.n_outputs
    chosen = data.draw(st.sets(st.integers(0, len(roots) - 1)))
    new = {i: data.draw(nodes(outputs=outputs, categorical=False)) for i in chosen}
    base = data.draw(st.lists(st.floats(-9, 9), min_size=outputs, max_size=outputs))
    changed = with_new_trees(forest, {i: as_new_tree(r) for i, r in new.items()}, base=base)
    mixed = [new.get(i, root) for i, root in enumerate(roots)]
    raw = [raw_tree(root) for root in mixed]
    expected = build_forest(
        raw,
        n_nodes=sum(tree.left.size for tree in raw),
        scale=forest.scale,
        base=base,
        input=forest.input,
        tree_extras={"number": np.arange(len(roots))},
    )
    assert replace(changed, node_extras={}) == replace(expected, node_extras={})
    # What nobody knows of the nodes of a new tree is 0.
    fresh = np.isin(changed.tree_of_node, list(new))
    assert (changed.node_extras["tag"][fresh] == 0).all()
    old = np.isin(forest.tree_of_node, list(new), invert=True)
    assert changed.node_extras["tag"][~fresh].tolist() == forest.node_extras["tag"][old].tolist()


@given(forests(min_trees=1), rows(), st.integers(0, 99))
def test_new_sets_of_categories_route_as_the_twin_says(drawn, X, seed):
    _, forest = drawn
    trees = new_trees(forest, X, np.random.default_rng(seed))
    changed = with_new_trees(forest, trees, base=forest.base)
    dtype = forest.input.dtype
    expected = naive.predict(naive.from_forest(changed), X, forest.scale, forest.base, dtype)
    assert np.allclose(changed.predict(X).reshape(expected.shape), expected)
    for number, tree in trees.items():
        a = changed.offsets[number]
        for node, left in tree.left_categories.items():
            s = changed.category_set[a + node]
            words = changed.set_words[changed.set_offsets[s] : changed.set_offsets[s + 1]]
            assert fp.forest.category_sets.unpack_categories(words) == tuple(sorted(left))


def test_forests_made_from_arrays_may_have_any_split():
    limits = split_limits(small())
    assert limits.missing.tolist() == [-1, -1]
    assert limits.usable.all()
    assert not limits.categorical.any()
    assert (limits.columns, limits.interactions, limits.most_columns) == (None, (), 0)


def test_where_missing_values_are_refused_they_never_occur():
    forest = small(input=fp.InputSpec(2, ("a", "b"), ensure_all_finite=True))
    assert split_limits(forest).missing.tolist() == [-2, -2]
    with pytest.raises(InvalidForestError, match="missing_left must be False on column 1"):
        with_new_trees(forest, {0: stump(1, missing_left=True)}, base=[0.0])


def test_columns_of_categories_are_those_split_by_sets_or_known_to_have_some():
    known = fp.InputSpec(2, ("a", "b"), categories=(("x", "y", "z"), None))
    limits = split_limits(small(input=known))
    assert limits.categorical.tolist() == [True, False]
    assert limits.max_category.tolist() == [3, 0]
    sets = {"category_set": [-1, -1, -1, 0, -1, -1, -1, -1], "set_offsets": [0, 1]}
    by_set = small(**sets, set_words=np.array([2], np.uint32))
    limits = split_limits(by_set)
    assert limits.categorical.tolist() == [False, True]
    assert limits.max_category[1] >= 2**20
    hashed = fp.InputSpec(2, ("a", "b"), hashed=((7, 8), None))
    assert split_limits(small(input=hashed)).max_category.tolist() == [3, 0]


def test_a_pruned_forest_is_held_to_what_the_original_knows():
    sets = {"category_set": [-1, -1, -1, 0, -1, -1, -1, -1], "set_offsets": [0, 1]}
    original = small(**sets, set_words=np.array([2], np.uint32))
    pruned = original.truncate(0)
    assert not split_limits(pruned).categorical.any()
    assert split_limits(pruned, original=original).categorical.tolist() == [False, True]
    new = {0: stump(1, left=[3])}
    assert with_new_trees(pruned, new, base=[0.0], original=original).n_nodes == 4
    with pytest.raises(InvalidForestError, match="splits on column 1 must be sets"):
        with_new_trees(pruned, {0: stump(1)}, base=[0.0], original=original)


KNOWN = fp.InputSpec(2, ("a", "b"), categories=(("x", "y", "z"), None))


@pytest.mark.parametrize(
    ("trees", "match"),
    [
        ({2: stump()}, "in place of trees 0 to 1, got 2"),
        ({-1: stump()}, "in place of trees 0 to 1, got -1"),
        ({0: stump(2)}, "node 0 of tree 0: there is no column 2"),
        ({1: stump(0)}, "node 0 of tree 1: splits on column 0 must be sets of categories"),
        ({1: stump(1, left=[0])}, "splits on column 1 must be thresholds"),
        ({1: stump(0, left=[3])}, "the categories of column 0 are below 3"),
        ({1: stump(0, left=[-1])}, "the categories of column 0 are below 3"),
    ],
)
def test_splits_beyond_the_limits_are_refused(trees, match):
    with pytest.raises(InvalidForestError, match=match):
        with_new_trees(small(input=KNOWN), trees, base=[0.0])
    assert with_new_trees(small(input=KNOWN), {1: stump(0, left=[0, 2])}, base=[0.0]).n_nodes == 6


@pytest.fixture
def woods(monkeypatch):
    """Return the module of a library, which knows nothing of new splits yet."""
    module = types.ModuleType("woods_interop")
    monkeypatch.setattr(registry, "_MODULES", dict(registry._MODULES))
    monkeypatch.setitem(sys.modules, "woods_interop", module)
    registry.register("woods", "woods_interop")
    return module


GROUPS = ((0, 1, 2), (2, 3))


@pytest.mark.parametrize(
    ("interactions", "sound", "refused"),
    [
        (GROUPS, [(0, 1, 2), (3, 2), (1, 1)], [(0, 3), (2, 1, 3)]),
        ("pairwise", [(0, 1, 0, 1), (3,)], [(0, 1, 2)]),
    ],
)
def test_columns_that_may_not_meet_are_refused(woods, interactions, sound, refused):
    woods.split_limits = limits_of_rows
    woods.new_node_extras = lambda _forest, _tree: {}
    origin = fp.Origin("woods", "Model", interactions=interactions)
    forest = small(input=fp.InputSpec(4), origin=origin)
    for columns in sound:
        assert with_new_trees(forest, {0: chain(*columns)}, base=[0.0]).n_trees == 2
    for columns in refused:
        with pytest.raises(InvalidForestError, match="interaction constraints"):
            with_new_trees(forest, {0: chain(*columns)}, base=[0.0])


def test_a_library_that_says_nothing_of_new_splits_gets_none(woods):
    forest = small(origin=fp.Origin("woods", "Model"))
    assert not hasattr(woods, "split_limits")
    for call in (split_limits, lambda forest: with_new_trees(forest, {}, base=[0.0])):
        with pytest.raises(UnsupportedModelError, match="has no function split_limits"):
            call(forest)


def test_a_library_adds_its_columns_and_its_limits(woods):
    woods.split_limits = lambda _forest: SplitLimits(
        missing=np.array([1, -1], np.int8),
        categorical=np.zeros(2, bool),
        usable=np.array([True, False]),
        max_category=np.zeros(2, int),
        columns=np.array([[True, True], [False, True]]),
    )
    woods.new_node_extras = lambda forest, tree: {"gain": tree.gain * forest.n_trees}
    woods.as_compared = np.floor
    extras = {"gain": np.arange(8.0), "other": np.arange(8)}
    forest = small(origin=fp.Origin("woods", "Model"), node_extras=extras)
    changed = with_new_trees(forest, {0: stump(0, 1.5, missing_left=True)}, base=[3.0])
    assert changed.threshold[:3].tolist() == [1.0, 0.0, 0.0]
    assert changed.node_extras["gain"].tolist() == [6.0, 0.0, 0.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    assert changed.node_extras["other"].tolist() == [0, 0, 0, 3, 4, 5, 6, 7]
    assert changed.base.tolist() == [3.0]
    assert changed.origin == forest.origin
    for trees, match in (
        ({0: stump(0)}, "missing_left must be True on column 0"),
        ({0: stump(1)}, "column 1 is not usable"),
        ({1: stump(0, missing_left=True)}, "its tree does not know column 0"),
    ):
        with pytest.raises(InvalidForestError, match=match):
            with_new_trees(forest, trees, base=[0.0])
