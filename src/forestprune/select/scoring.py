"""What models are judged by on validation rows: the share of the loss explained, or a scorer."""

import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils import check_random_state

from forestprune.exceptions import OptionError, escaped
from forestprune.forest import response
from forestprune.forest.classes import labels_of
from forestprune.forest.frames import listed
from forestprune.forest.origin import Origin
from forestprune.loss import Yardstick
from forestprune.loss.metrics import error_of_mean
from forestprune.select import influence
from forestprune.select.figures import share_explained
from forestprune.select.routed import RoutedRows

Scoring = str | Callable[..., float] | None
"""The name of a scorer of scikit-learn, or one as make_scorer() makes them; None: the loss."""

Floats = NDArray[np.float64]

RESAMPLES = 20
"""How often rows are drawn again for a standard error: it is then right to a sixth of itself."""

MOST_DRAWN = 5_000
"""How many rows at most: standard errors go by the root of how many there are."""

ROUNDING = 1e-9
"""By what probabilities may not add up to 1, and count as if they did."""

_ABOUT_CLASSES = re.compile("predict_proba|decision_function|continuous|binary|class")
"""What scorers speak of that are asked about numbers."""


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

    The standard error comes from how far each row moves the score, where that is known; else from
    drawing rows again with replacement, the same rows for each model.
    """

    def __init__(self, rows: RoutedRows, scoring: str | Callable[..., float]) -> None:
        from sklearn.metrics import get_scorer

        self.name = _name_of(scoring)
        self._rows, self._yardstick = rows, yardstick_for(rows)
        self._labels = rows.labels
        self._scorer: Any = get_scorer(scoring) if isinstance(scoring, str) else scoring
        known = influence.OF_CLASSES if rows.is_classes else influence.OF_NUMBERS
        self._known = isinstance(scoring, str) and scoring in known
        rng, n_rows = check_random_state(0), rows.encoding.n_rows
        n_drawn = min(n_rows, MOST_DRAWN)
        n_draws = 0 if self._known else RESAMPLES
        self._drawn = [rng.randint(0, n_rows, n_drawn) for _ in range(n_draws)]
        self._drawn_share = n_drawn / n_rows
        self._warned: set[str] = set()

    def judge(self, raw: Floats) -> Judged:
        """Return how good raw predictions are, of shape (n_outputs, m)."""
        model = _model_of(self._rows.origin, raw)
        score = self._score_of_all(model)
        if self._known:
            values = self._influence(model)
        else:
            values = np.array([self._score_of_drawn(model, drawn) for drawn in self._drawn])
        return Judged(score, self._yardstick.measure(raw).metrics, values)

    def standard_error(self, judged: Judged, other: Judged | None = None) -> float:
        """Return the standard error of a score, or of its difference to that of another."""
        values = judged.values if other is None else judged.values - other.values
        if self._known:
            return error_of_mean(values, self._rows.plain_weight)
        known = values[np.isfinite(values)]
        scatter = float(known.std(ddof=1)) if known.size > 1 else 0.0
        return scatter * float(np.sqrt(self._drawn_share))

    def _score(self, model: Any, some: NDArray[np.int64]) -> float:
        rows = self._rows
        weights = {} if rows.plain_weight is None else {"sample_weight": rows.plain_weight[some]}
        return float(self._scorer(model, some[:, np.newaxis], self._labels[some], **weights))

    def _score_of_all(self, model: Any) -> float:
        """Return the score on all rows, or say why there is none."""
        why, reason = None, "it has no value there"
        with warnings.catch_warnings(record=True) as caught:
            # Of constants many scores are not defined. That is no news if a number comes of it.
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            try:
                score = self._score(model, np.arange(self._rows.encoding.n_rows))
            except Exception as error:
                why, score, reason = error, np.nan, str(error).strip().rstrip(".")
                reason = reason.replace(type(model).__name__, "this model")
        self._pass_on(caught)
        if np.isfinite(score):
            return score
        raise OptionError(
            f"{{scoring={self.name}}} cannot score these validation rows: {escaped(reason)}."
            f"{escaped(self._advice(reason))}"
        ) from why

    def _pass_on(self, caught: list[warnings.WarningMessage]) -> None:
        """Issue warnings of the scorer, each once rather than for each of a hundred models."""
        for each in caught:
            if str(each.message) not in self._warned:
                self._warned.add(str(each.message))
                warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)

    def _score_of_drawn(self, model: Any, drawn: NDArray[np.int64]) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return self._score(model, drawn)
            except Exception:
                return float("nan")  # drawn again, rows may lack a class

    def _advice(self, reason: str) -> str:
        """Return what may help where a scorer fails."""
        rows, origin = self._rows, self._rows.origin
        if rows.numbers is None or origin is None:
            about_classes = _ABOUT_CLASSES.search(reason)
            return " The model predicts numbers, not classes." if about_classes else ""
        classes, advice = origin.classes, ""
        missing = [label for k, label in enumerate(classes) if k not in rows.classes_there]
        if missing:
            advice += f" Of the classes of the model there is no row of {listed(missing)}."
        elif len(classes) > 2:
            advice += (
                f" The model has {len(classes)} classes, for which there are 'roc_auc_ovr', "
                "'f1_macro' and their like."
            )
        elif "pos_label" in reason:
            advice += (
                " Say in Python which class is the positive one, as in "
                f"make_scorer(f1_score, pos_label={classes[1]!r}), or take a score that asks for "
                "none, as 'f1_macro', 'balanced_accuracy' and 'roc_auc' do."
            )
        if "sample_weight" in reason:
            advice += " Rows have weights: leave them out, or give a scorer that takes them."
        return advice

    def _influence(self, model: Any) -> Floats:
        """Return how far each row moves the score."""
        rows = self._rows
        m = rows.encoding.n_rows
        weight = np.ones(m) if rows.plain_weight is None else rows.plain_weight
        share = weight / weight.sum()
        if rows.numbers is not None:
            everything = np.arange(m)[:, np.newaxis]
            classes = model.classes_.tolist()
            positive = classes.index(1) if 1 in classes else len(classes) - 1
            told = influence.Told(model.predict_proba(everything), rows.numbers, share, positive)
            return influence.OF_CLASSES[self.name](told)
        said = influence.Predicted(model.predicted.reshape(m, -1), rows.target.T, share)
        return influence.OF_NUMBERS[self.name](said)


def judge_for(rows: RoutedRows, scoring: Scoring) -> Judge:
    """Return what judges models on some rows."""
    if scoring is None:
        if rows.only_class is not None:
            raise OptionError(
                "Validation rows must be of two classes or more, got "
                f"{escaped(repr(rows.only_class))} only, which a constant tells without any loss. "
                "Give rows of other classes too, folds such as StratifiedKFold, or "
                "{scoring='accuracy'}."
            )
        return LossJudge(rows)
    if not rows.labelled:
        raise OptionError(
            f"{{scoring={_name_of(scoring)}}} needs a target: give {{y}} and {{y_val}}, or leave "
            "it out."
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


def _name_of(scoring: str | Callable[..., float]) -> str:
    if isinstance(scoring, str):
        return scoring
    inner = getattr(scoring, "_score_func", scoring)
    return str(getattr(inner, "__name__", type(inner).__name__))


# A model as scorers see it


class _Numbers(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Predictions that are there already; rows are asked for by their numbers."""

    def __init__(self, predicted: NDArray[Any]) -> None:
        self.predicted = predicted
        self.fitted_ = True

    def predict(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        return self.predicted[rows[:, 0]]


class _Classes(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The same for classes."""

    def __init__(self, classes: NDArray[Any], raw: Floats, probabilities: Floats) -> None:
        self.classes_ = classes
        self.raw, self.probabilities = raw, probabilities

    def predict(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        labels: NDArray[Any] = self.classes_[np.argmax(self.probabilities[rows[:, 0]], axis=1)]
        return labels

    def predict_proba(self, rows: NDArray[np.int64]) -> Floats:
        found: Floats = self.probabilities[rows[:, 0]]
        sums = found.sum(axis=1, keepdims=True)
        # Dividing by what is 1 but for rounding would tell rows apart that are the same.
        sums[np.abs(sums - 1.0) < ROUNDING] = 1.0
        found /= sums
        return found

    def decision_function(self, rows: NDArray[np.int64]) -> Floats:
        return self.raw[rows[:, 0]]


def _model_of(origin: Origin | None, raw: Floats) -> Any:
    """Return raw predictions, of shape (n_outputs, m), as a model that scorers can ask."""
    by_row: Floats = raw[0] if len(raw) == 1 else raw.T
    if origin is None or not origin.classes:
        return _Numbers(response.through_link(origin, by_row))
    return _Classes(labels_of(origin), by_row, response.probabilities(origin, by_row))
