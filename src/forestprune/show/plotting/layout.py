"""Where the nodes of trees are drawn, and the trees in rows."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from forestprune.forest.forest import Forest

GAP = 0.55
"""Between trees, in widths of a leaf."""

HEAD = 1.3
"""Above and below the nodes of a row, in layers."""


@dataclass(frozen=True)
class Place:
    """A node: its place in the drawing, in leaves and layers, and its children."""

    node: int
    x: float
    depth: int
    children: tuple["Place", ...] = ()

    def __iter__(self) -> Iterator["Place"]:
        yield self
        for child in self.children:
            yield from child

    @property
    def leaves(self) -> int:
        """Number of leaves below, side by side."""
        return sum(not place.children for place in self)

    @property
    def layers(self) -> int:
        """Depth of the deepest node below."""
        return max(place.depth for place in self)


def place_nodes(forest: Forest, tree: int) -> Place:
    """Put the leaves of a tree side by side, and every split above the middle of its children."""
    start, taken = int(forest.offsets[tree]), 0

    def put(local: int, depth: int) -> Place:
        nonlocal taken
        left = int(forest.left[start + local])
        if left < 0:
            taken += 1
            return Place(start + local, taken - 1.0, depth)
        children = (put(left, depth + 1), put(left + 1, depth + 1))
        return Place(start + local, sum(c.x for c in children) / 2, depth, children)

    return put(0, 0)


@dataclass(frozen=True)
class Rows:
    """Trees in rows of about the same width, measured in leaves and layers."""

    trees: tuple[tuple[Place, ...], ...]

    @property
    def width(self) -> float:
        """Width of the widest row."""
        return max(map(row_width, self.trees))

    @property
    def heights(self) -> list[float]:
        """Height of each row."""
        return [max(tree.layers for tree in row) + HEAD for row in self.trees]

    @property
    def height(self) -> float:
        """Height of all rows."""
        return sum(self.heights)

    @classmethod
    def of(cls, trees: list[Place], aspect: float) -> "Rows":
        """Fill rows with trees, in their order, so that width / height is near `aspect`."""
        candidates = [cls(_fill(trees, count)) for count in range(1, len(trees) + 1)]
        return min(candidates, key=lambda rows: abs(math.log(rows.width / rows.height / aspect)))


def row_width(row: tuple[Place, ...]) -> float:
    """Return the width of some trees side by side."""
    return sum(tree.leaves + GAP for tree in row)


def _fill(trees: list[Place], count: int) -> tuple[tuple[Place, ...], ...]:
    widths = [tree.leaves + GAP for tree in trees]
    rows: list[list[Place]] = [[]]
    for tree, width, end in zip(trees, widths, accumulate(widths), strict=True):
        # A tree goes into the row that has its middle.
        if rows[-1] and end - width / 2 > len(rows) * sum(widths) / count:
            rows.append([])
        rows[-1].append(tree)
    return tuple(map(tuple, rows))
