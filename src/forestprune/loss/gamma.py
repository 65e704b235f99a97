"""Gamma loss: amounts above 0, whose errors are in proportion to what they are."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestprune.loss.log_link import LEAST_SHARE, LogLink, exponential
from forestprune.loss.loss import by_row
from forestprune.loss.targets import check_size, refuse

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class GammaLoss(LogLink):
    """``y / mu - 1 - log(y / mu)`` with ``mu = exp(raw)``: half of the deviance.

    Its unit is that of no target: the mean Hessian at the best constant is 1.
    """

    def values(self, target: Floats, raw: Floats) -> Floats:
        """Return half the deviance of each row."""
        above = np.log(target)
        above -= raw
        losses = exponential(above)
        losses -= above
        losses -= 1.0
        np.maximum(losses, 0.0, out=losses)
        return by_row(losses)

    def gradient(self, target: Floats, raw: Floats) -> Floats:
        """Return ``1 - y / mu``."""
        gradient = target * exponential(-raw)
        return np.subtract(1.0, gradient, out=gradient)

    def hessian(self, target: Floats, raw: Floats) -> Floats:
        """Return ``y / mu``, but no less than a thousandth."""
        hessian = target * exponential(-raw)
        return np.maximum(hessian, LEAST_SHARE, out=hessian)

    def check_target(self, target: Floats) -> None:
        """Refuse targets of 0 and below."""
        refuse(target <= 0.0, target, "above 0 for the gamma loss")
        check_size(target)
