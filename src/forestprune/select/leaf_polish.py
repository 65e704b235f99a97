"""Models whose leaves are fitted anew to all rows, where a sample of these is pruned with."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from forestprune.exceptions import OutOfReachError
from forestprune.options import Options
from forestprune.polishing.leaf_rounds import LeafRounds
from forestprune.select.choose import Wanted
from forestprune.select.path import PruningPath, keeps_to
from forestprune.select.resplit import good_enough
from forestprune.select.routed import RoutedRows
from forestprune.select.validation import Validation, validate
from forestprune.solve.point import Point

if TYPE_CHECKING:
    from forestprune.select.by_sample import BySample

MOST_PASSES, MOST_ON_PATHS = 8, 4
"""How often all rows are gone through at most to fit leaves: of one model, and of a path's."""

CANDIDATES, SMALLER, LARGER = 8, 3.0, 2.0
"""How many models are compared once their leaves are fitted to the sample, and by what factor they
are smaller, or larger, than the one that would be taken without."""


class LeafPolish:
    """Chooses a model whose leaves are fitted to all rows.

    Validation rows choose among models whose leaves are fitted after one pass over all rows. More
    passes finish that one, which is then taken unless the one without is better on validation rows.

    Parameters
    ----------
    by_sample : BySample
        Without polishing.
    validation_rows : RoutedRows or None
    options : Options
    """

    def __init__(
        self, by_sample: "BySample", validation_rows: RoutedRows | None, options: Options
    ) -> None:
        self._by_sample, self._rows = by_sample, validation_rows
        self._options = options

    def choose(self, wanted: Wanted) -> tuple[PruningPath, int]:
        """Return all points that were looked at, as a path, and the place of the one to take."""
        missed = None
        try:
            path, place = self._by_sample.choose(wanted)
        except OutOfReachError as error:
            if not (wanted.by_quality and wanted.budget):
                raise
            missed = error  # other values may reach what pruning alone does not
            within = replace(wanted, tolerance=None, confidence=None, one_standard_error=False)
            path, place = self._by_sample.choose(within)
        point = path.points[place]
        rounds = self._to_fit(path, point, wanted)
        if rounds is not None:
            self._by_sample.fit([rounds], MOST_PASSES)
            fitted, parts = self._by_sample.fitted(rounds), []
            if self._rows is not None and path.validation is not None:
                scores = validate(self._rows, [fitted], self._options.scoring)
                parts = [path.validation, scores]
            fits = keeps_to(path.source, wanted.budget, fitted)  # other values may take more bytes
            if fits and self._is_better(rounds, point, path, place, wanted, parts):
                point, missed = fitted, None
            path = PruningPath.joined(path.source, [*path.points, fitted], parts)
            place = next(i for i, each in enumerate(path.points) if each is point)
        if missed is not None:
            raise missed
        return path, place

    def _to_fit(self, path: PruningPath, taken: Point, wanted: Wanted) -> LeafRounds | None:
        """Return what begins to fit the leaves of a model, which one is best of; None if of none.

        Without validation rows it is the model that is taken without.
        """
        if self._rows is None:
            may = wanted.alpha is not None or taken.alpha > 0.0
            some = [taken] if may and self._by_sample.may_fit(taken) else []
        else:
            some = self._near(path, taken, wanted)
        tried = [self._begun(point, each) for point in some for each in self._shrinkages(point)]
        if self._rows is None or not tried:
            return tried[0] if tried else None
        self._by_sample.fit(tried, 1)
        points = [each.asked for each in tried]
        validation = validate(self._rows, points, self._options.scoring)
        by_sample = PruningPath.joined(path.source, points, [validation])
        quality = (wanted.tolerance, wanted.one_standard_error, by_sample.validation)
        try:
            best = by_sample.points[by_sample.choose(wanted.budget, *quality, wanted.confidence)]
        except OutOfReachError:  # more rounds may make of the best of these what will do
            best = points[int(np.argmax(validation.scores))]
        return next(each for each in tried if each.asked is best)

    def _near(self, path: PruningPath, taken: Point, wanted: Wanted) -> list[Point]:
        """Return some points of about the size of the one that is taken without, or smaller.

        Where that is the full model, of about the size of the largest that can be fitted.
        """
        points = [
            point
            for point in path.points
            if point.alpha > 0.0
            and point.report.get("shrinkage")
            == taken.report.get("shrinkage", point.report.get("shrinkage"))
            and self._by_sample.may_fit(point)
        ]
        size = taken.n_nodes
        if not taken.alpha > 0.0:
            size = max((point.n_nodes for point in points), default=0)
        most = size if wanted.by_quality else LARGER * size
        points = [
            point
            for point in points
            if size <= SMALLER * point.n_nodes
            and point.n_nodes <= most
            and keeps_to(path.source, wanted.budget, point)
        ]
        points.sort(key=lambda point: point.n_nodes)
        some = np.unique(np.linspace(0, len(points) - 1, CANDIDATES).astype(np.int64))
        near = [points[i] for i in some] if points else []
        if not any(each is taken for each in near) and any(each is taken for each in points):
            near.append(taken)
        return near

    def _shrinkages(self, point: Point) -> list[float]:
        """Return how strongly the leaves of a point are drawn to what they were."""
        known = point.report.get("shrinkage")
        if known is not None:
            return [float(known)]
        several = self._options.shrinkages if self._rows is not None else []
        return [float(each) for each in several or self._options.shrinkages[:1]]

    def _begun(self, point: Point, shrinkage: float) -> LeafRounds:
        if self._rows is not None and len(self._options.shrinkages) > 1:
            point = replace(point, report=point.report | {"shrinkage": shrinkage})
        return self._by_sample.leaf_rounds(point, shrinkage)

    def _is_better(
        self,
        rounds: LeafRounds,
        point: Point,
        path: PruningPath,
        place: int,
        wanted: Wanted,
        parts: Sequence[Validation],
    ) -> bool:
        """Tell whether the model with its leaves fitted is to be taken in place of a point."""
        if not parts:
            return rounds.objective <= rounds.objective_of(point)
        score = parts[1].at(0)
        if wanted.by_quality:
            return good_enough(path, wanted)(score)
        return score.score >= float(parts[0].scores[place])

    def paths(self, paths: Sequence[Sequence[Point]], *, several: bool) -> list[list[Point]]:
        """Return paths with the leaves of all models fitted, but for the full one.

        One for each path, or if `several` shrinkages are for fitting alone, for each of these.
        """
        found: list[list[Point]] = []
        each_alone = several and not self._options.refits
        shrinkages = self._options.shrinkages if each_alone else [None]
        begun = {
            (point, shrinkage): self._begun(point, shrinkage or self._shrinkages(point)[0])
            for path in paths
            for point in path
            for shrinkage in shrinkages
            if point.alpha > 0.0 and self._by_sample.may_fit(point)
        }
        self._by_sample.fit(list(begun.values()), MOST_ON_PATHS)
        fitted = {key: self._by_sample.fitted(rounds) for key, rounds in begun.items()}
        for path in paths:
            found += [[fitted.get((p, s), p) for p in path] for s in shrinkages]
        return found
