"""How the points of a path do on rows that they were not pruned with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestprune.interop.source import Source
from forestprune.rows.encoding import checked_weights, encode_matrix
from forestprune.select.solver import Point
from forestprune.solve.contributions import Predictions
from forestprune.solve.layers.steps import tree_steps
from forestprune.solve.problem import check_target
from forestprune.system.progress import track
from forestprune.system.threads import split_range

ROWS_AT_ONCE = 50_000
"""Rows whose leaves are known at a time: those of all might take more than the solver does."""


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


def validate(
    source: Source,
    points: Sequence[Point],
    X: Any,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
    n_jobs: int | None,
) -> Validation:
    """Return the scores of points and of the full model: see `PruningPath.validate`."""
    forest, rows = source.forest, source.transform(X)
    matrix = forest.input.matrix(rows)
    n_rows = len(matrix)
    weights = np.ones(n_rows) if sample_weight is None else checked_weights(sample_weight, n_rows)
    target = check_target(source.target(rows, y, n_jobs), n_rows, forest.n_outputs)
    mean = np.average(target, axis=1, weights=weights)[:, np.newaxis]
    variance = float(np.average((target - mean) ** 2, axis=1, weights=weights).sum())
    original = np.reshape(source.original.predict(rows, n_jobs=n_jobs), (n_rows, -1)).T
    full = float(np.average(((target - original) ** 2).sum(axis=0), weights=weights))
    steps = tree_steps(forest)
    moments = _Moments(len(points))
    for start, stop in split_range(n_rows, -(-n_rows // ROWS_AT_ONCE)):
        predictions = Predictions(encode_matrix(forest, matrix[start:stop], n_jobs), steps)
        for number, point in enumerate(track(points, "scoring", len(points))):
            predictions.move_to(point.depths, point.weights, point.subtrees)
            values = predictions.values + point.intercept[:, np.newaxis]
            errors = ((target[:, start:stop] - values) ** 2).sum(axis=0)
            moments.add(number, errors, weights[start:stop])
        del predictions  # before the next rows are routed
    # As many rows as weigh the same together, had they equal weights.
    effective = float(weights.sum() ** 2 / (weights**2).sum())
    losses, standard_errors = moments.mean, np.sqrt(moments.variance / effective)
    # As scikit-learn has it: a constant target that is met scores 1, else 0.
    if variance == 0.0:
        met = [float(value == 0.0) for value in (*losses, full)]
        return Validation(np.array(met[:-1]), np.zeros_like(losses), met[-1])
    return Validation(1.0 - losses / variance, standard_errors / variance, 1.0 - full / variance)


class _Moments:
    """Mean and variance of several numbers, of which each row has one, some rows at a time."""

    def __init__(self, size: int) -> None:
        self.mean = np.zeros(size)
        self._weight = np.zeros(size)
        self._scatter = np.zeros(size)

    def add(self, number: int, values: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        """Take in more rows of one of the numbers."""
        weight = float(weights.sum())
        if weight == 0.0:
            return
        average = float(np.average(values, weights=weights))
        before, beyond = self._weight[number], average - self.mean[number]
        self._weight[number] += weight
        share = weight / self._weight[number]
        self.mean[number] += share * beyond
        self._scatter[number] += weights @ (values - average) ** 2 + before * share * beyond**2

    @property
    def variance(self) -> NDArray[np.float64]:
        """The variances over all rows so far."""
        return self._scatter / self._weight
