"""The splits of a tree chosen anew from the leaves up, the subtrees below them held fixed.

Tree alternating optimisation: of the rows in a node each says by how much the loss falls if it goes
to the left subtree rather than to the right one, both as they are, and the best split is the one
that sends left what says most. Above two leaves the split is chosen together with their values.
"""

import numpy as np
from numpy.typing import NDArray

from forestprune import kernels
from forestprune.kernels.records import SplitPrice
from forestprune.polishing.split.finder import Finder, Split
from forestprune.polishing.split.rows import Asked, LeafOrder, NodeRows
from forestprune.polishing.split.tree import UNBOUNDED, BinnedTree
from forestprune.polishing.split.values import LeafValues

Floats = NDArray[np.float64]

LEAST_GAIN = 1e-9
"""A split must be better than the present one by this share of what both gain."""


class Reform:
    """The splits of one tree, chosen anew one after the other.

    Parameters
    ----------
    finder : Finder
    tree : BinnedTree
        It stays as it is.
    leaf : int32 array of shape (m,)
        In which leaf rows are; it stays, too.
    asked : Asked
    used : int32 array
        The rows that count.
    columns : int64 array
        What may be split on.
    price : SplitPrice
    """

    def __init__(
        self,
        finder: Finder,
        tree: BinnedTree,
        leaf: NDArray[np.int32],
        asked: Asked,
        used: NDArray[np.int32],
        columns: NDArray[np.int64],
        price: SplitPrice,
    ) -> None:
        self._finder, self._columns, self._price = finder, columns, price
        self._tree, self._leaf = tree.copy(), leaf.copy()
        self._order = LeafOrder(tree, leaf, used)
        self._part = NodeRows(self._order.rows, asked)
        self._values = LeafValues(price.shrinkage)

    def choose(self) -> tuple[BinnedTree, NDArray[np.int32]] | None:
        """Return the tree with other splits, and in which leaf rows are; None if all stay."""
        tree, changed = self._tree, False
        self._settle(tree.leaves.tolist())
        for v in np.flatnonzero(tree.left >= 0)[::-1].tolist():
            start, stop = self._order.span(v)
            if not self._part.may_part(start, stop, self._price.least_weight):
                continue
            child = int(tree.left[v])
            above_leaves = tree.left[child] < 0 and tree.left[child + 1] < 0
            look = self._with_values if above_leaves else self._with_subtrees
            split, present = look(child, start, self._order.span(child)[1], stop)
            tree.gain[v] = present
            if split.column < 0 or split.gain - present <= LEAST_GAIN * abs(split.gain):
                continue
            changed = True
            tree.ask(v, split.column, split.border, split.goes_left)
            tree.gain[v] = split.gain
            self._send_down(v, start, stop)
            if above_leaves:
                self._settle([child, child + 1])
        return (tree, self._leaf) if changed else None

    def _with_values(self, _: int, start: int, middle: int, stop: int) -> tuple[Split, float]:
        """Return the best split above two leaves with new values, and the gain of the present."""
        part, price = self._part, self._price
        sums = self._finder.add_up(self._columns, part, start, stop)
        whole = part.total(start, stop)
        split = self._finder.best(self._columns, sums, whole, price, UNBOUNDED)
        self._finder.release(sums)
        lefts = part.total(start, middle)
        falls = []
        for total in (lefts, whole - lefts, whole):
            falls.append(0.5 * float(self._values.best(total) @ total[:-1]))
        return split, falls[0] + falls[1] - falls[2]

    def _with_subtrees(self, child: int, start: int, middle: int, stop: int) -> tuple[Split, float]:
        """Return the best split above two subtrees as they are, and the gain of the present."""
        tree, part, here = self._tree, self._part, slice(start, stop)
        falls = np.zeros((2, stop - start))
        for side in range(2):
            kernels.fall_at_leaves(
                self._finder.bins,
                part.rows[here],
                tree.left,
                tree.feature,
                tree.goes_left,
                child + side,
                tree.value,
                part.sums[:, here],
                part.weight[here],
                falls[side],
            )
        more = falls[0] - falls[1]
        weight = part.weight[here]
        own = NodeRows(np.arange(more.size, dtype=np.int32), Asked(more[np.newaxis], weight))
        own.rows = part.rows[here]
        sums = self._finder.add_up(self._columns, own, 0, more.size)
        price = self._price._replace(shrinkage=0.0, linear=True)
        total = own.total(0, more.size)
        split = self._finder.best(self._columns, sums, total, price, UNBOUNDED)
        self._finder.release(sums)
        return split, float(more[: middle - start].sum())

    def _settle(self, leaves: list[int]) -> None:
        """Give leaves their best values."""
        for v in leaves:
            total = self._part.total(*self._order.span(v))
            self._tree.value[:, v] = self._values.best(total)

    def _send_down(self, v: int, start: int, stop: int) -> None:
        """Part the rows of a node among the leaves below it."""
        waiting = [(v, start, stop)]
        while waiting:
            v, start, stop = waiting.pop()
            child = int(self._tree.left[v])
            if child < 0:
                self._leaf[self._part.rows[start:stop]] = v
                self._order.move(v, start, stop)
                continue
            self._tree.keep_to_bins(v)  # for these say now where rows go
            column = self._finder.bins[self._tree.feature[v]]
            middle = self._part.part(column, self._tree.goes_left[v], start, stop)
            waiting += [(child, start, middle), (child + 1, middle, stop)]
