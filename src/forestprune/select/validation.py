"""How the points of a path do on rows that they were not pruned with."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestprune.forest.checks import seal
from forestprune.loss import SquaredError
from forestprune.rows.trees import read_trees
from forestprune.select.routed import RoutedRows
from forestprune.solve.contributions import Predictions
from forestprune.solve.point import Point
from forestprune.system.progress import track


@dataclass(frozen=True, eq=False)
class Validation:
    """How the points of a path do on rows that they were not pruned with.

    Attributes
    ----------
    scores : float64 array of shape (n_alphas,)
        R squared of each point; of several outputs together, weighted by their variance.
    standard_errors : float64 array of shape (n_alphas,)
        Standard error of each of these, from the scatter of the squared errors over rows or folds.
    full : float
        R squared of the original model.
    """

    scores: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    full: float

    def take(self, points: NDArray[np.int64]) -> "Validation":
        """Return that of some of the points."""
        return Validation(self.scores[points], self.standard_errors[points], self.full)

    @classmethod
    def joined(cls, parts: "Sequence[Validation]") -> "Validation":
        """Return several as one, their points one after another."""
        scores = np.concatenate([part.scores for part in parts])
        errors = np.concatenate([part.standard_errors for part in parts])
        return cls(scores, errors, parts[0].full)


class Scorer:
    """Scores one point after another on rows that they were not pruned with.

    Rows are gone through only for trees that differ from one point to the next.

    Attributes
    ----------
    full : float
        R squared of the original model.
    """

    def __init__(self, rows: RoutedRows) -> None:
        self._loss, self._target = SquaredError(), rows.target
        weights = rows.sample_weight
        self._weights = np.ones(rows.target.shape[1]) if weights is None else weights
        mean = self._loss.best_constant(rows.target, self._weights)[:, np.newaxis]
        squares = np.average((rows.target - mean) ** 2, axis=1, weights=self._weights)
        self._variance = float(squares.sum())
        trees = read_trees(rows.source.forest, seal(np.empty(0)))
        self._predictions = Predictions(rows.encoding, trees)
        self._scores: list[float] = []
        self._errors: list[float] = []
        self.full = self._score(rows.full)[0]

    def add(self, point: Point) -> float:
        """Score one more point; return its R squared."""
        self._predictions.move_to(point)
        score, error = self._score(self._predictions.values + point.intercept[:, np.newaxis])
        self._scores.append(score)
        self._errors.append(error)
        return score

    def validation(self) -> Validation:
        """Return the scores of all points so far."""
        return Validation(np.array(self._scores), np.array(self._errors), self.full)

    def _score(self, values: NDArray[np.float64]) -> tuple[float, float]:
        """Return R squared of predictions, and its standard error."""
        weights, variance = self._weights, self._variance
        errors = ((self._target - values) ** 2).sum(axis=0)
        mean = float(np.average(errors, weights=weights))
        scatter = float(weights @ (errors - mean) ** 2 / weights.sum())
        # As many rows as weigh the same together, had they equal weights.
        effective = float(weights.sum() ** 2 / (weights**2).sum())
        error = float(np.sqrt(scatter / effective)) / variance if variance else 0.0
        return self._loss.score(mean, variance), error


def validate(rows: RoutedRows, points: Sequence[Point]) -> Validation:
    """Return the scores of points and of the full model."""
    scorer = Scorer(rows)
    for point in track(points, "scoring", len(points)):
        scorer.add(point)
    return scorer.validation()
