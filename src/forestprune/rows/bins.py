"""Columns in bins: what new splits are chosen by.

A column of numbers has up to 254 borders: thresholds that the forest has on it, as far as there is
room, and others between the numbers of the rows, so that about as many rows are in each bin; and
where something is missing, one beyond all numbers, for splits that ask for that alone. Where there
are many columns each has fewer of these, for all bins are looked at for each node. What is missing
has a bin of its own behind them. A column of categories has a bin for each of the most frequent
ones, and behind them one for all others, seen or not, and for what is missing.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestprune.forest.checks import seal
from forestprune.forest.forest import Forest
from forestprune.forest.inputs import FloatMatrix
from forestprune.forest.new_splits import LEFT, NEVER, SplitLimits, as_compared
from forestprune.kernels.records import NUMERIC, ONE_RIGHT, SETS, BinnedColumns
from forestprune.system.threads import run_in_threads, split_range, thread_count

MOST_BORDERS = 254
MOST_OWN = 200
"""How many thresholds of the forest itself are borders at most."""

MOST_IN_ALL, FEWEST = 20_000, 30
"""So many bins of all columns are looked at for each node, unless columns would have fewer."""

MOST_ROWS = 100_000
"""Of more rows so many, evenly spread, say where borders are."""


@dataclass(frozen=True, eq=False)
class Bins:
    """How columns are cut into bins.

    Attributes
    ----------
    borders : tuple of float64 arrays
        For each column its borders, rising: bin b is left of ``x <= borders[b]``. Of a column of
        categories the codes that have bins of their own.
    columns : BinnedColumns
    """

    borders: tuple[NDArray[np.float64], ...]
    columns: BinnedColumns

    def of(self, matrix: FloatMatrix, n_jobs: int | None = None) -> NDArray[np.uint8]:
        """Return the bin of each row, (n_columns, m), for rows that `InputSpec.matrix` checked."""
        bins = np.empty((len(self.borders), len(matrix)), np.uint8)
        tasks = [
            (self, matrix, first, last, bins)
            for first, last in split_range(len(self.borders), 4 * thread_count(n_jobs))
        ]
        run_in_threads(_fill, tasks, n_jobs, "binning")
        return seal(bins)

    def count(self, column: int) -> int:
        """Return how many bins a column has."""
        return int(self.columns.first[column + 1] - self.columns.first[column])


def make_bins(forest: Forest, matrix: FloatMatrix, limits: SplitLimits) -> Bins:
    """Return bins for the columns of a forest, given rows."""
    rows = np.arange(len(matrix))
    if rows.size > MOST_ROWS:
        rows = np.linspace(0, rows.size - 1, MOST_ROWS).astype(np.int64)
    some = matrix[rows] if rows.size < len(matrix) else matrix
    numeric = forest.left >= 0
    if forest.category_set.size:
        numeric &= forest.category_set < 0
    split, threshold = forest.feature[numeric], forest.threshold[numeric]
    most = _most_borders(limits)
    borders, counts = [], []
    for column in range(forest.n_features):
        if limits.categorical[column]:
            # Where one category alone can be asked for, the last code stands for any other.
            count = int(limits.max_category[column]) - limits.one_category
            own = _frequent_codes(some[:, column], count)
            counts.append(own.size + 1)
        else:
            asked = threshold[split == column]
            apart = _border_of_gaps(some[:, column], asked, int(limits.missing[column]))
            own = _borders(some[:, column], np.concatenate([asked, apart]), most)
            own = np.unique(as_compared(forest, own))
            counts.append(own.size + 1 + (limits.missing[column] > -2))
        borders.append(seal(own))
    kind = np.where(limits.categorical, ONE_RIGHT if limits.one_category else SETS, NUMERIC)
    missing = np.where(limits.categorical, -2, limits.missing)
    sign = forest.monotone if forest.monotone.size else np.zeros(forest.n_features)
    sign = np.where(limits.categorical, 0, sign)  # categories have no order that could be kept
    return Bins(
        tuple(borders),
        BinnedColumns(
            first=seal(np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])),
            kind=seal(kind.astype(np.int8)),
            sign=seal(sign.astype(np.int8)),
            missing=seal(missing.astype(np.int8)),
        ),
    )


def most_bins(forest: Forest, limits: SplitLimits) -> int:
    """Return how many bins the columns of a forest have at most, all together."""
    own = np.bincount(forest.feature[forest.left >= 0], minlength=forest.n_features)
    borders = np.maximum(np.minimum(own, MOST_OWN), _most_borders(limits))
    borders[limits.categorical] = MOST_BORDERS
    return int(borders.sum()) + 3 * forest.n_features  # beyond all, for gaps apart, and for gaps


def _most_borders(limits: SplitLimits) -> int:
    """Return how many borders a column of numbers has, unless the forest has more on it."""
    numbers = max(int(np.count_nonzero(~limits.categorical)), 1)
    return min(MOST_BORDERS, max(MOST_IN_ALL // numbers, FEWEST))


def _fill(bins: Bins, matrix: FloatMatrix, first: int, last: int, out: NDArray[np.uint8]) -> None:
    """Write the bins of columns first..last."""
    for column in range(first, last):
        borders, x = bins.borders[column], matrix[:, column]
        if bins.columns.kind[column] == NUMERIC:
            found = np.searchsorted(borders, x.astype(np.float64), side="left")
            absent = bins.count(column) - 1
            if bins.columns.missing[column] > -2:
                found[np.isnan(x)] = absent
        else:
            code = np.trunc(x.astype(np.float64))
            found = np.searchsorted(borders, code, side="left")
            known = (found < borders.size) & (x >= 0.0)
            known[known] = borders[found[known]] == code[known]
            found[~known] = borders.size
        out[column] = found


def _borders(x: FloatMatrix, own: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    """Return the borders of a column of numbers, the forest's own thresholds on it among them.

    There are not more than `most`, unless the forest has more.
    """
    values, counts = np.unique(x[~np.isnan(x)], return_counts=True)
    own = _evenly(np.unique(own), MOST_OWN)
    if values.size < 2:
        return own
    # In the precision in which rows are compared, never as far as the upper one, and finite.
    precise: NDArray[Any] = values
    low, high = precise[:-1], precise[1:]
    with np.errstate(invalid="ignore", under="ignore"):
        middle = np.float32(0.5) * low + np.float32(0.5) * high
    middle = np.maximum(np.where(middle < high, middle, low), low)
    middle = np.maximum(middle, np.finfo(precise.dtype).min).astype(np.float64)
    # Between two numbers one border will do: the forest's own, if it has one there.
    free = np.searchsorted(own, high, side="left") == np.searchsorted(own, low, side="left")
    room = max(most - own.size, 0)
    if np.count_nonzero(free) > room:
        # Those that come closest to equally many rows in each bin.
        below = np.cumsum(counts)[:-1]
        wanted = np.linspace(0, below[-1] + counts[-1], room + 2)[1:-1]
        near = np.unique(np.searchsorted(below, wanted).clip(0, below.size - 1))
        chosen = np.zeros(free.size, np.bool_)
        chosen[near] = True
        free &= chosen
    return np.unique(np.concatenate([own, middle[free]]))


def _border_of_gaps(x: FloatMatrix, own: NDArray[np.float64], side: int) -> NDArray[np.float64]:
    """Return the border that has all numbers of a column on one side and NaN on the other.

    None if nothing is missing, or if the forest has one already. As XGBoost does, numbers may be
    twice as far from 0 before they pass for missing ones.
    """
    gaps = np.isnan(x)
    numbers = x[~gaps].astype(np.float64)
    far = float(np.finfo(x.dtype).max)
    if side == NEVER or not gaps.any() or not numbers.size or np.abs(numbers).max() >= far:
        return np.empty(0)
    if side == LEFT:
        edge = numbers.min()
        border, known = max(edge - abs(edge) - 1.0, -far), (own < edge).any()
    else:
        edge = numbers.max()
        border, known = max(edge, min(edge + abs(edge) + 1.0, 0.5 * far)), (own >= edge).any()
    return np.empty(0) if known else np.array([border])


def _frequent_codes(x: FloatMatrix, count: int) -> NDArray[np.float64]:
    """Return the codes of categories that get a bin, rising."""
    known = x[(x >= 0) & (x < count)].astype(np.int64)
    codes, rows = np.unique(known, return_counts=True)
    if codes.size > MOST_BORDERS:
        codes = np.sort(codes[np.argsort(-rows, kind="stable")[:MOST_BORDERS]])
    return codes.astype(np.float64)


def _evenly(numbers: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    """Return at most so many of some numbers, evenly spread."""
    if numbers.size <= most:
        return numbers
    return numbers[np.linspace(0, numbers.size - 1, most).astype(np.int64)]
