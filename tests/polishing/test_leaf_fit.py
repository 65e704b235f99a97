"""New values for all leaves of a pruned forest: columns, equations, and polishing by them."""

from dataclasses import replace

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor
from strategies import cases

from forestprune import Forest, encode
from forestprune.polishing.leaf import refit_leaves
from forestprune.polishing.leaf_fit import Correction, LeafFit, Leaves
from forestprune.select.solver import everything
from forestprune.solve.point import kept_mask, pack_splits, splits_within
from forestprune.solve.problem import pose


def drawn_splits(case, data):
    """Draw a pruning of each tree."""
    masks = [
        naive.kept_mask(root, data.draw(st.sampled_from(list(naive.prunings(root)))))
        for root in case.roots
    ]
    mask = np.array([kept for tree in masks for kept in tree], dtype=bool)
    nodes = np.flatnonzero(case.forest.left >= 0)
    starts = np.repeat(case.forest.offsets[:-1], np.diff(case.forest.offsets))
    return mask[starts[nodes] + case.forest.left[nodes]]


def leaf_columns(case, splits):
    """Return the nodes that are leaves, in any order, and the matrix of which rows are in them."""
    mask = kept_mask(case.forest, splits)
    nodes, columns = [], []
    for root, start in zip(case.roots, case.forest.offsets[:-1], strict=True):
        order = naive.level_order(root)
        number = {id(node): start + v for v, node in enumerate(order)}
        if len(order) == 1 or not mask[number[id(root.left)]]:
            continue
        ends = [
            [n for n in naive.visited(root, row, case.dtype) if mask[number[id(n)]]][-1]
            for row in case.X
        ]
        for node in order:
            if mask[number[id(node)]] and (node.is_leaf or not mask[number[id(node.left)]]):
                nodes.append(number[id(node)])
                columns.append([float(end is node) for end in ends])
    return np.array(nodes, dtype=int), np.array(columns).reshape(-1, len(case.X)).T


@given(case=cases(), data=st.data())
def test_leaves_are_columns(case, data):
    splits, problem = drawn_splits(case, data), case.pose()
    leaves = Leaves.of(problem.encoding.codes, problem.trees, splits)
    nodes, matrix = leaf_columns(case, splits)
    assert list(leaves.node) == sorted(nodes)
    matrix = matrix[:, [list(nodes).index(node) for node in leaves.node]]
    np.testing.assert_array_equal(leaves.matrix().toarray(), matrix)
    weights = np.ones(len(case.X)) if case.weights is None else case.weights
    shared = leaves.shared(np.empty(0) if case.weights is None else weights)
    np.testing.assert_allclose(shared, matrix.T @ (weights[:, None] * matrix), atol=1e-12)
    rng = np.random.default_rng(0)
    outputs = case.forest.n_outputs
    value = rng.normal(size=(outputs, nodes.size))
    out = np.ones((outputs, len(case.X)))
    leaves.add_to(value, out)
    np.testing.assert_allclose(out, 1.0 + value @ matrix.T, atol=1e-12)
    amount = rng.normal(size=(outputs, len(case.X)))
    np.testing.assert_allclose(leaves.sums(amount), amount @ matrix, atol=1e-12)


@given(
    case=cases(),
    data=st.data(),
    shrinkage=st.sampled_from([0.01, 1.0, 50.0]),
    direct=st.booleans(),
    constant=st.booleans(),
)
def test_values_solve_their_equations(case, data, shrinkage, direct, constant):
    problem = case.pose()
    leaves = Leaves.of(problem.encoding.codes, problem.trees, drawn_splits(case, data))
    rng = np.random.default_rng(0)
    outputs, columns = case.forest.n_outputs, leaves.node.size
    value, origin = rng.normal(size=(2, outputs, columns))
    weights = np.ones(len(case.X)) if case.weights is None else case.weights
    A = leaves.matrix().toarray()
    target = rng.normal(size=(outputs, len(case.X)))
    b = rng.normal(size=outputs)
    residual = weights * (target - value @ A.T - (b[:, None] if constant else 0.0))
    fit = LeafFit(
        leaves,
        np.empty(0) if case.weights is None else weights,
        residual,
        value,
        origin,
        shrinkage,
        b if constant else None,
    )
    if direct:
        fit.solve_directly()
    else:
        fit.iterate(2000, 1e-15)
    # All at once by least squares: rows, then one more for each value.
    pull = np.sqrt(shrinkage) * np.eye(columns)
    M = np.vstack([np.sqrt(weights)[:, None] * A, pull])
    if constant:
        M = np.column_stack([M, np.append(np.sqrt(weights), np.zeros(columns))])
    for o in range(outputs):
        right = np.append(np.sqrt(weights) * target[o], np.sqrt(shrinkage) * origin[o])
        best = np.linalg.lstsq(M, right, rcond=None)[0]
        found = np.append(value[o], b[o]) if constant else value[o]
        scale = 1.0 + float(right @ right)
        least = float(((M @ best - right) ** 2).sum())
        assert float(((M @ found - right) ** 2).sum()) <= least + 1e-7 * scale
        np.testing.assert_allclose(value[o], best[:columns], atol=1e-3)
    expected = weights * (target - value @ A.T - (b[:, None] if constant else 0.0))
    np.testing.assert_allclose(residual, expected, atol=1e-9 * (1 + np.abs(expected).max()))


@given(case=cases(), data=st.data(), way=st.sampled_from(["direct", "steps", "within"]))
def test_rows_that_are_not_there_count_by_what_is_known_of_them(case, data, way):
    """Some of the rows, corrected by sums over all at some values, have the gradient of all."""
    problem = case.pose()
    leaves = Leaves.of(problem.encoding.codes, problem.trees, drawn_splits(case, data))
    rng = np.random.default_rng(0)
    outputs, columns, m = case.forest.n_outputs, leaves.node.size, len(case.X)
    at, origin = rng.normal(size=(2, outputs, columns + 1))
    excess, weight = rng.normal(size=(outputs, columns + 1)), rng.random(columns + 1)
    weights = np.ones(m) if case.weights is None else case.weights
    A = np.column_stack([leaves.matrix().toarray(), np.ones(m)])
    target, begun = rng.normal(size=(outputs, m)), rng.normal(size=(outputs, columns + 1))
    value, constant = np.ascontiguousarray(begun[:, :-1]), begun[:, -1].copy()
    boxes = None
    if way == "within":  # far enough to be none
        boxes = np.full((outputs, columns), -1e3), np.full((outputs, columns), 1e3)
    fit = LeafFit(
        leaves,
        np.empty(0) if case.weights is None else weights,
        weights * (target - begun @ A.T),
        value,
        np.ascontiguousarray(origin[:, :-1]),
        1.0,
        constant,
        boxes,
        Correction(excess, weight, at),
    )
    if way == "steps":
        fit.iterate(2000, 1e-15)
    else:
        fit.solve()
    drawn = np.append(np.ones(columns), 0.0)
    gram = A.T @ (weights[:, None] * A) + np.diag(drawn + weight)
    for o in range(outputs):
        right = A.T @ (weights * target[o]) + drawn * origin[o] + excess[o] + weight * at[o]
        best = np.linalg.solve(gram, right)
        found = np.append(value[o], constant[o])
        away = found - best  # what is minimised is above its least by this, squared
        scale = 1.0 + float(target[o] @ (weights * target[o])) + abs(float(best @ right))
        assert float(away @ gram @ away) <= 1e-6 * scale


def test_many_leaves_are_fitted_as_few_are():
    X, y = make_friedman1(300, noise=1.0, random_state=0)
    forest = Forest.from_model(RandomForestRegressor(30, max_depth=6, random_state=0).fit(X, y))
    problem = pose(encode(forest, X), y)
    trees = problem.trees
    kept = splits_within(forest, np.full(30, 4))
    losses = []
    for direct in (True, False):
        leaves = Leaves.of(problem.encoding.codes, trees, kept)
        residual, value = problem.residual.copy(), np.zeros((1, leaves.node.size))
        origin = trees.origin[:, leaves.node]
        fit = LeafFit(leaves, np.empty(0), residual, value, origin, 10.0, np.zeros(1))
        fit.solve_directly() if direct else fit.solve()
        losses.append(problem.unexplained(residual) + 10.0 * ((value - origin) ** 2).sum() / 300)
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)


def test_polishing_leaves_explains_more_and_keeps_the_shape():
    X, y = make_friedman1(200, noise=1.0, random_state=0)
    forest = Forest.from_model(RandomForestRegressor(9, max_depth=4, random_state=0).fit(X, y))
    depths = np.array([0, 1, 2, 3, 4, 0, 1, 2, 3])
    problem = pose(encode(forest, X), y)
    kept = pack_splits(splits_within(forest, depths))
    point = replace(everything(problem), kept=kept, depths=depths)
    losses = []
    for shrinkage in (0.0, 1.0, 100.0, 1e9):
        polished = refit_leaves(problem, point, shrinkage)
        np.testing.assert_array_equal(polished.kept, kept)
        losses.append(polished.loss)
    assert losses == sorted(losses)
    uncut = forest.truncate(depths)
    rest = y - uncut.predict(X)
    fixed = ((rest - rest.mean()) ** 2).sum() / problem.variation
    # Much shrinkage leaves the values as they are, and the intercept free.
    assert losses[-1] == pytest.approx(fixed, rel=1e-4)
    assert losses[0] < 0.7 * fixed
