"""Thresholds beyond all numbers, which libraries write as infinite ones.

They send all numbers one way and missing ones the other. Infinite numbers in X count as the largest
finite ones, so a threshold there says the same.
"""

import numpy as np
from numpy.typing import NDArray

_BEYOND = float(np.finfo(np.float64).max)


def as_finite(threshold: NDArray[np.float64], *, nan: float = np.nan) -> NDArray[np.float64]:
    """Return thresholds as a Forest has them, `nan` in place of NaN, 1 or -1 for the farthest."""
    nan *= _BEYOND
    return np.nan_to_num(threshold, nan=nan, posinf=_BEYOND, neginf=-_BEYOND)


def as_infinite(threshold: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return thresholds of a Forest as libraries have them."""
    return np.where(abs(threshold) == _BEYOND, np.copysign(np.inf, threshold), threshold)
