"""Slow, obvious twins of how splits are chosen anew: see also `naive.py`."""

import math
from dataclasses import dataclass
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
    return best_of([column], bins, asked, weight, about, price, ends)[0]


def best_of(columns, bins, asked, weight, about, price, ends=None):
    """Return gain, column and the bins that go left of the best split; the gain may be -inf."""
    best = (-math.inf, None, None)
    for f in columns:
        count = int(about.first[f + 1] - about.first[f])
        kind = int(about.kind[f])
        sign = int(about.sign[f])
        for lefts in questions(count, kind, int(about.missing[f]), len(asked)):
            gain = gain_of(bins[f], asked, weight, lefts, price, sign, ends)
            if gain is not None and gain > best[0]:
                best = (gain, f, lefts)
    return best


@dataclass(eq=False)
class Part:
    """A leaf of a tree that grows: its rows, what is split on above it, and its bounds."""

    rows: np.ndarray
    above: tuple[int, ...] = ()
    ends: tuple | None = None
    best: tuple = (-math.inf, None, None)


def grown(bins, asked, weight, about, price, n_leaves, *, may, max_depth=None, ends=None):
    """Return the leaves of the tree that takes the split with the largest gain first, as Parts.

    ``may(columns)`` tells whether these columns may meet on a way from the root.
    """

    def looked_at(part):
        columns = [f for f in range(len(bins)) if may({*part.above, f})]
        if max_depth is None or len(part.above) < max_depth:
            here = part.rows
            part.best = best_of(
                columns, bins[:, here], asked[:, here], weight[here], about, price, part.ends
            )
        return part

    leaves = [looked_at(Part(np.arange(weight.size), (), ends))]
    while len(leaves) < n_leaves:
        widest = max(leaves, key=lambda part: part.best[0])
        gain, column, lefts = widest.best
        if gain <= 1e-12:
            break
        goes = np.isin(bins[column, widest.rows], list(lefts))
        sides = [widest.rows[goes], widest.rows[~goes]]
        bounds = [widest.ends, widest.ends]
        sign = about.sign[column]
        if widest.ends is not None and sign:
            values = [
                fall(asked[:, rows].sum(1), weight[rows].sum(), price.shrinkage, widest.ends)[1]
                for rows in sides
            ]
            middle = [(a + b) / 2 for a, b in zip(*values, strict=True)]
            low, high = widest.ends
            bounds = [(low, middle), (middle, high)]
            if sign < 0:
                bounds.reverse()
        leaves.remove(widest)
        leaves += [
            looked_at(Part(rows, (*widest.above, column), end))
            for rows, end in zip(sides, bounds, strict=True)
        ]
    return leaves
