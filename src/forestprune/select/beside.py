"""Models of a path whose splits were chosen anew, and those that they stand beside."""

from collections.abc import Sequence
from typing import NamedTuple

from forestprune.solve.point import Point


class Beside(NamedTuple):
    """A model that is only pruned, and what new splits made of it, by their places in a path."""

    pruned: int
    polished: tuple[int, ...]

    @classmethod
    def of(cls, points: Sequence[Point], place: int) -> "Beside | None":
        """Return those that the point at a place belongs to; None if nothing there was polished.

        What new splits make of a point is beside it: both have the same alpha.
        """
        same = [i for i, each in enumerate(points) if each.alpha == points[place].alpha]
        polished = tuple(i for i in same if points[i].forest is not None)
        plain = [i for i in same if points[i].forest is None]
        if not polished or not plain or (place in plain and not points[place].n_trees):
            return None
        if points[place].forest is None:
            return cls(place, polished)
        # Several shrinkages may have points at an alpha: the largest of them is what was polished.
        return cls(max(plain, key=lambda i: points[i].n_nodes), polished)
