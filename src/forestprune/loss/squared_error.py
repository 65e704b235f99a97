"""Squared error: raw predictions are compared with the target as they are."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestprune.loss.loss import IdentityLink, by_row
from forestprune.loss.targets import check_size

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SquaredError(IdentityLink):
    """``(target - raw)^2 / 2``, so that the gradient is ``raw - target`` and the Hessian is 1.

    Its gradient says all about it: with the residual ``r = target - raw``, the sum over the rows
    of r^2 is twice the loss, and with a free constant R squared is the share that is explained.
    """

    quadratic = True

    def values(self, target: Floats, raw: Floats) -> Floats:
        """Return half the squared errors of each row."""
        losses = target - raw
        losses *= losses
        losses *= 0.5
        return by_row(losses)

    def value(self, target: Floats, raw: Floats, weight: Floats | None) -> float:
        """Return half the squared errors, summed over rows and outputs."""
        squares = (target - raw) ** 2
        rows = target.shape[1] if weight is None else float(weight.sum())
        return 0.5 * (float(np.average(squares, axis=1, weights=weight).sum()) * rows)

    def gradient(self, target: Floats, raw: Floats) -> Floats:
        """Return ``raw - target``."""
        return raw - target

    def hessian(self, target: Floats, raw: Floats) -> Floats:  # noqa: ARG002
        """Return 1 for each row and output."""
        return np.ones(target.shape)

    def best_constant(self, target: Floats, weight: Floats | None) -> Floats:
        """Return the mean of each output."""
        mean: Floats = np.average(target, axis=1, weights=weight)
        return mean

    def check_target(self, target: Floats) -> None:
        """Refuse targets whose squares cannot be added up."""
        check_size(target)

    def curvature(self, target: Floats, weight: Floats | None) -> float:  # noqa: ARG002
        """Return 1."""
        return 1.0

    def squares(self, residual: Floats, weight: Floats | None) -> float:
        """Return twice the loss, given residuals times the weights of their rows."""
        if weight is None:
            # Not by BLAS, whose threads cost more than they bring here.
            return float(np.einsum("ox,ox->", residual, residual))
        some = weight > 0.0
        return float((residual[:, some] ** 2 / weight[some]).sum())
