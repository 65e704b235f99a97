"""Cutting trees down to what could be kept, so that the sweeps need not look at the rest."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestprune import kernels
from forestprune.kernels.cuts import Pruning, Trees
from forestprune.validation import seal


@dataclass(frozen=True, eq=False)
class Trunks:
    """The upper part of each tree of a forest, as trees of their own.

    Attributes
    ----------
    trees : Trees
    codes : unsigned int array of shape (n_trees, m)
        The leaf of its trunk that each row is in.
    nodes, splits : int64 arrays
        Which nodes and splits of the forest these are.
    """

    trees: Trees
    codes: NDArray[np.unsignedinteger]
    nodes: NDArray[np.int64]
    splits: NDArray[np.int64]

    @classmethod
    def whole(cls, trees: Trees, codes: NDArray[np.unsignedinteger]) -> "Trunks":
        """Return trunks that leave nothing out."""
        return cls(trees, codes, np.arange(trees.weight.size), np.arange(trees.split.size))

    @classmethod
    def of(
        cls, trees: Trees, codes: NDArray[np.unsignedinteger], some: NDArray[np.bool_]
    ) -> "Trunks":
        """Return the trunks that consist of some of the splits."""
        splits = np.flatnonzero(some)
        first = (trees.offsets - np.arange(trees.offsets.size)) // 2
        counts = np.diff(np.searchsorted(splits, first))
        offsets = np.concatenate([[0], np.cumsum(2 * counts + 1)]).astype(np.int64)
        nodes = np.empty(offsets[-1], np.int64)
        split, leaf = np.empty(splits.size, np.int32), np.empty(splits.size + counts.size, np.int32)
        new_codes = np.empty_like(codes)
        kernels.fill_trunks(codes, trees, some, offsets, nodes, split, leaf, new_codes)
        cut = Trees(
            offsets=seal(offsets),
            split=seal(split),
            leaf=seal(leaf),
            first_leaf=seal(np.concatenate([[0], np.cumsum(counts + 1)]).astype(np.int64)),
            origin=seal(trees.origin[:, nodes]),
            weight=seal(trees.weight[nodes]),
        )
        return cls(cut, seal(new_codes), nodes, splits)

    def carry(self, cut: Pruning, other: "Trunks", whole: Trees) -> Pruning:
        """Return `cut`, which is about these trunks, as it is about others."""
        kept = np.zeros(whole.split.size, np.bool_)
        kept[self.splits] = cut.kept
        value = np.zeros(whole.origin.shape)
        value[:, self.nodes] = cut.value
        n_trees, n_leaves = cut.depth.size, other.trees.leaf.size
        moved = cut._replace(
            kept=kept[other.splits],
            value=value if other.trees is whole else np.ascontiguousarray(value[:, other.nodes]),
            ends=np.zeros(n_leaves, np.int32),
            end=np.zeros(n_leaves, np.int32),
            # What is known of trees that are absent holds for the trunks they had.
            slack=np.full(n_trees, -1.0),
            lowest_alpha=np.full(n_trees, np.inf),
        )
        kernels.number_all_ends(other.trees, moved)
        return moved


class Limits:
    """What splits of a forest could gain at most, and what they cost."""

    def __init__(self, trees: Trees, costs: NDArray[np.float64]) -> None:
        self.spread = np.empty(trees.weight.size)
        kernels.spread_below(trees, self.spread)
        self.cost = np.full(trees.weight.size, np.inf)
        first = (trees.offsets - np.arange(trees.offsets.size)) // 2
        starts = np.repeat(trees.offsets[:-1], np.diff(first))
        self.cost[starts + trees.split] = costs

    def at_leaves(self, trunks: Trunks) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the spread and the cost of the nodes that are leaves of trunks."""
        starts = np.repeat(trunks.trees.offsets[:-1], np.diff(trunks.trees.first_leaf))
        leaves = trunks.nodes[starts + trunks.trees.leaf]
        return self.spread[leaves], self.cost[leaves]
