"""Cost-complexity pruning: every tree by itself, at one price of a leaf for all of them."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestprune import kernels
from forestprune.baselines.setting import Setting
from forestprune.forest.checks import seal
from forestprune.forest.forest import Forest
from forestprune.options import require_count, require_flag, require_share
from forestprune.select.opening import HeldOut, checked_alphas, validated
from forestprune.select.path import PruningPath
from forestprune.solve.contributions import Predictions
from forestprune.solve.kept import Subtrees
from forestprune.solve.problem import check_target
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

    Of each tree, the part is kept that minimises its own squared error plus alpha times its number
    of leaves, as ``ccp_alpha`` does in scikit-learn. Values of nodes stay what they are. Each tree
    of an average is compared with y; each tree of a sum with what those before it, unpruned, leave
    of y.

    Unlike ``ccp_alpha`` this needs no new fit, and errors are those on the rows given: on a
    bootstrapped forest not only on the rows that a tree was drawn.

    Parameters
    ----------
    model, X, y, sample_weight, X_val, y_val, sample_weight_val
        As for :func:`forestprune.prune`.
    alphas : array-like or None
        Your own alphas, in the units of y squared. By default `n_alphas` of them, from the smallest
        at which no tree is left down by equal factors to `eps` times that.
    n_alphas : int
    eps : float
    averages : bool or None
        Whether the model is an average. None: what the library says; a forest that did not come
        from a model counts as a sum.
    n_jobs : int or None

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
    held_out = HeldOut.of(X_val, y_val, sample_weight_val, labelled=y is not None)
    setting = Setting(model, X, y, sample_weight, n_jobs)
    average = setting.averages if averages is None else averages
    prices = _Prices(setting.source.forest, _node_errors(setting, average, n_jobs))
    if alphas is not None:
        grid = checked_alphas(alphas)
    else:
        highest = prices.highest_alpha()
        grid = np.geomspace(highest, eps * highest, n_alphas) if highest > 0.0 else np.zeros(1)
    weights, intercept = np.ones(setting.sizes.size), setting.problem.intercept
    points = [
        setting.point(float(alpha), weights, intercept, subtrees=prices.kept(float(alpha)))
        for alpha in track(grid, "pruning", grid.size)
    ]
    return validated(PruningPath(setting.source, tuple(points)), held_out, n_jobs)


def _node_errors(setting: Setting, average: bool, n_jobs: int | None) -> NDArray[np.float64]:
    """Return what each node adds to the mean squared error of its tree, if it is a leaf.

    What is common to all nodes that a row passes, the square of its target, is left out.
    """
    forest, encoding = setting.source.forest, setting.encoding
    scale = forest.scale * (forest.n_trees if average else 1.0)
    sizes, starts = setting.sizes, forest.offsets[:-1]
    roots = scale[:, np.newaxis] * forest.value[starts]
    # Values and targets are taken from the root's value on, or their digits would be lost in it.
    value = forest.value - np.repeat(forest.value[starts], sizes, axis=0)
    value *= np.repeat(scale, sizes)[:, np.newaxis]
    target = check_target(setting.target, encoding.n_rows, forest.n_outputs)
    weights = encoding.sample_weight
    if weights is None:
        weights = np.ones(encoding.n_rows)
    if average:
        middle = np.average(target, axis=1, weights=weights)
        centred = (target - middle[:, np.newaxis]) * weights
        sums = np.array([encoding.node_sums(row, n_jobs) for row in centred]).T
        sums += encoding.node_weights[:, np.newaxis] * np.repeat(
            middle - forest.base - roots, sizes, axis=0
        )
    else:
        sums = _sums_in_sequence(setting, target, weights, roots)
    errors: NDArray[np.float64] = (value**2).sum(axis=1) * encoding.node_weights
    errors -= 2.0 * (value * sums).sum(axis=1)
    # The mean over outputs, as scikit-learn has it.
    errors /= weights.sum() * forest.n_outputs
    return errors


def _sums_in_sequence(
    setting: Setting,
    target: NDArray[np.float64],
    weights: NDArray[np.float64],
    roots: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return, summed over the rows of each node, what the trees before and its root leave of y."""
    forest, encoding, problem = setting.source.forest, setting.encoding, setting.problem
    sums = np.zeros((forest.n_outputs, forest.n_nodes))
    before = Predictions(encoding, problem.steps)
    depths, ones = np.zeros(forest.n_trees, np.int64), np.ones(forest.n_trees)
    for tree in track(range(forest.n_trees), "measuring trees", forest.n_trees):
        constant = (forest.base + roots[: tree + 1].sum(axis=0))[:, np.newaxis]
        left = (target - constant - before.values) * weights
        for row, into in zip(left, sums, strict=True):
            kernels.add_up_rows(
                encoding.codes, row, tree, tree + 1, forest.offsets, forest.left, into
            )
        depths[tree] = problem.depths[tree]
        before.move_to(depths, ones)
    return sums.T


class _Prices:
    """What the nodes of a forest cost as leaves, to find the best part of each tree."""

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
        """Return the least cost of each node's part of its tree, and which splits that keeps."""
        cost = self._errors + alpha
        splits = np.zeros(cost.size, np.bool_)
        for layer in self._layers:
            below = cost[self._left[layer]] + cost[self._left[layer] + 1]
            splits[layer] = below < cost[layer]
            cost[layer] = np.minimum(cost[layer], below)
        return cost, splits

    def kept(self, alpha: float) -> Subtrees:
        """Return what is left of the trees at `alpha`."""
        _, splits = self.best(alpha)
        kept = np.zeros(splits.size, np.bool_)
        kept[self._forest.offsets[:-1]] = True
        for layer in reversed(self._layers):
            goes_on = layer[kept[layer] & splits[layer]]
            kept[self._left[goes_on]] = kept[self._left[goes_on] + 1] = True
        kept[self._forest.offsets[:-1]] = False
        return Subtrees(seal(np.flatnonzero(kept)))

    def highest_alpha(self) -> float:
        """Return the smallest alpha at which no tree is left, but for rounding.

        By Dinkelbach's method: the price per leaf at which the best part would just pay.
        """
        roots, alpha = self._forest.offsets[:-1], 0.0
        while True:
            kept = self.kept(alpha).nodes
            if not kept.size:
                return alpha
            owner = np.searchsorted(roots, kept, side="right") - 1
            leaves = np.bincount(owner, minlength=roots.size) // 2
            cost, _ = self.best(alpha)
            gain = self._errors[roots] - (cost[roots] - alpha * (leaves + 1))
            some = leaves > 0
            alpha = float((gain[some] / leaves[some]).max()) * (1.0 + 1e-12)
