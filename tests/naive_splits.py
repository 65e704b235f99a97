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


def ends_of_sides(asked, weight, sides, sign, price, ends):
    """Return what values are bounded by on both sides of a split, given what they are at it."""
    if ends is None or not sign:
        return [ends, ends]
    values = [
        fall(asked[:, rows].sum(1), weight[rows].sum(), price.shrinkage, ends)[1] for rows in sides
    ]
    middle = [(a + b) / 2 for a, b in zip(*values, strict=True)]
    bounds = [(ends[0], middle), (middle, ends[1])]
    return bounds if sign > 0 else bounds[::-1]


def all_best(columns, *node):
    """Return the best split of each column whose best gain is that of all, but for rounding."""
    found = [best_of([column], *node) for column in columns]
    most = max((gain for gain, _, _ in found), default=-math.inf)
    return [split for split in found if split[0] >= most - 1e-9 * (1.0 + abs(most))]


@dataclass(eq=False)
class Part:
    """A leaf of a tree that grows: its rows, what is split on above it, and its bounds."""

    rows: np.ndarray
    above: tuple[int, ...] = ()
    ends: tuple | None = None
    best: tuple = ()

    @property
    def gain(self):
        return self.best[0][0] if self.best else -math.inf


def grown(bins, asked, weight, about, price, n_leaves, *, may, max_depth=None, ends=None):
    """Yield the leaves of trees that take the split with the largest gain first, as Parts.

    ``may(columns)`` tells whether these columns may meet on a way from the root. Of columns that
    part the rows in the same way any may be taken: each is a tree of its own, for it says what may
    be asked below.
    """

    def looked_at(part):
        columns = [f for f in range(len(bins)) if may({*part.above, f})]
        if max_depth is None or len(part.above) < max_depth:
            here = part.rows
            node = (bins[:, here], asked[:, here], weight[here])
            part.best = tuple(all_best(columns, *node, about, price, part.ends))
        return part

    def below(leaves):
        widest = max(leaves, key=lambda part: part.gain)
        if len(leaves) == n_leaves or widest.gain <= 1e-12:
            yield leaves
            return
        for _, column, lefts in widest.best:
            goes = np.isin(bins[column, widest.rows], list(lefts))
            sides = [widest.rows[goes], widest.rows[~goes]]
            bounds = ends_of_sides(asked, weight, sides, about.sign[column], price, widest.ends)
            above = (*widest.above, column)
            new = [looked_at(Part(*two)) for two in zip(sides, (above, above), bounds, strict=True)]
            yield from below([part for part in leaves if part is not widest] + new)

    return below([looked_at(Part(np.arange(weight.size), (), ends))])
