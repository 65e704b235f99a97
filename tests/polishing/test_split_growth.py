"""Trees grown anew, and their splits chosen anew from the leaves up, against their slow twins."""

from itertools import pairwise

import naive_splits
import numpy as np
import pytest
from binned_nodes import NEXT_TO_NOTHING, NodeCase, node_cases
from hypothesis import given
from hypothesis import strategies as st
from naive_splits import NUMERIC, ONE_RIGHT, SETS

from forestprune.kernels.records import BinnedColumns, SplitPrice
from forestprune.polishing.split.allowed import Allowed
from forestprune.polishing.split.finder import Finder
from forestprune.polishing.split.grow import Growth
from forestprune.polishing.split.reform import Reform
from forestprune.polishing.split.rows import Asked
from forestprune.polishing.split.values import LeafValues
from forestprune.system.threads import Crew

NOWHERE = -7


def allowed_of(columns, **limits):
    return Allowed(np.asarray(columns, np.int64), **limits)


def grown(case, n_leaves, *, allowed=None, used=None, **how):
    """Return a tree grown on the rows of a case, and the leaf that each row is in."""
    used = np.arange(case.weight.size) if used is None else used
    leaf = np.full(case.weight.size, NOWHERE, np.int32)
    growth = Growth(
        Finder(case.bins, case.about, Crew(1)),
        Asked(case.asked, case.weight),
        used.astype(np.int32),
        allowed or allowed_of(case.columns),
        n_leaves,
        case.price,
        **how,
    )
    return growth.grow(leaf), leaf


def reached(case, tree):
    """Return the leaf that each row reaches by what splits say of bins."""
    leaves = []
    for row in range(case.weight.size):
        v = 0
        while tree.left[v] >= 0:
            v = tree.left[v] + (not tree.goes_left[v, case.bins[tree.feature[v], row]])
        leaves.append(int(v))
    return leaves


def parts(leaves, weight):
    """Return which rows are together, given those of each leaf.

    Rows without weight may be on either side of a split: its gain is the same.
    """
    counted = [frozenset(row for row in rows if weight[row] > 0.0) for rows in leaves]
    return {rows for rows in counted if rows}


def ends_of_leaves(case, tree, ends, rows=None, v=0):
    """Yield each leaf of a tree, and what its values are bounded by.

    By the splits that the tree has: others that part the rows in the same way gain as much.
    """
    rows = np.arange(case.weight.size) if rows is None else rows
    if tree.left[v] < 0:
        yield v, ends
        return
    column, child = tree.feature[v], tree.left[v]
    goes = tree.goes_left[v, case.bins[column, rows]].astype(bool)
    sides, sign = [rows[goes], rows[~goes]], case.about.sign[column]
    bounds = naive_splits.ends_of_sides(case.asked, case.weight, sides, sign, case.price, ends)
    for side, (some, end) in enumerate(zip(sides, bounds, strict=True)):
        yield from ends_of_leaves(case, tree, end, some, child + side)


def exact(case):
    """Let sets be found for certain: see `naive_splits`."""
    if (case.about.kind == SETS).any():
        case.price = case.price._replace(least_weight=NEXT_TO_NOTHING)
    # No two sets of rows gain the same.
    rng = np.random.default_rng(case.weight.size)
    case.asked = case.asked + 0.01 * rng.normal(size=case.asked.shape) * (case.weight > 0)
    return case


GROUPS = ((), (frozenset({0, 1}), frozenset({1, 2})), (frozenset({0}), frozenset({1, 2})))


@given(
    node_cases(),
    st.integers(1, 6),
    st.none() | st.integers(1, 3),
    st.sampled_from(GROUPS),
    st.integers(0, 2),
)
def test_the_split_that_gains_most_is_taken_first(case, n_leaves, max_depth, groups, most):
    case = exact(case)
    bounded = bool(case.ends[0].size)
    if not bounded:
        case.about.sign[:] = 0
    groups = tuple(group & set(case.columns.tolist()) for group in groups)
    allowed = allowed_of(case.columns, groups=groups, most=most)
    tree, leaf = grown(case, n_leaves, allowed=allowed, max_depth=max_depth, bounded=bounded)
    unbounded = [np.full(len(case.asked), end) for end in (-np.inf, np.inf)]
    expected = naive_splits.grown(
        case.bins,
        case.asked,
        case.weight,
        case.about,
        case.price,
        n_leaves,
        may=lambda columns: (
            (not groups or any(columns <= group for group in groups))
            and (not most or len(columns) <= most)
        ),
        max_depth=max_depth,
        ends=unbounded if bounded else None,
    )
    assert leaf.tolist() == reached(case, tree)
    found = parts([np.flatnonzero(leaf == v) for v in np.unique(leaf)], case.weight)
    assert (found, tree.n_leaves) in [
        (parts([part.rows for part in leaves], case.weight), len(leaves)) for leaves in expected
    ]
    assert (tree.node == -1).all()
    if bounded:
        for v, ends in ends_of_leaves(case, tree, unbounded):
            np.testing.assert_allclose(tree.low[:, v], ends[0], atol=1e-9)
            np.testing.assert_allclose(tree.high[:, v], ends[1], atol=1e-9)


@given(node_cases())
def test_with_two_leaves_it_is_the_best_stump(case):
    case = exact(case)
    case.about.sign[:] = 0
    case.ends = (np.empty(0), np.empty(0))
    tree, leaf = grown(case, 2)
    gain, _, lefts = naive_splits.best_of(
        case.columns, case.bins, case.asked, case.weight, case.about, case.price
    )
    asked = Asked(case.asked, case.weight)
    values = LeafValues(case.price.shrinkage)
    alone, _ = grown(case, 1)
    least = values.settle(alone, np.zeros_like(leaf), asked)
    assert values.settle(tree, leaf, asked) - least == pytest.approx(max(gain, 0.0), abs=1e-9)
    assert (tree.n_leaves == 2) == (lefts is not None and gain > 0.0)
    if tree.n_leaves == 2:
        assert tree.gain[0] == pytest.approx(gain)


@given(node_cases(), st.integers(1, 5))
def test_rows_that_do_not_count_are_left_alone(case, n_leaves):
    case.about.sign[:] = 0
    used = np.flatnonzero(case.weight > 0.0)
    tree, leaf = grown(case, n_leaves, used=used)
    again, of_all = grown(case, n_leaves)
    assert tree.left.tolist() == again.left.tolist()
    assert (leaf[used] == of_all[used]).all()
    assert (np.delete(leaf, used) == NOWHERE).all()


def test_splits_that_gain_nothing_are_not_made():
    """There are fewer leaves than there may be where rows ask for the same, or are too few."""
    case = many_rows(0, n=40)
    case.asked[:], case.weight[:] = 1.0, 1.0
    assert grown(case, 5)[0].n_leaves == 1
    case.asked[0, :20], case.bins[0, :20], case.bins[0, 20:] = -1.0, 0, 1
    assert grown(case, 5)[0].n_leaves == 2
    case.price = SplitPrice(0.0, 21.0, False)
    assert grown(case, 5)[0].n_leaves == 1


# Splits chosen anew from the leaves up


def many_rows(seed, n=200, kinds=(NUMERIC, SETS, ONE_RIGHT), outputs=1):
    """Return a node with many rows that ask for something of their bins."""
    rng = np.random.default_rng(seed)
    counts = np.full(len(kinds), 5)
    about = BinnedColumns(
        first=np.cumsum([0, *counts]),
        kind=np.array(kinds, np.int8),
        sign=np.zeros(len(kinds), np.int8),
        missing=np.where(np.array(kinds) == NUMERIC, -1, -2).astype(np.int8),
    )
    bins = rng.integers(0, 5, (len(kinds), n)).astype(np.uint8)
    told = rng.normal(size=(outputs, 5))[:, bins[0]] * rng.normal(size=5)[bins[-1]]
    asked = told + 0.5 * rng.normal(size=(outputs, n))
    weight = rng.choice([0.5, 1.0, 2.0], n)
    price = SplitPrice(2.0, NEXT_TO_NOTHING, False)
    return NodeCase(about, bins, asked * weight, weight, price, (np.empty(0), np.empty(0)))


def below(tree, v):
    """Return the nodes of a subtree."""
    nodes = [v]
    for node in nodes:  # which grows
        if tree.left[node] >= 0:
            nodes += [int(tree.left[node]), int(tree.left[node]) + 1]
    return nodes


def leaf_from(case, tree, v, row):
    """Return the leaf below node v that a row reaches."""
    while tree.left[v] >= 0:
        v = int(tree.left[v]) + (not tree.goes_left[v, case.bins[tree.feature[v], row]])
    return v


def choices(case, leaf, tree):
    """Yield for each split its number, and what the old one, the new one, and the best one gain.

    From what came of all: rows were in `leaf` when a node had its turn, since those above it come
    later, and below it `tree` was what it is now.
    """
    for v in np.flatnonzero(tree.left >= 0).tolist():
        child = int(tree.left[v])
        rows = np.flatnonzero(np.isin(leaf, below(tree, v)))
        bins, weight, price = case.bins[:, rows], case.weight[rows], case.price
        if tree.left[child] < 0 and tree.left[child + 1] < 0:
            asked = case.asked[:, rows]
        else:
            sides = []
            for side in (child, child + 1):
                f = tree.value[:, [leaf_from(case, tree, side, row) for row in rows]]
                sides.append((f * case.asked[:, rows] - 0.5 * weight * f**2).sum(0))
            asked, price = (sides[0] - sides[1])[np.newaxis], price._replace(linear=True)
        lefts = np.isin(leaf[rows], below(tree, child))
        free = price._replace(least_weight=0.0)
        yield (
            v,
            naive_splits.gain_of(lefts, asked, weight, {True}, free),
            naive_splits.gain_of(
                bins[tree.feature[v]], asked, weight, set(np.flatnonzero(tree.goes_left[v])), free
            ),
            naive_splits.best_of(case.columns, bins, asked, weight, case.about, price)[0],
        )


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("n_leaves", [2, 3, 6])
@given(seed=st.integers(0, 10_000), used=st.sampled_from([1.0, 0.7]))
def test_each_split_is_the_best_above_what_is_below_it(seed, used, n_leaves, outputs):
    case, other = (many_rows(seed + more, n=60, outputs=outputs) for more in (0, 1))
    # A tree for other rows, so that it can be better for these.
    tree = grown(other, n_leaves)[0]
    leaf = np.array(reached(case, tree), np.int32)
    idle = np.random.default_rng(seed).random(60) > used
    case.asked[:, idle] = case.weight[idle] = 0.0
    rows, asked = np.flatnonzero(~idle).astype(np.int32), Asked(case.asked, case.weight)
    before = tree.copy(), leaf.copy()
    finder = Finder(case.bins, case.about, Crew(1))
    found = Reform(finder, tree, leaf, asked, rows, case.columns, case.price).choose()
    assert (tree.goes_left == before[0].goes_left).all()
    assert (leaf == before[1]).all()
    if found is None:
        LeafValues(case.price.shrinkage).settle(tree, leaf, asked)
        # Above two leaves, no split is taken that costs.
        assert all(
            best <= max(present, 0.0) + 1e-9 for _, present, _, best in choices(case, leaf, tree)
        )
        return
    new, new_leaf = found
    assert (np.array(reached(case, new))[rows] == new_leaf[rows]).all()
    changed = 0
    for v, present, gain, best in choices(case, leaf, new):
        if (new.goes_left[v] == tree.goes_left[v]).all() and new.feature[v] == tree.feature[v]:
            assert best <= max(present, 0.0) + 1e-9
        else:
            changed += 1
            assert gain == pytest.approx(best)
            assert gain > present
            assert new.gain[v] == pytest.approx(gain)
    assert changed
    values = LeafValues(case.price.shrinkage)
    assert values.settle(new, new_leaf, asked) > values.settle(tree, leaf, asked)


def test_nothing_is_chosen_anew_where_nothing_is_better():
    for seed in range(5):
        case = many_rows(seed)
        tree, leaf = grown(case, 4)
        finder, asked = Finder(case.bins, case.about, Crew(1)), Asked(case.asked, case.weight)
        how = (asked, np.arange(200, dtype=np.int32), case.columns, case.price)
        found, falls = (tree, leaf), []
        while found is not None:
            tree, leaf = found
            falls.append(LeafValues(case.price.shrinkage).settle(tree, leaf, asked))
            found = Reform(finder, tree, leaf, *how).choose()
        assert all(a < b for a, b in pairwise(falls))
