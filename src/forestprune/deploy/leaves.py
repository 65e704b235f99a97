"""What leaves add, as a program keeps it, and how far its sums may be from the model's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from forestprune.deploy.conditions import Precision
from forestprune.deploy.preorder import Preorder
from forestprune.forest.forest import Forest

LeafType = Literal["float64", "float32", "int16", "int8"]

_LARGEST = {"int16": 32767, "int8": 127}


@dataclass(frozen=True)
class Leaves:
    """The leaves of a forest, as numbers of one type.

    Of output k a program adds up ``base[k] + step[k] * (the sum of the values)``, where floats
    have no step.

    Attributes
    ----------
    values : array of shape (n_leaves, n_outputs), or (n_leaves, 1) if trees add to one each
        In the order of a `Preorder`.
    base : array of shape (n_outputs,)
    step : array of shape (n_outputs,), or None
        For integers, what one of them stands for.
    error : float
        How far the sum of any row is at most from that of the model, in any output: by the
        rounding of values, and of sums on both sides.
    """

    values: NDArray[Any]
    base: NDArray[Any]
    step: NDArray[Any] | None
    error: float

    @classmethod
    def of(cls, forest: Forest, order: Preorder, kind: LeafType, dtype: Precision) -> Leaves:
        """Round what leaves add to numbers of a kind; sums are made in `dtype`."""
        tree = np.repeat(np.arange(order.trees.size), order.sizes + 1)
        exact = forest.value[order.leaves] * forest.scale[order.trees[tree], np.newaxis]
        outputs = _outputs(forest, order)
        number = np.dtype(dtype)
        if kind in _LARGEST:
            middles, halves = _ranges(exact, order)
            base = forest.base + _by_output(middles, outputs, forest.n_outputs, np.sum)
            largest = _by_output(halves, outputs, forest.n_outputs, np.max)
            step = np.maximum(largest / _LARGEST[kind], np.finfo(number).tiny).astype(number)
            per_tree = step[outputs] if outputs.ndim == 1 else np.broadcast_to(step, middles.shape)
            per_tree = per_tree.reshape(middles.shape).astype(np.float64)
            whole = np.rint((exact - middles[tree]) / per_tree[tree])
            limit = _LARGEST[kind]  # the step, rounded, may be a little too short
            values = np.clip(whole, -limit, limit).astype(kind)
            kept = middles[tree] + values * per_tree[tree]
        else:
            base, step, values = forest.base, None, exact.astype(kind)
            kept = values.astype(np.float64)
        rounded = base.astype(number)
        wrong = _worst(np.abs(kept - exact), order)
        size = _worst(np.maximum(np.abs(exact), np.abs(kept)), order)
        total = _by_output(wrong, outputs, forest.n_outputs, np.sum) + np.abs(rounded - base)
        most = np.abs(forest.base) + _by_output(size, outputs, forest.n_outputs, np.sum)
        most += np.abs(base)
        # Each addition is off by half a unit in the last place of what is there by then.
        steps = order.trees.size + 4
        units = np.finfo(number).eps / 2 + np.finfo(np.float64).eps
        error = 1.001 * (total + steps * units * most).max(initial=0.0)
        return cls(values, rounded, step, float(error))


def _outputs(forest: Forest, order: Preorder) -> NDArray[np.int64]:
    """Return the output of each tree, (n_trees,), or all outputs of each, (n_trees, n_outputs)."""
    if forest.tree_output.size:
        return forest.tree_output[order.trees].astype(np.int64)
    shape = (order.trees.size, forest.n_outputs)
    return np.broadcast_to(np.arange(forest.n_outputs), shape)


def _by_output(
    of_trees: NDArray[np.float64], outputs: NDArray[np.int64], n_outputs: int, how: Any
) -> NDArray[np.float64]:
    """Return the sum, or the maximum, over the trees of each output."""
    gather = np.add.at if how is np.sum else np.maximum.at
    found = np.zeros(n_outputs)
    gather(found, outputs.ravel(), of_trees.ravel())
    return found


def _starts(order: Preorder) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(order.sizes + 1)])[:-1].astype(np.int64)


def _ranges(
    exact: NDArray[np.float64], order: Preorder
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the middle between the lowest and the highest leaf of each tree, and half the range.

    With middles as part of the constant, integers have only what is left to stand for.
    """
    if not order.trees.size:
        return np.zeros((0, exact.shape[1])), np.zeros((0, exact.shape[1]))
    lowest = np.minimum.reduceat(exact, _starts(order))
    highest = np.maximum.reduceat(exact, _starts(order))
    middles = lowest / 2 + highest / 2
    return middles, np.maximum(highest - middles, middles - lowest)


def _worst(of_leaves: NDArray[np.float64], order: Preorder) -> NDArray[np.float64]:
    if not order.trees.size:
        return of_leaves
    return np.asarray(np.maximum.reduceat(of_leaves, _starts(order)))
