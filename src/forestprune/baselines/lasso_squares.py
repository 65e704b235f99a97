"""LASSO over whole trees in squared error, from the trees' inner products."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from forestprune.baselines.setting import Setting
from forestprune.polishing.tree_equations import TreeEquations
from forestprune.rows.trees import first_leaves
from forestprune.select.routed import checked_alphas
from forestprune.system.threads import one_blas_thread

ROUNDING = 1e-12
"""A weight, an eigenvalue or a squared distance that is a smaller share of the largest is zero."""

FIRST_CHANGES = 30
"""How many of the first, small selections the default alphas include in any case."""

STEPS_PER_TREE = 20
"""How many trees may enter or leave on the path, per tree."""

DUALITY_GAP = 1e-10
"""How exact weights are: the share of the target's sum of squares that they may miss."""


def lasso_weights(
    setting: Setting,
    equations: TreeEquations,
    alphas: ArrayLike | None = None,
    n_alphas: int = 100,
    eps: float = 1e-4,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return alphas, falling, and for each of them a row with the weight of every whole tree.

    None is negative if the model has monotone constraints. Where trees average distributions over
    classes, weights are relative to those that they have, none is negative, and the model that they
    stand for is an average too, in which the shares of classes have what weight is left.

    By least-angle regression, which is exact and fast where coordinate descent crawls, because
    trees of a forest are much alike. Of trees that are identical it takes one, and where others
    are linearly dependent it may go wrong, so coordinate descent goes on from where it ends.
    """
    # Here, because importing it takes longer than importing all of this package.
    from sklearn.linear_model import lars_path_gram

    forest = setting.source.forest
    distributions = forest.averages_distributions
    positive = distributions or forest.monotone.size > 0
    kept, gram, moments = inner_products(setting, equations)
    if setting.is_constant or not moments.any() or (positive and not (moments > 0.0).any()):
        grid = np.zeros(1) if alphas is None else checked_alphas(alphas)
        return grid, np.zeros((grid.size, setting.sizes.size))
    distinct = _distinct(gram, opposites=not positive)
    kept, gram, moments = kept[distinct], gram[np.ix_(distinct, distinct)], moments[distinct]
    # The penalty is on shares of the average there, of which each tree had one of as many.
    unit = float(setting.sizes.size) if distributions else 1.0
    gram, moments = gram * unit**2, moments * unit
    with one_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        knots, _, at_knots = lars_path_gram(
            moments,
            gram,
            n_samples=1,
            method="lasso",
            positive=positive,
            max_iter=STEPS_PER_TREE * kept.size,
        )
        if distributions:
            knots, at_knots = _until_all_is_shared(knots, at_knots)
        if alphas is not None:
            grid = checked_alphas(alphas)
        else:
            lowest = max(eps * knots[0], knots[-1] if distributions else 0.0)
            early = knots[: FIRST_CHANGES + 1]
            between = np.sqrt(early[:-1] * early[1:])
            grid = np.geomspace(knots[0], lowest, n_alphas)
            grid = np.unique(np.concatenate([grid, between[between > grid[-1]]]))[::-1]
        starts = [np.interp(grid, knots[::-1], values[::-1]) for values in at_knots]
        # With all weight shared out, a lower penalty changes nothing any more.
        priced = np.maximum(grid, knots[-1]) if distributions else grid
        found = refined(gram, moments, priced, np.transpose(starts), positive=positive)
    # At the first knot no tree has entered yet, whatever rounding says.
    found[grid >= knots[0] * (1.0 - ROUNDING)] = 0.0
    # Trees that have entered and left keep a weight of rounding size.
    found[np.abs(found) <= ROUNDING * np.abs(found).max(axis=1, keepdims=True)] = 0.0
    if distributions:
        found *= unit / np.maximum(found.sum(axis=1, keepdims=True), 1.0)
    weights = np.zeros((grid.size, setting.sizes.size))
    weights[:, kept] = found
    return grid, weights


def inner_products(
    setting: Setting, equations: TreeEquations
) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
    """Return trees with splits, their inner products, and those with what they are to explain.

    Over the weight of all rows. What trees say is centred, for an intercept that is free; where
    they average distributions, by the shares of classes, from which a tree takes its weight.
    """
    everything = setting.selection(np.ones(setting.sizes.size, np.bool_))
    kept, gram, moments = equations.at(everything)
    gram, moments = gram / setting.total_weight, moments / setting.total_weight
    if setting.source.forest.averages_distributions:
        means = _means_beyond_shares(setting)[kept]
        gram = gram + means @ means.T
    return kept, gram, moments


def _means_beyond_shares(setting: Setting) -> NDArray[np.float64]:
    """Return what each tree of an average says on average beyond the shares of classes.

    Times its scale, and shape (n_trees, n_outputs).
    """
    forest, problem = setting.source.forest, setting.problem
    is_leaf = forest.left < 0
    first = first_leaves(forest.offsets)[:-1]
    shares = problem.loss.best_constant(problem.target, problem.sample_weight)
    beyond = (forest.value[is_leaf] - shares) * problem.node_weights[is_leaf, np.newaxis]
    sums: NDArray[np.float64] = np.add.reduceat(beyond, first, axis=0)
    return sums * forest.scale[:, np.newaxis] / setting.total_weight


def _until_all_is_shared(
    knots: NDArray[np.float64], at_knots: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a path up to where weights, which grow along it, sum to 1."""
    total = at_knots.sum(axis=0)
    beyond = int(np.argmax(total > 1.0))
    if total[beyond] <= 1.0:
        return knots, at_knots
    share = (1.0 - total[beyond - 1]) / (total[beyond] - total[beyond - 1])
    knots, at_knots = knots[: beyond + 1].copy(), at_knots[:, : beyond + 1].copy()
    knots[-1] = knots[-2] + share * (knots[-1] - knots[-2])
    at_knots[:, -1] = at_knots[:, -2] + share * (at_knots[:, -1] - at_knots[:, -2])
    return knots, at_knots


def _distinct(gram: NDArray[np.float64], *, opposites: bool) -> NDArray[np.intp]:
    """Return the columns that are not equal to an earlier one, or its opposite if these count.

    Two such columns enter at the same alpha. scikit-learn's least-angle regression then drops one
    of them but takes its next step as if it had not, and all that follows is wrong.
    """
    squares = np.diag(gram)
    products = np.abs(gram) if opposites else gram
    distances = squares + squares[:, np.newaxis] - 2.0 * products
    first_equal = (distances <= ROUNDING * squares).argmax(axis=1)
    return np.flatnonzero(first_equal == np.arange(squares.size))


def refined(
    gram: NDArray[np.float64],
    moments: NDArray[np.float64],
    alphas: NDArray[np.float64],
    starts: NDArray[np.float64],
    *,
    positive: bool,
) -> NDArray[np.float64]:
    """Return a row of weights for each alpha, by coordinate descent from `starts`.

    They minimise ``w' gram w / 2 - moments' w + alpha * sum of |w|``, over weights that are not
    negative if asked for. The Gram matrix must not be zero.
    """
    from sklearn.linear_model import lasso_path

    # A square root of the Gram matrix has the same inner products in fewer rows than X.
    squares, vectors = np.linalg.eigh(gram)
    known = squares > ROUNDING * squares.max()
    root = np.sqrt(squares[known])
    columns = np.asfortranarray(root[:, np.newaxis] * vectors[:, known].T)
    target = (vectors[:, known].T @ moments) / root
    found = np.empty_like(starts)
    options = {"tol": DUALITY_GAP, "positive": positive}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        # scikit-learn divides the squares by the number of rows.
        for row, alpha, start in zip(found, alphas / root.size, starts, strict=True):
            own = {"alphas": [alpha], "coef_init": start}
            row[:] = lasso_path(columns, target, **own, **options)[1].T
    return found
