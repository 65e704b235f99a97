"""The oblivious rule: exact choices of levels, descent, and what becomes of the solutions."""

from dataclasses import replace

import naive
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from small_problems import changes, descended, shrinkages
from strategies import N_FEATURES, alphas, cases, forests, symmetric_nodes

import forestprune as fp
from forestprune.exceptions import OptionError
from forestprune.forest.origin import Origin
from forestprune.forest.symmetric import is_symmetric, with_levels_first
from forestprune.interop.source import Source
from forestprune.options import Options
from forestprune.polishing.leaf import refit_leaves
from forestprune.polishing.ridge import ridge_weights
from forestprune.polishing.tree_equations import TreeEquations
from forestprune.select.pruned import PrunedForest
from forestprune.select.solver import everything
from forestprune.solve.contributions import Predictions
from forestprune.solve.descent import Descent
from forestprune.solve.oblivious import ObliviousRule
from forestprune.solve.subtrees.tuning import Tuning

TOLERANCE = 1e-10


def symmetric_cases(**options):
    return cases(trees=symmetric_nodes, **options)


@st.composite
def constrained_cases(draw, **options):
    """Draw a case with at least one constraint, whose trees need not keep it as they are."""
    case = draw(symmetric_cases(categorical=False, max_outputs=1, **options))
    signs = draw(st.lists(st.sampled_from([-1, 0, 1]), min_size=N_FEATURES, max_size=N_FEATURES))
    assume(any(signs) and case.forest.n_trees)
    origin = Origin("catboost", "Model", {"symmetric": True}, monotone=tuple(signs))
    case.forest = replace(case.forest, origin=origin)
    return case


def oblivious_rule(case, shrinkage, weighting="node", **tuning):
    refit = shrinkage is not None
    how = {"refit": refit, "shrinkage": shrinkage if refit else None, "weighting": weighting}
    tuning = Tuning(**{"value_tolerance": TOLERANCE} | tuning)
    return ObliviousRule(case.pose(), Options(rule="oblivious", **how), tuning)


def kept_levels(case, point, i):
    """Return the depths of the levels that a point keeps of tree i."""
    depth = naive.tree_depth(case.roots[i])
    return tuple(k for k in range(depth) if int(point.levels[i]) >> (depth - 1 - k) & 1)


class Twin:
    """The objective of trees with some levels, without anything of the package."""

    def __init__(self, case, shrinkage, rule):
        self.case, self.shrinkage, self.costs = case, shrinkage, rule.costs
        self.weights = np.ones(len(case.X)) if case.weights is None else case.weights
        self.variation = rule.problem.variation
        # Targets may differ in their last digits only: then all depends on how the intercept, which
        # is tested elsewhere, is rounded.
        self.rest = case.y - rule.problem.intercept

    def square(self, residual):
        return float((self.weights[:, None] * residual**2).sum()) / self.variation

    def settle(self, i):
        """Return what brings the values of tree i into order; None if there is nothing to do."""
        signs = self.case.forest.monotone
        if not signs.size:
            return None
        asked = [layer[0].feature for layer in naive.layers(self.case.roots[i])[:-1]]
        sign = [int(signs[feature] * np.sign(self.case.forest.scale[i])) for feature in asked]

        def settle(values, weights, kept):
            some = {
                cell: weight if any(weights.values()) else 1.0 for cell, weight in weights.items()
            }
            flat = {cell: float(value[0]) for cell, value in values.items()}
            found = naive.isotonic(flat, some, [sign[k] for k in kept])
            return {cell: np.array([value]) for cell, value in found.items()}

        return settle

    def objective(self, i, kept, rest, alpha):
        change, _, _ = naive.level_objective(
            self.case, i, kept, rest, self.shrinkage, self.settle(i)
        )
        return change / self.variation + alpha * self.costs[i, len(kept)]

    def best(self, i, rest, alpha):
        choices = naive.level_choices(self.case.roots[i])
        return min(self.objective(i, kept, rest, alpha) for kept in choices)

    def added(self, point, i):
        """Return what tree i adds at a point, and the squared change of its values."""
        root, scale = self.case.roots[i], self.case.forest.scale[i]
        added, kept = np.zeros_like(self.rest), kept_levels(self.case, point, i)
        start = int(np.where(point.depths > 0, 2**point.depths, 0)[:i].sum())
        cells, shift = naive.cells_of(root, kept) if kept else {}, 0.0
        for j, cell in enumerate(sorted(cells)):
            value = point.values[:, start + j]
            ends = [naive.visited(root, row, self.case.dtype)[-1] for row in self.case.X]
            rows = [x for x, end in enumerate(ends) if any(end is leaf for leaf in cells[cell])]
            added[rows] = value
            origin = scale * (naive.mean_of_leaves(cells[cell]) - np.array(root.value))
            shift += float(((value - origin) ** 2).sum())
        return added, shift


def slack_of(rule, alpha):
    # What counts as a gain is more than TOLERANCE where targets hardly vary beside what they are.
    return 2 * max(TOLERANCE, rule.price(alpha).min_gain / rule.problem.variation)


@given(
    case=symmetric_cases(max_trees=1),
    alpha=alphas,
    shrinkage=shrinkages,
    weighting=st.sampled_from(["node", "depth"]),
)
def test_one_tree_keeps_the_levels_that_enumeration_says(case, alpha, shrinkage, weighting):
    rule = oblivious_rule(case, shrinkage, weighting)
    assert Descent(rule).descend(alpha, 100)
    twin = Twin(case, shrinkage, rule)
    least = twin.square(twin.rest) + (twin.best(0, twin.rest, alpha) if case.roots else 0.0)
    reached = rule.point(alpha).objective
    assert reached == pytest.approx(least, rel=1e-9, abs=slack_of(rule, alpha))


@given(case=constrained_cases(max_trees=1), alpha=alphas, shrinkage=st.sampled_from([0.5, 10.0]))
def test_with_constraints_too(case, alpha, shrinkage):
    rule = oblivious_rule(case, shrinkage)
    descended(rule, alpha, 100)
    twin = Twin(case, shrinkage, rule)
    least = twin.square(twin.rest) + twin.best(0, twin.rest, alpha)
    reached = rule.point(alpha).objective
    assert reached == pytest.approx(least, rel=1e-6, abs=1e-6 + slack_of(rule, alpha))


@given(case=symmetric_cases(), alpha=alphas, shrinkage=shrinkages)
def test_no_single_tree_can_improve_the_result(case, alpha, shrinkage):
    rule = oblivious_rule(case, shrinkage)
    assert Descent(rule).descend(alpha, 100_000)
    point, twin = rule.point(alpha), Twin(case, shrinkage, rule)
    found = [twin.added(point, i) for i in range(len(case.roots))]
    residual = twin.rest - sum(added for added, _ in found)
    cost = sum(rule.costs[i, len(kept_levels(case, point, i))] for i in range(len(found)))
    objective = twin.square(residual) + alpha * cost
    objective += (shrinkage or 0.0) * sum(shift for _, shift in found) / twin.variation
    for other in (point.objective, rule.priced(point)):
        assert other == pytest.approx(objective, rel=1e-8, abs=1e-9)
    assert point.loss == pytest.approx(twin.square(residual), rel=1e-8, abs=1e-9)
    assert point.n_nodes == rule.n_nodes()
    for i, (added, shift) in enumerate(found):
        rest = residual + added
        present = twin.square(residual) - twin.square(rest)
        present += alpha * rule.costs[i, len(kept_levels(case, point, i))]
        present += (shrinkage or 0.0) * shift / twin.variation
        best = twin.best(i, rest, alpha)
        assert present <= best + slack_of(rule, alpha) + 1e-9 * (1 + objective)


def keeps_order(case, point):
    """See that cells which differ in one constrained level are in order, to the last bit."""
    signs, start = case.forest.monotone, 0
    for i, root in enumerate(case.roots):
        kept = kept_levels(case, point, i)
        if not kept:
            continue
        asked = [layer[0].feature for layer in naive.layers(root)[:-1]]
        value = point.values[0, start : start + 2 ** len(kept)].reshape((2,) * len(kept))
        value = value * point.weights[i]
        start += 2 ** len(kept)
        for axis, k in enumerate(kept):
            sign = signs[asked[k]] * np.sign(case.forest.scale[i])
            assert (sign * np.diff(value, axis=axis) >= 0.0).all()


@given(case=constrained_cases(), alpha=alphas, shrinkage=shrinkages)
def test_constraints_are_kept_to_the_last_bit(case, alpha, shrinkage):
    rule = oblivious_rule(case, shrinkage)
    descended(rule, alpha, 100_000)
    point, problem = rule.point(alpha), rule.problem
    keeps_order(case, point)
    assert rule.priced(point) == pytest.approx(point.objective, rel=1e-8, abs=1e-9)
    polished = refit_leaves(problem, point, 1.0)
    keeps_order(case, polished)
    assert rule.priced(polished) >= 0.0
    keeps_order(case, ridge_weights(TreeEquations(problem), point, 0.01))


@given(case=constrained_cases(), shrinkage=shrinkages)
def test_the_objective_never_rises(case, shrinkage):
    rule = oblivious_rule(case, shrinkage)
    for alpha in (0.3, 0.05, 0.0):
        before = np.inf
        for _ in range(5):
            changes(rule, alpha)
            now = rule.point(alpha).objective
            assert now <= before + 1e-9 * abs(before if np.isfinite(before) else 1.0)
            rule.refine(alpha, rule.order, 10)
            before = rule.point(alpha).objective
            assert before <= now + 1e-9 * abs(now)


def descend_both(lazy, eager, alphas):
    """Let two descents go on, and see that they stay the same to the last bit."""
    for alpha in alphas:
        for descent in (lazy, eager):
            descent.descend(alpha, 1000)
        now, then = lazy.rule.point(alpha), eager.rule.point(alpha)
        assert now.objective == then.objective
        np.testing.assert_array_equal(now.levels, then.levels)
        np.testing.assert_array_equal(now.values, then.values)


@given(case=symmetric_cases() | constrained_cases(), alpha=alphas, shrinkage=shrinkages)
def test_lazy_sweeps_end_where_eager_ones_do(case, alpha, shrinkage):
    lazy, eager = (Descent(oblivious_rule(case, shrinkage, lazy=lazy)) for lazy in (True, False))
    descend_both(lazy, eager, (10 * alpha, 8 * alpha, alpha, 0.8 * alpha, alpha / 10))
    assert lazy.looks <= eager.looks


@given(case=symmetric_cases(min_trees=1), shrinkage=shrinkages)
def test_the_highest_alpha_is_where_the_first_tree_enters(case, shrinkage):
    rule = oblivious_rule(case, shrinkage)
    highest, lowest = rule.alpha_range()
    assert 0.0 <= lowest <= highest
    assume(highest >= 1e-6)
    descended(rule, highest * (1 + 1e-9), 100)
    assert rule.n_nodes() == 0
    assert (rule.gains(highest * (1 - 1e-3)) > 0.0).any()


@given(case=symmetric_cases() | constrained_cases(), alpha=alphas, shrinkage=shrinkages)
def test_moving_to_a_solution_restores_it(case, alpha, shrinkage):
    rule = descended(oblivious_rule(case, shrinkage), alpha, 100)
    other = descended(oblivious_rule(case, shrinkage), alpha / 3, 100)
    point = rule.point(alpha)
    other.move_to(point)
    again = other.point(alpha)
    np.testing.assert_array_equal(again.levels, point.levels)
    np.testing.assert_array_equal(again.kept, point.kept)
    np.testing.assert_allclose(again.values, point.values, rtol=1e-12, atol=1e-12)
    assert again.objective == pytest.approx(point.objective, rel=1e-8, abs=1e-10)
    other.move_to(everything(rule.problem))
    assert (other.depths == case.forest.depths).all()
    assert other.is_full() == (shrinkage is None)


@given(
    case=symmetric_cases(),
    alpha=alphas,
    shrinkage=shrinkages,
    polish=st.sampled_from([None, "leaf", "ridge"]),
)
def test_what_is_left_predicts_what_the_point_says(case, alpha, shrinkage, polish):
    rule = descended(oblivious_rule(case, shrinkage), alpha, 100)
    problem, point = rule.problem, rule.point(alpha)
    if polish == "leaf":
        point = refit_leaves(problem, point, 1.0)
    elif polish == "ridge":
        point = ridge_weights(TreeEquations(problem), point, 0.01)
    twin = Twin(case, shrinkage, rule)
    said = point.intercept + sum(
        point.weights[i] * twin.added(point, i)[0] for i in range(len(case.roots))
    )
    said = np.broadcast_to(said, case.y.shape)
    small = PrunedForest.of(Source(case.forest), point)
    assert is_symmetric(small.forest)
    assert small.n_nodes == point.n_nodes
    predicted = small.predict(case.X).reshape(said.shape)
    size = 1.0 + np.abs(case.forest.value).max(initial=0.0) * np.abs(case.forest.scale).sum()
    size += np.abs(case.y).max() + np.abs(said).max()
    np.testing.assert_allclose(predicted, said, rtol=1e-9, atol=1e-9 * size)
    # Row by row from one point to another, as validation goes.
    running = Predictions(problem.encoding, problem.trees)
    for each in (point, everything(problem), point):
        running.move_to(each)
    np.testing.assert_allclose(
        running.values.T + point.intercept, said, rtol=1e-9, atol=1e-9 * size
    )
    loss = twin.square(case.y - said)
    slack = 1e-9 + 1e-8 * float(size) ** 2 / twin.variation
    assert point.loss == pytest.approx(loss, rel=1e-6, abs=slack)


@given(drawn=forests(trees=symmetric_nodes, min_trees=1), data=st.data())
def test_the_order_of_levels_does_not_matter(drawn, data):
    _, forest = drawn
    levels = np.array(
        [data.draw(st.integers(0, 2**depth - 1)) for depth in forest.depths.tolist()], np.uint32
    )
    X = np.random.default_rng(0).choice([0.0, 0.3, 1.0, 2.0, 40.0, np.nan], (30, N_FEATURES))
    ordered = with_levels_first(forest, levels)
    np.testing.assert_array_equal(ordered.predict(X), forest.predict(X))
    np.testing.assert_array_equal(ordered.offsets, forest.offsets)
    assert is_symmetric(ordered)
    again = with_levels_first(ordered, (1 << np.bitwise_count(levels)).astype(np.uint32) * 0)
    np.testing.assert_array_equal(again.feature, ordered.feature)


@given(drawn=forests(min_trees=1))
def test_symmetry_is_seen(drawn):
    roots, forest = drawn

    def question(node):
        return node.feature, node.threshold, node.missing_left, node.categories

    same = all(
        len(layer) == 2**k
        and len({(n.is_leaf, *(() if n.is_leaf else question(n))) for n in layer}) == 1
        for root in roots
        for k, layer in enumerate(naive.layers(root))
    )
    assert is_symmetric(forest) == same
    if not same:
        X = np.zeros((5, N_FEATURES))
        with pytest.raises(OptionError, match="needs symmetric trees"):
            fp.prune(forest, X, np.zeros((5, forest.n_outputs)), rule="oblivious")
