"""prune() and prune_path(): the whole pipeline in a page."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from forestprune.exceptions import warn_caller
from forestprune.opening import HeldOut, Opened, checked_alphas, validated
from forestprune.options import Options, require_count, require_number
from forestprune.path import Budget, PruningPath, check_quality
from forestprune.problem import cut_weighting
from forestprune.progress import track
from forestprune.pruned import PrunedForest
from forestprune.solver import Point, Solver
from forestprune.source import Source
from forestprune.subset_exact import check_solver

HALVINGS = 8
"""How often the gap between the last alpha within a budget and the next is halved."""


def prune(
    model: Any,
    X: Any,
    y: ArrayLike | None = None,
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
    sample_weight_val: ArrayLike | None = None,
    n_alphas: int = 100,
    **options: Any,
) -> PrunedForest:
    """Prune a fitted tree ensemble with respect to the error of the whole ensemble.

    Minimises, over the part of each tree that is kept and the values of its leaves,

        (1 / m) * || y - prediction ||^2 / var(y)  +  (alpha / K) * cost of what is kept
        + shrinkage * sum over leaves of (value - original value)^2 / (m * var(y))

    where K is the cost of everything, so that neither alpha nor the error has a unit. The options
    `rule` and `refit` say which parts can be kept, and whether leaves get new values.

    Parameters
    ----------
    model : fitted estimator, Pipeline that ends in one, Forest, or path of a model file
        It is not changed. Files of joblib and pickle run code when they are loaded: see
        :meth:`Forest.from_file`.
    X : array-like of shape (m, n_features)
        Rows to prune with: those that the model was trained on, and further ones if you have them.
        Training it with fewer to have others to prune with does not pay.
    y : array-like of shape (m,), or (m, n_outputs), or None
        None takes what the model itself says of these rows: for rows whose y is not known, and for
        models whose trees do not add up to y, such as those with a log link.
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
    X_val, y_val, sample_weight_val
        Validation rows, and their weights. With a budget, or nothing else, the best model is the
        best on these. Without `y`, `y_val` can be left out too.
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
    >>> small = fp.prune(model, wine.data, wine.target, max_nodes=500)
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
        "X_val": X_val,
    }
    given = [name for name, value in wanted.items() if value is not None]
    if alpha is not None and given:
        raise ValueError(
            f"alpha and {given[0]} exclude each other: give alpha to say what size costs, or "
            f"{given[0]} to have alpha chosen."
        )
    check_quality(tolerance, one_standard_error)
    held_out = HeldOut.of(X_val, y_val, sample_weight_val, labelled=y is not None)
    by_quality = tolerance is not None or one_standard_error
    if by_quality and held_out is None:
        raise ValueError(
            "tolerance and one_standard_error need validation rows, which the forest is not pruned "
            "with: give X_val and y_val."
        )
    require_number("alpha", 1.0 if alpha is None else alpha)
    several = how.shrinkage is not None and len(how.shrinkages) > 1
    if several and held_out is None:
        instead = "with alpha, give one number" if alpha is not None else "give X_val and y_val"
        raise ValueError(
            f"shrinkage={how.shrinkage!r} is to be chosen from, which needs validation rows: "
            f"{instead}."
        )
    opened, how = _open(model, X, y, sample_weight, how, max_depth)
    if not given:
        solver = Solver(opened.encoding, opened.target, how, picked)
        return PrunedForest.of(
            opened.source, solver.solve_alone(1.0 if alpha is None else float(alpha))
        )
    shrinkages = how.shrinkages if held_out is not None else how.shrinkages[:1]
    # What is polished to a few trees, or may keep a few only, can be smaller further on.
    enough = max_nodes if max_trees is None and how.polish != "subset" else None
    points: list[Point] = []
    for shrinkage in track(shrinkages, "choosing the shrinkage", len(shrinkages)):
        options_now = how if len(shrinkages) == 1 else replace(how, shrinkage=shrinkage)
        solver = Solver(opened.encoding, opened.target, options_now, picked)
        path = PruningPath(opened.source, tuple(solver.path(solver.grid(n_alphas), enough)))
        points += path.points
        if budget and not by_quality:
            path = validated(path, held_out, how.n_jobs)
            chosen = path.choose(budget, None, False, path.validation)
            points += _further_points(path, chosen, budget, solver)
        del solver  # what it takes must be gone before the next one begins
    points.sort(key=lambda point: -point.alpha)
    path = validated(PruningPath(opened.source, tuple(points)), held_out, how.n_jobs)
    small = path[path.choose(budget, tolerance, one_standard_error, path.validation)]
    if not small.n_trees:
        warn_caller(
            f"Only a constant keeps to {budget or 'what was asked'}: no tree is left. Allow more, "
            "or refit leaves (rule='subtree') or weights (polish='ridge'), so that fewer trees do.",
            UserWarning,
        )
    return small


def prune_path(
    model: Any,
    X: Any,
    y: ArrayLike | None = None,
    *,
    alphas: ArrayLike | None = None,
    n_alphas: int = 100,
    X_val: Any = None,
    y_val: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    sample_weight_val: ArrayLike | None = None,
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
        down by equal factors: until the full model is reached, or, with new values for leaves or
        weights, which the full model does not have, as far as is of use.
    n_alphas : int
    X_val, y_val, sample_weight_val
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
    >>> path = fp.prune_path(model, wine.data, wine.target, n_alphas=20)
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
    given = None if alphas is None else checked_alphas(alphas)
    held_out = HeldOut.of(X_val, y_val, sample_weight_val, labelled=y is not None)
    if how.shrinkage is not None and len(how.shrinkages) > 1:
        raise ValueError(
            f"A path has one shrinkage, got {how.shrinkage!r}. prune() and the estimators choose "
            "from several."
        )
    opened, how = _open(model, X, y, sample_weight, how, max_depth)
    solver = Solver(opened.encoding, opened.target, how, max_trees)
    grid = solver.grid(n_alphas) if given is None else given
    return validated(PruningPath(opened.source, tuple(solver.path(grid))), held_out, how.n_jobs)


def _open(
    model: Any,
    X: Any,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
    options: Options,
    max_depth: int | None,
) -> tuple[Opened, Options]:
    """Open the model, and fit the options to what is left of its trees."""
    require_count("max_depth", max_depth, 1)
    if options.polish == "subset":
        check_solver(options.solver)
    source = Source.of(model)
    if max_depth is not None:
        options = replace(
            options, weighting=cut_weighting(source.forest, options.weighting, max_depth)
        )
    return Opened.of(source, X, y, sample_weight, options.n_jobs, max_depth), options


def _further_points(path: PruningPath, chosen: int, budget: Budget, solver: Solver) -> list[Point]:
    """Return points beside the path with which a budget is used up better.

    If trees are counted, those of the chosen point may keep more of themselves, whatever the others
    would do. And between the chosen point and the next, if that is too large, there may be others
    that are not; coming from the larger one, others again.
    """
    more: list[Point] = []
    if budget.max_trees is not None:
        more += solver.deepen(path.points[chosen], path.alphas[chosen + 1 :])
    if chosen + 1 == len(path) or budget.allows(path[chosen + 1]):
        return more
    within, beyond = path.points[chosen], path.points[chosen + 1]
    for _ in track(range(HALVINGS), "refining", HALVINGS):
        solver.go_to(within)
        point = solver.solve(float(np.sqrt(within.alpha * beyond.alpha)))
        more.append(point)
        if budget.allows(PrunedForest.of(path.source, point)):
            within = point
        else:
            beyond = point
    solver.go_to(beyond)
    for factor in track(np.geomspace(1.0, 2.0, HALVINGS + 1)[1:], "refining", HALVINGS):
        point = solver.solve(factor * beyond.alpha)
        more.append(point)
        if budget.allows(PrunedForest.of(path.source, point)):
            break
    return more
