"""Descent: what kernels say of a tree, block optimality, lazy sweeps, and when it gives up."""

import itertools

import naive
import numpy as np
import pytest
from effort import INTERPRETED
from hypothesis import given
from hypothesis import strategies as st
from naive import Node
from sklearn.datasets import make_friedman1
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from strategies import alphas, cases, raw_tree

from forestprune import Forest, InputSpec, encode
from forestprune.forest.build import build_forest
from forestprune.options import Options
from forestprune.solve.descent import Descent
from forestprune.solve.layers.layers import measured_layers
from forestprune.solve.layers.rule import LayerRule
from forestprune.solve.layers.tuning import Tuning
from forestprune.solve.problem import pose

ROWS, TREES = (30, 6) if INTERPRETED else (150, 30)
compiled_only = pytest.mark.skipif(INTERPRETED, reason="too many rows to go through interpreted")


SKETCH = {"sketch_share": 0.0, "cells": 4, "cell_layers": 2}

# The smallest forests have a sketch too, or none.
sketched = pytest.mark.parametrize("sketch_rows", [10**9, 1], ids=["no sketch", "sketch"])


def rule_of(forest, X, y, **options):
    """Return the rule for a forest, cutting nothing yet."""
    return LayerRule(pose(encode(forest, X), y), Options(rule="layer", **options))


def descend_both(lazy, eager, alphas, max_iter):
    """Let two descents go on, and see that they stay the same to the last bit."""
    for alpha in alphas:
        for descent in (lazy, eager):
            descent.descend(alpha, max_iter)
        now, then = lazy.rule, eager.rule
        assert now.objective(alpha) == then.objective(alpha)
        np.testing.assert_array_equal(now.depths, then.depths)
        np.testing.assert_array_equal(now.weights, then.weights)


def contributions(case, i):
    """Return what tree i adds at each depth: a list of arrays of shape (m, n_outputs)."""
    scale = case.forest.scale[i]
    return [
        naive.contribution(case.roots[i], case.X, scale, k, case.dtype)
        for k in range(case.depths[i] + 1)
    ]


def inner(case, a, b):
    weights = np.ones(len(case.X)) if case.weights is None else case.weights
    return float((weights[:, None] * a * b).sum())


@given(cases(), st.data())
def test_what_is_known_of_a_tree_is_what_its_rows_say(case, data):
    rule = case.layer_rule()
    depths = np.array([data.draw(st.integers(0, k)) for k in case.depths], dtype=np.int64)
    weights = np.where(depths > 0, [data.draw(st.sampled_from([1.0, 0.5])) for _ in depths], 1.0)
    rule.cut_at(depths, weights)
    rule.look_at(np.arange(depths.size))
    known = rule.save()
    rest = case.y - naive.pruned_predictions(
        case.roots, case.X, case.forest.scale, case.forest.base, depths, weights, case.dtype
    )
    for i in range(depths.size):
        adds = contributions(case, i)
        without = rest + weights[i] * adds[depths[i]]
        scale = 1e-9 * (1 + inner(case, without, without) + inner(case, adds[-1], adds[-1]))
        for k, add in enumerate(adds):
            assert known.correlation[i, k] == pytest.approx(inner(case, add, without), abs=scale)
            assert rule.layers.square[i, k] == pytest.approx(inner(case, add, add), abs=scale)
            for j in range(k):
                apart = inner(case, add - adds[j], add - adds[j]) ** 0.5
                reach = rule.layers.reach[i, k] - rule.layers.reach[i, j]
                assert apart <= reach * (1 + 1e-9) + scale


@given(case=cases(), alpha=alphas)
def test_no_single_tree_can_improve_the_result(case, alpha):
    rule = case.layer_rule()
    descent = Descent(rule)
    # Where a cut tree says much more than its penalty goes by, weights creep.
    assert descent.descend(alpha, 100_000)
    solution = rule.point(alpha)
    depths, weights = solution.depths, rule.weights
    reached = naive.objective(case, depths, weights, alpha)
    slack = 1e-12 + naive.rounding(case)
    assert solution.objective == pytest.approx(reached, rel=1e-9, abs=slack)
    least = rule.tuning.rounding if case.joint is None else rule.tuning.weight_tolerance
    grid = [1.0] if case.joint is None else [*np.linspace(-3, 3, 61), 0.999, 1.001]
    for i, deepest in enumerate(case.depths):
        for k in range(deepest + 1):
            for factor in grid:
                other, betas = depths.copy(), weights.copy()
                other[i] = k
                betas[i] = factor if case.joint is None else factor * (weights[i] or 1.0)
                value = naive.objective(case, other, betas, alpha)
                assert value >= reached - least - slack - 1e-9 * abs(reached)


@pytest.mark.sampled(3)
@sketched
@pytest.mark.parametrize("joint", [None, "ridge", "subset"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["bagged", "boosted", "two outputs"])
def test_lazy_sweeps_end_where_eager_ones_do(joint, weighted, kind, sketch_rows):
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
    options = Options(rule="layer", joint=joint)
    lazy, eager = (
        Descent(LayerRule(problem, options, Tuning(lazy=lazy, sketch_rows=sketch_rows, **SKETCH)))
        for lazy in (True, False)
    )
    descend_both(lazy, eager, (20.0, 3.0, 0.5, 0.05, 1.0), 300)
    assert lazy.sweeps == eager.sweeps
    assert lazy.looks < eager.looks


@sketched
@given(case=cases(max_trees=5), alpha=alphas)
def test_lazy_sweeps_end_where_eager_ones_do_on_any_forest(case, alpha, sketch_rows):
    lazy, eager = (
        Descent(case.layer_rule(lazy=lazy, sketch_rows=sketch_rows, **SKETCH))
        for lazy in (True, False)
    )
    descend_both(lazy, eager, (10 * alpha, alpha, alpha / 10), 100)


@sketched
def test_lazy_sweeps_end_where_eager_ones_do_if_targets_hardly_vary(sketch_rows):
    # One row's target differs from the others' in the eighth digit of what the root says.
    zero = [0.0, 0.0]
    least = Node([2.0**-24, 0.0], 0.0)
    inner = {"feature": 0, "threshold": 0.0, "missing_left": False}
    left = Node(zero, 0.0, **inner, left=Node(zero, 0.0), right=Node(zero, 0.0))
    left = Node(zero, 0.0, **inner, left=Node(zero, 0.0), right=left)
    right = {"feature": 1, "threshold": 0.1, "missing_left": False}
    right = Node(zero, 0.0, **right, left=Node(zero, 0.0), right=least)
    outer = {"feature": 2, "threshold": 0.0, "missing_left": True}
    right = Node(zero, 0.0, **outer, left=right, right=Node(zero, 0.0))
    top = {"feature": 0, "threshold": 0.3, "missing_left": False, "categories": frozenset()}
    roots = [Node([3.131953001022339, 1.0], 0.0, **top, left=left, right=right), Node(zero, 0.0)]
    forest = build_forest(
        [raw_tree(root) for root in roots],
        n_nodes=12,
        scale=[1.5, 1.0],
        base=zero,
        input=InputSpec(n_features=3, ensure_all_finite="allow-nan"),
    )
    nan = np.nan
    X = [[0, nan, 0.1], [0, nan, nan], [0, 0.1, nan], [nan, 0, nan], [nan, 0, nan], [0, 0.1, nan]]
    problem = pose(encode(forest, np.array(X)), forest.predict(X))
    options = Options(rule="layer", joint="ridge", alpha2=0.0)
    lazy, eager = (
        Descent(LayerRule(problem, options, Tuning(lazy=lazy, sketch_rows=sketch_rows, **SKETCH)))
        for lazy in (True, False)
    )
    descend_both(lazy, eager, (0.0,), 100)


@compiled_only
def test_the_sketch_saves_looks_where_trees_are_alike():
    X, y = make_friedman1(3000, noise=1.0, random_state=0)
    model = RandomForestRegressor(40, max_depth=5, random_state=0, n_jobs=2).fit(X, y)
    problem = pose(encode(Forest.from_model(model), X), y)
    looks = []
    for sketch_rows in (1, 10**9):
        rule = LayerRule(problem, tuning=Tuning(sketch_rows=sketch_rows))
        assert (rule.layers.share.size > 0) == (sketch_rows == 1)
        descent = Descent(rule)
        for alpha in np.geomspace(30, 0.1, 10):
            descent.descend(alpha, 1000)
        looks.append(descent.looks)
    assert looks[0] < 0.7 * looks[1]


@given(cases(min_trees=3))
def test_a_sketch_gives_inner_products_but_for_the_rests(case):
    tuning = Tuning(sketch_rows=1, sketch_share=-1.0, cells=4)
    steps = measured_layers(case.pose(), tuning)
    assert steps.share.size > 0 or max(case.depths) == 0
    layers = {
        (i, k): after - before
        for i in range(len(case.roots))
        for k, (before, after) in enumerate(itertools.pairwise(contributions(case, i)))
    }
    for (i, k), a in layers.items():
        for (j, h), b in layers.items():
            known = float(steps.share[i, :, k] @ steps.share[j, :, h])
            rest = np.diff(steps.rest[i])[k] * np.diff(steps.rest[j])[h]
            slack = 1e-9 * (1 + inner(case, a, a) + inner(case, b, b))
            assert abs(inner(case, a, b) - known) <= rest + slack


def test_holding_trees():
    X, y = make_friedman1(100, random_state=0)
    forest = Forest.from_model(RandomForestRegressor(5, max_depth=3, random_state=0).fit(X, y))
    rule = rule_of(forest, X, y)
    Descent(rule).descend(0.01, 100, held=(1, 3))
    np.testing.assert_array_equal(rule.depths[[1, 3]], 0)
    assert rule.depths[[0, 2, 4]].all()


def test_giving_up_is_told():
    X, y = make_friedman1(100, random_state=0)
    forest = Forest.from_model(RandomForestRegressor(9, max_depth=4, random_state=0).fit(X, y))
    descent = Descent(rule_of(forest, X, y))
    assert not descent.descend(0.5, 1)
    assert descent.descend(0.5, 100)


def test_going_back_is_exact():
    X, y = make_friedman1(100, random_state=0)
    forest = Forest.from_model(RandomForestRegressor(9, max_depth=4, random_state=0).fit(X, y))
    rule = rule_of(forest, X, y)
    Descent(rule).descend(0.5, 100)
    assert rule.depths.any()
    saved = rule.save()
    before = [array.copy() for array in saved]
    rule.cut_at(np.zeros(9, np.int64), np.ones(9))
    assert not rule.depths.any()
    rule.restore(saved)
    for now, then in zip(rule.save(), before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_averaged_trees_are_tried_by_their_error_and_boosted_ones_as_they_were_grown():
    X, y = make_friedman1(200, noise=2.0, random_state=0)
    bagged = RandomForestRegressor(20, max_depth=4, random_state=0).fit(X, y)
    forest = Forest.from_model(bagged)
    errors = [np.mean((tree.predict(X) - y) ** 2) for tree in bagged.estimators_]
    order = rule_of(forest, X, y).order
    # Trees are compared without their roots, which are nearly, not quite, the same.
    assert np.corrcoef(np.argsort(order), np.argsort(np.argsort(errors)))[0, 1] > 0.9
    boosted = GradientBoostingRegressor(n_estimators=5, random_state=0).fit(X, y)
    rule = rule_of(Forest.from_model(boosted), X, y)
    np.testing.assert_array_equal(rule.order, np.arange(5))


@compiled_only
def test_trees_without_a_limit_of_depth_need_no_array_of_rows_times_layers():
    X = make_friedman1(400, random_state=0)[0]
    # A chain: each split cuts off one row, so it is as deep as it has rows.
    chain = np.sort(X[:, :1], axis=0)
    model = RandomForestRegressor(
        3, bootstrap=False, max_features=1, criterion="squared_error", random_state=0
    ).fit(chain, np.exp(np.arange(400) / 10))
    forest = Forest.from_model(model)
    assert forest.max_depth > 30
    rule = rule_of(forest, chain, np.exp(np.arange(400) / 10))
    arrays = [*rule.layers, *rule.save(), rule.costs]
    assert max(array.size for array in arrays) < 400 * forest.max_depth
    assert Descent(rule).descend(0.1, 100)
    assert 0 < rule.depths.max() <= forest.max_depth
