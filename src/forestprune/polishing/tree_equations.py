"""The inner products of pruned trees: all that rows have to say about the trees' weights."""

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize
from numpy.typing import NDArray

from forestprune.forest.checks import seal
from forestprune.solve.contributions import Contributions
from forestprune.solve.point import Point, pack_splits, without_trees
from forestprune.solve.problem import Problem

BLOCK_BYTES = 1 << 24
"""Memory for the columns of a block of rows, one a tree."""


class TreeEquations:
    """Normal equations for the weights of pruned trees, for one point after another.

    The weights beta and the intercept b minimise ``|| y - b - sum of beta_i f_i(x) ||^2 /
    (m var(y))`` plus a penalty of the weights; f_i is tree i as it is pruned. Inner products are
    kept from one point to the next and renewed only for trees that differ. Rows are gone through
    in blocks whose columns, one a tree, take about `block_bytes`.
    """

    def __init__(self, problem: Problem, block_bytes: int = BLOCK_BYTES) -> None:
        n_trees, outputs = problem.encoding.forest.n_trees, problem.encoding.forest.n_outputs
        self.problem = problem
        self._block_bytes = block_bytes
        self._contributions = Contributions(problem.encoding, problem.trees)
        # Of the columns with their means taken out, which is what a free intercept does.
        self._gram = np.zeros((n_trees, n_trees))
        self._moments = np.zeros(n_trees)
        self._means = np.zeros((n_trees, outputs))
        weights = problem.sample_weight
        self._weight = np.ones(problem.encoding.n_rows) if weights is None else weights
        self._residual_means = problem.residual.sum(axis=1) / self._weight.sum()
        centred = problem.residual - self._weight * self._residual_means[:, np.newaxis]
        self._loss_of_none = problem.unexplained(centred)

    def at(
        self, point: Point
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """Return the trees kept, and their inner products with each other and the residual."""
        self._renew(point)
        kept = np.flatnonzero(point.depths)
        return kept, self._gram[np.ix_(kept, kept)], self._moments[kept]

    def weighted(self, point: Point, beta: NDArray[np.float64], report: dict[str, Any]) -> Point:
        """Return a point, at which the equations are, with weights `beta` and the best intercept.

        A tree whose weight is 0 is gone. The objective is still that of `point`.
        """
        problem, kept = self.problem, np.flatnonzero(point.depths)
        gram, moments = self._gram[np.ix_(kept, kept)], self._moments[kept]
        weights = np.zeros(point.weights.size)
        weights[kept] = beta
        intercept = problem.intercept + self._residual_means - beta @ self._means[kept]
        fit = float(beta @ gram @ beta - 2.0 * moments @ beta) / problem.variation
        forest = problem.encoding.forest
        splits, values = without_trees(forest, point.splits(forest), point.values, weights == 0.0)
        return replace(
            point,
            kept=pack_splits(splits),
            values=values,
            depths=seal(np.where(weights != 0.0, point.depths, 0)),
            levels=None if point.levels is None else seal(point.levels * (weights != 0.0)),
            weights=seal(weights),
            intercept=seal(intercept),
            loss=max(self._loss_of_none + fit, 0.0),
            report=report,
        )

    def _renew(self, point: Point) -> None:
        """Bring the inner products up to date."""
        contributions, present = self._contributions, point.depths > 0
        changed = contributions.move_to(point, weighted=False)
        for array in (self._gram, self._moments, self._means):
            array[changed] = 0.0
        self._gram[:, changed] = 0.0
        changed = changed[present[changed]]
        kept = np.flatnonzero(present)
        if not changed.size:
            return
        self._means[changed] = contributions.means(changed)
        rows = self._weight.size
        length = max(64, self._block_bytes // (8 * kept.size))
        products = np.zeros((changed.size, kept.size))
        among = np.searchsorted(kept, changed)
        for start in range(0, rows, length):
            stop = min(start + length, rows)
            for output in range(self._means.shape[1]):
                columns = contributions.columns(start, stop, kept, output)
                columns -= self._means[kept, output]
                new = columns[:, among]
                products += (new * self._weight[start:stop, np.newaxis]).T @ columns
                self._moments[changed] += new.T @ self.problem.residual[output, start:stop]
        self._gram[np.ix_(changed, kept)] = products
        self._gram[np.ix_(kept, changed)] = products.T
        # What a column that is constant on these rows has left is rounding, and not symmetric.
        total = float(self._weight.sum())
        size = total * (self._means[changed] ** 2).sum(axis=1)
        constant = changed[products[np.arange(changed.size), among] <= 1e-24 * size]
        self._gram[constant] = self._gram[:, constant] = 0.0
        self._moments[constant] = 0.0
        within = np.ix_(changed, changed)
        self._gram[within] = 0.5 * (self._gram[within] + self._gram[within].T)


def solve_semidefinite(
    matrix: NDArray[np.float64], target: NDArray[np.float64], *, not_negative: bool = False
) -> NDArray[np.float64]:
    """Solve positive semidefinite equations, as far as they determine anything.

    If asked for, minimise ``x' matrix x - 2 target' x`` over what is `not_negative` instead.
    """
    length = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    some = np.flatnonzero(length > 0.0)
    length = length[some]
    solution = np.zeros_like(target)
    if some.size:
        scaled = matrix[np.ix_(some, some)] / length / length[:, np.newaxis]
        # Enough to choose between trees that are the same on these rows, too little to matter.
        scaled[np.diag_indices_from(scaled)] += 1e-12
        solve = _solve_not_negative if not_negative else _solve
        solution[some] = solve(scaled, target[some] / length) / length
    return solution


def _solve(matrix: NDArray[np.float64], target: NDArray[np.float64]) -> NDArray[np.float64]:
    solution: NDArray[np.float64] = scipy.linalg.solve(matrix, target, assume_a="pos")
    return solution


def _solve_not_negative(
    matrix: NDArray[np.float64], target: NDArray[np.float64]
) -> NDArray[np.float64]:
    # With matrix = R'R that is a least squares problem.
    root = scipy.linalg.cholesky(matrix)
    moved = scipy.linalg.solve_triangular(root, target, trans="T")
    solution: NDArray[np.float64] = scipy.optimize.nnls(root, moved)[0]
    return solution
