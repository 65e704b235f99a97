"""The trees of a forest as the kernels that prune them read them."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from forestprune.forest.checks import seal
from forestprune.forest.constraints import node_boxes
from forestprune.kernels.records import Trees

if TYPE_CHECKING:
    from forestprune.forest.forest import Forest


def splits_and_leaves(forest: "Forest") -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return which nodes are splits and which are leaves, each counted from its tree's root."""
    starts = np.repeat(forest.offsets[:-1], np.diff(forest.offsets))
    place = (np.arange(forest.n_nodes) - starts).astype(np.uint32)
    is_split = forest.left >= 0
    return seal(place[is_split]), seal(place[~is_split])


def first_splits(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where the splits of each tree begin, given where its nodes do: see kernels/nodes."""
    return (offsets - np.arange(offsets.size)) // 2


def first_leaves(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where the leaves of each tree begin, given where its nodes do."""
    return (offsets + np.arange(offsets.size)) // 2


def read_trees(forest: "Forest", weight: NDArray[np.float64]) -> Trees:
    """Return the trees of a forest for kernels. `weight` is that of the rows that pass each node.

    What a node adds counts from its root, which is in the intercept, and has its tree's scale.
    """
    split, leaf = splits_and_leaves(forest)
    low, high = _bounds(forest)
    origin = _added(forest, forest.value)
    nothing = seal(np.empty(0)), seal(np.empty((origin.shape[0], 0)))
    return Trees(forest.offsets, split, leaf, origin, weight, low, high, *nothing)


def _added(forest: "Forest", value: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what nodes add if they have some values: shape (columns of values, n_nodes)."""
    sizes = np.diff(forest.offsets)
    added = np.array(value.T, order="C")
    added -= np.repeat(forest.value[forest.offsets[:-1]], sizes, axis=0).T
    added *= np.repeat(forest.scale, sizes)
    return seal(added)


def _bounds(forest: "Forest") -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what nodes may add at least and at most, empty arrays if that is anything."""
    boxes = node_boxes(forest)
    if boxes is None:
        columns = forest.value.shape[1]
        return seal(np.empty((columns, 0))), seal(np.empty((columns, 0)))
    with np.errstate(invalid="ignore"):  # a scale of 0 leaves nothing of what has no end
        low, high = (_added(forest, bound) for bound in boxes)
    low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    # A negative scale has turned them round.
    return seal(np.minimum(low, high)), seal(np.maximum(low, high))


def by_tree(sums: NDArray[np.bool_], first: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many entries of each tree are true; tree i owns first[i]..first[i + 1]."""
    counts: NDArray[np.int64] = np.diff(np.concatenate([[0], np.cumsum(sums)])[first])
    return counts
