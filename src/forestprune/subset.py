"""The few trees, and their weights, that fit best: best-subset selection on a quadratic.

Everything is computed from the Gram matrix, so the number of rows does not matter. Inside, columns
are scaled to length 1, which makes every tolerance below mean the same for all data.
"""

import importlib
import time
from dataclasses import dataclass
from math import inf, nan
from numbers import Integral
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

# A column whose squared distance to the span of others is below this share of its squared length
# counts as a combination of them, and is not selected with them. A Gram matrix has about 15 digits:
# this leaves half a dozen for what only the distance between nearly equal columns can explain.
_DEPENDENT = 1e-9

# A move must improve by this share of what is explained, or rounding could go round in circles.
_IMPROVEMENT = 1e-11

# Moves between two fits from scratch: updates are fast, and lose digits.
_MOVES_PER_FIT = 64

# How many swaps to look at for one that keeps the support independent, before giving up.
_SWAPS_TRIED = 200

# How much shaking may cost, in entries of tableaus looked at: about a second.
_SHAKING_WORK = 2e8

# Beyond this bound on a weight, in lengths of the best fit, an exact solver's tolerance times the
# bound is no longer small.
_LARGEST_BOUND = 1e3

_EXACT = {
    "scip": ("pyscipopt", 'pip install "forestprune[mip]"'),
    "gurobi": ("gurobipy", "pip install gurobipy"),
}


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
    penalty: float = 0.0,
    ridge: float | ArrayLike = 0.0,
    solver: str = "heuristic",
    time_limit: float = 60.0,
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

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 1.0, 0.0], [2.0, 2.0, 1.0], [3.0, 2.0, -1.0]])
    >>> y = np.array([2.0, 4.0, 6.0])
    >>> best_subset(X.T @ X, X.T @ y, max_trees=1).weights.round(9)
    array([2., 0., 0.])
    """
    start = time.perf_counter()
    if solver != "heuristic" and solver not in _EXACT:
        known = ", ".join(repr(name) for name in ("heuristic", *_EXACT))
        raise ValueError(f"solver must be one of {known}; got {solver!r}.")
    if not time_limit > 0:
        raise ValueError(f"time_limit must be a positive number of seconds, got {time_limit!r}.")
    problem = _checked_problem(gram, moments, max_trees, penalty, ridge)
    library = None if solver == "heuristic" else _import_solver(solver)

    search = _scaled(problem)
    fit = search.best()
    status, gap = "heuristic", nan
    if library is not None:
        exact = _ExactProblem(search, fit)
        if exact.is_trivial:
            status, bound = "optimal", exact.value
        else:
            solve = _solve_with_scip if solver == "scip" else _solve_with_gurobi
            status, bound, support = solve(library, exact, float(time_limit))
            # Solvers meet constraints only up to a tolerance: what counts is the support.
            other = search.descend(search.fit(support))
            fit = min(fit, other, key=search.value)
        gap = exact.gap(fit, bound)

    weights = np.zeros(len(problem.moments))
    weights[search.columns[fit.support]] = fit.refined_weights() * search.units[fit.support]
    seconds = time.perf_counter() - start
    return SubsetSolution(weights, problem.objective(weights), solver, status, gap, seconds)


@dataclass(frozen=True, eq=False)
class _Problem:
    """What was asked, checked."""

    gram: Floats
    moments: Floats
    ridge: Floats
    penalty: float
    max_trees: int

    def objective(self, weights: Floats) -> float:
        fit = weights @ self.gram @ weights - 2 * (self.moments @ weights)
        return float(fit + self.ridge @ weights**2 + self.penalty * int(np.count_nonzero(weights)))


def _checked_problem(
    gram: ArrayLike,
    moments: ArrayLike,
    max_trees: int | None,
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
    limit = p if max_trees is None else min(int(max_trees), p)
    return _Problem(G, m, np.broadcast_to(r, (p,)), float(penalty), limit)


def check_solver(solver: str) -> None:
    """Refuse an exact solver that is not installed, before anything else is done."""
    if solver in _EXACT:
        _import_solver(solver)


def _import_solver(solver: str) -> ModuleType:
    module, command = _EXACT[solver]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f'solver="{solver}" needs {module}, which could not be imported ({error}). '
            f"Install it with: {command}"
        ) from error


def _scaled(problem: _Problem) -> "_Search":
    """Return the problem with columns of length 1, moments of at most 1, and no zero columns."""
    diagonal = np.diag(problem.gram)
    columns = np.flatnonzero(diagonal > 0)
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
    return _Search(
        A=A,
        b=moments / largest,
        limit=min(problem.max_trees, columns.size),
        penalty=penalty,
        largest_eigenvalue=float(eigenvalues[-1]),
        columns=columns,
        units=largest / lengths,
    )


class _Fit:
    """Least squares on a support that gains and loses columns, and what each move would change.

    Attributes
    ----------
    support : list of int
    weights : array of shape (k,)
        inv(A_SS) b_S, in the order of `support`.
    residual : array of shape (p,)
        b - A_:S weights: what is left of the moments; 0 on the support.
    distance : array of shape (p,)
        Squared distance of each column to the span of the support; 0 on the support.
    tableau : array of shape (k, p)
        The columns of the support hold inv(A_SS), the others inv(A_SS) A_S: .
    explained : float
        b_S' weights: how far the support alone lowers the quadratic.
    """

    def __init__(self, A: Floats, b: Floats, capacity: int) -> None:
        self.A = A
        self.support: list[int] = []
        self.weights = np.zeros(0)
        self.residual = b.copy()
        self.b = b
        self.distance = np.ones(len(b))
        self.explained = 0.0
        self._rows = np.empty((capacity, len(b)))

    @property
    def tableau(self) -> Floats:
        return self._rows[: len(self.support)]

    @property
    def inverse_diagonal(self) -> Floats:
        return self.tableau[np.arange(len(self.support)), self.support]

    def copy(self) -> "_Fit":
        other = _Fit.__new__(_Fit)
        other.A, other.b, other.explained = self.A, self.b, self.explained
        other.support = list(self.support)
        other.weights = self.weights.copy()
        other.residual = self.residual.copy()
        other.distance = self.distance.copy()
        other._rows = np.empty_like(self._rows)
        other.tableau[:] = self.tableau
        return other

    def take_all(self, columns: NDArray[np.intp], least: float) -> bool:
        """Fit `columns` at once, or return False if one is nearer than `least` to the others."""
        block = self.A[np.ix_(columns, columns)]
        try:
            np.linalg.cholesky(block)  # fails if rounding makes it indefinite
            inverse = np.linalg.inv(block)
        except np.linalg.LinAlgError:
            return False
        # Of a singular matrix, the inverse may be anything.
        diagonal = np.diag(inverse) * least
        if not ((diagonal > 0) & (diagonal < 1)).all():
            return False
        self.support = [int(column) for column in columns]
        np.matmul(inverse, self.A[columns], out=self.tableau)
        self.weights = inverse @ self.b[columns]
        self.residual = self.b - self.weights @ self.A[columns]
        self.distance = 1 - np.einsum("ij,ij->j", self.A[columns], self.tableau)
        self.explained = float(self.b[columns] @ self.weights)
        self.tableau[:, columns] = inverse
        self._clear_support()
        return True

    def add(self, column: int) -> None:
        """Let `column`, which is independent of the support, join it."""
        tableau = self.tableau
        others = tableau[:, column].copy()
        distance, step = self.distance[column], self.residual[column] / self.distance[column]
        # The new row: the column's part that is orthogonal to the support, times all columns.
        products = self.A[column] - self.A[column, self.support] @ tableau
        products[self.support] = -others
        row = products / distance
        tableau -= others[:, None] * row
        tableau[:, column] = -others / distance
        row[column] = 1 / distance
        self._rows[len(self.support)] = row

        self.explained += float(self.residual[column] * step)
        self.weights = np.append(self.weights - others * step, step)
        self.residual -= products * step
        self.distance -= products * products / distance
        self.support.append(column)
        self._clear_support()

    def drop(self, position: int) -> None:
        """Let the column at `position` of the support leave it."""
        tableau, column, weight = self.tableau, self.support[position], self.weights[position]
        inverse = tableau[:, column].copy()
        corner = inverse[position]
        row = tableau[position] / corner
        tableau -= inverse[:, None] * row
        tableau[:, column] = -inverse / corner

        self.explained -= float(weight * weight / corner)
        self.weights = self.weights - inverse * (weight / corner)
        self.residual += row * weight
        self.distance += row * row * corner
        self.residual[column] = weight / corner
        self.distance[column] = 1 / corner
        # The last one takes the free place.
        tableau[position] = tableau[-1]
        self.weights[position] = self.weights[-1]
        self.weights = self.weights[:-1]
        self.support[position] = self.support[-1]
        self.support.pop()
        self._clear_support()

    def _clear_support(self) -> None:
        self.residual[self.support] = 0.0
        self.distance[self.support] = 0.0

    def can_move(self, position: int | None, column: int, least: float = _DEPENDENT) -> bool:
        """Tell if all would be independent with `column`, and without the one at `position`."""
        # The reciprocal of a diagonal entry is the squared distance of a member to all others.
        diagonal, row = self.inverse_diagonal, self.tableau[:, column]
        distance = self.distance[column]
        if position is not None:
            inverse = self.tableau[:, self.support[position]]
            ratio = inverse / diagonal[position]
            distance += row[position] ** 2 / diagonal[position]
            diagonal = diagonal - inverse * ratio
            row = row - ratio * row[position]
            diagonal[position] = row[position] = 0.0
        return bool(distance > least and ((diagonal + row**2 / distance) * least < 1).all())

    def drop_costs(self) -> Floats:
        """Return what dropping each member of the support would add to the quadratic."""
        costs: Floats = self.weights**2 / self.inverse_diagonal
        return costs

    def add_gains(self) -> Floats:
        """Return by how much adding each column would lower the quadratic."""
        return _gains(self.residual, self.distance)

    def swap_gains(self, columns: NDArray[np.intp]) -> Floats:
        """Return by how much each of `columns` in place of each member would lower it."""
        rows = self.tableau[:, columns]
        ratio = rows / self.inverse_diagonal[:, None]
        residual = self.residual[columns] + ratio * self.weights[:, None]
        distance = self.distance[columns] + ratio * rows
        return _gains(residual, distance) - self.drop_costs()[:, None]

    def refined_weights(self) -> Floats:
        """Return the weights with their last digits corrected."""
        weights = self.weights
        A = self.A[np.ix_(self.support, self.support)]
        for _ in range(2):
            missing = self.b[self.support] - A @ weights
            weights = weights + self.tableau[:, self.support] @ missing
        return weights


def _gains(residual: Floats, distance: Floats) -> Floats:
    """Return what columns would explain; nothing if they depend on the support."""
    return np.where(
        distance > _DEPENDENT, residual * residual / np.maximum(distance, _DEPENDENT), 0.0
    )


@dataclass(frozen=True, eq=False)
class _Search:
    """The scaled problem, v'Av - 2 b'v + penalty * #(v) with #(v) <= limit, and ways to solve it.

    Column i of it is column ``columns[i]`` of the original, whose weight is ``units[i] * v[i]``.
    """

    A: Floats
    b: Floats
    limit: int
    penalty: float
    largest_eigenvalue: float
    columns: NDArray[np.intp]
    units: Floats

    def value(self, fit: _Fit) -> float:
        return self.penalty * len(fit.support) - fit.explained

    def fit(self, support: ArrayLike, capacity: int | None = None, least: float = 0.0) -> _Fit:
        """Fit the independent ones among the columns of `support`, from scratch."""
        fit = _Fit(self.A, self.b, self.limit if capacity is None else capacity)
        left = np.sort(np.asarray(support, dtype=np.intp))
        least = max(least, _DEPENDENT)
        if fit.take_all(left, least):
            return fit
        while left.size:
            at = int(np.argmax(fit.distance[left]))  # the most independent one: few lost digits
            if fit.can_move(None, int(left[at]), least):
                fit.add(int(left[at]))
            left = np.delete(left, at)
        return fit

    def best(self) -> _Fit:
        """Return the best fit from several starts; no single move improves it."""
        forward = self.forward()
        if self.penalty == 0 and self.limit == len(self.b):
            return self.descend(forward)  # least squares: other starts end in the same
        starts = [_Fit(self.A, self.b, 0), forward, self.backward()]
        fits = [self.descend(self.fit(self.threshold(start))) for start in starts]
        return self.shake(min(fits, key=self.value))

    def forward(self) -> _Fit:
        """Add the column that explains most, again and again; return the best on the way."""
        fit = _Fit(self.A, self.b, self.limit)
        best, best_value = 0, 0.0
        # Two columns may pay together where neither does alone, so it goes on for a while.
        while len(fit.support) < min(self.limit, 2 * best + 10):
            column, _ = _best_addition(fit, fit.add_gains(), _IMPROVEMENT * fit.explained)
            if column is None:
                break
            fit.add(column)
            if (value := self.value(fit)) < best_value:
                best, best_value = len(fit.support), value
        return fit if best == len(fit.support) else self.fit(fit.support[:best])

    def backward(self) -> _Fit:
        """Drop from all columns the one that is missed least; return the best on the way."""
        # Near dependence, no digit of the inverse would survive so many updates.
        fit = self.fit(np.arange(len(self.b)), capacity=len(self.b), least=1e-6)
        best, best_value = list[int](), 0.0
        while fit.support:
            if len(fit.support) <= self.limit and (value := self.value(fit)) < best_value:
                best, best_value = list(fit.support), value
            fit.drop(int(np.argmin(fit.drop_costs())))
        return self.fit(best)

    def threshold(self, start: _Fit) -> NDArray[np.intp]:
        """Return the support that iterative hard thresholding comes to from `start`.

        Each step minimises a bound on the objective that is separable and touches it at `v`, so
        that the objective never rises.
        """
        v = np.zeros(len(self.b))
        v[start.support] = start.weights
        cut = np.sqrt(self.penalty / self.largest_eigenvalue)
        kept = np.flatnonzero(v)
        unchanged = 0
        for _ in range(500):
            u = v - (self.A @ v - self.b) / self.largest_eigenvalue
            before, kept = kept, np.flatnonzero(np.abs(u) > cut)
            if kept.size > self.limit:
                order = np.argsort(-np.abs(u[kept]), kind="stable")
                kept = np.sort(kept[order[: self.limit]])
            v = np.zeros(len(self.b))
            v[kept] = u[kept]
            # Weights need not converge: only the support goes on from here.
            unchanged = unchanged + 1 if np.array_equal(before, kept) else 0
            if unchanged == 20:
                break
        return kept

    def descend(self, fit: _Fit) -> _Fit:
        """Take the best move as long as there is one that improves."""
        return self._descend(fit)[0]

    def _descend(self, fit: _Fit, banned: int = -1) -> tuple[_Fit, float]:
        """Descend with moves that do not add column `banned`; return also the work it took."""
        work = 0.0
        value = self.value(fit)
        checked = fit.copy()
        moves = 0
        while True:
            work += (len(fit.support) + 1) * len(self.b)
            move = self._best_move(fit, banned)
            if move is not None:
                _make_move(fit, move)
                moves += 1
            if moves == _MOVES_PER_FIT or (move is None and moves):
                # What looked like progress may have been lost digits: see what is really there.
                work += 10 * (len(fit.support) + 1) * len(self.b)
                fit = self.fit(fit.support)
                if self.value(fit) >= value - _IMPROVEMENT / 10 * fit.explained:
                    return checked, work
                value, checked, moves = self.value(fit), fit.copy(), 0
            elif move is None:
                return fit, work

    def _best_move(self, fit: _Fit, banned: int) -> tuple[int | None, int | None] | None:
        """Return which position to drop and which column to add, or None if nothing improves."""
        least = _IMPROVEMENT * (fit.explained + self.penalty * len(fit.support))
        position, column = None, None
        drop = add = 0.0
        if fit.support:
            costs = fit.drop_costs()
            position = int(np.argmin(costs))
            drop = self.penalty - costs[position]
        if len(fit.support) < self.limit:
            gains = fit.add_gains() - self.penalty
            if banned >= 0:
                gains[banned] = -inf
            column, add = _best_addition(fit, gains, least)
        if max(drop, add) > least:
            return (position, None) if drop >= add else (None, column)
        # Swaps cost most to look at, so they come last.
        outside = np.ones(len(self.b), dtype=bool)
        outside[fit.support] = False
        if banned >= 0:
            outside[banned] = False
        columns = np.flatnonzero(outside)
        if not fit.support or not columns.size:
            return None
        swaps = fit.swap_gains(columns)
        for _ in range(_SWAPS_TRIED):
            position, at = divmod(int(np.argmax(swaps)), columns.size)
            if swaps[position, at] <= least:
                break
            if fit.can_move(position, int(columns[at])):
                return position, int(columns[at])
            swaps[position, at] = -inf
        return None

    def shake(self, fit: _Fit) -> _Fit:
        """Take out one member, descend without it, let it back in: until that helps no more."""
        work = 0.0
        better = True
        while better:
            better = False
            for position in np.argsort(fit.drop_costs(), kind="stable"):
                if work > _SHAKING_WORK:
                    return fit
                other = fit.copy()
                other.drop(int(position))
                other, first = self._descend(other, fit.support[position])
                other, second = self._descend(other)
                work += first + second
                if self.value(other) < self.value(fit) - _IMPROVEMENT * fit.explained:
                    fit, better = other, True
                    break
        return fit


def _best_addition(fit: _Fit, gains: Floats, least: float) -> tuple[int | None, float]:
    """Return the column with the largest gain, and that, if it is more than `least`."""
    while True:
        column = int(np.argmax(gains))
        if gains[column] <= least:
            return None, 0.0
        if fit.can_move(None, column):
            return column, float(gains[column])
        gains[column] = -inf


def _make_move(fit: _Fit, move: tuple[int | None, int | None]) -> None:
    position, column = move
    if position is not None:
        fit.drop(position)
    if column is not None:
        fit.add(column)


class _ExactProblem:
    """The scaled problem once more, as exact solvers like it.

    With binaries z_i that say what is selected, and a diagonal D such that A - D = R'R is still
    positive semidefinite, it is

        min |Rv|^2 - 2 b'v + sum of D_i s_i + penalty * sum of z_i
        with sum of z_i <= limit, v_i^2 <= s_i z_i, lower_i z_i <= v_i <= upper_i z_i.

    Without the cones v_i^2 <= s_i z_i, which charge a small z_i with a large s_i, the relaxation to
    fractional z hardly knows that only few columns may be selected: a search over 15 columns took
    689 nodes without and 39 with them. The bounds on v are not guessed: whatever is as good as the
    heuristic's solution lies in an ellipsoid around the least-squares solution, and they enclose
    that. For a column that others nearly make up, the ellipsoid is so long that a solver's
    tolerance on z_i, times the bound, would let v_i through. Such columns have no bounds and no
    cone; a special ordered set or an indicator says that v_i or 1 - z_i is 0.
    """

    def __init__(self, search: _Search, fit: _Fit) -> None:
        A, b, p = search.A, search.b, len(search.b)
        eigenvalues, vectors = np.linalg.eigh(A) if p else (np.ones(0), np.eye(0))
        largest = search.largest_eigenvalue
        known = eigenvalues > _DEPENDENT * largest
        projection = vectors[:, known].T @ b
        self.scale = float(projection @ (projection / eigenvalues[known]))  # all that b explains
        self.value = search.value(fit)
        self.search = search
        # At best, one column explains everything; or nothing is selected.
        self.bound = min(0.0, search.penalty - self.scale)
        self.is_trivial = self.value <= self.bound + 1e-9 * self.scale
        if self.is_trivial:
            return

        # From here in units in which all columns together explain 1.
        self.p, self.limit, self.penalty = p, search.limit, search.penalty / self.scale
        self.b = vectors[:, known] @ projection / np.sqrt(self.scale)
        self.start = np.zeros(p)
        self.start[fit.support] = fit.weights / np.sqrt(self.scale)

        inverse = (vectors[:, known] / eigenvalues[known]) @ vectors[:, known].T
        centre = inverse @ self.b
        room = max(self.value / self.scale + 1 - self.penalty, 0.0) * (1 + 1e-6) + 1e-9
        self.lower, self.upper = _interval(centre, np.sqrt(room * np.diag(inverse)))
        independent = np.linalg.norm(vectors[:, ~known], axis=1) < 1e-6
        self.bounded = independent & (np.maximum(self.upper, -self.lower) <= _LARGEST_BOUND)

        # Each D_i on its own could be the column's squared distance to all others, which is
        # 1 / inverse_ii; all together, that times the largest factor that keeps A - D >= 0.
        D = np.where(self.bounded, 1 / np.diag(inverse), 0.0)
        if D.any():
            root = np.sqrt(D)
            D *= (1 - 1e-9) / np.linalg.eigvalsh(inverse * root * root[:, None])[-1]
        self.D = np.where(D > 1e-6, D, 0.0)
        left, vectors = np.linalg.eigh(A - np.diag(self.D))
        known = left > _DEPENDENT * largest
        self.R = (vectors[:, known] * np.sqrt(left[known])).T
        self.row_lower, self.row_upper = _interval(self.R @ centre, np.sqrt(room))

    def gap(self, fit: _Fit, bound: float) -> float:
        value = self.search.value(fit)
        distance = value - max(bound, self.bound)
        return max(0.0, distance) / max(abs(value), 1e-6 * self.scale, 1e-300)


def _interval(centre: Floats, radius: Floats | float) -> tuple[Floats, Floats]:
    """Return the ends of centre +- radius, stretched to hold 0: to select nothing is allowed."""
    return np.minimum(centre - radius, 0.0), np.maximum(centre + radius, 0.0)


def _solve_with_scip(
    pyscipopt: ModuleType, exact: _ExactProblem, time_limit: float
) -> tuple[str, float, NDArray[np.intp]]:
    model = pyscipopt.Model()
    model.hideOutput()
    model.setParam("limits/time", min(time_limit, 1e20))  # the most it takes
    model.setParam("numerics/feastol", 1e-7)  # smaller ones make its LP solver complain
    # Its heuristics rarely beat ours, from which it starts. Presolving replaces variables by
    # expressions, and where it does so in v * v <= s * z, SCIP no longer sees that this is convex
    # and takes v and s apart without end, even with two columns.
    off = pyscipopt.SCIP_PARAMSETTING.OFF
    model.setHeuristics(off)
    model.setPresolve(off)
    total = pyscipopt.quicksum
    start: list[tuple[Any, float]] = []

    def variable(at: float, **kwargs: Any) -> Any:
        start.append((result := model.addVar(**kwargs), float(at)))
        return result

    p, x = exact.p, exact.start
    z = [variable(x[i] != 0, vtype="B") for i in range(p)]
    v, terms = [], [exact.penalty * total(z)]
    for i in range(p):
        if exact.bounded[i]:
            v.append(variable(x[i], lb=exact.lower[i], ub=exact.upper[i]))
            model.addCons(v[i] <= exact.upper[i] * z[i])
            model.addCons(v[i] >= exact.lower[i] * z[i])
        else:
            v.append(variable(x[i], lb=None))
            left_out = variable(x[i] == 0, ub=1.0)
            model.addCons(left_out == 1 - z[i])
            model.addConsSOS1([v[i], left_out])
        if exact.D[i] > 0:
            square = variable(x[i] ** 2)
            model.addCons(v[i] * v[i] <= square * z[i])
            terms.append(exact.D[i] * square)
    if exact.limit < p:
        model.addCons(total(z) <= exact.limit)
    # One square of each row of R, not of each pair of columns, shows that the sum is convex.
    rows = []
    for row, lower, upper in zip(exact.R, exact.row_lower, exact.row_upper, strict=True):
        rows.append(variable(row @ x, lb=lower, ub=upper))
        model.addCons(rows[-1] == total(float(row[i]) * v[i] for i in range(p)))
    if rows:
        square = variable(float(np.sum((exact.R @ x) ** 2)))
        model.addCons(total(row * row for row in rows) <= square)
        terms.append(square)
    model.setObjective(total(terms) - 2 * total(float(exact.b[i]) * v[i] for i in range(p)))

    solution = model.createSol()
    for at, value in start:
        model.setSolVal(solution, at, value)
    model.addSol(solution)
    model.optimize()

    status = model.getStatus()
    if status == "userinterrupt":
        raise KeyboardInterrupt
    if status not in ("optimal", "timelimit"):
        raise RuntimeError(f'SCIP gave up with status "{status}". Try solver="heuristic".')
    support = np.flatnonzero(x)
    if model.getNSols():
        found = model.getBestSol()
        support = np.flatnonzero([model.getSolVal(found, at) > 0.5 for at in z])
    bound = float(model.getDualbound()) * exact.scale
    return "optimal" if status == "optimal" else "time limit", bound, support


def _solve_with_gurobi(
    gurobipy: ModuleType, exact: _ExactProblem, time_limit: float
) -> tuple[str, float, NDArray[np.intp]]:
    GRB = gurobipy.GRB
    p, x = exact.p, exact.start
    quiet = {"OutputFlag": 0}
    try:
        with gurobipy.Env(params=quiet) as env, gurobipy.Model(env=env) as model:
            model.setParam("TimeLimit", time_limit)
            model.setParam("MIPGap", 0.0)
            model.setParam("FeasibilityTol", 1e-8)
            model.setParam("IntFeasTol", 1e-8)
            z = model.addMVar(p, vtype=GRB.BINARY)
            v = model.addMVar(
                p,
                lb=np.where(exact.bounded, exact.lower, -GRB.INFINITY),
                ub=np.where(exact.bounded, exact.upper, GRB.INFINITY),
            )
            z.Start, v.Start = (x != 0).astype(np.float64), x
            model.addConstr(z.sum() <= exact.limit)
            objective = v @ (exact.R.T @ exact.R) @ v - 2 * (exact.b @ v) + exact.penalty * z.sum()
            for i in range(p):
                if exact.bounded[i]:
                    model.addConstr(v[i] <= float(exact.upper[i]) * z[i])
                    model.addConstr(v[i] >= float(exact.lower[i]) * z[i])
                else:
                    model.addGenConstrIndicator(z[i].item(), False, v[i].item(), GRB.EQUAL, 0.0)
                if exact.D[i] > 0:
                    square = model.addVar()
                    square.Start = float(x[i] ** 2)
                    model.addConstr(v[i].item() * v[i].item() <= square * z[i].item())
                    objective += float(exact.D[i]) * square
            model.setObjective(objective, GRB.MINIMIZE)
            model.optimize()
            status = model.Status
            bound = float(model.ObjBound) * exact.scale
            support = np.flatnonzero(z.X > 0.5 if model.SolCount else x)
    except gurobipy.GurobiError as error:
        raise RuntimeError(
            f'Gurobi could not solve this: {error}. solver="scip" needs no licence.'
        ) from error
    if status == GRB.INTERRUPTED:
        raise KeyboardInterrupt
    if status not in (GRB.OPTIMAL, GRB.TIME_LIMIT):
        raise RuntimeError(f'Gurobi gave up with status {status}. Try solver="heuristic".')
    return "optimal" if status == GRB.OPTIMAL else "time limit", bound, support
