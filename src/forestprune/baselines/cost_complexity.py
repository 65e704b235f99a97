"""Cost-complexity pruning (section 4): each tree by itself, with one price per leaf for all."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestprune.baselines.node_errors import node_errors
from forestprune.baselines.setting import Setting
from forestprune.forest.forest import Forest
from forestprune.options import require_count, require_flag, require_share
from forestprune.rows.trees import by_tree, first_splits
from forestprune.select.path import PruningPath
from forestprune.select.routed import checked_alphas
from forestprune.system.progress import track


def cost_complexity(
    model: Any,
    X: Any,
    y: ArrayLike | None = None,
    *,
    alphas: ArrayLike | None = None,
    n_alphas: int = 100,
    eps: float = 1e-6,
    averages: bool | None = None,
    sample_weight: ArrayLike | None = None,
    X_val: Any = None,
    y_val: ArrayLike | None = None,
    sample_weight_val: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> PruningPath:
    """Prune each tree by itself, with one `alpha` shared by all.

    Each tree keeps the part that minimises its own loss plus alpha times its number of leaves, as
    ``ccp_alpha`` does in scikit-learn. Values of nodes do not change. A tree of an average is
    judged by itself, a tree of a sum together with those before it, unpruned: for squared error its
    target is their residual. Where each tree adds to one output, those before it are the rounds
    before, and in an average the others of its round are there too.

    Unlike ``ccp_alpha`` this needs no new fit, and errors are measured on all rows given, also
    those that are not in the bootstrap sample of a tree.

    Parameters
    ----------
    model, X, y, sample_weight, X_val, y_val, sample_weight_val, n_jobs
        As for :func:`forestprune.prune`.
    alphas : array-like or None
        In the units of y squared; of other losses, in those of the mean loss. Where trees average
        distributions over classes, in those of the Gini impurity, as in scikit-learn. By default
        `n_alphas` of them, from the smallest at which no tree is left down by equal factors to
        `eps` times that.
    n_alphas, eps : int, float
        See `alphas`.
    averages : bool or None
        As for :func:`fewer_trees`.

    Returns
    -------
    PruningPath

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> import forestprune as fp
    >>> wine = fp.load_wine_quality()
    >>> model = RandomForestRegressor(20, random_state=0).fit(wine.data, wine.target)
    >>> path = fp.baselines.cost_complexity(model, wine.data, wine.target)
    >>> path.select(max_nodes=1000).n_nodes <= 1000
    True
    """
    require_count("n_alphas", n_alphas, 1)
    require_share("eps", eps)
    require_flag("averages", averages, or_none=True)
    held_out = {"X_val": X_val, "y_val": y_val, "sample_weight_val": sample_weight_val}
    setting = Setting(model, X, y, sample_weight, n_jobs, **held_out)
    errors = node_errors(setting, setting.is_average(averages), n_jobs)
    pruning = _Pruning(setting.source.forest, errors)
    if alphas is not None:
        grid = checked_alphas(alphas)
    else:
        highest = pruning.highest_alpha()
        grid = np.geomspace(highest, eps * highest, n_alphas) if highest > 0.0 else np.zeros(1)
    weights, intercept = np.ones(setting.sizes.size), setting.problem.intercept
    return setting.path(
        setting.point(float(alpha), weights, intercept, splits=pruning.kept(float(alpha)))
        for alpha in track(grid, "pruning", grid.size)
    )


class _Pruning:
    """Finds the best part of each tree from the errors of its nodes as leaves."""

    def __init__(self, forest: Forest, errors: NDArray[np.float64]) -> None:
        self._forest = forest
        self._errors = errors
        starts = np.repeat(forest.offsets[:-1], np.diff(forest.offsets))
        level = forest.node_depths
        split = np.flatnonzero(forest.left >= 0)
        order = split[np.argsort(-level[split], kind="stable")]
        bounds = np.flatnonzero(np.diff(level[order])) + 1
        self._layers = np.split(order, bounds)  # the deepest splits first
        self._left = starts + forest.left

    def best(self, alpha: float) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the lowest cost of the subtree below each node, and which splits that keeps."""
        cost = self._errors + alpha
        splits = np.zeros(cost.size, np.bool_)
        for layer in self._layers:
            below = cost[self._left[layer]] + cost[self._left[layer] + 1]
            splits[layer] = below < cost[layer]
            cost[layer] = np.minimum(cost[layer], below)
        return cost, splits

    def kept(self, alpha: float) -> NDArray[np.bool_]:
        """Return which splits are left of the trees at `alpha`."""
        _, splits = self.best(alpha)
        reached = np.zeros(splits.size, np.bool_)
        reached[self._forest.offsets[:-1]] = True
        for layer in reversed(self._layers):
            split = layer[reached[layer] & splits[layer]]
            reached[self._left[split]] = reached[self._left[split] + 1] = True
        kept: NDArray[np.bool_] = (reached & splits)[self._forest.left >= 0]
        return kept

    def highest_alpha(self) -> float:
        """Return the smallest alpha at which no tree is left, up to rounding.

        By Dinkelbach's method: the largest ratio of a subtree's gain to its leaves.
        """
        roots, alpha = self._forest.offsets[:-1], 0.0
        first = first_splits(self._forest.offsets)
        while True:
            leaves = by_tree(self.kept(alpha), first)  # beyond the one that a root is
            if not leaves.any():
                return alpha
            cost, _ = self.best(alpha)
            gain = self._errors[roots] - (cost[roots] - alpha * (leaves + 1))
            split = leaves > 0
            alpha = float((gain[split] / leaves[split]).max()) * (1.0 + 1e-12)
