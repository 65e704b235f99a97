"""Keeping any subtree that contains the root: the `subtree` rule.

A pruned tree is a set of splits that are kept. Its leaf v adds f_v for its rows. With S_v the
residual without this tree and N_v the weight, summed over the rows in v, and v0 what the node adds
in the original, leaf v contributes to the objective

    -2 f_v S_v + f_v^2 N_v + lambda (f_v - v0)^2,

which is least at f_v = (S_v + lambda v0) / (N_v + lambda), or at the nearest end of the node's
interval if constraints give it one; without refitting f_v = v0. From the leaves up, a split is kept
if the objective of its children, their cost included, is less than that of the node as a leaf. That
finds the best of all prunings. A tree that keeps no split adds nothing and costs nothing: roots are
in the intercept.

Sweeps may go through the upper part of each tree only, the active nodes: see active.py. Then
`active` are these trees, nodes[v] is the forest's number of their node v, and leaf l of the forest
lies in leaf inside[l] of its active tree. Residuals are kept times the rows' weights, one line for
each output.
"""

import numpy as np

from forestprune.kernels.constraints import fit_stretch, within
from forestprune.kernels.distributions import best_distribution, to_distribution, way
from forestprune.kernels.jit import inner, kernel
from forestprune.kernels.leaves import number_leaves
from forestprune.kernels.nodes import (
    ONE,
    add_up_splits,
    first_leaf,
    first_split,
    largest_tree,
    leaves_of,
    splits_of,
)
from forestprune.kernels.sums import FEW, subtract, sum_by

LOOSENED = 0.5
"""The share of the squares of leaf values that screening sets against the residual's move."""

AHEAD = 0.75
"""How far alpha may fall until all absent trees must be looked at again."""


@inner
def leaf_values(trees, cut, i, o):
    """Return what tree i adds to output o in each of the leaves it has now; 0 if absent."""
    a = trees.offsets[i]
    first = first_leaf(a, i)
    value = np.zeros(max(cut.n_leaves[i], 1))
    for j in range(cut.n_leaves[i]):
        value[j] = cut.value[o, a + cut.leaves[first + j]]
    return value


@inner
def best_value(trees, price, bounded, stretch, o, v, weight, total):
    """Return what node v best adds to output o as a leaf, its rows having this weight and sum.

    Within its interval, which has a `stretch`, and what a probability can be, if it is `bounded`.
    """
    f, n = trees.origin[o, v], weight + price.shrinkage
    if price.refit:
        f = (total + price.shrinkage * f) / n if n > 0.0 else f
        if bounded:
            f = allowed(trees, price, stretch, o, v, f)
    return f


@inner
def allowed(trees, price, stretch, o, v, f):
    """Return what is nearest to f that node v may add to output o, outputs taken one by one."""
    if trees.low.shape[1]:
        f = within(trees, stretch, o, v, f)
    if price.centre.size:
        far = way(trees, v)
        f = max(f, -price.centre[o] * far / price.most_trees)
        f = min(f, (1.0 - price.centre[o]) * far / price.most_trees)
    return f


@inner
def is_bounded(trees, price):
    """Tell whether values of leaves may not be anything."""
    return price.refit and (trees.low.shape[1] > 0 or price.centre.size > 0)


@inner
def distribution_objectives(trees, price, i, total, best):
    """Do what `leaf_objectives` does for leaves that must be distributions over classes."""
    a, b = trees.offsets[i], trees.offsets[i + 1]
    for o in range(total.shape[0]):
        add_up(trees, i, o, total[o])
    q = np.empty(total.shape[0])
    for v in range(b - a):
        weight = trees.weight[a + v]
        best_distribution(trees, price, a + v, weight, total, v, q)
        best[v] = 0.0
        for o in range(q.size):
            shift = q[o] - trees.origin[o, a + v]
            best[v] += q[o] * (weight * q[o] - 2.0 * total[o, v])
            best[v] += price.shrinkage * shift * shift
    best[0] = 0.0


@inner
def own_weight(trees):
    """Return the weight of the rows that are there and pass each node."""
    return trees.own if trees.own.size else trees.weight


@inner
def left_unsaid(trees, cut, o, v):
    """Return what the rows that are there do not tell of the residual of all, summed over node v.

    The node must be a leaf now.
    """
    if trees.own.size:
        return trees.excess[o, v] - (trees.weight[v] - trees.own[v]) * cut.value[o, v]
    return 0.0


@inner
def add_up(trees, i, o, sums):
    """Set the sums of the splits of tree i, for output o, where those of its leaves are known."""
    split = splits_of(trees, i)
    if not trees.own.size:
        add_up_splits(split, sums)
        return
    excess = trees.excess[o][trees.offsets[i] :]
    for k in range(split.size):
        s = np.uint64(split.size - 1 - k)
        left = s + s + ONE
        sums[split[s]] = sums[left] + sums[left + ONE]
        sums[split[s]] += excess[split[s]] - excess[left] - excess[left + ONE]


@inner
def sum_residuals(codes, trees, cut, active, inside, i, in_leaf, spare, total):
    """Write into total[o, v] the residual without tree i, summed over the rows in leaf v.

    `in_leaf` is scratch for its leaves, `spare` for `sum_by`.
    """
    leaf, a = leaves_of(trees, i), trees.offsets[i]
    weight, there = own_weight(trees)[a:], inside[first_leaf(a, i) :]
    leaf_of = cut.leaf_of[first_leaf(active.offsets[i], i) :]
    for o in range(total.shape[0]):
        row = total[o]
        sum_by(codes[i], cut.residual[o], in_leaf[: leaf.size], spare)
        if cut.depth[i]:
            value = leaf_values(active, cut, i, o)
            for rank in range(leaf.size):
                v = leaf[rank]
                row[v] = in_leaf[rank] + weight[v] * value[leaf_of[there[rank]]]
        else:
            for rank in range(leaf.size):
                row[leaf[rank]] = in_leaf[rank]
        for rank in range(leaf.size if trees.own.size else 0):
            row[leaf[rank]] += trees.excess[o, a + leaf[rank]]


@inner
def leaf_objectives(trees, price, i, share, bounded, stretch, total, best):
    """Write into best[v] the objective of node v of tree i as a leaf; a lone root adds nothing.

    total[o, v] must be known for the leaves; it is filled in for the other nodes. Squares of
    values count by `share`. For `bounded` see `best_value`.
    """
    if bounded and price.centre.size > 1:
        distribution_objectives(trees, price, i, total, best)
        return
    a, b = trees.offsets[i], trees.offsets[i + 1]
    weight = trees.weight[a:b]
    for v in range(b - a):
        best[v] = 0.0
    for o in range(total.shape[0]):
        sums, origin = total[o], trees.origin[o][a:b]
        add_up(trees, i, o, sums)
        if price.refit:
            # Two loops, since one that asks of each node whether it is bounded takes far longer.
            for v in range(b - a if bounded else 0):
                n = share * weight[v]
                f = best_value(trees, price, True, stretch, o, a + v, n, sums[v])
                shift = f - origin[v]
                best[v] += f * (share * weight[v] * f - 2.0 * sums[v])
                best[v] += price.shrinkage * shift * shift
            for v in range(0 if bounded else b - a):
                n = share * weight[v]
                f = best_value(trees, price, False, stretch, o, a + v, n, sums[v])
                shift = f - origin[v]
                best[v] += f * (share * weight[v] * f - 2.0 * sums[v])
                best[v] += price.shrinkage * shift * shift
        else:
            for v in range(b - a):
                f = origin[v]
                best[v] += f * (share * weight[v] * f - 2.0 * sums[v])
    best[0] = 0.0


@inner
def best_below(trees, price, i, discount, best, keep):
    """Find the best pruning of tree i: keep[s] tells whether split s is kept if it is reached.

    best[v] must be the objective of node v as a leaf, and becomes the best of the tree from v on.
    Returns the objective of the tree if its root is split. Costs count by `discount`.
    """
    split = splits_of(trees, i)
    cost, rate = price.cost[first_split(trees.offsets[i], i) :], discount * price.alpha
    below = np.inf
    for k in range(split.size):
        s = np.uint64(split.size - 1 - k)
        left = s + s + ONE
        here = best[split[s]]
        below = best[left] + best[left + ONE] + rate * cost[s]
        keep[s] = below < here
        best[split[s]] = min(below, here)
    return below


@inner
def best_pruning(trees, price, cut, i, discount, stretches, total, best, keep, other, stretch):
    """Find the best pruning of tree i, as `best_below` does; return its objective if it has splits.

    If its values have intervals, these are tried as they are stretched now and, if `stretches`, as
    they fit best.
    What is better of the two is found, its stretch written into `stretch`, and what the other would
    keep into `other`, which must be False before.
    """
    bounded = is_bounded(trees, price)
    leaf_objectives(trees, price, i, 1.0, bounded, cut.stretch[i], total, best)
    root = best_below(trees, price, i, discount, best, keep)
    if not (bounded and trees.low.shape[1]):
        return root
    fitted = np.inf
    if stretches and fit_stretch(trees, i, total, stretch):
        leaf_objectives(trees, price, i, 1.0, bounded, stretch, total, best)
        fitted = best_below(trees, price, i, discount, best, other)
    if fitted < root:
        for s in range(splits_of(trees, i).size):
            keep[s], other[s] = other[s], keep[s]
        return fitted
    for o in range(stretch.shape[0]):
        stretch[o, 0], stretch[o, 1] = cut.stretch[i, o, 0], cut.stretch[i, o, 1]
    return root


@inner
def tree_objective(active, price, cut, nodes, start, i, total):
    """Return the objective of tree i as it is pruned now; total[o, v] counts from node `start`."""
    a, first = active.offsets[i], first_leaf(active.offsets[i], i)
    objective = price.shrinkage * cut.shift[i] + price.alpha * cut.cost[i]
    for j in range(first, first + cut.n_leaves[i]):
        v = a + cut.leaves[j]
        for o in range(total.shape[0]):
            f = cut.value[o, v]
            objective += f * (active.weight[v] * f - 2.0 * total[o, nodes[v] - start])
    return objective


@inner
def _reshape(codes, trees, price, cut, i, keep, level):
    """Let tree i keep the splits s that are reached and have keep[s]. `level` is scratch."""
    a, b = trees.offsets[i], trees.offsets[i + 1]
    split, kept = splits_of(trees, i), cut.kept[first_split(a, i) :]
    cost = price.cost[first_split(a, i) :]
    changed = False
    level[0] = 1
    deepest, total = 0, 0.0
    for s in range(split.size):
        # One more than the depth of a node that is reached, 0 for others.
        here = level[split[s]] if keep[s] else 0
        changed |= (here > 0) != kept[s]
        kept[s] = here > 0
        level[2 * s + 1] = here + 1 if here else 0
        level[2 * s + 2] = level[2 * s + 1]
        if here:
            deepest = max(deepest, here)
            total += cost[s]
    if changed:
        cut.depth[i] = deepest
        cut.cost[i] = total
        leaf_of = cut.leaf_of[first_leaf(a, i) : first_leaf(b, i + 1)]
        leaves = cut.leaves[first_leaf(a, i) :]
        cut.n_leaves[i] = number_leaves(trees, cut.kept, i, leaves, leaf_of, level)
        if price.refit:
            code, row_leaf = codes[i], cut.row_leaf[i]
            for x in range(code.size):
                row_leaf[x] = leaf_of[code[x]]


@inner
def _change(codes, row_weight, trees, price, cut, i, keep, value, level, by_leaf):
    """Let tree i keep some splits, leaf v adding value[o, v]; carry the residual along."""
    a, first, leaf = trees.offsets[i], first_leaf(trees.offsets[i], i), leaves_of(trees, i)
    leaf_of = cut.leaf_of[first:]
    for o in range(value.shape[0]):
        before = leaf_values(trees, cut, i, o)
        for rank in range(leaf.size):
            by_leaf[o, rank] = -before[leaf_of[rank]]
    _reshape(codes, trees, price, cut, i, keep, level)
    cut.shift[i] = 0.0
    weight = own_weight(trees)
    for j in range(first, first + cut.n_leaves[i]):
        v = cut.leaves[j]
        for o in range(value.shape[0]):
            cut.value[o, a + v] = value[o, v]
            if price.refit:
                cut.shift[i] += (value[o, v] - trees.origin[o, a + v]) ** 2
    square = 0.0
    for o in range(value.shape[0]):
        by, after = by_leaf[o], leaf_values(trees, cut, i, o)
        for rank in range(leaf.size):
            by[rank] += after[leaf_of[rank]]
            square += weight[a + leaf[rank]] * by[rank] * by[rank]
        subtract(by, codes[i], row_weight, cut.residual[o])
    cut.moved[0] += np.sqrt(square)


@inner
def _refit(row_weight, trees, price, cut, i, sums, spare):
    """Give the leaves that tree i has now their best values; tell whether that gains enough.

    Nothing is changed if it does not. `sums` is scratch, and `spare` for `sum_by`.
    """
    if price.centre.size > 1:
        return _refit_distributions(row_weight, trees, price, cut, i, sums, spare)
    bounded = is_bounded(trees, price)
    a, count = trees.offsets[i], cut.n_leaves[i]
    first, row_leaf = first_leaf(a, i), cut.row_leaf[i]
    outputs, own = sums.shape[0], own_weight(trees)
    gain, square, shift = 0.0, 0.0, 0.0
    for o in range(outputs):
        step = sums[o]
        sum_by(row_leaf, cut.residual[o], step[:count], spare)
        for j in range(count):
            v = a + cut.leaves[first + j]
            n, f, origin = trees.weight[v], cut.value[o, v], trees.origin[o, v]
            rate = n + price.shrinkage
            # The residual's own sum, less what draws the value back.
            left = step[j] + left_unsaid(trees, cut, o, v)
            by = (left - price.shrinkage * (f - origin)) / rate if rate > 0.0 else 0.0
            step[j] = by
            if bounded:
                step[j] = allowed(trees, price, cut.stretch[i], o, v, f + by) - f
                gain += rate * step[j] * (2.0 * by - step[j])
                by = step[j]
            else:
                gain += rate * by * by
            square += own[v] * by * by
            shift += (f + by - origin) ** 2
    if gain <= price.min_gain:
        return False
    for o in range(outputs):
        for j in range(count):
            v = a + cut.leaves[first + j]
            cut.value[o, v] += sums[o, j]
            if bounded:  # which rounding may have missed
                cut.value[o, v] = allowed(trees, price, cut.stretch[i], o, v, cut.value[o, v])
        subtract(sums[o], row_leaf, row_weight, cut.residual[o])
    cut.shift[i] = shift
    cut.moved[0] += np.sqrt(square)
    return True


@inner
def _refit_distributions(row_weight, trees, price, cut, i, sums, spare):
    """Do what `_refit` does for leaves that must be distributions over classes."""
    a, count = trees.offsets[i], cut.n_leaves[i]
    first, row_leaf = first_leaf(a, i), cut.row_leaf[i]
    gain, square, shift, q = 0.0, 0.0, 0.0, np.empty(sums.shape[0])
    own = own_weight(trees)
    for o in range(q.size):
        sum_by(row_leaf, cut.residual[o], sums[o][:count], spare)
        for j in range(count):
            sums[o, j] += left_unsaid(trees, cut, o, a + cut.leaves[first + j])
    for j in range(count):
        v = a + cut.leaves[first + j]
        rate = trees.weight[v] + price.shrinkage
        for o in range(q.size):
            q[o] = f = cut.value[o, v]
            pull = sums[o, j] - price.shrinkage * (f - trees.origin[o, v])
            q[o] += pull / rate if rate > 0.0 else 0.0
        to_distribution(trees, price, v, q)
        for o in range(q.size):
            f, origin = cut.value[o, v], trees.origin[o, v]
            step = q[o] - f
            gain += step * (2.0 * (sums[o, j] - price.shrinkage * (f - origin)) - rate * step)
            square += own[v] * step * step
            shift += (f + step - origin) ** 2
            sums[o, j] = step
    if gain <= price.min_gain:
        return False
    for o in range(q.size):
        for j in range(count):
            cut.value[o, a + cut.leaves[first + j]] += sums[o, j]
        subtract(sums[o], row_leaf, row_weight, cut.residual[o])
    cut.shift[i] = shift
    cut.moved[0] += np.sqrt(square)
    return True


@kernel
def refit_values(row_weight, trees, cut, price, order, max_sweeps):
    """Refit the values of the trees in `order`, keeping their shapes, until none gains enough."""
    sums = np.empty((trees.origin.shape[0], (largest_tree(trees) + 1) // 2))
    spare = np.empty((3, FEW))
    for _ in range(max_sweeps):
        changed = False
        for i in order:
            if cut.depth[i] and _refit(row_weight, trees, price, cut, i, sums, spare):
                changed = True
        if not changed:
            break


@kernel
def sweep_subtrees(codes, row_weight, trees, nodes, inside, cut, price, order, lazy, kept, given):
    """Update the trees in `order`, each to its best pruning given the others.

    Returns how many changed and how many were looked at. If `lazy`, an absent tree that certainly
    stays away is passed over; otherwise it is looked at all the same. If there is an array `kept`,
    trees are set to these splits instead, and node v is `given` the value given[o, v].

    An absent tree stays away for a while. If the residual moves by D, the objective of a pruning
    that adds f changes by -2 f . D, which is no more than e |f|^2 + |D|^2 / e for any e > 0. So
    with e of the squares taken away, the best pruning tells how large |D| may be; with costs a
    little lower, it tells so for lower alphas too.
    """
    outputs, size = trees.origin.shape[0], largest_tree(trees)
    by_leaf, spare = np.empty((outputs, size)), np.empty((3, FEW))
    total, value, best = np.empty((outputs, size)), np.empty((outputs, size)), np.empty(size)
    keep, level = np.empty(size, np.bool_), np.empty(size, np.int32)
    other, stretch = np.empty(size, np.bool_), np.empty((outputs, 2))
    bounded, q = is_bounded(trees, price), np.empty(outputs)
    changed, looked, present = 0, 0, 0
    for i in range(cut.depth.size if price.most_trees else 0):
        present += cut.depth[i] > 0
    for i in order:
        a, b = trees.offsets[i], trees.offsets[i + 1]
        if kept.size:
            gain = np.inf
            keep = kept[first_split(a, i) :]
            for o in range(outputs):
                for v in range(b - a):
                    value[o, v] = given[o, a + v]
        else:
            absent = cut.depth[i] == 0
            stays = absent and price.alpha >= cut.absent_down_to[i]
            stays = stays and cut.moved[0] <= cut.absent_until[i]
            if (stays and lazy) or (absent and price.most_trees and present >= price.most_trees):
                continue
            looked += 1
            sum_residuals(codes, trees, cut, trees, inside, i, by_leaf[0], spare, total)
            root = best_pruning(trees, price, cut, i, 1.0, True, total, best, keep, other, stretch)
            gain = tree_objective(trees, price, cut, nodes, a, i, total) - min(root, 0.0)
            if gain > price.min_gain:
                for o in range(outputs if bounded and trees.low.shape[1] else 0):
                    cut.stretch[i, o, 0], cut.stretch[i, o, 1] = stretch[o, 0], stretch[o, 1]
                for v in range(b - a if price.centre.size > 1 else 0):
                    best_distribution(trees, price, a + v, trees.weight[a + v], total, v, q)
                    for o in range(outputs):
                        value[o, v] = q[o]
                for o in range(outputs if price.centre.size < 2 else 0):
                    for v in range(b - a):
                        n, s = trees.weight[a + v], total[o, v]
                        value[o, v] = best_value(
                            trees, price, bounded, cut.stretch[i], o, a + v, n, s
                        )
            elif absent and not stays:
                # Whatever its intervals may be by then: without any, objectives are lower still.
                share = 1.0 - LOOSENED
                leaf_objectives(trees, price, i, share, False, cut.stretch[i], total, best)
                # Half of `min_gain` leaves room for rounding.
                room = best_below(trees, price, i, AHEAD, best, keep) + 0.5 * price.min_gain
                cut.absent_down_to[i] = AHEAD * price.alpha if room >= 0.0 else np.inf
                cut.absent_until[i] = cut.moved[0] + np.sqrt(LOOSENED * max(room, 0.0))
        if gain > price.min_gain:
            present -= cut.depth[i] > 0
            _change(codes, row_weight, trees, price, cut, i, keep, value, level, by_leaf)
            present += cut.depth[i] > 0
            changed += 1
    return changed, looked


@kernel
def best_prunings(
    some,
    codes,
    trees,
    price,
    discount,
    stretches,
    cut,
    active,
    nodes,
    inside,
    kept,
    gain,
    cost,
    chosen,
):
    """Write what the best pruning of some trees, not of their active nodes only, would gain.

    Also its cost, and into `chosen` its splits, those that are `kept` anyhow, and, if values have
    intervals, those that would be with other ones. Costs count by `discount`. Intervals of trees
    that are kept are stretched only if `stretches`.
    """
    outputs, size = trees.origin.shape[0], largest_tree(trees)
    in_leaf, best, spare = np.empty(size), np.empty(size), np.empty((3, FEW))
    total, keep = np.empty((outputs, size)), np.empty(size, np.bool_)
    reached, taken = np.empty(size, np.bool_), np.empty(size, np.bool_)
    other, stretch = np.empty(size, np.bool_), np.empty((outputs, 2))
    for i in some:
        a, split = trees.offsets[i], splits_of(trees, i)
        first = first_split(a, i)
        sum_residuals(codes, trees, cut, active, inside, i, in_leaf, spare, total)
        other[: split.size] = False
        fresh = stretches or cut.depth[i] == 0
        root = best_pruning(
            trees, price, cut, i, discount, fresh, total, best, keep, other, stretch
        )
        gain[i] = tree_objective(active, price, cut, nodes, a, i, total) - min(root, 0.0)
        cost[i] = 0.0
        reached[0], taken[0] = True, True
        for s in range(split.size):
            if taken[split[s]] and keep[s]:
                cost[i] += price.cost[first + s]
            taken[2 * s + 1] = taken[2 * s + 2] = taken[split[s]] and keep[s]
            here = reached[split[s]] and (keep[s] or other[s] or kept[first + s])
            chosen[first + s] = here
            reached[2 * s + 1] = reached[2 * s + 2] = here
