"""Keeping any part of a tree that hangs together from its root: the `subtree` rule.

A pruned tree is a set of splits that are kept; its leaves are the nodes where rows then end. Leaf v
adds f_v for its rows. With S_v the residual without this tree and N_v the weight, summed over the
rows in v, and v0 what the node adds in the original, leaf v is worth

    -2 f_v S_v + f_v^2 N_v + lambda (f_v - v0)^2,

which is least at f_v = (S_v + lambda v0) / (N_v + lambda); without refitting f_v = v0. From the
leaves up, a split is kept if its children are worth less, their cost included, than the node as a
leaf. That finds the best of all prunings. A tree that keeps no split adds nothing and costs
nothing: roots are in the intercept.

Residuals are kept times the rows' weights, one line for each output.
"""

import numpy as np

from forestprune.kernels.jit import kernel
from forestprune.kernels.nodes import ONE, add_up_splits, largest_tree, leaves_of, splits_of
from forestprune.kernels.sums import FEW, subtract, sum_by

LOOSENED = 0.5
"""See `_slack`: the share of the squares of what is added that is set against the residual's."""

AHEAD = 0.75
"""See `_slack`: how far alpha may fall until all trees must be looked at again."""


@kernel
def adds_of(trees, cut, i, o):
    """Return what tree i adds to output o in each of the nodes where its rows end; 0 if absent."""
    a, first = trees.offsets[i], trees.first_leaf[i]
    add = np.zeros(max(cut.n_ends[i], 1))
    for j in range(cut.n_ends[i]):
        add[j] = cut.value[o, a + cut.ends[first + j]]
    return add


@kernel
def look_at(codes, trees, cut, i, in_leaf, spare, total):
    """Write into total[o, v] the residual without tree i, summed over the rows in leaf v.

    `in_leaf` is scratch for its leaves, `spare` for `sum_by`.
    """
    leaf = leaves_of(trees, i)
    a, first = trees.offsets[i], trees.first_leaf[i]
    code, end = codes[i], cut.end[first : first + leaf.size]
    for o in range(total.shape[0]):
        row = total[o]
        sum_by(code, cut.residual[o], in_leaf[: leaf.size], spare)
        if cut.depth[i]:
            add, weight = adds_of(trees, cut, i, o), trees.weight[a : trees.offsets[i + 1]]
            for rank in range(leaf.size):
                row[leaf[rank]] = in_leaf[rank] + weight[leaf[rank]] * add[end[rank]]
        else:
            for rank in range(leaf.size):
                row[leaf[rank]] = in_leaf[rank]


@kernel
def worth_of_nodes(trees, price, i, share, total, best):
    """Write into best[v] what node v of tree i is worth as a leaf; a lone root adds nothing.

    total[o, v] must be known for the leaves; it is filled in for the other nodes. Squares of what
    is added count by `share`.
    """
    a, b = trees.offsets[i], trees.offsets[i + 1]
    weight = trees.weight[a:b]
    for v in range(b - a):
        best[v] = 0.0
    for o in range(total.shape[0]):
        sums, origin = total[o], trees.origin[o][a:b]
        add_up_splits(splits_of(trees, i), sums)
        if price.refit:
            for v in range(b - a):
                n = share * weight[v] + price.shrinkage
                f = (sums[v] + price.shrinkage * origin[v]) / n if n > 0.0 else origin[v]
                off = f - origin[v]
                best[v] += f * (share * weight[v] * f - 2.0 * sums[v])
                best[v] += price.shrinkage * off * off
        else:
            for v in range(b - a):
                f = origin[v]
                best[v] += f * (share * weight[v] * f - 2.0 * sums[v])
    best[0] = 0.0


@kernel
def best_below(trees, price, i, discount, best, keep):
    """Find the best pruning of tree i: keep[s] tells whether split s is kept if it is reached.

    best[v] must be what node v is worth as a leaf, and becomes what the best of the tree from v on
    is worth. Returns what the tree is worth if its root is split. Costs count by `discount`.
    """
    a, b = trees.offsets[i], trees.offsets[i + 1]
    split = splits_of(trees, i)
    cost, rate = price.cost[(a - i) // 2 : (b - i - 1) // 2], discount * price.alpha
    below = np.inf
    for k in range(split.size):
        s = np.uint64(split.size - 1 - k)
        left = s + s + ONE
        here = best[split[s]]
        below = best[left] + best[left + ONE] + rate * cost[s]
        keep[s] = below < here
        best[split[s]] = min(below, here)
    return below


@kernel
def decide(trees, price, i, share, discount, total, best, keep):
    """Find the best pruning of tree i, squares and costs counted in part: 1 and 1 as they are."""
    worth_of_nodes(trees, price, i, share, total, best)
    return best_below(trees, price, i, discount, best, keep)


@kernel
def _values(trees, price, i, total, value):
    """Write into value[o, v] what node v of tree i would add as a leaf."""
    a, b = trees.offsets[i], trees.offsets[i + 1]
    for o in range(total.shape[0]):
        for v in range(b - a):
            f, n = trees.origin[o, a + v], trees.weight[a + v] + price.shrinkage
            if price.refit and n > 0.0:
                f = (total[o, v] + price.shrinkage * f) / n
            value[o, v] = f


@kernel
def _worth(trees, price, cut, i, total):
    """Return what tree i, as it is pruned now, is worth."""
    a, first = trees.offsets[i], trees.first_leaf[i]
    worth = price.shrinkage * cut.off[i] + price.alpha * cut.cost[i]
    for j in range(first, first + cut.n_ends[i]):
        v = cut.ends[j]
        for o in range(total.shape[0]):
            f = cut.value[o, a + v]
            worth += f * (trees.weight[a + v] * f - 2.0 * total[o, v])
    return worth


@kernel
def _slack(trees, price, i, total, best, keep):
    """Return how far the residual may move until tree i, which is absent, might enter; -1 if now.

    If it moves by D, the worth of a pruning that adds f changes by -2 f . D, which is no more than
    e |f|^2 + |D|^2 / e for any e > 0. So with e of the squares taken away, the best pruning tells
    how large |D| may be. With costs a little lower, it tells so for lower alphas too.
    """
    worth = decide(trees, price, i, 1.0 - LOOSENED, AHEAD, total, best, keep)
    # Half of `least` leaves room for rounding.
    room = worth + 0.5 * price.least
    return np.sqrt(LOOSENED * room) if room >= 0.0 else -1.0


@kernel
def number_ends(trees, cut, i, on, end):
    """Give numbers to the nodes where the rows of tree i end, from the splits that it keeps.

    Below them nodes inherit the number. A lone root is none. `on` and `end` are scratch for its
    nodes.
    """
    first = trees.first_leaf[i]
    split, leaf = splits_of(trees, i), leaves_of(trees, i)
    first_split = (trees.offsets[i] - i) // 2
    for rank in range(leaf.size):
        on[leaf[rank]] = False
    for s in range(split.size):
        on[split[s]] = cut.kept[first_split + s]
    count = 0
    end[0] = 0
    for s in range(split.size):
        above = end[split[s]]
        here = cut.kept[first_split + s]
        for c in range(2 * s + 1, 2 * s + 3):
            if here and not on[c]:
                cut.ends[first + count] = c
                end[c] = count
                count += 1
            else:
                end[c] = above
    cut.n_ends[i] = count
    for rank in range(leaf.size):
        cut.end[first + rank] = end[leaf[rank]]


@kernel
def _reshape(codes, trees, price, cut, i, keep, level, on, end):
    """Let tree i keep the splits s that are reached and have keep[s].

    `level`, `on` and `end` are scratch for its nodes.
    """
    first = trees.first_leaf[i]
    split, leaf = splits_of(trees, i), leaves_of(trees, i)
    first_split = (trees.offsets[i] - i) // 2
    changed = False
    level[0] = 1
    deepest, cost = 0, 0.0
    for s in range(split.size):
        v = split[s]
        # One more than the depth of a node that is reached, 0 for others.
        here = level[v] if keep[s] else 0
        changed |= (here > 0) != cut.kept[first_split + s]
        cut.kept[first_split + s] = here > 0
        below = here + 1 if here else 0
        level[2 * s + 1] = below
        level[2 * s + 2] = below
        if here:
            deepest = max(deepest, here)
            cost += price.cost[first_split + s]
    if not changed:
        return
    cut.depth[i] = deepest
    cut.cost[i] = cost
    number_ends(trees, cut, i, on, end)
    if price.refit:
        code, column, ranks = codes[i], cut.column[i], cut.end[first : first + leaf.size]
        for x in range(code.size):
            column[x] = ranks[code[x]]


@kernel
def _change(codes, row_weight, trees, price, cut, i, keep, value, level, on, end, by_leaf):
    """Let tree i keep some splits, node v adding value[o, v]; carry the residual along."""
    a, first = trees.offsets[i], trees.first_leaf[i]
    leaf = leaves_of(trees, i)
    code = codes[i]
    outputs = value.shape[0]
    end_of = cut.end[first : first + leaf.size]
    for o in range(outputs):
        by, add = by_leaf[o], adds_of(trees, cut, i, o)
        for rank in range(leaf.size):
            by[rank] = -add[end_of[rank]]
    _reshape(codes, trees, price, cut, i, keep, level, on, end)
    cut.off[i] = 0.0
    for j in range(first, first + cut.n_ends[i]):
        v = cut.ends[j]
        for o in range(outputs):
            cut.value[o, a + v] = value[o, v]
            if price.refit:
                cut.off[i] += (value[o, v] - trees.origin[o, a + v]) ** 2
    square = 0.0
    for o in range(outputs):
        by, add = by_leaf[o], adds_of(trees, cut, i, o)
        for rank in range(leaf.size):
            by[rank] += add[end_of[rank]]
            square += trees.weight[a + leaf[rank]] * by[rank] * by[rank]
        subtract(by, code, row_weight, cut.residual[o])
    cut.moved[0] += np.sqrt(square)


@kernel
def _refit(row_weight, trees, price, cut, i, sums, spare):
    """Give the leaves that tree i has now their best values; tell whether that gains enough.

    Nothing is changed if it does not. `sums` is scratch, and `spare` for `sum_by`.
    """
    a, first, count = trees.offsets[i], trees.first_leaf[i], cut.n_ends[i]
    column = cut.column[i]
    outputs = sums.shape[0]
    gain, square, off = 0.0, 0.0, 0.0
    for o in range(outputs):
        step = sums[o]
        sum_by(column, cut.residual[o], step[:count], spare)
        for j in range(count):
            v = a + cut.ends[first + j]
            n, f, origin = trees.weight[v], cut.value[o, v], trees.origin[o, v]
            rate = n + price.shrinkage
            # The residual's own sum, less what draws the value back.
            by = (step[j] - price.shrinkage * (f - origin)) / rate if rate > 0.0 else 0.0
            step[j] = by
            gain += rate * by * by
            square += n * by * by
            off += (f + by - origin) ** 2
    if gain <= price.least:
        return False
    for o in range(outputs):
        for j in range(count):
            cut.value[o, a + cut.ends[first + j]] += sums[o, j]
        subtract(sums[o], column, row_weight, cut.residual[o])
    cut.off[i] = off
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
def sweep_subtrees(codes, row_weight, trees, cut, price, order, lazy):
    """Update the trees in `order`, each to its best pruning given the others.

    Returns how many changed and how many were looked at. If `lazy`, an absent tree that certainly
    stays away is passed over; otherwise it is looked at all the same.
    """
    outputs, nodes = trees.origin.shape[0], largest_tree(trees)
    by_leaf, spare = np.empty((outputs, nodes)), np.empty((3, FEW))
    total, value, best = np.empty((outputs, nodes)), np.empty((outputs, nodes)), np.empty(nodes)
    keep, on = np.empty(nodes, np.bool_), np.empty(nodes, np.bool_)
    level, end = np.empty(nodes, np.int32), np.empty(nodes, np.int32)
    changed, looked = 0, 0
    for i in order:
        absent = cut.depth[i] == 0
        stays = (
            absent
            and price.alpha >= cut.lowest_alpha[i]
            and cut.moved[0] - cut.moved_then[i] <= cut.slack[i]
        )
        if stays and lazy:
            continue
        looked += 1
        look_at(codes, trees, cut, i, by_leaf[0], spare, total)
        root = decide(trees, price, i, 1.0, 1.0, total, best, keep)
        gain = _worth(trees, price, cut, i, total) - min(root, 0.0)
        if gain > price.least:
            _values(trees, price, i, total, value)
            _change(codes, row_weight, trees, price, cut, i, keep, value, level, on, end, by_leaf)
            changed += 1
        elif absent and not stays:
            cut.slack[i] = _slack(trees, price, i, total, best, keep)
            cut.lowest_alpha[i] = AHEAD * price.alpha
            cut.moved_then[i] = cut.moved[0]
    return changed, looked


@kernel
def best_subtrees(start, stop, codes, trees, cut, price, worth, cost):
    """Write what the best pruning of some trees is worth, given the others, and what it costs.

    The worth of a tree that would best be absent is 0.
    """
    outputs, nodes = trees.origin.shape[0], largest_tree(trees)
    in_leaf, best, spare = np.empty(nodes), np.empty(nodes), np.empty((3, FEW))
    total = np.empty((outputs, nodes))
    keep, on = np.empty(nodes, np.bool_), np.empty(nodes, np.bool_)
    for i in range(start, stop):
        look_at(codes, trees, cut, i, in_leaf, spare, total)
        root = decide(trees, price, i, 1.0, 1.0, total, best, keep)
        worth[i] = min(root, 0.0)
        cost[i] = 0.0
        on[0] = True
        split, first = splits_of(trees, i), (trees.offsets[i] - i) // 2
        for s in range(split.size):
            here = on[split[s]] and keep[s]
            on[2 * s + 1] = here
            on[2 * s + 2] = here
            if here:
                cost[i] += price.cost[first + s]


@kernel
def set_subtrees(codes, row_weight, trees, cut, price, kept, add):
    """Let all trees keep the splits `kept`, node v adding add[o, v]."""
    outputs, nodes = trees.origin.shape[0], largest_tree(trees)
    by_leaf, value = np.empty((outputs, nodes)), np.empty((outputs, nodes))
    on = np.empty(nodes, np.bool_)
    level, end = np.empty(nodes, np.int32), np.empty(nodes, np.int32)
    for i in range(trees.offsets.size - 1):
        a, b = trees.offsets[i], trees.offsets[i + 1]
        for v in range(b - a):
            for o in range(outputs):
                value[o, v] = add[o, a + v]
        keep = kept[(a - i) // 2 : (b - i - 1) // 2]
        _change(codes, row_weight, trees, price, cut, i, keep, value, level, on, end, by_leaf)


@kernel
def average_adds(trees, nodes, adds):
    """Set adds[o, j] of the nodes[j] that are split to what the rows in them are given on average.

    `nodes` are those that are kept, rising, roots left out: siblings stand side by side. Where
    there are no rows of weight, the plain average of the two.
    """
    place = np.empty(largest_tree(trees), np.int64)
    last = nodes.size
    for i in range(trees.offsets.size - 2, -1, -1):
        a = trees.offsets[i]
        split, begin = splits_of(trees, i), last
        while begin > 0 and nodes[begin - 1] >= a:
            begin -= 1
            place[nodes[begin] - a] = begin
        for j in range(last - 2, begin - 1, -2):
            parent = split[(nodes[j] - a) // 2]
            left, right = trees.weight[nodes[j]], trees.weight[nodes[j + 1]]
            share = left / (left + right) if left + right > 0.0 else 0.5
            if parent > 0:
                for o in range(adds.shape[0]):
                    average = share * adds[o, j] + (1.0 - share) * adds[o, j + 1]
                    adds[o, place[parent]] = average
        last = begin
