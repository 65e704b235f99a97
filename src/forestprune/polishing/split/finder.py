"""Finding the best split of a node, its columns shared between threads if that pays."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestprune import kernels
from forestprune.kernels.records import MOST_BINS, BinnedColumns, SplitPrice
from forestprune.polishing.split.rows import NodeRows
from forestprune.polishing.split.tree import Ends
from forestprune.system.threads import Crew, split_range

Floats = NDArray[np.float64]
Columns = NDArray[np.int64]

SHARED = 500_000
"""Rows times columns of a node from which on threads share them: handing over takes as long."""


@dataclass(frozen=True)
class Split:
    """The best split of a node; its column is -1 if none gains.

    Attributes
    ----------
    gain : float
        By how much the loss falls, or what rows that go left say that it does.
    column : int
    border : int
        Bins up to it go left; -1 of a set of categories.
    goes_left : bool array of shape (MOST_BINS,)
    """

    gain: float
    column: int
    border: int
    goes_left: NDArray[np.bool_]


class Finder:
    """Finds splits by the sums of what rows ask for, bin by bin.

    Parameters
    ----------
    bins : uint8 array of shape (n_columns, m)
        The bin of each row.
    about : BinnedColumns
    crew : Crew
    """

    def __init__(self, bins: NDArray[np.uint8], about: BinnedColumns, crew: Crew) -> None:
        self.bins, self.about = bins, about
        self._crew = crew
        self._spare: list[Floats] = []

    def add_up(self, columns: Columns, part: NodeRows, start: int, stop: int) -> Floats:
        """Return the sums by bins of some columns for the rows start..stop."""
        shape = (int(self.about.first[-1]), len(part.sums) + 1)
        fitting = self._spare and self._spare[-1].shape == shape
        sums = self._spare.pop() if fitting else np.empty(shape)
        threads = self._crew.size if (stop - start) * columns.size > SHARED else 1
        here = slice(start, stop)
        rest = (self.about.first, self.bins, part.rows[here], part.sums[:, here])
        tasks = [
            (columns[a:b], *rest, part.weight[here], sums)
            for a, b in split_range(columns.size, threads)
        ]
        self._crew.run(kernels.add_up_bins, tasks)
        return sums

    def take_away(self, columns: Columns, child: Floats, parent: Floats) -> Floats:
        """Return the sums of the other child, in the memory of those of the parent."""
        kernels.take_from_bins(columns, self.about.first, child, parent)
        return parent

    def release(self, sums: Floats) -> None:
        """Take back memory that is not needed any more."""
        self._spare.append(sums)

    def best(
        self, columns: Columns, sums: Floats, total: Floats, price: SplitPrice, ends: Ends
    ) -> Split:
        """Return the best split on some columns of a node with the sums `total`."""
        goes_left = np.empty(MOST_BINS, np.bool_)  # written if there is a split
        gain, column, border = kernels.best_split(
            columns, self.about, sums, total, price, *ends, goes_left
        )
        return Split(gain, column, border, goes_left)
