"""LASSO over whole trees (section 4): weights that are shrunk, most of them to zero."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from forestprune.baselines.setting import Setting
from forestprune.options import require_count, require_flag, require_number, require_share
from forestprune.polish.ridge import ridge_weights
from forestprune.polish.tree_equations import TreeEquations
from forestprune.select.path import PruningPath
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


def lasso(
    model: Any,
    X: Any,
    y: ArrayLike | None = None,
    *,
    alphas: ArrayLike | None = None,
    n_alphas: int = 100,
    eps: float = 1e-4,
    refit: bool = True,
    alpha2: float = 0.01,
    sample_weight: ArrayLike | None = None,
    X_val: Any = None,
    y_val: ArrayLike | None = None,
    sample_weight_val: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> PruningPath:
    """Weight whole trees, for falling penalties on the sum of the weights' absolute values.

    Minimises ``|| y - b - sum of beta_i f_i(x) ||^2 / (2 m) + alpha * sum of |beta_i|`` over the
    weights beta and the intercept b, which is not penalised; f_i is tree i times its scale.

    Parameters
    ----------
    model, X, y, sample_weight, X_val, y_val, sample_weight_val, n_jobs
        As for :func:`forestprune.prune`.
    alphas : array-like or None
        As for scikit-learn's ``lasso_path``. By default `n_alphas` of them, from the smallest at
        which no tree is left down by equal factors to `eps` times that; and one between each two
        at which the selection changes, as long as it is small.
    n_alphas, eps : int, float
        See `alphas`.
    refit : bool
        Whether the trees that are selected get new weights by a ridge regression with the penalty
        `alpha2`, as with ``polish="ridge"``: LASSO's own are too small.
    alpha2 : float

    Returns
    -------
    PruningPath

    Examples
    --------
    >>> from sklearn.ensemble import GradientBoostingRegressor
    >>> import forestprune as fp
    >>> wine = fp.load_wine_quality()
    >>> model = GradientBoostingRegressor(n_estimators=20, random_state=0)
    >>> path = fp.baselines.lasso(model.fit(wine.data, wine.target), wine.data, wine.target)
    >>> path.select(max_trees=5).n_trees <= 5
    True
    """
    require_count("n_alphas", n_alphas, 1)
    require_share("eps", eps)
    require_flag("refit", refit)
    require_number("alpha2", alpha2)
    held_out = {"X_val": X_val, "y_val": y_val, "sample_weight_val": sample_weight_val}
    setting = Setting(model, X, y, sample_weight, n_jobs, **held_out)
    setting.require_no_constraint()
    equations = TreeEquations(setting.problem)
    points = []
    for alpha, weights in zip(
        *lasso_weights(setting, equations, alphas, n_alphas, eps), strict=True
    ):
        selected = setting.selection(weights != 0.0)
        if refit:
            fitted = ridge_weights(equations, selected, alpha2)
        else:
            kept, _, _ = equations.at(selected)
            fitted = equations.weighted(selected, weights[kept], {})
        points.append(setting.point(float(alpha), fitted.weights, fitted.intercept))
    return setting.path(points)


def lasso_weights(
    setting: Setting,
    equations: TreeEquations,
    alphas: ArrayLike | None = None,
    n_alphas: int = 100,
    eps: float = 1e-4,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return alphas, falling, and for each of them a row with the weight of every whole tree.

    By least-angle regression, which is exact and fast where coordinate descent crawls, because
    trees of a forest are much alike. Of trees that are identical it takes one, and where others
    are linearly dependent it may go wrong, so coordinate descent goes on from where it ends.
    """
    # Here, because importing it takes longer than importing all of this package.
    from sklearn.linear_model import lars_path_gram

    everything = setting.selection(np.ones(setting.sizes.size, np.bool_))
    kept, gram, moments = equations.at(everything)
    if setting.is_constant or not moments.any():
        grid = np.zeros(1) if alphas is None else checked_alphas(alphas)
        return grid, np.zeros((grid.size, setting.sizes.size))
    distinct = _distinct(gram)
    kept, gram, moments = kept[distinct], gram[np.ix_(distinct, distinct)], moments[distinct]
    gram, moments = gram / setting.total_weight, moments / setting.total_weight
    with one_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        knots, _, at_knots = lars_path_gram(
            moments, gram, n_samples=1, method="lasso", max_iter=STEPS_PER_TREE * kept.size
        )
        if alphas is not None:
            grid = checked_alphas(alphas)
        else:
            early = knots[: FIRST_CHANGES + 1]
            between = np.sqrt(early[:-1] * early[1:])
            grid = np.geomspace(knots[0], eps * knots[0], n_alphas)
            grid = np.unique(np.concatenate([grid, between[between > grid[-1]]]))[::-1]
        starts = [np.interp(grid, knots[::-1], values[::-1]) for values in at_knots]
        found = _refined(gram, moments, grid, np.transpose(starts))
    # At the first knot no tree has entered yet, whatever rounding says.
    found[grid >= knots[0] * (1.0 - ROUNDING)] = 0.0
    # Trees that have entered and left keep a weight of rounding size.
    found[np.abs(found) <= ROUNDING * np.abs(found).max(axis=1, keepdims=True)] = 0.0
    weights = np.zeros((grid.size, setting.sizes.size))
    weights[:, kept] = found
    return grid, weights


def _distinct(gram: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the columns that are not equal to an earlier one, or to minus that.

    Two such columns enter at the same alpha. scikit-learn's least-angle regression then drops one
    of them but takes its next step as if it had not, and all that follows is wrong.
    """
    squares = np.diag(gram)
    distances = squares + squares[:, np.newaxis] - 2.0 * np.abs(gram)
    first_equal = (distances <= ROUNDING * squares).argmax(axis=1)
    return np.flatnonzero(first_equal == np.arange(squares.size))


def _refined(
    gram: NDArray[np.float64],
    moments: NDArray[np.float64],
    alphas: NDArray[np.float64],
    starts: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return a row of weights for each alpha, by coordinate descent from `starts`."""
    from sklearn.linear_model import lasso_path

    # A square root of the Gram matrix has the same inner products in fewer rows than X.
    squares, vectors = np.linalg.eigh(gram)
    known = squares > ROUNDING * squares.max()
    root = np.sqrt(squares[known])
    columns = np.asfortranarray(root[:, np.newaxis] * vectors[:, known].T)
    target = (vectors[:, known].T @ moments) / root
    found = np.empty_like(starts)
    # scikit-learn divides the squares by the number of rows.
    for row, alpha, start in zip(found, alphas / root.size, starts, strict=True):
        options = {"alphas": [alpha], "coef_init": start, "tol": DUALITY_GAP}
        row[:] = lasso_path(columns, target, **options)[1].T
    return found
