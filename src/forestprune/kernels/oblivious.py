"""Keeping any levels of symmetric trees: the `oblivious` rule.

A symmetric tree of depth d asks the same in all nodes of a level, so a leaf is a number of d bits,
one a level, the first level highest: that is how codes count. If only some levels are kept, leaves
that differ in the others become one, a cell, numbered by the bits that are left. With S the
residual without this tree and N the weight, summed over the rows in a cell, and v the mean of what
its leaves add in the original, a cell that adds f contributes to the objective

    -2 f S + f^2 N + lambda (f - v)^2,

which is least at f = (S + lambda v) / (N + lambda); without refitting f = v. Which levels are kept
is given by bits, too. All 2^d choices are tried. Their cells, 3^d in all, are numbered by digits:
0 or 1 as the bit of a level that is kept, 2 for a level that is not; then each cell is the sum of
two that come before it. Trees of more than MOST_LEVELS drop one level after another instead, each
time the one that is missed least, and keep the best of these choices.

Constraints ask that of two cells that differ in the bit of one level, one is not above the other.
The best such values are those of an isotonic regression.
"""

import numpy as np

from forestprune.kernels.jit import inner, kernel
from forestprune.kernels.records import MOST_CONSTRAINED, MOST_LEVELS
from forestprune.kernels.subtrees import AHEAD, LOOSENED
from forestprune.kernels.sums import FEW, subtract, sum_by

ROUNDS = 50
ENOUGH = 1e-9
"""Rounds at most of an isotonic regression in several levels, and the share of the values' range
that the last round may have moved one by."""


@inner
def number_cells(levels, depth, cell):
    """Write into cell[leaf] the number of the cell that a leaf is in; return how many there are."""
    cell[0], size, cells = 0, 1, 1
    for b in range(depth):
        step = cells if levels >> b & 1 else 0
        for leaf in range(size):
            cell[size + leaf] = cell[leaf] + step
        size *= 2
        if step:
            cells *= 2
    return cells


@inner
def bits_left(bits, levels, depth):
    """Return those of some bits that stand at the levels kept, moved together."""
    left, place = 0, 0
    for b in range(depth):
        if levels >> b & 1:
            left |= (bits >> b & 1) << place
            place += 1
    return left


@inner
def count_levels(levels):
    """Return how many levels are kept."""
    count = 0
    while levels:
        levels &= levels - 1
        count += 1
    return count


@kernel
def number_level_leaves(some, first, levels, leaf_of):
    """Write into `leaf_of` the cells of the leaves first[i]..first[i + 1] of some trees."""
    for i in some:
        leaf, depth = leaf_of[first[i] : first[i + 1]], 0
        while 1 << depth < leaf.size:
            depth += 1
        number_cells(levels[i], depth, leaf)


@kernel
def tabulate_cells(step, leaf, dropped):
    """Write what is known of the cells of all choices, numbered by digits.

    Cell t is the sum of t - step[t] and t - 2 step[t]; if step[t] is 0, it is one leaf, leaf[t].
    dropped[t] are the levels that its choice does without.
    """
    for t in range(step.size):
        rest, power, bit = t, 1, 1
        step[t] = leaf[t] = dropped[t] = 0
        while rest:
            digit = rest % 3
            if digit == 2:
                step[t] = power
                dropped[t] += bit
            elif digit == 1:
                leaf[t] += bit
            rest //= 3
            power *= 3
            bit *= 2


@inner
def _pool(value, weight, bit, rises):
    """Bring cells that differ in one bit into order, at the least cost."""
    for j in range(value.size):
        if not j & bit:
            low, high = (j, j | bit) if rises else (j | bit, j)
            if value[low] > value[high]:
                total = weight[low] + weight[high]
                share = weight[low] / total if total > 0.0 else 0.5
                value[low] = share * value[low] + (1.0 - share) * value[high]
                value[high] = value[low]


@inner
def make_monotone(value, weight, rising, falling, scratch):
    """Replace the values of cells by the nearest that keep constraints; `scratch` is (>=2, any).

    The bits of `rising` are those along which values must not fall, of `falling` not rise. Along
    one bit that is pooling of pairs. Along several it is the limit of rounds of it, in which what
    each bit has moved is taken back before it is asked again (Dykstra's method).
    """
    bits = rising | falling
    several = bits & (bits - 1)
    if bits and not several:
        _pool(value, weight, bits, rising > 0)
    if not several:
        return
    size, correction, before = value.size, scratch, scratch[0]
    least, most = value[0], value[0]
    for j in range(size):
        least, most = min(least, value[j]), max(most, value[j])
        for b in range(1, scratch.shape[0]):
            correction[b, j] = 0.0
    for _ in range(ROUNDS):
        moved, bit, b = 0.0, 1, 1
        while bit <= bits:
            if bits & bit:
                for j in range(size):
                    before[j] = value[j]
                    value[j] += correction[b, j]
                    correction[b, j] = value[j]
                _pool(value, weight, bit, (rising & bit) > 0)
                for j in range(size):
                    correction[b, j] -= value[j]
                    moved = max(moved, abs(value[j] - before[j]))
                b += 1
            bit *= 2
        if moved <= ENOUGH * (most - least):
            break
    # What is still missing, as rounding is.
    bit = 1
    while bit <= bits:
        if bits & bit:
            for j in range(size):
                if not j & bit:
                    low, high = (j, j | bit) if rising & bit else (j | bit, j)
                    value[high] = max(value[high], value[low])
        bit *= 2


@kernel
def settle_leaves(first, rising, falling, cover, value):
    """Replace the values of leaves, (n_outputs, n_leaves), by the nearest that keep constraints."""
    most = 1
    for i in range(first.size - 1):
        most = max(most, first[i + 1] - first[i])
    scratch = np.empty((34, most))  # no tree has more levels than a code has bits
    for i in range(first.size - 1):
        leaves = slice(first[i], first[i + 1])
        for o in range(value.shape[0]):
            make_monotone(value[o][leaves], cover[leaves], rising[i], falling[i], scratch)


@inner
def sum_residuals(codes, trees, cut, i, spare, total):
    """Write into total[o, leaf] the residual without tree i, summed over the rows in a leaf."""
    a, b = trees.first[i], trees.first[i + 1]
    for o in range(total.shape[0]):
        row = total[o]
        sum_by(codes[i], cut.residual[o], row[: b - a], spare)
        if cut.levels[i]:
            value, cell = cut.value[o][a:], cut.cell[a:b]
            for leaf in range(b - a):
                row[leaf] += trees.weight[a + leaf] * value[cell[leaf]]


@inner
def fit_cells(trees, price, i, levels, total, cell, cells, scratch):
    """Find the best values if tree i keeps some levels; return the objective, without costs.

    Writes into `cell` the cell of each leaf. cells[0, o] are the values, cells[1, o] the sums of
    the residual, cells[2, o] what cells add in the original.
    """
    a, depth = trees.first[i], trees.depth[i]
    n_leaves = trees.first[i + 1] - a
    n = number_cells(levels, depth, cell)
    rising = bits_left(trees.rising[i], levels, depth)
    falling = bits_left(trees.falling[i], levels, depth)
    weight, cover = scratch[0], scratch[1]
    objective = 0.0
    for o in range(total.shape[0]):
        value, sums, origin = cells[0, o], cells[1, o], cells[2, o]
        for j in range(n):
            weight[j] = cover[j] = sums[j] = origin[j] = value[j] = 0.0
        for leaf in range(n_leaves):
            j, f = cell[leaf], trees.origin[o, a + leaf]
            weight[j] += trees.weight[a + leaf]
            cover[j] += trees.cover[a + leaf]
            sums[j] += total[o, leaf]
            origin[j] += trees.cover[a + leaf] * f
            value[j] += f
        for j in range(n):
            # As many leaves in each cell: where there was no row, their plain mean.
            origin[j] = origin[j] / cover[j] if cover[j] > 0.0 else value[j] * n / n_leaves
            rate = weight[j] + price.shrinkage
            value[j] = origin[j]
            if price.refit:
                cover[j] = rate
                if rate > 0.0:
                    value[j] = (sums[j] + price.shrinkage * origin[j]) / rate
        make_monotone(value[:n], cover[:n], rising, falling, scratch[2:])
        for j in range(n):
            shift = value[j] - origin[j]
            objective += value[j] * (weight[j] * value[j] - 2.0 * sums[j])
            objective += price.shrinkage * shift * shift
    return objective


@inner
def try_all(places, trees, price, i, share, total, table, best):
    """Write into best[levels] the objective of each choice, without costs and constraints.

    Squares of values count by `share`.
    """
    a, size, choices = trees.first[i], 1, 1 << trees.depth[i]
    for _ in range(trees.depth[i]):
        size *= 3
    weight, cover, sums, origin = table[0], table[1], table[2], table[3]
    for levels in range(choices):
        best[levels] = 0.0
    for o in range(total.shape[0]):
        for t in range(size):
            step = places.step[t]
            if step:
                p, q = t - step, t - 2 * step
                both = cover[p] + cover[q]
                part = cover[p] / both if both > 0.0 else 0.5
                weight[t] = weight[p] + weight[q]
                cover[t] = both
                sums[t] = sums[p] + sums[q]
                origin[t] = part * origin[p] + (1.0 - part) * origin[q]
            else:
                leaf = places.leaf[t]
                weight[t], cover[t] = trees.weight[a + leaf], trees.cover[a + leaf]
                sums[t], origin[t] = total[o, leaf], trees.origin[o, a + leaf]
        for t in range(size):
            n, f = share * weight[t], origin[t]
            rate = n + price.shrinkage
            if price.refit and rate > 0.0:
                f = (sums[t] + price.shrinkage * f) / rate
            shift = f - origin[t]
            levels = choices - 1 - places.dropped[t]
            best[levels] += f * (n * f - 2.0 * sums[t]) + price.shrinkage * shift * shift
    best[0] = 0.0


@inner
def best_choice(trees, price, i, discount, best):
    """Return the levels that are best if any are kept, and their objective with its cost."""
    levels, least = 0, np.inf
    for choice in range(1, 1 << trees.depth[i]):
        cost = price.cost[i, count_levels(choice)]
        objective = best[choice] + discount * price.alpha * cost
        if objective < least:
            levels, least = choice, objective
    return levels, least


@inner
def drop_levels(trees, price, i, total, cell, cells, scratch):
    """Drop one level after another; return the best levels met on the way, and their objective."""
    now = (1 << trees.depth[i]) - 1
    levels, least, count = 0, np.inf, trees.depth[i]
    objective = fit_cells(trees, price, i, now, total, cell, cells, scratch)
    while now:
        objective += price.alpha * price.cost[i, count]
        if objective < least:
            levels, least = now, objective
        objective, chosen = np.inf, 0
        for b in range(trees.depth[i]):
            if now >> b & 1:
                fewer = now & ~(1 << b)
                found = fit_cells(trees, price, i, fewer, total, cell, cells, scratch)
                if found < objective:
                    objective, chosen = found, fewer
        now, count = chosen, count - 1
    return levels, least


@inner
def best_levels(places, trees, price, i, total, cell, cells, scratch, table, best):
    """Return the levels of tree i that are best to keep, and their objective; 0 if it is none."""
    constrained = (trees.rising[i] | trees.falling[i]) > 0
    if trees.depth[i] > (MOST_CONSTRAINED if constrained else MOST_LEVELS):
        levels, least = drop_levels(trees, price, i, total, cell, cells, scratch)
    else:
        if constrained:
            for choice in range(1, 1 << trees.depth[i]):
                best[choice] = fit_cells(trees, price, i, choice, total, cell, cells, scratch)
        else:
            try_all(places, trees, price, i, 1.0, total, table, best)
        levels, least = best_choice(trees, price, i, 1.0, best)
    if least < 0.0:
        return levels, least
    return 0, 0.0


@inner
def tree_objective(trees, price, cut, i, total):
    """Return the objective of tree i as it is now."""
    a, b = trees.first[i], trees.first[i + 1]
    objective = price.shrinkage * cut.shift[i] + price.alpha * cut.cost[i]
    if cut.levels[i]:
        for o in range(total.shape[0]):
            value = cut.value[o][a:b]
            for leaf in range(b - a):
                f = value[cut.cell[a + leaf]]
                objective += f * (trees.weight[a + leaf] * f - 2.0 * total[o, leaf])
    return objective


@inner
def _change(codes, row_weight, trees, price, cut, i, levels, cell, cells, by):
    """Let tree i keep some levels, with the values and origins in `cells`; `by` is scratch."""
    a, b = trees.first[i], trees.first[i + 1]
    n = 1 << count_levels(levels)
    shift, square = 0.0, 0.0
    for o in range(cells.shape[1]):
        value, old = cells[0, o], cut.value[o][a:b]
        for leaf in range(b - a):
            by[leaf] = -old[cut.cell[a + leaf]] if cut.levels[i] else 0.0
            by[leaf] += value[cell[leaf]] if levels else 0.0
            square += trees.weight[a + leaf] * by[leaf] * by[leaf]
        subtract(by, codes[i], row_weight, cut.residual[o])
        for j in range(n if levels else 0):
            old[j] = value[j]
            if price.refit:
                shift += (value[j] - cells[2, o, j]) ** 2
    for leaf in range(b - a):
        cut.cell[a + leaf] = cell[leaf] if levels else 0
    cut.levels[i], cut.shift[i] = levels, shift
    cut.cost[i] = price.cost[i, count_levels(levels)]
    cut.moved[0] += np.sqrt(square)


@inner
def _rooms(trees, places, outputs):
    """Return arrays for the largest tree: of leaves, of cells, and of the cells of all choices."""
    depth, exact = 0, 0
    for i in range(trees.depth.size):
        depth = max(depth, trees.depth[i])
        exact = max(exact, min(trees.depth[i], MOST_LEVELS))
    size = 1 << depth
    total, cells = np.empty((outputs, size)), np.empty((3, outputs, size))
    scratch = np.empty((4 + depth, size))
    return (
        total,
        np.empty(size, np.uint32),
        cells,
        scratch,
        np.empty((4, places.step.size)),
        (np.empty(1 << exact)),
    )


@kernel
def sweep_levels(codes, row_weight, trees, places, cut, price, order, lazy):
    """Update the trees in `order`, each to its best levels given the others.

    Returns how many changed and how many were looked at. If `lazy`, an absent tree that certainly
    stays away is passed over, by the bound of `sweep_subtrees`; otherwise it is looked at all the
    same.
    """
    outputs = trees.origin.shape[0]
    total, cell, cells, scratch, table, best = _rooms(trees, places, outputs)
    by, spare = np.empty(total.shape[1]), np.empty((3, FEW))
    changed, looked = 0, 0
    for i in order:
        absent = cut.levels[i] == 0
        stays = absent and price.alpha >= cut.absent_down_to[i]
        stays = stays and cut.moved[0] <= cut.absent_until[i]
        if stays and lazy:
            continue
        looked += 1
        sum_residuals(codes, trees, cut, i, spare, total)
        levels, objective = best_levels(
            places, trees, price, i, total, cell, cells, scratch, table, best
        )
        gain = tree_objective(trees, price, cut, i, total) - objective
        if gain > price.min_gain:
            if levels:
                fit_cells(trees, price, i, levels, total, cell, cells, scratch)
            _change(codes, row_weight, trees, price, cut, i, levels, cell, cells, by)
            changed += 1
        elif absent and not stays:
            # Without constraints objectives are lower still, unless values must change for them.
            free = price.refit or not trees.rising[i] | trees.falling[i]
            cut.absent_down_to[i] = np.inf
            if free and trees.depth[i] <= MOST_LEVELS:
                try_all(places, trees, price, i, 1.0 - LOOSENED, total, table, best)
                # Half of `min_gain` leaves room for rounding.
                room = best_choice(trees, price, i, AHEAD, best)[1] + 0.5 * price.min_gain
                if room >= 0.0:
                    cut.absent_down_to[i] = AHEAD * price.alpha
                    cut.absent_until[i] = cut.moved[0] + np.sqrt(LOOSENED * room)
    return changed, looked


@kernel
def refit_levels(codes, row_weight, trees, places, cut, price, order, max_sweeps):
    """Refit the values of the trees in `order`, keeping their levels, until none gains enough."""
    total, cell, cells, scratch, _, _ = _rooms(trees, places, trees.origin.shape[0])
    by, spare = np.empty(total.shape[1]), np.empty((3, FEW))
    for _ in range(max_sweeps):
        changed = False
        for i in order:
            if cut.levels[i]:
                sum_residuals(codes, trees, cut, i, spare, total)
                after = fit_cells(trees, price, i, cut.levels[i], total, cell, cells, scratch)
                after += price.alpha * cut.cost[i]
                if tree_objective(trees, price, cut, i, total) - after > price.min_gain:
                    levels = cut.levels[i]
                    _change(codes, row_weight, trees, price, cut, i, levels, cell, cells, by)
                    changed = True
        if not changed:
            break


@kernel
def keep_levels(codes, row_weight, trees, places, cut, price, levels, given):
    """Let trees keep some levels; cell j of tree i is given the value given[o, first[i] + j].

    If `given` has no columns, cells add what they do without refitting.
    """
    total, cell, cells, scratch, _, _ = _rooms(trees, places, trees.origin.shape[0])
    by = np.empty(total.shape[1])
    for i in range(levels.size):
        if levels[i]:
            total[:] = 0.0
            fit_cells(trees, price, i, levels[i], total, cell, cells, scratch)
            for o in range(cells.shape[1] if given.shape[1] else 0):
                for j in range(1 << count_levels(levels[i])):
                    cells[0, o, j] = given[o, trees.first[i] + j]
        _change(codes, row_weight, trees, price, cut, i, levels[i], cell, cells, by)


@kernel
def gains_by_levels(some, codes, trees, places, cut, price, gain, cost):
    """Write what the best levels of some trees would gain over what is kept now, and their cost."""
    total, cell, cells, scratch, table, best = _rooms(trees, places, trees.origin.shape[0])
    spare = np.empty((3, FEW))
    for i in some:
        sum_residuals(codes, trees, cut, i, spare, total)
        levels, objective = best_levels(
            places, trees, price, i, total, cell, cells, scratch, table, best
        )
        gain[i] = tree_objective(trees, price, cut, i, total) - objective
        cost[i] = price.cost[i, count_levels(levels)]
