"""Which of several models to take, so that it is not the luckiest."""

from collections.abc import Sequence

import numpy as np

from forestprune.select.pruned import forest_at
from forestprune.select.routed import RoutedRows
from forestprune.select.scoring import Judged, Scoring, judge_for
from forestprune.solve.point import Point

SURE = 0.5
"""By how many standard errors of the difference a model must be better than the careful choice."""


class Preference:
    """Chooses among models by validation rows.

    The best of many would owe that to chance in part. So a model with new splits is preferred to
    one without only if it is better by some of the standard error of the difference between both.

    Parameters
    ----------
    rows : RoutedRows
        With their matrix.
    scoring : str, callable or None
    """

    def __init__(self, rows: RoutedRows, scoring: Scoring) -> None:
        self._rows, self._judge = rows, judge_for(rows, scoring)
        self._known: dict[Point, Judged] = {}

    def score(self, point: Point) -> float:
        """Return the score of a model."""
        return self._judged(point).score

    def among(self, points: Sequence[Point]) -> Point:
        """Return the model to take: the best of all but the first, or the first."""
        first, *others = points
        if not others:
            return first
        best = max(others, key=self.score)
        bold, careful = self._judged(best), self._judged(first)
        sure = SURE * self._judge.standard_error(bold, careful)
        return best if bold.score - careful.score > sure else first

    def _judged(self, point: Point) -> Judged:
        if point not in self._known:
            forest = forest_at(self._rows.source.forest, point)
            raw = forest.predict_matrix(self._rows.kept_matrix)
            self._known[point] = self._judge.judge(np.ascontiguousarray(raw.T))
        return self._known[point]
