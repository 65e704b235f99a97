"""Rows that are routed down a model's trees, once for all that is done with them."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestprune.exceptions import OptionError
from forestprune.interop.source import Source
from forestprune.rows.encoding import Encoding, checked_weights, encode
from forestprune.solve.contributions import predict_codes
from forestprune.solve.problem import Problem, checked_target, pose


@dataclass(frozen=True, eq=False)
class RoutedRows:
    """Rows as the trees of a model see them, with what predictions should be.

    Attributes
    ----------
    source : Source
    encoding : Encoding
    target : float64 array of shape (n_outputs, m)
        y, or what the original model says.
    sample_weight : float64 array of shape (m,), or None
    original : float64 array of shape (n_outputs, m), or None
        What the original model predicts, if the source is not just that; else its codes tell.
    labelled : bool
        Whether `target` is y.
    """

    source: Source
    encoding: Encoding
    target: NDArray[np.float64]
    sample_weight: NDArray[np.float64] | None = None
    original: NDArray[np.float64] | None = None
    labelled: bool = True

    @classmethod
    def of(
        cls,
        source: Source,
        X: Any,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> "RoutedRows":
        """Send the rows of `X`, which the pipeline of a source takes, down its trees."""
        source.forest.require_joint_outputs("Pruning")
        source.check_target(y)
        rows = source.transform(X)
        encoding = encode(source.forest, rows, n_jobs=n_jobs)
        n_rows, outputs, original = encoding.n_rows, source.forest.n_outputs, None
        weights = None if sample_weight is None else checked_weights(sample_weight, n_rows)
        if source.uncut is not None:
            predicted = source.original.predict(rows, n_jobs=n_jobs)
            original = np.ascontiguousarray(np.reshape(predicted, (n_rows, outputs)).T)
        if y is not None:
            target = checked_target(y, n_rows, outputs)
        else:
            target = predict_codes(encoding) if original is None else original
        return cls(source, encoding, target, weights, original, labelled=y is not None)

    @cached_property
    def full(self) -> NDArray[np.float64]:
        """What the original model predicts: shape (n_outputs, m)."""
        return predict_codes(self.encoding) if self.original is None else self.original

    def take(self, rows: NDArray[np.int64]) -> "RoutedRows":
        """Return some of the rows."""
        return replace(
            self,
            encoding=self.encoding.take(rows),
            target=self.target[:, rows],
            sample_weight=None if self.sample_weight is None else self.sample_weight[rows],
            original=None if self.original is None else self.original[:, rows],
        )

    def problem(self, n_jobs: int | None) -> Problem:
        """Return the problem of pruning with these rows."""
        weights = self.sample_weight
        return pose(self.encoding, self.target.T, sample_weight=weights, n_jobs=n_jobs)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows to choose by, not routed yet."""

    X: Any
    y: ArrayLike | None
    sample_weight: ArrayLike | None

    @classmethod
    def of(
        cls,
        X_val: Any,
        y_val: ArrayLike | None,
        sample_weight_val: ArrayLike | None,
        *,
        labelled: bool,
    ) -> "HeldOut | None":
        """Return validation rows, if they are given; refuse half of them.

        If the other rows are not `labelled`, these need not be.
        """
        if X_val is None and y_val is None and sample_weight_val is None:
            return None
        if X_val is None or (y_val is None and labelled):
            raise OptionError("{X_val} and {y_val} must be given together.")
        return cls(X_val, y_val, sample_weight_val)

    def routed(self, source: Source, n_jobs: int | None) -> RoutedRows:
        """Send these rows down the trees of a model."""
        try:
            return RoutedRows.of(source, self.X, self.y, self.sample_weight, n_jobs)
        except (TypeError, ValueError) as error:
            error.add_note("X and y are those of validation here: X_val and y_val.")
            raise


def checked_alphas(alphas: ArrayLike) -> NDArray[np.float64]:
    """Return alphas that a user gave, falling, each once."""
    given = np.asarray(alphas, dtype=np.float64)
    if given.ndim != 1 or not given.size or not np.isfinite(given).all() or (given < 0).any():
        raise OptionError(
            f"{{alphas}} must be a list of finite numbers, none negative; got {alphas!r}."
        )
    return np.unique(given)[::-1]
