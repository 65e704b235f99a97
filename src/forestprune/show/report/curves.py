"""Curves about classes: which rows a probability finds, and how often it is right."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestprune.forest.response import probabilities
from forestprune.select.routed import RoutedRows
from forestprune.show.plotting.look import shortened
from forestprune.text.meaning import label_in_words

MAX_CLASSES = 20
"""Classes that have curves, those with the most rows."""

BINS = 10
"""Ranges of probabilities, all as wide, of which it is told how often they are right."""

LEAST_ROWS = 20
"""Rows that are told of together at least: ranges with fewer are joined to the next."""

MOST_POINTS, FEWER_POINTS = 120, 50
"""Points of a curve: of two classes, and of more."""

LETTERS = 40
"""Of the name of a class."""

Floats = NDArray[np.float64]


def class_curves(rows: RoutedRows | None, raw: Any) -> dict[str, Any] | None:
    """Return for classes how the full model and another tell them apart; None if there are none.

    Each class is told apart from all others; of two classes the second is.

    Parameters
    ----------
    rows : RoutedRows or None
    raw : array of shape (m,) or (m, n_outputs)
        The raw predictions of the other model.
    """
    if rows is None or rows.numbers is None or rows.origin is None:
        return None
    full = rows.full[0] if len(rows.full) == 1 else rows.full.T
    sure = {
        "before": probabilities(rows.origin, full),
        "after": probabilities(rows.origin, np.asarray(raw, np.float64)),
    }
    labels, numbers = rows.origin.classes, rows.numbers
    weight = np.ones(numbers.size) if rows.plain_weight is None else rows.plain_weight
    count = np.bincount(numbers, minlength=len(labels))
    shown = [1] if len(labels) == 2 else np.sort(np.argsort(-count, kind="stable")[:MAX_CLASSES])
    most = MOST_POINTS if len(labels) == 2 else FEWER_POINTS
    classes = [
        {
            "name": shortened(label_in_words(labels[number]), LETTERS),
            "rows": int(count[number]),
            "models": {
                name: _of_class(each[:, number], numbers == number, weight, most)
                for name, each in sure.items()
            },
        }
        for number in shown
        if 0.0 < weight[numbers == number].sum() < weight.sum()
    ]
    told = {"classes": classes, "not_shown": len(labels) - len(shown) if len(labels) > 2 else 0}
    return told if classes else None


def _of_class(
    probability: Floats, positive: NDArray[np.bool_], weight: Floats, most: int
) -> dict[str, Any]:
    roc = _roc(probability, positive, weight)
    wrong, found = roc[:, 0], roc[:, 1]
    area = float((np.diff(wrong) * (found[1:] + found[:-1]) / 2).sum())
    return {
        "auc": round(area, 4),
        "roc": np.round(_thinned(roc, most), 4).tolist(),
        "calibration": _calibration(probability, positive, weight),
    }


def _roc(probability: Floats, positive: NDArray[np.bool_], weight: Floats) -> Floats:
    """Return the share of others and of the class that is at least as likely, for each threshold.

    The third column has the thresholds; the first row, where nothing is found, has one above 1.
    """
    order = np.argsort(-probability, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(probability[order])), order.size - 1)
    shares = [
        np.cumsum(some[order])[ends] / some.sum()
        for some in (np.where(positive, 0.0, weight), np.where(positive, weight, 0.0))
    ]
    steps = np.column_stack([*shares, probability[order][ends]])
    return np.vstack([[0.0, 0.0, 1.01], steps])


def _thinned(roc: Floats, most: int) -> Floats:
    """Return a curve with fewer points, about as far from each other along it."""
    if len(roc) <= most:
        return roc
    along = roc[:, 0] + roc[:, 1]
    return roc[np.unique(np.searchsorted(along, np.linspace(0.0, along[-1], most)))]


def _calibration(
    probability: Floats, positive: NDArray[np.bool_], weight: Floats
) -> list[list[float]]:
    """Return mean probability, share of the class, and rows, of rows of similar probability."""
    place = np.clip((probability * BINS).astype(np.int64), 0, BINS - 1)
    order = np.argsort(place, kind="stable")
    sizes = np.bincount(place, minlength=BINS)
    ends: list[int] = []  # of groups of rows, each of some ranges
    for end in np.cumsum(sizes).tolist():
        if end - (ends[-1] if ends else 0) >= LEAST_ROWS:
            ends.append(end)
    if ends and ends[-1] < order.size:
        ends.pop()
    found = []
    for rows in np.split(order, [*ends, order.size][:-1]):
        if rows.size and weight[rows].sum() > 0.0:
            mean = float(np.average(probability[rows], weights=weight[rows]))
            share = float(np.average(positive[rows], weights=weight[rows]))
            found.append([round(mean, 4), round(share, 4), rows.size])
    return found
