"""Sums over rows at models: what each node's rows add up to, whatever the loss, block by block."""

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_friedman1
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)

from forestprune.blocks.blocks import Block
from forestprune.forest.checks import seal
from forestprune.interop.source import Source
from forestprune.options import Options
from forestprune.rows.trees import read_trees
from forestprune.select.measuring import Measuring, steady
from forestprune.select.routed import RoutedRows
from forestprune.select.solver import Solver
from forestprune.solve.correction import Sums
from forestprune.solve.point import kept_leaves

X, Y = make_friedman1(300, noise=1.0, random_state=0)
XC, C = make_classification(300, n_informative=5, n_classes=3, random_state=0)
MODELS = {
    "squares": (GradientBoostingRegressor(n_estimators=6, random_state=0), X, Y),
    "poisson": (HistGradientBoostingRegressor(loss="poisson", max_iter=6), X, np.rint(Y)),
    "two classes": (GradientBoostingClassifier(n_estimators=6, random_state=0), XC, C == 1),
    "three classes": (GradientBoostingClassifier(n_estimators=4, random_state=0), XC, C),
    "averages": (RandomForestClassifier(4, max_depth=4, random_state=0), XC, C),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_blocks_add_up_to_what_rows_say(name, weighted):
    model, given, target = MODELS[name]
    source = Source.of(model.fit(given, target))
    weights = np.random.default_rng(0).integers(0, 3, 300).astype(float) if weighted else None
    rows = RoutedRows.of(source, given, target, weights)
    problem, forest = rows.problem(1), source.forest
    solver = Solver(problem, Options(shrinkage=5.0))
    points = solver.path(solver.grid(6)[1:4])
    measuring = Measuring(
        source=source,
        trees=read_trees(forest, seal(np.empty(0))),
        loss=problem.loss,
        constant=problem.loss.best_constant(problem.target, problem.sample_weight),
        points=points,
        class_counts=np.bincount(rows.numbers) if rows.numbers is not None else np.array([300]),
        sums=True,
        n_jobs=1,
    )
    found = None
    for a, b in ((0, 7), (7, 200), (200, 300)):
        part = Block(given[a:b], target[a:b], None if weights is None else weights[a:b], "", a)
        found = measuring(part) if found is None else found + measuring(part)
    assert found.n_rows == 300
    assert 2.0 * found.of_constant == pytest.approx(problem.variation)
    each = np.ones(300) if rows.sample_weight is None else rows.sample_weight
    for point, loss, sums in zip(points, found.losses, found.sums, strict=True):
        assert 2.0 * loss / problem.variation == pytest.approx(point.loss)
        raw = raw_of(rows, point)
        gradient = problem.loss.gradient(problem.target, raw)
        apart = forest.tree_output.size > 0
        hessian = np.ones_like(gradient)
        if not problem.loss.quadratic:
            hessian = problem.loss.hessian(problem.target, raw)
            if not apart:
                hessian = np.broadcast_to(hessian.max(axis=0), gradient.shape)
        for i in range(forest.n_trees):
            outputs = [forest.tree_output[i]] if apart else range(forest.n_outputs)
            for v in range(forest.offsets[i], forest.offsets[i + 1]):
                here = passes(rows, i, v)
                for column, o in enumerate(outputs):
                    expected = -(each * gradient[o])[here].sum()
                    assert sums.residual[column, v] == pytest.approx(expected, abs=1e-8)
                assert sums.weight[v] == pytest.approx((each * hessian[outputs[0]])[here].sum())


def raw_of(rows, point):
    """Return what a point predicts, leaf by leaf."""
    forest, problem = rows.source.forest, rows.problem(1)
    raw = np.repeat(point.intercept[:, np.newaxis], rows.encoding.n_rows, axis=1)
    for column, leaf in enumerate(kept_leaves(forest, point.splits(forest))):
        i = int(np.searchsorted(forest.offsets, leaf, side="right")) - 1
        here = passes(rows, i, leaf)
        outputs = [forest.tree_output[i]] if forest.tree_output.size else range(len(raw))
        for k, o in enumerate(outputs):
            raw[o, here] += point.values[k, column]
    assert problem.unexplained_by(raw) == pytest.approx(point.loss)
    return raw


def passes(rows, i, v):
    """Return which rows pass a node of a tree."""
    forest = rows.source.forest
    a, b = forest.offsets[i], forest.offsets[i + 1]
    leaves = np.flatnonzero(forest.left[a:b] < 0)
    inside, stack = set(), [v - a]
    while stack:
        node = stack.pop()
        inside.add(node)
        if forest.left[a + node] >= 0:
            stack += [forest.left[a + node], forest.left[a + node] + 1]
    return np.isin(leaves[rows.encoding.codes[i]], sorted(inside))


def test_sums_in_another_order_are_the_same():
    rng = np.random.default_rng(0)
    amounts = rng.normal(size=(1000, 50)) * 10.0 ** rng.integers(-3, 3, 50)
    sums = [part.sum(axis=0) for part in (amounts, amounts[::-1])]
    sums.append(np.array([amounts[i : i + 100].sum(axis=0) for i in range(0, 1000, 100)]).sum(0))
    found = [steady(Sums(np.ones(50), each[np.newaxis])).residual for each in sums]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    np.testing.assert_allclose(found[0][0], sums[0], atol=1e-9 * np.abs(sums[0]).max())
