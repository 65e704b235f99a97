"""Pinball loss of a quantile, and quantiles of weighted rows."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from forestprune.loss.loss import IdentityLink, by_row
from forestprune.loss.targets import check_size

EPS_OVER_SPREAD = 1e-2
"""Errors below this share of the mean distance from the median count as small."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class QuantileLoss(IdentityLink):
    """Pinball loss: errors count `level` times if the prediction is too low, the rest if too high.

    With the residual ``r = target - raw`` it is ``|r| / 2 + (level - 1/2) r``. As ``|r|`` is at
    most ``r^2 / (2 |r0|) + |r0| / 2``, with equality at r0, a Hessian of ``1 / (2 |r0|)`` bounds
    the loss by a parabola that touches it at r0. For residuals below `eps` in size, eps stands in
    for r0, in the gradient too: there the loss is rounded off.

    Attributes
    ----------
    level : float
        Between 0 and 1: the share of targets below the prediction.
    eps : float or None
        Below which residuals count as small; None if that is to be taken from the target.
    """

    level: float = 0.5
    eps: float | None = None

    def __post_init__(self) -> None:
        if not 0.0 < self.level < 1.0:
            raise ValueError(f"level must be between 0 and 1, got {self.level!r}.")

    def values(self, target: Floats, raw: Floats) -> Floats:
        """Return the pinball loss of each row."""
        losses = target - raw
        return by_row(np.maximum(losses * self.level, losses * (self.level - 1.0), out=losses))

    def gradient(self, target: Floats, raw: Floats) -> Floats:
        """Return ``1 - level`` or ``-level``, and what is between them for small residuals."""
        gradient = raw - target
        gradient /= 2.0 * self._sizes(gradient, target)
        gradient += 0.5 - self.level
        return gradient

    def tangent(self, target: Floats, raw: Floats, at: Floats) -> tuple[Floats, Floats]:  # noqa: D102
        # Slopes are between 1 - level and -level: such a line through 0 at the target is below.
        slope = self.gradient(target, raw)
        return slope, by_row(slope * (at - target))

    def hessian(self, target: Floats, raw: Floats) -> Floats:
        """Return that of the parabola above: 1 over twice the residual."""
        sizes = self._sizes(raw - target, target)
        return np.divide(0.5, sizes, out=sizes)

    def best_constant(self, target: Floats, weight: Floats | None) -> Floats:
        """Return the quantile of each output."""
        return quantiles(target, self.level, weight)

    def curvature(self, target: Floats, weight: Floats | None) -> float:
        """Return the mean Hessian at the best constant, of rows that it does not meet."""
        residual = self.best_constant(target, weight)[:, np.newaxis] - target
        return curvature_off_ties(0.5 / self._sizes(residual, target), residual, weight)

    def check_target(self, target: Floats) -> None:
        """Refuse targets whose squares cannot be added up."""
        check_size(target)

    def prepared(self, target: Floats, weight: Floats | None) -> Self:
        """Return the loss with `eps` settled."""
        return self if self.eps is not None else replace(self, eps=smallest_error(target, weight))

    def _sizes(self, residual: Floats, target: Floats) -> Floats:
        eps = smallest_error(target, None) if self.eps is None else self.eps
        sizes = np.abs(residual)
        return np.maximum(sizes, eps, out=sizes)


def quantiles(numbers: Floats, level: float, weight: Floats | None) -> Floats:
    """Return a quantile of each row of `numbers`, the middle if a whole interval is one."""
    n_rows = numbers.shape[1]
    if weight is None:
        below = level * n_rows
        ends = min(max(int(np.ceil(below)) - 1, 0), n_rows - 1), min(int(below), n_rows - 1)
        found = np.partition(numbers, ends, axis=1)[:, ends]
    else:
        found = np.empty((len(numbers), 2))
        for row, of_output in enumerate(numbers):
            order = np.argsort(of_output)
            below = np.cumsum(weight[order])
            share = level * below[-1]
            first = int(np.searchsorted(below, share))
            last = min(int(np.searchsorted(below, share, side="right")), n_rows - 1)
            found[row] = of_output[order[[first, last]]]
    # Not the half of a sum, which may be beyond all numbers.
    middle: Floats = found[:, 0] + 0.5 * (found[:, 1] - found[:, 0])
    return middle


def curvature_off_ties(hessian: Floats, residual: Floats, weight: Floats | None) -> float:
    """Return the mean Hessian of rows with a residual other than 0; of all if there are none.

    Where many rows have the same target, as counts and amounts that often are 0 have, the best
    constant meets them, and the parabolas that bound their kinks are as narrow as `eps` says.
    Once predictions leave that target, no row is like that.
    """
    counts = np.ones(hessian.shape) if weight is None else np.broadcast_to(weight, hessian.shape)
    off = np.where(residual != 0.0, counts, 0.0)
    return float(np.average(hessian, weights=off if off.any() else counts))


def mean_distance(target: Floats, weight: Floats | None) -> float:
    """Return the mean distance from the median, over all outputs; 1 if all are the same."""
    distance = np.abs(target - quantiles(target, 0.5, weight)[:, np.newaxis])
    return float(np.average(distance, axis=1, weights=weight).mean()) or 1.0


def smallest_error(target: Floats, weight: Floats | None) -> float:
    """Return the error below which the kink of a loss is rounded off."""
    return EPS_OVER_SPREAD * mean_distance(target, weight)
