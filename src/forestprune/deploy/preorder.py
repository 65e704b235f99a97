"""Splits and leaves in the order in which a program without pointers walks through them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestprune.forest.forest import Forest


@dataclass(frozen=True)
class Preorder:
    """The nodes of a forest, tree by tree: a split, all below it to the left, all to the right.

    A subtree of n splits has n + 1 leaves, so who knows how many splits are left of each needs
    neither the number of a child nor a mark at leaves to find its way.

    Attributes
    ----------
    trees : int64 array
        The numbers of the trees in the order in which they come: that of the forest, but if every
        tree adds to one output, those of the first output before those of the next.
    sizes : int64 array of shape (n_trees,)
        How many splits each of them has.
    splits : int64 array
        Splits, as numbers of nodes of the forest.
    left_splits : int64 array, one entry a split
        How many splits there are on its left side.
    leaves : int64 array
        Leaves, as numbers of nodes of the forest, from left to right.
    """

    trees: NDArray[np.int64]
    sizes: NDArray[np.int64]
    splits: NDArray[np.int64]
    left_splits: NDArray[np.int64]
    leaves: NDArray[np.int64]

    @classmethod
    def of(cls, forest: Forest) -> Preorder:
        """Put the nodes of a forest in order."""
        below = splits_below(forest)
        joint = not forest.tree_output.size
        trees = (
            np.arange(forest.n_trees) if joint else np.argsort(forest.tree_output, kind="stable")
        )
        left = forest.left.tolist()
        splits: list[int] = []
        leaves: list[int] = []
        for tree in trees:
            root = int(forest.offsets[tree])
            ahead = [root]
            while ahead:
                node = ahead.pop()
                if left[node] < 0:
                    leaves.append(node)
                else:
                    splits.append(node)
                    ahead += [root + left[node] + 1, root + left[node]]
        order = np.array(splits, dtype=np.int64)
        starts = forest.offsets[:-1][forest.tree_of_node[order]]
        return cls(
            trees=trees.astype(np.int64),
            sizes=below[forest.offsets[:-1]][trees],
            splits=order,
            left_splits=below[starts + forest.left[order]],
            leaves=np.array(leaves, dtype=np.int64),
        )


def splits_below(forest: Forest) -> NDArray[np.int64]:
    """Return for each node how many splits its subtree has, itself included."""
    below = np.zeros(forest.n_nodes, np.int64)
    splits = np.flatnonzero(forest.left >= 0)
    children = forest.offsets[:-1][forest.tree_of_node[splits]] + forest.left[splits]
    for node, child in zip(splits[::-1].tolist(), children[::-1].tolist(), strict=True):
        below[node] = 1 + below[child] + below[child + 1]
    return below
