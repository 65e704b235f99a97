"""A tree grown anew: the split that gains most first, until it has as many leaves as it may."""

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestprune.kernels.records import SplitPrice
from forestprune.polishing.split.allowed import Allowed
from forestprune.polishing.split.finder import Finder, Split
from forestprune.polishing.split.rows import Asked, NodeRows
from forestprune.polishing.split.tree import BinnedTree
from forestprune.polishing.split.values import LeafValues

Floats = NDArray[np.float64]


@dataclass(eq=False)
class _Node:
    """A node that may be split: where its rows are, and what may be asked of them."""

    start: int
    stop: int
    allowed: Allowed
    depth: int = 0
    sums: Floats | None = None
    split: Split | None = None


class Growth:
    """A tree that grows.

    Parameters
    ----------
    finder : Finder
    asked : Asked
    used : int32 array
        The rows that count.
    allowed : Allowed
        What may be split on.
    n_leaves : int
        How many it may have.
    price : SplitPrice
    max_depth : int or None
    bounded : bool
        Whether splits on columns with a sign bound what is below them.
    """

    def __init__(
        self,
        finder: Finder,
        asked: Asked,
        used: NDArray[np.int32],
        allowed: Allowed,
        n_leaves: int,
        price: SplitPrice,
        *,
        max_depth: int | None = None,
        bounded: bool = False,
    ) -> None:
        self._finder, self._price = finder, price
        self._values = LeafValues(price.shrinkage)
        self._most, self._max_depth = 2 * n_leaves - 1, max_depth
        self._tree = BinnedTree.blank(self._most, len(asked.sums), bounded=bounded)
        self._part = NodeRows(used, asked)
        self._nodes = [_Node(0, used.size, allowed)]
        self._waiting: list[tuple[float, int]] = []

    def grow(self, leaf: NDArray[np.int32]) -> BinnedTree:
        """Return the tree, and write into `leaf` which of its nodes rows are in."""
        if self._most > 1:
            root = self._nodes[0]
            if self._may_split(root):
                root.sums = self._finder.add_up(root.allowed.columns, self._part, 0, root.stop)
            self._look_at(0)
        while self._waiting and len(self._nodes) < self._most:
            _, v = heapq.heappop(self._waiting)
            self._split(v)
        for v, node in enumerate(self._nodes):
            self._forget(node)
            if self._tree.left[v] < 0:
                leaf[self._part.rows[node.start : node.stop]] = v
        return self._tree.first(len(self._nodes))

    def _look_at(self, v: int) -> None:
        """Find the best split of a node whose sums are there."""
        node = self._nodes[v]
        if node.sums is None:
            return
        total, ends = self._part.total(node.start, node.stop), self._tree.ends(v)
        found = self._finder.best(node.allowed.columns, node.sums, total, self._price, ends)
        if found.column >= 0:
            node.split = found
            heapq.heappush(self._waiting, (-found.gain, v))
        else:
            self._forget(node)

    def _forget(self, node: _Node) -> None:
        """Let go of the sums of a node that is not split."""
        if node.sums is not None:
            self._finder.release(node.sums)
            node.sums = None

    def _may_split(self, node: _Node) -> bool:
        """Tell whether a node is not too deep and has rows enough for two leaves."""
        if self._max_depth is not None and node.depth >= self._max_depth:
            return False
        return self._part.may_part(node.start, node.stop, self._price.least_weight)

    def _split(self, v: int) -> None:
        """Give a node its best split, and look at its children unless they are the last."""
        node, tree, part, finder = self._nodes[v], self._tree, self._part, self._finder
        split, sums, child = node.split, node.sums, len(self._nodes)
        if split is None or sums is None:
            raise AssertionError("only nodes with a split wait for it")
        tree.left[v] = child
        tree.ask(v, split.column, split.border, split.goes_left)
        tree.gain[v] = split.gain
        middle = part.part(finder.bins[split.column], split.goes_left, node.start, node.stop)
        below = node.allowed.below(split.column)
        left = _Node(node.start, middle, below, node.depth + 1)
        right = _Node(middle, node.stop, below, node.depth + 1)
        self._nodes += [left, right]
        if tree.bounded:
            self._bound(v, left, right)
        node.sums = None
        full = len(self._nodes) >= self._most
        splittable = [] if full else [each for each in (left, right) if self._may_split(each)]
        if not splittable:
            finder.release(sums)
            return
        small, large = (
            (left, right) if left.stop - left.start <= right.stop - middle else (right, left)
        )
        columns = below.columns
        small.sums = finder.add_up(columns, part, small.start, small.stop)
        large.sums = finder.take_away(columns, small.sums, sums)
        for place, each in ((child, left), (child + 1, right)):
            if each in splittable:
                self._look_at(place)
            else:
                self._forget(each)

    def _bound(self, v: int, left: _Node, right: _Node) -> None:
        """Pass on the bounds of a node; on a column with a sign, with one between its children."""
        tree, low, high = self._tree, self._tree.low, self._tree.high
        child = int(tree.left[v])
        for place in (child, child + 1):
            low[:, place], high[:, place] = low[:, v], high[:, v]
        sign = self._finder.about.sign[tree.feature[v]]
        if not sign:
            return
        best = []
        for node in (left, right):
            value = self._values.best(self._part.total(node.start, node.stop))
            best.append(np.clip(value, low[:, v], high[:, v]))
        lower, upper = (child, child + 1) if sign > 0 else (child + 1, child)
        high[:, lower] = low[:, upper] = 0.5 * best[0] + 0.5 * best[1]
