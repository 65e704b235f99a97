"""The subtree rule: exact blocks, descent, lazy sweeps, and what becomes of the solutions."""

import naive
import numpy as np
import pytest
from effort import INTERPRETED
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.datasets import make_friedman1
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from small_problems import descended, shrinkages, subtree_rule
from strategies import alphas, cases

from forestprune import Forest, encode
from forestprune.select.solver import everything
from forestprune.solve.descent import Descent
from forestprune.solve.point import (
    kept_depths,
    kept_leaves,
    kept_mask,
    kept_nodes,
    pack_splits,
    splits_within,
    unpack_splits,
    without_trees,
)
from forestprune.solve.problem import pose

ROWS, TREES = (30, 6) if INTERPRETED else (150, 30)
TOLERANCE = 1e-10


def exact_rule(problem, shrinkage, node_costs=None, **tuning):
    """Return a rule that improves leaf values, too, as far as can be."""
    return subtree_rule(problem, shrinkage, node_costs, value_tolerance=TOLERANCE, **tuning)


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
            change, _ = naive.subtree_objective(self.case, i, pruned, rest, self.shrinkage)
            values.append(change / self.variation + alpha / self.K * self.cost_of(root, pruned))
        return min(values)


def leaf_values(case, point):
    """Return which nodes are kept, and what each node adds if rows end there."""
    forest, splits = case.forest, point.splits(case.forest)
    sizes = np.diff(forest.offsets)
    values = forest.value - np.repeat(forest.value[forest.offsets[:-1]], sizes, axis=0)
    values *= np.repeat(forest.scale, sizes)[:, None]
    if point.values is not None:
        values[kept_leaves(forest, splits)] = point.values.T
    return kept_mask(forest, splits), values


def contributions(case, point):
    """Return what each tree adds to each row, and the squared change of its leaf values."""
    mask, values = leaf_values(case, point)
    per_tree, changes = [], []
    for root, start, scale in zip(
        case.roots, case.forest.offsets[:-1], case.forest.scale, strict=True
    ):
        numbers = {id(node): start + v for v, node in enumerate(naive.level_order(root))}
        added = np.zeros((len(case.X), case.forest.n_outputs))
        for x, row in enumerate(case.X):
            kept = [n for n in naive.visited(root, row, case.dtype) if mask[numbers[id(n)]]]
            if len(kept) > 1:
                added[x] = values[numbers[id(kept[-1])]]
        per_tree.append(added)
        change = 0.0
        for node in naive.level_order(root):
            v = numbers[id(node)]
            is_leaf = node.is_leaf or not mask[numbers[id(node.left)]]
            if mask[v] and is_leaf and node is not root:
                origin = scale * (np.array(node.value) - np.array(root.value))
                change += float(((values[v] - origin) ** 2).sum())
        changes.append(change)
    return per_tree, changes


def nodes_of(case, point):
    return kept_nodes(case.forest.offsets, point.splits(case.forest))


@given(case=cases(max_trees=1), alpha=alphas, shrinkage=shrinkages, data=st.data())
def test_one_tree_is_pruned_as_enumeration_says(case, alpha, shrinkage, data):
    costs = node_costs_of(data, case.forest)
    rule = exact_rule(case.pose(), shrinkage, costs)
    assert Descent(rule).descend(alpha, 100)
    twin = Naive(case, shrinkage, costs)
    rest = case.y - twin.intercept
    least = twin.square(rest) / twin.variation + (twin.best(0, rest, alpha) if case.roots else 0.0)
    # What counts as a gain is more than TOLERANCE where targets hardly vary beside what they are.
    slack = 2 * max(TOLERANCE, rule.price(alpha).min_gain / rule.problem.variation)
    assert rule.point(alpha).objective == pytest.approx(least, rel=1e-9, abs=slack)


@given(case=cases(), alpha=alphas, shrinkage=shrinkages, data=st.data())
def test_no_single_tree_can_improve_the_result(case, alpha, shrinkage, data):
    costs = node_costs_of(data, case.forest)
    rule = exact_rule(case.pose(), shrinkage, costs)
    assert Descent(rule).descend(alpha, 100_000)
    point = rule.point(alpha)
    twin = Naive(case, shrinkage, costs)
    per_tree, changes = contributions(case, point)
    residual = case.y - twin.intercept - sum(per_tree)
    paid = np.ones(case.forest.n_nodes) if costs is None else costs
    nodes = nodes_of(case, point)
    objective = twin.square(residual) / twin.variation + alpha * paid[nodes].sum() / twin.K
    objective += (twin.shrinkage or 0.0) * sum(changes) / twin.variation
    assert point.objective == pytest.approx(objective, rel=1e-8, abs=1e-9)
    assert rule.priced(point) == pytest.approx(objective, rel=1e-8, abs=1e-9)
    assert point.loss == pytest.approx(twin.square(residual) / twin.variation, rel=1e-8, abs=1e-9)
    splits = point.splits(case.forest)
    np.testing.assert_array_equal(point.depths, kept_depths(case.forest, splits))
    assert point.n_nodes == nodes.size + point.n_trees
    # What counts as a gain is more than TOLERANCE where targets hardly vary beside what they are.
    least = rule.price(alpha).min_gain / rule.problem.variation
    for i, added in enumerate(per_tree):
        rest = residual + added
        mine = (nodes >= case.forest.offsets[i]) & (nodes < case.forest.offsets[i + 1])
        present = (twin.square(residual) - twin.square(rest)) / twin.variation
        present += alpha * paid[nodes[mine]].sum() / twin.K
        present += (twin.shrinkage or 0.0) * changes[i] / twin.variation
        assert present <= twin.best(i, rest, alpha) + 2 * least + 1e-9 * (1 + objective)


@given(case=cases(joint=(None,)), alpha=alphas, shrinkage=shrinkages)
def test_from_a_layer_solution_the_objective_never_rises(case, alpha, shrinkage):
    case.weighting = "node"
    layers = case.layer_rule()
    descended(layers, alpha)
    cut = layers.point(alpha)
    rule = exact_rule(case.pose(), shrinkage)
    rule.move_to(cut)
    begun = rule.point(alpha)
    np.testing.assert_array_equal(begun.depths, cut.depths)
    assert begun.objective == pytest.approx(cut.objective, rel=1e-9, abs=1e-12)
    descended(rule, alpha)
    assert rule.point(alpha).objective <= begun.objective + 1e-12


def descend_both(lazy, eager, alphas):
    """Let two descents go on, and see that they stay the same to the last bit."""
    for alpha in alphas:
        for descent in (lazy, eager):
            descent.descend(alpha, 1000)
        now, then = lazy.rule.point(alpha), eager.rule.point(alpha)
        assert now.objective == then.objective
        np.testing.assert_array_equal(now.kept, then.kept)
        if now.values is not None:
            np.testing.assert_array_equal(now.values, then.values)


@pytest.mark.parametrize("refit", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["bagged", "boosted", "two outputs"])
def test_lazy_sweeps_end_where_eager_ones_do(refit, weighted, kind):
    X, y = make_friedman1(ROWS, noise=1.0, random_state=0)
    if kind == "boosted":
        model = GradientBoostingRegressor(n_estimators=TREES, subsample=0.5, random_state=0)
    else:
        model = RandomForestRegressor(TREES, max_depth=6, max_features=0.5, random_state=0)
    if kind == "two outputs":
        y = np.column_stack([y, X[:, 0] * X[:, 5]])
    forest = Forest.from_model(model.fit(X, y))
    weights = np.random.default_rng(0).random(ROWS) if weighted else None
    problem = pose(encode(forest, X), y, sample_weight=weights)
    lazy, eager = (
        Descent(subtree_rule(problem, 5.0 if refit else None, lazy=lazy)) for lazy in (True, False)
    )
    highest, _ = lazy.rule.alpha_range()
    descend_both(lazy, eager, highest * np.array([1.0, 0.8, 0.5, 0.3, 0.03, 0.5]))
    assert lazy.sweeps == eager.sweeps
    assert lazy.looks < eager.looks


@given(case=cases(), alpha=alphas, shrinkage=shrinkages)
def test_lazy_sweeps_end_where_eager_ones_do_on_any_forest(case, alpha, shrinkage):
    problem = case.pose()
    lazy, eager = (Descent(exact_rule(problem, shrinkage, lazy=lazy)) for lazy in (True, False))
    descend_both(lazy, eager, (10 * alpha, 8 * alpha, alpha, 0.8 * alpha, alpha / 10))


@given(case=cases(min_trees=1), shrinkage=shrinkages, data=st.data())
def test_the_highest_alpha_is_where_the_first_tree_enters(case, shrinkage, data):
    costs = node_costs_of(data, case.forest)
    problem = case.pose()
    rule = exact_rule(problem, shrinkage, costs)
    highest, lowest = rule.alpha_range()
    assert 0.0 <= lowest <= highest
    assume(highest >= 1e-6)
    paid = np.ones(case.forest.n_nodes) if costs is None else costs
    trees = range(case.forest.n_trees)
    for tree in trees:
        alone = exact_rule(problem, shrinkage, costs)
        others = [other for other in trees if other != tree]
        Descent(alone).descend(highest * (1 + 1e-9), 100, held=others)
        assert paid[nodes_of(case, alone.point(highest))].sum() == 0.0
    descended(rule, highest * (1 + 1e-9), 100)
    kept = paid[nodes_of(case, rule.point(highest))]
    # What is free is kept at any price, and may make what is paid for in other trees gain more.
    assert kept.sum() == 0.0 or (kept == 0.0).any()
    below = descended(exact_rule(problem, shrinkage, costs), highest * (1 - 1e-3), 100)
    assert below.point(highest).n_nodes > 0


@given(case=cases(), alpha=alphas, shrinkage=shrinkages)
def test_moving_to_a_solution_restores_it(case, alpha, shrinkage):
    problem = case.pose()
    rule = descended(exact_rule(problem, shrinkage), alpha, 100)
    other = descended(exact_rule(problem, shrinkage), alpha / 3, 100)
    point = rule.point(alpha)
    other.move_to(point)
    again = other.point(alpha)
    np.testing.assert_array_equal(again.kept, point.kept)
    np.testing.assert_array_equal(again.depths, point.depths)
    assert again.objective == pytest.approx(point.objective, rel=1e-8, abs=1e-10)
    assert other.priced(point) == pytest.approx(point.objective, rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("refit", [False, True])
def test_with_everything_kept_the_original_comes_back(refit):
    X, y = make_friedman1(ROWS, random_state=0)
    model = RandomForestRegressor(5, max_depth=3, random_state=0).fit(X, y)
    forest = Forest.from_model(model)
    problem = pose(encode(forest, X), y)
    rule = subtree_rule(problem, 3.0 if refit else None)
    rule.move_to(everything(problem))
    assert rule.is_full() is not refit
    assert rule.n_nodes() == forest.n_nodes
    assert rule.point(0.0).loss == pytest.approx(1 - model.score(X, y), rel=1e-12)
    # Refitting is what shrinkage holds back: a lot of it leaves the values as they are.
    held, fixed = (
        descended(subtree_rule(problem, shrinkage), 0.1).point(0.1) for shrinkage in (1e12, None)
    )
    np.testing.assert_array_equal(held.kept, fixed.kept)
    assert held.objective == pytest.approx(fixed.objective, rel=1e-6)


def test_held_trees_do_not_change():
    X, y = make_friedman1(ROWS, random_state=0)
    forest = Forest.from_model(RandomForestRegressor(5, max_depth=3, random_state=0).fit(X, y))
    problem = pose(encode(forest, X), y)
    rule = subtree_rule(problem, None)
    Descent(rule).descend(0.01, 100, held=(1, 3))
    np.testing.assert_array_equal(rule.depths[[1, 3]], 0)
    assert rule.depths[[0, 2, 4]].all()
    assert not Descent(subtree_rule(problem, None)).descend(0.01, 1)


@given(case=cases(), data=st.data())
def test_masks_splits_and_nodes_say_the_same(case, data):
    forest = case.forest
    masks = [
        naive.kept_mask(root, data.draw(st.sampled_from(list(naive.prunings(root)))))
        for root in case.roots
    ]
    mask = np.array([kept for tree in masks for kept in tree], dtype=bool)
    left = np.flatnonzero(forest.left >= 0)
    starts = np.repeat(forest.offsets[:-1], np.diff(forest.offsets))
    splits = mask[starts[left] + forest.left[left]]
    np.testing.assert_array_equal(kept_mask(forest, splits), mask)
    nodes = np.setdiff1d(np.flatnonzero(mask), forest.offsets[:-1])
    np.testing.assert_array_equal(kept_nodes(forest.offsets, splits), nodes)
    np.testing.assert_array_equal(kept_leaves(forest, splits), np.setdiff1d(nodes, left[splits]))
    depths = [naive.tree_depth_of_mask(r, m) for r, m in zip(case.roots, masks, strict=True)]
    np.testing.assert_array_equal(kept_depths(forest, splits), depths)
    np.testing.assert_array_equal(unpack_splits(pack_splits(splits), forest), splits)
    values = np.arange(float(kept_leaves(forest, splits).size))[np.newaxis]
    gone = np.array([data.draw(st.booleans()) for _ in case.roots], dtype=bool)
    left_over, their_values = without_trees(forest, splits, values, gone)
    stays = ~gone[np.searchsorted(forest.offsets, kept_leaves(forest, splits), "right") - 1]
    np.testing.assert_array_equal(
        kept_leaves(forest, left_over), kept_leaves(forest, splits)[stays]
    )
    np.testing.assert_array_equal(their_values, values[:, stays])


@given(case=cases(), data=st.data())
def test_cutting_at_depths_keeps_splits_above_them(case, data):
    depths = np.array([data.draw(st.integers(0, k)) for k in case.depths], dtype=np.int64)
    splits = splits_within(case.forest, depths)
    np.testing.assert_array_equal(
        kept_mask(case.forest, splits),
        case.forest.node_depths <= np.repeat(depths, np.diff(case.forest.offsets)),
    )
    np.testing.assert_array_equal(kept_depths(case.forest, splits), depths)
