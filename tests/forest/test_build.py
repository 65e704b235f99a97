from itertools import pairwise

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import forests

from forestprune import InputSpec, InvalidForestError
from forestprune.forest.build import RawTree, build_forest
from forestprune.forest.category_sets import pack_categories
from forestprune.kernels.sums import average_up

SPEC = InputSpec(n_features=2)


def tree(left, right, **changes):
    n = len(left)
    arrays = {
        "left": np.array(left),
        "right": np.array(right),
        "feature": np.zeros(n, int),
        "threshold": np.arange(n, dtype=float),
        "missing_left": np.zeros(n, bool),
        "cover": np.ones(n),
        "value": np.arange(n, dtype=float)[:, np.newaxis],
    }
    return RawTree(**(arrays | changes))


def build(*trees):
    n_nodes = sum(t.left.size for t in trees)
    return build_forest(trees, n_nodes=n_nodes, scale=np.ones(len(trees)), base=[0.0], input=SPEC)


@given(forests())
def test_nodes_are_sorted_into_level_order(drawn):
    roots, forest = drawn
    order = [node for root in roots for node in naive.level_order(root)]
    assert forest.n_nodes == len(order)
    for v, node in enumerate(order):
        assert list(forest.value[v]) == node.value
        assert forest.cover[v] == node.cover
        assert forest.node_extras.get("tag")[v] == id(node) % 97
        assert (forest.left[v] < 0) == node.is_leaf
        if not node.is_leaf:
            assert forest.feature[v] == node.feature
            assert forest.threshold[v] == node.threshold
            assert forest.missing_left[v] == node.missing_left
        else:
            assert (forest.feature[v], forest.threshold[v], forest.missing_left[v]) == (
                -1,
                0,
                False,
            )


def test_a_node_that_is_not_reached_is_left_out():
    forest = build(tree([3, -1, -1, -1, -1], [4, -1, -1, -1, -1]))
    assert forest.n_nodes == 3
    np.testing.assert_array_equal(forest.value[:, 0], [0, 3, 4])


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ([1, 0, -1], [2, 2, -1], "not a tree"),
        ([1, -1, -1], [1, -1, -1], "not a tree"),
        ([0, -1, -1], [1, -1, -1], "not a tree"),
        ([1, -1, -1], [3, -1, -1], "two children among the 3"),
        ([1, -1, -1], [-1, -1, -1], "two children among the 3"),
        ([], [], "must have a root"),
        ([-1], [-1, -1], "as many entries"),
        ([2**32 + 1, -1, -1], [2**32 + 2, -1, -1], "two children among the 3"),
    ],
)
def test_what_is_not_a_tree_is_refused(left, right, message):
    with pytest.raises(InvalidForestError, match=message):
        build(tree(left, right))


def test_n_nodes_must_cover_the_trees():
    with pytest.raises(ValueError, match="n_nodes must cover"):
        build_forest([tree([-1], [-1])], n_nodes=0, scale=[1.0], base=[0.0], input=SPEC)


def test_numbers_that_do_not_fit_are_not_wrapped_around():
    children = np.array([-(2**32) + 1, -1, -1])
    assert build(tree(children, children)).n_nodes == 1
    with pytest.raises(InvalidForestError, match="below n_features"):
        build(tree([1, -1, -1], [2, -1, -1], feature=np.full(3, 2**32)))
    with pytest.raises(InvalidForestError, match="as many entries in every column"):
        build(tree([1, -1, -1], [2, -1, -1], cover=np.ones(2)))


@given(forests())
def test_values_can_be_averaged_up_from_the_leaves(drawn):
    roots, forest = drawn
    value = forest.value.copy()
    for a, b in pairwise(forest.offsets):
        average_up(forest.left[a:b], forest.cover[a:b], value[a:b])
    order = [node for root in roots for node in naive.level_order(root)]
    expected = [naive.average_of_leaves(node)[0] for node in order]
    np.testing.assert_allclose(value, np.reshape(expected, value.shape), rtol=1e-12, atol=1e-12)


@given(st.frozensets(st.integers(0, 200)))
def test_packed_categories_are_the_ones_given(categories):
    words = pack_categories(sorted(categories))
    assert {32 * w + c for w, word in enumerate(words) for c in range(32) if word >> c & 1} == (
        categories
    )


def test_a_negative_category_is_refused():
    with pytest.raises(InvalidForestError, match="negative"):
        pack_categories([1, -2])
