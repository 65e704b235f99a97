"""Best-subset selection without proof: iterative hard thresholding (section 2.4), and local moves.

A move adds, drops or swaps one column. Supports to start from are those of forward selection and
backward elimination, thresholded; from each the best moves are taken until none improves. In the
end each column is once forced out and let back in, which is called shaking.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestprune.polishing.subset.fit import DEPENDENT, Fit, Floats

IMPROVEMENT = 1e-11
"""The share of what is explained by which a move must improve, or rounding could cause cycles."""

MOVES_PER_FIT = 64
"""Moves between two fits from scratch: updates are fast, and lose digits."""

SWAPS_TRIED = 200
"""How many swaps to try for one that keeps the support independent."""

SHAKING_WORK = 2e8
"""How much shaking may cost, in entries of tableaus read: about a second."""


@dataclass(frozen=True, eq=False)
class Search:
    """The scaled problem, v'Av - 2 b'v + penalty * #(v), and ways to solve it.

    The sizes of the columns with non-zero v add up to at most `limit`. Column i is column
    ``columns[i]`` of the original, whose weight is ``units[i] * v[i]``.
    """

    A: Floats
    b: Floats
    sizes: NDArray[np.int64]
    limit: int
    penalty: float
    largest_eigenvalue: float
    columns: NDArray[np.intp]
    units: Floats

    def value(self, fit: Fit) -> float:
        """Return what is minimised."""
        return self.penalty * len(fit.support) - fit.explained

    @cached_property
    def max_columns(self) -> int:
        """How many columns a support can have."""
        return int(np.searchsorted(np.cumsum(np.sort(self.sizes)), self.limit, side="right"))

    def room(self, support: list[int]) -> int:
        """Return what size is left for further columns; negative if the limit is exceeded."""
        return self.limit - int(self.sizes[support].sum())

    def fit(
        self, support: ArrayLike, capacity: int | None = None, min_distance: float = DEPENDENT
    ) -> Fit:
        """Fit the columns of `support`, without those that depend on others, from scratch."""
        fit = Fit(self.A, self.b, self.max_columns if capacity is None else capacity)
        columns = np.sort(np.asarray(support, dtype=np.intp))
        if fit.take_all(columns, min_distance):
            return fit
        while columns.size:
            at = int(np.argmax(fit.distance[columns]))  # the most independent: few lost digits
            if fit.can_move(None, int(columns[at]), min_distance):
                fit.add(int(columns[at]))
            columns = np.delete(columns, at)
        return fit

    def best(self, further: Sequence[ArrayLike] = ()) -> Fit:
        """Return the best fit from several starts; no single move improves it.

        `further` supports to start from must keep to the limit.
        """
        forward = self.forward()
        if self.penalty == 0 and self.max_columns == len(self.b):
            return self.descend(forward)  # least squares: other starts end in the same place
        starts = [Fit(self.A, self.b, 0), forward, self.backward()]
        supports = [self.threshold(start) for start in starts]
        fits = [self.descend(self.fit(support)) for support in (*supports, *further)]
        return self.shake(min(fits, key=self.value), SHAKING_WORK)

    def forward(self) -> Fit:
        """Add the column that explains most, again and again; return the best fit on the way."""
        fit = Fit(self.A, self.b, self.max_columns)
        best, best_value = 0, 0.0
        # Two columns may pay together where neither does alone, so it goes on for a while.
        while len(fit.support) < min(self.max_columns, 2 * best + 10):
            gains = fit.add_gains()
            gains[self.sizes > self.room(fit.support)] = -inf
            column, _ = _best_addition(fit, gains, IMPROVEMENT * fit.explained)
            if column is None:
                break
            fit.add(column)
            if (value := self.value(fit)) < best_value:
                best, best_value = len(fit.support), value
        return fit if best == len(fit.support) else self.fit(fit.support[:best])

    def backward(self) -> Fit:
        """Drop the column whose loss costs least for its size, again and again, from all of them.

        Return the best fit on the way.
        """
        # Near dependence, no digit of the inverse would survive so many updates.
        fit = self.fit(np.arange(len(self.b)), capacity=len(self.b), min_distance=1e-6)
        best, best_value = list[int](), 0.0
        while fit.support:
            if self.room(fit.support) >= 0 and (value := self.value(fit)) < best_value:
                best, best_value = list(fit.support), value
            fit.drop(int(np.argmin(fit.drop_costs() / self.sizes[fit.support])))
        return self.fit(best)

    def threshold(self, start: Fit) -> NDArray[np.intp]:
        """Return the support that iterative hard thresholding reaches from `start`.

        Each step minimises a separable upper bound of the objective that is tight at `v`, so that
        the objective never rises, as long as columns have the same size. Where sizes differ, the
        largest weights that fit into the limit are kept.
        """
        v = np.zeros(len(self.b))
        v[start.support] = start.weights
        smallest = np.sqrt(self.penalty / self.largest_eigenvalue)
        kept, unchanged = np.flatnonzero(v), 0
        for _ in range(500):
            u = v - (self.A @ v - self.b) / self.largest_eigenvalue
            before, kept = kept, np.flatnonzero(np.abs(u) > smallest)
            if self.sizes[kept].sum() > self.limit:
                by_weight = kept[np.argsort(-np.abs(u[kept]), kind="stable")]
                kept = np.sort(self._first_that_fit(by_weight))
            v = np.zeros(len(self.b))
            v[kept] = u[kept]
            # Weights need not converge: only the support goes on from here.
            unchanged = unchanged + 1 if np.array_equal(before, kept) else 0
            if unchanged == 20:
                break
        return kept

    def selection(self, columns: ArrayLike) -> NDArray[np.intp]:
        """Return which of our columns some columns of the original are, within the limit."""
        place = {column: i for i, column in enumerate(self.columns.tolist())}
        ours = [place[column] for column in np.asarray(columns).tolist() if column in place]
        return self._first_that_fit(np.array(ours, dtype=np.intp))

    def _first_that_fit(self, columns: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the columns in order, without those that exceed the limit."""
        room, taken = self.limit, list[int]()
        for column, size in zip(columns.tolist(), self.sizes[columns].tolist(), strict=True):
            if size <= room:
                taken.append(column)
                room -= size
        return np.array(taken, dtype=np.intp)

    def descend(self, fit: Fit) -> Fit:
        """Take the best move as long as there is one that improves."""
        return self._descend(fit)[0]

    def _descend(self, fit: Fit, banned: int | None = None) -> tuple[Fit, float]:
        """Descend with moves that do not add column `banned`; return also the work it took."""
        value, checked, moves, work = self.value(fit), fit.copy(), 0, 0.0
        while True:
            work += (len(fit.support) + 1) * len(self.b)
            move = self._best_move(fit, banned)
            if move is not None:
                position, column = move
                if position is not None:
                    fit.drop(position)
                if column is not None:
                    fit.add(column)
                moves += 1
            if moves == MOVES_PER_FIT or (move is None and moves):
                # What looked like progress may have been lost digits: fit again to check.
                work += 10 * (len(fit.support) + 1) * len(self.b)
                fit = self.fit(fit.support)
                if self.value(fit) >= value - IMPROVEMENT / 10 * fit.explained:
                    return checked, work
                value, checked, moves = self.value(fit), fit.copy(), 0
            elif move is None:
                return fit, work

    def _best_move(self, fit: Fit, banned: int | None) -> tuple[int | None, int | None] | None:
        """Return which position to drop and which column to add, or None if nothing improves."""
        min_gain = IMPROVEMENT * (fit.explained + self.penalty * len(fit.support))
        position, column = None, None
        drop = add = 0.0
        if fit.support:
            costs = fit.drop_costs()
            position = int(np.argmin(costs))
            drop = self.penalty - costs[position]
        room, outside = self.room(fit.support), np.ones(len(self.b), dtype=bool)
        outside[fit.support] = False
        if banned is not None:
            outside[banned] = False
        if len(fit.support) < self.max_columns:
            gains = np.where(outside & (self.sizes <= room), fit.add_gains() - self.penalty, -inf)
            column, add = _best_addition(fit, gains, min_gain)
        if max(drop, add) > min_gain:
            return (position, None) if drop >= add else (None, column)
        # Swaps are the most expensive to evaluate, so they come last.
        columns = np.flatnonzero(outside)
        if not fit.support or not columns.size:
            return None
        swaps = fit.swap_gains(columns)
        swaps[self.sizes[columns] > room + self.sizes[fit.support][:, None]] = -inf
        for _ in range(SWAPS_TRIED):
            position, at = divmod(int(np.argmax(swaps)), columns.size)
            if swaps[position, at] <= min_gain:
                break
            if fit.can_move(position, int(columns[at])):
                return position, int(columns[at])
            swaps[position, at] = -inf
        return None

    def shake(self, fit: Fit, max_work: float) -> Fit:
        """Drop one column, descend without it, let it back in: until that no longer improves."""
        work, better = 0.0, True
        while better:
            better = False
            for position in np.argsort(fit.drop_costs(), kind="stable"):
                if work > max_work:
                    return fit
                other = fit.copy()
                other.drop(int(position))
                other, first = self._descend(other, fit.support[position])
                other, second = self._descend(other)
                work += first + second
                if self.value(other) < self.value(fit) - IMPROVEMENT * fit.explained:
                    fit, better = other, True
                    break
        return fit


def _best_addition(fit: Fit, gains: Floats, min_gain: float) -> tuple[int | None, float]:
    """Return the independent column with the largest gain, and that, if above `min_gain`."""
    while True:
        column = int(np.argmax(gains))
        if gains[column] <= min_gain:
            return None, 0.0
        if fit.can_move(None, column):
            return column, float(gains[column])
        gains[column] = -inf
