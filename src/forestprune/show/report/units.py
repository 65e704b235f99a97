"""Errors in the units of the target, of the full model and of every point of a path."""

from dataclasses import dataclass

from forestprune.select.path import PruningPath
from forestprune.select.routed import HeldOut
from forestprune.select.validation import validate


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


def errors_in_units(path: PruningPath, rows: HeldOut | None) -> ErrorsInUnits | None:
    """Return errors in the units of the target, on some rows or those that the path was chosen by.

    None if there are none to speak of: without a target, and with several, which may be in
    different units. What trees add up to if not y, such as its logarithm, is in other units, and y
    is refused for it.
    """
    if path.source.original.n_outputs > 1:
        return None
    validation = path.validation
    if rows is not None:
        validation = validate(rows.routed(path.source, None), path.points)
    if validation is None:
        return None
    rmse, mae = validation.rmse, validation.mae
    full_rmse, full_mae = validation.full_rmse, validation.full_mae
    if rmse is None or mae is None or full_rmse is None or full_mae is None:
        return None
    points = (Errors(float(r), float(m)) for r, m in zip(rmse, mae, strict=True))
    return ErrorsInUnits(Errors(full_rmse, full_mae), tuple(points))
