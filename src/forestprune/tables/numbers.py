"""Columns of tables as numbers: pyarrow's batch by batch, or those of a data frame."""

import importlib
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestprune.tables.csv_files import MISSING_WORDS
from forestprune.tables.optional import import_pandas, import_pyarrow

_WORDS = {"True": 1.0, "TRUE": 1.0, "true": 1.0, "False": 0.0, "FALSE": 0.0, "false": 0.0}


class NotNumbersError(ValueError):
    """A column has an entry that is not a number, in some row.

    `must` says what was required, and `hint`, if it is not empty, what to do.
    """

    must = "must be numbers"
    hint = ""

    def __init__(self, row: int, entry: Any) -> None:
        super().__init__(f"{entry!r} in row {row}")
        self.row = row
        self.entry = str(entry)


def numbers_of_array(array: Any, *, written: bool, decimal: str = ".") -> NDArray[np.float64]:
    """Return a column of a pyarrow batch as numbers, NaN where they are missing.

    Text may be numbers only if these were `written`, as in a CSV file, with a `decimal` mark.
    """
    arrow, types = import_pyarrow(), importlib.import_module("pyarrow.types")
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if written and (types.is_string(kind) or types.is_large_string(kind)):
        return _read(array, decimal)
    if types.is_boolean(kind):
        array = array.cast(arrow.uint8())
    elif types.is_null(kind):
        return np.full(len(array), np.nan)
    elif not (types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)):
        return _nothing_but_missing(array)
    # Whole numbers of more than 16 digits are rounded, not refused.
    array = array.cast(arrow.float64(), safe=False)
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.float64)


def _nothing_but_missing(array: Any) -> NDArray[np.float64]:
    present = np.asarray(array.is_valid())
    if present.any():
        row = int(np.argmax(present))
        try:
            entry = array[row].as_py()
        except (ArithmeticError, ValueError):  # a time of which Python knows nothing, for instance
            entry = f"a {array.type}"
        raise NotNumbersError(row, entry)
    return np.full(len(array), np.nan)


def _read(array: Any, decimal: str) -> NDArray[np.float64]:
    """Return the numbers that are written in a column of text."""
    arrow, compute = import_pyarrow(), importlib.import_module("pyarrow.compute")
    if decimal != ".":
        mixed = np.asarray(compute.match_substring(array, ".").fill_null(False))
        if mixed.any():
            row = int(np.argmax(mixed))
            raise NotNumbersError(row, array[row].as_py())
        array = compute.replace_substring(array, decimal, ".")
    try:
        numbers = array.cast(arrow.float64())
    except arrow.ArrowInvalid:
        trimmed = compute.utf8_trim_whitespace(array).to_pylist()
        return np.array([_number(entry, row) for row, entry in enumerate(trimmed)])
    return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)


def _number(entry: str | None, row: int) -> float:
    if entry is None or entry in MISSING_WORDS:
        return np.nan
    if entry in _WORDS:
        return _WORDS[entry]
    if "_" not in entry:  # Python's way to write long numbers
        with suppress(ValueError):
            return float(entry)
    raise NotNumbersError(row, entry)


def numbers_of_series(column: Any) -> NDArray[np.float64]:
    """Return a column of a data frame as numbers, NaN where they are missing."""
    pandas = import_pandas()
    if hasattr(column.dtype, "categories"):
        column = column.astype(column.dtype.categories.dtype)
    present = column.notna()
    if pandas.api.types.is_numeric_dtype(column.dtype):
        numbers: NDArray[np.float64] = column.to_numpy(dtype=np.float64, na_value=np.nan)
        return numbers
    if not present.any():
        return np.full(len(column), np.nan)
    if column.dtype == object and not column.map(lambda entry: isinstance(entry, str)).any():
        with suppress(TypeError, ValueError):  # decimal numbers, for instance
            return np.asarray(column.astype(np.float64))
    strange = present & pandas.to_numeric(column, errors="coerce").isna()
    row = int(np.argmax(strange if strange.any() else present))
    raise NotNumbersError(row, column.iloc[row])


def is_numeric(column: Any) -> bool:
    """Tell whether a column of a data frame holds numbers, marked as categories or not."""
    dtype = getattr(column.dtype, "categories", column).dtype
    return bool(import_pandas().api.types.is_numeric_dtype(dtype))
