"""The few trees, and their weights, that fit best: best-subset selection on a quadratic.

With a price for each tree this is the paper's best subset polishing (section 2.4), with a limit on
the size its best subset tree selection (section 4). Everything is computed from the Gram matrix, so
the number of rows does not matter. Inside, columns are scaled to length 1, so that tolerances mean
the same for all data.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, nan
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestprune.polishing.subset.exact import EXACT, ExactProblem, import_solver, solve_exactly
from forestprune.polishing.subset.fit import Floats
from forestprune.polishing.subset.search import Search


@dataclass(frozen=True, eq=False)
class SubsetSolution:
    """A choice of trees with their weights.

    Attributes
    ----------
    weights : float64 array of shape (p,)
        Zero where a tree is not selected.
    objective : float
        The function that was minimised, at `weights`.
    solver : "heuristic", "scip" or "gurobi"
    status : "heuristic", "optimal" or "time limit"
        "heuristic" if nothing is proved, "optimal" if nothing is better, up to the tolerance of
        the exact solver; "time limit" if it ran out of time.
    gap : float
        What is proved: no choice is better by more than this share of abs(objective), or, where
        that is nearly 0, of a millionth of what all trees together explain. NaN for the heuristic.
    seconds : float
    """

    weights: Floats
    objective: float
    solver: str
    status: str
    gap: float
    seconds: float


def best_subset(
    gram: ArrayLike,
    moments: ArrayLike,
    *,
    max_trees: int | None = None,
    sizes: ArrayLike | None = None,
    max_size: int | None = None,
    penalty: float = 0.0,
    ridge: float | ArrayLike = 0.0,
    solver: str = "heuristic",
    time_limit: float = 60.0,
    starts: Sequence[ArrayLike] = (),
) -> SubsetSolution:
    """Minimise w'Gw - 2 m'w + sum of ridge_i w_i^2 + penalty * (number of non-zero w_i).

    With predictions X of the trees and target y, G = X'X and m = X'y make this the squared error
    less the constant y'y.

    Parameters
    ----------
    gram : array-like of shape (p, p)
        G, symmetric and positive semidefinite. It may be singular: linearly dependent trees are
        not selected together, and a tree that is zero everywhere is never selected.
    moments : array-like of shape (p,)
        m.
    max_trees : int or None
        How many weights may be non-zero; None for any number.
    sizes, max_size : array-like of shape (p,), int
        Instead of `max_trees`: a positive whole number for each tree, and a limit on the sum of
        those with non-zero weights.
    penalty : float
        Price of each non-zero weight.
    ridge : float or array-like of shape (p,)
        Price of each squared weight.
    solver : {"heuristic", "scip", "gurobi"}
        The heuristic proves nothing, but no exchange, addition or removal of a single tree
        improves its solution. The others start from that, search on, and prove how far it is from
        the best; beyond a few dozen trees expect them to run into the time limit.
    time_limit : float
        Seconds for "scip" or "gurobi", after the heuristic.
    starts : sequence of array-like
        Selections of trees, by number, from which the heuristic starts besides its own. Trees that
        exceed the limit are skipped.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 1.0, 0.0], [2.0, 2.0, 1.0], [3.0, 2.0, -1.0]])
    >>> y = np.array([2.0, 4.0, 6.0])
    >>> best_subset(X.T @ X, X.T @ y, max_trees=1).weights.round(9)
    array([2., 0., 0.])
    """
    begun = time.perf_counter()
    if solver not in ("heuristic", *EXACT):
        known = ", ".join(repr(name) for name in ("heuristic", *EXACT))
        raise ValueError(f"solver must be one of {known}; got {solver!r}.")
    if not time_limit > 0:
        raise ValueError(f"time_limit must be a positive number of seconds, got {time_limit!r}.")
    problem = Problem.checked(gram, moments, max_trees, sizes, max_size, penalty, ridge)
    library = None if solver == "heuristic" else import_solver(solver)

    search = problem.scaled()
    p = problem.moments.size
    fit = search.best([search.selection(_checked_start(start, p)) for start in starts])
    status, gap = "heuristic", nan
    if library is not None:
        exact = ExactProblem(search, fit)
        status, bound = "optimal", exact.value
        if not exact.is_trivial:
            status, bound, support = solve_exactly(solver, library, exact, float(time_limit))
            # Solvers meet constraints only up to a tolerance: what counts is the support.
            fit = min(fit, search.descend(search.fit(support)), key=search.value)
        gap = exact.gap(fit, bound)

    weights = np.zeros(p)
    weights[search.columns[fit.support]] = fit.refined_weights() * search.units[fit.support]
    seconds = time.perf_counter() - begun
    return SubsetSolution(weights, problem.objective(weights), solver, status, gap, seconds)


@dataclass(frozen=True, eq=False)
class Problem:
    """What is to be minimised, checked: see `best_subset`."""

    gram: Floats
    moments: Floats
    ridge: Floats
    penalty: float
    sizes: NDArray[np.int64]
    limit: int

    @classmethod
    def checked(
        cls,
        gram: ArrayLike,
        moments: ArrayLike,
        max_trees: int | None = None,
        sizes: ArrayLike | None = None,
        max_size: int | None = None,
        penalty: float = 0.0,
        ridge: float | ArrayLike = 0.0,
    ) -> "Problem":
        """Return the problem; refuse arguments of `best_subset` that make no sense."""
        G, m, r = (np.asarray(each, dtype=np.float64) for each in (gram, moments, ridge))
        if G.ndim != 2 or G.shape[0] != G.shape[1]:
            raise ValueError(f"gram must be a square matrix, got shape {G.shape}.")
        p = len(G)
        columns = f"each of the {p} columns of gram"
        if m.shape != (p,):
            raise ValueError(f"moments must have one entry for {columns}, got shape {m.shape}.")
        if r.shape not in ((), (p,)):
            raise ValueError(
                f"ridge must be one number, or one for {columns}; got shape {r.shape}."
            )
        for name, array in (("gram", G), ("moments", m), ("ridge", r)):
            if not np.isfinite(array).all():
                raise ValueError(f"{name} must be finite, got NaN or infinity. Check the data.")
        if (r < 0).any():
            raise ValueError(f"ridge must not be negative, got {r.min()}.")
        if not 0 <= penalty < inf:
            raise ValueError(f"penalty must be finite and not negative, got {penalty!r}.")
        ridges = np.broadcast_to(r, (p,))
        if sizes is None and max_size is None:
            if max_trees is not None and not _is_count(max_trees):
                required = "a whole number of at least 1, or None for no limit"
                raise ValueError(f"max_trees must be {required}; got {max_trees!r}.")
            limit = p if max_trees is None else min(int(max_trees), p)
            return cls(G, m, ridges, float(penalty), np.ones(p, np.int64), limit)
        if max_trees is not None or sizes is None or max_size is None:
            raise ValueError(
                "Give max_trees, or sizes and max_size together; got "
                f"max_trees={max_trees!r}, sizes={sizes!r}, max_size={max_size!r}."
            )
        if not _is_count(max_size):
            required = "the limit on the sum of sizes, must be a whole number of at least 1"
            raise ValueError(f"max_size, {required}; got {max_size!r}.")
        each = np.asarray(sizes)
        if each.shape != (p,) or each.dtype.kind not in "iu" or (each < 1).any():
            raise ValueError(
                f"sizes must be positive whole numbers, one for {columns}; got {sizes!r}."
            )
        return cls(G, m, ridges, float(penalty), each.astype(np.int64), int(max_size))

    def objective(self, weights: Floats) -> float:
        """Return what is minimised."""
        fit = weights @ self.gram @ weights - 2 * (self.moments @ weights)
        return float(fit + self.ridge @ weights**2 + self.penalty * int(np.count_nonzero(weights)))

    def scaled(self) -> Search:
        """Return the problem with columns of length 1 and moments of at most 1.

        Columns that are zero or exceed the limit on their own are left out.
        """
        diagonal = np.diag(self.gram)
        columns = np.flatnonzero((diagonal > 0) & (self.sizes <= self.limit))
        zero = np.flatnonzero(diagonal <= 0)
        lengths = np.sqrt(diagonal[columns] + self.ridge[columns])
        A = self.gram[np.ix_(columns, columns)] / lengths / lengths[:, None]
        if np.abs(A - A.T).max(initial=0) > 1e-8:
            raise ValueError("gram must be symmetric. Pass (gram + gram.T) / 2 if it nearly is.")
        A = (A + A.T) / 2
        np.fill_diagonal(A, 1.0)
        eigenvalues = np.linalg.eigvalsh(A) if columns.size else np.ones(1)
        # Rounding alone makes eigenvalues a little negative.
        indefinite = eigenvalues[0] < -1e-8 * eigenvalues[-1]
        if indefinite or self.gram[zero].any() or self.gram[:, zero].any():
            raise ValueError(
                "gram must be positive semidefinite, as X.T @ X is, but has a negative eigenvalue. "
                "Compute it in float64 from the columns themselves."
            )
        moments = self.moments[columns] / lengths
        largest = float(np.abs(moments).max(initial=0)) or 1.0
        return Search(
            A=A,
            b=moments / largest,
            sizes=self.sizes[columns],
            limit=min(self.limit, int(self.sizes[columns].sum())),
            # Two divisions, as the square may be 0; beyond 1e100 no column pays its price.
            penalty=min(self.penalty / largest / largest, 1e100),
            largest_eigenvalue=float(eigenvalues[-1]),
            columns=columns,
            units=largest / lengths,
        )


def _checked_start(start: ArrayLike, p: int) -> NDArray[np.intp]:
    trees = np.asarray(start)
    if trees.size and (
        trees.ndim != 1 or trees.dtype.kind not in "iu" or trees.min() < 0 or trees.max() >= p
    ):
        raise ValueError(f"Each of starts must be numbers of columns, 0 to {p - 1}; got {start!r}.")
    return trees.astype(np.intp)


def _is_count(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1
