"""Active sets: what they leave out is not kept in the end, and nothing else changes."""

import numpy as np
import pytest
from effort import INTERPRETED
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor
from small_problems import changes, descended, shrinkages, subtree_rule
from strategies import alphas, cases

from forestprune import Forest, encode
from forestprune.solve.descent import Descent
from forestprune.solve.problem import pose

ROWS, TREES = (60, 4) if INTERPRETED else (400, 12)


@given(
    case=cases(),
    alpha=alphas,
    begin=alphas,
    shrinkage=shrinkages,
    ahead=st.sampled_from([1.0, 0.3]),
    screened_rows=st.sampled_from([1e-9, np.inf]),
)
def test_whole_trees_find_nothing_better_in_the_end(
    case, alpha, begin, shrinkage, ahead, screened_rows
):
    problem = case.pose()
    rule = subtree_rule(problem, shrinkage, deep=0.0, ahead=ahead, screened_rows=screened_rows)
    descent = Descent(rule)
    descent.descend(begin, 3)
    assert descent.descend(alpha, 10_000)
    whole = subtree_rule(problem, shrinkage, deep=np.inf)
    whole.move_to(rule.point(alpha))
    assert whole.active_nodes == case.forest.n_nodes
    # Twice what counts as a gain: the residual was come by in another way.
    price = whole.price(alpha)
    assert (whole.gains(alpha, whole.order) <= 2 * price.min_gain).all()


@given(case=cases(min_trees=1), alpha=alphas, begin=alphas, shrinkage=shrinkages)
def test_whole_trees_gain_what_the_objective_then_falls_by(case, alpha, begin, shrinkage):
    problem = case.pose()
    rule = descended(subtree_rule(problem, shrinkage, deep=0.0), begin, 3)
    now = rule.point(alpha)
    gains = rule.gains(alpha, rule.order) / problem.variation
    for tree in rule.order:
        alone = subtree_rule(problem, shrinkage, deep=np.inf, lazy=False)
        alone.move_to(now)
        before = alone.point(alpha).objective
        alone.sweep(alpha, np.array([tree]))
        fallen = before - alone.point(alpha).objective
        scale = 1.0 + abs(before)
        counts = alone.price(alpha).min_gain / problem.variation
        # A sweep changes a tree only if that gains more than what counts.
        expected = gains[tree] if gains[tree] > counts else 0.0
        assert fallen == pytest.approx(expected, abs=1e-8 * scale + counts)


@given(case=cases(), begin=alphas, shrinkage=shrinkages)
def test_choosing_active_nodes_changes_nothing_that_is_kept(case, begin, shrinkage):
    rule = descended(subtree_rule(case.pose(), shrinkage, deep=0.0), begin, 3)
    before = rule.point(begin)
    rule.begin(begin / 100, rule.order)
    after = rule.point(begin)
    assert after.objective == before.objective
    np.testing.assert_array_equal(after.kept, before.kept)
    np.testing.assert_array_equal(after.depths, before.depths)
    if shrinkage is not None:
        np.testing.assert_array_equal(after.values, before.values)


@pytest.mark.parametrize("refit", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_deep_forests_are_pruned_as_well_as_by_whole_trees(refit, weighted):
    X, y = make_friedman1(ROWS, noise=1.0, random_state=0)
    forest = Forest.from_model(RandomForestRegressor(TREES, random_state=0).fit(X, y))
    weights = np.random.default_rng(0).random(ROWS) if weighted else None
    problems = [
        pose(encode(forest, X), y, sample_weight=weights, n_jobs=n_jobs) for n_jobs in (1, 3)
    ]
    shrinkage = 20.0 if refit else None
    active, in_threads = (subtree_rule(problem, shrinkage, shared=0) for problem in problems)
    whole = subtree_rule(problems[0], shrinkage, deep=np.inf)
    highest, _ = active.alpha_range()
    descents = [Descent(rule) for rule in (active, in_threads, whole)]
    objectives, expected, left_out = [], [], []
    for alpha in highest * np.geomspace(0.9, 1e-3, 20):
        assert all(descent.descend(alpha, 1000) for descent in descents)
        now, same, then = (descent.rule.point(alpha) for descent in descents)
        objectives.append(now.objective)
        expected.append(then.objective)
        left_out.append(1 - active.active_nodes / forest.n_nodes)
        assert whole.active_nodes == forest.n_nodes
        # Threads change nothing.
        assert same.objective == now.objective
        np.testing.assert_array_equal(same.kept, now.kept)
    # Where nothing can be improved depends a little on the way there, for the better or the worse.
    np.testing.assert_allclose(objectives, expected, rtol=0.05)
    assert np.mean(objectives) <= 1.005 * np.mean(expected)
    # From the last solution, whole trees find nothing better either.
    whole.move_to(now)
    assert changes(whole, alpha) == 0
    assert left_out[0] > 0.5
