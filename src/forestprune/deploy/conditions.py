"""What each split asks, with all that is done to rows beforehand folded into it.

A model that is deployed gets rows as they are: numbers that only the package would cut to whole
ones, round or limit must go the right way all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from forestprune.exceptions import UnsupportedModelError
from forestprune.forest.forest import Forest

Precision = Literal["float32", "float64"]


@dataclass(frozen=True)
class Conditions:
    """What the nodes of a forest ask. Arrays have an entry a node; at leaves they mean nothing.

    Attributes
    ----------
    feature : int32 array
    threshold : float32 or float64 array
        In the precision in which they are compared: a row goes left if ``x <= threshold``. It may
        be infinite.
    missing_left : bool array
        Whether what is missing goes left. False wherever nothing can be missing.
    set_number : int64 array
        Which of `sets` has the categories that go left; -1 at splits of numbers.
    sets : tuple of bytes
        Bit j % 8 of byte j // 8 is set if category j is in the set; no two sets are the same.
    zero_is_missing : bool array
        Whether zero counts as missing.
    missing_number : float or None
        A number that counts as missing, besides NaN.
    truncated : bool
        Whether a category is cut to a whole number before it is looked for, so that those above -1
        are category 0.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float32] | NDArray[np.float64]
    missing_left: NDArray[np.bool_]
    set_number: NDArray[np.int64]
    sets: tuple[bytes, ...]
    zero_is_missing: NDArray[np.bool_]
    missing_number: float | None
    truncated: bool

    @classmethod
    def of(cls, forest: Forest, dtype: Precision) -> Conditions:
        """Fold what `forest.input` says into the splits, for rows that are given in `dtype`."""
        spec = forest.input
        splits = forest.left >= 0
        threshold = forest.threshold.copy()
        cut = splits & np.isin(forest.feature, spec.truncated)
        threshold[cut] = _before_truncation(threshold[cut])
        if spec.ensure_all_finite is False and spec.dtype == "float64":
            # Infinity counts as the largest number there is, which is above no such threshold.
            threshold[threshold == np.finfo(np.float64).max] = np.inf
        compared = np.dtype("float32" if "float32" in (spec.dtype, dtype) else "float64")
        numbers, sets = _distinct_sets(forest)
        by_set = numbers >= 0
        whole = by_set & cut
        if whole.any() and (by_set & ~cut).any():
            raise UnsupportedModelError(
                "A model whose categories are cut to whole numbers in some columns only cannot be "
                "exported; no library makes such a model."
            )
        may_miss = spec.ensure_all_finite is not True
        return cls(
            feature=forest.feature,
            threshold=rounded_down(threshold, compared),
            missing_left=forest.missing_left & splits & may_miss,
            set_number=numbers,
            sets=sets,
            zero_is_missing=splits & np.isin(forest.feature, spec.zero_is_missing),
            missing_number=spec.missing_number,
            truncated=bool(whole.any()),
        )


def rounded_down(
    threshold: NDArray[np.float64], dtype: np.dtype[Any]
) -> NDArray[np.float32] | NDArray[np.float64]:
    """Return the largest numbers of `dtype` that are not above thresholds.

    Numbers of that type are below or equal to one if and only if they are so to the other.
    """
    with np.errstate(over="ignore", under="ignore"):
        rounded: NDArray[Any] = threshold.astype(dtype)
        above = rounded > threshold
        rounded[above] = np.nextafter(rounded[above], dtype.type(-np.inf))
    return rounded


def _before_truncation(threshold: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what to compare a number with, given what to compare it with once it is cut.

    Cut towards zero, it is at most 2.5 if it is below 3, and at most -2.5 if it is -3 or less.
    """
    whole = np.floor(threshold)
    below_next = np.nextafter(whole + 1.0, -np.inf)
    return np.where(threshold < 0.0, whole, np.maximum(below_next, threshold))


def _distinct_sets(forest: Forest) -> tuple[NDArray[np.int64], tuple[bytes, ...]]:
    numbers = np.full(forest.n_nodes, -1, np.int64)
    if not forest.category_set.size:
        return numbers, ()
    known: dict[bytes, int] = {}
    for node in np.flatnonzero(forest.category_set >= 0):
        first, last = forest.set_offsets[forest.category_set[node] :][:2]
        bits = forest.set_words[first:last].astype("<u4").tobytes().rstrip(b"\0")
        numbers[node] = known.setdefault(bits, len(known))
    return numbers, tuple(known)
