"""A sample that sums over all rows correct: what it then says of them."""

from dataclasses import replace

import numpy as np
import pytest
from effort import INTERPRETED
from hypothesis import given
from hypothesis import strategies as st
from small_problems import descended, subtree_rule
from strategies import alphas, cases

from forestprune.forest.checks import seal
from forestprune.rows.encoding import Encoding
from forestprune.solve.correction import Sums

shrinkages = st.sampled_from([None, 0.5, 10.0])


def sums_at(rule):
    """Return the sums over all rows at what a rule keeps."""
    encoding, problem = rule.problem.encoding, rule.problem
    residual = np.array([encoding.node_sums(each) for each in rule.residual])
    return Sums(problem.node_weights, residual)


def problem_of(problem, rows, times):
    """Return a problem about some rows, each standing for some `times` itself."""
    weights = np.ones(problem.encoding.n_rows)
    if problem.sample_weight is not None:
        weights = problem.sample_weight
    plain = problem.residual / np.where(weights > 0.0, weights, 1.0)
    weights = weights[rows] * times
    codes = problem.encoding.codes[:, rows]
    return replace(
        problem,
        encoding=Encoding(problem.encoding.forest, seal(np.ascontiguousarray(codes))),
        target=seal(problem.target[:, rows]),
        sample_weight=seal(weights),
        residual=seal(plain[:, rows] * weights),
    )


def without_rows(problem):
    nothing = seal(np.empty((len(problem.target), 0)))
    encoding = Encoding(problem.encoding.forest, seal(problem.encoding.codes[:, :0].copy()))
    return replace(problem, encoding=encoding, target=nothing, sample_weight=None, residual=nothing)


@given(case=cases(), alpha=alphas, beyond=alphas, shrinkage=shrinkages)
def test_without_any_row_sums_alone_tell_what_trees_gain(case, alpha, beyond, shrinkage):
    problem = case.pose()
    rule = descended(subtree_rule(problem, shrinkage, lazy=False), alpha, 3)
    point = rule.point(beyond)
    other = subtree_rule(without_rows(problem), shrinkage, lazy=False)
    other.move_to(point)
    other.correct(sums_at(rule))
    expected = rule.tree_gains(beyond)
    np.testing.assert_allclose(other.tree_gains(beyond), expected, rtol=1e-7, atol=1e-9)
    # And the best of them, once it has what is best for it, gains no more.
    if expected.max(initial=0.0) > 1e-5:
        best = np.array([expected.argmax()])
        other.sweep(beyond, best)
        assert other.tree_gains(beyond)[best] <= 1e-5


@given(case=cases(), alpha=alphas, beyond=alphas, shrinkage=shrinkages)
def test_a_sample_of_all_rows_needs_no_correction(case, alpha, beyond, shrinkage):
    problem = case.pose()
    rule = descended(subtree_rule(problem, shrinkage), alpha, 3)
    rule.correct(sums_at(rule))
    trees = rule.problem.trees
    np.testing.assert_allclose(trees.weight, trees.own)
    np.testing.assert_allclose(
        trees.excess, 0.0, atol=1e-7 * (1.0 + np.abs(trees.excess).max(initial=0.0))
    )


def surrogate(rule, point, reference, sums, own):
    """Return what a sample says of a point, row by row and leaf by leaf.

    `own` are the sample's sums at the reference.
    """
    problem, forest = rule.problem, rule.problem.encoding.forest
    rule.move_to(point)
    weights = problem.sample_weight
    squares = rule.residual**2 / np.where(weights > 0.0, weights, 1.0)
    total = squares.sum()
    added = {i: _by_node(forest, i, point) for i in range(forest.n_trees)}
    then = {i: _by_node(forest, i, reference) for i in range(forest.n_trees)}
    for i in range(forest.n_trees):
        for v, f in added[i].items():
            more = sums.weight[v] - own.weight[v]
            inside = [leaf for leaf in _below(forest, v) if forest.left[leaf] < 0]
            was = np.array([_value_above(forest, i, leaf, then[i], f) for leaf in inside])
            count = sums.weight[inside] - own.weight[inside]
            excess = sums.residual[:, v] - own.residual[:, v] + (count[:, np.newaxis] * was).sum(0)
            if more < 0.0 and sums.weight[v] > 0.0:
                mean = (sums.weight[inside][:, np.newaxis] * was).sum(0) / sums.weight[v]
                excess = excess - more * mean
            total += (max(more, 0.0) * f**2 - 2.0 * excess * f).sum()
    return total / problem.variation


def _below(forest, v):
    """Return a node and all below it."""
    a = forest.offsets[np.searchsorted(forest.offsets, v, side="right") - 1]
    if forest.left[v] < 0:
        return [v]
    left = a + forest.left[v]
    return [v, *_below(forest, left), *_below(forest, left + 1)]


def _by_node(forest, i, point):
    """Return what each leaf of a pruned tree adds, by node."""
    from forestprune.solve.point import kept_leaves

    leaves = kept_leaves(forest, point.splits(forest))
    mine = (leaves >= forest.offsets[i]) & (leaves < forest.offsets[i + 1])
    root = forest.value[forest.offsets[i]]
    if point.values is None:
        values = [(forest.value[v] - root) * forest.scale[i] for v in leaves[mine]]
    else:
        values = point.values[:, mine].T
    return dict(zip(leaves[mine].tolist(), values, strict=True))


def _value_above(forest, i, leaf, by_node, like):
    for v, value in by_node.items():
        if leaf in _below(forest, v):
            return value
    return np.zeros_like(like)


@pytest.mark.skipif(INTERPRETED, reason="whole prunings, left to the compiled run")
@given(
    case=cases(),
    alpha=alphas,
    steps=st.lists(alphas, min_size=1, max_size=3),
    shrinkage=st.sampled_from([0.5, 10.0]),
    seed=st.integers(0, 5),
)
def test_what_is_minimised_falls_and_is_what_it_is_said_to_be(case, alpha, steps, shrinkage, seed):
    problem = case.pose()
    rule = descended(subtree_rule(problem, shrinkage), alpha, 2)
    reference, sums = rule.point(alpha), sums_at(rule)
    m = problem.encoding.n_rows
    rows = np.sort(np.random.default_rng(seed).permutation(m)[: max(1, m // 2)])
    sample = problem_of(problem, rows, m / rows.size)
    rule = subtree_rule(sample, shrinkage)
    rule.move_to(reference)
    own = sums_at(rule)
    rule.correct(sums)
    for step in steps:
        found, begun = [], rule.point(step).objective
        for _ in range(4):
            rule.sweep(step, rule.order)
            rule.refine(step, rule.order, 5)
            found.append(rule.point(step))
            assert found[-1].objective <= begun + 1e-9 * (1.0 + abs(begun))
            begun = found[-1].objective
        first, last = found[0], found[-1]
        costs = [
            rule.problem.objective(
                0.0,
                step,
                rule.costs[point.splits(case.forest)],
                value_penalty=rule.priced(replace(point, loss=0.0)) * rule.problem.variation
                - step * rule.costs[point.splits(case.forest)].sum() * rule.problem.variation,
            )
            for point in (first, last)
        ]
        told = [
            surrogate(rule, point, reference, sums, own) + cost
            for point, cost in zip((first, last), costs, strict=True)
        ]
        assert first.objective - last.objective == pytest.approx(
            told[0] - told[1], abs=1e-7 * (1.0 + abs(told[0]))
        )
        rule.move_to(last)


@pytest.mark.skipif(INTERPRETED, reason="whole prunings, left to the compiled run")
@given(case=cases(), alpha=alphas, shrinkage=st.sampled_from([0.5, 10.0]), seed=st.integers(0, 5))
def test_shared_rows_and_passes_refit_alike(case, alpha, shrinkage, seed):
    problem = case.pose()
    start = descended(subtree_rule(problem, shrinkage), alpha, 2)
    reference, sums = start.point(alpha), sums_at(start)
    m = problem.encoding.n_rows
    rows = np.sort(np.random.default_rng(seed).permutation(m)[: max(1, m // 2)])
    points = []
    for leaves in (1024, 0):
        rule = subtree_rule(problem_of(problem, rows, 2.0), shrinkage, gram_leaves=leaves)
        rule.move_to(reference)
        rule.correct(sums)
        rule.refine(alpha, rule.order, 1)
        points.append(rule.point(alpha))
    np.testing.assert_allclose(points[0].values, points[1].values, rtol=1e-6, atol=1e-8)
    assert points[0].objective == pytest.approx(points[1].objective, rel=1e-8, abs=1e-10)
