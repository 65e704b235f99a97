"""New weights for trees that are pruned already, or new values for their leaves."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from forestprune import kernels
from forestprune.forest.checks import seal
from forestprune.kernels.cuts import Trees
from forestprune.polish.subset.best_subset import best_subset
from forestprune.solve.contributions import Tables
from forestprune.solve.kept import Subtrees, read_trees
from forestprune.solve.leaf_fit import LeafFit, Leaves
from forestprune.solve.problem import Problem
from forestprune.system.threads import one_blas_thread

BLOCK_BYTES = 1 << 24
"""Rows are gone through in blocks whose columns, one a tree, take about this much memory."""


@dataclass(frozen=True, eq=False)
class Polished:
    """Weights of the trees, or values of their leaves, with the intercept that goes with them.

    Attributes
    ----------
    weights : float64 array of shape (n_trees,)
        0 for a tree that was left out, 1 for one that was not kept before.
    intercept : float64 array of shape (n_outputs,)
    loss : float
        Mean squared error over var(y).
    report : dict
        What the solver says of the solution.
    subtrees : Subtrees or None
        The nodes that are kept, with new values.
    """

    weights: NDArray[np.float64]
    intercept: NDArray[np.float64]
    loss: float
    report: dict[str, Any]
    subtrees: Subtrees | None = None


class Polisher:
    """Fits the weights of cut trees anew, for one cut after another.

    Minimises ``|| y - b - sum of beta_i f_i(x) ||^2 / (m var(y))`` plus a penalty, over the weights
    beta and the intercept b, which is not penalised. f_i is tree i as it is cut. All that the
    rows have to say is in the trees' inner products; these are kept from one cut to the next and
    renewed only for trees that differ.
    """

    def __init__(self, problem: Problem) -> None:
        n_trees, outputs = problem.encoding.forest.n_trees, problem.encoding.forest.n_outputs
        self.problem = problem
        self._tables = Tables(problem.encoding, problem.steps)
        # Of the columns with their means taken out, which is what a free intercept does.
        self._gram = np.zeros((n_trees, n_trees))
        self._moments = np.zeros(n_trees)
        self._means = np.zeros((n_trees, outputs))
        weights = problem.encoding.sample_weight
        self._weight = np.ones(problem.encoding.n_rows) if weights is None else weights
        self._residual_means = problem.residual.sum(axis=1) / self._weight.sum()
        centred = problem.residual - self._weight * self._residual_means[:, np.newaxis]
        self._loss_of_none = problem.loss(centred)

    def ridge(
        self, depths: NDArray[np.int64], alpha2: float, subtrees: Subtrees | None = None
    ) -> Polished:
        """Penalise ``alpha2 * sum of beta_i^2 * || tree i uncut ||^2 / (m var(y))``.

        Each tree is measured against itself, so neither the number of rows nor the scale of the
        forest matters.
        """
        with one_blas_thread():
            kept, gram, moments = self.equations(depths, subtrees)
            beta = _solve(gram + np.diag(alpha2 * self.full_squares[kept]), moments)
            return self.weighted(kept, beta, gram, moments, {})

    @property
    def full_squares(self) -> NDArray[np.float64]:
        """Sum of squares of what each tree adds to the rows, uncut."""
        problem = self.problem
        squares: NDArray[np.float64] = problem.steps.square[
            np.arange(problem.depths.size), problem.depths
        ]
        return squares

    def subset(
        self,
        depths: NDArray[np.int64],
        subtrees: Subtrees | None = None,
        *,
        max_trees: int | None,
        alpha2: float,
        solver: str,
        time_limit: float,
    ) -> Polished:
        """Keep at most `max_trees` trees; without that limit, each tree costs `alpha2`."""
        with one_blas_thread():
            kept, gram, moments = self.equations(depths, subtrees)
            solution = best_subset(
                gram / self.problem.variation,
                moments / self.problem.variation,
                max_trees=max_trees,
                penalty=alpha2 if max_trees is None else 0.0,
                solver=solver,
                time_limit=time_limit,
            )
            report = {
                name: getattr(solution, name) for name in ("solver", "status", "gap", "seconds")
            }
            return self.weighted(kept, solution.weights, gram, moments, report)

    def leaf(self, subtrees: Subtrees) -> Polished:
        """Fit the values of all leaves at once, each drawn to its value in the unpruned forest.

        Penalises ``shrinkage * sum of (value - original value)^2 / (m var(y))``, so in rows: with
        as many rows as `shrinkage`, a leaf goes half of the way.
        """
        problem, forest = self.problem, self.problem.encoding.forest
        trees = self._trees
        leaves = Leaves.of(problem.encoding.codes, trees, subtrees.splits(trees))
        origin = trees.origin[:, leaves.node]
        place = np.searchsorted(subtrees.nodes, leaves.node)
        adds = subtrees.values(trees).copy()
        value = adds[:, place]
        weights = problem.encoding.sample_weight
        row_weight = np.empty(0) if weights is None else weights
        residual = problem.residual.copy()
        rise = np.zeros_like(residual)
        leaves.add_to(value, rise)
        residual -= rise * row_weight if row_weight.size else rise
        constant = np.zeros(forest.n_outputs)
        LeafFit(leaves, row_weight, residual, value, origin, problem.shrinkage, constant).solve()
        adds[:, place] = value
        kernels.average_adds(trees, subtrees.nodes.copy(), adds)
        return Polished(
            np.ones(forest.n_trees),
            problem.intercept + constant,
            problem.loss(residual),
            {},
            Subtrees(subtrees.nodes, seal(adds)),
        )

    @cached_property
    def _trees(self) -> Trees:
        encoding = self.problem.encoding
        return read_trees(encoding.forest, encoding.node_weights)

    def equations(
        self, depths: NDArray[np.int64], subtrees: Subtrees | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """Return the trees kept, and their inner products with each other and the residual."""
        self._renew(depths, subtrees)
        kept = np.flatnonzero(depths > 0)
        return kept, self._gram[np.ix_(kept, kept)], self._moments[kept]

    def weighted(
        self,
        kept: NDArray[np.int64],
        beta: NDArray[np.float64],
        gram: NDArray[np.float64],
        moments: NDArray[np.float64],
        report: dict[str, Any],
    ) -> Polished:
        """Return the trees kept with weights `beta`, and the best intercept for these."""
        problem = self.problem
        weights = np.ones(problem.encoding.forest.n_trees)
        weights[kept] = beta
        intercept = problem.intercept + self._residual_means - beta @ self._means[kept]
        fit = float(beta @ gram @ beta - 2.0 * moments @ beta) / problem.variation
        return Polished(weights, intercept, max(self._loss_of_none + fit, 0.0), report)

    def _renew(self, depths: NDArray[np.int64], subtrees: Subtrees | None) -> None:
        """Bring the inner products up to date."""
        tables = self._tables
        changed = tables.move_to(depths, np.ones(depths.size), subtrees)
        for array in (self._gram, self._moments, self._means):
            array[changed] = 0.0
        self._gram[:, changed] = 0.0
        changed = changed[depths[changed] > 0]
        kept = np.flatnonzero(depths > 0)
        if not changed.size:
            return
        self._means[changed] = tables.means(changed, self.problem.steps.weight)
        rows = self._weight.size
        length = max(64, BLOCK_BYTES // (8 * kept.size))
        products = np.zeros((changed.size, kept.size))
        among = np.searchsorted(kept, changed)
        for start in range(0, rows, length):
            stop = min(start + length, rows)
            for output in range(self._means.shape[1]):
                columns = tables.columns(start, stop, kept, output)
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


def _solve(matrix: NDArray[np.float64], target: NDArray[np.float64]) -> NDArray[np.float64]:
    """Solve positive semidefinite equations, as far as they determine anything."""
    length = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    some = np.flatnonzero(length > 0.0)
    length = length[some]
    solution = np.zeros_like(target)
    if some.size:
        scaled = matrix[np.ix_(some, some)] / length / length[:, np.newaxis]
        # Enough to choose between trees that are the same on these rows, too little to matter.
        scaled[np.diag_indices_from(scaled)] += 1e-12
        solution[some] = scipy.linalg.solve(scaled, target[some] / length, assume_a="pos") / length
    return solution
