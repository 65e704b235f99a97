"""Figures of the full model and of every point of a path: in units of the target, or of classes."""

from collections.abc import Mapping
from dataclasses import dataclass

from forestprune.select.figures import LABELS
from forestprune.select.path import PruningPath
from forestprune.select.routed import RoutedRows
from forestprune.select.validation import Validation, validate


@dataclass(frozen=True)
class Figures:
    """Figures by name of the full model and of the points of a path, all on the same rows.

    Of numbers these are the root of the mean squared error and the mean absolute error, in the
    units of the target: predictions have gone through the link. Of classes they are accuracy,
    log-loss and the like.
    """

    full: Mapping[str, float]
    points: tuple[Mapping[str, float], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Their names, in the order in which they are told."""
        return tuple(name for name in LABELS if name in self.full)


def measured(path: PruningPath, rows: RoutedRows | None) -> Figures | None:
    """Return figures on some rows, or on those that the path was chosen by.

    None if there are none to speak of: without a target, and with several numbers, which may be in
    different units.
    """
    origin = path.source.original.origin
    if path.source.original.n_outputs > 1 and not (origin and origin.classes):
        return None
    validation = path.validation if rows is None else validate(rows, path.points)
    return None if validation is None else _figures(validation)


def _figures(validation: Validation) -> Figures | None:
    if not validation.of_target:
        return None
    points = tuple(validation.at(place).metrics for place in range(len(validation.scores)))
    return Figures(validation.full_metrics, points)
