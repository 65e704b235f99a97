"""Rows for a model: the columns that it takes, as it takes them, and what to predict."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from forestprune.cli.failures import CommandError
from forestprune.cli.tables import Table, import_pandas
from forestprune.frames import listed

if TYPE_CHECKING:
    from forestprune.source import Source


_NO_CATEGORIES = ", for which the model knows no categories"


@dataclass(frozen=True)
class Rows:
    """Rows as `prune` takes them."""

    X: Any
    y: NDArray[np.float64] | None
    weight: NDArray[np.float64] | None

    def __len__(self) -> int:
        return len(self.X)


@dataclass(frozen=True)
class Features:
    """What a model wants to know of a row.

    Attributes
    ----------
    names : sequence of str, or None
        Its columns, if it knows their names.
    count : int or None
        How many it takes, if that is known.
    dtype : str or None
        The precision in which it compares; None if something else comes before its trees, which
        takes columns as they are.
    categories : dict
        By the number of a column what stands in it, if these are categories.
    marked : sequence or None
        In place of these: the categories of columns of which the model only knows the order.
    """

    names: Sequence[str] | None
    count: int | None
    dtype: str | None = None
    categories: dict[int, Sequence[Any]] = field(default_factory=dict)
    marked: Sequence[Sequence[Any]] = ()
    underscores: bool = False

    @classmethod
    def of(cls, source: "Source") -> "Features":
        """Return what the model in `source` takes."""
        pipeline = source.pipeline
        if pipeline is not None and len(pipeline.steps) > 1:
            names = getattr(pipeline, "feature_names_in_", None)
            count = getattr(pipeline, "n_features_in_", None)
            return cls(None if names is None else [str(name) for name in names], count)
        spec = source.forest.input
        known = dict(enumerate(spec.categories or ()))
        marked = spec.marked_categories or ()
        if marked and len(spec.truncated) == len(marked):
            known = dict(zip(spec.truncated, marked, strict=True))
            marked = ()
        return cls(
            spec.feature_names,
            spec.n_features,
            spec.dtype,
            {j: categories for j, categories in known.items() if categories is not None},
            marked,
            spec.underscores,
        )

    def find(self, table: Table, taken: Sequence[str]) -> list[str]:
        """Return the columns of a table that are the features, in their order.

        `taken` are columns that are something else.
        """
        if self.names is None:
            found = [name for name in table.columns if name not in taken]
            if self.count is not None and len(found) != self.count:
                raise CommandError(
                    f"The model takes {self.count} features and does not know their names, but "
                    f"{table.path} has {len(found)} columns besides {listed(list(taken))}: "
                    f"{listed(found)}. Leave the others out with --ignore."
                )
            return found
        known = {self._as_written(name): name for name in reversed(table.columns)}
        missing = [name for name in self.names if name not in known]
        if missing:
            raise CommandError(
                f"{table.path} lacks features of the model: {_with_hints(missing, table)}."
            )
        return [known[name] for name in self.names]

    def _as_written(self, name: str) -> str:
        return name.replace(" ", "_") if self.underscores else name


def _with_hints(missing: Sequence[str], table: Table) -> str:
    """Return columns that are missing, and those that may be meant or all that there are."""
    close = get_close_matches(missing[0], table.columns, 1)
    hint = f"; is {close[0]!r} meant?" if close else f" (it has {listed(table.columns)})"
    return listed(missing) + hint


@dataclass(frozen=True)
class Reader:
    """Reads rows for a model, from one file or several.

    Attributes
    ----------
    features : Features
    targets : sequence of str
        Columns to predict; none if the model's own predictions are kept to.
    weight : str or None
        Column with the weights of rows.
    ignored : sequence of str
        Columns that are no features.
    """

    features: Features
    targets: Sequence[str]
    weight: str | None
    ignored: Sequence[str] = ()

    def read(self, path: Path, shares: "Shares | None" = None) -> list[Rows]:
        """Return the rows of a file, in as many parts as `shares` says.

        Parts are made of the columns of the file one by one, and these are then gone.
        """
        table = Table.at(path)
        others = [*self.targets, *([self.weight] if self.weight is not None else [])]
        for name in [*others, *self.ignored]:
            if name not in table.columns:
                raise CommandError(f"{path} has no column {_with_hints([name], table)}.")
        names = self.features.find(table, [*others, *self.ignored])
        _check_once(table, [*names, *others], self.ignored)
        texts = {
            names[j]: known
            for j, known in self.features.categories.items()
            if known and all(isinstance(category, str) for category in known)
        }
        frame = table.read([*names, *others], texts)
        y = [_complete(_numbers(frame[name], name, path), name, path) for name in self.targets]
        target = np.column_stack(y) if len(y) > 1 else y[0] if y else None
        weight = None
        if self.weight is not None:
            weight = _complete(_numbers(frame[self.weight], self.weight, path), self.weight, path)
        pieces = [slice(None)] if shares is None else shares.pieces(len(frame), path)
        tables = self._tables(frame, names, pieces, path)
        return [
            Rows(*part)
            for part in zip(tables, _cut(target, pieces), _cut(weight, pieces), strict=True)
        ]

    def _tables(self, frame: Any, names: list[str], pieces: list[Any], path: Path) -> list[Any]:
        """Return the features of each piece, as a frame or a matrix."""
        features, dtype = self.features, self.features.dtype
        if dtype is None:
            return _as_they_are(frame, names, pieces, named=features.names is not None)
        categories = self._categorical(frame, names, path)
        if categories:
            return _with_categories(frame, names, pieces, categories, path)
        matrices = [
            np.empty((len(frame) if isinstance(piece, slice) else len(piece), len(names)), dtype)
            for piece in pieces
        ]
        for j, name in enumerate(names):
            column = _numbers(frame[name], name, path, _NO_CATEGORIES)
            # What is too large for the precision becomes infinite, which the model refuses or not.
            with np.errstate(over="ignore"):
                for matrix, piece in zip(matrices, pieces, strict=True):
                    matrix[:, j] = column[piece]
        if features.names is None:
            return matrices
        pandas = import_pandas()
        # So that the model finds the names that it knows; the numbers are not copied.
        return [pandas.DataFrame(m, columns=list(features.names), copy=False) for m in matrices]

    def _categorical(self, frame: Any, names: list[str], path: Path) -> set[int]:
        """Return which columns are to be taken for categories."""
        if not self.features.marked:
            return {j for j, known in self.features.categories.items() if known}
        texts = {j for j, name in enumerate(names) if not _is_numeric(frame[name])}
        if len(texts) != len(self.features.marked):
            raise CommandError(
                f"The model takes {len(self.features.marked)} columns of categories and does not "
                f"say which; {path} has {len(texts)} columns that are not numbers: "
                f"{listed([names[j] for j in sorted(texts)])}."
            )
        return texts


@dataclass(frozen=True)
class Shares:
    """How rows are divided: some to prune with, others to choose by."""

    held_out: float
    seed: int

    def pieces(self, n_rows: int, path: Path) -> list[Any]:
        """Return the rows of both parts, as scikit-learn's `train_test_split` divides them."""
        from sklearn.model_selection import train_test_split

        try:
            return list(
                train_test_split(np.arange(n_rows), test_size=self.held_out, random_state=self.seed)
            )
        except ValueError as error:
            raise CommandError(
                f"{path} has {n_rows} rows, too few to hold out {self.held_out:g} of them: give "
                "more, or --holdout 0."
            ) from error


def _check_once(table: Table, names: list[str], ignored: Sequence[str]) -> None:
    """Refuse columns that are not the only one of their name, or are more than one thing."""
    there, used = Counter(table.columns), Counter([*names, *ignored])
    twice = [name for name in used if there[name] > 1]
    if twice:
        raise CommandError(f"{table.path} has more than one column named {listed(twice)}.")
    both = [name for name in used if used[name] > 1]
    if both:
        raise CommandError(
            f"Column {listed(both)} cannot be more than one of feature, target, weight and ignored."
        )


def _cut(column: NDArray[np.float64] | None, pieces: list[Any]) -> list[Any]:
    return [None if column is None else column[piece] for piece in pieces]


# Columns of a data frame


def _as_they_are(frame: Any, names: list[str], pieces: list[Any], *, named: bool) -> list[Any]:
    parts = [frame[names].iloc[piece] for piece in pieces]
    return parts if named else [part.to_numpy() for part in parts]


def _with_categories(
    frame: Any, names: list[str], pieces: list[Any], categories: set[int], path: Path
) -> list[Any]:
    """Return frames in which categories are marked as such, and all else are numbers."""
    pandas = import_pandas()
    columns = {
        name: frame[name].astype("category")
        if j in categories
        else _numbers(frame[name], name, path, _NO_CATEGORIES)
        for j, name in enumerate(names)
    }
    whole = pandas.DataFrame(columns, copy=False)
    return [whole.iloc[piece] for piece in pieces]


def _is_numeric(column: Any) -> bool:
    """Tell whether a column holds numbers, marked as categories or not."""
    dtype = getattr(column.dtype, "categories", column).dtype
    return bool(import_pandas().api.types.is_numeric_dtype(dtype))


def _numbers(column: Any, name: str, path: Path, why: str = "") -> NDArray[np.float64]:
    """Return a column as numbers, NaN where they are missing."""
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
    raise CommandError(
        f"Column {name!r} of {path} must be numbers{why}, but has {str(column.iloc[row])!r} in row "
        f"{row + 1}."
    )


def _complete(numbers: NDArray[np.float64], name: str, path: Path) -> NDArray[np.float64]:
    """Return a target, or weights, in which no number is missing."""
    bad = np.flatnonzero(~np.isfinite(numbers))
    if bad.size:
        raise CommandError(
            f"Column {name!r} of {path} must have a finite number in each row, but {bad.size} have "
            f"none; the first is row {bad[0] + 1}. Remove these rows, or fill them."
        )
    return numbers.copy()  # else all columns of the frame might be kept with it
