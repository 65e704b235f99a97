"""The rows of one tree, those of each node side by side."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestprune import kernels
from forestprune.polishing.split.tree import BinnedTree

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Asked:
    """What rows ask of a tree, all others fixed: see `kernels/splits.py`.

    Attributes
    ----------
    sums : float64 array of shape (n_outputs, m)
        The negative gradient, and what the tree adds now times the Hessian, times row weights.
    weight : float64 array of shape (m,)
        The Hessian, times row weights.
    """

    sums: Floats
    weight: Floats


class NodeRows:
    """Rows in the order of a tree's nodes, with what they ask for in the same order.

    Attributes
    ----------
    rows : int32 array of shape (n,)
    sums : float64 array of shape (n_outputs, n)
    weight : float64 array of shape (n,)
    """

    def __init__(self, rows: NDArray[np.int32], asked: Asked) -> None:
        self.rows = rows.copy()
        self.sums = np.ascontiguousarray(asked.sums[:, rows])
        self.weight = asked.weight[rows]
        self._spare_rows = np.empty_like(self.rows)
        self._spare = np.empty((len(self.sums) + 1, rows.size))

    def part(
        self, column: NDArray[np.uint8], goes_left: NDArray[np.bool_], start: int, stop: int
    ) -> int:
        """Bring those of start..stop that go left before the others; return where these begin."""
        here = slice(start, stop)
        lefts = kernels.part_rows(
            column,
            goes_left,
            self.rows[here],
            self.sums[:, here],
            self.weight[here],
            self._spare_rows,
            self._spare,
        )
        return start + int(lefts)

    def total(self, start: int, stop: int) -> Floats:
        """Return the sums of rows start..stop, and last what they weigh."""
        total = np.empty(len(self.sums) + 1)
        kernels.total_of_rows(self.sums[:, start:stop], self.weight[start:stop], total)
        return total

    def may_part(self, start: int, stop: int, least_weight: float) -> bool:
        """Tell whether rows start..stop weigh enough for two leaves, but for rounding."""
        return float(self.weight[start:stop].sum()) >= 2.0 * least_weight * (1.0 - 1e-9)


class LeafOrder:
    """Leaves from left to right: rows sorted by them stand together for each node.

    Attributes
    ----------
    rank : int64 array of shape (n_nodes,)
        Of each leaf; -1 for splits.
    """

    def __init__(self, tree: BinnedTree, leaf: NDArray[np.int32], used: NDArray[np.int32]) -> None:
        left = tree.left.tolist()
        counts = [1] * len(left)
        for v in range(len(left) - 1, -1, -1):
            if left[v] >= 0:
                counts[v] = counts[left[v]] + counts[left[v] + 1]
        first = [0] * len(left)
        for v, child in enumerate(left):
            if child >= 0:
                first[child], first[child + 1] = first[v], first[v] + counts[child]
        self._first, self._counts = first, counts
        self.rank = np.where(tree.left < 0, first, -1)
        sizes = np.bincount(self.rank[leaf[used]], minlength=tree.n_leaves)
        self._bounds = np.concatenate([[0], np.cumsum(sizes)])
        self.rows = used.copy()
        kernels.order_rows(leaf, self.rank, self._bounds[:-1].copy(), self.rows, used.copy())

    def span(self, node: int) -> tuple[int, int]:
        """Return where the rows of a node begin and end."""
        first = self._first[node]
        return int(self._bounds[first]), int(self._bounds[first + self._counts[node]])

    def move(self, leaf: int, start: int, stop: int) -> None:
        """Take note of where the rows of a leaf are now."""
        first = self._first[leaf]
        self._bounds[first], self._bounds[first + 1] = start, stop
