"""All rows, of which a sample is pruned with."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from forestprune.blocks.blocks import Blocks
from forestprune.interop.source import Source
from forestprune.rows.encoding import code_dtype
from forestprune.select.measuring import Measured, Measuring, Together
from forestprune.select.routed import RoutedRows
from forestprune.select.sampling import (
    Chances,
    as_seen_by,
    drawn,
    stands_for_all,
    survey,
    weights_of,
)

SAMPLE_BYTES = 2**29
"""What the leaves that rows of a sample end in may take, if all rows are more than memory holds."""


class AllRows(ABC):
    """All rows.

    Attributes
    ----------
    n_rows : int
        Known once a sample was drawn.
    class_counts : int64 array
        How many of them each class has; of one entry if y is no class. Known then, too.
    """

    n_rows: int
    class_counts: NDArray[np.int64]

    @property
    @abstractmethod
    def largest_sample(self) -> int:
        """Rows that a sample may have at most, unless all are taken."""

    def size_for(self, wanted: int) -> int:
        """Return how many rows a sample has if so many are wanted."""
        return min(wanted, self.largest_sample)

    @abstractmethod
    def sample(self, size: int) -> RoutedRows:
        """Return some rows that stand for all, or all if these are no more than `size`."""

    @abstractmethod
    def measure(self, measuring: Measuring, description: str) -> Measured:
        """Go through all rows and measure models on them."""


class RowsByBlock(AllRows):
    """Rows that come by the block: what leaves they end in is worked out anew each time."""

    def __init__(self, source: Source, blocks: Blocks, n_jobs: int | None) -> None:
        self._source, self._blocks = source, as_seen_by(source, blocks)
        self._n_jobs = n_jobs

    @property
    def largest_sample(self) -> int:
        """Rows that a sample may have at most: as many as memory is meant for."""
        forest = self._source.forest
        # Where rows end in the trees, and where in what is kept of these.
        return SAMPLE_BYTES // (2 * code_dtype(forest).itemsize * max(forest.n_trees, 1))

    def sample(self, size: int) -> RoutedRows:
        """Go through all rows, and return some that stand for all."""
        found = survey(self._source, self._blocks, size, "drawing a sample", self._n_jobs)
        self.n_rows, self.class_counts = found.n_rows, found.class_counts
        return found.routed(self._source, self._n_jobs, stand_for_all=True)

    def even_sample(self, size: int) -> RoutedRows:
        """Go through all rows, and return some that stand for all, each as likely, themselves."""
        of_a_row = 8 * max(self._source.forest.n_features, 1)
        size = min(size, self.largest_sample, SAMPLE_BYTES // of_a_row)
        description = "drawing rows for new splits"
        found = survey(self._source, self._blocks, size, description, self._n_jobs, by_leaves=False)
        self.n_rows, self.class_counts = found.n_rows, found.class_counts
        return found.routed(self._source, self._n_jobs, stand_for_all=True, keep_matrix=True)

    def measure(self, measuring: Measuring, description: str) -> Measured:
        """Go through all rows and measure models on them."""
        return self.measure_each([measuring], description)[0]

    def measure_each(
        self, measurings: Sequence[Measuring], description: str
    ) -> tuple[Measured, ...]:
        """Go through all rows once and measure models, which may be of different forests."""
        if self._blocks.parallel:
            measurings = [replace(each, n_jobs=1) for each in measurings]
        together = Together(tuple(measurings))
        return self._blocks.add_up(together, description, self.n_rows).parts


class RowsInMemory(AllRows):
    """Rows that are all there, with the leaves they end in."""

    def __init__(self, rows: RoutedRows) -> None:
        self._rows = rows
        self.n_rows = rows.encoding.n_rows
        self.class_counts = np.array([self.n_rows])
        if rows.numbers is not None and rows.origin is not None:
            self.class_counts = np.bincount(rows.numbers, minlength=len(rows.origin.classes))

    @property
    def largest_sample(self) -> int:
        """Rows that a sample may have at most: with more, all are as fast."""
        return self.n_rows // 4

    def size_for(self, wanted: int) -> int:
        """Return how many rows a sample has if so many are wanted: all, if these are many."""
        return wanted if wanted <= self.largest_sample else self.n_rows

    def sample(self, size: int) -> RoutedRows:
        """Return some rows that stand for all."""
        rows = self._rows
        if size > self.largest_sample:
            return rows
        numbers, chances = np.arange(self.n_rows), Chances(rows.source.forest).of(rows.encoding)
        some = np.sort(drawn(numbers, chances, size))
        return stands_for_all(rows.take(some), weights_of(some, chances[some]), rows.total_weight)

    def measure(self, measuring: Measuring, description: str) -> Measured:  # noqa: ARG002
        """Measure models on all rows."""
        return measuring.measure(self._rows)
