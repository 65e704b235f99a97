"""Rules and polishing under monotone constraints: exact within the intervals of nodes."""

from dataclasses import replace

import naive
import numpy as np
import pytest
import scipy.optimize
from hypothesis import assume, given
from hypothesis import strategies as st
from small_problems import changes, descended, subtree_rule
from strategies import N_FEATURES, alphas, cases

from forestprune.forest.constraints import within_boxes
from forestprune.forest.origin import Origin
from forestprune.polishing.leaf import leaf_boxes, refit_leaves
from forestprune.polishing.leaf_fit import Leaves
from forestprune.polishing.ridge import ridge_weights, tree_squares
from forestprune.polishing.tree_equations import TreeEquations
from forestprune.solve.point import kept_leaves

TOLERANCE = 1e-10
shrinkages = st.sampled_from([0.0, 0.5, 10.0])


@st.composite
def constrained_cases(draw, **options):
    """Draw a case whose forest has at least one constraint, and values that keep it."""
    case = draw(cases(categorical=False, max_outputs=1, **options))
    signs = draw(st.lists(st.sampled_from([-1, 0, 1]), min_size=N_FEATURES, max_size=N_FEATURES))
    assume(any(signs) and case.forest.n_trees)
    origin = Origin("sklearn", "Model", monotone=tuple(signs))
    case.forest = within_boxes(replace(case.forest, origin=origin))
    case.roots = naive.from_forest(case.forest)
    case.weighting = "node"
    return case


def added_boxes(case, i):
    """Return the least and the most that each node of a tree may add, by its id."""
    root, scale = case.roots[i], case.forest.scale[i]
    found = naive.boxes(root, case.forest.monotone, -1.0 if scale < 0 else 1.0)
    result = {}
    for node, box in zip(naive.level_order(root), found, strict=True):
        ends = [e if np.isinf(e) and scale == 0 else (e - root.value[0]) * scale for e in box]
        result[id(node)] = min(ends), max(ends)
    return result


@given(case=constrained_cases(max_trees=1), alpha=alphas, shrinkage=shrinkages)
def test_one_tree_is_pruned_as_enumeration_says(case, alpha, shrinkage):
    rule = subtree_rule(case.pose(), shrinkage, value_tolerance=TOLERANCE)
    descended(rule, alpha)
    problem, root = rule.problem, case.roots[0]
    rest = case.y - naive.intercept(case.roots, case.forest.scale, case.forest.base)
    nodes = max(case.forest.n_nodes - 1, 1)
    weights = np.ones(len(case.X)) if case.weights is None else case.weights
    begun = float((weights[:, None] * rest**2).sum())
    reached, slack = (
        rule.point(alpha).objective,
        2 * problem.min_gain(TOLERANCE) / problem.variation,
    )
    # With the intervals as it left them nothing is better; nor with those that it began with.
    for c, d in (rule.stretch[0, 0].tolist(), (1.0, 0.0)):
        boxes = {key: (c * a + d, c * b + d) for key, (a, b) in added_boxes(case, 0).items()}
        best = np.inf
        for pruned in naive.prunings(root):
            change, _ = naive.subtree_objective(case, 0, pruned, rest, shrinkage, boxes)
            kept = len(naive.level_order(pruned)) - 1
            best = min(best, (begun + change) / problem.variation + alpha * kept / nodes)
        assert reached <= best + 1e-8 * abs(best) + slack
        if (c, d) == tuple(rule.stretch[0, 0]):
            assert reached == pytest.approx(best, rel=1e-8, abs=slack)


def keeps_order(forest, point):
    """See that at each constrained split that is kept, one side is nowhere above the other."""
    splits = point.splits(forest)
    leaves = kept_leaves(forest, splits)
    value = dict(zip(leaves.tolist(), point.values[0].tolist(), strict=True))
    starts = np.repeat(forest.offsets[:-1], np.diff(forest.offsets))

    def below(v):
        if v in value:
            return [value[v]]
        left = starts[v] + forest.left[v]
        return below(left) + below(left + 1)

    for v in np.flatnonzero(forest.left >= 0)[splits].tolist():
        sign = forest.monotone[forest.feature[v]]
        if sign:
            left = starts[v] + forest.left[v]
            sides = [below(left), below(left + 1)][:: int(sign)]
            assert max(sides[0]) <= min(sides[1])


@given(case=constrained_cases(), alpha=alphas, shrinkage=shrinkages, gram=st.booleans())
def test_descent_stays_within_and_no_tree_improves(case, alpha, shrinkage, gram):
    tuning = {} if gram else {"gram_leaves": 0}
    rule = subtree_rule(case.pose(), shrinkage, value_tolerance=TOLERANCE, **tuning)
    descended(rule, alpha, 100_000)
    assert changes(rule, alpha) == 0
    point, forest = rule.point(alpha), case.forest
    keeps_order(forest, point)
    assert rule.priced(point) == pytest.approx(point.objective, rel=1e-8, abs=1e-9)
    if alpha > 0.0:  # if nothing costs anything, nobody asks for bounds
        # Whatever is bounded by coarse trees gains no more than that.
        gains = rule.gains(alpha, np.arange(case.forest.n_trees))
        most = rule.gains_at_most(alpha, 2.0)
        assert (gains <= most + 1e-8 * (1 + np.abs(gains))).all()


@given(case=constrained_cases(), shrinkage=st.sampled_from([0.01, 1.0, 50.0]))
def test_leaves_are_polished_within_their_boxes(case, shrinkage):
    rule = descended(subtree_rule(case.pose(), 10.0), 0.01)
    problem, point = rule.problem, rule.point(0.01)
    polished = refit_leaves(problem, point, shrinkage)
    keeps_order(case.forest, polished)
    leaves = Leaves.of(problem.encoding.codes, problem.trees, point.splits(case.forest))
    low, high = leaf_boxes(case.forest, point.splits(case.forest), point.values)
    low, high = low[0], high[0]
    assert (low <= point.values[0]).all()
    assert (point.values[0] <= high).all()
    assert (low <= polished.values[0]).all()
    assert (polished.values[0] <= high).all()
    if not leaves.node.size:
        return
    # The same by a solver of bounded least squares; the intercept has a column of its own.
    weight = np.sqrt(np.ones(len(case.X)) if case.weights is None else case.weights)
    columns = np.column_stack([leaves.matrix().toarray(), np.ones(len(case.X))])
    drawn = np.sqrt(shrinkage) * np.eye(leaves.node.size, leaves.node.size + 1)
    origin = problem.trees.origin[0, leaves.node]
    target = weight * (case.y[:, 0] - problem.intercept[0])
    rows = np.vstack([weight[:, None] * columns, drawn])
    sides = np.append(target, np.sqrt(shrinkage) * origin)
    width = np.where(high > low, high, low + 1e-9)  # the twin wants room
    bounds = (np.append(low, -np.inf), np.append(width, np.inf))
    twin = scipy.optimize.lsq_linear(rows, sides, bounds, method="bvls", tol=1e-14)
    mine = np.append(polished.values[0], polished.intercept[0] - problem.intercept[0])
    best, reached = 2.0 * twin.cost, float(((rows @ mine - sides) ** 2).sum())
    assert reached <= best + 1e-6 * (1e-3 * float(sides @ sides) + best) + 1e-12


@given(case=constrained_cases(joint=("ridge", "subset")), alpha=alphas)
def test_joint_weights_are_not_negative(case, alpha):
    rule = descended(case.layer_rule(), alpha)
    assert (rule.point(alpha).weights >= 0.0).all()
    _, weights = rule.choices(alpha)
    assert (weights >= 0.0).all()


@given(case=constrained_cases(), alpha2=st.sampled_from([0.0, 0.01, 0.3]))
def test_ridge_weights_are_not_negative_and_best(case, alpha2):
    rule = descended(subtree_rule(case.pose(), 10.0), 0.0)
    point = rule.point(0.0)
    equations = TreeEquations(rule.problem)
    kept, gram, moments = equations.at(point)
    polished = ridge_weights(equations, point, alpha2)
    weights = polished.weights[kept]
    assert (weights >= 0.0).all()
    # No weight can be changed for the better, one by one: that is the best of a convex problem.
    penalised = gram + np.diag(alpha2 * tree_squares(rule.problem)[kept])
    slope = penalised @ weights - moments
    scale = np.sqrt(np.maximum(np.diag(penalised), 0.0)) * np.sqrt(rule.problem.variation)
    slack = 1e-6 * (scale + np.abs(moments)) + 1e-9
    assert (slope >= -slack).all()
    assert (np.abs(slope[weights > 0.0]) <= slack[weights > 0.0]).all()
