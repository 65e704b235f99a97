"""How the points of a path do on rows that they were not pruned with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from forestprune.forest.checks import seal
from forestprune.rows.trees import read_trees
from forestprune.select.routed import RoutedRows
from forestprune.select.scoring import Scoring, judge_for
from forestprune.solve.contributions import Predictions
from forestprune.solve.point import Point
from forestprune.system.progress import track

Floats = NDArray[np.float64]

_BITS = 40.0
"""How many bits of the largest raw prediction are kept; what is added up has 52."""


@dataclass(frozen=True)
class ValidationScore:
    """How one pruned model and the full model do on validation rows.

    Attributes
    ----------
    score, full_score : float
        Of the pruned and of the full model: the share of the loss that is explained, which for
        squared error is R squared, or what `scoring` asked for. The greater the better.
    standard_error : float
        That of `score`, from the scatter of the losses over rows or folds, or by a bootstrap.
    shortfall_error : float
        Standard error of `shortfall`: much smaller than that of the scores, since both models are
        wrong about the same rows.
    n_rows : int
        How many rows there were.
    metrics, full_metrics : dict of str to float
        Other figures of both. Of numbers "rmse" and "mae", the root of the mean squared error and
        the mean absolute error, in the units of the target; of classes "log_loss", "accuracy",
        "balanced_accuracy" and "roc_auc". Empty if there was no target, and predictions are
        compared with the full model's own.
    name : str
        What the score is: "R squared", "D squared", or the name of a scorer.
    """

    score: float
    full_score: float
    standard_error: float
    shortfall_error: float
    n_rows: int
    metrics: Mapping[str, float] = field(default_factory=dict)
    full_metrics: Mapping[str, float] = field(default_factory=dict)
    name: str = "R squared"

    @property
    def shortfall(self) -> float:
        """By how much the score is below that of the full model: what `tolerance` limits."""
        return self.full_score - self.score

    @property
    def of_target(self) -> bool:
        """Whether rows had a target; else predictions are compared with the full model's own."""
        return bool(self.metrics)

    @property
    def rmse(self) -> float | None:
        """Root of the mean squared error, in the units of the target; None for classes."""
        return self.metrics.get("rmse")

    @property
    def full_rmse(self) -> float | None:
        """That of the full model."""
        return self.full_metrics.get("rmse")

    @property
    def mae(self) -> float | None:
        """Mean absolute error, in the units of the target; None for classes."""
        return self.metrics.get("mae")

    @property
    def full_mae(self) -> float | None:
        """That of the full model."""
        return self.full_metrics.get("mae")

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
        Of each point: the share of the loss that is explained, which for squared error is R
        squared, or what `scoring` asked for. The greater the better.
    standard_errors : float64 array of shape (n_alphas,)
        Standard error of each of these, from the scatter over rows or folds, or by a bootstrap.
    full : float
        That of the original model.
    shortfall_errors : float64 array of shape (n_alphas,)
        Standard error of the difference between `full` and each score, from the scatter of the
        differences between both models.
    n_rows : int
        How many rows there were.
    metrics : dict of str to float64 array of shape (n_alphas,)
        Other figures: see :class:`ValidationScore`.
    full_metrics : dict of str to float
        Those of the original model.
    name : str
        What the score is: "R squared", "D squared", or the name of a scorer.
    """

    scores: Floats
    standard_errors: Floats
    full: float
    shortfall_errors: Floats
    n_rows: int
    metrics: Mapping[str, Floats] = field(default_factory=dict)
    full_metrics: Mapping[str, float] = field(default_factory=dict)
    name: str = "R squared"

    @property
    def of_target(self) -> bool:
        """Whether rows had a target; else predictions are compared with the full model's own."""
        return bool(self.full_metrics)

    @property
    def rmse(self) -> Floats | None:
        """Root of the mean squared error of each point; None for classes."""
        return self.metrics.get("rmse")

    @property
    def mae(self) -> Floats | None:
        """Mean absolute error of each point; None for classes."""
        return self.metrics.get("mae")

    @property
    def full_rmse(self) -> float | None:
        """Root of the mean squared error of the original model."""
        return self.full_metrics.get("rmse")

    @property
    def full_mae(self) -> float | None:
        """Mean absolute error of the original model."""
        return self.full_metrics.get("mae")

    def within(self, tolerance: float, confidence: float | None) -> NDArray[np.bool_]:
        """Tell which points come within a tolerance of the full model, if so with confidence."""
        spare = _spare(confidence) * self.shortfall_errors
        return self.scores - spare >= _lowest(self.full, tolerance)

    def needed(self, confidence: float | None) -> NDArray[np.float64]:
        """Return the tolerance within which each point comes, if so with confidence."""
        return self.full - self.scores + _spare(confidence) * self.shortfall_errors

    def at(self, index: int) -> ValidationScore:
        """Return that of one point."""
        return ValidationScore(
            score=float(self.scores[index]),
            full_score=self.full,
            standard_error=float(self.standard_errors[index]),
            shortfall_error=float(self.shortfall_errors[index]),
            n_rows=self.n_rows,
            metrics={name: float(figures[index]) for name, figures in self.metrics.items()},
            full_metrics=self.full_metrics,
            name=self.name,
        )

    def take(self, points: NDArray[np.int64] | slice) -> "Validation":
        """Return that of some of the points."""
        return replace(
            self,
            scores=self.scores[points],
            standard_errors=self.standard_errors[points],
            shortfall_errors=self.shortfall_errors[points],
            metrics={name: figures[points] for name, figures in self.metrics.items()},
        )

    @classmethod
    def joined(cls, parts: "Sequence[Validation]") -> "Validation":
        """Return several as one, their points one after another."""
        first = parts[0]

        def column(name: str) -> Floats:
            return np.concatenate([getattr(part, name) for part in parts])

        return replace(
            first,
            scores=column("scores"),
            standard_errors=column("standard_errors"),
            shortfall_errors=column("shortfall_errors"),
            metrics={
                name: np.concatenate([part.metrics[name] for part in parts])
                for name in first.metrics
            },
        )

    @classmethod
    def of(cls, found: Sequence[ValidationScore], full: ValidationScore) -> "Validation":
        """Return what is known of some points; `full` of the original model."""

        def column(name: str) -> Floats:
            return np.array([getattr(score, name) for score in found], dtype=np.float64)

        return cls(
            scores=column("score"),
            standard_errors=column("standard_error"),
            full=full.full_score,
            shortfall_errors=column("shortfall_error"),
            n_rows=full.n_rows,
            metrics={
                name: np.array([score.metrics[name] for score in found], dtype=np.float64)
                for name in full.full_metrics
            },
            full_metrics=full.full_metrics,
            name=full.name,
        )


class Scorer:
    """Scores one point after another on rows that they were not pruned with.

    Rows are gone through only for trees that differ from one point to the next.

    Attributes
    ----------
    full : float
        The score of the original model.
    """

    def __init__(self, rows: RoutedRows, scoring: Scoring = None) -> None:
        self._judge, self._rows = judge_for(rows, scoring), rows
        # Areas under curves count ties, which small models and averages have many of.
        self._by_order = scoring is not None or rows.is_classes
        self._full = self._judge.judge(self._steady(rows.full))
        trees = read_trees(rows.source.forest, seal(np.empty(0)))
        self._predictions = Predictions(rows.encoding, trees)
        self._found: list[ValidationScore] = []
        self.full = self._full.score

    def add(self, point: Point) -> ValidationScore:
        """Score one more point."""
        if point.forest is None:
            self._predictions.move_to(point)
            raw = self._predictions.values + point.intercept[:, np.newaxis]
        else:
            raw = np.ascontiguousarray(point.forest.predict_matrix(self._rows.kept_matrix).T)
        score = self._compared(raw)
        self._found.append(score)
        return score

    def validation(self) -> Validation:
        """Return the scores of all points so far."""
        return Validation.of(self._found, self._compared(self._rows.full))

    def _steady(self, raw: Floats) -> Floats:
        """Return raw predictions as they are judged."""
        return _without_drift(raw) if self._by_order else raw

    def _compared(self, raw: Floats) -> ValidationScore:
        """Return how raw predictions do, and the original model."""
        judge, full, labelled = self._judge, self._full, self._rows.labelled
        small = judge.judge(self._steady(raw))
        return ValidationScore(
            score=small.score,
            full_score=full.score,
            standard_error=judge.standard_error(small),
            shortfall_error=judge.standard_error(small, full),
            n_rows=self._rows.encoding.n_rows,
            metrics=small.metrics if labelled else {},
            full_metrics=full.metrics if labelled else {},
            name=judge.name,
        )


def _without_drift(raw: Floats) -> Floats:
    """Return raw predictions without their last bits.

    These tell in which order trees were added, and which were taken away on the way: rows whose
    leaves add up to the same would differ by them.
    """
    unit = np.exp2(np.ceil(np.log2(max(float(np.abs(raw).max(initial=0.0)), 1e-300))) - _BITS)
    return np.asarray(np.round(raw / unit) * unit)


def validate(rows: RoutedRows, points: Sequence[Point], scoring: Scoring = None) -> Validation:
    """Return the scores of points and of the full model."""
    scorer = Scorer(rows, scoring)
    for point in track(points, "scoring", len(points)):
        scorer.add(point)
    return scorer.validation()
