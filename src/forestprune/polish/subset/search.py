"""Best-subset selection without proof: thresholding, single moves, and shaking."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestprune.polish.subset.fit import DEPENDENT, Fit, Floats

# A move must improve by this share of what is explained, or rounding could go round in circles.
IMPROVEMENT = 1e-11

# Moves between two fits from scratch: updates are fast, and lose digits.
MOVES_PER_FIT = 64

# How many swaps to look at for one that keeps the support independent, before giving up.
SWAPS_TRIED = 200

# How much shaking may cost, in entries of tableaus looked at: about a second.
SHAKING_WORK = 2e8


@dataclass(frozen=True, eq=False)
class Search:
    """The scaled problem, v'Av - 2 b'v + penalty * #(v), and ways to solve it.

    The sizes of the columns with non-zero v add up to no more than the limit. Column i of it is
    column ``columns[i]`` of the original, whose weight is ``units[i] * v[i]``.
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
    def most(self) -> int:
        """How many columns a support may have at most."""
        return int(np.searchsorted(np.cumsum(np.sort(self.sizes)), self.limit, side="right"))

    def left(self, support: list[int]) -> int:
        """Return how much the limit leaves for further columns; negative if it is exceeded."""
        return self.limit - int(self.sizes[support].sum())

    def fit(self, support: ArrayLike, capacity: int | None = None, least: float = 0.0) -> Fit:
        """Fit the independent ones among the columns of `support`, from scratch."""
        fit = Fit(self.A, self.b, self.most if capacity is None else capacity)
        left = np.sort(np.asarray(support, dtype=np.intp))
        least = max(least, DEPENDENT)
        if fit.take_all(left, least):
            return fit
        while left.size:
            at = int(np.argmax(fit.distance[left]))  # the most independent one: few lost digits
            if fit.can_move(None, int(left[at]), least):
                fit.add(int(left[at]))
            left = np.delete(left, at)
        return fit

    def best(self, further: Sequence[ArrayLike] = ()) -> Fit:
        """Return the best fit from several starts; no single move improves it.

        `further` supports to start from must keep to the limit.
        """
        forward = self.forward()
        if self.penalty == 0 and self.most == len(self.b):
            return self.descend(forward)  # least squares: other starts end in the same
        starts = [Fit(self.A, self.b, 0), forward, self.backward()]
        supports = [self.threshold(start) for start in starts]
        fits = [self.descend(self.fit(support)) for support in (*supports, *further)]
        return self.shake(min(fits, key=self.value))

    def forward(self) -> Fit:
        """Add the column that explains most, again and again; return the best on the way."""
        fit = Fit(self.A, self.b, self.most)
        best, best_value = 0, 0.0
        # Two columns may pay together where neither does alone, so it goes on for a while.
        while len(fit.support) < min(self.most, 2 * best + 10):
            gains = fit.add_gains()
            gains[self.sizes > self.left(fit.support)] = -inf
            column, _ = _best_addition(fit, gains, IMPROVEMENT * fit.explained)
            if column is None:
                break
            fit.add(column)
            if (value := self.value(fit)) < best_value:
                best, best_value = len(fit.support), value
        return fit if best == len(fit.support) else self.fit(fit.support[:best])

    def backward(self) -> Fit:
        """Drop from all columns the one that is missed least for its size, again and again.

        Return the best on the way.
        """
        # Near dependence, no digit of the inverse would survive so many updates.
        fit = self.fit(np.arange(len(self.b)), capacity=len(self.b), least=1e-6)
        best, best_value = list[int](), 0.0
        while fit.support:
            if self.left(fit.support) >= 0 and (value := self.value(fit)) < best_value:
                best, best_value = list(fit.support), value
            fit.drop(int(np.argmin(fit.drop_costs() / self.sizes[fit.support])))
        return self.fit(best)

    def threshold(self, start: Fit) -> NDArray[np.intp]:
        """Return the support that iterative hard thresholding comes to from `start`.

        Each step minimises a bound on the objective that is separable and touches it at `v`, so
        that the objective never rises, as long as columns have the same size. Where they differ,
        the largest weights that there is room for are kept.
        """
        v = np.zeros(len(self.b))
        v[start.support] = start.weights
        cut = np.sqrt(self.penalty / self.largest_eigenvalue)
        kept = np.flatnonzero(v)
        unchanged = 0
        for _ in range(500):
            u = v - (self.A @ v - self.b) / self.largest_eigenvalue
            before, kept = kept, np.flatnonzero(np.abs(u) > cut)
            if self.sizes[kept].sum() > self.limit:
                kept = np.sort(
                    self._first_that_fit(kept[np.argsort(-np.abs(u[kept]), kind="stable")])
                )
            v = np.zeros(len(self.b))
            v[kept] = u[kept]
            # Weights need not converge: only the support goes on from here.
            unchanged = unchanged + 1 if np.array_equal(before, kept) else 0
            if unchanged == 20:
                break
        return kept

    def selection(self, columns: ArrayLike) -> NDArray[np.intp]:
        """Return, of some columns of the original, those that there is room for, as ours."""
        place = {column: i for i, column in enumerate(self.columns.tolist())}
        ours = [place[column] for column in np.asarray(columns).tolist() if column in place]
        return self._first_that_fit(np.array(ours, dtype=np.intp))

    def _first_that_fit(self, columns: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the columns that are left if each that finds no more room is skipped."""
        left, taken = self.limit, list[int]()
        for column, size in zip(columns.tolist(), self.sizes[columns].tolist(), strict=True):
            if size <= left:
                taken.append(column)
                left -= size
        return np.array(taken, dtype=np.intp)

    def descend(self, fit: Fit) -> Fit:
        """Take the best move as long as there is one that improves."""
        return self._descend(fit)[0]

    def _descend(self, fit: Fit, banned: int = -1) -> tuple[Fit, float]:
        """Descend with moves that do not add column `banned`; return also the work it took."""
        work = 0.0
        value = self.value(fit)
        checked = fit.copy()
        moves = 0
        while True:
            work += (len(fit.support) + 1) * len(self.b)
            move = self._best_move(fit, banned)
            if move is not None:
                _make_move(fit, move)
                moves += 1
            if moves == MOVES_PER_FIT or (move is None and moves):
                # What looked like progress may have been lost digits: see what is really there.
                work += 10 * (len(fit.support) + 1) * len(self.b)
                fit = self.fit(fit.support)
                if self.value(fit) >= value - IMPROVEMENT / 10 * fit.explained:
                    return checked, work
                value, checked, moves = self.value(fit), fit.copy(), 0
            elif move is None:
                return fit, work

    def _best_move(self, fit: Fit, banned: int) -> tuple[int | None, int | None] | None:
        """Return which position to drop and which column to add, or None if nothing improves."""
        least = IMPROVEMENT * (fit.explained + self.penalty * len(fit.support))
        position, column = None, None
        drop = add = 0.0
        if fit.support:
            costs = fit.drop_costs()
            position = int(np.argmin(costs))
            drop = self.penalty - costs[position]
        left = self.left(fit.support)
        if len(fit.support) < self.most:
            gains = fit.add_gains() - self.penalty
            gains[self.sizes > left] = -inf
            if banned >= 0:
                gains[banned] = -inf
            column, add = _best_addition(fit, gains, least)
        if max(drop, add) > least:
            return (position, None) if drop >= add else (None, column)
        # Swaps cost most to look at, so they come last.
        outside = np.ones(len(self.b), dtype=bool)
        outside[fit.support] = False
        if banned >= 0:
            outside[banned] = False
        columns = np.flatnonzero(outside)
        if not fit.support or not columns.size:
            return None
        swaps = fit.swap_gains(columns)
        swaps[self.sizes[columns] > left + self.sizes[fit.support][:, None]] = -inf
        for _ in range(SWAPS_TRIED):
            position, at = divmod(int(np.argmax(swaps)), columns.size)
            if swaps[position, at] <= least:
                break
            if fit.can_move(position, int(columns[at])):
                return position, int(columns[at])
            swaps[position, at] = -inf
        return None

    def shake(self, fit: Fit) -> Fit:
        """Take out one member, descend without it, let it back in: until that helps no more."""
        work = 0.0
        better = True
        while better:
            better = False
            for position in np.argsort(fit.drop_costs(), kind="stable"):
                if work > SHAKING_WORK:
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


def _best_addition(fit: Fit, gains: Floats, least: float) -> tuple[int | None, float]:
    """Return the column with the largest gain, and that, if it is more than `least`."""
    while True:
        column = int(np.argmax(gains))
        if gains[column] <= least:
            return None, 0.0
        if fit.can_move(None, column):
            return column, float(gains[column])
        gains[column] = -inf


def _make_move(fit: Fit, move: tuple[int | None, int | None]) -> None:
    position, column = move
    if position is not None:
        fit.drop(position)
    if column is not None:
        fit.add(column)
