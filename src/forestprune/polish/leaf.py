"""New values for all leaves of what is kept, fitted together."""

from dataclasses import replace

import numpy as np

from forestprune.forest.checks import seal
from forestprune.polish.leaf_fit import LeafFit, Leaves
from forestprune.solve.point import Point
from forestprune.solve.problem import Problem


def refit_leaves(problem: Problem, point: Point, shrinkage: float) -> Point:
    """Fit the values of all leaves at once, each drawn to its value in the unpruned forest.

    Penalises ``shrinkage * sum of (value - original value)^2 / (m var(y))``, so in rows: with as
    many rows as `shrinkage`, a leaf goes half of the way. The objective is still that of `point`.
    """
    forest, trees, row_weight = problem.encoding.forest, problem.trees, problem.row_weight
    leaves = Leaves.of(problem.encoding.codes, trees, point.splits(forest))
    origin = trees.origin[:, leaves.node]
    value = np.array(origin if point.values is None else point.values)
    residual, rise = problem.residual.copy(), np.zeros_like(problem.residual)
    leaves.add_to(value, rise)
    residual -= rise * row_weight if row_weight.size else rise
    constant = np.zeros(forest.n_outputs)
    LeafFit(leaves, row_weight, residual, value, origin, shrinkage, constant).solve()
    return replace(
        point,
        values=seal(value),
        weights=seal((point.depths > 0).astype(np.float64)),
        intercept=seal(problem.intercept + constant),
        loss=problem.unexplained(residual),
        report={},
    )
