"""prune() and prune_path(): a fitted model in, one pruned model or a path of them out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from forestprune.blocks.given import blocks_of
from forestprune.exceptions import OptionError, named, warn_caller
from forestprune.options import Format, Options, require_count, require_heuristic, require_number
from forestprune.select.all_rows import RowsByBlock
from forestprune.select.budget import Budget
from forestprune.select.by_sample import PATH_ROWS, BySample, require_suited
from forestprune.select.certify import BY_SAMPLE, certified, without_bound
from forestprune.select.choose import Wanted, open_model, solvers, whole_paths
from forestprune.select.leaf_polish import LeafPolish
from forestprune.select.path import PruningPath
from forestprune.select.pruned import PrunedForest
from forestprune.select.request import choose
from forestprune.select.resplit import choose_polished, with_new_splits
from forestprune.select.resplit_by_block import NewSplits
from forestprune.select.routed import HeldOut, RoutedRows, checked_alphas
from forestprune.select.scoring import Scoring, check_scoring
from forestprune.select.solver import everything
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
    format: Format | None = None,  # noqa: A002
    tolerance: float | None = None,
    confidence: float | None = None,
    one_standard_error: bool = False,
    X_val: Any = None,
    y_val: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    sample_weight_val: ArrayLike | None = None,
    n_alphas: int = 100,
    share_thresholds: float | None = None,
    **options: Any,
) -> PrunedForest:
    """Prune a fitted tree ensemble with respect to the error of the whole ensemble.

    Say how small the model is to be, give validation rows, and leave the rest alone. The options
    that matter:

    - `max_nodes`, `max_trees`, `max_bytes`: a budget; the best model within it is taken.
    - `tolerance`: how much the score may fall on validation rows; the smallest such model is taken.
    - `X_val`, `y_val`: validation rows, which the model was not trained on.
    - `rule`: "subtree" keeps any subtree that contains the root; "oblivious", the default for
      symmetric models of CatBoost, any levels of each tree; "layer", the paper's rule, cuts each
      tree at a depth.
    - `refit`, `shrinkage`: whether leaf values are refitted, which is the default but for layers,
      and how strongly they are shrunk towards the original ones.
    - `certify`: whether to bound how far from the least objective the model can be at most.
    - `n_jobs`: threads.

    What is minimised, over the part of each tree that is kept and its leaf values, is::

        loss(y, prediction) / loss of the best constant  +  (alpha / K) * cost of what is kept
        + shrinkage * sum over leaves of (value - original value)^2 / (2 loss of the best constant)

    where the loss, summed over rows, is that which the model was trained for (half the squared
    error, log-loss, Poisson ...) and K the cost of the whole forest, so that neither alpha nor the
    loss has a unit. The last term is there if leaf values are refitted; for other losses than
    squared error it is times their mean curvature, so that shrinkage counts rows.

    Parameters
    ----------
    model : fitted estimator, Pipeline that ends in one, Forest, or path of a model file
        It is not changed. Files of joblib and pickle can run code, and are refused: load the model
        yourself, or see `trust` of :meth:`Forest.from_file`.
    X : array-like of shape (m, n_features)
        Rows to prune with: the training rows of the model, and further ones if you have them.
        Training it on fewer to have others to prune with does not pay. They need not fit into
        memory: also what :func:`open_rows` opens, anything that yields batches (X, y) or
        (X, y, weights) as often as it is asked to, or a dask DataFrame or Array.
    y : array-like of shape (m,), or (m, n_outputs), or None
        Numbers, or labels of a classifier. None takes the model's own predictions: for rows whose y
        is not known, and for models whose loss is not known, such as rankers.
    alpha : float or None
        What keeping the whole forest costs, in units of the loss of the best constant, in place of
        a budget. 1 if nothing else says how small. The model is the one that a path has at this
        alpha.
    max_nodes, max_trees, max_bytes : int or None
        Budgets: the best model that has no more nodes (roots and leaves included), no more trees,
        no larger file. With ``polish="subset"``, max_trees is how many trees to pick.
    format : str or None
        The ending of the file that `max_bytes` counts: "json", "ubj" (XGBoost), "txt" (LightGBM),
        "cbm", "json" (CatBoost), "skops" (scikit-learn), "joblib", "pkl" (any), "npz" (a Forest).
        Or what the model is deployed as: "onnx"; "c", :meth:`PrunedForest.to_c` on a
        microcontroller, "c-float32", "c-int16" and "c-int8" (single precision, the latter with
        leaves of 16 or 8 bits). None takes that of the file which `model` names, else joblib.
    max_depth : int or None
        No tree may be deeper. Can be combined with all the others.
    tolerance : float or None
        The smallest model whose score on validation rows is at most this much below that of the
        full model: R squared, D squared for other losses, or what `scoring` says. On other rows a
        little more than that is usually lost.
    confidence : float or None
        How sure validation rows must make that `tolerance` is kept to: with 0.95, the loss plus
        1.64 of its standard errors must be within it. None takes the loss as measured.
    one_standard_error : bool
        The smallest model that is at most one standard error worse than the best, on validation
        rows.
    X_val, y_val, sample_weight_val
        Validation rows, and their weights. With a budget, or nothing else, the best model is the
        best on these. Without `y`, `y_val` can be left out too. Of rows by the block 100,000 are
        drawn.
    sample_weight : array-like of shape (m,), or None
        Weights of the rows of `X`: 2 counts as a row that is there twice. Weights that add up to 1
        say that there is hardly a row to refit leaves by: multiply them by the number of rows.
    n_alphas : int
        How fine the path is from which a budget or tolerance picks: see :func:`prune_path`.
    share_thresholds : float or None
        By how much the score may fall, on validation rows or else those of `X`, for close
        thresholds of the model that was chosen to become one, which makes its program in C
        smaller: see :meth:`PrunedForest.share_thresholds`. None leaves all thresholds alone.
    **options
        How to prune: `rule`, `refit`, `shrinkage`, `polish`, `scoring`, `weighting`, `certify`,
        `max_iter`, `n_jobs`; and the paper's own: `joint`, `alpha2`, `local_search`, `solver`,
        `time_limit`, `random_state`.
        :class:`forestprune.Options` describes all of them.

    Returns
    -------
    PrunedForest
        ``to_native()`` gives a model of the class of `model`, `validation` says how it does on the
        validation rows, `path` has all candidates that it was chosen from.

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
        format=format,
        tolerance=tolerance,
        confidence=confidence,
        one_standard_error=one_standard_error,
        n_alphas=n_alphas,
    )
    checked_by: tuple[Any, Any, Any] | None = None
    if share_thresholds is not None:  # else X may be gone before the end
        own, other = (X, y, sample_weight), (X_val, y_val, sample_weight_val)
        checked_by = own if X_val is None else other
        _check_sharing(share_thresholds, *checked_by)
    blocks = blocks_of(X, y, sample_weight)
    labelled = y is not None if blocks is None else blocks.labelled
    held_out = HeldOut.of(X_val, y_val, sample_weight_val, labelled=labelled)
    if X_val is X and labelled and wanted.by_quality:
        warn_caller(
            "X_val are the rows to prune with. A model that was trained on them looks far better "
            "on them than it is, and what may be lost is measured against that: give rows that it "
            "was not trained on.",
            UserWarning,
        )
    with np.errstate(under="ignore"):  # squares of next to nothing are nothing
        if blocks is not None:
            X, y, sample_weight = blocks, None, None
        how = Options.of(options)
        path, taken = choose(model, X, y, sample_weight, wanted, held_out, how)
        small = path[taken]
        if share_thresholds is None or checked_by is None:
            return small
        X, y, weight = checked_by
        return small.share_thresholds(
            X, y, tolerance=share_thresholds, sample_weight=weight, n_jobs=how.n_jobs
        )


def _check_sharing(tolerance: float, X: Any, y: Any, sample_weight: Any) -> None:
    require_number("share_thresholds", tolerance)
    if blocks_of(X, y, sample_weight) is not None:
        raise OptionError(
            "{share_thresholds} is checked by rows that are all there, but these come by the "
            "block: give {X_val} and {y_val} as arrays."
        )


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
    format: Format | None = None,  # noqa: A002
    **options: Any,
) -> PruningPath:
    """Prune a fitted tree ensemble for many alphas, each from the solution before.

    Parameters
    ----------
    model, X, y, sample_weight, **options
        As for :func:`prune`.
    alphas : array-like or None
        Your own alphas. By default they fall by equal factors from the smallest at which nothing
        is kept, and, after `n_alphas` of them, by larger ones: until everything is kept, until what
        is left could lower the error by no more than 1 %, or until the path is past its best on
        validation rows or, without any, fits the rows of `X` as well as the full model. That model
        itself comes last.
    n_alphas : int
        How fine the path is: so many points for the first five decades of alpha.
    X_val, y_val, sample_weight_val
        Validation rows, for `PruningPath.validation` and `PruningPath.select`, and to end by. With
        them, `shrinkage` may be a list: then the path has the points of all of them, by falling
        alpha, and `select` takes the best of all. Otherwise there is one shrinkage, 100 by default.
    max_depth : int or None
        No tree may be deeper: all are cut there before pruning begins.
    max_trees : int or None
        How many trees ``polish="subset"`` picks at each point.
    format : str or None
        As for :func:`prune`: what `PruningPath.select` counts bytes in.

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
    require_heuristic(how)
    require_count("n_alphas", n_alphas, 1)
    require_count("max_trees", max_trees, 1)
    if max_trees is not None and how.polish != "subset":
        raise OptionError(
            "{max_trees} says how many trees {polish='subset'} picks at each point; for a budget, "
            "use path.select(max_trees=...)."
        )
    given = None if alphas is None else checked_alphas(alphas)
    blocks = blocks_of(X, y, sample_weight)
    labelled = y is not None if blocks is None else blocks.labelled
    held_out = HeldOut.of(X_val, y_val, sample_weight_val, labelled=labelled)
    _check_choice(how, held_out)
    with np.errstate(under="ignore"):
        source, how = open_model(model, X, how, max_depth, format)
        splits = how.polish == "split"
        plain = how.plain if splits else how
        several = plain.shrinkage is not None and len(plain.shrinkages) > 1
        if blocks is not None:
            require_suited(source, how)
            by_block = RowsByBlock(source, blocks, how.n_jobs)
            rows = by_block.sample(PATH_ROWS)
        else:
            by_block = None
            rows = RoutedRows.of(source, X, y, sample_weight, how.n_jobs, keep_matrix=splits)
        del X, blocks
        validation_rows = None
        if held_out is not None:
            validation_rows = held_out.routed(source, how.n_jobs, keep_matrix=splits)
        if by_block is not None and rows.encoding.n_rows < by_block.n_rows:
            unpolished = plain if plain.polish is None else plain.plain
            by_sample = BySample(rows, by_block, validation_rows, unpolished)
            paths = by_sample.paths(n_alphas, given, several=several)
            problem = None
            if how.polish == "leaf":
                paths = LeafPolish(by_sample, validation_rows, how).paths(paths, several=several)
        else:
            problem = rows.problem(plain.n_jobs)
            choosing = solvers(problem, plain, max_trees, choosing=several)
            paths = whole_paths(choosing, n_alphas, given, validation_rows)
        parts = []
        if validation_rows is not None:
            parts = [validate(validation_rows, path, how.scoring) for path in paths]
        path = PruningPath.joined(source, [point for each in paths for point in each], parts)
        if splits and by_block is not None:
            new_splits = NewSplits.of(by_block, how)
            settle = None if new_splits.has_all else new_splits.settle
            path = with_new_splits(path, new_splits.rows, validation_rows, how, settle)
        elif splits:
            path = with_new_splits(path, rows, validation_rows, how)
        if how.certify and problem is None:
            return without_bound(path, BY_SAMPLE)
        return certified(path, rows, how) if how.certify else path


def polish(
    model: Any,
    X: Any,
    y: ArrayLike | None = None,
    *,
    X_val: Any = None,
    y_val: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    sample_weight_val: ArrayLike | None = None,
    shrinkage: float | Sequence[float] | None = None,
    max_depth: int | None = None,
    scoring: Scoring = None,
    n_jobs: int | None = None,
) -> PrunedForest:
    """Choose the splits of a fitted tree ensemble anew, each tree given all others.

    For models that are small, however they became so: one that was trained with few trees, or what
    :func:`prune` returned, as `small.to_native()`. To prune and polish in one go, which finds
    better models, use ``prune(..., polish="split")``. The model has no more nodes afterwards, no
    more trees, and other splits: none need be one that its library chose.

    Parameters
    ----------
    model, X, y, sample_weight
        As for :func:`prune`: a model and its training rows. Of rows by the block, 100,000 choose
        the splits, and all the values in leaves.
    X_val, y_val, sample_weight_val
        Validation rows, which the model was not trained on. With them the best of several
        shrinkages is taken, or the model as it was, if new splits are not better by half of the
        standard error of the difference. Without, a quarter of the rows is put aside for that, and
        then all rows choose the splits; those put aside have been trained on, so that the model
        more often stays as it was.
    shrinkage : float, list of float or None
        How strongly the values of leaves are drawn to 0, in rows; several, to choose from by
        validation rows. None is the best of 30, 150, and 6 or 750. One number without validation
        rows leaves nothing to choose: the splits are new.
    max_depth : int or None
        Trees do not grow deeper than this; those that are deeper already may stay so.
    scoring, n_jobs
        See :class:`forestprune.Options`.

    Returns
    -------
    PrunedForest
        Its `path` has the model as it was, too.

    Examples
    --------
    >>> from sklearn.ensemble import GradientBoostingRegressor
    >>> import forestprune as fp
    >>> wine = fp.load_wine_quality()
    >>> model = GradientBoostingRegressor(n_estimators=20, random_state=0)
    >>> model = model.fit(wine.data, wine.target)
    >>> better = fp.polish(model, wine.data, wine.target)
    >>> better.n_nodes <= better.full.n_nodes
    True
    """
    how = Options(polish="split", shrinkage=shrinkage, scoring=scoring, n_jobs=n_jobs)
    require_count("max_depth", max_depth, 1)
    blocks = blocks_of(X, y, sample_weight)
    labelled = y is not None if blocks is None else blocks.labelled
    held_out = HeldOut.of(X_val, y_val, sample_weight_val, labelled=labelled)
    _check_choice(how, held_out)
    with np.errstate(under="ignore"):
        source, how = open_model(model, X, how)
        by_block = None
        if blocks is None:
            rows = RoutedRows.of(source, X, y, sample_weight, n_jobs, keep_matrix=True)
        else:
            by_block = NewSplits.of(RowsByBlock(source, blocks, n_jobs), how)
            rows = by_block.rows
        validation_rows = None
        if held_out is not None:
            validation_rows = held_out.routed(source, n_jobs, keep_matrix=True)
        problem = rows.problem(n_jobs)
        full = everything(problem)
        full = replace(full, loss=problem.unexplained_by(rows.full))
        settle = None
        if by_block is not None and not by_block.has_all:
            full, settle = by_block.measured(full), by_block.settle
        path, taken = choose_polished(rows, validation_rows, full, how, max_depth, settle)
        return path[taken]


def _check_choice(options: Options, held_out: HeldOut | None) -> None:
    """Refuse what validation rows are to choose by if there are none."""
    check_scoring(options.scoring)
    if options.scoring is not None and held_out is None:
        raise OptionError("{scoring} needs validation rows: give {X_val} and {y_val}.")
    several = options.shrinkage is not None and len(options.shrinkages) > 1
    if several and held_out is None:
        raise OptionError(
            f"Without validation rows there is one shrinkage, got "
            f"{named('shrinkage', repr(options.shrinkage))}: give {{X_val}} and {{y_val}}, or one "
            "number."
        )
