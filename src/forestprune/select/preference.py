"""Which of several models to take, so that it is not the luckiest."""

from collections.abc import Sequence

import numpy as np

from forestprune.select.pruned import forest_at
from forestprune.select.routed import RoutedRows
from forestprune.select.scoring import Judged, Scoring, judge_for
from forestprune.solve.point import Point

SURE = 0.5
"""By how many standard errors of the difference a model must be better than one that is bolder."""


class Preference:
    """Chooses among models by validation rows.

    The best of many would owe that to chance in part. So a model is preferred to a less bold one
    only if it is better by some of the standard error of the difference between both.

    Parameters
    ----------
    rows : RoutedRows
        With their matrix.
    scoring : str, callable or None
    """

    def __init__(self, rows: RoutedRows, scoring: Scoring) -> None:
        self._rows, self._judge = rows, judge_for(rows, scoring)

    def among(self, points: Sequence[Point]) -> int:
        """Return the place of the model to take, of some with the least bold one first."""
        taken, best = 0, self._judged(points[0])
        for place, point in enumerate(points[1:], start=1):
            found = self._judged(point)
            sure = SURE * self._judge.standard_error(found, best)
            if found.score - best.score > sure:
                taken, best = place, found
        return taken

    def _judged(self, point: Point) -> Judged:
        forest = forest_at(self._rows.source.forest, point)
        raw = forest.predict_matrix(self._rows.kept_matrix)
        return self._judge.judge(np.ascontiguousarray(raw.T))
