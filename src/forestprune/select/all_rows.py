"""All rows, of which a sample is pruned with."""

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from forestprune.blocks.blocks import Blocks
from forestprune.select.measuring import Measured, Measuring
from forestprune.select.routed import RoutedRows


class AllRows(ABC):
    """All rows.

    Attributes
    ----------
    n_rows : int
    class_counts : int64 array
        How many of them each class has; of one entry if y is no class.
    """

    n_rows: int
    class_counts: NDArray[np.int64]

    @abstractmethod
    def measure(self, measuring: Measuring, description: str) -> Measured:
        """Go through all rows and measure models on them."""


class RowsByBlock(AllRows):
    """Rows that come by the block: what leaves they end in is worked out anew each time."""

    def __init__(self, blocks: Blocks, n_rows: int, class_counts: NDArray[np.int64]) -> None:
        self._blocks = blocks
        self.n_rows, self.class_counts = n_rows, class_counts

    def measure(self, measuring: Measuring, description: str) -> Measured:
        """Go through all rows and measure models on them."""
        return self._blocks.add_up(measuring, description, self.n_rows)


class RowsInMemory(AllRows):
    """Rows that are all there, with the leaves they end in."""

    def __init__(self, rows: RoutedRows) -> None:
        self._rows = rows
        self.n_rows = rows.encoding.n_rows
        self.class_counts = np.array([self.n_rows])
        if rows.numbers is not None and rows.origin is not None:
            self.class_counts = np.bincount(rows.numbers, minlength=len(rows.origin.classes))

    def measure(self, measuring: Measuring, description: str) -> Measured:  # noqa: ARG002
        """Measure models on all rows."""
        return measuring.measure(self._rows)
