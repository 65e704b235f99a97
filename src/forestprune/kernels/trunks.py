"""The trunk of a tree: the part of it that could be kept at all, given a cost.

Most splits of a deep tree hold a few rows, and what keeping them could gain is less than they cost.
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

from forestprune.kernels.jit import kernel
from forestprune.kernels.nodes import largest_tree, leaves_of, splits_of
from forestprune.kernels.subtrees import adds_of, look_at, number_ends
from forestprune.kernels.sums import FEW, sum_by


@kernel
def spread_below(trees, spread):
    """Write the bound B of each node into `spread`: differences on the way down, added up."""
    for i in range(trees.offsets.size - 1):
        a = trees.offsets[i]
        split = splits_of(trees, i)
        for v in range(a, trees.offsets[i + 1]):
            spread[v] = 0.0
        for s in range(split.size - 1, -1, -1):
            v, square = a + split[s], 0.0
            for c in range(a + 2 * s + 1, a + 2 * s + 3):
                off = 0.0
                for o in range(trees.origin.shape[0]):
                    off += (trees.origin[o, c] - trees.origin[o, v]) ** 2
                square += (spread[c] + np.sqrt(trees.weight[c] * off)) ** 2
            spread[v] = np.sqrt(square)


@kernel
def _squares(row_weight, residual):
    """Return the square of the residual for each row, all outputs together, times its weight."""
    square = np.zeros(residual.shape[1])
    for o in range(residual.shape[0]):
        line = residual[o]
        if row_weight.size:
            for x in range(line.size):
                if row_weight[x] > 0.0:
                    square[x] += line[x] * line[x] / row_weight[x]
        else:
            for x in range(line.size):
                square[x] += line[x] * line[x]
    return square


@kernel
def _look_at_squares(codes, trees, cut, i, of_row, in_leaf, spare, total, square):
    """Write into square[v] the squares of the residual without tree i, over the rows in leaf v.

    of_row[x] is the square with it; total[o, v] is the sum without it.
    """
    leaf = leaves_of(trees, i)
    a, first = trees.offsets[i], trees.first_leaf[i]
    sum_by(codes[i], of_row, in_leaf[: leaf.size], spare)
    for rank in range(leaf.size):
        v = leaf[rank]
        square[v] = in_leaf[rank]
        if cut.depth[i]:
            end = a + cut.ends[first + cut.end[first + rank]]
            for o in range(total.shape[0]):
                f = cut.value[o, end]
                square[v] += f * (2.0 * total[o, v] - f * trees.weight[a + v])


@kernel
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


@kernel
def choose_trunks(start, stop, codes, row_weight, trees, cut, price, spread, ahead, trunk):
    """Write which splits belong to the trunks of some trees: those that are or could be kept.

    Costs count by `ahead`, so that the trunks serve for lower alphas too.
    """
    outputs, nodes = trees.origin.shape[0], largest_tree(trees)
    in_leaf, spare, square = np.empty(nodes), np.empty((3, FEW)), np.empty(nodes)
    total, on = np.empty((outputs, nodes)), np.empty(nodes, np.bool_)
    of_row = _squares(row_weight, cut.residual)
    for i in range(start, stop):
        a, split = trees.offsets[i], splits_of(trees, i)
        first = (a - i) // 2
        look_at(codes, trees, cut, i, in_leaf, spare, total)
        _look_at_squares(codes, trees, cut, i, of_row, in_leaf, spare, total, square)
        for s in range(split.size - 1, -1, -1):
            v = split[s]
            square[v] = square[2 * s + 1] + square[2 * s + 2]
            for o in range(outputs):
                total[o, v] = total[o, 2 * s + 1] + total[o, 2 * s + 2]
        on[0] = True
        for s in range(split.size):
            v = split[s]
            here = on[v]
            if here and v > 0 and not cut.kept[first + s]:
                q, drawn = square[v], 0.0
                for o in range(outputs):
                    c, n = trees.origin[o, a + v], trees.weight[a + v]
                    off = total[o, v] - c * n
                    q -= c * (total[o, v] + off)
                    drawn += off * off
                most = _most(price, trees.weight[a + v], q, drawn, spread[a + v])
                here = most > ahead * price.alpha * price.cost[first + s]
            trunk[first + s] = here
            on[2 * s + 1] = here
            on[2 * s + 2] = here


@kernel
def trunks_hold(start, stop, codes, row_weight, trees, cut, price, spread, cost, holds):
    """Write into holds[i] whether no leaf of trunk i could gain by being split in the forest.

    spread[l] is the bound of leaf l, cost[l] what its split costs; infinite if it has none.
    """
    outputs, nodes = trees.origin.shape[0], largest_tree(trees)
    in_leaf, spare = np.empty(nodes), np.empty((3, FEW))
    square, drawn = np.empty(nodes), np.empty(nodes)
    of_row = _squares(row_weight, cut.residual)
    for i in range(start, stop):
        a, b, first, leaf = (
            trees.offsets[i],
            trees.offsets[i + 1],
            trees.first_leaf[i],
            leaves_of(trees, i),
        )
        weight, end = trees.weight[a:b], cut.end[first : first + leaf.size]
        sum_by(codes[i], of_row, square[: leaf.size], spare)
        for rank in range(leaf.size):
            drawn[rank] = 0.0
        for o in range(outputs):
            origin, add = trees.origin[o][a:b], adds_of(trees, cut, i, o)
            sum_by(codes[i], cut.residual[o], in_leaf[: leaf.size], spare)
            for rank in range(leaf.size):
                v = leaf[rank]
                f, c, n = add[end[rank]], origin[v], weight[v]
                off = in_leaf[rank] + n * (f - c)
                # The square of the residual with f put back and c taken away, instead of itself.
                square[rank] += (f - c) * (in_leaf[rank] + off)
                drawn[rank] += off * off
        holds[i] = True
        # A lone root stands for a tree without splits.
        for rank in range(leaf.size if b > a + 1 else 0):
            if cost[first + rank] == np.inf:
                continue
            limit = price.alpha * cost[first + rank]
            # No split gains more than all the squares: most leaves need no further look.
            if square[rank] > limit:
                most = _most(
                    price, weight[leaf[rank]], square[rank], drawn[rank], spread[first + rank]
                )
                if most > limit:
                    holds[i] = False
                    break


@kernel
def fill_trunks(codes, trees, trunk, offsets, node, split, leaf, new_codes):
    """Give numbers to the nodes of trunks, and write which leaf of its trunk each row is in.

    offsets[i] is where the nodes of trunk i begin. Writes the forest's number of each node, and of
    each trunk the splits and leaves in level order.
    """
    nodes = largest_tree(trees)
    place, rank_of = np.empty(nodes, np.int32), np.empty(nodes, np.int32)
    is_split, rank_in = np.empty(nodes, np.bool_), np.empty(nodes, np.int32)
    for i in range(trees.offsets.size - 1):
        a, old_split, old_leaf = trees.offsets[i], splits_of(trees, i), leaves_of(trees, i)
        first = (a - i) // 2
        begin, end = offsets[i], offsets[i + 1]
        next_split, next_leaf = (begin - i) // 2, (begin + i) // 2
        for u in range(end - begin):
            is_split[u] = False
        node[begin] = a
        place[0] = 0
        count = 1
        for s in range(old_split.size):
            if trunk[first + s]:
                u = place[old_split[s]]
                is_split[u] = True
                split[next_split] = u
                next_split += 1
                for c in range(2 * s + 1, 2 * s + 3):
                    place[c] = count
                    node[begin + count] = a + c
                    count += 1
        ranks = 0
        for u in range(count):
            rank_in[u] = -1
            if not is_split[u]:
                rank_in[u] = ranks
                leaf[next_leaf + ranks] = u
                ranks += 1
        rank_of[0] = rank_in[0]
        for s in range(old_split.size):
            above = rank_of[old_split[s]]
            for c in range(2 * s + 1, 2 * s + 3):
                rank_of[c] = rank_in[place[c]] if trunk[first + s] else above
        in_leaf = rank_in
        for rank in range(old_leaf.size):
            in_leaf[rank] = rank_of[old_leaf[rank]]
        code, new_code = codes[i], new_codes[i]
        for x in range(code.size):
            new_code[x] = in_leaf[code[x]]


@kernel
def number_all_ends(trees, cut):
    """Find the nodes where rows end in every tree, from the splits that it keeps."""
    nodes = largest_tree(trees)
    on, end = np.empty(nodes, np.bool_), np.empty(nodes, np.int32)
    for i in range(trees.offsets.size - 1):
        number_ends(trees, cut, i, on, end)
