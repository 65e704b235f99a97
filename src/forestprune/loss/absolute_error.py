"""Absolute error: the best constant is the median."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from forestprune.loss.loss import IdentityLink, by_row
from forestprune.loss.quantile import curvature_off_ties, quantiles, smallest_error
from forestprune.loss.targets import check_size

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class AbsoluteError(IdentityLink):
    """``|target - raw|``, bounded by parabolas like :class:`QuantileLoss`, which halves it.

    Attributes
    ----------
    eps : float or None
        Below which residuals count as small; None if that is to be taken from the target.
    """

    eps: float | None = None

    def values(self, target: Floats, raw: Floats) -> Floats:
        """Return the absolute errors of each row."""
        losses = target - raw
        return by_row(np.abs(losses, out=losses))

    def gradient(self, target: Floats, raw: Floats) -> Floats:
        """Return 1 or -1, and what is between them for small residuals."""
        gradient = raw - target
        gradient /= self._sizes(gradient, target)
        return gradient

    def tangent(self, target: Floats, raw: Floats, at: Floats) -> tuple[Floats, Floats]:  # noqa: D102
        # Slopes are between 1 and -1: such a line through 0 at the target is below.
        slope = self.gradient(target, raw)
        return slope, by_row(slope * (at - target))

    def hessian(self, target: Floats, raw: Floats) -> Floats:
        """Return that of the parabola above: 1 over the residual."""
        sizes = self._sizes(raw - target, target)
        return np.divide(1.0, sizes, out=sizes)

    def best_constant(self, target: Floats, weight: Floats | None) -> Floats:
        """Return the median of each output."""
        return quantiles(target, 0.5, weight)

    def curvature(self, target: Floats, weight: Floats | None) -> float:
        """Return the mean Hessian at the median, of rows that it does not meet."""
        residual = self.best_constant(target, weight)[:, np.newaxis] - target
        return curvature_off_ties(1.0 / self._sizes(residual, target), residual, weight)

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
