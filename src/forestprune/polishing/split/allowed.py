"""On which columns a node may be split, given those that are split on above it."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Allowed:
    """Columns that a node may be split on.

    Attributes
    ----------
    columns : int64 array
        Rising.
    groups : tuple of frozenset of int
        Those within which all columns on a way from the root must be; empty if any may meet.
    most : int
        How many different columns may meet on a way; 0 for any number.
    met : frozenset of int
        Those that have met so far.
    """

    columns: NDArray[np.int64]
    groups: tuple[frozenset[int], ...] = ()
    most: int = 0
    met: frozenset[int] = frozenset()

    def below(self, column: int) -> "Allowed":
        """Return what is allowed below a split on `column`."""
        if not self.groups and not self.most:
            return self
        met = self.met | {column}
        groups = tuple(group for group in self.groups if met <= group)
        columns = self.columns
        if self.groups:
            columns = columns[np.isin(columns, sorted(frozenset().union(*groups)))]
        if self.most and len(met) >= self.most:
            columns = columns[np.isin(columns, sorted(met))]
        return replace(self, columns=columns, groups=groups, met=met)
