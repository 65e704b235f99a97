"""Coarse trees, whose leaves may still be split in the forest: what prunings could gain at most.

Most nodes of a deep tree hold a few rows, and what splitting them could gain is less than it costs.
If node v is a leaf, let q be the squares of the residual less v's original value v0, and d the
residual less v0, summed over its rows, N their weight and B a bound on the root of the squares of
what prunings below v add beyond v0 if values are the original ones. Then splitting v gains at most

    k q - d^2 / (N + lambda) + (1 - k) (2 b sqrt(q) - b^2),
    k = N / (N + lambda), b = min(B, sqrt(q))

before costs, and without the middle term and with k = 0 if values are not refitted. For with k no
less than n / (n + lambda) in any leaf below v, refitting its value takes at most k of its squares
away; the rest is what original values gain, and the inequality of Cauchy and Schwarz bounds that.
"""

import numpy as np

from forestprune.kernels.jit import inner, kernel
from forestprune.kernels.nodes import first_leaf, largest_tree, leaves_of, splits_of
from forestprune.kernels.subtrees import best_below, leaf_objectives, leaf_values
from forestprune.kernels.sums import FEW, sum_by


@kernel
def spread_below(some, trees, spread):
    """Write the bound B of each node into `spread`: differences on the way down, added up."""
    for i in some:
        a = trees.offsets[i]
        split = splits_of(trees, i)
        for v in range(a, trees.offsets[i + 1]):
            spread[v] = 0.0
        for s in range(split.size - 1, -1, -1):
            v, square = a + split[s], 0.0
            for c in range(a + 2 * s + 1, a + 2 * s + 3):
                step = 0.0
                for o in range(trees.origin.shape[0]):
                    step += (trees.origin[o, c] - trees.origin[o, v]) ** 2
                square += (spread[c] + np.sqrt(trees.weight[c] * step)) ** 2
            spread[v] = np.sqrt(square)


@kernel
def square_rows(row_weight, residual, square):
    """Write the square of the residual of each row, all outputs together, times its weight."""
    for x in range(square.size):
        square[x] = 0.0
    for o in range(residual.shape[0]):
        line = residual[o]
        if row_weight.size:
            for x in range(line.size):
                if row_weight[x] > 0.0:
                    square[x] += line[x] * line[x] / row_weight[x]
        else:
            for x in range(line.size):
                square[x] += line[x] * line[x]


@inner
def _most(price, weight, q, drawn, spread):
    """Return the most that splitting a leaf could gain; `drawn` is d^2."""
    rate = weight + price.shrinkage
    q = max(q, 0.0)
    share = 0.0
    if price.refit and rate > 0.0:
        share, drawn = weight / rate, drawn / rate
    else:
        drawn = 0.0
    root = np.sqrt(q)
    b = min(spread, root)
    return share * q - drawn + (1.0 - share) * b * (2.0 * root - b)


@inner
def _find_leaves(trees, cut, active, nodes, place, i, lies_in):
    """Write into lies_in[v] the number, from 1 on, of the pruned leaf that node v lies in; 0: none.

    Returns whether all leaves that tree i has now are nodes of its coarse tree.
    """
    split, first = splits_of(trees, i), first_leaf(active.offsets[i], i)
    for v in range(2 * split.size + 1):
        lies_in[v] = 0
    for j in range(cut.n_leaves[i]):
        v = place[nodes[active.offsets[i] + cut.leaves[first + j]]]
        if v < 0:
            return False
        lies_in[v] = j + 1
    for s in range(split.size):
        above = lies_in[split[s]]
        if above:
            lies_in[2 * s + 1] = above
            lies_in[2 * s + 2] = above
    return True


@kernel
def gains_at_most(some, codes, square, trees, price, spread, cost, cut, active, nodes, place, gain):
    """Write into gain[i] what no pruning of some trees of the forest gains more than.

    `trees` and `codes` are about coarse trees; spread[l] is the bound B of their leaf l and cost[l]
    what its split costs, infinite if it has none. square[x] is that of row x. `cut` is about the
    `active` trees, whose nodes have the numbers `nodes` in the forest; place[v] is where the
    forest's node v stands in its coarse tree, -1 if it does not.
    """
    outputs, size = trees.origin.shape[0], largest_tree(trees)
    in_leaf, spare, best = np.empty(size), np.empty((3, FEW)), np.empty(size)
    around, drawn, total = np.empty(size), np.empty(size), np.empty((outputs, size))
    keep, lies_in = np.empty(size, np.bool_), np.empty(size, np.int32)
    for i in some:
        if not _find_leaves(trees, cut, active, nodes, place, i, lies_in):
            gain[i] = np.inf
            continue
        a, leaf = trees.offsets[i], leaves_of(trees, i)
        first, weight = first_leaf(a, i), trees.weight[a:]
        sum_by(codes[i], square, around[: leaf.size], spare)
        for rank in range(leaf.size):
            drawn[rank] = 0.0
        for o in range(outputs):
            origin, value, row = trees.origin[o][a:], leaf_values(active, cut, i, o), total[o]
            sum_by(codes[i], cut.residual[o], in_leaf[: leaf.size], spare)
            for rank in range(leaf.size):
                v = leaf[rank]
                f = value[lies_in[v] - 1] if lies_in[v] else 0.0
                # The square of the residual with f put back and v0 taken away, instead of itself.
                by = f - origin[v]
                total_shift = in_leaf[rank] + weight[v] * by
                around[rank] += by * (in_leaf[rank] + total_shift)
                drawn[rank] += total_shift * total_shift
                row[v] = in_leaf[rank] + weight[v] * f
        # What values may not be is left out: it could only make gains smaller.
        leaf_objectives(trees, price, i, 1.0, False, cut.stretch[i], total, best)
        for rank in range(leaf.size):
            v, limit = leaf[rank], price.alpha * cost[first + rank]
            # No split gains more than all the squares: most leaves need no further look.
            if cost[first + rank] < np.inf and around[rank] > limit:
                most = _most(price, weight[v], around[rank], drawn[rank], spread[first + rank])
                best[v] -= max(most - limit, 0.0)
        root = best_below(trees, price, i, 1.0, best, keep)
        gain[i] = price.shrinkage * cut.shift[i] + price.alpha * cut.cost[i] - min(root, 0.0)
        here = cut.leaves[first_leaf(active.offsets[i], i) :]
        for j in range(cut.n_leaves[i]):
            u = active.offsets[i] + here[j]
            for o in range(outputs):
                f = cut.value[o, u]
                gain[i] += f * (active.weight[u] * f - 2.0 * total[o, place[nodes[u]]])
