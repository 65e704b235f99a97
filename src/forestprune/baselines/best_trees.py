"""Best subset tree selection (section 4): the best weighted whole trees within a size limit."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestprune.baselines.best_average import BestAverage
from forestprune.baselines.lasso_squares import inner_products, lasso_weights
from forestprune.baselines.setting import Setting
from forestprune.exceptions import OptionError, UnsupportedModelError, named
from forestprune.options import require_count, require_number
from forestprune.polishing.ridge import tree_squares
from forestprune.polishing.subset.best_subset import best_subset
from forestprune.polishing.subset.exact import check_solver
from forestprune.polishing.tree_equations import TreeEquations
from forestprune.select.pruned import PrunedForest
from forestprune.system.threads import one_blas_thread


def best_trees(
    model: Any,
    X: Any,
    y: ArrayLike | None = None,
    *,
    max_nodes: int,
    alpha2: float = 0.01,
    solver: str = "scip",
    time_limit: float = 60.0,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> PrunedForest:
    """Select and weight whole trees with no more than `max_nodes` nodes in total.

    Minimises the squared error plus ``alpha2`` times the sum of the squared weights, each times
    the sum of squares of its tree, as a mixed-integer quadratic program.

    Where trees average distributions over classes, those are selected whose average is best by the
    squared error of probabilities, the Brier score; all count the same, so that leaves stay
    distributions. That is searched for without proof. Models of other losses, and those in which
    each tree adds to one output, are refused: their problem is no such program.

    Parameters
    ----------
    model, X, y, sample_weight, n_jobs
        As for :func:`forestprune.prune`.
    max_nodes : int
        How many nodes the trees may have in total, roots and leaves included. If no tree is that
        small, a constant is left.
    alpha2 : float
        0 for the paper's problem, which has no such penalty.
    solver : "scip", "gurobi" or "heuristic"
        SCIP needs ``pip install pyscipopt``, Gurobi ``pip install gurobipy`` and a licence. Both
        start from the best of what LASSO, thresholding and swaps find; "heuristic" stops there.
        Averages of distributions need "heuristic".
    time_limit : float
        Seconds for an exact solver.

    Returns
    -------
    PrunedForest
        Its `report` has the solver's status and the gap that it proved.

    Examples
    --------
    >>> from sklearn.ensemble import GradientBoostingRegressor
    >>> import forestprune as fp
    >>> wine = fp.load_wine_quality()
    >>> model = GradientBoostingRegressor(n_estimators=20, random_state=0)
    >>> model = model.fit(wine.data, wine.target)
    >>> small = fp.baselines.best_trees(
    ...     model, wine.data, wine.target, max_nodes=60, solver="heuristic"
    ... )
    >>> small.n_trees, small.report["status"]
    (4, 'heuristic')
    """
    require_count("max_nodes", max_nodes, 1)
    require_number("alpha2", alpha2)
    require_number("time_limit", time_limit)
    check_solver(solver)
    setting = Setting(model, X, y, sample_weight, n_jobs)
    setting.require_no_constraint()
    _require_squares(setting, solver)
    problem, sizes = setting.problem, setting.sizes
    equations = TreeEquations(problem)
    starts = _around_limit(lasso_weights(setting, equations)[1], sizes, max_nodes)
    if setting.source.forest.averages_distributions:
        return _best_average(setting, equations, starts, max_nodes, alpha2)
    selected = setting.selection((sizes <= max_nodes) & (not setting.is_constant))
    with one_blas_thread():
        kept, gram, moments = equations.at(selected)
        solution = best_subset(
            gram / problem.variation,
            moments / problem.variation,
            sizes=sizes[kept],
            max_size=max_nodes,
            ridge=alpha2 * tree_squares(problem)[kept] / problem.variation,
            solver=solver,
            time_limit=time_limit,
            starts=[np.flatnonzero(np.isin(kept, start)) for start in starts],
        )
        report = {name: getattr(solution, name) for name in ("solver", "status", "gap", "seconds")}
        fitted = equations.weighted(selected, solution.weights, report)
    point = setting.point(0.0, fitted.weights, fitted.intercept, report=report)
    return PrunedForest.of(setting.source, point)


def _require_squares(setting: Setting, solver: str) -> None:
    """Refuse models whose best trees are no quadratic program, and solvers not made for them."""
    forest = setting.source.forest
    other = "Use lasso(), which weights trees in the model's own loss, or global_refinement()."
    if not setting.problem.loss.quadratic:
        raise UnsupportedModelError(
            "The best trees are those of a mixed-integer quadratic program, which has squared "
            f"error, but this model has another loss. {other}"
        )
    if forest.tree_output.size:
        raise UnsupportedModelError(
            "The best trees are looked for among trees that add to all outputs; in this model each "
            f"adds to one of {forest.n_outputs} outputs. {other}"
        )
    if forest.averages_distributions and solver != "heuristic":
        raise OptionError(
            f"{named('solver', repr(solver))} gives trees weights of their own, but this model "
            "averages distributions over classes, and its trees must count the same. Use "
            "{solver='heuristic'}."
        )


def _best_average(
    setting: Setting,
    equations: TreeEquations,
    starts: list[NDArray[np.intp]],
    max_nodes: int,
    alpha2: float,
) -> PrunedForest:
    """Return the best average of some trees."""
    begun = time.perf_counter()
    kept, gram, moments = inner_products(setting, equations)
    squares = tree_squares(setting.problem)[kept] / setting.total_weight
    # An average of n trees weights them n_trees / n times as much as all together do.
    unit = float(setting.sizes.size)
    search = BestAverage(
        (gram + alpha2 * np.diag(squares)) * unit**2,
        moments * unit,
        setting.sizes[kept],
        0 if setting.is_constant else max_nodes,
    )
    chosen = kept[search.search([np.isin(kept, start) for start in starts])]
    trees = np.isin(np.arange(setting.sizes.size), chosen)
    seconds = time.perf_counter() - begun
    report = {"solver": "heuristic", "status": "heuristic", "gap": np.nan, "seconds": seconds}
    point = setting.average(0.0, setting.alike(trees), report)
    return PrunedForest.of(setting.source, point)


def _around_limit(
    weights: NDArray[np.float64], sizes: NDArray[np.int64], max_nodes: int
) -> list[NDArray[np.intp]]:
    """Return the last selection of LASSO within the limit, and the first beyond it."""
    total = np.where(weights != 0.0, sizes, 0).sum(axis=1)
    last, first = np.flatnonzero(total <= max_nodes)[-1:], np.flatnonzero(total > max_nodes)[:1]
    return [np.flatnonzero(weights[place]) for place in (*last, *first)]
