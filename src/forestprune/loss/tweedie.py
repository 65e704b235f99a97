"""Tweedie loss: sums of a random number of amounts, many of them 0."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from forestprune.loss.log_link import LEAST_SHARE, LogLink, exponential
from forestprune.loss.loss import by_row
from forestprune.loss.targets import check_size, refuse

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TweedieLoss(LogLink):
    """Half of the deviance if the variance is a power of the mean, between 1 and 2.

    With ``mu = exp(raw)`` and p the power it is ``mu^(2-p) / (2-p) + y mu^(1-p) / (p-1)``, less
    what that is for ``mu = y``.

    Attributes
    ----------
    power : float
        Between 1, that of the Poisson loss, and 2, that of the gamma loss.
    floor : float or None
        What the Hessian is at least; None if that is to be taken from the target.
    """

    power: float = 1.5
    floor: float | None = None

    def __post_init__(self) -> None:
        if not 1.0 < self.power < 2.0:
            raise ValueError(
                f"power must be between 1 and 2, got {self.power!r}. Those losses themselves are "
                "PoissonLoss and GammaLoss."
            )

    def values(self, target: Floats, raw: Floats) -> Floats:
        """Return half the deviance of each row."""
        over, under = 2.0 - self.power, self.power - 1.0
        losses = target * (exponential(raw * -under) / under)
        losses += exponential(raw * over) / over
        losses -= target**over / (over * under)
        np.maximum(losses, 0.0, out=losses)
        return by_row(losses)

    def gradient(self, target: Floats, raw: Floats) -> Floats:
        """Return ``mu^(2-p) - y mu^(1-p)``."""
        gradient = target * exponential(raw * (1.0 - self.power))
        return np.subtract(exponential(raw * (2.0 - self.power)), gradient, out=gradient)

    def hessian(self, target: Floats, raw: Floats) -> Floats:
        """Return the second derivative, but no less than a thousandth of the best constant's."""
        over, under = 2.0 - self.power, self.power - 1.0
        hessian = target * (exponential(raw * -under) * under)
        hessian += exponential(raw * over) * over
        return np.maximum(hessian, self._least(target, None), out=hessian)

    def check_target(self, target: Floats) -> None:
        """Refuse targets below 0."""
        refuse(target < 0.0, target, "0 or more for the Tweedie loss")
        check_size(target)

    def prepared(self, target: Floats, weight: Floats | None) -> Self:
        """Return the loss with the floor of the Hessian settled."""
        return replace(self, floor=self._least(target, weight))

    def _least(self, target: Floats, weight: Floats | None) -> float:
        if self.floor is not None:
            return self.floor
        # The mean Hessian at the best constant is that power of the mean.
        means = exponential(self.best_constant(target, weight) * (2.0 - self.power))
        return LEAST_SHARE * float(means.mean())
