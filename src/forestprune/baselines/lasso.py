"""LASSO over whole trees (section 4): weights that are shrunk, most of them to zero."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from forestprune.baselines.lasso_losses import ExpandedLasso
from forestprune.baselines.lasso_squares import lasso_weights
from forestprune.baselines.setting import Setting
from forestprune.options import require_count, require_flag, require_number, require_share
from forestprune.polishing.ridge import ridge_weights
from forestprune.polishing.tree_equations import TreeEquations
from forestprune.select.path import PruningPath


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

    Minimises ``mean loss(y, b + sum of beta_i f_i(x)) + alpha * sum of |beta_i|`` over the weights
    beta and the intercept b, which is not penalised; f_i is tree i times its scale. The loss is
    that of the model; squared error is taken by half. Where each tree adds to one output, as in
    boosting of several classes, each has a weight of its own.

    No weight is negative if the model has monotone constraints. Where trees average distributions
    over classes, the weights are shares of the average: none is negative, they sum to 1 at most,
    and the rest is that of a constant, the shares of the classes.

    Parameters
    ----------
    model, X, y, sample_weight, X_val, y_val, sample_weight_val, n_jobs
        As for :func:`forestprune.prune`.
    alphas : array-like or None
        As for scikit-learn's ``lasso_path``. By default `n_alphas` of them, from the smallest at
        which no tree is left down by equal factors to `eps` times that. For squared error also one
        between each two at which the selection changes, as long as it is small; for averages of
        distributions none below that at which weights sum to 1.
    n_alphas, eps : int, float
        See `alphas`.
    refit : bool
        Whether the trees that are selected get new weights by a ridge regression with the penalty
        `alpha2`, as with ``polish="ridge"``: LASSO's own are too small. Where trees average
        distributions, whether those selected are averaged as they are. With weights of their own
        their leaves are no distributions for a library whose trees all count the same:
        ``to_native()`` refuses such models.
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
    if not setting.problem.loss.quadratic or setting.source.forest.tree_output.size:
        expanded = ExpandedLasso(setting, alpha2)
        return setting.path(expanded.points(alphas, n_alphas, eps, refit=refit))
    equations = TreeEquations(setting.problem)
    found = zip(*lasso_weights(setting, equations, alphas, n_alphas, eps), strict=True)
    if setting.source.forest.averages_distributions:
        return setting.path(
            setting.average(float(alpha), setting.alike(own != 0.0) if refit else own)
            for alpha, own in found
        )
    points = []
    for alpha, weights in found:
        selected = setting.selection(weights != 0.0)
        if refit:
            fitted = ridge_weights(equations, selected, alpha2)
        else:
            kept, _, _ = equations.at(selected)
            fitted = equations.weighted(selected, weights[kept], {})
        points.append(setting.point(float(alpha), fitted.weights, fitted.intercept))
    return setting.path(points)
