"""What rows a model takes, and how tables of any kind become a plain matrix of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array

from forestprune.exceptions import warn_caller
from forestprune.forest import registry
from forestprune.forest.frames import (
    categories_by_mark,
    column_names,
    columns_as_numbers,
    listed,
    not_numeric,
)

FloatMatrix = NDArray[np.float32] | NDArray[np.float64]
Categories = tuple[str | int | float | bool | None, ...]

_ALLOWED: dict[str, tuple[Any, ...]] = {
    "dtype": ("float32", "float64"),
    "ensure_all_finite": (True, False, "allow-nan"),
    "numbers": ("codes", "values"),
    "unseen": ("missing", "refuse"),
    "sparse": ("refuse", "zero", "missing"),
    "underscores": (False, True),
}

_AFTER_STEPS = ", as they are after the other steps of the pipeline: pipeline[:-1].transform(X)"

ZERO = float(np.float32(1e-35))
"""Numbers not further than this from zero are zero, where zero counts as missing."""


@dataclass(frozen=True)
class InputSpec:
    """The rows that a forest was trained on, as far as routing has to know.

    Attributes
    ----------
    n_features : int
    feature_names : tuple of str, or None
        Column names seen at training, if there were any.
    display_names : tuple of str, or None
        What columns are called in words and pictures if `feature_names` is None: in a pipeline its
        other steps know. Rows are not checked against them.
    dtype : {"float32", "float64"}
        The precision to which the source library rounds its input before it compares.
    ensure_all_finite : bool or "allow-nan"
        What the source library accepts: only finite numbers (True), NaN as well ("allow-nan"),
        or anything (False). Thresholds are finite float64, so in that precision infinite numbers
        count as the largest finite ones.
    categories : tuple of (tuple or None), or None
        For each column its categories, in the order of their codes 0, 1, 2 and so on; an empty
        tuple if the model knows only codes, then those of a data frame are taken; None for a column
        of numbers, or for all of them.
    marked_categories : tuple of tuple, or None
        In place of `categories`: those of the columns that a data frame marks as categorical, in
        the order of these columns. Which columns they are is up to the frame.
    hashed : tuple of (tuple or None), or None
        In place of `categories`, if the model knows hashes of them only: for each column these, in
        the order of their codes, any other category having the code that follows; None for a
        column of numbers, or for all of them. So far CatBoost's.
    marked_columns : tuple of int
        Which columns they were in training, if that is known.
    numbers : {"codes", "values"}
        Whether numbers in a column with categories are codes already, or categories.
    unseen : {"missing", "refuse"}
        Whether a category that is not among them counts as missing, or is an error.
    truncated : tuple of int
        Columns whose numbers are cut to whole ones, towards zero, before they are compared.
    zero_is_missing : tuple of int
        Columns in which zero counts as missing.
    missing_number : float or None
        A number that counts as missing in every column, besides NaN.
    sparse : {"refuse", "zero", "missing"}
        What an entry that a sparse matrix does not store means, if one is taken at all. Such a
        matrix is made dense.
    underscores : bool
        Whether the source library has put underscores in place of spaces in `feature_names`.
    """

    n_features: int
    feature_names: tuple[str, ...] | None = None
    dtype: Literal["float32", "float64"] = "float64"
    ensure_all_finite: bool | Literal["allow-nan"] = "allow-nan"
    categories: tuple[Categories | None, ...] | None = None
    marked_categories: tuple[Categories, ...] | None = None
    marked_columns: tuple[int, ...] = ()
    hashed: tuple[tuple[int, ...] | None, ...] | None = None
    numbers: Literal["codes", "values"] = "codes"
    unseen: Literal["missing", "refuse"] = "missing"
    truncated: tuple[int, ...] = ()
    zero_is_missing: tuple[int, ...] = ()
    missing_number: float | None = None
    sparse: Literal["refuse", "zero", "missing"] = "refuse"
    underscores: bool = False
    display_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.n_features, np.integer):
            object.__setattr__(self, "n_features", int(self.n_features))
        # Files hold lists where these are tuples.
        for field in fields(self):
            object.__setattr__(self, field.name, _as_tuples(getattr(self, field.name)))
        for name, sound, required in self._requirements():
            if not sound:
                raise TypeError(f"{name} must be {required}, got {getattr(self, name)!r}.")

    def _requirements(self) -> Iterator[tuple[str, bool, str]]:
        """Yield name, whether it is as it must be, and how that is."""
        n, categories = self.n_features, self.categories
        marked, missing = self.marked_categories, self.missing_number
        yield "n_features", type(n) is int and 0 <= n < 2**31, "a whole number below 2**31"
        for name, allowed in _ALLOWED.items():
            sound = getattr(self, name) in allowed
            yield name, sound, ", ".join(map(repr, allowed[:-1])) + f" or {allowed[-1]!r}"
        for name in ("feature_names", "display_names"):
            given = getattr(self, name)
            sound = given is None or _is_tuple_of(str, given)
            yield name, sound, "None or a tuple of strings"
        sound = categories is None or (
            _is_tuple_of((tuple, type(None)), categories) and len(categories) == n
        )
        yield "categories", sound, "None, or for each column None or a tuple of categories"
        sound = marked is None or (categories is None and _is_tuple_of(tuple, marked))
        yield "marked_categories", sound, "None, or in place of categories a tuple of tuples"
        sound = self.hashed is None or (
            categories is None
            and _is_tuple_of((tuple, type(None)), self.hashed)
            and len(self.hashed) == n
            and all(known is None or _is_tuple_of(int, known) for known in self.hashed)
        )
        yield "hashed", sound, "None, or in place of categories for each column None or hashes"
        yield "missing_number", missing is None or isinstance(missing, float), "None or a float"
        for name in ("marked_columns", "truncated", "zero_is_missing"):
            columns = getattr(self, name)
            sound = isinstance(columns, tuple) and all(
                type(column) is int and 0 <= column < n for column in columns
            )
            yield name, sound, "a tuple of numbers of columns"

    def matrix(self, X: Any) -> FloatMatrix:
        """Return `X` as a C-ordered matrix in this spec's precision, its columns checked.

        `X` is a numpy array, a pandas or polars data frame, nested lists, what the library itself
        keeps rows in, or a scipy sparse matrix if the library takes one.
        """
        X = registry.table_of(X)
        self._check_is_table(X)
        coded = self.categories is not None or self.hashed is not None
        if coded and isinstance(X, list | tuple):
            X = _array_of_lists(X)
        self._check_names(column_names(X))
        if sparse.issparse(X) and self.sparse != "refuse":
            X = _dense(X, np.dtype(self.dtype), np.nan if self.sparse == "missing" else 0.0)
        elif getattr(X, "shape", ())[1:] == (self.n_features,):
            marked = self.marked_categories
            categories: Sequence[Sequence[Any] | None] | None = self.categories
            if marked is not None:
                categories = categories_by_mark(X, marked)
            if self.hashed is not None:
                X = registry.codes_of_hashes(X, self.hashed)
            elif categories is not None:
                X = columns_as_numbers(X, categories, self.numbers, self.unseen)
        try:
            # What float32 cannot hold rounds to zero; scikit-learn adds up all numbers first, which
            # for the largest there are is infinity less infinity.
            with np.errstate(under="ignore", invalid="ignore"):
                matrix: FloatMatrix = check_array(
                    X,
                    dtype=np.dtype(self.dtype),
                    order="C",
                    ensure_all_finite=self.ensure_all_finite,
                    input_name="X",
                )
        except ValueError as error:
            culprits = not_numeric(X)
            if not culprits:
                raise
            raise ValueError(
                f"X must be numeric, but these columns are not: {listed(culprits)} ({error}). "
                "Encode them as they were encoded for training."
            ) from error
        if matrix.shape[1] != self.n_features:
            raise ValueError(
                f"X has {matrix.shape[1]} columns, but the model was trained on "
                f"{self.n_features}. Pass the same columns, in the same order"
                f"{_AFTER_STEPS if self.display_names is not None else ''}."
            )
        return read_only_view(self._as_compared(matrix))

    @property
    def known_categories(self) -> dict[int, Categories]:
        """Categories by the number of their column, as far as it is known which column has them."""
        marked = self.marked_categories
        if marked:
            known = len(marked) == len(self.marked_columns)
            return dict(zip(self.marked_columns, marked, strict=True)) if known else {}
        if self.hashed is not None:
            return {
                column: (*(f"hash {each}" for each in known), "any other")
                for column, known in enumerate(self.hashed)
                if known is not None
            }
        by_column = enumerate(self.categories or ())
        return {column: known for column, known in by_column if known is not None}

    def _as_compared(self, matrix: FloatMatrix) -> FloatMatrix:
        """Return the numbers as they meet the splits; those of the caller are not changed."""
        infinite = (
            self.ensure_all_finite is False
            and matrix.dtype == np.float64
            and bool(np.isinf(matrix).any())
        )
        special = self.truncated or self.zero_is_missing or self.missing_number is not None
        if not (infinite or special):
            return matrix
        matrix = matrix.copy()
        if infinite:
            np.nan_to_num(matrix, copy=False, nan=np.nan)
        for column in self.truncated:
            np.trunc(matrix[:, column], out=matrix[:, column])
        for column in self.zero_is_missing:
            matrix[np.abs(matrix[:, column]) <= ZERO, column] = np.nan
        if self.missing_number is not None:
            matrix[matrix == matrix.dtype.type(self.missing_number)] = np.nan
        return matrix

    def _check_is_table(self, X: Any) -> None:
        """Refuse what has a shape that is not that of a table, such as y in the place of X."""
        shape = getattr(X, "shape", None)
        if isinstance(shape, tuple) and len(shape) != 2:
            raise ValueError(
                f"X must be a table with a column for each of the {self.n_features} features, got "
                f"shape {shape}. Have X and y changed places? A single row is X[:1], not X[0]."
            )

    def _check_names(self, names: list[str] | None) -> None:
        if self.feature_names is None:
            return
        if names is None:
            warn_caller(
                "X has no column names, but the model was trained with names; "
                "the columns are taken to be in the order of training.",
                UserWarning,
            )
            return
        expected = list(self.feature_names)
        if self.underscores:
            names = [name.replace(" ", "_") for name in names]
        if names == expected:
            return
        known, given = set(expected), set(names)
        missing = [name for name in expected if name not in given]
        unexpected = [name for name in names if name not in known]
        if missing or unexpected:
            raise ValueError(
                "The columns of X must be those of training. "
                f"Missing: {listed(missing)}; not seen at training: {listed(unexpected)}."
            )
        raise ValueError(
            "The columns of X must be in the order of training: reorder them as they were then. "
            f"Expected {listed(expected)}, got {listed(names)}."
        )


def read_only_view(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view that cannot be written to: kernels are compiled for such arrays, and once."""
    view = array.view()
    view.flags.writeable = False
    return view


def _is_tuple_of(types: Any, given: Any) -> bool:
    return isinstance(given, tuple) and all(isinstance(item, types) for item in given)


def _as_tuples(given: Any) -> Any:
    if isinstance(given, list | tuple):
        return tuple(_as_tuples(item) for item in given)
    return given


def _array_of_lists(X: list[Any] | tuple[Any, ...]) -> NDArray[Any]:
    """Return nested lists as an array in which numbers beside strings are still numbers."""
    array = np.asarray(X)
    return array if array.dtype.kind in "biuf" else np.asarray(X, dtype=object)


def _dense(X: Any, dtype: np.dtype[Any], absent: float) -> NDArray[Any]:
    """Return a sparse matrix as an array, entries that are not stored being `absent`."""
    stored = sparse.coo_array(X)
    stored.sum_duplicates()
    dense = np.full(stored.shape, absent, dtype)
    dense[stored.coords] = stored.data
    return dense
