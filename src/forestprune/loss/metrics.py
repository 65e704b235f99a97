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
        self._weight = weight
        # As many rows as weigh the same together, had they equal weights.
        n_rows = target.shape[1]
        self._rows = n_rows if weight is None else float(weight.sum() ** 2 / (weight**2).sum())
        mean = SquaredError().best_constant(target, weight)[:, np.newaxis]
        self._variance = float(self._mean((target - mean) ** 2).sum())

    def measure(self, predicted: Floats) -> Measured:
        """Return how well a prediction does, of the same shape as the target."""
        errors = self._target - predicted
        squares = errors**2
        by_output = self._mean(squares)
        by_row = squares[0] if len(squares) == 1 else squares.sum(axis=0)
        return Measured(
            score=SquaredError().score(float(by_output.sum()), self._variance),
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
        return float(np.sqrt(scatter / self._rows)) / self._variance

    def _mean(self, values: Floats) -> Floats:
        mean: Floats = np.average(values, axis=-1, weights=self._weight)
        return mean
