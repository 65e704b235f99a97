"""Refitting the leaves of pruned trees by how many rows they share, not by going through rows.

If the leaves of a tree change by d, the residual summed over the rows in leaf k of any tree falls
by the sum over l of W_kl d_l, where W_kl is the weight of the rows in both k and l. While few
leaves are kept that takes a hundredth of the time of a pass over the rows, and most trees are asked
many times before none of them gains anything. W is kept from one time to the next, and rows are
counted for leaves that are new only. Each leaf has a place in W, its slot.
"""

import numpy as np

from forestprune.kernels.constraints import within
from forestprune.kernels.jit import inner, kernel
from forestprune.kernels.nodes import first_leaf
from forestprune.kernels.subtrees import left_unsaid, own_weight
from forestprune.kernels.sums import FEW, subtract, sum_by


@inner
def _rows_to_count(trees, cut, i, mine, fresh, rows, place):
    """Write the rows of tree i that are to be counted, and where they end; return how many.

    They are those in fresh slots but for the largest of these, whose place in `mine` is returned
    too; -1 if none is fresh.
    """
    a, row_leaf, own = trees.offsets[i], cut.row_leaf[i], own_weight(trees)
    first = first_leaf(a, i)
    counted, largest, most = np.zeros(mine.size, np.bool_), -1, -1.0
    for j in range(mine.size):
        counted[j] = fresh[mine[j]]
        weight = own[a + cut.leaves[first + j]]
        if counted[j] and weight > most:
            largest, most = j, weight
    count = 0
    if largest >= 0:
        counted[largest] = False
        for x in range(row_leaf.size):
            # Written in any case, and kept if it counts: faster than a branch nobody can foresee.
            rows[count] = x
            place[count] = row_leaf[x]
            count += counted[row_leaf[x]]
    return count, largest


@kernel
def count_overlaps(row_weight, trees, cut, order, overlaps, slot, fresh):
    """Write the weight of the rows that each of the fresh slots shares with any other.

    Every row ends somewhere in a tree. So what one of its leaves shares with another tree's is
    what is left of that by the others, and the largest that is fresh need not be counted.
    """
    shared, own = overlaps.weight, own_weight(trees)
    rows = np.empty(cut.row_leaf.shape[1] + 1, np.int32)
    place = np.empty(cut.row_leaf.shape[1] + 1, cut.row_leaf.dtype)
    for i in order:
        start = first_leaf(trees.offsets[i], i)
        mine = slot[start : start + cut.n_leaves[i]]
        count, largest = _rows_to_count(trees, cut, i, mine, fresh, rows, place)
        if largest < 0:
            continue
        for other in order:
            a, n = trees.offsets[other], cut.n_leaves[other]
            first = first_leaf(a, other)
            theirs, row_leaf = slot[first : first + n], cut.row_leaf[other]
            table = np.zeros((mine.size, n))
            if other == i:
                for j in range(n):
                    table[j, j] = own[a + cut.leaves[first + j]]
            else:
                if row_weight.size:
                    for r in range(count):
                        table[place[r], row_leaf[rows[r]]] += row_weight[rows[r]]
                else:
                    for r in range(count):
                        table[place[r], row_leaf[rows[r]]] += 1.0
                for k in range(n):
                    left = own[a + cut.leaves[first + k]]
                    for j in range(mine.size):
                        if j != largest:
                            left -= table[j, k] if fresh[mine[j]] else shared[mine[j], theirs[k]]
                    table[largest, k] = left
            for j in range(mine.size):
                if fresh[mine[j]]:
                    for k in range(n):
                        shared[mine[j], theirs[k]] = table[j, k]
                        shared[theirs[k], mine[j]] = table[j, k]


@kernel
def refit_by_overlaps(row_weight, trees, cut, price, order, overlaps, slot, size, max_sweeps):
    """Refit the values of the trees in `order`, keeping their shapes, until none gains enough."""
    outputs = trees.origin.shape[0]
    sums, change = np.empty((outputs, size)), np.zeros((outputs, size))
    by, spare = np.empty((outputs, size)), np.empty((3, FEW))
    for i in order:
        first, count = first_leaf(trees.offsets[i], i), cut.n_leaves[i]
        for o in range(outputs if count else 0):
            sum_by(cut.row_leaf[i], cut.residual[o], by[o, :count], spare)
            for j in range(count):
                sums[o, slot[first + j]] = by[o, j]
    begun = sums.copy()
    for _ in range(max_sweeps):
        changed = False
        for i in order:
            a, count = trees.offsets[i], cut.n_leaves[i]
            first = first_leaf(a, i)
            gain, shift = 0.0, 0.0
            for o in range(outputs):
                for j in range(count):
                    v = a + cut.leaves[first + j]
                    f, origin = cut.value[o, v], trees.origin[o, v]
                    rate = trees.weight[v] + price.shrinkage
                    # The residual's own sum, less what draws the value back.
                    left = sums[o, slot[first + j]] + left_unsaid(trees, cut, o, v)
                    left -= price.shrinkage * (f - origin)
                    by[o, j] = left / rate if rate > 0.0 else 0.0
                    if trees.low.shape[1]:
                        step = within(trees, cut.stretch[i], o, v, f + by[o, j]) - f
                        gain += rate * step * (2.0 * by[o, j] - step)
                        by[o, j] = step
                    else:
                        gain += left * by[o, j]
                    shift += (f + by[o, j] - origin) ** 2
            if gain <= price.min_gain:
                continue
            changed = True
            cut.shift[i] = shift
            for o in range(outputs):
                total = sums[o]
                for j in range(count):
                    step, shared = by[o, j], overlaps.weight[slot[first + j]]
                    v = a + cut.leaves[first + j]
                    cut.value[o, v] += step
                    if trees.low.shape[1]:  # which rounding may have missed
                        cut.value[o, v] = within(trees, cut.stretch[i], o, v, cut.value[o, v])
                    change[o, slot[first + j]] += step
                    for k in range(size):
                        total[k] -= step * shared[k]
        if not changed:
            break
    square = 0.0
    for i in order:
        first, count = first_leaf(trees.offsets[i], i), cut.n_leaves[i]
        for o in range(outputs if count else 0):
            moved = False
            for j in range(count):
                k = slot[first + j]
                by[o, j] = change[o, k]
                moved |= by[o, j] != 0.0
                square += by[o, j] * (begun[o, k] - sums[o, k])
            if moved:
                subtract(by[o], cut.row_leaf[i], row_weight, cut.residual[o])
    cut.moved[0] += np.sqrt(max(square, 0.0))
