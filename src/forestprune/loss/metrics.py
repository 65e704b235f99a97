"""How well predictions do on some rows: R squared, and RMSE and MAE in the target's units."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestprune.loss.squared_error import SquaredError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Measured:
    """How well one prediction does.

    Attributes
    ----------
    score : float
        R squared; of several outputs together, weighted by their variance.
    rmse, mae : float
        Root of the mean squared error, and mean absolute error; of several outputs the mean, as
        scikit-learn has it.
    squares : float64 array of shape (m,)
        Squared error of each row, outputs added up.
    """

    score: float
    rmse: float
    mae: float
    squares: Floats


class Yardstick:
    """Measures predictions against a target, of shape (n_outputs, m), with weights of rows."""

    def __init__(self, target: Floats, weight: Floats | None) -> None:
        self._target = target
        self._weight = np.ones(target.shape[1]) if weight is None else weight
        mean = SquaredError().best_constant(target, self._weight)[:, np.newaxis]
        self._variance = float(self._mean((target - mean) ** 2).sum())

    def measure(self, predicted: Floats) -> Measured:
        """Return how well a prediction does, of the same shape as the target."""
        errors = self._target - predicted
        squares = errors**2
        by_output = self._mean(squares)
        by_row = squares.sum(axis=0)
        loss = float(self._mean(by_row))
        return Measured(
            score=SquaredError().score(loss, self._variance),
            rmse=float(np.sqrt(by_output).mean()),
            mae=float(self._mean(np.abs(errors)).mean()),
            squares=by_row,
        )

    def standard_error(self, squares: Floats) -> float:
        """Return that of R squared, given the squared errors of rows, from how they scatter.

        Given differences between squared errors of two models, that of the difference of their
        scores.
        """
        if not self._variance:
            return 0.0
        scatter = float(self._mean((squares - self._mean(squares)) ** 2))
        # As many rows as weigh the same together, had they equal weights.
        effective = float(self._weight.sum() ** 2 / (self._weight**2).sum())
        return float(np.sqrt(scatter / effective)) / self._variance

    def _mean(self, values: Floats) -> Floats:
        mean: Floats = np.average(values, axis=-1, weights=self._weight)
        return mean
