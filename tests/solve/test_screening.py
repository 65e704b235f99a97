"""The screening bound: no pruning of the forest gains more than coarse trees say."""

import numpy as np
import pytest
from effort import INTERPRETED
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeRegressor
from small_problems import descended, shrinkages, subtree_rule
from strategies import alphas, cases

from forestprune import Forest, encode
from forestprune.solve.point import Point, pack_splits
from forestprune.solve.problem import pose

EVERYTHING = 1e-3
"""So few rows that no node is left out of coarse trees."""


@given(case=cases(), begin=alphas, shrinkage=shrinkages, rows=st.lists(st.floats(0.1, 12)))
def test_no_pruning_gains_more(case, begin, shrinkage, rows):
    problem = case.pose()
    rule = descended(subtree_rule(problem, shrinkage, deep=0.0), begin, 3)
    # The squares that gains are differences of may be far larger than what there is to gain.
    trees = problem.trees
    squares = problem.unexplained(problem.residual) * problem.variation
    squares += (trees.weight * (trees.origin**2).sum(axis=0)).max(initial=0.0)
    # Somewhere between these it begins to pay to go beyond the coarse trees.
    for alpha in np.geomspace(1e-5, 10.0, 5 if INTERPRETED else 30):
        exact = rule.gains(alpha, rule.order)
        slack = 1e-9 * (problem.variation + np.abs(exact)) + 1e-13 * squares
        for few in (1e9, *rows, EVERYTHING):
            assert (rule.gains_at_most(alpha, few) >= exact - slack).all()
    # With nothing left out, it is what is gained, unless rows weigh nothing at all.
    if case.weights is None:
        assert (np.abs(rule.gains_at_most(alpha, EVERYTHING) - exact) <= slack).all()


def stump_and_more(targets, shrinkage):
    X, y = np.arange(4.0)[:, np.newaxis], np.array([0.0, 3.0, 10.0, 11.0])
    forest = Forest.from_model(DecisionTreeRegressor(max_depth=2).fit(X, y))
    problem = pose(encode(forest, X), y if targets is None else targets)
    return forest, subtree_rule(problem, shrinkage, deep=np.inf)


def keeping(forest, splits, values=None):
    depths = np.array([1 if sum(splits) == 1 else 2])
    kept = pack_splits(np.array(splits))
    return Point(1.0, kept, depths, np.ones(1), np.zeros(1), 0.0, 0.0, values=values)


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("refit", [False, True])
def test_the_bound_is_reached(refit, kept):
    # One level below the coarse tree; residuals along the values, or leaves of one row each.
    targets = np.array([7.0, -2.0, 1.0, 5.0]) if refit else None
    forest, rule = stump_and_more(targets, 0.0 if refit else None)
    if kept:
        values = np.array([[-2.0, 1.5]]) if refit else None
        rule.move_to(keeping(forest, [True, False, False], values))
    for alpha in (0.0, 0.01, 0.1, 0.3, 1.0):
        # Nodes of two rows are not split: one level is left out.
        most, exact = rule.gains_at_most(alpha, 2.0 / 0.7), rule.gains(alpha, rule.order)
        np.testing.assert_allclose(np.maximum(most, 0.0), np.maximum(exact, 0.0), atol=1e-9)


def test_what_is_kept_below_coarse_trees_could_gain_anything():
    forest, rule = stump_and_more(None, None)
    rule.move_to(keeping(forest, [True, True, True]))
    assert rule.gains_at_most(1.0, 2.0 / 0.7).tolist() == [np.inf]
