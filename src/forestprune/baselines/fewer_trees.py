"""Fewer trees (section 4, "Baseline"): a random part of an average, the first part of a sum."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from forestprune.baselines.setting import Setting
from forestprune.options import require_count, require_flag
from forestprune.select.path import PruningPath


def fewer_trees(
    model: Any,
    X: Any,
    y: ArrayLike | None = None,
    *,
    n_points: int = 100,
    averages: bool | None = None,
    rescale: bool = True,
    sample_weight: ArrayLike | None = None,
    X_val: Any = None,
    y_val: ArrayLike | None = None,
    sample_weight_val: ArrayLike | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> PruningPath:
    """Return the model with fewer and fewer of its trees, from none to all of them.

    Trees are removed at random from an average, and from the end of a sum, such as boosting. Where
    each tree adds to one output, as in boosting of several classes, whole rounds are removed: one
    tree of each output.

    Parameters
    ----------
    model, X, y, sample_weight, X_val, y_val, sample_weight_val, n_jobs
        As for :func:`forestprune.prune`. The rows only measure how good each point is.
    n_points : int
        How many numbers of trees to try, evenly spaced; every number if there are fewer trees.
        Of rounds, where trees come in such.
    averages : bool or None
        Whether the model is an average. None: as the library says; a forest that did not come
        from a model counts as a sum.
    rescale : bool
        Whether to divide what is left of an average by the number of trees left, as in a smaller
        forest, or by the original number, as in the code published with the paper.
    random_state : int, RandomState or None
        Which trees of an average are removed.

    Returns
    -------
    PruningPath
        ``alphas`` are the shares of the trees, or rounds, that are removed.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> import forestprune as fp
    >>> wine = fp.load_wine_quality()
    >>> model = RandomForestRegressor(20, random_state=0).fit(wine.data, wine.target)
    >>> path = fp.baselines.fewer_trees(model, wine.data, wine.target, random_state=0)
    >>> path.select(max_trees=5).to_native().n_estimators
    5
    """
    require_count("n_points", n_points, 2)
    require_flag("averages", averages, or_none=True)
    require_flag("rescale", rescale)
    held_out = {"X_val": X_val, "y_val": y_val, "sample_weight_val": sample_weight_val}
    setting = Setting(model, X, y, sample_weight, n_jobs, **held_out)
    forest, rounds = setting.source.forest, setting.rounds
    average, total = setting.is_average(averages), int(rounds.max(initial=-1)) + 1
    order = np.arange(total)
    if average:
        check_random_state(random_state).shuffle(order)
    points = []
    for count in np.unique(np.linspace(0, total, n_points).round().astype(np.int64)):
        stays = np.isin(rounds, order[:count])
        each = total / max(count, 1) if average and rescale else 1.0
        weights = np.where(stays, each, 0.0)
        # With no tree left, the prediction of an average is that of all roots.
        none_left = average and rescale and not count
        intercept = (
            setting.problem.intercept if none_left else forest.base + weights @ setting.roots
        )
        points.append(setting.point(1.0 - count / max(total, 1), weights, intercept))
    return setting.path(points)
