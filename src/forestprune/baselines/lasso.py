"""LASSO over whole trees: weights that are shrunk, most of them to zero."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestprune.baselines.setting import Setting
from forestprune.opening import HeldOut, checked_alphas, validated
from forestprune.options import require, require_count, require_number
from forestprune.path import PruningPath
from forestprune.polish import Polisher
from forestprune.threads import one_blas_thread

INDEPENDENT = 1e-12
"""What trees add together is nothing of its own if it is a smaller share of the largest."""


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
    model, X, y, sample_weight, X_val, y_val, sample_weight_val
        As for :func:`forestprune.prune`.
    alphas : array-like or None
        Your own alphas, as for scikit-learn's ``lasso_path``. By default `n_alphas` of them, from
        the smallest at which no tree is left down by equal factors to `eps` times that.
    n_alphas : int
    eps : float
    refit : bool
        Whether the trees that are selected get new weights by a ridge regression with the penalty
        `alpha2`, as ``polish="ridge"`` does: LASSO's own are too small.
    alpha2 : float
    n_jobs : int or None

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
    require("eps", eps, "a number between 0 and 1", lambda value: 0.0 < value < 1.0)
    require_number("alpha2", alpha2)
    held_out = HeldOut.of(X_val, y_val, sample_weight_val, labelled=y is not None)
    setting = Setting(model, X, y, sample_weight, n_jobs)
    polisher = Polisher(setting.problem)
    depths = setting.problem.depths
    points = []
    for alpha, weights in zip(*lasso_weights(polisher, alphas, n_alphas, eps), strict=True):
        selected = np.where(weights != 0.0, depths, 0)
        if refit:
            polished = polisher.ridge(selected, alpha2)
        else:
            kept, gram, moments = polisher.equations(selected)
            polished = polisher.weighted(kept, weights[kept], gram, moments, {})
        fitted = np.where(selected > 0, polished.weights, 0.0)
        points.append(setting.point(float(alpha), fitted, polished.intercept))
    return validated(PruningPath(setting.source, tuple(points)), held_out, n_jobs)


def lasso_weights(
    polisher: Polisher, alphas: ArrayLike | None = None, n_alphas: int = 100, eps: float = 1e-4
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return alphas, falling, and a row with the weight of each whole tree for each of them.

    The rows of X are not needed: a square root of the trees' inner products has the same ones, in
    as many rows as there are trees.
    """
    problem = polisher.problem
    weight = problem.encoding.sample_weight
    total = float(problem.encoding.n_rows if weight is None else weight.sum())
    with one_blas_thread():
        kept, gram, moments = polisher.equations(problem.depths)
        values, vectors = np.linalg.eigh(gram)
        known = values > INDEPENDENT * values.max(initial=0.0)
        root = np.sqrt(values[known])
        columns = root[:, np.newaxis] * vectors[:, known].T
        target = (vectors[:, known].T @ moments) / root
        highest = float(np.abs(columns.T @ target).max(initial=0.0)) / total
        if alphas is not None:
            grid = checked_alphas(alphas)
        else:
            grid = np.geomspace(highest, eps * highest, n_alphas) if highest > 0 else np.zeros(1)
        weights = np.zeros((grid.size, problem.depths.size))
        if highest > 0:
            # Here, because importing it takes longer than all of this package.
            from sklearn.linear_model import lasso_path

            # scikit-learn divides by the number of rows, of which there are fewer here.
            scaled = grid * (total / root.size)
            _, found, _ = lasso_path(columns, target, alphas=scaled, tol=1e-10, max_iter=100_000)
            weights[:, kept] = found.T
    return grid, weights
