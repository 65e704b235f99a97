"""Models at which sums over all rows are known, by which a sample of them is corrected."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from forestprune.solve.correction import Sums
from forestprune.solve.point import Point


@dataclass(frozen=True, eq=False)
class Reference:
    """A model at which sums over all rows are known."""

    point: Point
    sums: Sums


def next_to(alpha: float, references: Sequence[Reference]) -> Reference | None:
    """Return the reference whose alpha is next to one, by the factor between them."""
    if not references:
        return None
    tiny = np.finfo(np.float64).tiny
    wanted = np.log(max(alpha, tiny))
    return min(references, key=lambda each: abs(np.log(max(each.point.alpha, tiny)) - wanted))
