"""What losses have in common whose raw prediction is the log of the mean."""

import numpy as np
from numpy.typing import NDArray

from forestprune.loss.loss import Loss

LARGEST_EXPONENT = 322.0
"""The exponential of more is larger than the largest target."""

LEAST_SHARE = 1e-3
"""What the Hessian is at least, over what it is at the best constant."""

_INSTEAD_OF_ZERO = 1e-12
"""What a mean of 0 counts as, whose log is at infinity."""

Floats = NDArray[np.float64]


class LogLink(Loss):
    """A loss of predictions whose logs are the raw predictions; the best constant is the mean."""

    link = "log"

    def response(self, raw: Floats) -> Floats:
        """Return the exponential: always above 0."""
        return exponential(raw)

    def raw_of(self, prediction: Floats) -> Floats:
        """Return the log; predictions of 0 or less count as next to none."""
        logs = np.log(np.maximum(prediction, np.exp(-LARGEST_EXPONENT)))
        return np.minimum(logs, LARGEST_EXPONENT)

    def best_constant(self, target: Floats, weight: Floats | None) -> Floats:
        """Return the log of the mean of each output; of zeros alone, that of a very small one."""
        mean = np.average(target, axis=1, weights=weight)
        return self.raw_of(np.where(mean > 0.0, mean, _INSTEAD_OF_ZERO))


def exponential(numbers: Floats) -> Floats:
    """Return exponentials, of numbers up to a size from which on they could not be added up."""
    clipped = np.clip(numbers, -LARGEST_EXPONENT, LARGEST_EXPONENT)
    return np.exp(clipped, out=clipped)
