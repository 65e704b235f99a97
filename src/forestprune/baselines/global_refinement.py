"""Global refinement: all leaves of a forest fitted together, and the least of them merged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from forestprune.baselines.refinement import Refinement
from forestprune.baselines.setting import Setting
from forestprune.options import require_count, require_number, require_share
from forestprune.select.path import PruningPath
from forestprune.system.progress import bar


def global_refinement(
    model: Any,
    X: Any,
    y: ArrayLike | None = None,
    *,
    share: float = 0.1,
    l2: float = 1.0,
    max_nodes: int | None = None,
    sample_weight: ArrayLike | None = None,
    X_val: Any = None,
    y_val: ArrayLike | None = None,
    sample_weight_val: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> PruningPath:
    """Fit the values of all leaves together, merge the pairs that matter least, and so on.

    The method of Ren, Cao, Wei and Sun, "Global refinement of random forest" (CVPR 2015), with the
    model's own loss. What a row gets is linear in the leaves that it reaches, so their values are
    those of a regularised linear model, which minimise

        sum over rows of loss(y, b + sum of values) + c * l2 * n_trees * sum of value^2 / 2

    together with a constant b. c is the mean Hessian at the best constant, 1 for squared error.
    Then the pairs of sibling leaves with the smallest values, by the root of the sum of their
    squares, become one leaf each, and all is fitted again, until no leaf is left.

    Where trees average distributions over classes, leaves must stay such: the best values of that
    kind are fitted, b is the shares of the classes, and what is exported is an average again.
    Monotone constraints of the model are kept too.

    Parameters
    ----------
    model, X, y, sample_weight, X_val, y_val, sample_weight_val, n_jobs
        As for :func:`forestprune.prune`.
    share : float
        Which share of all pairs of sibling leaves is merged at a time.
    l2 : float
        How strongly values are drawn to zero. With 1, a leaf of as many rows as there are trees
        goes half of the way that it would go alone.
    max_nodes : int or None
        Larger models are left out of the path, which saves memory: each has values of its own.

    Returns
    -------
    PruningPath
        ``alphas`` are the shares of the splits that are gone.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> import forestprune as fp
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = RandomForestClassifier(20, random_state=0).fit(X, y)
    >>> small = fp.baselines.global_refinement(model, X, y).select(max_nodes=100)
    >>> small.n_nodes <= 100, type(small.to_native()).__name__
    (True, 'RandomForestClassifier')
    """
    require_share("share", share)
    require_number("l2", l2)
    require_count("max_nodes", max_nodes, 3, ", a root and two leaves")
    held_out = {"X_val": X_val, "y_val": y_val, "sample_weight_val": sample_weight_val}
    setting = Setting(model, X, y, sample_weight, n_jobs, **held_out)
    refinement = Refinement(setting, l2 * setting.sizes.size)
    total = splits = refinement.n_splits
    points = []
    with bar("merging leaves", 1.0) as show:
        while True:
            show(np.log((total + 1.0) / (splits + 1.0)) / np.log(total + 2.0))
            refinement.fit()
            if max_nodes is None or refinement.n_nodes <= max_nodes:
                point = setting.point(
                    1.0 - splits / max(total, 1),
                    np.ones(setting.sizes.size),
                    refinement.constant,
                    splits=refinement.splits,
                    values=refinement.values,
                )
                penalised = setting.problem.objective(
                    point.loss, 0.0, np.zeros(1), value_penalty=refinement.squares
                )
                points.append(replace(point, objective=penalised))
            if not splits:
                break
            refinement.merge(share)
            splits = refinement.n_splits
    return setting.path(reversed(points))
