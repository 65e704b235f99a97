"""Squared error: raw predictions are compared with the target as they are."""

import numpy as np
from numpy.typing import NDArray

from forestprune.loss.loss import Loss

LARGEST_TARGET = 1e140
"""Squares of larger numbers, added up over many rows, may be beyond all numbers."""

Floats = NDArray[np.float64]


class SquaredError(Loss):
    """``(target - raw)^2 / 2``, so that the gradient is ``raw - target`` and the Hessian is 1.

    Its gradient says all about it: with the residual ``r = target - raw``, the sum over the rows
    of r^2 is twice the loss, and with a free constant R squared is the share that is explained.
    """

    link = "identity"

    def value(self, target: Floats, raw: Floats, weight: Floats | None) -> float:
        """Return half the squared errors, summed over rows and outputs."""
        squares = (target - raw) ** 2
        rows = target.shape[1] if weight is None else float(weight.sum())
        return 0.5 * (float(np.average(squares, axis=1, weights=weight).sum()) * rows)

    def gradient(self, target: Floats, raw: Floats) -> Floats:
        """Return ``raw - target``."""
        return raw - target

    def hessian(self, target: Floats, raw: Floats) -> None:  # noqa: ARG002
        """Return None: it is 1 everywhere."""
        return

    def best_constant(self, target: Floats, weight: Floats | None) -> Floats:
        """Return the mean of each output."""
        mean: Floats = np.average(target, axis=1, weights=weight)
        return mean

    def check_target(self, target: Floats) -> None:
        """Refuse targets whose squares cannot be added up."""
        if np.abs(target).max(initial=0.0) > LARGEST_TARGET:
            raise ValueError(
                f"y must be at most {LARGEST_TARGET:g} in size, so that its squares can be added "
                "up. Divide it by its standard deviation, and train again."
            )

    def squares(self, residual: Floats, weight: Floats | None) -> float:
        """Return twice the loss, given residuals times the weights of their rows."""
        if weight is None:
            # Not by BLAS, whose threads cost more than they bring here.
            return float(np.einsum("ox,ox->", residual, residual))
        some = weight > 0.0
        return float((residual[:, some] ** 2 / weight[some]).sum())
