"""The objective, against its equation; what layers cost; that alpha has no unit."""

from dataclasses import replace

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_friedman1
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from strategies import alphas, cases

from forestprune import Forest, encode
from forestprune.options import Options
from forestprune.solve.costs import layer_costs, split_costs
from forestprune.solve.descent import Descent
from forestprune.solve.layers.rule import LayerRule
from forestprune.solve.problem import checked_target, pose


def residual_of(case, problem, depths, weights):
    """Return what trees cut at `depths` leave, as the problem keeps residuals."""
    predicted = naive.pruned_predictions(
        case.roots, case.X, case.forest.scale, case.forest.base, depths, weights, case.dtype
    )
    row_weights = 1.0 if case.weights is None else case.weights
    return (case.y - predicted).T * row_weights


@given(cases(), alphas, st.data())
def test_the_objective_is_that_of_the_paper(case, alpha, data):
    rule = case.layer_rule()
    depths = [data.draw(st.integers(0, depth)) for depth in case.depths]
    free = st.sampled_from([1.0] if case.joint is None else [1.0, 0.5, -2.0])
    weights = [data.draw(free) for _ in depths]
    rule.cut_at(np.array(depths, dtype=np.int64), np.array(weights))
    expected = naive.objective(case, depths, weights, alpha)
    slack = naive.uncertainty(case, rule.problem, weights, expected)
    assert rule.objective(alpha) == pytest.approx(expected, rel=1e-9, abs=slack)
    point = rule.point(alpha)
    assert point.objective == rule.objective(alpha)
    residual = residual_of(case, rule.problem, depths, weights)
    unexplained = rule.problem.unexplained(residual.astype(float))
    assert point.loss == pytest.approx(unexplained, rel=1e-9, abs=slack)
    assert rule.priced(point) == pytest.approx(point.objective, rel=1e-12)


@given(cases())
def test_nothing_kept_leaves_the_residual_of_the_intercept(case):
    problem = case.pose()
    nothing = [0] * len(case.roots)
    expected = residual_of(case, problem, nothing, [1.0] * len(case.roots))
    np.testing.assert_allclose(problem.residual, expected, rtol=1e-9, atol=1e-9)
    expected = naive.intercept(case.roots, case.forest.scale, case.forest.base)
    np.testing.assert_allclose(problem.intercept, expected, rtol=1e-12, atol=1e-12)


@given(cases())
def test_costs_add_up_over_layers(case):
    found = layer_costs(case.forest, case.weighting)
    costs, K = naive.layer_costs(case.roots, case.weighting)
    for i, mine in enumerate(costs):
        expected = np.cumsum([0.0, *mine]) / (K or 1)
        np.testing.assert_allclose(found[i, : len(expected)], expected, rtol=1e-12)


def test_costs_a_node_are_costs_a_layer():
    X, y = make_friedman1(100, random_state=0)
    model = RandomForestRegressor(3, max_depth=3, random_state=0).fit(X, y)
    forest = Forest.from_model(model)
    by_node = layer_costs(forest, np.ones(forest.n_nodes))
    np.testing.assert_allclose(by_node, layer_costs(forest, "node"))
    by_depth = forest.node_depths.astype(float)
    layers = forest.layer_sizes() * np.arange(1, forest.max_depth + 1)
    np.testing.assert_allclose(layer_costs(forest, by_depth), layer_costs(forest, layers))


def test_everything_costs_one():
    X, y = make_friedman1(100, random_state=0)
    model = RandomForestRegressor(3, max_depth=3, random_state=0).fit(X, y)
    forest = Forest.from_model(model)
    for weighting in ("node", "depth", np.full((3, 3), 0.7)):
        assert layer_costs(forest, weighting)[:, -1].sum() == pytest.approx(1.0)
    for weighting in ("node", np.full(forest.n_nodes, 0.7)):
        assert split_costs(forest, weighting).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("joint", [None, "ridge", "subset"])
def test_alpha_has_no_unit(joint):
    X, y = make_friedman1(200, random_state=0)
    model = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X, y)
    forest = Forest.from_model(model)
    solutions = []
    # Another unit for the target; the scale moved from the trees into their values; rows doubled.
    for unit, inner, times in ((1.0, 1.0, 1), (1000.0, 1.0, 1), (1.0, 64.0, 1), (1.0, 1.0, 2)):
        changed = replace(
            forest,
            value=forest.value * unit * inner,
            scale=forest.scale / inner,
            base=forest.base * unit,
        )
        problem = pose(encode(changed, np.tile(X, (times, 1))), np.tile(y * unit, times))
        rule = LayerRule(problem, Options(rule="layer", joint=joint))
        Descent(rule).descend(0.5, 100)
        solutions.append(rule.point(0.5))
    for solution in solutions[1:]:
        np.testing.assert_array_equal(solution.depths, solutions[0].depths)
        np.testing.assert_allclose(solution.weights, solutions[0].weights, rtol=1e-3)
        assert solution.objective == pytest.approx(solutions[0].objective, rel=1e-6)


def test_constant_targets_have_no_variance_to_divide_by():
    X, y = make_friedman1(50, random_state=0)
    forest = Forest.from_model(RandomForestRegressor(2, max_depth=2, random_state=0).fit(X, y))
    for constant in (0.0, 5.0, 1e9 + 0.1):
        problem = pose(encode(forest, X), np.full(50, constant))
        assert problem.variation == 50


@pytest.mark.parametrize(
    ("weighting", "complaint"),
    [
        (np.ones((2, 2)), "must have shape"),
        (np.ones(3), "must have shape"),
        (-np.ones((2, 3)), "not negative"),
        (np.full((2, 3), np.nan), "finite"),
    ],
)
def test_unusable_costs_are_refused(weighting, complaint):
    X, y = make_friedman1(50, random_state=0)
    forest = Forest.from_model(RandomForestRegressor(2, max_depth=3, random_state=0).fit(X, y))
    with pytest.raises(ValueError, match=complaint):
        layer_costs(forest, weighting)
    with pytest.raises(ValueError, match="must have shape"):
        split_costs(forest, weighting)
    with pytest.raises(ValueError, match="not negative"):
        split_costs(forest, -np.ones(forest.n_nodes))


@pytest.mark.parametrize(
    ("y", "complaint"),
    [
        (np.zeros(4), r"shape \(5,\).*Got \(4,\)"),
        (np.zeros((5, 2)), r"Got \(5, 2\)"),
        (np.array([0, 1, np.nan, 3, 4]), "finite"),
        (np.array([0, 1, np.inf, 3, 4]), "finite"),
    ],
)
def test_unusable_targets_are_refused(y, complaint):
    with pytest.raises(ValueError, match=complaint):
        checked_target(y, 5, 1)
