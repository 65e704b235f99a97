"""New weights for all pruned trees, drawn to zero."""

import numpy as np
from numpy.typing import NDArray

from forestprune.polishing.tree_equations import TreeEquations, solve_semidefinite
from forestprune.rows.trees import first_leaves
from forestprune.solve.point import Point
from forestprune.solve.problem import Problem
from forestprune.system.threads import one_blas_thread


def ridge_weights(equations: TreeEquations, point: Point, alpha2: float) -> Point:
    """Penalise ``alpha2 * sum of beta_i^2 * || tree i uncut ||^2 / (m var(y))``.

    Each tree is measured against itself, so neither the number of rows nor the scale of the forest
    matters.
    """
    with one_blas_thread():
        kept, gram, moments = equations.at(point)
        penalised = gram + np.diag(alpha2 * tree_squares(equations.problem)[kept])
        # A tree with a negative weight would turn round what its model promised.
        constrained = bool(equations.problem.encoding.forest.monotone.size)
        weights = solve_semidefinite(penalised, moments, not_negative=constrained)
        return equations.weighted(point, weights, {})


def tree_squares(problem: Problem) -> NDArray[np.float64]:
    """Return the sum of squares of what each tree adds to the rows, uncut."""
    trees = problem.trees
    first = first_leaves(trees.offsets)
    nodes = np.repeat(trees.offsets[:-1], np.diff(first)) + trees.leaf
    squares = trees.weight[nodes] * (trees.origin[:, nodes] ** 2).sum(axis=0)
    return np.add.reduceat(squares, first[:-1]) if first.size > 1 else np.zeros(0)
