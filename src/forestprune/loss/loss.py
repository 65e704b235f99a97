"""What a loss must offer."""

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Loss(ABC):
    """A loss of raw predictions, which are what the trees of a model add up to.

    Targets and raw predictions have shape (n_outputs, m); weights of rows shape (m,), or are None
    if each weighs 1.

    Attributes
    ----------
    link : str
        Which link raw predictions go through to become what the model predicts, by the names that
        `Origin.link` has.
    """

    link: str

    @abstractmethod
    def value(self, target: Floats, raw: Floats, weight: Floats | None) -> float:
        """Return the loss, summed over rows and outputs."""

    @abstractmethod
    def gradient(self, target: Floats, raw: Floats) -> Floats:
        """Return the derivative of the loss of each row by its raw prediction."""

    @abstractmethod
    def hessian(self, target: Floats, raw: Floats) -> Floats | None:
        """Return the second derivative of the loss of each row; None if it is 1 everywhere."""

    @abstractmethod
    def best_constant(self, target: Floats, weight: Floats | None) -> Floats:
        """Return the raw prediction with the least loss that is the same for all rows."""

    @abstractmethod
    def check_target(self, target: Floats) -> None:
        """Refuse targets that the loss is not defined for."""

    def score(self, loss: float, of_constant: float) -> float:
        """Return the share of the loss that is explained: D squared.

        As scikit-learn has it: a target that a constant meets scores 1 if it is met, else 0.
        """
        return 1.0 - loss / of_constant if of_constant else float(loss == 0.0)
