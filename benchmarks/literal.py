"""The paper's algorithm, word for word: depth-difference matrices, every candidate evaluated.

For comparison only. Algorithm 2 with block updates by enumeration (section 3.1), each candidate's
objective evaluated with about m * d operations; local search with the smallest-index rule and
roll-back; warm starts (section 3.2). The residual is carried along instead of being recomputed
from all trees for every block, which the paper leaves open and which is the faster way.
"""

import numpy as np

import forestprune as fp
from forestprune.options import Weighting
from forestprune.solve.costs import layer_costs
from forestprune.solve.problem import Problem

LEAST = 1e-12
"""A candidate is better if its objective is lower by more than this."""


class Literal:
    """The problem of the paper, as matrices.

    Parameters
    ----------
    problem : Problem
        Where the forest and the target come from. Rows must not be weighted.
    X : array of shape (m, n_features)
        The rows that the problem was posed with.
    weighting : "node", "depth" or array
        What layers cost.
    """

    def __init__(self, problem: Problem, X: np.ndarray, weighting: Weighting = "node") -> None:
        forest = problem.encoding.forest
        self.problem = problem
        matrices = fp.depth_difference(forest, X)[:, :, 1:]
        self.matrices = [m * s for m, s in zip(matrices, forest.scale, strict=True)]
        self.target = problem.residual[0]
        self.costs = np.diff(layer_costs(forest, weighting), axis=1)
        self.n_trees, self.depth = self.costs.shape

    @property
    def memory(self) -> int:
        """Bytes of the matrices."""
        return sum(matrix.nbytes for matrix in self.matrices)

    def objective(self, z: np.ndarray, alpha: float) -> float:
        rest = self.residual(z)
        return float(rest @ rest) / self.problem.variation + alpha * float((self.costs * z).sum())

    def residual(self, z: np.ndarray) -> np.ndarray:
        rest = self.target.copy()
        for matrix, kept in zip(self.matrices, z, strict=True):
            rest -= matrix @ kept
        return rest

    def update(self, z: np.ndarray, rest: np.ndarray, i: int, alpha: float) -> bool:
        """Give tree i its best depth; return whether that changed it."""
        matrix = self.matrices[i]
        without = rest + matrix @ z[i]
        best, best_rest, best_value = z[i].copy(), rest, np.inf
        present = None
        for k in range(self.depth + 1):
            candidate = (np.arange(self.depth) < k).astype(float)
            candidate_rest = without - matrix @ candidate
            value = float(candidate_rest @ candidate_rest) / self.problem.variation
            value += alpha * float(self.costs[i] @ candidate)
            if np.array_equal(candidate, z[i]):
                present = value
            if value < best_value:
                best, best_rest, best_value = candidate, candidate_rest, value
        if present is not None and best_value >= present - LEAST:
            return False
        z[i] = best
        rest[:] = best_rest
        return True

    def sweep(self, z: np.ndarray, rest: np.ndarray, alpha: float) -> bool:
        changed = [self.update(z, rest, i, alpha) for i in range(self.n_trees)]
        return any(changed)

    def descend(self, z: np.ndarray, alpha: float, max_iter: int = 1000) -> int:
        """Sweep until nothing changes; return the number of sweeps."""
        rest = self.residual(z)
        for sweeps in range(1, max_iter + 1):
            if not self.sweep(z, rest, alpha):
                return sweeps
        return max_iter

    def solve(
        self,
        alpha: float,
        start: np.ndarray | None = None,
        random: np.random.Generator | None = None,
    ) -> np.ndarray:
        """Descend from `start`, or from nothing; with `random`, search as the paper does."""
        z = np.zeros((self.n_trees, self.depth)) if start is None else start.copy()
        self.descend(z, alpha)
        improves = random is not None
        while improves:
            kept, absent = np.flatnonzero(z[:, 0]), np.flatnonzero(z[:, 0] == 0)
            if not kept.size:
                break
            candidate = z.copy()
            candidate[random.choice(kept)] = 0.0
            if absent.size:
                candidate[absent[0]] = 1.0
            self.descend(candidate, alpha)
            improves = self.objective(candidate, alpha) < self.objective(z, alpha) - LEAST
            z = candidate if improves else z
        return z

    def path(
        self, alphas: np.ndarray, random: np.random.Generator | None = None
    ) -> list[np.ndarray]:
        """Solve for falling alphas, each from the solution before."""
        solutions: list[np.ndarray] = []
        for alpha in alphas:
            start = solutions[-1] if solutions else None
            solutions.append(self.solve(alpha, start, random))
        return solutions
