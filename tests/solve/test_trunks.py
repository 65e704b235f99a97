"""Trunks: what they leave out is not worth keeping in the end, and nothing else changes."""

import numpy as np
import pytest
from conftest import INTERPRETED
from forestprune.solve.subtrees.descent import SubtreeDescent
from forestprune.solve.subtrees.trunks import Trunks
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor
from small_problems import begun, shrinkages
from strategies import alphas, cases

from forestprune import Forest, encode, kernels
from forestprune.solve import problem
from forestprune.solve.subtrees import descent as subtree_descent

ROWS, TREES = (60, 4) if INTERPRETED else (400, 12)


@pytest.fixture(autouse=True)
def _small_forests_have_trunks(monkeypatch):
    monkeypatch.setattr(subtree_descent, "LARGE", 0)
    monkeypatch.setattr(subtree_descent, "MANY_ROWS", 0)


def best(trunks, cut, price):
    n_trees = trunks.trees.offsets.size - 1
    worth, cost = np.zeros(n_trees), np.zeros(n_trees)
    kernels.best_subtrees(0, n_trees, trunks.codes, trunks.trees, cut, price, worth, cost)
    return worth


def trunks_of(descent, price, ahead):
    whole, cut = descent._whole, descent._cut
    some = np.empty(whole.splits.size, np.bool_)
    arguments = (whole.codes, whole.trees, price, cut, whole.trees, whole.inside, cut.kept)
    kernels.choose_trunks(0, descent.order.size, *arguments, ahead, some)
    assert some[cut.kept].all()
    trunks = Trunks.of(whole.trees, whole.codes, some)
    return trunks, whole.carry(cut, trunks)


@given(
    case=cases(),
    alpha=alphas,
    begin=alphas,
    shrinkage=shrinkages,
    ahead=st.sampled_from([1.0, 0.3]),
)
def test_the_best_pruning_lies_in_the_trunk(case, alpha, begin, shrinkage, ahead):
    descent, price = begun(case, shrinkage, alpha, begin)
    trunks, cut = trunks_of(descent, price, ahead)
    inside = best(trunks, cut, price._replace(cost=price.cost[trunks.splits]))
    scale = descent.problem.variation + np.abs(inside)
    assert (np.abs(best(descent._whole, descent._cut, price) - inside) <= 1e-9 * scale).all()


@given(case=cases(), alpha=alphas, begin=alphas, shrinkage=shrinkages, depth=st.integers(0, 2))
def test_whole_trees_gain_what_the_best_of_all_prunings_is_worth(
    case, alpha, begin, shrinkage, depth
):
    descent, price = begun(case, shrinkage, alpha, begin)
    whole, n_trees = descent._whole, case.forest.n_trees
    # Any trunks that hold what is kept.
    splits = np.flatnonzero(case.forest.left >= 0)
    some = descent._cut.kept | (case.forest.node_depths[splits] < depth)
    trunks = Trunks.of(descent.trees, whole.codes, some)
    cut = whole.carry(descent._cut, trunks)
    gain = np.empty(n_trees)
    arguments = (price, cut, trunks.trees, trunks.nodes, trunks.inside, gain)
    kernels.gains_of_whole(np.arange(n_trees), whole.codes, whole.trees, *arguments)
    # What is kept is worth what could be gained were it gone, all else being equal.
    for i in range(n_trees):
        alone = SubtreeDescent(descent.problem)
        others = descent.solution(alpha).subtrees
        gone = np.arange(n_trees) == i
        alone.move_to(others)
        now = alone.solution(alpha).objective
        alone.move_to(others.without(case.forest, gone))
        without = alone.solution(alpha).objective
        least = without + best(whole, alone._cut, price)[i] / descent.problem.variation
        scale = 1.0 + abs(without) + abs(now)
        assert gain[i] / descent.problem.variation == pytest.approx(now - least, abs=1e-8 * scale)


@given(case=cases(), begin=alphas, shrinkage=shrinkages)
def test_carrying_there_and_back_changes_nothing(case, begin, shrinkage):
    descent, _ = begun(case, shrinkage, begin, begin)
    whole, cut = descent._whole, descent._cut
    trunks = Trunks.of(descent.trees, whole.codes, cut.kept.copy())
    there = whole.carry(cut, trunks)
    back = trunks.carry(there, whole)
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
def test_deep_forests_are_pruned_as_well_as_without_trunks(refit, weighted, monkeypatch):
    X, y = make_friedman1(ROWS, noise=1.0, random_state=0)
    forest = Forest.from_model(RandomForestRegressor(TREES, random_state=0).fit(X, y))
    weights = np.random.default_rng(0).random(ROWS) if weighted else None
    encoding = encode(forest, X, sample_weight=weights)
    posed = problem.pose(encoding, y, rule="subtree", refit=refit, shrinkage=20.0)
    cut_down, in_threads = SubtreeDescent(posed, n_jobs=1), SubtreeDescent(posed, n_jobs=3)
    monkeypatch.setattr(subtree_descent, "SHARED", 0)
    highest, _ = cut_down.alpha_range()
    steps = highest * np.geomspace(0.9, 1e-3, 20)
    objectives, left_out = [], []
    for alpha in steps:
        assert cut_down.descend(alpha, 1000)
        now = cut_down.solution(alpha)
        objectives.append(now.objective)
        left_out.append(1 - cut_down._trunks.nodes.size / forest.n_nodes)
        # Threads change nothing.
        assert in_threads.descend(alpha, 1000)
        np.testing.assert_array_equal(in_threads._cut.residual, cut_down._cut.residual)
    monkeypatch.setattr(subtree_descent, "DEEP", np.inf)
    whole = SubtreeDescent(posed)
    expected = []
    for alpha in steps:
        assert whole.descend(alpha, 1000)
        expected.append(whole.solution(alpha).objective)
        assert whole._trunks.nodes.size == forest.n_nodes
    # Where nothing can be improved depends a little on the way there, for the better or the worse.
    np.testing.assert_allclose(objectives, expected, rtol=0.05)
    assert np.mean(objectives) <= 1.005 * np.mean(expected)
    # From the last solution, whole trees find nothing better either.
    whole.move_to(now.subtrees)
    sweeps = whole.sweeps
    assert whole.descend(alpha, 1000)
    assert whole.sweeps == sweeps + 1
    assert left_out[0] > 0.5
