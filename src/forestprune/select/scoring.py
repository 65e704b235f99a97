"""What models are judged by on validation rows: the share of the loss explained, or a scorer."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state

from forestprune.exceptions import OptionError, escaped
from forestprune.forest import response
from forestprune.forest.classes import labels_of
from forestprune.forest.origin import Origin
from forestprune.loss import Yardstick
from forestprune.loss.class_metrics import LEAST
from forestprune.select.figures import share_explained
from forestprune.select.routed import RoutedRows

Scoring = str | Callable[..., float] | None
"""The name of a scorer of scikit-learn, or one as make_scorer() makes them; None: the loss."""

Floats = NDArray[np.float64]

RESAMPLES = 20
"""How often rows are drawn again for the standard error of a score that is no mean over rows."""


@dataclass(frozen=True, eq=False)
class Judged:
    """How one prediction does.

    Attributes
    ----------
    score : float
    metrics : mapping of str to float
        Other figures: see :class:`Measured`.
    values : float64 array
        What the standard error of the score is worked out from.
    """

    score: float
    metrics: Mapping[str, float]
    values: Floats


class Judge(ABC):
    """Says how good raw predictions for some rows are.

    Attributes
    ----------
    name : str
        What the score is.
    """

    name: str

    @abstractmethod
    def judge(self, raw: Floats) -> Judged:
        """Return how good raw predictions are, of shape (n_outputs, m)."""

    @abstractmethod
    def standard_error(self, judged: Judged, other: Judged | None = None) -> float:
        """Return the standard error of a score, or of its difference to that of another."""


class LossJudge(Judge):
    """Judges by the share of the loss that is explained."""

    def __init__(self, rows: RoutedRows) -> None:
        self.name = share_explained(rows.loss, rows.origin)
        self._yardstick = yardstick_for(rows)

    def judge(self, raw: Floats) -> Judged:
        """Return how good raw predictions are, of shape (n_outputs, m)."""
        found = self._yardstick.measure(raw)
        return Judged(found.score, found.metrics, found.losses)

    def standard_error(self, judged: Judged, other: Judged | None = None) -> float:
        """Return the standard error of a score, or of its difference to that of another."""
        values = judged.values if other is None else judged.values - other.values
        return self._yardstick.standard_error(values)


class ScorerJudge(Judge):
    """Judges by a scorer of scikit-learn.

    Its standard error is that of a mean over rows where the score is one, as of accuracy; else it
    comes from drawing rows again with replacement.
    """

    def __init__(self, rows: RoutedRows, scoring: str | Callable[..., float]) -> None:
        from sklearn.metrics import get_scorer

        self.name = scoring if isinstance(scoring, str) else _name_of(scoring)
        self._rows, self._yardstick = rows, yardstick_for(rows)
        self._scorer: Any = get_scorer(scoring) if isinstance(scoring, str) else scoring
        self._by_row = _BY_ROW.get(scoring) if isinstance(scoring, str) else None
        if rows.plain_weight is not None:
            self._by_row = None  # whose mean would be another
        rng = check_random_state(0)
        n_rows = rows.encoding.n_rows
        self._drawn = [rng.randint(0, n_rows, n_rows) for _ in range(RESAMPLES)]

    def judge(self, raw: Floats) -> Judged:
        """Return how good raw predictions are, of shape (n_outputs, m)."""
        rows = self._rows
        model = _model_of(rows.origin, raw)
        everything = np.arange(rows.encoding.n_rows)
        score = self._score(model, everything)
        if self._by_row is not None:
            values = self._by_row(model, rows)
        else:
            values = np.array([self._score(model, drawn) for drawn in self._drawn])
        return Judged(score, self._yardstick.measure(raw).metrics, values)

    def standard_error(self, judged: Judged, other: Judged | None = None) -> float:
        """Return the standard error of a score, or of its difference to that of another."""
        values = judged.values if other is None else judged.values - other.values
        if self._by_row is not None:
            return float(values.std() / np.sqrt(values.size))
        known = values[np.isfinite(values)]
        return float(known.std(ddof=1)) if known.size > 1 else 0.0

    def _score(self, model: Any, some: NDArray[np.int64]) -> float:
        rows = self._rows
        weights = {} if rows.plain_weight is None else {"sample_weight": rows.plain_weight[some]}
        try:
            score = float(self._scorer(model, some[:, np.newaxis], rows.labels[some], **weights))
        except Exception as error:
            if some.size == rows.encoding.n_rows and (some == np.arange(some.size)).all():
                raise OptionError(
                    f"{{scoring={self.name}}} cannot score these validation rows: "
                    f"{escaped(str(error))}"
                ) from error
            return float("nan")  # drawn again, rows may lack a class
        return score


def judge_for(rows: RoutedRows, scoring: Scoring) -> Judge:
    """Return what judges models on some rows."""
    if scoring is None:
        return LossJudge(rows)
    if not rows.labelled:
        raise OptionError(
            f"{{scoring={scoring if isinstance(scoring, str) else _name_of(scoring)}}} needs a "
            "target: give {y} and {y_val}, or leave it out."
        )
    return ScorerJudge(rows, scoring)


def check_scoring(scoring: Any) -> None:
    """Refuse what is no scorer."""
    if scoring is None or callable(scoring):
        return
    from sklearn.metrics import get_scorer_names

    if not isinstance(scoring, str) or scoring not in get_scorer_names():
        raise OptionError(
            "{scoring} must be None, the name of a scorer of scikit-learn, such as 'accuracy', "
            f"'roc_auc' or 'neg_mean_absolute_error', or a function; got {escaped(repr(scoring))}. "
            "sklearn.metrics.get_scorer_names() lists them all."
        )


def known_scorer(name: str) -> str | None:
    """Return the name of a score if it is that of a scorer of scikit-learn's; else None."""
    from sklearn.metrics import get_scorer_names

    return name if name in get_scorer_names() else None


def yardstick_for(rows: RoutedRows) -> Yardstick:
    """Return what measures raw predictions for some rows."""
    return Yardstick(
        rows.target,
        rows.sample_weight,
        rows.loss,
        plain_weight=rows.plain_weight,
        classes=rows.numbers,
    )


def _name_of(scoring: Callable[..., float]) -> str:
    inner = getattr(scoring, "_score_func", scoring)
    return str(getattr(inner, "__name__", type(inner).__name__))


# A model as scorers see it


class _Regressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Predictions that are there already; rows are asked for by their numbers."""

    def __init__(self, predicted: NDArray[Any]) -> None:
        self.predicted = predicted
        self.fitted_ = True

    def predict(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        return self.predicted[rows[:, 0]]


class _Classifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The same for classes."""

    def __init__(self, classes: NDArray[Any], raw: Floats, probabilities: Floats) -> None:
        self.classes_ = classes
        self.raw, self.probabilities = raw, probabilities

    def predict(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        labels: NDArray[Any] = self.classes_[np.argmax(self.probabilities[rows[:, 0]], axis=1)]
        return labels

    def predict_proba(self, rows: NDArray[np.int64]) -> Floats:
        found: Floats = self.probabilities[rows[:, 0]]
        found /= found.sum(axis=1, keepdims=True)
        return found

    def decision_function(self, rows: NDArray[np.int64]) -> Floats:
        return self.raw[rows[:, 0]]


def _model_of(origin: Origin | None, raw: Floats) -> Any:
    """Return raw predictions, of shape (n_outputs, m), as a model that scorers can ask."""
    by_row: Floats = raw[0] if len(raw) == 1 else raw.T
    if origin is None or not origin.classes:
        return _Regressor(response.through_link(origin, by_row))
    return _Classifier(labels_of(origin), by_row, response.probabilities(origin, by_row))


def _is_right(model: Any, rows: RoutedRows) -> Floats:
    return np.asarray(np.argmax(model.probabilities, axis=1) == rows.numbers, dtype=np.float64)


def _log_probability(model: Any, rows: RoutedRows) -> Floats:
    everything = np.arange(rows.encoding.n_rows)
    own = model.predict_proba(everything[:, np.newaxis])[everything, rows.numbers]
    return np.asarray(np.log(np.clip(own, LEAST, 1.0)))


def _minus_absolute(model: Any, rows: RoutedRows) -> Floats:
    errors: Floats = rows.target.T.reshape(model.predicted.shape) - model.predicted
    return -np.abs(errors)


def _minus_squared(model: Any, rows: RoutedRows) -> Floats:
    errors: Floats = rows.target.T.reshape(model.predicted.shape) - model.predicted
    return -(errors**2)


_BY_ROW: dict[str, Callable[[Any, RoutedRows], Floats]] = {
    "accuracy": _is_right,
    "neg_log_loss": _log_probability,
    "neg_mean_absolute_error": _minus_absolute,
    "neg_mean_squared_error": _minus_squared,
}
"""Scores that are means over rows, and what they are means of."""
