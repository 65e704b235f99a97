"""Columns of tables as labels of a model's classes, which are taken as they are written."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestprune.forest.classes import BY_NUMBER, Label, are_by_number
from forestprune.forest.frames import listed
from forestprune.tables.csv_files import MISSING_WORDS
from forestprune.tables.numbers import NotNumbersError, numbers_of_array, numbers_of_series


class NotLabelsError(NotNumbersError):
    """A column has an entry that is no label of the model, in some row."""

    def __init__(self, row: int, entry: Any, classes: Sequence[Label]) -> None:
        super().__init__(row, entry)
        self.must = f"must hold labels of the model, which are {listed(classes)}"
        if are_by_number(classes, entry):
            self.hint = BY_NUMBER


@dataclass(frozen=True)
class Labels:
    """The labels that a column may have: those of a model.

    Texts are compared letter by letter, numbers as numbers, and True and False count as 1 and 0.
    """

    classes: Sequence[Label]

    @property
    def are_texts(self) -> bool:
        """Whether the model has texts for labels, rather than numbers or truth values."""
        return isinstance(self.classes[0], str)

    @property
    def look_missing(self) -> bool:
        """Whether a label, such as "None", would be taken for a missing value."""
        return not set(self.classes).isdisjoint(MISSING_WORDS)

    def of_array(self, array: Any, *, written: bool, decimal: str = ".") -> NDArray[Any]:
        """Return a column of a pyarrow batch as labels, None or NaN where they are missing."""
        if self.are_texts:
            return self._texts(array.to_pylist())
        return self._numbers(partial(numbers_of_array, written=written, decimal=decimal), array)

    def of_series(self, column: Any) -> NDArray[Any]:
        """Return a column of a data frame as labels, None or NaN where they are missing."""
        if self.are_texts:
            entries = column.astype(object)
            return self._texts(entries.where(column.notna(), None).tolist())
        return self._numbers(numbers_of_series, column)

    def _texts(self, entries: list[Any]) -> NDArray[Any]:
        for entry in dict.fromkeys(entries):
            if entry is not None and entry not in self.classes:
                raise NotLabelsError(entries.index(entry), entry, self.classes)
        return np.array(entries, dtype=object)

    def _numbers(
        self, convert: Callable[[Any], NDArray[np.float64]], column: Any
    ) -> NDArray[np.float64]:
        try:
            numbers = convert(column)
        except NotNumbersError as error:
            raise NotLabelsError(error.row, error.entry, self.classes) from error
        strange = ~np.isin(numbers, np.array(self.classes, np.float64)) & ~np.isnan(numbers)
        if strange.any():
            row = int(strange.argmax())
            raise NotLabelsError(row, float(numbers[row]), self.classes)
        return numbers
