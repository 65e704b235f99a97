"""The trees whose plain average is best, within a size limit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

IMPROVEMENT = 1e-11
"""The share of the largest inner product by which a move must improve, or rounding might cycle."""


FIRST_TREES = 30
"""From how many of the trees that are best alone the search begins."""


@dataclass(eq=False)
class BestAverage:
    """The squared error of averages of trees, from inner products, and a search for the least.

    With n trees selected, z being 1 for these and 0 for others, what is minimised is
    ``z' gram z / n^2 - 2 moments' z / n``, which is 0 without any. No addition, removal or exchange
    of a single tree improves what is found; it is not known how much better others are.

    Attributes
    ----------
    gram : float64 array of shape (p, p)
    moments : float64 array of shape (p,)
    sizes : int64 array of shape (p,)
        Of each tree.
    max_size : int
        What sizes of those selected may add up to.
    """

    gram: Floats
    moments: Floats
    sizes: NDArray[np.int64]
    max_size: int
    _least: float = field(init=False)

    def __post_init__(self) -> None:
        self._least = IMPROVEMENT * float(np.abs(self.gram).max(initial=0.0))

    def value(self, chosen: NDArray[np.bool_]) -> float:
        """Return what is minimised."""
        n = np.count_nonzero(chosen)
        if not n:
            return 0.0
        within = self.gram[np.ix_(chosen, chosen)].sum()
        return float(within / n**2 - 2.0 * self.moments[chosen].sum() / n)

    def search(self, starts: Iterable[NDArray[np.bool_]]) -> NDArray[np.bool_]:
        """Return the best selection that is found from several, and from trees one by one."""
        alone = np.diag(self.gram) - 2.0 * self.moments
        begun = [start for start in starts if self._room(start) >= 0]
        for tree in np.argsort(alone, kind="stable")[:FIRST_TREES]:
            if self.sizes[tree] <= self.max_size:
                begun.append(self._grown(int(tree)))
        nothing = np.zeros(self.moments.size, np.bool_)
        return min([nothing, *map(self._descended, begun)], key=self.value)

    def _grown(self, first: int) -> NDArray[np.bool_]:
        """Add the best tree as long as there is room; return the best selection on the way."""
        chosen: NDArray[np.bool_] = np.arange(self.moments.size) == first
        best, least = chosen.copy(), self.value(chosen)
        while True:
            values = self._if_added(chosen)
            if not np.isfinite(values).any():
                return best
            chosen[int(np.argmin(values))] = True
            if (value := self.value(chosen)) < least:
                best, least = chosen.copy(), value

    def _descended(self, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Make the best move as long as one improves."""
        chosen, value = chosen.copy(), self.value(chosen)
        while True:
            moves = [self._if_added(chosen), self._if_dropped(chosen), self._if_swapped(chosen)]
            kind = int(np.argmin([move.min(initial=np.inf) for move in moves]))
            if not moves[kind].size or moves[kind].min() >= value - self._least:
                return chosen
            place = np.unravel_index(np.argmin(moves[kind]), moves[kind].shape)
            chosen[list(place)] ^= True
            value = self.value(chosen)

    def _room(self, chosen: NDArray[np.bool_]) -> int:
        return self.max_size - int(self.sizes[chosen].sum())

    def _if_added(self, chosen: NDArray[np.bool_]) -> Floats:
        """Return the value with each further tree; infinite where it cannot be added."""
        n = np.count_nonzero(chosen) + 1
        with_it = self.gram[np.ix_(chosen, chosen)].sum() + np.diag(self.gram)
        with_it = with_it + 2.0 * self.gram[:, chosen].sum(axis=1)
        fit = self.moments[chosen].sum() + self.moments
        allowed = ~chosen & (self.sizes <= self._room(chosen))
        return np.where(allowed, with_it / n**2 - 2.0 * fit / n, np.inf)

    def _if_dropped(self, chosen: NDArray[np.bool_]) -> Floats:
        """Return the value without each tree that is chosen."""
        n = np.count_nonzero(chosen) - 1
        if n < 1:
            return np.where(chosen, 0.0, np.inf)
        without = self.gram[np.ix_(chosen, chosen)].sum() + np.diag(self.gram)
        without = without - 2.0 * self.gram[:, chosen].sum(axis=1)
        fit = self.moments[chosen].sum() - self.moments
        return np.where(chosen, without / n**2 - 2.0 * fit / n, np.inf)

    def _if_swapped(self, chosen: NDArray[np.bool_]) -> Floats:
        """Return the value with one tree, by rows, in place of another, by columns."""
        n = np.count_nonzero(chosen)
        if not n:
            return np.full((self.moments.size, self.moments.size), np.inf)
        shared, own = self.gram[:, chosen].sum(axis=1), np.diag(self.gram)
        sums = self.gram[np.ix_(chosen, chosen)].sum() - 2.0 * shared + own
        sums = sums + (2.0 * shared + own)[:, np.newaxis] - 2.0 * self.gram
        fit = self.moments[chosen].sum() + self.moments[:, np.newaxis] - self.moments
        fits = self.sizes[:, np.newaxis] - self.sizes <= self._room(chosen)
        allowed = ~chosen[:, np.newaxis] & chosen & fits
        return np.where(allowed, sums / n**2 - 2.0 * fit / n, np.inf)
