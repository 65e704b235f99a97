"""What each node of each tree contributes to the loss of its tree if it is a leaf."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from forestprune import kernels
from forestprune.baselines.setting import Setting
from forestprune.solve.contributions import Predictions
from forestprune.system.progress import track

Floats = NDArray[np.float64]


def node_errors(setting: Setting, average: bool, n_jobs: int | None) -> Floats:
    """Return the share of each node, as a leaf, in the mean loss of its tree.

    What all nodes that a row passes have in common is left out. If it is an `average`, each tree is
    a model in itself, else one that corrects those before it.
    """
    forest = setting.source.forest
    if setting.problem.loss.quadratic and not forest.tree_output.size:
        return _squared_errors(setting, average, n_jobs)
    return _losses(setting, average)


def _squared_errors(setting: Setting, average: bool, n_jobs: int | None) -> Floats:
    """Return the shares in the mean squared error, by sums of the target over rows in nodes."""
    forest, problem = setting.source.forest, setting.problem
    encoding, node_weights = problem.encoding, problem.node_weights
    scale = forest.scale * (forest.n_trees if average else 1.0)
    sizes, starts = setting.sizes, forest.offsets[:-1]
    roots = scale[:, np.newaxis] * forest.value[starts]
    # Values and targets are relative to the root's value, or digits would be lost to cancellation.
    value = forest.value - np.repeat(forest.value[starts], sizes, axis=0)
    value *= np.repeat(scale, sizes)[:, np.newaxis]
    target, weights = problem.target, problem.sample_weight
    if weights is None:
        weights = np.ones(encoding.n_rows)
    if average:
        middle = np.average(target, axis=1, weights=weights)
        centred = (target - middle[:, np.newaxis]) * weights
        sums = np.array([encoding.node_sums(row, n_jobs) for row in centred]).T
        sums += node_weights[:, np.newaxis] * np.repeat(middle - forest.base - roots, sizes, axis=0)
    else:
        sums = _sums_in_sequence(setting, target, weights, roots)
    errors: Floats = (value**2).sum(axis=1) * node_weights
    errors -= 2.0 * (value * sums).sum(axis=1)
    if forest.averages_distributions:
        # The Gini impurity: the sum over all classes, of which two have one output.
        errors *= 2.0 if forest.n_outputs == 1 else 1.0
        errors /= weights.sum()
        return errors
    # The mean over outputs, as in scikit-learn.
    errors /= weights.sum() * forest.n_outputs
    return errors


def _sums_in_sequence(
    setting: Setting,
    target: Floats,
    weights: Floats,
    roots: Floats,
) -> Floats:
    """Return the residual of the trees before, and of the tree's root, summed by node."""
    forest, encoding = setting.source.forest, setting.problem.encoding
    sums = np.zeros((forest.n_outputs, forest.n_nodes))
    before, trees = Predictions(encoding, setting.problem.trees), np.arange(forest.n_trees)
    for tree in track(range(forest.n_trees), "measuring trees", forest.n_trees):
        constant = (forest.base + roots[: tree + 1].sum(axis=0))[:, np.newaxis]
        residual = (target - constant - before.values) * weights
        for row, into in zip(residual, sums, strict=True):
            kernels.add_up_rows(
                encoding.codes, row, tree, tree + 1, forest.offsets, forest.left, into
            )
        before.move_to(setting.selection(trees <= tree))
    return sums.T


def _losses(setting: Setting, average: bool) -> Floats:
    """Return the shares in the mean loss, whatever it is, by going through rows at each depth."""
    forest, problem, rounds = setting.source.forest, setting.problem, setting.rounds
    total = int(rounds.max(initial=-1)) + 1
    factor = float(total) if average else 1.0
    trees = _OwnTrees(setting, factor)
    errors = np.zeros(forest.n_nodes)
    before = np.repeat(forest.base[:, np.newaxis], problem.encoding.n_rows, axis=1)
    for number in track(range(total), "measuring trees", total):
        own = np.flatnonzero(rounds == number)
        after = before.copy()
        for tree in own.tolist():
            trees.add_to(tree, after)
        for tree in own.tolist():
            around = before
            if average and own.size > 1:
                around = after.copy()
                trees.add_to(tree, around, -1.0)
            errors[forest.offsets[tree] : forest.offsets[tree + 1]] = trees.losses(tree, around)
        if not average:
            before = after
    weights = problem.sample_weight
    errors /= problem.encoding.n_rows if weights is None else weights.sum()
    # Squared error is taken by half as a loss, and its mean over outputs as an error.
    return errors * (2.0 / forest.n_outputs if problem.loss.quadratic else 1.0)


class _OwnTrees:
    """The trees of a forest, each times a factor, and what its nodes would say to the rows."""

    def __init__(self, setting: Setting, factor: float) -> None:
        self._forest, self._problem = setting.source.forest, setting.problem
        self._value = factor * self._forest.scaled_value
        self._depths, self._parents = self._forest.node_depths, self._forest.parent

    def add_to(self, tree: int, raw: Floats, times: float = 1.0) -> None:
        """Add what a tree says, as it is, to raw predictions."""
        nodes = slice(self._forest.offsets[tree], self._forest.offsets[tree + 1])
        leaves = np.flatnonzero(self._forest.left[nodes] < 0)
        reached = leaves[self._problem.encoding.codes[tree]]
        raw[self._outputs(tree)] += times * self._value[nodes][reached].T

    def losses(self, tree: int, around: Floats) -> Floats:
        """Return by how much the loss rises from the root, as a leaf, to each node, as one.

        Summed over the rows that pass the node, whose raw predictions without the tree are given.
        """
        problem, outputs = self._problem, self._outputs(tree)
        nodes = slice(self._forest.offsets[tree], self._forest.offsets[tree + 1])
        value, depth, parent = self._value[nodes], self._depths[nodes], self._parents[nodes]
        codes, weights = problem.encoding.codes[tree], problem.sample_weight
        raw = around.copy()
        raw[outputs] += value[0][:, np.newaxis]
        of_root = problem.loss.values(problem.target, raw)
        risen = np.zeros(depth.size)
        at = np.flatnonzero(self._forest.left[nodes] < 0)  # the node of the rows in each leaf
        for level in range(int(depth.max()), 0, -1):
            there = depth[at] == level
            rows = np.flatnonzero(there[codes])
            node = at[codes[rows]]
            raw = around[:, rows]
            raw[outputs] += value[node].T
            rise = problem.loss.values(problem.target[:, rows], raw) - of_root[rows]
            if weights is not None:
                rise *= weights[rows]
            risen += np.bincount(node, rise, minlength=depth.size)
            at[there] = parent[at[there]]
        return risen

    def _outputs(self, tree: int) -> slice:
        """Return what a tree adds to."""
        if not self._forest.tree_output.size:
            return slice(None)
        output = int(self._forest.tree_output[tree])
        return slice(output, output + 1)
