"""Mixtures of prunings: what bounds the objective from below.

If each tree may be a weighted mean of prunings, its mixture, and not one of them only, the
objective is convex, and its least value is no more than that of any pruned forest. At any
predictions the loss is nowhere below its tangent. Under the tangent trees do not know each other:
with S_v the negative slope, times the weights of rows, summed over the rows in node v, leaf v of
tree i contributes

    -2 f_v S_v + lambda (f_v - v0)^2,

which is what `subtrees.py` has without the square of the sum. It is least at f_v = v0 + S_v /
lambda, or at the nearest end of what values may be; without refitting f_v = v0. So the lowest
pruning of each tree is found as there, from the leaves up, and all of them together bound the
objective from below.

To make that bound high, mixtures descend towards where they are best: tree after tree, the lowest
pruning joins the others of its mixture, and the weights of all are chosen anew (Frank and Wolfe's
method by blocks, fully corrective).

A pruning is kept as what it adds in each leaf of the unpruned tree, adds[k, o, leaf] for the k-th
of the mixture, and what it costs, which is infinite if it is not allowed. Layers are prunings too,
and the lowest one is found by trying all depths.
"""

import numpy as np

from forestprune.kernels.jit import inner, kernel
from forestprune.kernels.nodes import (
    ONE,
    add_up_splits,
    first_leaf,
    first_split,
    largest_tree,
    leaves_of,
    splits_of,
)
from forestprune.kernels.records import MUST, MUST_NOT
from forestprune.kernels.sums import FEW, subtract, sum_by

ROUNDS = 40
"""Steps at most from one pruning of a mixture to another, when weights are chosen."""


@inner
def lowest_value(origin, total, refit, shrinkage, least, most):
    """Return what a node adds at the lowest as a leaf with this sum, given what it added."""
    if not refit:
        return origin
    if shrinkage > 0.0:
        origin += total / shrinkage
    elif total != 0.0:
        origin = np.inf if total > 0.0 else -np.inf
    return min(max(origin, least), most)


@inner
def _leaf_objectives(prunings, i, total, best):
    """Write into best[v] the objective of node v as a leaf; a lone root adds nothing."""
    a, b = prunings.offsets[i], prunings.offsets[i + 1]
    # Names of their own: whole records, handed on for each node, would take most of the time.
    refit, shrinkage = prunings.refit, prunings.shrinkage
    for v in range(b - a):
        best[v] = 0.0
    for o in range(total.shape[0]):
        sums, origin = total[o], prunings.origin[o][a:b]
        least, most = prunings.least[o], prunings.most[o]
        for v in range(b - a):
            f = lowest_value(origin[v], sums[v], refit, shrinkage, least, most)
            shift = f - origin[v]
            best[v] += shrinkage * shift * shift - 2.0 * f * sums[v]
    best[0] = 0.0


@inner
def _lowest_subtree(prunings, i, best, keep):
    """Find the lowest subtree; return its objective. best[v] is that of node v as a leaf."""
    split = splits_of(prunings, i)
    first = first_split(prunings.offsets[i], i)
    cost, said = prunings.cost[first:], prunings.said[first:]
    for k in range(split.size):
        s = np.uint64(split.size - 1 - k)
        left = s + s + ONE
        below, here = best[left] + best[left + ONE] + cost[s], best[split[s]]
        keep[s] = below < here
        if said.size and said[s]:
            keep[s] = said[s] == MUST
        best[split[s]] = below if keep[s] else here
    return best[0]


@inner
def _lowest_depth(prunings, i, best, keep, at_depth):
    """Find the lowest depth to cut at; return its objective. `at_depth` is scratch."""
    a, split, leaf = prunings.offsets[i], splits_of(prunings, i), leaves_of(prunings, i)
    costs, depth = prunings.layer_cost[i], prunings.depth[a:]
    deepest = 0
    for v in range(split.size + leaf.size):
        deepest = max(deepest, depth[v])
    for k in range(2 * deepest + 2):
        at_depth[k] = 0.0
    for v in range(split.size + leaf.size):
        at_depth[depth[v]] += best[v]
    for v in leaf:  # which stay there if the tree is cut further down
        at_depth[deepest + 1 + depth[v]] += best[v]
    low, high = 0, deepest
    for s in range(split.size if prunings.said.size else 0):
        said = prunings.said[first_split(a, i) + s]
        if said == MUST:
            low = max(low, depth[split[s]] + 1)
        elif said == MUST_NOT:
            high = min(high, depth[split[s]])
    chosen, least, above = 0, np.inf, 0.0
    for k in range(deepest + 1):
        objective = at_depth[k] + above + costs[k]
        above += at_depth[deepest + 1 + k]
        if low <= k <= high and objective < least:
            chosen, least = k, objective
    for s in range(split.size):
        keep[s] = depth[split[s]] < chosen
    return least


@inner
def lowest_pruning(prunings, i, total, best, keep, scratch):
    """Find the lowest pruning of tree i; return its objective.

    total[o, v] must be known for the leaves; it is filled in for the other nodes.
    """
    split = splits_of(prunings, i)
    if not split.size:
        return 0.0
    for o in range(total.shape[0]):
        add_up_splits(split, total[o])
    _leaf_objectives(prunings, i, total, best)
    if prunings.layer_cost.shape[1]:
        return _lowest_depth(prunings, i, best, keep, scratch)
    return _lowest_subtree(prunings, i, best, keep)


@inner
def _spell_out(prunings, i, total, keep, value, live, adds):
    """Write what the pruning that was found adds in each leaf; return what it costs."""
    a, split, leaf = prunings.offsets[i], splits_of(prunings, i), leaves_of(prunings, i)
    first, penalty, deepest = first_split(a, i), 0.0, 0
    outputs = total.shape[0]
    by_depth = prunings.layer_cost.shape[1] > 0
    live[0] = True
    for o in range(outputs):
        value[o, 0] = 0.0
    for s in range(split.size):
        v = split[s]
        here = live[v] and keep[s]
        if here:
            penalty += 0.0 if by_depth else prunings.cost[first + s]
            deepest = max(deepest, prunings.depth[a + v] + 1 if by_depth else 0)
        for c in range(2 * s + 1, 2 * s + 3):
            live[c] = here
            for o in range(outputs):
                value[o, c] = value[o, v]
                if here:
                    value[o, c] = lowest_value(
                        prunings.origin[o, a + c],
                        total[o, c],
                        prunings.refit,
                        prunings.shrinkage,
                        prunings.least[o],
                        prunings.most[o],
                    )
    if by_depth:
        penalty += prunings.layer_cost[i, deepest]
    if prunings.refit:
        for s in range(split.size):
            v = split[s]
            if live[v] and not keep[s] and v > 0:
                penalty += _shift(prunings, a, v, value)
        for v in leaf:
            if live[v] and v > 0:
                penalty += _shift(prunings, a, v, value)
    for o in range(outputs):
        for rank in range(leaf.size):
            adds[o, rank] = value[o, leaf[rank]]
    return penalty


@inner
def _shift(prunings, a, v, value):
    """Return what it costs that a leaf has another value than in the original."""
    square = 0.0
    for o in range(value.shape[0]):
        square += (value[o, v] - prunings.origin[o, a + v]) ** 2
    return prunings.shrinkage * square


@inner
def _measure(adds, k, weight, square):
    """Write the products of what pruning k adds with what others do, over the rows in leaves."""
    n, outputs, leaves = adds.shape
    for j in range(n):
        total = 0.0
        for o in range(outputs):
            for rank in range(leaves):
                total += weight[rank] * adds[k, o, rank] * adds[j, o, rank]
        square[k, j] = total
        square[j, k] = total


@inner
def free_place(mixture, i, adds, weight):
    """Return a place for another pruning in the mixture of tree i.

    If there is none, the two that have the smallest shares become one.
    """
    share = mixture.share[i]
    for k in range(share.size):
        if share[k] <= 0.0:
            return k
    first, second = 0, 1
    if share[second] < share[first]:
        first, second = second, first
    for k in range(2, share.size):
        if share[k] < share[first]:
            first, second = k, first
        elif share[k] < share[second]:
            second = k
    both = share[first] + share[second]
    p, q = share[first] / both, share[second] / both
    for o in range(adds.shape[1]):
        for rank in range(adds.shape[2]):
            adds[second, o, rank] = p * adds[first, o, rank] + q * adds[second, o, rank]
    mixture.penalty[i, second] = p * mixture.penalty[i, first] + q * mixture.penalty[i, second]
    if mixture.kept.shape[0]:
        kept = mixture.kept[:, mixture.first[i] : mixture.first[i + 1]]
        for s in range(kept.shape[1]):
            kept[second, s] = p * kept[first, s] + q * kept[second, s]
    share[second], share[first] = both, 0.0
    _measure(adds, second, weight, mixture.square[i])
    return first


@inner
def _choose_shares(share, penalty, square, product, slope):
    """Choose the shares of a mixture: the least of ``s' square s + (penalty - 2 product)' s``.

    `slope` is scratch. Always from the pruning that is highest by its slope to the lowest one.
    """
    n = share.size
    for k in range(n):
        slope[k] = penalty[k] - 2.0 * product[k]
        for j in range(n):
            slope[k] += 2.0 * square[k, j] * share[j]
    for _ in range(ROUNDS):
        down, up, size = 0, -1, 0.0
        for k in range(n):
            if slope[k] < slope[down]:
                down = k
            if share[k] > 0.0:
                size = max(size, abs(slope[k]))
                if up < 0 or slope[k] > slope[up]:
                    up = k
        size = max(size, abs(slope[down]))
        fall = slope[up] - slope[down]
        if fall <= 1e-13 * size:
            break
        curvature = square[up, up] + square[down, down] - 2.0 * square[up, down]
        step = share[up]
        if curvature > 0.0:
            step = min(step, 0.5 * fall / curvature)
        share[down] += step
        share[up] = 0.0 if step == share[up] else share[up] - step
        for k in range(n):
            slope[k] += 2.0 * step * (square[k, down] - square[k, up])


@kernel
def measure_mixtures(offsets, leaf_weight, mixture):
    """Measure all prunings of all mixtures by the weights of the rows in leaves."""
    for i in range(mixture.share.shape[0]):
        first, last = first_leaf(offsets[i], i), first_leaf(offsets[i + 1], i + 1)
        for k in range(mixture.share.shape[1]):
            adds, weight = mixture.adds[:, :, first:last], leaf_weight[first:last]
            _measure(adds, k, weight, mixture.square[i])


@inner
def _means(adds, share, means):
    """Write what a mixture adds in each leaf."""
    n, outputs, leaves = adds.shape
    for o in range(outputs):
        for rank in range(leaves):
            means[o, rank] = 0.0
    for k in range(n):
        if share[k] > 0.0:
            for o in range(outputs):
                for rank in range(leaves):
                    means[o, rank] += share[k] * adds[k, o, rank]


@inner
def _trace(prunings, mixture, i, k, keep, live):
    """Note which splits of tree i the k-th pruning of its mixture keeps."""
    split = splits_of(prunings, i)
    live[0] = True
    for s in range(split.size):
        here = live[split[s]] and keep[s]
        live[2 * s + 1] = live[2 * s + 2] = here
        mixture.kept[k, mixture.first[i] + s] = 1.0 if here else 0.0


@inner
def begin_tree(code, mixture, i, adds, weight, spare, before, sums, rest):
    """Find out how tree i stands; return its part of the objective under the tangent.

    Writes what its mixture adds in each leaf into `before`, the residual summed over the rows there
    into `sums`, and that without the tree into `rest`.
    """
    share, leaves = mixture.share[i], weight.size
    _means(adds, share, before)
    now = 0.0
    for k in range(share.size):
        now += share[k] * mixture.penalty[i, k] if share[k] > 0.0 else 0.0
    for o in range(adds.shape[1]):
        sum_by(code, mixture.residual[o], sums[o, :leaves], spare)
        for rank in range(leaves):
            now -= 2.0 * sums[o, rank] * before[o, rank]
            rest[o, rank] = sums[o, rank] + weight[rank] * before[o, rank]
    return now


@inner
def finish_tree(code, row_weight, mixture, i, k, adds, weight, before, rest, after, scratch):
    """Choose the shares of tree i anew, whose k-th pruning is another one; move the residual."""
    share, square, n = mixture.share[i], mixture.square[i], mixture.share.shape[1]
    product, slope = scratch[0], scratch[1]
    _measure(adds, k, weight, square)
    for j in range(n):
        product[j] = 0.0
        for o in range(adds.shape[1]):
            for rank in range(weight.size):
                product[j] += rest[o, rank] * adds[j, o, rank]
    _choose_shares(share, mixture.penalty[i], square, product, slope)
    _means(adds, share, after)
    for o in range(adds.shape[1]):
        step = after[o]
        for rank in range(weight.size):
            step[rank] -= before[o, rank]
        subtract(step, code, row_weight, mixture.residual[o])


@kernel
def sweep_mixtures(codes, row_weight, prunings, mixture, order, enough, promise):
    """Let the mixtures of some trees descend, one after another, the others as they are.

    promise[i] becomes by how much the objective could fall at most if tree i alone changed. If that
    is no more than `enough`, it is left as it is.
    """
    outputs, size = prunings.origin.shape[0], largest_tree(prunings)
    spare, at_depth = np.empty((3, FEW)), np.empty(2 * size + 2)
    total, value = np.empty((outputs, size)), np.empty((outputs, size))
    rest, before = np.empty((outputs, size)), np.empty((outputs, size))
    after, sums = np.empty((outputs, size)), np.empty((outputs, size))
    keep, live = np.empty(size, np.bool_), np.empty(size, np.bool_)
    best, scratch = np.empty(size), np.empty((2, mixture.share.shape[1]))
    for i in order:
        leaf = leaves_of(prunings, i)
        if leaf.size < 2:
            continue
        first = first_leaf(prunings.offsets[i], i)
        weight = prunings.leaf_weight[first : first + leaf.size]
        adds = mixture.adds[:, :, first : first + leaf.size]
        now = begin_tree(codes[i], mixture, i, adds, weight, spare, before, sums, rest)
        for o in range(outputs):
            for rank in range(leaf.size):
                total[o, leaf[rank]] = sums[o, rank]
        promise[i] = now - lowest_pruning(prunings, i, total, best, keep, at_depth)
        if promise[i] <= enough:
            continue
        k = free_place(mixture, i, adds, weight)
        mixture.penalty[i, k] = _spell_out(prunings, i, total, keep, value, live, adds[k])
        if mixture.kept.shape[0]:
            _trace(prunings, mixture, i, k, keep, live)
        finish_tree(codes[i], row_weight, mixture, i, k, adds, weight, before, rest, after, scratch)


@kernel
def lowest_prunings(some, codes, prunings, residual, least):
    """Write into least[i] the objective of the lowest pruning of some trees, given a residual."""
    outputs, size = prunings.origin.shape[0], largest_tree(prunings)
    spare, scratch = np.empty((3, FEW)), np.empty(2 * size + 2)
    in_leaf, total, best = np.empty(size), np.empty((outputs, size)), np.empty(size)
    keep = np.empty(size, np.bool_)
    for i in some:
        leaf = leaves_of(prunings, i)
        for o in range(outputs):
            sum_by(codes[i], residual[o], in_leaf[: leaf.size], spare)
            for rank in range(leaf.size):
                total[o, leaf[rank]] = in_leaf[rank]
        least[i] = lowest_pruning(prunings, i, total, best, keep, scratch)
