"""Losses other than squared error: expansions lead where the loss itself is least."""

from dataclasses import replace
from itertools import pairwise

import naive
import numpy as np
import pytest
from effort import INTERPRETED
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.datasets import make_friedman1
from sklearn.ensemble import GradientBoostingRegressor
from strategies import cases

from forestprune import Forest, encode
from forestprune.forest.cutting import take_trees
from forestprune.loss import (
    AbsoluteError,
    BinaryLogLoss,
    GammaLoss,
    HuberLoss,
    PoissonLoss,
    QuantileLoss,
    SoftmaxLogLoss,
    SquaredError,
    TweedieLoss,
)
from forestprune.options import Options
from forestprune.rows.encoding import Encoding
from forestprune.select.solver import Solver
from forestprune.solve.contributions import Predictions
from forestprune.solve.descent import Descent
from forestprune.solve.expanded import STEEPEST, ExpandedRule
from forestprune.solve.layers.rule import LayerRule
from forestprune.solve.point import kept_depths, kept_leaves, pack_splits
from forestprune.solve.problem import pose
from forestprune.solve.subtrees.rule import SubtreeRule

pytestmark = pytest.mark.skipif(INTERPRETED, reason="whole prunings, left to the compiled run")

X, Y = make_friedman1(300, noise=1.0, random_state=0)
MODEL = GradientBoostingRegressor(n_estimators=12, max_depth=3, random_state=0).fit(X, Y)
SMOOTH = {
    "log-loss": (BinaryLogLoss(), (np.median(Y) < Y).astype(float)),
    "sigmoid": (BinaryLogLoss(0.5), (np.quantile(Y, 0.9) < Y).astype(float)),
    "poisson": (PoissonLoss(), np.rint(np.maximum(Y, 0.0))),
    "gamma": (GammaLoss(), np.maximum(Y, 0.1)),
    "tweedie": (TweedieLoss(1.3), np.where(Y > 10, Y, 0.0)),
}
KINKED = {
    "absolute": (AbsoluteError(), Y),
    "quantile": (QuantileLoss(0.8), Y),
    "huber": (HuberLoss(1.0), Y),
}


def problem_of(name, weights=None, rows=slice(None)):
    """Return the problem of pruning a boosted model of the target's raw prediction."""
    loss, y = (SMOOTH | KINKED)[name]
    forest = Forest.from_model(MODEL)
    raw = loss.raw_of(np.maximum(np.minimum(y, 0.9 if loss.link == "logit" else np.inf), 0.1))
    if loss.link != "identity":
        # A model of the right size for the loss: that of the target, moved and stretched.
        factor = float(raw.std() / Y.std())
        forest = replace(forest, scale=forest.scale * factor, base=np.array([raw.mean()]))
    return pose(encode(forest, X[rows]), y[rows], sample_weight=weights, loss=loss)


def true_objective(problem, point, shrinkage):
    """Return the objective of a point of the subtree rule, from what its model predicts."""
    forest = problem.encoding.forest
    predictions = Predictions(problem.encoding, problem.trees)
    predictions.move_to(point)
    raw = predictions.values + point.intercept[:, np.newaxis]
    weight = problem.sample_weight
    loss = problem.loss.value(problem.target, raw, weight)
    constant = problem.loss.best_constant(problem.target, weight)[:, np.newaxis]
    of_constant = problem.loss.value(problem.target, constant, weight)
    splits = point.splits(forest)
    cost = splits.sum() / splits.size
    origin = problem.trees.origin[:, kept_leaves(forest, splits)]
    shift = ((point.values - origin) ** 2).sum()
    penalty = problem.curvature * shrinkage * shift / (2 * of_constant)
    return loss / of_constant + point.alpha * cost + penalty


@pytest.mark.parametrize("name", SMOOTH | KINKED)
def test_the_objective_is_that_of_the_loss_and_never_rises(name, monkeypatch):
    problem = problem_of(name)
    solver = Solver(problem, Options(shrinkage=10.0))
    assert isinstance(solver.rule, ExpandedRule)
    seen = []
    settled = ExpandedRule._settled

    def watched(rule, alpha):
        result = settled(rule, alpha)
        seen.append((alpha, rule._begun.objective))
        return result

    monkeypatch.setattr(ExpandedRule, "_settled", watched)
    points = solver.path(solver.grid(12))
    for (alpha, before), (other, after) in pairwise(seen):
        assert alpha != other or after <= before + 1e-9
    assert points[0].n_nodes == 0
    assert points[-1].n_nodes > 0
    assert points[-1].loss < points[0].loss
    for point in points:
        assert point.objective == pytest.approx(true_objective(problem, point, 10.0), rel=1e-7)


@pytest.mark.parametrize("name", ["absolute", "log-loss"])
def test_what_was_steep_at_one_alpha_is_not_at_the_next(name):
    ends = []
    for steepness in (1.0, STEEPEST):
        solver = Solver(problem_of(name), Options(shrinkage=10.0))
        first, last = solver.grid(12)[[1, 6]]
        solver.path(np.array([first]))
        solver.rule._steepness = steepness
        solver.rule._renew(weights=True)
        ends.append(solver.path(np.array([last]))[-1])
    assert ends[0].n_nodes > 0
    assert ends[1].objective == pytest.approx(ends[0].objective, rel=0.02)


def best_values(problem, point, shrinkage):
    """Return the least objective with the splits of a point, by a general method."""

    def objective(values):
        other = replace(point, values=values.reshape(point.values.shape))
        return true_objective(problem, other, shrinkage)

    return minimize(objective, point.values.ravel(), method="BFGS", options={"gtol": 1e-7}).fun


@pytest.mark.parametrize("name", SMOOTH)
def test_values_of_leaves_are_the_best_there_are(name):
    problem = problem_of(name)
    solver = Solver(problem, Options(shrinkage=5.0))
    point = solver.path(solver.grid(40)[:14])[-1]
    assert 3 <= point.n_nodes <= 80
    assert point.objective == pytest.approx(best_values(problem, point, 5.0), rel=1e-4)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", KINKED)
def test_values_of_leaves_are_nearly_the_best_where_losses_have_kinks(name):
    problem = problem_of(name)
    solver = Solver(problem, Options(shrinkage=5.0))
    point = solver.path(solver.grid(40)[:14])[-1]
    assert point.objective <= best_values(problem, point, 5.0) * 1.02


@settings(deadline=None)
@given(cases(max_trees=1, depth=2, joint=(None,), min_trees=1, max_outputs=1), st.data())
def test_one_tree_is_pruned_nearly_as_well_as_can_be(case, data):
    # Expansions see one tree exactly, but may get stuck between two that both look best.
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    y = rng.integers(0, 2, len(case.X)).astype(float)
    if y.min() == y.max():
        y[0] = 1 - y[0]
    if case.weights is not None:
        case.weights[:] += 0.5
    forest = replace(case.forest, scale=np.clip(case.forest.scale, -0.2, 0.2), base=np.zeros(1))
    encoding = encode(forest, case.X)
    problem = pose(encoding, y, sample_weight=case.weights, loss=BinaryLogLoss())
    rule = ExpandedRule(problem, Options(shrinkage=1.0), SubtreeRule)
    alpha = data.draw(st.sampled_from([0.01, 0.1, 0.5]))
    Descent(rule).descend(alpha, 1000)
    found = rule.point(alpha)
    root = naive.from_forest(forest)[0]
    least = np.inf
    for pruned in naive.prunings(root):
        mask = np.array(naive.kept_mask(root, pruned))
        splits = np.array([mask[1 + 2 * s] for s in range((len(mask) - 1) // 2)], dtype=bool)
        least = min(least, _enumerated(problem, found, splits, alpha))
    assert found.objective <= least + 0.05 * (1.0 + abs(least))


def _enumerated(problem, like, splits, alpha):
    forest = problem.encoding.forest
    depths = kept_depths(forest, splits)
    point = replace(
        like,
        alpha=alpha,
        kept=pack_splits(splits),
        depths=depths,
        weights=(depths > 0).astype(float),
        values=np.array(problem.trees.origin[:, kept_leaves(forest, splits)]),
    )
    if not splits.any():
        return true_objective(problem, point, 1.0) if splits.size else np.inf
    return best_values(problem, point, 1.0)


def test_a_hessian_that_promises_too_much_is_raised():
    class Rash(BinaryLogLoss):
        def hessian(self, target, raw):
            return 0.02 * super().hessian(target, raw)

    y = SMOOTH["log-loss"][1]
    rash = pose(problem_of("log-loss").encoding, y, loss=Rash())
    rule = ExpandedRule(rash, Options(shrinkage=0.5), SubtreeRule)
    highest, _ = rule.alpha_range()
    begun = rule.point(0.01 * highest).objective
    assert Descent(rule).descend(0.01 * highest, 1000)
    assert rule.point(0.01 * highest).objective < begun


@pytest.mark.parametrize("name", ["log-loss", "poisson", "absolute"])
@pytest.mark.parametrize("rule", ["subtree", "layer"])
def test_rows_that_weigh_twice_are_there_twice(name, rule):
    weights = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    repeated = np.repeat(np.arange(len(X)), weights.astype(int))
    way = Options(rule=rule, **({"shrinkage": 10.0} if rule == "subtree" else {}))
    found = []
    for problem in (problem_of(name, weights), problem_of(name, rows=repeated)):
        solver = Solver(problem, way)
        found.append(solver.path(solver.grid(6)))
    for one, other in zip(*found, strict=True):
        assert one.alpha == pytest.approx(other.alpha, rel=1e-6)
        assert one.objective == pytest.approx(other.objective, rel=1e-3)


@pytest.mark.parametrize("kind", [SubtreeRule, LayerRule])
def test_moving_to_a_point_keeps_what_it_keeps(kind):
    problem = problem_of("log-loss")
    options = Options(rule="layer" if kind is LayerRule else "subtree")
    rule = ExpandedRule(problem, options, kind)
    highest, _ = rule.alpha_range()
    Descent(rule).descend(0.05 * highest, 1000)
    point = rule.point(0.05 * highest)
    other = ExpandedRule(problem, options, kind)
    other.move_to(point)
    again = other.point(point.alpha)
    np.testing.assert_array_equal(again.kept, point.kept)
    assert again.objective == pytest.approx(point.objective, rel=1e-9)
    assert other.priced(point) == pytest.approx(point.objective, rel=1e-9)


# One output a tree


def by_class(n_classes=3, trees=9):
    """Return a forest whose trees add to one output each, rows routed, and classes."""
    model = GradientBoostingRegressor(n_estimators=trees, max_depth=3, random_state=1).fit(X, Y)
    one = Forest.from_model(model)
    forest = replace(
        one, base=np.linspace(-1, 1, n_classes), tree_output=np.arange(trees) % n_classes
    )
    return forest, encode(forest, X), np.digitize(Y, np.quantile(Y, [0.3, 0.6]))


def test_outputs_of_squared_error_are_pruned_one_by_one():
    forest, encoding, _ = by_class()
    target = forest.predict(X) + np.random.default_rng(0).normal(size=(len(X), 3))
    problem = pose(encoding, target)
    rule = ExpandedRule(problem, Options(shrinkage=5.0), SubtreeRule)
    Descent(rule).descend(0.3, 1000)
    found = rule.point(0.3)
    penalties = 0.0
    for output in range(3):
        trees = np.flatnonzero(forest.tree_output == output)
        some = take_trees(forest, trees, output)
        own = replace(
            pose(Encoding(some, encoding.codes[trees]), target[:, output]),
            variation=problem.variation,
        )
        alone = SubtreeRule(own, Options(shrinkage=5.0))
        sizes = np.diff(forest.offsets) - 1
        share = sizes[trees].sum() / sizes.sum()
        Descent(alone).descend(0.3 * share, 1000)
        point = alone.point(0.3 * share)
        penalties += point.objective
        np.testing.assert_array_equal(found.depths[trees], point.depths)
    assert found.objective == pytest.approx(penalties)


@pytest.mark.parametrize("rule", ["subtree", "layer"])
def test_several_classes(rule):
    _, encoding, classes = by_class()
    target = (classes[:, np.newaxis] == np.arange(3)).astype(float)
    problem = pose(encoding, target, loss=SoftmaxLogLoss())
    solver = Solver(problem, Options(rule=rule))
    points = solver.path(solver.grid(20))
    losses = [point.loss for point in points]
    assert losses[-1] < 0.98 * losses[0]
    # The trees of all classes together cost what they cost.
    for point in points[::5]:
        assert solver.rule.priced(point) == pytest.approx(point.objective, rel=1e-9)
        predictions = Predictions(encoding, problem.trees)
        predictions.move_to(point)
        raw = predictions.values + point.intercept[:, np.newaxis]
        loss = problem.loss.value(problem.target, raw, None)
        assert point.loss == pytest.approx(2 * loss / problem.variation)


def test_trees_that_add_to_all_classes():
    forest, _, classes = by_class()
    rng = np.random.default_rng(0)
    joint = replace(
        forest,
        tree_output=np.empty(0, np.int32),
        value=forest.value * rng.normal(size=(1, 3)),
    )
    target = (classes[:, np.newaxis] == np.arange(3)).astype(float)
    problem = pose(encode(joint, X), target, loss=SoftmaxLogLoss())
    solver = Solver(problem, Options(shrinkage=10.0))
    points = solver.path(solver.grid(20))
    assert points[-1].loss < 0.9 * points[0].loss
    for point in points[::5]:
        assert point.objective == pytest.approx(true_objective(problem, point, 10.0), rel=1e-7)


def test_squared_error_is_what_it_was():
    problem = pose(encode(Forest.from_model(MODEL), X), Y, loss=SquaredError())
    assert isinstance(Solver(problem, Options()).rule, SubtreeRule)
    plain = pose(problem.encoding, Y)
    assert (plain.variation, plain.curvature) == (problem.variation, 1.0)


@pytest.mark.parametrize("loss", [AbsoluteError(), HuberLoss(), QuantileLoss(0.3)])
def test_a_target_in_small_units_is_no_constant(loss):
    nodes = []
    for unit in (1.0, 1e-8):
        forest = Forest.from_model(MODEL)
        scaled = replace(forest, value=unit * forest.value, base=unit * forest.base)
        problem = pose(encode(scaled, X), unit * Y, loss=loss)
        assert problem.variation == 2.0 * problem.loss.value(
            problem.target, problem.loss.best_constant(problem.target, None)[:, np.newaxis], None
        )
        nodes.append(Solver(problem, Options()).solve(0.1).n_nodes)
    assert nodes[0] == nodes[1] > 0


@pytest.mark.parametrize("loss", [AbsoluteError(), HuberLoss(), PoissonLoss(), TweedieLoss(1.5)])
@pytest.mark.parametrize("constant", [0.0, 0.1])
def test_constants_have_no_loss_to_divide_by(loss, constant):
    problem = pose(encode(Forest.from_model(MODEL), X), np.full(len(Y), constant), loss=loss)
    assert problem.variation == len(Y)
