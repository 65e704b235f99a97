"""Huber's loss: squared error that grows only linearly from some size of errors on."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from forestprune.loss.loss import IdentityLink, by_row
from forestprune.loss.quantile import mean_distance, quantiles
from forestprune.loss.targets import check_size

_MOST_STEPS = 200
"""Towards the best constant; by far more than it takes, because halving is among them."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class HuberLoss(IdentityLink):
    """``r^2 / 2`` for residuals up to `delta` in size, ``delta (|r| - delta / 2)`` beyond.

    A Hessian of ``delta / |r|`` beyond, where there is no curvature, bounds the loss by a parabola
    that touches it at r.

    Attributes
    ----------
    delta : float or None
        From which on the loss is linear; None if that is to be taken from the target: the quantile
        at `level` of distances from the median.
    level : float
        Between 0 and 1.
    """

    delta: float | None = None
    level: float = 0.9

    def __post_init__(self) -> None:
        if self.delta is not None and not self.delta > 0.0:
            raise ValueError(f"delta must be above 0, got {self.delta!r}.")
        if not 0.0 < self.level < 1.0:
            raise ValueError(f"level must be between 0 and 1, got {self.level!r}.")

    def values(self, target: Floats, raw: Floats) -> Floats:
        """Return the loss of each row."""
        size = target - raw
        np.abs(size, out=size)
        inside = np.minimum(size, self._delta(target, None))
        size -= 0.5 * inside
        size *= inside
        return by_row(size)

    def gradient(self, target: Floats, raw: Floats) -> Floats:
        """Return ``raw - target``, clipped to `delta`."""
        delta, gradient = self._delta(target, None), raw - target
        return np.clip(gradient, -delta, delta, out=gradient)

    def hessian(self, target: Floats, raw: Floats) -> Floats:
        """Return 1, or that of the parabola above: `delta` over the residual."""
        delta, hessian = self._delta(target, None), raw - target
        np.abs(hessian, out=hessian)
        np.maximum(hessian, delta, out=hessian)
        return np.divide(delta, hessian, out=hessian)

    def best_constant(self, target: Floats, weight: Floats | None) -> Floats:
        """Return where gradients add up to 0, for each output."""
        delta = self._delta(target, weight)
        medians = quantiles(target, 0.5, weight)
        return np.array(
            [
                _balanced(numbers, delta, weight, float(median))
                for numbers, median in zip(target, medians, strict=True)
            ]
        )

    def check_target(self, target: Floats) -> None:
        """Refuse targets whose squares cannot be added up."""
        check_size(target)

    def prepared(self, target: Floats, weight: Floats | None) -> Self:
        """Return the loss with `delta` settled."""
        return replace(self, delta=self._delta(target, weight))

    def _delta(self, target: Floats, weight: Floats | None) -> float:
        if self.delta is not None:
            return self.delta
        distance = np.abs(target - quantiles(target, 0.5, weight)[:, np.newaxis])
        found = float(quantiles(distance, self.level, weight).mean())
        # Of targets that are nearly all the same, none of them far off, the others tell the scale.
        return found or mean_distance(target, weight)


def _balanced(numbers: Floats, delta: float, weight: Floats | None, start: float) -> float:
    """Return the constant at which gradients add up to 0.

    By Newton's steps, which end at the solution as soon as they are among the right rows; by
    halving an interval that holds it, where such a step would leave it.
    """
    low, high, here = float(numbers.min()), float(numbers.max()), start
    for _ in range(_MOST_STEPS):
        residual = here - numbers
        inside = np.abs(residual) <= delta
        np.clip(residual, -delta, delta, out=residual)
        slope = float(residual.sum() if weight is None else (residual * weight).sum())
        curvature = float(inside.sum() if weight is None else weight[inside].sum())
        low, high = (low, here) if slope > 0.0 else (here, high)
        step = here - slope / curvature if curvature else np.inf
        there = step if low <= step <= high else low + 0.5 * (high - low)
        done = abs(there - here) <= 1e-13 * delta + 2.0 * np.spacing(abs(here))
        here = there
        if done:
            break
    return here
