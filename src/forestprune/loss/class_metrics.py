"""How well probabilities of classes do: log-loss, accuracy, balanced accuracy, area under ROC."""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

Floats = NDArray[np.float64]

LEAST = float(np.finfo(np.float64).eps)
"""Probabilities are taken to be no smaller, as scikit-learn does for the log-loss."""


def class_metrics(
    probabilities: Floats, classes: NDArray[np.int64], weight: Floats | None
) -> dict[str, float]:
    """Return figures of classification, as scikit-learn defines them.

    Parameters
    ----------
    probabilities : float64 array of shape (n_classes, m), or (1, m) of the second of two
    classes : int64 array of shape (m,)
        The number of each row's class.
    weight : float64 array of shape (m,), or None

    Returns
    -------
    dict
        "log_loss", "accuracy", "balanced_accuracy" over the classes that there are, and
        "roc_auc", of several classes the mean of each against all others; without the latter if a
        class has no rows.
    """
    by_class = with_both(probabilities)
    rows, some = np.arange(classes.size), np.ones(classes.size) if weight is None else weight
    total = by_class.sum(axis=0)
    own = by_class[classes, rows] / np.where(total > 0.0, total, 1.0)
    right = np.argmax(by_class, axis=0) == classes
    n_classes = len(by_class)
    in_class = np.bincount(classes, some, n_classes)
    there = in_class > 0.0
    hits = np.bincount(classes, some * right, n_classes)
    metrics = {
        "log_loss": float(-np.average(np.log(np.clip(own, LEAST, 1.0)), weights=some)),
        "accuracy": float(np.average(right, weights=some)),
        "balanced_accuracy": float((hits[there] / in_class[there]).mean()),
    }
    if there.all():
        first = 1 if n_classes == 2 else 0
        areas = [
            _area(by_class[number], classes == number, some) for number in range(first, n_classes)
        ]
        metrics["roc_auc"] = float(np.mean(areas))
    return metrics


def with_both(probabilities: Floats) -> Floats:
    """Return the probabilities of all classes, also if those of the second alone are given."""
    if len(probabilities) > 1:
        return probabilities
    return np.concatenate([1.0 - probabilities, probabilities])


def _area(score: Floats, positive: NDArray[np.bool_], weight: Floats) -> float:
    """Return the share of pairs in which the positive row has the higher score, ties by half."""
    if np.ptp(weight) == 0.0:
        count = int(positive.sum())
        ranks = float(rankdata(score)[positive].sum())
        return (ranks - count * (count + 1) / 2) / (count * (score.size - count))
    order = np.argsort(score, kind="stable")
    score, positive, weight = score[order], positive[order], weight[order]
    starts = np.concatenate([[0], np.flatnonzero(np.diff(score)) + 1])
    won = np.add.reduceat(np.where(positive, weight, 0.0), starts)
    lost = np.add.reduceat(np.where(positive, 0.0, weight), starts)
    below = np.cumsum(lost) - 0.5 * lost
    return float((won * below).sum() / (won.sum() * lost.sum()))
