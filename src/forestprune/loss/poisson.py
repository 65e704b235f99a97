"""Poisson loss: counts, whose variance is their mean."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from forestprune.loss.log_link import LEAST_SHARE, LogLink, exponential
from forestprune.loss.loss import by_row, for_all_rows
from forestprune.loss.targets import check_size, refuse

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PoissonLoss(LogLink):
    """``y log(y / mu) - y + mu`` with ``mu = exp(raw)``: half of the deviance.

    Attributes
    ----------
    floor : float or None
        What the Hessian is at least; None if that is to be taken from the target.
    """

    floor: float | None = None

    def values(self, target: Floats, raw: Floats) -> Floats:
        """Return half the deviance of each row."""
        losses = exponential(raw) - target * raw
        losses += xlogy(target, target)
        losses -= target
        np.maximum(losses, 0.0, out=losses)
        return by_row(losses)

    def gradient(self, target: Floats, raw: Floats) -> Floats:
        """Return what the mean is too high by."""
        return exponential(raw) - target

    def hessian(self, target: Floats, raw: Floats) -> Floats:
        """Return the mean, but no less than a thousandth of the best constant."""
        hessian = exponential(raw)
        np.maximum(hessian, self._least(target, None), out=hessian)
        return for_all_rows(hessian, target)

    def check_target(self, target: Floats) -> None:
        """Refuse targets below 0."""
        refuse(target < 0.0, target, "0 or more for the Poisson loss")
        check_size(target)

    def prepared(self, target: Floats, weight: Floats | None) -> Self:
        """Return the loss with the floor of the Hessian settled."""
        return replace(self, floor=self._least(target, weight))

    def _least(self, target: Floats, weight: Floats | None) -> float:
        if self.floor is not None:
            return self.floor
        means = exponential(self.best_constant(target, weight))
        return LEAST_SHARE * float(means.mean())
