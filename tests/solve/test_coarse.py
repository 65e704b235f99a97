"""Coarse trees: no pruning of the forest gains more than they say."""

import numpy as np
import pytest
from conftest import INTERPRETED
from forestprune.solve.kept import Subtrees
from forestprune.solve.subtrees.descent import SubtreeDescent
from forestprune.solve.subtrees.trunks import Coarse, Trunks
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeRegressor
from small_problems import begun, pose, shrinkages
from strategies import alphas, cases

from forestprune import Forest, encode, kernels
from forestprune.solve import problem


def at_once(descent):
    return lambda kernel, *arguments: kernel(0, descent.order.size, *arguments)


def coarse_of(descent, rows):
    coarse = Coarse(descent._whole, descent.problem.split_costs, at_once(descent))
    coarse.cut(rows)
    return coarse


def gains_at_most(descent, coarse, price, now, cut):
    square, gain = np.empty(cut.residual.shape[1]), np.empty(descent.order.size)
    kernels.square_rows(descent._row_weight, cut.residual, square)
    trunks, price = coarse.trunks, price._replace(cost=coarse.split_costs)
    arguments = (price, coarse.spread, coarse.cost, cut, now.trees, now.nodes, coarse.place, gain)
    at_once(descent)(kernels.gains_at_most, trunks.codes, square, trunks.trees, *arguments)
    return gain


def gains(descent, price, now, cut):
    whole, gain = descent._whole, np.empty(descent.order.size)
    arguments = (price, cut, now.trees, now.nodes, now.inside, gain)
    kernels.gains_of_whole(descent.order, whole.codes, whole.trees, *arguments)
    return gain


@given(case=cases(), begin=alphas, shrinkage=shrinkages, rows=st.lists(st.integers(0, 12)))
def test_no_pruning_gains_more(case, begin, shrinkage, rows):
    descent, price = begun(case, shrinkage, 1.0, begin)
    cut = descent._cut
    # Any trunks that hold what is kept.
    now = Trunks.of(descent.trees, descent._whole.codes, cut.kept.copy())
    cut = descent._whole.carry(cut, now)
    coarse = coarse_of(descent, 1e9)
    # The squares that gains are differences of may be far larger than what there is to gain.
    trees, posed = descent.trees, descent.problem
    squares = posed.loss(posed.residual) * posed.variation
    squares += (trees.weight * (trees.origin**2).sum(axis=0)).max(initial=0.0)
    # Somewhere between these it begins to pay to go beyond the coarse trees.
    for alpha in np.geomspace(1e-5, 10.0, 5 if INTERPRETED else 30):
        price = price._replace(alpha=alpha * posed.variation)
        exact = gains(descent, price, now, cut)
        slack = 1e-9 * (posed.variation + np.abs(exact)) + 1e-13 * squares
        for few in (1e9, *rows, -1.0):
            coarse.cut(float(few))
            most = gains_at_most(descent, coarse, price, now, cut)
            assert (most >= exact - slack).all()
        # With nothing left out, it is what is gained.
        assert (np.abs(most - exact) <= slack).all()


@given(case=cases(), rows=st.integers(0, 12))
def test_nodes_of_more_rows_are_split(case, rows):
    descent = SubtreeDescent(pose(case, 0.0))
    coarse = coarse_of(descent, 1e9)
    coarse.cut(float(rows))
    forest, weight = case.forest, descent.trees.weight
    splits = np.flatnonzero(forest.left >= 0)
    roots = np.isin(splits, forest.offsets[:-1])
    np.testing.assert_array_equal(
        coarse.trunks.splits, np.flatnonzero((weight[splits] > rows) | roots)
    )
    owner = np.searchsorted(
        coarse.trunks.trees.offsets, np.arange(coarse.trunks.nodes.size), "right"
    )
    local = np.arange(coarse.trunks.nodes.size) - coarse.trunks.trees.offsets[owner - 1]
    np.testing.assert_array_equal(coarse.place[coarse.trunks.nodes], local)
    assert np.count_nonzero(coarse.place >= 0) == coarse.trunks.nodes.size


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("refit", [False, True])
def test_the_bound_is_reached(refit, kept):
    # One level below the coarse tree; residuals along the values, or leaves of one row each.
    X, y = np.arange(4.0)[:, np.newaxis], np.array([0.0, 3.0, 10.0, 11.0])
    forest = Forest.from_model(DecisionTreeRegressor(max_depth=2).fit(X, y))
    targets = np.array([7.0, -2.0, 1.0, 5.0]) if refit else y
    posed = problem.pose(encode(forest, X), targets, rule="subtree", refit=refit)
    descent = SubtreeDescent(posed)
    if kept:
        descent.move_to(Subtrees(np.array([1, 2]), np.array([[-2.0, 1.5]]) if refit else None))
    coarse = coarse_of(descent, 2.0)
    assert coarse.trunks.splits.tolist() == [0]
    for alpha in (0.0, 0.01, 0.1, 0.3, 1.0):
        price = descent._price(alpha)
        most = gains_at_most(descent, coarse, price, descent._whole, descent._cut)
        exact = gains(descent, price, descent._whole, descent._cut)
        np.testing.assert_allclose(np.maximum(most, 0.0), np.maximum(exact, 0.0), atol=1e-9)


def test_what_is_kept_below_coarse_trees_could_gain_anything():
    X, y = np.arange(4.0)[:, np.newaxis], np.array([0.0, 3.0, 10.0, 11.0])
    forest = Forest.from_model(DecisionTreeRegressor(max_depth=2).fit(X, y))
    descent = SubtreeDescent(problem.pose(encode(forest, X), y, rule="subtree"))
    descent.move_to(Subtrees(np.arange(1, forest.n_nodes)))
    coarse = coarse_of(descent, 2.0)
    price = descent._price(1.0)
    most = gains_at_most(descent, coarse, price, descent._whole, descent._cut)
    assert most.tolist() == [np.inf]
