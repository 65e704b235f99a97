"""The few trees, and their weights, that fit best: best-subset selection on a quadratic.

Everything is computed from the Gram matrix, so the number of rows does not matter. Inside, columns
are scaled to length 1, which makes every tolerance mean the same for all data.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, nan
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestprune.polish.subset.exact import (
    EXACT,
    ExactProblem,
    import_solver,
    solve_with_gurobi,
    solve_with_scip,
)
from forestprune.polish.subset.fit import Floats
from forestprune.polish.subset.search import Search


@dataclass(frozen=True, eq=False)
class SubsetSolution:
    """A choice of trees with their weights.

    Attributes
    ----------
    weights : float64 array of shape (p,)
        Zero where a tree is not selected.
    objective : float
        The function that was minimised, at `weights`.
    solver : str
        "heuristic", "scip" or "gurobi".
    status : str
        "heuristic" if nothing is proved, "optimal" if the exact solver proved that nothing is
        better, up to its tolerance; "time limit" if it had no time to.
    gap : float
        What is proved: no choice is better by more than this share of abs(objective). Where
        that is nearly 0, of a millionth of what all trees together explain. NaN for the
        heuristic.
    seconds : float
        Time taken.
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
        G, symmetric and positive semidefinite. It may be singular: of trees that are combinations
        of each other, only independent ones are selected together, and a tree that is zero
        everywhere is never selected.
    moments : array-like of shape (p,)
        m.
    max_trees : int or None
        How many weights may be non-zero; None for any number.
    sizes, max_size : array-like of shape (p,), int
        What trees with non-zero weights may add up to, each with a size of its own, a positive
        whole number. Instead of `max_trees`.
    penalty : float
        Price of each non-zero weight.
    ridge : float or array-like of shape (p,)
        Price of each squared weight.
    solver : {"heuristic", "scip", "gurobi"}
        The heuristic proves nothing, but no exchange of one tree for another, and no tree more or
        less, improves what it returns. The others start from that, search on, and prove how far
        it is from the best; beyond a few dozen trees expect them to run into the time limit.
    time_limit : float
        Seconds that "scip" or "gurobi" may search. The heuristic's time comes on top.
    starts : sequence of array-like
        Selections of trees, by their numbers, from which the heuristic starts besides its own; of
        one that is too large, the first trees that there is room for.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 1.0, 0.0], [2.0, 2.0, 1.0], [3.0, 2.0, -1.0]])
    >>> y = np.array([2.0, 4.0, 6.0])
    >>> best_subset(X.T @ X, X.T @ y, max_trees=1).weights.round(9)
    array([2., 0., 0.])
    """
    start = time.perf_counter()
    if solver != "heuristic" and solver not in EXACT:
        known = ", ".join(repr(name) for name in ("heuristic", *EXACT))
        raise ValueError(f"solver must be one of {known}; got {solver!r}.")
    if not time_limit > 0:
        raise ValueError(f"time_limit must be a positive number of seconds, got {time_limit!r}.")
    problem = _checked_problem(gram, moments, max_trees, sizes, max_size, penalty, ridge)
    library = None if solver == "heuristic" else import_solver(solver)

    search = _scaled(problem)
    fit = search.best([search.selection(_checked_start(start, problem)) for start in starts])
    status, gap = "heuristic", nan
    if library is not None:
        exact = ExactProblem(search, fit)
        if exact.is_trivial:
            status, bound = "optimal", exact.value
        else:
            solve = solve_with_scip if solver == "scip" else solve_with_gurobi
            status, bound, support = solve(library, exact, float(time_limit))
            # Solvers meet constraints only up to a tolerance: what counts is the support.
            other = search.descend(search.fit(support))
            fit = min(fit, other, key=search.value)
        gap = exact.gap(fit, bound)

    weights = np.zeros(len(problem.moments))
    weights[search.columns[fit.support]] = fit.refined_weights() * search.units[fit.support]
    seconds = time.perf_counter() - start
    return SubsetSolution(weights, problem.objective(weights), solver, status, gap, seconds)


def _checked_start(start: ArrayLike, problem: "_Problem") -> NDArray[np.intp]:
    trees = np.asarray(start)
    if not trees.size:
        return np.empty(0, np.intp)
    known = trees.dtype.kind in "iu" and trees.min() >= 0 and trees.max() < problem.moments.size
    if trees.ndim != 1 or not known:
        raise ValueError(
            f"Each of starts must be numbers of columns, 0 to {problem.moments.size - 1}; got "
            f"{start!r}."
        )
    return trees.astype(np.intp)


@dataclass(frozen=True, eq=False)
class _Problem:
    """What was asked, checked."""

    gram: Floats
    moments: Floats
    ridge: Floats
    penalty: float
    sizes: NDArray[np.int64]
    limit: int

    def objective(self, weights: Floats) -> float:
        fit = weights @ self.gram @ weights - 2 * (self.moments @ weights)
        return float(fit + self.ridge @ weights**2 + self.penalty * int(np.count_nonzero(weights)))


def _checked_problem(
    gram: ArrayLike,
    moments: ArrayLike,
    max_trees: int | None,
    sizes: ArrayLike | None,
    max_size: int | None,
    penalty: float,
    ridge: float | ArrayLike,
) -> _Problem:
    G = np.asarray(gram, dtype=np.float64)
    m = np.asarray(moments, dtype=np.float64)
    if G.ndim != 2 or G.shape[0] != G.shape[1]:
        raise ValueError(f"gram must be a square matrix, got shape {G.shape}.")
    p = len(G)
    if m.shape != (p,):
        raise ValueError(
            f"moments must have one entry for each of the {p} columns of gram, got shape {m.shape}."
        )
    r = np.asarray(ridge, dtype=np.float64)
    if r.shape not in ((), (p,)):
        raise ValueError(
            f"ridge must be one number, or one for each of the {p} columns of gram; "
            f"got shape {r.shape}."
        )
    for name, array in (("gram", G), ("moments", m), ("ridge", r)):
        if not np.isfinite(array).all():
            raise ValueError(f"{name} must be finite, got NaN or infinity. Check the data.")
    if (r < 0).any():
        raise ValueError(f"ridge must not be negative, got {r.min()}.")
    if not 0 <= penalty < inf:
        raise ValueError(f"penalty must be finite and not negative, got {penalty!r}.")
    if max_trees is not None and (not isinstance(max_trees, Integral) or max_trees < 1):
        raise ValueError(
            f"max_trees must be a whole number of at least 1, or None for no limit; "
            f"got {max_trees!r}."
        )
    each, limit = np.ones(p, np.int64), p if max_trees is None else min(int(max_trees), p)
    if sizes is not None or max_size is not None:
        if max_trees is not None or sizes is None or max_size is None:
            raise ValueError(
                "Give max_trees, or sizes and max_size together; got "
                f"max_trees={max_trees!r}, sizes={sizes!r}, max_size={max_size!r}."
            )
        if not isinstance(max_size, Integral) or isinstance(max_size, bool) or max_size < 1:
            raise ValueError(
                f"max_size, what sizes may add up to, must be a whole number of at least 1; got "
                f"{max_size!r}."
            )
        each, limit = np.asarray(sizes), int(max_size)
        if each.shape != (p,) or each.dtype.kind not in "iu" or (each < 1).any():
            raise ValueError(
                f"sizes must be {p} positive whole numbers, one for each column of gram; got "
                f"{sizes!r}."
            )
    r = np.broadcast_to(r, (p,))
    return _Problem(G, m, r, float(penalty), each.astype(np.int64), limit)


def _scaled(problem: _Problem) -> "Search":
    """Return the problem with columns of length 1, moments of at most 1, none zero or too large."""
    diagonal = np.diag(problem.gram)
    columns = np.flatnonzero((diagonal > 0) & (problem.sizes <= problem.limit))
    zero = np.flatnonzero(diagonal <= 0)
    lengths = np.sqrt(diagonal[columns] + problem.ridge[columns])
    A = problem.gram[np.ix_(columns, columns)] / lengths / lengths[:, None]
    if np.abs(A - A.T).max(initial=0) > 1e-8:
        raise ValueError("gram must be symmetric. Pass (gram + gram.T) / 2 if it nearly is.")
    A = (A + A.T) / 2
    np.fill_diagonal(A, 1.0)
    eigenvalues = np.linalg.eigvalsh(A) if columns.size else np.ones(1)
    # Rounding alone makes eigenvalues a little negative, and A no longer a Gram matrix.
    indefinite = eigenvalues[0] < -1e-8 * eigenvalues[-1]
    if indefinite or problem.gram[zero].any() or problem.gram[:, zero].any():
        raise ValueError(
            "gram must be positive semidefinite, as X.T @ X is, but has a negative eigenvalue. "
            "Compute it in float64 from the columns themselves."
        )
    moments = problem.moments[columns] / lengths
    largest = float(np.abs(moments).max(initial=0)) or 1.0
    # Two divisions, as the square may be 0; beyond 1e100 no column is ever worth its price.
    penalty = min(problem.penalty / largest / largest, 1e100)
    return Search(
        A=A,
        b=moments / largest,
        sizes=problem.sizes[columns],
        limit=min(problem.limit, int(problem.sizes[columns].sum())),
        penalty=penalty,
        largest_eigenvalue=float(eigenvalues[-1]),
        columns=columns,
        units=largest / lengths,
    )
