"""Best-subset selection with proof, by mixed-integer programming (sections 2.4 and 4)."""

import importlib
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestprune.polishing.subset.fit import DEPENDENT, Fit, Floats
from forestprune.polishing.subset.search import Search

LARGEST_BOUND = 1e3
"""On a weight, in lengths of the best fit: a solver's tolerance times more would not be small."""

EXACT = {
    "scip": ("pyscipopt", "pip install pyscipopt"),
    "gurobi": ("gurobipy", "pip install gurobipy"),
}


def check_solver(solver: str) -> None:
    """Raise an error if `solver` is an exact one that is not installed."""
    if solver in EXACT:
        import_solver(solver)


def import_solver(solver: str) -> ModuleType:
    """Return the module of an exact solver, or raise an error that says how to install it."""
    module, command = EXACT[solver]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f'solver="{solver}" needs {module}, which could not be imported ({error}). '
            f"Install it with: {command}"
        ) from error


class ExactProblem:
    """The scaled problem in the form that exact solvers handle best.

    With binaries z_i for what is selected, and a diagonal D such that A - D = R'R is still
    positive semidefinite, it is

        min |Rv|^2 - 2 b'v + sum of D_i s_i + penalty * sum of z_i
        with sum of sizes_i z_i <= limit, v_i^2 <= s_i z_i, lower_i z_i <= v_i <= upper_i z_i.

    The cones v_i^2 <= s_i z_i make a small z_i need a large s_i; without them the relaxation to
    fractional z hardly limits the number of columns: a search over 15 columns took 689 nodes
    without and 39 with them. The bounds on v enclose the ellipsoid around the least-squares
    solution in which everything lies that is as good as the heuristic's solution. For a column
    that is nearly a combination of others, the ellipsoid is so long that a solver's tolerance on
    z_i, times the bound, would let v_i through. Such columns have no bounds and no cone; a special
    ordered set (SOS-1, as in the paper) or an indicator makes v_i or 1 - z_i zero.
    """

    def __init__(self, search: Search, fit: Fit) -> None:
        A, b, p = search.A, search.b, len(search.b)
        eigenvalues, vectors = np.linalg.eigh(A) if p else (np.ones(0), np.eye(0))
        largest = search.largest_eigenvalue
        known = eigenvalues > DEPENDENT * largest
        projection = vectors[:, known].T @ b
        self.scale = float(projection @ (projection / eigenvalues[known]))  # all that b explains
        self.value = search.value(fit)
        self.search = search
        # At best one column explains everything, or nothing is selected.
        self.bound = min(0.0, search.penalty - self.scale)
        self.is_trivial = self.value <= self.bound + 1e-9 * self.scale
        if self.is_trivial:
            return

        # From here on in units in which all columns together explain 1.
        self.p, self.penalty = p, search.penalty / self.scale
        self.sizes, self.limit = [int(size) for size in search.sizes], search.limit
        self.b = vectors[:, known] @ projection / np.sqrt(self.scale)
        self.start = np.zeros(p)
        self.start[fit.support] = fit.weights / np.sqrt(self.scale)

        inverse = (vectors[:, known] / eigenvalues[known]) @ vectors[:, known].T
        centre = inverse @ self.b
        radius = max(self.value / self.scale + 1 - self.penalty, 0.0) * (1 + 1e-6) + 1e-9
        self.lower, self.upper = _interval(centre, np.sqrt(radius * np.diag(inverse)))
        independent = np.linalg.norm(vectors[:, ~known], axis=1) < 1e-6
        self.bounded = independent & (np.maximum(self.upper, -self.lower) <= LARGEST_BOUND)

        # A single D_i could be the column's squared distance to all others, 1 / inverse_ii; all
        # together, that times the largest factor that keeps A - D positive semidefinite.
        D = np.where(self.bounded, 1 / np.diag(inverse), 0.0)
        if D.any():
            root = np.sqrt(D)
            D *= (1 - 1e-9) / np.linalg.eigvalsh(inverse * root * root[:, None])[-1]
        self.D = np.where(D > 1e-6, D, 0.0)
        eigenvalues, vectors = np.linalg.eigh(A - np.diag(self.D))
        known = eigenvalues > DEPENDENT * largest
        self.R = (vectors[:, known] * np.sqrt(eigenvalues[known])).T
        self.row_lower, self.row_upper = _interval(self.R @ centre, np.sqrt(radius))

    def gap(self, fit: Fit, bound: float) -> float:
        """Return how far a fit may be from a proved bound, as a share of its value."""
        value = self.search.value(fit)
        distance = value - max(bound, self.bound)
        return max(0.0, distance) / max(abs(value), 1e-6 * self.scale, 1e-300)


def _interval(centre: Floats, radius: Floats | float) -> tuple[Floats, Floats]:
    """Return the ends of centre +- radius, extended to 0: a column may be left out."""
    return np.minimum(centre - radius, 0.0), np.maximum(centre + radius, 0.0)


def solve_exactly(
    solver: str, library: ModuleType, exact: ExactProblem, time_limit: float
) -> tuple[str, float, NDArray[np.intp]]:
    """Return the status, the bound that is proved, and the columns selected."""
    solve = _solve_with_scip if solver == "scip" else _solve_with_gurobi
    is_optimal, bound, support = solve(library, exact, time_limit)
    return "optimal" if is_optimal else "time limit", bound * exact.scale, support


def _solve_with_scip(
    pyscipopt: ModuleType, exact: ExactProblem, time_limit: float
) -> tuple[bool, float, NDArray[np.intp]]:
    model = pyscipopt.Model()
    model.hideOutput()
    model.setParam("limits/time", min(time_limit, 1e20))  # the most it takes
    model.setParam("numerics/feastol", 1e-7)  # smaller ones make its LP solver complain
    # Its heuristics rarely beat ours, from which it starts. Presolving replaces variables by
    # expressions, and where it does so in v * v <= s * z, SCIP no longer sees that this is convex
    # and branches on v and s without end, even with two columns.
    model.setHeuristics(pyscipopt.SCIP_PARAMSETTING.OFF)
    model.setPresolve(pyscipopt.SCIP_PARAMSETTING.OFF)
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
    if exact.limit < sum(exact.sizes):
        model.addCons(total(exact.sizes[i] * z[i] for i in range(p)) <= exact.limit)
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
    return status == "optimal", float(model.getDualbound()), support


def _solve_with_gurobi(
    gurobipy: ModuleType, exact: ExactProblem, time_limit: float
) -> tuple[bool, float, NDArray[np.intp]]:
    GRB = gurobipy.GRB
    p, x = exact.p, exact.start
    options = {"TimeLimit": time_limit, "MIPGap": 0.0, "FeasibilityTol": 1e-8, "IntFeasTol": 1e-8}
    try:
        with gurobipy.Env(params={"OutputFlag": 0}) as env, gurobipy.Model(env=env) as model:
            for name, value in options.items():
                model.setParam(name, value)
            z = model.addMVar(p, vtype=GRB.BINARY)
            v = model.addMVar(
                p,
                lb=np.where(exact.bounded, exact.lower, -GRB.INFINITY),
                ub=np.where(exact.bounded, exact.upper, GRB.INFINITY),
            )
            z.Start, v.Start = (x != 0).astype(np.float64), x
            model.addConstr(np.array(exact.sizes) @ z <= exact.limit)
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
            bound = float(model.ObjBound)
            support = np.flatnonzero(z.X > 0.5 if model.SolCount else x)
    except gurobipy.GurobiError as error:
        raise RuntimeError(
            f'Gurobi could not solve this: {error}. solver="scip" needs no licence.'
        ) from error
    if status == GRB.INTERRUPTED:
        raise KeyboardInterrupt
    if status not in (GRB.OPTIMAL, GRB.TIME_LIMIT):
        raise RuntimeError(f'Gurobi gave up with status {status}. Try solver="heuristic".')
    return status == GRB.OPTIMAL, bound, support
