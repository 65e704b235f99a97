"""Refitting leaf values by how many rows leaves share, while these are few."""

import numpy as np
from numpy.typing import NDArray

from forestprune import kernels
from forestprune.kernels.records import Overlaps, Price, Pruning
from forestprune.rows.trees import first_leaves
from forestprune.solve.subtrees.active import ActiveSet


class Gram:
    """The weight of the rows that each two leaves share, renewed for leaves that are new only.

    Each leaf has a slot of its own for as long as it is kept.
    """

    def __init__(self, size: int, n_nodes: int) -> None:
        self._overlaps = Overlaps(
            weight=np.zeros((size, size)),
            node=np.full(size, -1),
            slot_of=np.zeros(n_nodes, np.int32),
        )

    def refit(
        self,
        row_weight: NDArray[np.float64],
        active: ActiveSet,
        cut: Pruning,
        price: Price,
        order: NDArray[np.int64],
        max_sweeps: int,
    ) -> None:
        """Refit the values of the trees in `order`, keeping their shapes, until none gains."""
        trees = active.trees
        slot, fresh, size = self._assign(active, cut, order)
        arguments = (order, self._overlaps, slot)
        kernels.count_overlaps(row_weight, trees, cut, *arguments, fresh)
        kernels.refit_by_overlaps(row_weight, trees, cut, price, *arguments, size, max_sweeps)

    def shared(self, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the weight of the rows that leaves share, given as nodes of the forest."""
        slots = self._overlaps.slot_of[nodes] - 1
        return self._overlaps.weight[np.ix_(slots, slots)]

    def _assign(
        self, active: ActiveSet, cut: Pruning, order: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.bool_], int]:
        """Give each leaf of some trees a slot; those of leaves that are gone are given away.

        Returns the slots, as leaves stand in `cut.leaves`, which slots are new, and how many there
        are up to the last one in use.
        """
        known, offsets = self._overlaps, active.trees.offsets
        counts = cut.n_leaves[order]
        owner = np.repeat(order, counts)
        within = np.arange(owner.size) - np.repeat(np.cumsum(counts) - counts, counts)
        place = first_leaves(offsets)[owner] + within
        nodes = active.nodes[offsets[owner] + cut.leaves[place]]
        slots = known.slot_of[nodes] - 1
        used = np.zeros(known.node.size, np.bool_)
        used[slots[slots >= 0]] = True
        gone = np.flatnonzero(~used & (known.node >= 0))
        known.slot_of[known.node[gone]] = 0
        known.node[gone] = -1
        new = np.flatnonzero(slots < 0)
        free = np.flatnonzero(known.node < 0)[: new.size]
        slots[new] = free
        known.node[free] = nodes[new]
        known.slot_of[nodes[new]] = free + 1
        fresh = np.zeros(known.node.size, np.bool_)
        fresh[free] = True
        slot = np.empty(active.trees.leaf.size, np.int32)
        slot[place] = slots
        return slot, fresh, int(slots.max(initial=-1)) + 1
