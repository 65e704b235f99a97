"""What every way to prune begins with: a model read, rows sent down its trees, rows held out."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestprune.interop.source import Source
from forestprune.rows.encoding import Encoding, encode
from forestprune.select.path import PruningPath


@dataclass(frozen=True, eq=False)
class Opened:
    """A model that is to be pruned, with the rows to do so.

    Attributes
    ----------
    source : Source
    encoding : Encoding
    target : array-like of shape (m,), or (m, n_outputs)
        What predictions should be.
    """

    source: Source
    encoding: Encoding
    target: ArrayLike

    @classmethod
    def of(
        cls,
        model: Any,
        X: Any,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        n_jobs: int | None,
        max_depth: int | None = None,
    ) -> "Opened":
        """Read the model, cut it at `max_depth`, send the rows down what is left of its trees."""
        source = Source.of(model)
        if max_depth is not None:
            source = source.cut(max_depth)
        rows = source.transform(X)
        target = source.target(rows, y, n_jobs)
        encoding = encode(source.forest, rows, sample_weight=sample_weight, n_jobs=n_jobs)
        return cls(source, encoding, target)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows to choose by."""

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
            raise ValueError("X_val and y_val must be given together.")
        return cls(X_val, y_val, sample_weight_val)


def checked_alphas(alphas: ArrayLike) -> NDArray[np.float64]:
    """Return alphas that a user gave, falling, each once."""
    given = np.asarray(alphas, dtype=np.float64)
    if given.ndim != 1 or not given.size or not np.isfinite(given).all() or (given < 0).any():
        raise ValueError(f"alphas must be a list of finite numbers, none negative; got {alphas!r}.")
    return np.unique(given)[::-1]


def validated(path: PruningPath, held_out: HeldOut | None, n_jobs: int | None) -> PruningPath:
    """Return a path that knows how it does on the rows held out, if there are any."""
    if held_out is None:
        return path
    validation = path.validate(
        held_out.X, held_out.y, sample_weight=held_out.sample_weight, n_jobs=n_jobs
    )
    return replace(path, validation=validation)
