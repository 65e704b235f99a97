"""Columns of data frames: their names, and what is in them as numbers."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

_MARKS = ("CategoricalDtype", "Categorical", "Enum")
"""Types of categorical columns: the first is pandas', the others are polars'."""


def column_names(X: Any) -> list[str] | None:
    """Return the names of X's columns if all are strings, as scikit-learn does, else None."""
    columns = getattr(X, "columns", None)
    if columns is None:
        return None
    names = list(columns)
    strings = sum(isinstance(name, str) for name in names)
    if 0 < strings < len(names):
        raise TypeError(
            f"The column names of X must be all strings or none, got {strings} strings among "
            f"{len(names)} names. Convert them with X.columns = X.columns.astype(str)."
        )
    return names if strings else None


def not_numeric(X: Any) -> list[str]:
    """Return the columns of a data frame that do not convert to float."""
    culprits = []
    for name in getattr(X, "columns", ()):
        try:
            np.asarray(X[name], dtype=np.float64)
        except (TypeError, ValueError):
            culprits.append(str(name))
    return culprits


def listed(names: Sequence[Any], most: int = 5) -> str:
    """Return names as a message shows them, the first few of many."""
    if not names:
        return "none"
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(repr(name) for name in names[:most]) + more


def columns_as_numbers(
    X: Any,
    categories: Sequence[Sequence[Any] | None],
    numbers: Literal["codes", "values"],
    unseen: Literal["missing", "refuse"],
) -> NDArray[np.float64]:
    """Return a table in which categories are replaced by their codes.

    `categories` has an entry for each column of `X`; all arguments are as in InputSpec.
    """
    names: Sequence[Any] = column_names(X) or range(len(categories))
    matrix = np.empty((len(X), len(categories)))
    for j, known in enumerate(categories):
        column = X.iloc[:, j] if hasattr(X, "iloc") else X[:, j]
        if known is None or (numbers == "codes" and _is_plain(column)):
            matrix[:, j] = as_floats(column, names[j])
            continue
        if not known and hasattr(column, "cat") and hasattr(column.cat, "codes"):
            matrix[:, j] = column.cat.codes.where(column.notna(), np.nan)
            continue
        codes = {category: code for code, category in enumerate(known)}
        entries = entries_of(column)
        matrix[:, j] = [codes.get(entry, np.nan) for entry in entries]
        if unseen == "refuse":
            strangers = {e for e in entries if e not in codes and not _is_missing(e)}
            if strangers:
                raise ValueError(
                    f"Column {names[j]!r} has categories that the model has not seen in training: "
                    f"{listed(sorted(strangers, key=str))}. It knows {listed(known)}. Leave these "
                    "rows out, or give them a category that it knows."
                )
    return matrix


def categories_by_mark(
    X: Any, marked: Sequence[Sequence[Any]]
) -> list[Sequence[Any] | None] | None:
    """Return for each column of a data frame its categories, or None if no column has any.

    `marked` holds the categories of the columns that the frame marks as categorical, in order.
    """
    if not hasattr(X, "columns"):
        return None
    types = X.dtypes
    columns = [j for j, dtype in enumerate(types) if type(dtype).__name__ in _MARKS]
    if len(columns) != len(marked):
        names = [X.columns[j] for j in columns]
        raise ValueError(
            f"X must mark {len(marked)} columns as categorical, as in training; it marks "
            f"{len(names)}: {listed(names)}. Give each column the type it had in training."
        )
    if not columns:
        return None
    known = dict(zip(columns, marked, strict=True))
    return [known.get(j) for j in range(len(types))]


def _is_plain(column: Any) -> bool:
    """Tell whether a column holds numbers that are not marked as categories."""
    if hasattr(column.dtype, "categories"):
        return False
    return np.asarray(column).dtype.kind in "biuf"


def entries_of(column: Any) -> list[Any]:
    """Return the entries of a column of any table."""
    if hasattr(column, "to_list"):  # pandas and polars
        return list(column.to_list())
    return list(column.tolist())


def _is_missing(entry: Any) -> bool:
    # NaN is not itself; pandas' NA will not even say so.
    return entry is None or type(entry).__name__ in ("NAType", "NaTType") or entry != entry


def as_floats(column: Any, name: Any) -> NDArray[np.float64]:
    """Return a column of numbers; `name` is for messages."""
    entries: Any = np.asarray(column)
    if entries.dtype.kind == "O":
        entries = [np.nan if _is_missing(entry) else entry for entry in entries_of(column)]
    try:
        return np.asarray(entries, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X must be numeric in columns without categories, but {name!r} is not ({error}). "
            "Encode it as it was encoded for training."
        ) from error
