"""prune() and prune_path(): the whole pipeline in a page."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestprune.encoding import encode
from forestprune.options import Options, require_count, require_number
from forestprune.path import Budget, PruningPath
from forestprune.progress import track
from forestprune.pruned import PrunedForest
from forestprune.solver import Solver
from forestprune.source import Source

HALVINGS = 8
"""How often the gap between the last alpha within a budget and the next is halved."""


def prune(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    alpha: float | None = None,
    max_nodes: int | None = None,
    max_trees: int | None = None,
    max_depth: int | None = None,
    max_bytes: int | None = None,
    tolerance: float | None = None,
    one_standard_error: bool = False,
    X_val: Any = None,
    y_val: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    n_alphas: int = 100,
    **options: Any,
) -> PrunedForest:
    """Prune a fitted tree ensemble with respect to the error of the whole ensemble.

    Minimises, over the depths at which trees are cut,

        (1 / m) * || y - prediction ||^2 / var(y)  +  (alpha / K) * cost of the layers kept

    where K is the cost of everything, so that neither alpha nor the error has a unit.

    Parameters
    ----------
    model : fitted estimator, Pipeline that ends in one, or Forest
        It is not changed.
    X : array-like of shape (m, n_features)
        Rows to prune with; best rows that the model was not trained on.
    y : array-like of shape (m,), or (m, n_outputs)
    alpha : float or None
        What keeping everything costs, in units of var(y). 1 if nothing else says how small.
    max_nodes, max_trees, max_bytes : int or None
        Budgets: the best model that has no more nodes (roots and leaves included), no more trees,
        no larger file. With ``polish="subset"``, max_trees is how many trees to pick.
    max_depth : int or None
        No tree may be deeper. Can be combined with all else.
    tolerance : float or None
        The smallest model whose R squared on validation rows is at most this much below that of
        the full model.
    one_standard_error : bool
        The smallest model that is at most one standard error worse than the best, on validation
        rows.
    X_val, y_val
        Validation rows. With a budget the best model is the best on these, if given.
    sample_weight : array-like of shape (m,), or None
    n_alphas : int
        Points of the path from which a budget or tolerance picks.
    **options
        How to prune: see :class:`forestprune.Options`.

    Returns
    -------
    PrunedForest
        ``to_native()`` gives a model of the class of `model`.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> import forestprune as fp
    >>> wine = fp.load_wine_quality()
    >>> model = RandomForestRegressor(20, random_state=0).fit(wine.data, wine.target)
    >>> small = fp.prune(model, wine.data, wine.target, max_nodes=500, polish="ridge")
    >>> small.n_nodes <= 500
    True
    >>> type(small.to_native()).__name__
    'RandomForestRegressor'
    """
    how = Options.of(options)
    require_count("n_alphas", n_alphas, 1)
    budget = Budget(max_nodes=max_nodes, max_trees=max_trees, max_bytes=max_bytes)
    picked = max_trees if how.polish == "subset" else None
    wanted = {
        "max_nodes": max_nodes,
        "max_trees": max_trees if picked is None else None,
        "max_bytes": max_bytes,
        "tolerance": tolerance,
        "one_standard_error": one_standard_error or None,
    }
    given = [name for name, value in wanted.items() if value is not None]
    if alpha is not None and given:
        raise ValueError(
            f"alpha and {given[0]} exclude each other: give alpha to say what size costs, or "
            f"{given[0]} to have alpha chosen."
        )
    source = _opened(model, max_depth)
    solver = _solver(source, X, y, sample_weight, how, picked)
    if not given:
        require_number("alpha", 1.0 if alpha is None else alpha)
        return PrunedForest.of(source, solver.solve_alone(1.0 if alpha is None else float(alpha)))
    path = _walk(source, solver, solver.grid(n_alphas), X_val, y_val)
    chosen = path.choose(budget, tolerance, one_standard_error, path.validation)
    if budget and tolerance is None and not one_standard_error:
        path = _refined(path, chosen, budget, solver, X_val, y_val)
        chosen = path.choose(budget, None, False, path.validation)
    small = path[chosen]
    if not small.n_trees:
        warnings.warn(
            f"Only a constant keeps to {budget or 'what was asked'}: no tree is left. Allow more, "
            "or use polish='ridge', with which fewer trees do.",
            UserWarning,
            stacklevel=2,
        )
    return small


def prune_path(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    alphas: ArrayLike | None = None,
    n_alphas: int = 100,
    X_val: Any = None,
    y_val: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    max_depth: int | None = None,
    max_trees: int | None = None,
    **options: Any,
) -> PruningPath:
    """Prune a fitted tree ensemble for many alphas, each from the solution before.

    Parameters
    ----------
    model, X, y, sample_weight, **options
        As for :func:`prune`.
    alphas : array-like or None
        Your own alphas. By default `n_alphas` of them, from the smallest at which nothing is kept
        down by equal factors, until the full model is reached.
    n_alphas : int
    X_val, y_val
        Validation rows, for `PruningPath.validation` and `PruningPath.select`.
    max_depth : int or None
        No tree may be deeper: all are cut there to begin with.
    max_trees : int or None
        How many trees ``polish="subset"`` picks at each point.

    Returns
    -------
    PruningPath

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> import forestprune as fp
    >>> wine = fp.load_wine_quality()
    >>> model = RandomForestRegressor(20, random_state=0).fit(wine.data, wine.target)
    >>> path = fp.prune_path(model, wine.data, wine.target, n_alphas=20, polish="ridge")
    >>> path.select(max_nodes=500).n_nodes <= 500
    True
    """
    how = Options.of(options)
    require_count("n_alphas", n_alphas, 1)
    require_count("max_trees", max_trees, 1)
    if max_trees is not None and how.polish != "subset":
        raise ValueError(
            "max_trees says how many trees polish='subset' picks at each point; for a budget, use "
            "path.select(max_trees=...)."
        )
    source = _opened(model, max_depth)
    solver = _solver(source, X, y, sample_weight, how, max_trees)
    grid = solver.grid(n_alphas) if alphas is None else _checked_alphas(alphas)
    return _walk(source, solver, grid, X_val, y_val)


def _opened(model: Any, max_depth: int | None) -> Source:
    require_count("max_depth", max_depth, 1)
    source = Source.of(model)
    if max_depth is None:
        return source
    return source.with_forest(source.forest.truncate(max_depth))


def _solver(
    source: Source,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    options: Options,
    max_trees: int | None,
) -> Solver:
    encoding = encode(
        source.forest, source.transform(X), sample_weight=sample_weight, n_jobs=options.n_jobs
    )
    return Solver(encoding, y, options, max_trees)


def _checked_alphas(alphas: ArrayLike) -> NDArray[np.float64]:
    given = np.asarray(alphas, dtype=np.float64)
    if given.ndim != 1 or not given.size or not np.isfinite(given).all() or (given < 0).any():
        raise ValueError(f"alphas must be a list of finite numbers, none negative; got {alphas!r}.")
    return np.unique(given)[::-1]


def _walk(
    source: Source, solver: Solver, alphas: NDArray[np.float64], X_val: Any, y_val: ArrayLike | None
) -> PruningPath:
    points = tuple(solver.path(alphas))
    return _validated(PruningPath(source, points), X_val, y_val, solver.options.n_jobs)


def _validated(
    path: PruningPath, X_val: Any, y_val: ArrayLike | None, n_jobs: int | None
) -> PruningPath:
    if X_val is None and y_val is None:
        return path
    if X_val is None or y_val is None:
        raise ValueError("X_val and y_val must be given together.")
    return replace(path, validation=path.validate(X_val, y_val, n_jobs=n_jobs))


def _refined(
    path: PruningPath,
    chosen: int,
    budget: Budget,
    solver: Solver,
    X_val: Any,
    y_val: ArrayLike | None,
) -> PruningPath:
    """Return the path with more alphas between the chosen point and the next, if that is too large.

    So that a budget is used up even where the path makes a leap.
    """
    if chosen + 1 == len(path) or budget.allows(path[chosen + 1]):
        return path
    points = list(path.points)
    within, beyond = points[chosen], points[chosen + 1]
    for _ in track(range(HALVINGS), "refining", HALVINGS):
        solver.go_to(within)
        point = solver.solve(float(np.sqrt(within.alpha * beyond.alpha)))
        points.append(point)
        if budget.allows(PrunedForest.of(path.source, point)):
            within = point
        else:
            beyond = point
    points.sort(key=lambda point: -point.alpha)
    return _validated(PruningPath(path.source, tuple(points)), X_val, y_val, solver.options.n_jobs)
