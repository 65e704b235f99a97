"""How the points of a path do on rows that they were not pruned with."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from forestprune.forest.checks import seal
from forestprune.loss import Yardstick
from forestprune.rows.trees import read_trees
from forestprune.select.routed import RoutedRows
from forestprune.solve.contributions import Predictions
from forestprune.solve.point import Point
from forestprune.system.progress import track

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ValidationScore:
    """How one pruned model and the full model do on validation rows.

    Attributes
    ----------
    score, full_score : float
        R squared of the pruned and of the full model; of several outputs together, weighted by
        their variance.
    standard_error : float
        That of `score`, from the scatter of the squared errors over rows or folds.
    shortfall_error : float
        Standard error of `shortfall`: much smaller than that of the scores, since both models are
        wrong about the same rows.
    rmse, full_rmse, mae, full_mae : float or None
        Root of the mean squared error and mean absolute error, in the units of the target. None
        if there was no target, and predictions are compared with the full model's own.
    n_rows : int
        How many rows there were.
    """

    score: float
    full_score: float
    standard_error: float
    shortfall_error: float
    rmse: float | None
    full_rmse: float | None
    mae: float | None
    full_mae: float | None
    n_rows: int

    @property
    def shortfall(self) -> float:
        """By how much the score is below that of the full model: what `tolerance` limits."""
        return self.full_score - self.score

    @property
    def of_target(self) -> bool:
        """Whether rows had a target; else R squared is that of the model's own raw prediction."""
        return self.rmse is not None

    def within(self, tolerance: float, confidence: float | None) -> bool:
        """Tell whether it comes within a tolerance of the full model, if so with confidence."""
        spare = _spare(confidence) * self.shortfall_error
        return self.score - spare >= _lowest(self.full_score, tolerance)


def _spare(confidence: float | None) -> float:
    """Return how many standard errors a score must be above what is required."""
    return 0.0 if confidence is None else NormalDist().inv_cdf(confidence)


def _lowest(full: float, tolerance: float) -> float:
    """Return the score that is required; what is the same but for rounding is the same."""
    return full - tolerance - 1e-9 * (1.0 + abs(full))


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
    shortfall_errors : float64 array of shape (n_alphas,)
        Standard error of the difference between `full` and each score, from the scatter of the
        differences between the squared errors of both models.
    rmse, mae : float64 arrays of shape (n_alphas,), or None
        Root of the mean squared error and mean absolute error, in the units of the target. None
        if there was no target, and predictions are compared with the original model's own.
    full_rmse, full_mae : float or None
        Those of the original model.
    n_rows : int
        How many rows there were.
    """

    scores: Floats
    standard_errors: Floats
    full: float
    shortfall_errors: Floats
    rmse: Floats | None
    mae: Floats | None
    full_rmse: float | None
    full_mae: float | None
    n_rows: int

    @property
    def of_target(self) -> bool:
        """Whether rows had a target; else R squared is that of the model's own raw prediction."""
        return self.rmse is not None

    def within(self, tolerance: float, confidence: float | None) -> NDArray[np.bool_]:
        """Tell which points come within a tolerance of the full model, if so with confidence."""
        spare = _spare(confidence) * self.shortfall_errors
        return self.scores - spare >= _lowest(self.full, tolerance)

    def at(self, index: int) -> ValidationScore:
        """Return that of one point."""
        return ValidationScore(
            score=float(self.scores[index]),
            full_score=self.full,
            standard_error=float(self.standard_errors[index]),
            shortfall_error=float(self.shortfall_errors[index]),
            rmse=None if self.rmse is None else float(self.rmse[index]),
            full_rmse=self.full_rmse,
            mae=None if self.mae is None else float(self.mae[index]),
            full_mae=self.full_mae,
            n_rows=self.n_rows,
        )

    def take(self, points: NDArray[np.int64] | slice) -> "Validation":
        """Return that of some of the points."""
        return Validation(
            self.scores[points],
            self.standard_errors[points],
            self.full,
            self.shortfall_errors[points],
            None if self.rmse is None else self.rmse[points],
            None if self.mae is None else self.mae[points],
            self.full_rmse,
            self.full_mae,
            self.n_rows,
        )

    @classmethod
    def joined(cls, parts: "Sequence[Validation]") -> "Validation":
        """Return several as one, their points one after another."""
        first = parts[0]

        def column(name: str) -> Floats:
            return np.concatenate([getattr(part, name) for part in parts])

        return cls(
            column("scores"),
            column("standard_errors"),
            first.full,
            column("shortfall_errors"),
            column("rmse") if first.of_target else None,
            column("mae") if first.of_target else None,
            first.full_rmse,
            first.full_mae,
            first.n_rows,
        )


class Scorer:
    """Scores one point after another on rows that they were not pruned with.

    Rows are gone through only for trees that differ from one point to the next.

    Attributes
    ----------
    full : float
        R squared of the original model.
    """

    def __init__(self, rows: RoutedRows) -> None:
        self._yardstick = Yardstick(rows.target, rows.sample_weight)
        self._full, self._rows = self._yardstick.measure(rows.full), rows
        trees = read_trees(rows.source.forest, seal(np.empty(0)))
        self._predictions = Predictions(rows.encoding, trees)
        self._found: list[ValidationScore] = []
        self.full = self._full.score

    def add(self, point: Point) -> ValidationScore:
        """Score one more point."""
        self._predictions.move_to(point)
        values = self._predictions.values + point.intercept[:, np.newaxis]
        yardstick, full, labelled = self._yardstick, self._full, self._rows.labelled
        small = yardstick.measure(values)
        score = ValidationScore(
            score=small.score,
            full_score=full.score,
            standard_error=yardstick.standard_error(small.squares),
            shortfall_error=yardstick.standard_error(small.squares - full.squares),
            rmse=small.rmse if labelled else None,
            full_rmse=full.rmse if labelled else None,
            mae=small.mae if labelled else None,
            full_mae=full.mae if labelled else None,
            n_rows=self._rows.encoding.n_rows,
        )
        self._found.append(score)
        return score

    def validation(self) -> Validation:
        """Return the scores of all points so far."""
        full, labelled = self._full, self._rows.labelled

        def column(name: str) -> Floats:
            return np.array([getattr(score, name) for score in self._found], dtype=np.float64)

        return Validation(
            scores=column("score"),
            standard_errors=column("standard_error"),
            full=full.score,
            shortfall_errors=column("shortfall_error"),
            rmse=column("rmse") if labelled else None,
            mae=column("mae") if labelled else None,
            full_rmse=full.rmse if labelled else None,
            full_mae=full.mae if labelled else None,
            n_rows=self._rows.encoding.n_rows,
        )


def validate(rows: RoutedRows, points: Sequence[Point]) -> Validation:
    """Return the scores of points and of the full model."""
    scorer = Scorer(rows)
    for point in track(points, "scoring", len(points)):
        scorer.add(point)
    return scorer.validation()
