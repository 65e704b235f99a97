"""Cutting trees down to what might be kept, so that sweeps need not look at the rest."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestprune import kernels
from forestprune.forest.checks import seal
from forestprune.kernels.cuts import Pruning, Trees
from forestprune.solve.kept import kept_nodes


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
    inside : int32 array
        In which leaf of its trunk each leaf of the forest lies.
    """

    trees: Trees
    codes: NDArray[np.unsignedinteger]
    nodes: NDArray[np.int64]
    splits: NDArray[np.int64]
    inside: NDArray[np.uint32]

    @classmethod
    def whole(cls, trees: Trees, codes: NDArray[np.unsignedinteger]) -> "Trunks":
        """Return trunks that leave nothing out."""
        sizes = np.diff(trees.first_leaf)
        inside = np.arange(trees.leaf.size) - np.repeat(trees.first_leaf[:-1], sizes)
        nodes, splits = np.arange(trees.weight.size), np.arange(trees.split.size)
        return cls(trees, codes, nodes, splits, inside.astype(np.uint32))

    @classmethod
    def of(
        cls,
        trees: Trees,
        codes: NDArray[np.unsignedinteger],
        some: NDArray[np.bool_],
        share: Callable[..., None] | None = None,
    ) -> "Trunks":
        """Return the trunks that consist of some of the splits.

        `share` calls a kernel on some trees at a time; the default is all at once.
        """
        splits = np.flatnonzero(some)
        first = (trees.offsets - np.arange(trees.offsets.size)) // 2
        counts = np.diff(np.searchsorted(splits, first))
        offsets = np.concatenate([[0], np.cumsum(2 * counts + 1)]).astype(np.int64)
        nodes = np.empty(offsets[-1], np.int64)
        split = np.empty(splits.size, np.uint32)
        leaf = np.empty(splits.size + counts.size, np.uint32)
        inside, new_codes = np.empty(trees.leaf.size, np.uint32), np.empty_like(codes)
        arguments = (codes, trees, some, offsets, nodes, split, leaf, inside, new_codes)
        if share is None:
            kernels.fill_trunks(0, counts.size, *arguments)
        else:
            share(kernels.fill_trunks, *arguments)
        cut = Trees(
            offsets=seal(offsets),
            split=seal(split),
            leaf=seal(leaf),
            first_leaf=seal(np.concatenate([[0], np.cumsum(counts + 1)]).astype(np.int64)),
            origin=seal(trees.origin[:, nodes]),
            weight=seal(trees.weight[nodes]),
        )
        return cls(cut, seal(new_codes), nodes, splits, inside)

    def kept(self, cut: Pruning, n_splits: int) -> NDArray[np.bool_]:
        """Return for each of the forest's `n_splits` splits whether `cut` keeps it."""
        kept = np.zeros(n_splits, np.bool_)
        kept[self.splits[cut.kept]] = True
        return kept

    def carry(self, cut: Pruning, other: "Trunks") -> Pruning:
        """Return `cut`, which is about these trunks, as it is about others that hold it too."""
        here = kept_nodes(self.trees, cut.kept)
        there = np.searchsorted(other.nodes, self.nodes[here])
        value = np.zeros(other.trees.origin.shape)
        value[:, there] = cut.value[:, here]
        kept = np.zeros(other.splits.size, np.bool_)
        kept[np.searchsorted(other.splits, self.splits[cut.kept])] = True
        n_trees, n_leaves = cut.depth.size, other.trees.leaf.size
        moved = cut._replace(
            kept=kept,
            value=value,
            ends=np.zeros(n_leaves, np.uint32),
            end=np.zeros(n_leaves, np.uint32),
            # What is known of trees that are absent holds for the trunks they had.
            slack=np.full(n_trees, -1.0),
            lowest_alpha=np.full(n_trees, np.inf),
        )
        kernels.number_all_ends(other.trees, moved)
        return moved


class Coarse:
    """Trees without the nodes below those of few rows, and what these could gain at most.

    Attributes
    ----------
    rows : float
        Nodes are split if they have more weight than this; roots are in any case.
    trunks : Trunks
    place : int32 array of shape (n_nodes,)
        Where a node of the forest stands in its tree; -1 if it does not.
    split_costs : float64 array
        What the splits cost that are left.
    spread, cost : float64 arrays
        Of the leaves: see `kernels.gains_at_most`.
    """

    def __init__(
        self, whole: Trunks, costs: NDArray[np.float64], share: Callable[..., None]
    ) -> None:
        trees = whole.trees
        first = (trees.offsets - np.arange(trees.offsets.size)) // 2
        node = np.repeat(trees.offsets[:-1], np.diff(first)) + trees.split
        self._whole, self._costs, self._share = whole, costs, share
        self._weight = trees.weight[node]
        self._weight[first[:-1][np.diff(first) > 0]] = np.inf  # roots
        self._cost = np.full(trees.weight.size, np.inf)
        self._cost[node] = costs
        self._spread = np.empty(trees.weight.size)
        share(kernels.spread_below, trees, self._spread)
        self.place = np.full(trees.weight.size, -1, np.int32)
        self.rows = np.nan
        self.trunks = whole

    def cut(self, rows: float) -> None:
        """Leave out what is below nodes of so many rows."""
        if self.trunks is not self._whole:
            self.place[self.trunks.nodes] = -1
        whole, self.rows = self._whole, rows
        some = self._weight > rows
        self.trunks = trunks = Trunks.of(whole.trees, whole.codes, some, self._share)
        self.split_costs = self._costs[trunks.splits]
        starts = np.repeat(trunks.trees.offsets[:-1], np.diff(trunks.trees.offsets))
        self.place[trunks.nodes] = np.arange(trunks.nodes.size) - starts
        starts = np.repeat(trunks.trees.offsets[:-1], np.diff(trunks.trees.first_leaf))
        leaves = trunks.nodes[starts + trunks.trees.leaf]
        self.spread, self.cost = self._spread[leaves], self._cost[leaves]
