"""Matrices whose number of rows is not known at first."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_PIECE = 2**25
"""Bytes of a piece. What is as large as this goes back to the system as soon as it is let go."""

Parts = Sequence[NDArray[np.intp] | None]
"""Rows of each part, in rising order; None for all."""


class GrowingMatrix:
    """A matrix that grows by some rows at a time.

    It is kept in pieces, so that it can be divided without ever being there twice.
    """

    def __init__(self, n_columns: int, dtype: np.dtype[Any]) -> None:
        self._shape = (max(1, _PIECE // max(1, n_columns * dtype.itemsize)), n_columns)
        self._dtype = dtype
        self._pieces: list[NDArray[Any]] = []
        self._n_rows = 0

    def __len__(self) -> int:
        return self._n_rows

    def append(self, columns: Sequence[NDArray[Any]]) -> None:
        """Add rows, given as a column for each of the matrix."""
        done, n_rows = 0, len(columns[0])
        while done < n_rows:
            at = self._n_rows % self._shape[0]
            if at == 0:
                self._pieces.append(np.empty(self._shape, self._dtype))
            some = min(n_rows - done, self._shape[0] - at)
            piece = self._pieces[-1][at : at + some]
            # What is too large for the precision becomes infinite, which the model refuses or not.
            with np.errstate(over="ignore"):
                for j, column in enumerate(columns):
                    piece[:, j] = column[done : done + some]
            done += some
            self._n_rows += some

    def divide(self, parts: Parts) -> list[NDArray[Any]]:
        """Return the rows of each part; then the matrix is empty."""
        sizes = [self._n_rows if part is None else part.size for part in parts]
        matrices = [np.empty((size, self._shape[1]), self._dtype) for size in sizes]
        self._pieces.reverse()
        for start in range(0, self._n_rows, self._shape[0]):
            piece = self._pieces.pop()
            stop = min(start + len(piece), self._n_rows)
            for matrix, part in zip(matrices, parts, strict=True):
                if part is None:
                    matrix[start:stop] = piece[: stop - start]
                    continue
                first, last = np.searchsorted(part, (start, stop))
                # Any mode but "raise" writes into the array itself, without a copy.
                np.take(piece, part[first:last] - start, 0, matrix[first:last], mode="clip")
        self._n_rows = 0
        return matrices
