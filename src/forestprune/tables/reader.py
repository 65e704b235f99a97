"""Rows for a model: the columns that it takes, as it takes them, and what to predict."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestprune.exceptions import TableError
from forestprune.forest.frames import listed
from forestprune.tables.features import Features, with_hints
from forestprune.tables.files import Table
from forestprune.tables.labels import Labels
from forestprune.tables.matrices import GrowingMatrix, Parts
from forestprune.tables.numbers import (
    NotNumbersError,
    is_numeric,
    numbers_of_array,
    numbers_of_series,
)
from forestprune.tables.optional import import_pandas, release_memory
from forestprune.tables.rows import Rows, Shares

_NO_CATEGORIES = " (the model knows no categories for it)"

_Way = Callable[..., NDArray[Any]]
"""From a column to numbers or labels."""

_LONGEST_ENTRY = 80
"""Letters of a cell that an error shows."""

_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+\s*")
_DECIMAL_POINT = re.compile(r"[+-]?\d*\.\d+\s*")  # which is refused only where commas are expected


@dataclass(frozen=True)
class Reader:
    """Reads rows for a model, from one file or several.

    `targets` are the columns to predict, none to prune towards the model's own predictions;
    `weight` is the column with the weights of rows, `ignored` are columns that are not features;
    `decimal` is the decimal mark of CSV files; `labels` are those of a classifier, whose target
    holds them.
    """

    features: Features
    targets: Sequence[str]
    weight: str | None
    ignored: Sequence[str] = ()
    decimal: str = "."
    labels: Labels | None = None

    @property
    def _others(self) -> list[str]:
        return [*self.targets, *([self.weight] if self.weight is not None else [])]

    def read(self, path: Path, shares: Shares | None = None) -> list[Rows]:
        """Return the rows of a file, in as many parts as `shares` says."""
        table = Table.at(path)
        for name in [*self._others, *self.ignored]:
            if name not in table.columns:
                raise TableError(f"{path} has no column {with_hints([name], table)}.")
        names = self.features.find(table, [*self._others, *self.ignored])
        _check_once(table, [*names, *self._others], self.ignored)
        numeric = self.features.dtype is not None and not self.features.any_categories
        if self.labels is not None and self.labels.look_missing:
            numeric = False  # words for missing values are the same for all columns of a batch
        read = self._read_numbers if numeric else self._read_frame
        return read(table, names, shares)

    def _read_numbers(self, table: Table, names: list[str], shares: Shares | None) -> list[Rows]:
        """Return rows that are numbers only. They are never there twice, or as text."""
        matrix = GrowingMatrix(len(names), np.dtype(self.features.dtype))
        wanted, count = [*names, *self._others], len(names)
        others: dict[str, list[NDArray[Any]]] = {name: [] for name in self._others}
        reasons = [_NO_CATEGORIES] * count + [""] * len(others)
        how = {"written": table.is_written, "decimal": self.decimal}
        numbers, labels = numbers_of_array, None if self.labels is None else self.labels.of_array
        ways = [partial(way, **how) for way in self._ways(wanted, numbers, labels)]
        with closing(table.batches(wanted)) as batches:
            for batch in batches:
                found = zip(ways, batch.columns, wanted, reasons, strict=True)
                columns = [
                    _converted(way, column, name, table.path, len(matrix), why)
                    for way, column, name, why in found
                ]
                matrix.append(columns[:count])
                for parts, column in zip(others.values(), columns[count:], strict=True):
                    parts.append(column.copy())  # else all of the batch might be kept with it
        release_memory()
        whole = {name: np.concatenate(column) for name, column in others.items()}
        return self._rows(table.path, matrix.divide, whole, len(matrix), shares)

    def _rows(
        self,
        path: Path,
        divide: Callable[[Parts], Sequence[Any]],
        others: dict[str, NDArray[Any]],
        n_rows: int,
        shares: Shares | None,
    ) -> list[Rows]:
        """Put features and the other columns together, part by part."""
        for name, column in others.items():
            _check_complete(column, name, path)
        parts: Parts = [None] if shares is None else shares.parts(n_rows, path)
        tables = divide(parts)
        y = [others[name] for name in self.targets]
        target = np.column_stack(y) if len(y) > 1 else y[0] if y else None
        weight = None if self.weight is None else others[self.weight]
        if self.features.names is not None and isinstance(tables[0], np.ndarray):
            # So that the model finds the names that it knows; the numbers are not copied.
            frame, names = import_pandas().DataFrame, list(self.features.names)
            tables = [frame(table, columns=names, copy=False) for table in tables]
        return [
            Rows(table, _taken(target, part), _taken(weight, part))
            for table, part in zip(tables, parts, strict=True)
        ]

    def _read_frame(self, table: Table, names: list[str], shares: Shares | None) -> list[Rows]:
        """Return rows that are not only numbers, or go through something else first."""
        texts = {
            names[j]: known
            for j, known in self.features.categories.items()
            if known and all(isinstance(category, str) for category in known)
        }
        if self.labels is not None and self.labels.are_texts:
            texts |= dict.fromkeys(self.targets, self.labels.classes)
        frame = table.frame([*names, *self._others], texts, self.decimal)
        labels = None if self.labels is None else self.labels.of_series
        ways = self._ways(self._others, numbers_of_series, labels)
        others = {
            name: _converted(way, frame[name], name, table.path)
            for way, name in zip(ways, self._others, strict=True)
        }
        features = self._typed(frame, names, table.path)
        nameless = self.features.dtype is None and self.features.names is None

        def divide(parts: Parts) -> list[Any]:
            tables = [features if part is None else features.iloc[part] for part in parts]
            return [part.to_numpy() for part in tables] if nameless else tables

        return self._rows(table.path, divide, others, len(frame), shares)

    def _ways(self, names: Sequence[str], numbers: _Way, labels: _Way | None) -> list[_Way]:
        """Return by which function each column is read: one for labels, another for the rest."""
        targets = () if labels is None else self.targets
        return [labels if labels and name in targets else numbers for name in names]

    def _typed(self, frame: Any, names: list[str], path: Path) -> Any:
        """Return features in which categories are marked as such, and all else are numbers."""
        if self.features.dtype is None:
            return frame[names]
        categories = self._categorical(frame, names, path)
        if self.features.refuses_unseen:
            for j in categories:
                _check_seen(frame[names[j]], self.features.categories[j], path)
        columns = {
            name: _as_categories(frame[name], self.features.categories.get(j, ()))
            if j in categories
            else _converted(numbers_of_series, frame[name], name, path, 0, _NO_CATEGORIES)
            for j, name in enumerate(names)
        }
        return import_pandas().DataFrame(columns, copy=False)

    def _categorical(self, frame: Any, names: list[str], path: Path) -> set[int]:
        """Return which columns are to be taken for categories."""
        if not self.features.marked:
            return {j for j, known in self.features.categories.items() if known}
        texts = {j for j, name in enumerate(names) if not is_numeric(frame[name])}
        if len(texts) != len(self.features.marked):
            if self.features.likely:
                return set(self.features.likely)
            raise TableError(
                f"The model takes {len(self.features.marked)} columns of categories and does not "
                f"say which; {path} has {len(texts)} columns that are not numbers: "
                f"{listed([names[j] for j in sorted(texts)])}."
            )
        return texts


def _check_once(table: Table, names: list[str], ignored: Sequence[str]) -> None:
    """Refuse columns that are not the only one of their name, or are more than one thing."""
    there, used = Counter(table.columns), Counter([*names, *ignored])
    twice = [name for name in used if there[name] > 1]
    if twice:
        raise TableError(f"{table.path} has more than one column named {listed(twice)}.")
    both = [name for name in used if used[name] > 1]
    if both:
        raise TableError(
            f"Column {listed(both)} cannot be more than one of feature, target, weight and "
            "ignored. If the model takes it as a feature, it can be nothing else here: name "
            "another column."
        )


def _as_categories(column: Any, known: Sequence[Any]) -> Any:
    """Return a column marked as categories, whole numbers still whole where some are missing."""
    whole = bool(known) and all(isinstance(category, int) for category in known)
    if whole and column.dtype.kind == "f":
        pandas = import_pandas()
        return column.astype(pandas.CategoricalDtype(list(known)))
    return column.astype("category")


def _check_seen(column: Any, known: Sequence[Any], path: Path) -> None:
    """Refuse a category that the model does not know."""
    strange = column.notna() & ~column.isin(known)
    if not strange.any():
        return
    # Where one cell is text all are, and what is only written differently is not what is wrong.
    unknown = strange & ~column.astype(str).isin(list(map(str, known)))
    row = int(np.flatnonzero((unknown if unknown.any() else strange).to_numpy())[0])
    entry = column.iloc[row]
    said = repr(entry.item() if hasattr(entry, "item") else entry)
    where = f"Column {column.name!r} of {path} has {said} in row {row + 1:,}"
    if not unknown.any():
        raise TableError(
            f"{where}, but the model knows {listed(known)}: write them as numbers, or as text, as "
            "they were in training."
        )
    raise TableError(
        f"{where}, a category that the model has not seen in training; it knows {listed(known)}. "
        f"Leave such rows out ({int(unknown.sum()):,} of {len(column):,}), or give them a category "
        "that it knows."
    )


def _taken(column: NDArray[Any] | None, part: NDArray[np.intp] | None) -> Any:
    return column if column is None or part is None else column[part]


def _converted(
    convert: _Way, column: Any, name: str, path: Path, start: int = 0, why: str = ""
) -> NDArray[Any]:
    """Return a column as numbers or labels; `start` rows came before."""
    try:
        return convert(column)
    except NotNumbersError as error:
        raise TableError(
            f"Column {name!r} of {path} {error.must}{why}, but has {_shown(error.entry)} in row "
            f"{start + error.row + 1:,}.",
            error.hint or _mark_meant(error.entry),
        ) from error


def _shown(entry: str) -> str:
    """Return an entry as an error quotes it."""
    return repr(f"{entry[:_LONGEST_ENTRY]}..." if len(entry) > _LONGEST_ENTRY else entry)


def _mark_meant(entry: str) -> str:
    """Return what to do about an entry that is a number with another decimal mark."""
    if _DECIMAL_COMMA.fullmatch(entry):
        return "Give {decimal=','} if that is a decimal comma."
    if _DECIMAL_POINT.fullmatch(entry):
        return "Leave {decimal=','} out if that is a decimal point."
    return ""


def _check_complete(column: NDArray[Any], name: str, path: Path) -> None:
    """Refuse a target, or weights, in which a number or a label is missing."""
    texts = column.dtype == object
    bad = np.flatnonzero([entry is None for entry in column] if texts else ~np.isfinite(column))
    if bad.size:
        what = "label" if texts else "finite number"
        raise TableError(
            f"Column {name!r} of {path} must have a {what} in each row, but {bad.size:,} "
            f"have none; the first is row {bad[0] + 1:,}. Remove these rows, or fill them."
        )
