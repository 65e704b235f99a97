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


def validate(rows: RoutedRows, points: Sequence[Point]) -> Validation:
    """Return the scores of points and of the full model.

    Rows are gone through only for trees that differ from one point to the next.
    """
    loss, target = SquaredError(), rows.target
    weights = np.ones(target.shape[1]) if rows.sample_weight is None else rows.sample_weight
    mean = loss.best_constant(target, weights)[:, np.newaxis]
    variance = float(np.average((target - mean) ** 2, axis=1, weights=weights).sum())
    full = float(np.average(((target - rows.full) ** 2).sum(axis=0), weights=weights))
    forest = rows.source.forest
    predictions = Predictions(rows.encoding, read_trees(forest, seal(np.empty(0))))
    losses, scatter = np.empty(len(points)), np.empty(len(points))
    for number, point in enumerate(track(points, "scoring", len(points))):
        predictions.move_to(point)
        values = predictions.values + point.intercept[:, np.newaxis]
        errors = ((target - values) ** 2).sum(axis=0)
        losses[number] = np.average(errors, weights=weights)
        scatter[number] = weights @ (errors - losses[number]) ** 2 / weights.sum()
    # As many rows as weigh the same together, had they equal weights.
    effective = float(weights.sum() ** 2 / (weights**2).sum())
    scores = np.array([loss.score(value, variance) for value in losses])
    errors = np.sqrt(scatter / effective) / variance if variance else np.zeros_like(losses)
    return Validation(scores, errors, loss.score(full, variance))
