"""The subtree rule: exact blocks, descent, lazy sweeps, and what becomes of the solutions."""

import naive
import numpy as np
import pytest
from conftest import INTERPRETED
from forestprune.solve.kept import (
    Subtrees,
    kept_nodes,
    layers_as_subtrees,
    pack,
    read_trees,
    unpack,
)
from forestprune.solve.layers.descent import Descent
from forestprune.solve.subtrees.descent import SubtreeDescent
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.datasets import make_friedman1
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from small_problems import pose, shrinkages
from strategies import alphas, cases

from forestprune import Forest, encode
from forestprune.solve import problem
from forestprune.solve.subtrees import descent as subtree_descent

ROWS, TREES = (30, 6) if INTERPRETED else (150, 30)
TOLERANCE = 1e-10


@pytest.fixture(autouse=True)
def _exact(monkeypatch):
    """Let values, too, be improved as far as can be; treat small forests as large ones."""
    monkeypatch.setattr(problem, "VALUE_TOLERANCE", TOLERANCE)
    monkeypatch.setattr(subtree_descent, "LARGE", 0)
    monkeypatch.setattr(subtree_descent, "MANY_ROWS", 0)


def node_costs_of(data, forest):
    """Draw costs of the nodes, or None for 1 each."""
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    return data.draw(st.none() | st.just(rng.integers(0, 3, forest.n_nodes).astype(float)))


class Naive:
    """The objective of pruned trees, without anything of the package."""

    def __init__(self, case, shrinkage, node_costs):
        self.case = case
        self.weights = np.ones(len(case.X)) if case.weights is None else case.weights
        self.shrinkage = shrinkage
        total = self.weights.sum()
        roots, scale, base = case.roots, case.forest.scale, case.forest.base
        self.intercept = naive.intercept(roots, scale, base)
        size = max(
            np.abs(np.average(case.y, axis=0, weights=self.weights)).max(),
            np.abs(self.intercept).max(),
        )
        unit = naive.variance(case.y, self.weights)
        self.variation = total * (1.0 if unit <= (1e-15 * size) ** 2 else unit)
        orders = [naive.level_order(root) for root in roots]
        each = np.ones(case.forest.n_nodes) if node_costs is None else node_costs
        numbered = [node for order in orders for node in order]
        cost = {id(node): each[v] for v, node in enumerate(numbered)}
        cost |= {id(root): 0.0 for root in roots}
        self.cost, self.K = cost, sum(cost.values()) or 1.0

    def cost_of(self, full, pruned):
        if pruned.is_leaf:
            return 0.0
        own = self.cost[id(full.left)] + self.cost[id(full.right)]
        return own + self.cost_of(full.left, pruned.left) + self.cost_of(full.right, pruned.right)

    def square(self, residual):
        return float((self.weights[:, None] * residual**2).sum())

    def best(self, i, rest, alpha):
        """Return the least objective over all prunings of tree i, `rest` being what it leaves."""
        root = self.case.roots[i]
        values = []
        for pruned in naive.prunings(root):
            worth, _ = naive.subtree_worth(self.case, i, pruned, rest, self.shrinkage)
            values.append(worth / self.variation + alpha / self.K * self.cost_of(root, pruned))
        return min(values)


def as_trees(case, subtrees):
    """Return each tree's pruning as linked nodes, and what its kept nodes add."""
    mask = subtrees.mask(case.forest)
    adds = np.zeros_like(case.forest.value)
    origin = case.forest.value - np.repeat(
        case.forest.value[case.forest.offsets[:-1]], np.diff(case.forest.offsets), axis=0
    )
    adds = origin * np.repeat(case.forest.scale, np.diff(case.forest.offsets))[:, None]
    if subtrees.adds is not None:
        adds[subtrees.nodes] = subtrees.adds.T
    result = []
    for i, root in enumerate(case.roots):
        numbers = {
            id(node): case.forest.offsets[i] + v for v, node in enumerate(naive.level_order(root))
        }
        result.append((numbers, mask, adds))
    return result


def row_adds(case, subtrees):
    """Return what each tree adds to each row, and the penalty on changed values."""
    per_tree, off = [], 0.0
    for i, (numbers, mask, adds) in enumerate(as_trees(case, subtrees)):
        root = case.roots[i]
        added = np.zeros((len(case.X), case.forest.n_outputs))
        for x, row in enumerate(case.X):
            kept = [n for n in naive.visited(root, row, case.dtype) if mask[numbers[id(n)]]]
            if len(kept) > 1:
                added[x] = adds[numbers[id(kept[-1])]]
        per_tree.append(added)
        for node in naive.level_order(root):
            v = numbers[id(node)]
            is_leaf = node.is_leaf or not mask[numbers[id(node.left)]]
            if mask[v] and is_leaf and node is not root:
                origin = case.forest.scale[i] * (np.array(node.value) - np.array(root.value))
                off += float(((adds[v] - origin) ** 2).sum())
    return per_tree, off


@given(case=cases(max_trees=1), alpha=alphas, shrinkage=shrinkages, data=st.data())
def test_one_tree_is_pruned_as_enumeration_says(case, alpha, shrinkage, data):
    costs = node_costs_of(data, case.forest)
    descent = SubtreeDescent(pose(case, shrinkage, costs))
    assert descent.descend(alpha, 100)
    twin = Naive(case, shrinkage, costs)
    rest = case.y - twin.intercept
    least = twin.square(rest) / twin.variation + (twin.best(0, rest, alpha) if case.roots else 0.0)
    assert descent.solution(alpha).objective == pytest.approx(least, rel=1e-9, abs=2 * TOLERANCE)


@given(case=cases(), alpha=alphas, shrinkage=shrinkages, data=st.data())
def test_no_single_tree_can_improve_the_result(case, alpha, shrinkage, data):
    costs = node_costs_of(data, case.forest)
    descent = SubtreeDescent(pose(case, shrinkage, costs))
    assert descent.descend(alpha, 100_000)
    solution = descent.solution(alpha)
    twin = Naive(case, shrinkage, costs)
    per_tree, off = row_adds(case, solution.subtrees)
    residual = case.y - twin.intercept - sum(per_tree)
    paid = np.ones(case.forest.n_nodes) if costs is None else costs
    cost = paid[solution.subtrees.nodes].sum() / twin.K
    objective = twin.square(residual) / twin.variation + alpha * cost
    objective += (twin.shrinkage or 0.0) * off / twin.variation
    assert solution.objective == pytest.approx(objective, rel=1e-8, abs=1e-9)
    assert solution.loss == pytest.approx(
        twin.square(residual) / twin.variation, rel=1e-8, abs=1e-9
    )
    np.testing.assert_array_equal(solution.depths, solution.subtrees.depths(case.forest))
    # What counts as a gain is more than TOLERANCE where targets hardly vary beside what they are.
    least = descent.problem.split_price(alpha).least / descent.problem.variation
    for i, added in enumerate(per_tree):
        rest = residual + added
        alone = row_adds(case, solution.subtrees.without(case.forest, np.arange(3) != i))[1]
        mine = [
            v
            for v in solution.subtrees.nodes
            if case.forest.offsets[i] <= v < case.forest.offsets[i + 1]
        ]
        present = (twin.square(residual) - twin.square(rest)) / twin.variation
        present += alpha * paid[mine].sum() / twin.K
        present += (twin.shrinkage or 0.0) * alone / twin.variation
        assert present <= twin.best(i, rest, alpha) + 2 * least + 1e-9 * (1 + objective)


@given(case=cases(joint=(None,)), alpha=alphas, shrinkage=shrinkages)
def test_from_a_layer_solution_the_objective_never_rises(case, alpha, shrinkage):
    case.weighting = "node"
    layers = Descent(case.pose())
    layers.descend(alpha, 1000)
    cut = layers.solution(alpha)
    descent = SubtreeDescent(pose(case, shrinkage))
    descent.move_to(layers_as_subtrees(case.forest, cut.depths))
    begun = descent.solution(alpha)
    np.testing.assert_array_equal(begun.depths, cut.depths)
    assert begun.objective == pytest.approx(cut.objective, rel=1e-9, abs=1e-12)
    descent.descend(alpha, 1000)
    assert descent.solution(alpha).objective <= begun.objective + 1e-12


@pytest.mark.parametrize("refit", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["bagged", "boosted", "two outputs"])
def test_lazy_sweeps_end_where_eager_ones_do(refit, weighted, kind, monkeypatch):
    monkeypatch.setattr(problem, "VALUE_TOLERANCE", 1e-6)
    X, y = make_friedman1(ROWS, noise=1.0, random_state=0)
    if kind == "boosted":
        model = GradientBoostingRegressor(n_estimators=TREES, subsample=0.5, random_state=0)
    else:
        model = RandomForestRegressor(TREES, max_depth=6, max_features=0.5, random_state=0)
    if kind == "two outputs":
        y = np.column_stack([y, X[:, 0] * X[:, 5]])
    forest = Forest.from_model(model.fit(X, y))
    weights = np.random.default_rng(0).random(ROWS) if weighted else None
    posed = problem.pose(
        encode(forest, X, sample_weight=weights), y, rule="subtree", refit=refit, shrinkage=5.0
    )
    lazy, eager = SubtreeDescent(posed), SubtreeDescent(posed, lazy=False)
    highest, _ = lazy.alpha_range()
    for alpha in highest * np.array([1.0, 0.8, 0.5, 0.3, 0.03, 0.5]):
        for descent in (lazy, eager):
            assert descent.descend(alpha, 1000)
        for now, then in zip(lazy._cut[:6], eager._cut[:6], strict=True):
            np.testing.assert_array_equal(now, then)
    assert lazy.sweeps == eager.sweeps
    assert lazy.looks < eager.looks


@given(case=cases(), alpha=alphas, shrinkage=shrinkages)
def test_lazy_sweeps_end_where_eager_ones_do_on_any_forest(case, alpha, shrinkage):
    posed = pose(case, shrinkage)
    lazy, eager = SubtreeDescent(posed), SubtreeDescent(posed, lazy=False)
    for step in (10 * alpha, 8 * alpha, alpha, 0.8 * alpha, alpha / 10):
        for descent in (lazy, eager):
            descent.descend(step, 200)
        for now, then in zip(lazy._cut[:6], eager._cut[:6], strict=True):
            np.testing.assert_array_equal(now, then)


@given(case=cases(min_trees=1), shrinkage=shrinkages, data=st.data())
def test_the_highest_alpha_is_where_the_first_tree_enters(case, shrinkage, data):
    costs = node_costs_of(data, case.forest)
    descent = SubtreeDescent(pose(case, shrinkage, costs))
    highest, lowest = descent.alpha_range()
    assert 0.0 <= lowest <= highest
    assume(highest >= 1e-6)
    paid = np.ones(case.forest.n_nodes) if costs is None else costs
    trees = range(case.forest.n_trees)
    for tree in trees:
        alone = SubtreeDescent(descent.problem)
        alone.descend(highest * (1 + 1e-9), 100, held=[other for other in trees if other != tree])
        assert paid[alone.solution(highest).subtrees.nodes].sum() == 0.0
    descent.descend(highest * (1 + 1e-9), 100)
    kept = paid[descent.solution(highest).subtrees.nodes]
    # What is free is kept at any price, and may make what is paid for in other trees worth more.
    assert kept.sum() == 0.0 or (kept == 0.0).any()
    below = SubtreeDescent(descent.problem)
    below.descend(highest * (1 - 1e-3), 100)
    assert below.solution(highest).subtrees.nodes.size > 0


@given(case=cases(), alpha=alphas, shrinkage=shrinkages)
def test_moving_to_a_solution_restores_it(case, alpha, shrinkage):
    posed = pose(case, shrinkage)
    descent, other = SubtreeDescent(posed), SubtreeDescent(posed)
    descent.descend(alpha, 100)
    other.descend(alpha / 3, 100)
    solution = descent.solution(alpha)
    other.move_to(solution.subtrees)
    again = other.solution(alpha)
    np.testing.assert_array_equal(again.subtrees.nodes, solution.subtrees.nodes)
    np.testing.assert_array_equal(again.depths, solution.depths)
    assert again.objective == pytest.approx(solution.objective, rel=1e-8, abs=1e-10)
    penalty = other.penalty(solution.subtrees, solution.weights, alpha)
    assert solution.loss + penalty == pytest.approx(solution.objective, rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("refit", [False, True])
def test_with_everything_kept_the_original_comes_back(refit):
    X, y = make_friedman1(ROWS, random_state=0)
    model = RandomForestRegressor(5, max_depth=3, random_state=0).fit(X, y)
    forest = Forest.from_model(model)
    posed = problem.pose(encode(forest, X), y, rule="subtree", refit=refit, shrinkage=3.0)
    descent = SubtreeDescent(posed)
    everything = Subtrees(np.flatnonzero(forest.node_depths > 0))
    descent.move_to(everything)
    assert descent.is_full() is not refit
    assert descent.n_nodes() == forest.n_nodes
    np.testing.assert_allclose(model.predict(X), y - descent._cut.residual[0], rtol=1e-12)
    # Refitting is what shrinkage holds back: a lot of it leaves the values as they are.
    held = problem.pose(encode(forest, X), y, rule="subtree", refit=True, shrinkage=1e12)
    fixed = problem.pose(encode(forest, X), y, rule="subtree")
    solutions = []
    for descent in (SubtreeDescent(held), SubtreeDescent(fixed)):
        descent.descend(0.1, 1000)
        solutions.append(descent.solution(0.1))
    np.testing.assert_array_equal(*(s.subtrees.nodes for s in solutions))
    assert solutions[0].objective == pytest.approx(solutions[1].objective, rel=1e-6)


def test_held_trees_do_not_change():
    X, y = make_friedman1(ROWS, random_state=0)
    forest = Forest.from_model(RandomForestRegressor(5, max_depth=3, random_state=0).fit(X, y))
    descent = SubtreeDescent(problem.pose(encode(forest, X), y, rule="subtree"))
    descent.descend(0.01, 100, held=(1, 3))
    np.testing.assert_array_equal(descent.depths[[1, 3]], 0)
    assert descent.depths[[0, 2, 4]].all()
    assert not SubtreeDescent(descent.problem).descend(0.01, 1)


@given(case=cases(), data=st.data())
def test_masks_splits_and_nodes_say_the_same(case, data):
    forest = case.forest
    trees = read_trees(forest, np.ones(forest.n_nodes))
    masks = [
        naive.kept_mask(root, data.draw(st.sampled_from(list(naive.prunings(root)))))
        for root in case.roots
    ]
    mask = np.array([kept for tree in masks for kept in tree], dtype=bool)
    nodes = np.setdiff1d(np.flatnonzero(mask), forest.offsets[:-1])
    subtrees = Subtrees(nodes)
    np.testing.assert_array_equal(subtrees.mask(forest), mask)
    np.testing.assert_array_equal(kept_nodes(trees, subtrees.splits(trees)), nodes)
    np.testing.assert_array_equal(
        subtrees.depths(forest),
        [naive.tree_depth_of_mask(r, m) for r, m in zip(case.roots, masks, strict=True)],
    )
    rng = np.random.default_rng(0)
    refitted = Subtrees(nodes, rng.normal(size=(forest.n_outputs, nodes.size)))
    stored = {k.removeprefix("subtrees/"): v for k, v in pack([None, subtrees, refitted]).items()}
    none, plain, valued = unpack(forest, 3, stored)
    assert none is None
    assert plain.adds is None
    np.testing.assert_array_equal(plain.nodes, nodes)
    np.testing.assert_array_equal(valued.nodes, nodes)
    np.testing.assert_array_equal(valued.adds, refitted.adds)
