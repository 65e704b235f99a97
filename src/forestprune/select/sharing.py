"""Thresholds that are close are made one, so that a program keeps fewer of them.

Of each column all thresholds in one bin, between two neighbours of as many borders as there are
bins, evenly spread over the rows, become that one of them which most splits have. So thresholds
keep their order, if not strictly: the new model is the old one of columns that have been bent, each
by a function that never falls. That is why what the model promises remains true: predictions that
never fall as a column rises still do not, and levels of symmetric trees still ask one question.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestprune.deploy.sizes import deployed_bytes
from forestprune.forest.forest import Forest
from forestprune.forest.inputs import FloatMatrix
from forestprune.interop.source import Source
from forestprune.options import DEPLOYED, require_number
from forestprune.select.pruned import PrunedForest
from forestprune.select.routed import RoutedRows

BINS = (254, 128, 64, 32, 16)
"""Of how many bins a column may have; the coarsest that is good enough is taken."""

_BEYOND = float(np.finfo(np.float64).max)
"""Thresholds there tell what is missing from all numbers."""


def share_thresholds(
    small: PrunedForest,
    X: Any,
    y: ArrayLike | None,
    *,
    tolerance: float,
    sample_weight: ArrayLike | None,
    n_jobs: int | None,
) -> PrunedForest:
    """Return a model with fewer thresholds; see :meth:`PrunedForest.share_thresholds`."""
    require_number("tolerance", tolerance)
    source = Source(small.forest)
    matrix = small.forest.input.matrix(X if small.source is None else small.source.transform(X))
    rows = RoutedRows.of_matrix(source, matrix, y, sample_weight, n_jobs)
    counted = small.ending[1:] if small.ending[1:] in DEPLOYED else "c-float32"
    before = after = _score(rows, rows.full)
    fewest = n_bytes = deployed_bytes(small.forest, counted)
    best = None
    for n_bins in BINS:
        shared = with_one_threshold_a_bin(small.forest, matrix, n_bins)
        size = deployed_bytes(shared, counted)
        if size >= fewest:
            continue
        score = _score(rows, shared.predict_matrix(matrix, n_jobs).T)
        # What is the same but for rounding is the same.
        if score >= before - tolerance - 1e-9 * (1.0 + abs(before)):
            best, fewest, after = shared, size, score
    if best is None:
        return small
    told = {
        "thresholds": [small.forest.n_thresholds, best.n_thresholds],
        "bytes": [n_bytes, fewest],
        "score": [before, after],
        "rows": len(matrix),
    }
    report = small.report | {"shared_thresholds": told}
    report.pop("certificate", None)  # which was about the model with its own thresholds
    return replace(small, forest=best, report=report, path=None, index=None)


def with_one_threshold_a_bin(forest: Forest, matrix: FloatMatrix, n_bins: int) -> Forest:
    """Return a forest with one threshold in each bin of each column."""
    numeric = (forest.left >= 0) & (np.abs(forest.threshold) < _BEYOND)
    if forest.category_set.size:
        numeric &= forest.category_set < 0
    numeric &= ~np.isin(forest.feature, forest.input.zero_is_missing)
    threshold = forest.threshold.copy()
    for column in np.unique(forest.feature[numeric]):
        nodes = np.flatnonzero(numeric & (forest.feature == column))
        threshold[nodes] = _shared(threshold[nodes], _borders(matrix[:, column], n_bins))
    return replace(forest, threshold=threshold)


def _borders(column: NDArray[Any], n_bins: int) -> NDArray[np.float64]:
    known: NDArray[np.float64] = column[np.isfinite(column)].astype(np.float64)
    if not known.size:
        return known
    inner = np.linspace(0.0, 1.0, n_bins + 1)[1:-1]
    borders: NDArray[np.float64] = np.unique(np.quantile(known, inner, method="lower"))
    return borders


def _shared(threshold: NDArray[np.float64], borders: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return for each threshold the one that most have of those in its bin; of several, the first.

    Its library has it already, so it can be written.
    """
    distinct, which, counts = np.unique(threshold, return_inverse=True, return_counts=True)
    bins = np.searchsorted(borders, distinct, side="right")
    by_use = np.lexsort((distinct, -counts, bins))
    first = by_use[np.unique(bins[by_use], return_index=True)[1]]
    return np.asarray(distinct[first][np.unique(bins, return_inverse=True)[1]][which])


def _score(rows: RoutedRows, raw: NDArray[np.float64]) -> float:
    """Return the share of the loss that raw predictions explain."""
    loss, target, weight = rows.loss, rows.target, rows.sample_weight
    constant = loss.best_constant(target, weight)[:, np.newaxis]
    score: float = loss.score(
        loss.value(target, np.ascontiguousarray(raw), weight),
        loss.value(target, np.broadcast_to(constant, target.shape).copy(), weight),
    )
    return score
