"""prune() and prune_path(): a fitted model in, one pruned model or a path of them out."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from forestprune.exceptions import OptionError, named
from forestprune.options import Options, require_count
from forestprune.select.budget import Budget
from forestprune.select.choose import Wanted, choose, open_model
from forestprune.select.path import PruningPath
from forestprune.select.pruned import PrunedForest
from forestprune.select.routed import HeldOut, RoutedRows, checked_alphas
from forestprune.select.solver import Solver
from forestprune.select.validation import validate


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

    Say how small the model is to be, give validation rows, and leave the rest alone. The options
    that matter:

    - `max_nodes`, `max_trees`, `max_bytes`: a budget; the best model within it is taken.
    - `tolerance`: how much R squared may fall on validation rows; the smallest such model is taken.
    - `X_val`, `y_val`: validation rows, which the model was not trained on.
    - `rule`: "subtree" keeps any subtree that contains the root; "oblivious", the default for
      symmetric models of CatBoost, any levels of each tree; "layer", the paper's rule, cuts each
      tree at a depth.
    - `refit`, `shrinkage`: whether leaf values are refitted, which is the default but for layers,
      and how strongly they are shrunk towards the original ones.
    - `n_jobs`: threads.

    What is minimised, over the part of each tree that is kept and its leaf values, is::

        (1 / m) * || y - prediction ||^2 / var(y)  +  (alpha / K) * cost of what is kept
        + shrinkage * sum over leaves of (value - original value)^2 / (m * var(y))

    where m is the number of rows and K the cost of the whole forest, so that neither alpha nor the
    error has a unit. The last term is there if leaf values are refitted.

    Parameters
    ----------
    model : fitted estimator, Pipeline that ends in one, Forest, or path of a model file
        It is not changed. Files of joblib and pickle can run code, and are refused: load the model
        yourself, or see `trust` of :meth:`Forest.from_file`.
    X : array-like of shape (m, n_features)
        Rows to prune with: the training rows of the model, and further ones if you have them.
        Training it on fewer to have others to prune with does not pay.
    y : array-like of shape (m,), or (m, n_outputs), or None
        None takes the model's own predictions: for rows whose y is not known, and for models whose
        trees do not add up to y, such as those with a log link.
    alpha : float or None
        What keeping the whole forest costs, in units of var(y), in place of a budget. 1 if nothing
        else says how small.
    max_nodes, max_trees, max_bytes : int or None
        Budgets: the best model that has no more nodes (roots and leaves included), no more trees,
        no larger file. With ``polish="subset"``, max_trees is how many trees to pick.
    max_depth : int or None
        No tree may be deeper. Can be combined with all the others.
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
        Weights of the rows of `X`.
    n_alphas : int
        Points of the path from which a budget or tolerance picks.
    **options
        How to prune: `rule`, `refit`, `shrinkage`, `polish`, `weighting`, `max_iter`, `n_jobs`; and
        the paper's own: `joint`, `alpha2`, `local_search`, `solver`, `time_limit`, `random_state`.
        :class:`forestprune.Options` describes all of them.

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
    wanted = Wanted(
        alpha=alpha,
        budget=Budget(max_nodes=max_nodes, max_trees=max_trees, max_bytes=max_bytes),
        max_depth=max_depth,
        tolerance=tolerance,
        one_standard_error=one_standard_error,
        n_alphas=n_alphas,
    )
    held_out = HeldOut.of(X_val, y_val, sample_weight_val, labelled=y is not None)
    with np.errstate(under="ignore"):  # squares of next to nothing are nothing
        path, taken = choose(model, X, y, sample_weight, wanted, held_out, Options.of(options))
        return path[taken]


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
        down by equal factors: until the full model is reached, or, if leaf values or tree weights
        are refitted, down to a small fraction of the first.
    n_alphas : int
        How many points the path has, unless `alphas` are given.
    X_val, y_val, sample_weight_val
        Validation rows, for `PruningPath.validation` and `PruningPath.select`.
    max_depth : int or None
        No tree may be deeper: all are cut there before pruning begins.
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
        raise OptionError(
            "{max_trees} says how many trees {polish='subset'} picks at each point; for a budget, "
            "use path.select(max_trees=...)."
        )
    given = None if alphas is None else checked_alphas(alphas)
    held_out = HeldOut.of(X_val, y_val, sample_weight_val, labelled=y is not None)
    if how.shrinkage is not None and len(how.shrinkages) > 1:
        raise OptionError(
            f"A path has one shrinkage, got {named('shrinkage', repr(how.shrinkage))}. prune() and "
            "the estimators choose from several."
        )
    with np.errstate(under="ignore"):
        source, how = open_model(model, X, how, max_depth)
        rows = RoutedRows.of(source, X, y, sample_weight, how.n_jobs)
        del X
        solver = Solver(rows.problem(how.n_jobs), how, max_trees)
        points = tuple(solver.path(solver.grid(n_alphas) if given is None else given))
        del solver
        if held_out is None:
            return PruningPath(source, points)
        return PruningPath(source, points, validate(held_out.routed(source, how.n_jobs), points))
