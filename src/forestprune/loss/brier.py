"""Brier score: the squared error of probabilities that trees average."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestprune.loss.squared_error import SquaredError
from forestprune.loss.targets import check_probabilities


@dataclass(frozen=True)
class BrierScore(SquaredError):  # noqa: N818 - no exception
    """Squared error of targets that are 1 for the class of a row and 0 for all others.

    Of two classes there is one output, about the second. Halved like squared error, so that the
    Hessian is 1: scikit-learn's score is twice the mean.
    """

    def check_target(self, target: NDArray[np.float64]) -> None:
        """Refuse targets that are no probabilities."""
        check_probabilities(target, "the Brier score")
