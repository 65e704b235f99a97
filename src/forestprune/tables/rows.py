"""Rows of a table, divided into those to prune with and those to choose by."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestprune.exceptions import TableError
from forestprune.tables.optional import import_pandas

SOME = 2_000
"""Rows that are kept in any case, to measure how fast models predict, and how well."""


@dataclass
class Rows:
    """Rows as `prune` takes them; `y` are numbers, or labels of classes."""

    X: Any
    y: NDArray[Any] | None
    weight: NDArray[np.float64] | None

    def __post_init__(self) -> None:
        self._size = len(self.X)

    def __len__(self) -> int:
        return self._size

    @property
    def _spread(self) -> slice:
        # From end to end, since files may be sorted.
        return slice(None, None, -(-self._size // SOME))

    def hand_over(self) -> Any:
        """Return the features, and forget them but for those of some rows.

        They are needed until each row was sent down the trees, and may take as much as all else.
        """
        X, self.X = self.X, self.X[self._spread].copy()
        return X

    def some(self) -> "Rows":
        """Return some rows, whether the others were forgotten or not."""
        of_all = len(self.X) == self._size
        return Rows(
            self.X[self._spread] if of_all else self.X,
            None if self.y is None else self.y[self._spread],
            None if self.weight is None else self.weight[self._spread],
        )

    def among(self, others: "Rows") -> int:
        """Return how many of these rows are among others too, features and target.

        0 if that cannot be said, because cells hold lists or the like.
        """
        try:
            return int(np.isin(self._keys(), others._keys()).sum())
        except TypeError:
            return 0

    def _keys(self) -> NDArray[np.uint64]:
        """Return a number for each row: equal rows have equal ones, and hardly any others do."""
        pandas = import_pandas()
        hashed = pandas.util.hash_pandas_object
        frame = self.X if hasattr(self.X, "columns") else pandas.DataFrame(self.X, copy=False)
        keys: Any = hashed(frame, index=False).to_numpy()
        if self.y is not None:
            target = pandas.DataFrame(np.reshape(self.y, (len(self.y), -1)), copy=False)
            keys = keys * np.uint64(31) + hashed(target, index=False).to_numpy()
        return np.asarray(keys, dtype=np.uint64)


@dataclass(frozen=True)
class Shares:
    """How the rows of a table are divided: a share is held out, drawn by a seed."""

    held_out: float
    seed: int

    def parts(self, n_rows: int, path: Path) -> list[NDArray[np.intp]]:
        """Return the rows of both parts, those that scikit-learn's `train_test_split` takes.

        They stay in the order of the file, so that its pages can be given back one by one.
        """
        from sklearn.model_selection import train_test_split

        try:
            parts = train_test_split(
                np.arange(n_rows), test_size=self.held_out, random_state=self.seed
            )
        except ValueError as error:
            raise TableError(
                f"{path} has {n_rows} rows, too few to hold out {self.held_out:g} of them:",
                "give more, or {held_out=0}.",
            ) from error
        return [np.sort(part) for part in parts]
