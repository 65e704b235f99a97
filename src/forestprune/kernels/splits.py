"""The best split of one node, given what its rows ask for by bins: see histograms.py.

With the sums S_k of what rows ask for and their weight N, a leaf that adds f_k lowers the loss by
``sum of S_k f_k - (N + shrinkage) f_k^2 / 2``, the most with f_k = S_k / (N + shrinkage), or with
what is nearest to that between `low` and `high`. The gain of a split is what its children lower
the loss by, less what the node does alone.

If `linear`, what rows ask for says by how much the loss falls if they go left rather than right:
then gain is what those say that go left.
"""

import numpy as np

from forestprune.kernels.jit import inner, kernel
from forestprune.kernels.records import MOST_BINS, NUMERIC, ONE_RIGHT


@inner
def _fall(sums, weight, price, low, high, k):
    """Return by how much a leaf lowers the loss by what it adds to output k."""
    heavier = weight + price.shrinkage
    f = sums / heavier if heavier > 0.0 else 0.0
    if low.size:
        f = min(max(f, low[k]), high[k])
    return f * (sums - 0.5 * heavier * f)


@inner
def _gain(total, part, price, sign, low, high):
    """Return the gain if `part` of the `total` sums goes left; -inf if that must not be."""
    outputs = total.size - 1
    lefts, rights = part[outputs], total[outputs] - part[outputs]
    if lefts < price.least_weight or rights < price.least_weight:
        return -np.inf
    if price.linear:
        return part[0]
    gain = 0.0
    for k in range(outputs):
        if sign:
            left = _clipped(part[k], lefts, price, low, high, k)
            right = _clipped(total[k] - part[k], rights, price, low, high, k)
            if sign * (right - left) < 0.0:
                return -np.inf
        gain += _fall(part[k], lefts, price, low, high, k)
        gain += _fall(total[k] - part[k], rights, price, low, high, k)
    return gain


@inner
def _clipped(sums, weight, price, low, high, k):
    heavier = weight + price.shrinkage
    f = sums / heavier if heavier > 0.0 else 0.0
    return min(max(f, low[k]), high[k]) if low.size else f


@inner
def _scan(sums, total, start, stop, missing, to_left, price, sign, low, high, part):
    """Return the best gain of a numeric column, and its border: bins up to it go left.

    Bins start..stop are those of numbers. That of what is missing, `missing`, goes left if
    `to_left`; -1 if there is none. Of borders between which no row is, the one in the middle.
    """
    width = total.size
    for k in range(width):
        part[k] = sums[missing, k] if missing >= 0 and to_left else 0.0
    best, border, last = -np.inf, -1, -1
    for b in range(start, stop - 1):
        # A border behind a bin without rows parts no others than the one before; behind the first
        # bin, it parts what is missing.
        if sums[b, width - 1] > 0.0 or (b == start and part[width - 1] > 0.0):
            for k in range(width):
                part[k] += sums[b, k]
            gain = _gain(total, part, price, sign, low, high)
            if gain > best:
                best, border, last = gain, b, b
        elif last == b - 1 and border >= 0:
            last = b
    return best, (border + last) // 2 - start if border >= 0 else -1


@inner
def _scan_plainly(sums, total, start, stop, missing, to_left, price):
    """Return what `_scan` does, of one output whose values have no bounds: many times faster."""
    asked, weight = total[0], total[1]
    left, lefts = 0.0, 0.0
    if missing >= 0 and to_left:
        left, lefts = sums[missing, 0], sums[missing, 1]
    best, border, last = -np.inf, -1, -1
    most = weight - price.least_weight
    for b in range(start, stop - 1):
        here = sums[b, 1]
        if here > 0.0 or (b == start and lefts > 0.0):
            left += sums[b, 0]
            lefts += here
            if lefts > most:
                break
            if lefts < price.least_weight:
                continue
            if price.linear:
                gain = left
            else:
                right = asked - left
                one, other = lefts + price.shrinkage, weight - lefts + price.shrinkage
                # As one quotient, for quotients take long; both are 0 only if nothing weighs.
                both = one * other
                gain = (
                    0.5 * (left * left * other + right * right * one) / both if both > 0.0 else 0.0
                )
            if gain > best:
                best, border, last = gain, b, b
        elif border >= 0 and last == b - 1:
            last = b
    return best, (border + last) // 2 - start if border >= 0 else -1


@inner
def _search_sets(sums, total, start, stop, one_right, price, low, high, part, order, key):
    """Return the best gain of a column of categories, and how many go left, as `order` has them.

    The last bin, of all that has none of its own, always goes right. If only one may go right, the
    first of `order` is that one.
    """
    width, count = total.size, 0
    for b in range(start, stop - (0 if one_right else 1)):
        if sums[b, width - 1] > 0.0:
            order[count] = b - start
            # Falls are convex in sums and weight, so the best set has the highest means, or the
            # lowest, whatever the shrinkage.
            key[count] = sums[b, 0] / (1.0 if price.linear else sums[b, width - 1])
            count += 1
    best, lefts = -np.inf, 0
    if one_right or width > 2:
        chosen = -1
        for j in range(count):
            if one_right and order[j] == stop - 1 - start:
                continue  # there is no category that it stands for
            for k in range(width):
                own = sums[start + order[j], k]
                part[k] = total[k] - own if one_right else own
            gain = _gain(total, part, price, 0, low, high)
            if gain > best:
                best, chosen = gain, order[j]
        order[0], lefts = chosen, 1
        return best, lefts
    by_key = np.argsort(key[:count])
    ranked = order[:count].copy()
    # What goes left must be a set, and others go right: so both ends are tried.
    for end in range(2):
        for k in range(width):
            part[k] = 0.0
        for j in range(count):
            place = by_key[j] if end == 0 else by_key[count - 1 - j]
            for k in range(width):
                part[k] += sums[start + ranked[place], k]
            gain = _gain(total, part, price, 0, low, high)
            if gain > best:
                best, lefts = gain, j + 1 if end == 0 else -j - 1
    for j in range(count):
        order[j] = ranked[by_key[j]] if lefts > 0 else ranked[by_key[count - 1 - j]]
    return best, abs(lefts)


@kernel
def best_split(columns, about, sums, total, price, low, high, goes_left):
    """Return gain, column and border of the best split on some columns.

    `total` are the sums of all rows. Writes which bins go left into `goes_left`, (MOST_BINS,). The
    border is -1 of a set of categories, and the column if nothing gains; if `linear`, something may
    also cost.
    """
    part = np.empty(total.size)
    order, key = np.empty(MOST_BINS, np.int64), np.empty(MOST_BINS)
    # Of subtrees that stay below, one that is better than the present one may still cost.
    best = -np.inf if price.linear else 0.0
    column, border, to_left, lefts = -1, -1, False, 0
    chosen = np.empty(MOST_BINS, np.int64)
    alone = 0.0
    if not price.linear:
        for k in range(total.size - 1):
            alone += _fall(total[k], total[total.size - 1], price, low, high, k)
    for f in columns:
        start, stop = about.first[f], about.first[f + 1]
        kind, sign = about.kind[f], about.sign[f]
        if kind == NUMERIC:
            missing = stop - 1 if about.missing[f] > -2 else -1
            numbers = stop if missing < 0 else stop - 1
            there = missing >= 0 and sums[missing, total.size - 1] > 0.0
            for side in range(2):
                left = side == 1
                if missing >= 0 and about.missing[f] >= 0 and left != (about.missing[f] == 1):
                    continue  # the library sends it the other way
                if not there and left and about.missing[f] != 1:
                    continue  # nobody asks where
                if total.size == 2 and not low.size and not sign:
                    gain, found = _scan_plainly(sums, total, start, numbers, missing, left, price)
                else:
                    gain, found = _scan(
                        sums, total, start, numbers, missing, left, price, sign, low, high, part
                    )
                if gain - alone > best:
                    best, column, border, to_left = gain - alone, f, found, left
        else:
            one = kind == ONE_RIGHT
            gain, some = _search_sets(
                sums, total, start, stop, one, price, low, high, part, order, key
            )
            if gain - alone > best:
                best, column, border, to_left, lefts = gain - alone, f, -1, False, some
                for j in range(some):
                    chosen[j] = order[j]
    if column >= 0:
        bins = about.first[column + 1] - about.first[column]
        if border >= 0:
            if (
                about.missing[column] == -1
                and sums[about.first[column + 1] - 1, total.size - 1] == 0.0
            ):
                # Should something be missing one day, it goes where most rows go.
                lighter = 0.5 * total[total.size - 1]
                for b in range(about.first[column], about.first[column] + border + 1):
                    lighter -= sums[b, total.size - 1]
                to_left = lighter <= 0.0
            for b in range(MOST_BINS):
                goes_left[b] = b <= border
            if about.missing[column] > -2:
                goes_left[bins - 1] = to_left
        else:
            one = about.kind[column] == ONE_RIGHT
            for b in range(MOST_BINS):
                goes_left[b] = one
            for j in range(lefts):
                goes_left[chosen[j]] = not one
    return best, column, border
