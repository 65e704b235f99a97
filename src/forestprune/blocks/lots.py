"""Lots of rows, by which some are drawn: the same however rows are divided into blocks."""

import numpy as np
from numpy.typing import NDArray

FIRST, SECOND, THIRD = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def lots(numbers: NDArray[np.int64], seed: int = 0) -> NDArray[np.float64]:
    """Return the lots of rows, given their numbers: from 0 to 1, all equally likely.

    They are the numbers, scrambled by the finaliser of the generator SplitMix64.
    """
    lot = numbers.astype(np.uint64) + np.uint64(1)
    with np.errstate(over="ignore"):
        lot = lot * np.uint64(FIRST) + np.uint64(seed) * np.uint64(SECOND)
        for shift, factor in ((30, SECOND), (27, THIRD)):
            lot = (lot ^ (lot >> np.uint64(shift))) * np.uint64(factor)
    lot ^= lot >> np.uint64(31)
    return np.asarray(((lot >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53)
