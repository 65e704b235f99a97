"""What rows a model takes, and turning tables of any make into a plain matrix of them."""

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

FloatMatrix = NDArray[np.float32] | NDArray[np.float64]


@dataclass(frozen=True)
class InputSpec:
    """The rows that a forest was trained on, as far as routing has to know.

    Attributes
    ----------
    n_features : int
    feature_names : tuple of str, or None
        Column names seen at training, if there were any.
    dtype : {"float32", "float64"}
        The precision to which the source library rounds its input before it compares.
    ensure_all_finite : bool or "allow-nan"
        What the source library accepts: only finite numbers (True), NaN as well ("allow-nan"),
        or anything (False).
    """

    n_features: int
    feature_names: tuple[str, ...] | None = None
    dtype: Literal["float32", "float64"] = "float64"
    ensure_all_finite: bool | Literal["allow-nan"] = "allow-nan"

    def __post_init__(self) -> None:
        if isinstance(self.n_features, np.integer):
            object.__setattr__(self, "n_features", int(self.n_features))
        if isinstance(self.feature_names, list):
            object.__setattr__(self, "feature_names", tuple(self.feature_names))
        n, names = self.n_features, self.feature_names
        for name, sound, required in (
            ("n_features", type(n) is int and 0 <= n < 2**31, "a whole number below 2**31"),
            ("dtype", self.dtype in ("float32", "float64"), "'float32' or 'float64'"),
            (
                "ensure_all_finite",
                self.ensure_all_finite in (True, False, "allow-nan"),
                "True, False or 'allow-nan'",
            ),
            (
                "feature_names",
                names is None
                or (isinstance(names, tuple) and all(isinstance(name, str) for name in names)),
                "None or a tuple of strings",
            ),
        ):
            if not sound:
                raise TypeError(f"{name} must be {required}, got {getattr(self, name)!r}.")

    def matrix(self, X: Any) -> FloatMatrix:
        """Return `X` as a C-ordered matrix in this spec's precision, its columns checked.

        Parameters
        ----------
        X : array-like of shape (m, n_features)
            A numpy array, a pandas or polars data frame, or nested lists.
        """
        self._check_names(_column_names(X))
        try:
            matrix: FloatMatrix = check_array(
                X,
                dtype=np.dtype(self.dtype),
                order="C",
                ensure_all_finite=self.ensure_all_finite,
                input_name="X",
            )
        except ValueError as error:
            culprits = _not_numeric(X)
            if not culprits:
                raise
            raise ValueError(
                f"X must be numeric, but these columns are not: {_listed(culprits)} ({error}). "
                "Encode them as they were encoded for training."
            ) from error
        if matrix.shape[1] != self.n_features:
            raise ValueError(
                f"X has {matrix.shape[1]} columns, but the model was trained on "
                f"{self.n_features}. Pass the same columns, in the same order."
            )
        return read_only_view(matrix)

    def _check_names(self, names: list[str] | None) -> None:
        if self.feature_names is None or names is None:
            if self.feature_names is not None:
                warnings.warn(
                    "X has no column names, but the model was trained with names; "
                    "the columns are taken to be in the order of training.",
                    UserWarning,
                    stacklevel=4,
                )
            return
        expected = list(self.feature_names)
        if names == expected:
            return
        known, given = set(expected), set(names)
        missing = [name for name in expected if name not in given]
        unexpected = [name for name in names if name not in known]
        if missing or unexpected:
            raise ValueError(
                "The columns of X must be those of training. "
                f"Missing: {_listed(missing)}; not seen at training: {_listed(unexpected)}."
            )
        raise ValueError(
            "The columns of X must be in the order of training: reorder them with "
            f"X[list(forest.feature_names)]. Expected {_listed(expected)}, got {_listed(names)}."
        )


def read_only_view(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view that cannot be written to: kernels are compiled for such arrays, and once."""
    view = array.view()
    view.flags.writeable = False
    return view


def _column_names(X: Any) -> list[str] | None:
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


def _not_numeric(X: Any) -> list[str]:
    """Return the columns of a data frame that do not convert to float."""
    culprits = []
    for name in getattr(X, "columns", ()):
        try:
            np.asarray(X[name], dtype=np.float64)
        except (TypeError, ValueError):
            culprits.append(str(name))
    return culprits


def _listed(names: list[str], most: int = 5) -> str:
    if not names:
        return "none"
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(repr(name) for name in names[:most]) + more
