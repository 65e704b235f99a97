"""The trees of a forest as the kernels that prune them read them."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from forestprune.forest.checks import seal
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
    sizes = np.diff(forest.offsets)
    origin = np.array(forest.value.T, order="C")
    origin -= np.repeat(forest.value[forest.offsets[:-1]], sizes, axis=0).T
    origin *= np.repeat(forest.scale, sizes)
    split, leaf = splits_and_leaves(forest)
    return Trees(forest.offsets, split, leaf, seal(origin), weight)


def by_tree(sums: NDArray[np.bool_], first: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many entries of each tree are true; tree i owns first[i]..first[i + 1]."""
    counts: NDArray[np.int64] = np.diff(np.concatenate([[0], np.cumsum(sums)])[first])
    return counts
