"""Slow, obvious twins of how splits are chosen anew: see also `naive.py`."""

import math
from itertools import combinations

import numpy as np

NUMERIC, SETS, ONE_RIGHT = 0, 1, 2


def bin_of(x, borders, *, categorical, with_missing):
    """Return the bin of a number, or of the code of a category."""
    if categorical:
        whole = math.trunc(x) if math.isfinite(x) and x >= 0 else None
        return list(borders).index(whole) if whole in borders else len(borders)
    if math.isnan(x):
        assert with_missing
        return len(borders) + 1
    return sum(bool(x > border) for border in borders)


def fall(sums, weight, shrinkage, ends=None):
    """Return by how much a leaf lowers the loss, and what it adds to each output."""
    best, values = 0.0, []
    for k, asked in enumerate(sums):
        heavier = weight + shrinkage
        value = asked / heavier if heavier > 0.0 else 0.0
        if ends is not None:
            value = min(max(value, ends[0][k]), ends[1][k])
        values.append(value)
        best += value * asked - 0.5 * heavier * value**2
    return best, values


def gain_of(bins, asked, weight, lefts, price, sign=0, ends=None):
    """Return what the loss falls by if the rows in the bins `lefts` go left; None if they must not.

    Of one node with the rows' bins of one column, `asked` (n_outputs, n) and `weight` (n,).
    """
    goes = np.array([b in lefts for b in bins], bool)
    if min(weight[goes].sum(), weight[~goes].sum()) < price.least_weight:
        return None
    if price.linear:
        return asked[0][goes].sum()
    falls, values = [], []
    for side in (goes, ~goes, goes | ~goes):
        found = fall(asked[:, side].sum(1), weight[side].sum(), price.shrinkage, ends)
        falls.append(found[0])
        values.append(found[1])
    if any(sign * (right - left) < 0 for left, right in zip(*values[:2], strict=True)):
        return None
    return falls[0] + falls[1] - falls[2]


def questions(count, kind, missing, outputs=1):
    """Yield the sets of bins that may go left at a split on a column with so many bins."""
    if kind == NUMERIC:
        numbers = count - (missing > -2)
        for border in range(numbers - 1):
            below = frozenset(range(border + 1))
            if missing != 1:
                yield below
            if missing in (-1, 1):
                yield below | {count - 1}
    elif kind == ONE_RIGHT:
        for one in range(count - 1):
            yield frozenset(range(count)) - {one}
    else:
        sizes = range(1, count) if outputs == 1 else [1]
        for size in sizes:
            yield from map(frozenset, combinations(range(count - 1), size))


def best_question(bins, asked, weight, about, column, price, ends=None):
    """Return the best gain that a split on one column has, -inf if it may have none."""
    count = int(about.first[column + 1] - about.first[column])
    kind = int(about.kind[column])
    sign = int(about.sign[column]) if kind == NUMERIC else 0
    gains = [
        gain_of(bins[column], asked, weight, lefts, price, sign, ends)
        for lefts in questions(count, kind, int(about.missing[column]), len(asked))
    ]
    return max((gain for gain in gains if gain is not None), default=-math.inf)
