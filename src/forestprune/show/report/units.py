"""Errors in the units of the target, of the full model and of every point of a path."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestprune.forest.checks import seal
from forestprune.rows.trees import read_trees
from forestprune.select.path import PruningPath
from forestprune.select.routed import HeldOut, RoutedRows
from forestprune.solve.contributions import Predictions


@dataclass(frozen=True)
class Errors:
    """Root of the mean squared error, and mean absolute error, in the units of the target."""

    rmse: float
    mae: float


@dataclass(frozen=True)
class ErrorsInUnits:
    """Those of the full model and of the points of a path, all on the same rows."""

    full: Errors
    points: tuple[Errors, ...]


def errors_in_units(path: PruningPath, rows: HeldOut) -> ErrorsInUnits | None:
    """Return errors in the units of the target; None if there are none to speak of.

    That is so without a target, and with several, which may be in different units. What trees add
    up to if not y, such as its logarithm, is in other units, and y is refused for it.
    """
    if rows.y is None or path.source.original.n_outputs > 1:
        return None
    routed = rows.routed(path.source, None)
    trees = read_trees(path.source.forest, seal(np.empty(0)))
    predictions, points = Predictions(routed.encoding, trees), []
    for point in path.points:
        predictions.move_to(point)
        points.append(_errors(routed, predictions.values + point.intercept[:, np.newaxis]))
    return ErrorsInUnits(_errors(routed, routed.full), tuple(points))


def _errors(rows: RoutedRows, predicted: NDArray[np.float64]) -> Errors:
    distance, weights = np.abs(rows.target - predicted)[0], rows.sample_weight
    squared, absolute = (float(np.average(distance**p, weights=weights)) for p in (2, 1))
    return Errors(squared**0.5, absolute)
