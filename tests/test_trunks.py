"""Trunks: what they leave out is never worth keeping, and nothing else changes."""

import numpy as np
import pytest
from conftest import INTERPRETED
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor
from strategies import alphas, cases
from test_subtrees import pose, shrinkages

from forestprune import Forest, encode, kernels, problem, subtree_descent
from forestprune.subtree_descent import SubtreeDescent
from forestprune.subtrees import Subtrees
from forestprune.trunks import Limits, Trunks

ROWS, TREES = (60, 4) if INTERPRETED else (400, 12)


@pytest.fixture(autouse=True)
def _small_forests_have_trunks(monkeypatch):
    monkeypatch.setattr(subtree_descent, "LARGE", 0)


def begun(case, shrinkage, alpha, begin):
    """Return a descent that keeps what is best at alpha `begin`, on whole trees, and a price."""
    descent = SubtreeDescent(pose(case, shrinkage))
    descent.descend(begin, 3)
    descent._move_to_trunks(descent._whole)
    return descent, descent._price(alpha)


def best(descent, trunks, cut, price):
    worth, cost = np.zeros(descent.order.size), np.zeros(descent.order.size)
    kernels.best_subtrees(trunks.codes, trunks.trees, cut, price, worth, cost)
    return worth


@given(case=cases(), alpha=alphas, begin=alphas, shrinkage=shrinkages)
def test_the_best_pruning_lies_in_the_trunk(case, alpha, begin, shrinkage):
    descent, price = begun(case, shrinkage, alpha, begin)
    whole, limits = descent._whole, Limits(descent.trees, descent.problem.split_costs)
    some = np.empty(descent.trees.split.size, np.bool_)
    arguments = (0, case.forest.n_trees, whole.codes, descent._row_weight, whole.trees)
    kernels.choose_trunks(*arguments, descent._cut, price, limits.spread, 1.0, some)
    assert some[descent._cut.kept].all()
    trunks = Trunks.of(descent.trees, whole.codes, some)
    cut = whole.carry(descent._cut, trunks, descent.trees)
    inside = best(descent, trunks, cut, price._replace(cost=price.cost[trunks.splits]))
    scale = descent.problem.variation + np.abs(inside)
    assert (np.abs(best(descent, whole, descent._cut, price) - inside) <= 1e-9 * scale).all()
    holds = np.zeros(case.forest.n_trees, np.bool_)
    arguments = (0, case.forest.n_trees, trunks.codes, descent._row_weight, trunks.trees, cut)
    # A hair dearer, so that rounding decides nothing.
    dearer = price._replace(alpha=price.alpha * (1 + 1e-6) + 1e-12 * descent.problem.variation)
    at_leaves = limits.at_leaves(trunks)
    kernels.trunks_hold(*arguments, dearer, at_leaves[0], at_leaves[1] + 1e-9, holds)
    assert holds.all()


@given(case=cases(), begin=alphas, shrinkage=shrinkages, depth=st.integers(0, 2))
def test_where_a_trunk_is_said_to_hold_nothing_better_lies_outside(case, begin, shrinkage, depth):
    descent, price = begun(case, shrinkage, 1.0, begin)
    whole, limits = descent._whole, Limits(descent.trees, descent.problem.split_costs)
    # Any trunks that hold what is kept and all roots.
    splits = np.flatnonzero(case.forest.left >= 0)
    some = descent._cut.kept | (case.forest.node_depths[splits] <= depth)
    trunks = Trunks.of(descent.trees, whole.codes, some)
    cut = whole.carry(descent._cut, trunks, descent.trees)
    inner = (trunks.codes, descent._row_weight, trunks.trees, cut)
    holds = np.zeros(case.forest.n_trees, np.bool_)
    # Somewhere between these it begins to pay to go beyond the trunk.
    for alpha in np.geomspace(1e-5, 10.0, 10 if INTERPRETED else 100):
        price = price._replace(alpha=alpha * descent.problem.variation)
        kernels.trunks_hold(0, holds.size, *inner, price, *limits.at_leaves(trunks), holds)
        inside = best(descent, trunks, cut, price._replace(cost=price.cost[trunks.splits]))
        everywhere = best(descent, whole, descent._cut, price)
        scale = descent.problem.variation + np.abs(inside)
        assert (everywhere <= inside + 1e-9 * scale).all()
        assert (inside - everywhere <= 1e-9 * scale)[holds].all()


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("refit", [False, True])
def test_the_bound_is_reached(refit, kept):
    # One level below the trunk; residuals along the values, or leaves of one row each.
    X, y = np.arange(4.0)[:, np.newaxis], np.array([0.0, 3.0, 10.0, 11.0])
    forest = Forest.from_model(DecisionTreeRegressor(max_depth=2).fit(X, y))
    targets = np.array([7.0, -2.0, 1.0, 5.0]) if refit else y
    posed = problem.pose(encode(forest, X), targets, rule="subtree", refit=refit)
    descent = SubtreeDescent(posed)
    if kept:
        descent.move_to(Subtrees(np.array([1, 2]), np.array([[-2.0, 1.5]]) if refit else None))
    some = np.array([True, False, False])
    trunks = Trunks.of(descent.trees, posed.encoding.codes, some)
    cut = descent._whole.carry(descent._cut, trunks, descent.trees)
    limits = Limits(descent.trees, posed.split_costs)
    # The two leaves of the trunk hold rows 0 and 1, and rows 2 and 3.
    pairs = (targets if refit else y).reshape(2, 2)
    gain = ((pairs - pairs.mean(axis=1, keepdims=True)) ** 2).sum(axis=1).max()
    for factor in (1 - 1e-9, 1 + 1e-9):
        price = descent._price(1.0)
        price = price._replace(alpha=factor * gain / posed.split_costs[1])
        holds = np.zeros(1, np.bool_)
        inner = (trunks.codes, descent._row_weight, trunks.trees, cut, price)
        kernels.trunks_hold(0, 1, *inner, *limits.at_leaves(trunks), holds)
        assert holds[0] == (factor > 1)


@given(case=cases(), begin=alphas, shrinkage=shrinkages)
def test_carrying_there_and_back_changes_nothing(case, begin, shrinkage):
    descent, _ = begun(case, shrinkage, begin, begin)
    whole, cut = descent._whole, descent._cut
    trunks = Trunks.of(descent.trees, whole.codes, cut.kept.copy())
    there = whole.carry(cut, trunks, descent.trees)
    back = trunks.carry(there, whole, descent.trees)
    for name in ("residual", "n_ends", "column", "kept", "depth", "cost", "off"):
        np.testing.assert_array_equal(getattr(back, name), getattr(cut, name))
    for i, count in enumerate(cut.n_ends):
        first = descent.trees.first_leaf[i]
        mine = slice(first, first + count)
        np.testing.assert_array_equal(back.ends[mine], cut.ends[mine])
        nodes = case.forest.offsets[i] + cut.ends[mine]
        np.testing.assert_array_equal(back.value[:, nodes], cut.value[:, nodes])
        if count:
            leaves = slice(first, descent.trees.first_leaf[i + 1])
            np.testing.assert_array_equal(back.end[leaves], cut.end[leaves])


@pytest.mark.parametrize("refit", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_deep_forests_are_pruned_as_without_trunks(refit, weighted, monkeypatch):
    X, y = make_friedman1(ROWS, noise=1.0, random_state=0)
    forest = Forest.from_model(RandomForestRegressor(TREES, random_state=0).fit(X, y))
    weights = np.random.default_rng(0).random(ROWS) if weighted else None
    encoding = encode(forest, X, sample_weight=weights)
    posed = problem.pose(encoding, y, rule="subtree", refit=refit, shrinkage=20.0)
    cut_down = SubtreeDescent(posed)
    monkeypatch.setattr(subtree_descent, "DEEP", np.inf)
    whole = SubtreeDescent(posed)
    highest, _ = whole.alpha_range()
    left_out = []
    for alpha in highest * np.geomspace(0.9, 1e-3, 20):
        assert cut_down.descend(alpha, 1000)
        assert whole.descend(alpha, 1000)
        now, then = cut_down.solution(alpha), whole.solution(alpha)
        np.testing.assert_array_equal(now.subtrees.nodes, then.subtrees.nodes)
        assert now.objective == pytest.approx(then.objective, rel=1e-9)
        left_out.append(1 - cut_down._trunks.nodes.size / forest.n_nodes)
    assert whole._trunks.nodes.size == forest.n_nodes
    assert left_out[0] > 0.5
    assert left_out == sorted(left_out, reverse=True)
