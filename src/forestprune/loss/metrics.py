"""How well predictions do on some rows: the share of the loss explained, and other figures."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from forestprune.loss.class_metrics import class_metrics
from forestprune.loss.loss import Loss
from forestprune.loss.squared_error import SquaredError
from forestprune.loss.targets import is_constant

Floats = NDArray[np.float64]


def error_of_mean(values: Floats, weight: Floats | None) -> float:
    """Return the standard error of the mean of something that rows have, from how it scatters."""
    mean = np.average(values, weights=weight)
    scatter = float(np.average((values - mean) ** 2, weights=weight))
    # As many rows as weigh the same together, had they equal weights.
    rows = values.size if weight is None else float(weight.sum() ** 2 / (weight**2).sum())
    return float(np.sqrt(scatter / rows))


@dataclass(frozen=True, eq=False)
class Measured:
    """How well one prediction does.

    Attributes
    ----------
    score : float
        The share of the loss that is explained: R squared for squared error, of several outputs
        together, weighted by their variance; D squared for other losses.
    losses : float64 array of shape (m,)
        Twice the loss of each row, so that for squared error it is the squared error.
    metrics : mapping of str to float
        Of numbers "rmse" and "mae", the root of the mean squared error and the mean absolute
        error, of several outputs the mean; of classes those of :func:`class_metrics`.
    """

    score: float
    losses: Floats
    metrics: Mapping[str, float] = field(default_factory=dict)


class Yardstick:
    """Measures raw predictions against a target, both of shape (n_outputs, m).

    Parameters
    ----------
    target : float64 array of shape (n_outputs, m)
    weight : float64 array of shape (m,), or None
        Weights of rows in the loss.
    loss : Loss
    plain_weight : float64 array of shape (m,), or None
        Weights of rows in other figures, where classes count by the number of their rows.
    classes : int64 array of shape (m,), or None
        The number of each row's class; None if the target is no class.
    """

    def __init__(
        self,
        target: Floats,
        weight: Floats | None,
        loss: Loss | None = None,
        *,
        plain_weight: Floats | None = None,
        classes: NDArray[np.int64] | None = None,
    ) -> None:
        loss = loss or SquaredError()
        self._target, self._weight, self._classes = target, weight, classes
        self._plain_weight = weight if classes is None else plain_weight
        self._loss = loss.prepared(target, weight)
        constant = self._loss.best_constant(target, weight)[:, np.newaxis]
        self._of_constant = float(self._mean(self._losses(np.broadcast_to(constant, target.shape))))
        if not loss.quadratic and is_constant(target, weight):
            self._of_constant = 0.0  # which a raw prediction at infinity would be needed for

    def measure(self, raw: Floats) -> Measured:
        """Return how well raw predictions do, of the same shape as the target."""
        losses = self._losses(raw)
        predicted = self._loss.response(raw)
        if self._classes is not None:
            metrics = class_metrics(predicted, self._classes, self._plain_weight)
        else:
            errors = self._target - predicted
            squares = self._mean(errors**2)
            metrics = {
                "rmse": float(np.sqrt(squares).mean()),
                "mae": float(self._mean(np.abs(errors)).mean()),
            }
        score = self._loss.score(float(self._mean(losses)), self._of_constant)
        return Measured(score, losses, metrics)

    def standard_error(self, losses: Floats) -> float:
        """Return that of the score, given the losses of rows, from how they scatter.

        Given differences between losses of two models, that of the difference of their scores.
        """
        if not self._of_constant:
            return 0.0
        return error_of_mean(losses, self._weight) / self._of_constant

    def _losses(self, raw: Floats) -> Floats:
        return 2.0 * self._loss.values(self._target, raw)

    def _mean(self, values: Floats) -> Floats:
        mean: Floats = np.average(values, axis=-1, weights=self._weight)
        return mean
