"""What scores and other figures are called where they are shown, and errors made of scores."""

import numpy as np
from numpy.typing import NDArray

from forestprune.forest.origin import Origin
from forestprune.loss import Loss

LABELS = {
    "rmse": "RMSE",
    "mae": "MAE",
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "log_loss": "log-loss",
    "roc_auc": "AUC",
}
"""Figures beside the score by name, in the order in which they are told."""

IN_UNITS = ("rmse", "mae")
"""Figures in the units of the target; the others are of classes."""

OF_CLASSES = tuple(name for name in LABELS if name not in IN_UNITS)

Floats = NDArray[np.float64]


def share_explained(loss: Loss | None, origin: Origin | None) -> str:
    """Return what the share of a loss that is explained is called; None stands for squares."""
    classes = origin is not None and bool(origin.classes)
    return "R squared" if loss is None or (loss.quadratic and not classes) else "D squared"


def short_name(score: str) -> str:
    """Return what a score is called where there is little room."""
    return {"R squared": "R²", "D squared": "D²"}.get(score, score)


def column_name(score: str) -> str:
    """Return what a score is called in tables for programs."""
    return score.lower().replace(" ", "_")


def errors_of(score: str, scores: Floats) -> Floats:
    """Return errors, the smaller the better: 1 less the score, or what the score is minus of."""
    return -scores if _is_minus(score) else 1.0 - scores


def error_of(score: str, value: float) -> float:
    """Return the error of one score: see :func:`errors_of`."""
    return float(errors_of(score, np.array([value]))[0])


def error_name(score: str) -> str:
    """Return what these errors are, where there is little room."""
    if _is_minus(score):
        return score.removeprefix("neg_").replace("_", " ")
    return f"1\N{NO-BREAK SPACE}\N{MINUS SIGN}\N{NO-BREAK SPACE}{short_name(score)}"


def _is_minus(score: str) -> bool:
    # As scikit-learn names scorers whose greater values are to be better.
    return score.startswith("neg_")
