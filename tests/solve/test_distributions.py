"""Averaged classifiers: leaves stay distributions over classes, and are the best of these."""

from dataclasses import replace

import naive
import numpy as np
import pytest
from effort import INTERPRETED
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from forestprune import Forest, InputSpec, Origin, encode
from forestprune.forest.build import average_of_leaves, build_forest
from forestprune.interop.sklearn_trees import read_tree
from forestprune.kernels.distributions import project
from forestprune.kernels.jit import kernel
from forestprune.options import Options
from forestprune.select.solver import Solver
from forestprune.solve.descent import Descent
from forestprune.solve.problem import pose
from forestprune.solve.subtrees.rule import SubtreeRule

pytestmark = pytest.mark.skipif(INTERPRETED, reason="whole prunings, left to the compiled run")

project_here = kernel(lambda q: project(q))


def averaged(n_classes, trees=8, rows=250, depth=4):
    """Return a forest of averaged distributions, its rows routed, and the target."""
    X, y = make_classification(
        rows, 6, n_informative=4, n_redundant=0, n_classes=n_classes, flip_y=0.2, random_state=0
    )
    model = RandomForestClassifier(trees, max_depth=depth, random_state=0).fit(X, y)
    raw = [read_tree(each.tree_, None) for each in model.estimators_]
    for tree, each in zip(raw, model.estimators_, strict=True):
        values = each.tree_.value[:, 0]
        object.__setattr__(tree, "value", values[:, 1:] if n_classes == 2 else values)
    outputs = 1 if n_classes == 2 else n_classes
    forest = build_forest(
        raw,
        n_nodes=sum(tree.left.size for tree in raw),
        scale=np.full(trees, 1.0 / trees),
        base=np.zeros(outputs),
        input=InputSpec(6, dtype="float32"),
        origin=Origin(
            "sklearn",
            "RandomForestClassifier",
            objective="brier",
            averages=True,
            classes=tuple(range(n_classes)),
            classes_dtype="<i8",
            response="class",
        ),
    )
    target = (y[:, np.newaxis] == np.arange(n_classes)).astype(float)
    return forest, encode(forest, X), target[:, 1:] if n_classes == 2 else target


def distributions(problem, point):
    """Return the distribution of each leaf in an average of the trees kept: (classes, leaves)."""
    found = point.n_trees * point.values + point.intercept[:, np.newaxis]
    return np.concatenate([1.0 - found, found]) if len(found) == 1 else found


numbers = st.floats(-3, 3).map(lambda x: round(x, 3))


@given(st.lists(numbers, min_size=1, max_size=5))
def test_the_projection_is_the_nearest_distribution(given_numbers):
    q = np.array(given_numbers)
    found = q.copy()
    project_here(found)
    if q.size == 1:
        assert found[0] == np.clip(q[0], 0.0, 1.0)
        return
    assert (found >= 0.0).all()
    assert found.sum() == pytest.approx(1.0)
    # Of the nearest point of a convex set, all others are on the far side.
    for corner in np.eye(q.size):
        assert (q - found) @ (corner - found) <= 1e-9


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("shrinkage", [0.0, 5.0])
def test_every_leaf_is_a_distribution(n_classes, shrinkage):
    _, encoding, target = averaged(n_classes)
    problem = pose(encoding, target)
    solver = Solver(problem, Options(shrinkage=shrinkage))
    points = solver.path(solver.grid(25))
    assert points[-1].n_trees > 2
    for point in points:
        if point.n_trees:
            found = distributions(problem, point)
            assert found.min() >= -1e-12
            np.testing.assert_allclose(found.sum(axis=0), 1.0)
    assert points[-1].loss < 0.75 * points[0].loss


@pytest.mark.parametrize("n_classes", [2, 3])
def test_original_values_are_distributions_whatever_is_kept(n_classes):
    forest, encoding, target = averaged(n_classes)
    problem = pose(encoding, target)
    for rule in ("subtree", "layer"):
        solver = Solver(problem, Options(rule=rule, refit=False))
        for point in solver.path(solver.grid(8)):
            kept = [tree for tree, depth in enumerate(point.depths) if depth]
            if not kept:
                continue
            roots = forest.value[forest.offsets[:-1]]
            absent = roots[point.depths == 0].sum(axis=0)
            for tree in kept:
                own = forest.value[forest.offsets[tree] : forest.offsets[tree + 1]]
                leaves = (len(kept) * own + absent) / forest.n_trees
                assert leaves.min() >= 0.0
                assert leaves.max() <= 1.0 + 1e-12


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from([2, 3]), st.sampled_from([0.0, 2.0]))
def test_a_block_is_the_best_of_all_prunings(seed, n_classes, shrinkage):
    rng = np.random.default_rng(seed)
    forest, encoding, target = averaged(n_classes, trees=2, rows=40, depth=2)
    problem = pose(encoding, target)
    rule = SubtreeRule(problem, Options(shrinkage=shrinkage))
    rule._most_trees = int(rng.integers(1, 3))
    alpha = float(rng.choice([0.0, 0.05, 0.3]))
    rule.sweep(alpha, np.array([0]))
    found = rule.point(alpha).objective
    first = naive.from_forest(forest)[0]
    assert found == pytest.approx(
        min(_objective(rule, first, pruned, alpha) for pruned in naive.prunings(first)), abs=1e-6
    )


def _objective(rule, root, pruned, alpha):
    """Return the objective if tree 0 alone is kept, pruned, with the best distributions."""
    problem, n = rule.problem, rule._most_trees
    encoding, b = problem.encoding, problem.intercept
    forest = encoding.forest
    loss = float((problem.residual**2).sum())
    if pruned.is_leaf:
        return loss / problem.variation
    mask = np.array(naive.kept_mask(root, pruned))
    order = naive.level_order(root)
    leaf_of = {}
    leaves = [node for node in order if node.is_leaf]
    ends = naive.ends_of(root, pruned)
    for rank, leaf in enumerate(leaves):
        leaf_of[rank] = next(k for k, end in enumerate(ends) if _is_below(end, leaf))
    codes = np.array([leaf_of[int(code)] for code in encoding.codes[0]])
    total = 0.0
    for k, end in enumerate(ends):
        rows = problem.residual[:, codes == k]
        origin = forest.scale[0] * (np.array(end.value) - np.array(root.value))
        total += _best_leaf(rows, origin, n, b, rule.shrinkage)
    cost = (mask.sum() - 1) / (forest.n_nodes - forest.n_trees)
    return total / problem.variation + alpha * cost


def _is_below(end, leaf):
    return end is leaf or (
        not end.is_leaf and (_is_below(end.left, leaf) or _is_below(end.right, leaf))
    )


def _best_leaf(rows, origin, n, b, shrinkage):
    """Return the least squares of some rows over what a leaf may add, by a general method."""
    sums, count = rows.sum(axis=1), rows.shape[1]

    def objective(q):
        f = (q - b) / n
        return float(
            (rows**2).sum() - 2 * f @ sums + count * f @ f + shrinkage * ((f - origin) ** 2).sum()
        )

    least = b / (count + 1.0)  # as if one more row were there, of any class
    most = 1.0 - (1.0 - b) / (count + 1.0)
    bounds = list(zip(least, most, strict=True))
    together = [] if b.size == 1 else [{"type": "eq", "fun": lambda q: q.sum() - 1.0}]
    start = b
    options = {"ftol": 1e-12, "maxiter": 500}
    return minimize(
        objective, start, bounds=bounds, constraints=together, method="SLSQP", options=options
    ).fun


@pytest.mark.parametrize("n_classes", [2, 3])
def test_more_trees_are_allowed_only_if_that_pays(n_classes):
    _, encoding, target = averaged(n_classes)
    problem = pose(encoding, target)
    rule = SubtreeRule(problem, Options(shrinkage=2.0))
    descent = Descent(rule)
    highest, _ = rule.alpha_range()
    for alpha in np.geomspace(highest, 1e-3 * highest, 10):
        descent.descend(alpha, 1000)
        before = rule.point(alpha).objective
        rule.search(descent, alpha, 1000, on_path=True)
        assert rule.point(alpha).objective <= before + 1e-12
        assert rule.point(alpha).n_trees <= rule._most_trees
    assert rule._most_trees > 1


def test_a_point_says_how_many_trees_it_leaves_room_for():
    _, encoding, target = averaged(3)
    problem = pose(encoding, target)
    solver = Solver(problem, Options(shrinkage=1.0))
    rule = solver.rule
    point = solver.path(solver.grid(20)[:15])[-1]
    allowed = rule._most_trees
    other = SubtreeRule(problem, Options(shrinkage=1.0))
    other.move_to(point)
    assert point.n_trees <= other._most_trees <= max(allowed, point.n_trees)
    again = other.point(point.alpha)
    assert again.objective == pytest.approx(point.objective, rel=1e-9)


def test_rows_weigh_what_they_weigh():
    _, encoding, target = averaged(3)
    weights = np.random.default_rng(0).integers(0, 3, len(target)).astype(float)
    repeated = np.repeat(np.arange(len(target)), weights.astype(int))
    one = Solver(pose(encoding, target, sample_weight=weights), Options(shrinkage=2.0))
    other = Solver(pose(encoding.take(repeated), target[repeated]), Options(shrinkage=2.0))
    for a, b in zip(one.path(one.grid(6)), other.path(other.grid(6)), strict=True):
        assert a.objective == pytest.approx(b.objective, rel=1e-4)


def test_values_of_splits_are_means_of_leaves():
    forest, _, _ = averaged(3)
    again = average_of_leaves(forest)
    np.testing.assert_allclose(again.value.sum(axis=1), 1.0)
    assert isinstance(replace(forest, scale=forest.scale), Forest)
