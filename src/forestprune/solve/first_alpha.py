"""Where a path begins."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray


def first_alpha(
    best: Callable[[float], tuple[NDArray[np.float64], NDArray[np.float64]]], variation: float
) -> float:
    """Return the smallest alpha at which nothing enters if nothing is kept.

    `best` says, for an alpha, what the best prunings of the trees gain and cost. A pruning that
    gains g and costs c enters below alpha = g / c; the greatest such ratio over all prunings is
    found by Dinkelbach's method: the best pruning at one alpha shows a higher one, until nothing is
    better than nothing.
    """
    alpha = 0.0
    for _ in range(100):  # a few are enough; rounding must not go on for ever
        gain, cost = best(alpha)
        total = alpha * cost + gain / variation
        ratio = np.divide(total, cost, out=np.zeros_like(total), where=cost > 0.0)
        highest = float(ratio.max(initial=0.0))
        if highest <= alpha * (1.0 + 1e-12):
            break
        alpha = highest
    return alpha
