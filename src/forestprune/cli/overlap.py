"""Rows that are both pruned with and chosen by, which then choose what they know already."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestprune.cli.optional import import_pandas
from forestprune.cli.rows import Rows


def rows_among(some: Rows, others: Rows) -> int:
    """Return how many of some rows are among others too, features and target.

    0 if that cannot be said, because cells hold lists or the like.
    """
    try:
        return int(np.isin(_keys(some), _keys(others)).sum())
    except TypeError:
        return 0


def _keys(rows: Rows) -> NDArray[np.uint64]:
    """Return a number for each row; equal rows have equal ones, and hardly any others do."""
    pandas = import_pandas()
    hashed = pandas.util.hash_pandas_object
    frame = rows.X if hasattr(rows.X, "columns") else pandas.DataFrame(rows.X, copy=False)
    keys: Any = hashed(frame, index=False).to_numpy()
    if rows.y is not None:
        target = pandas.DataFrame(np.reshape(rows.y, (len(rows.y), -1)), copy=False)
        keys = keys * np.uint64(31) + hashed(target, index=False).to_numpy()
    return np.asarray(keys, dtype=np.uint64)
