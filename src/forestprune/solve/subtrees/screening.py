"""A bound on what whole trees could gain, from coarse trees that leave out nodes of few rows."""

import numpy as np
from numpy.typing import NDArray

from forestprune import kernels
from forestprune.forest.checks import seal
from forestprune.kernels.records import Price, Pruning
from forestprune.rows.trees import first_leaves, first_splits
from forestprune.solve.subtrees.active import ActiveSet
from forestprune.system.threads import Crew


class Screening:
    """Trees without the nodes below those of few rows, and what these could gain at most.

    Attributes
    ----------
    rows : float
        Nodes are split if they have more weight than this; roots are in any case.
    """

    def __init__(self, whole: ActiveSet, costs: NDArray[np.float64], crew: Crew) -> None:
        trees = whole.trees
        first = first_splits(trees.offsets)
        node = np.repeat(trees.offsets[:-1], np.diff(first)) + trees.split
        self._whole, self._costs, self._crew = whole, costs, crew
        self._weight = trees.weight[node]
        self._weight[first[:-1][np.diff(first) > 0]] = np.inf  # roots
        self._cost = np.full(trees.weight.size, np.inf)
        self._cost[node] = costs
        self._spread = np.empty(trees.weight.size)
        crew.share(kernels.spread_below, np.arange(first.size - 1), trees, self._spread)
        self._place = np.full(trees.weight.size, -1, np.int32)
        self._coarse = whole
        self.rows = np.nan

    def cut(self, rows: float) -> None:
        """Leave out what is below nodes of so many rows."""
        if self._coarse is not self._whole:
            self._place[self._coarse.nodes] = -1
        whole, self.rows = self._whole, rows
        coarse = ActiveSet.of(whole.trees, whole.codes, self._weight > rows, self._crew)
        offsets = coarse.trees.offsets
        starts = np.repeat(offsets[:-1], np.diff(offsets))
        self._place[coarse.nodes] = np.arange(coarse.nodes.size) - starts
        starts = np.repeat(offsets[:-1], np.diff(first_leaves(offsets)))
        leaves = coarse.nodes[starts + coarse.trees.leaf]
        split_costs = seal(self._costs[coarse.splits])
        self._bounds = split_costs, self._spread[leaves], self._cost[leaves]
        self._coarse = coarse

    def gains_at_most(
        self,
        price: Price,
        row_weight: NDArray[np.float64],
        cut: Pruning,
        active: ActiveSet,
        gain: NDArray[np.float64],
    ) -> None:
        """Write into gain[i] what no pruning of tree i gains more than; `cut` is about `active`."""
        coarse, square = self._coarse, np.empty(cut.residual.shape[1])
        kernels.square_rows(row_weight, cut.residual, square)
        split_costs, spread, cost = self._bounds
        bounds = (price._replace(cost=split_costs), spread, cost)
        known = (cut, active.trees, active.nodes, self._place, gain)
        arguments = (coarse.codes, square, coarse.trees, *bounds, *known)
        self._crew.share(kernels.gains_at_most, np.arange(gain.size), *arguments)
