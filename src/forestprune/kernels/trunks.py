"""The trunk of a tree: the part of it that sweeps look at, given that nobody keeps the rest.

Most splits of a deep tree hold a few rows and are never kept. The trunk of a tree is what it keeps
now and what it would keep if nodes cost a fraction of what they do. If residuals stay as they are,
its best pruning lies inside, since the best at a lower cost contains the best at a higher one.
They do not stay; so once sweeps find nothing better inside the trunks, the whole trees are asked.
"""

import numpy as np

from forestprune.kernels.jit import kernel
from forestprune.kernels.nodes import largest_tree, leaves_of, splits_of
from forestprune.kernels.subtrees import adds_of, decide, number_ends
from forestprune.kernels.sums import FEW, sum_by


@kernel
def _look_at_whole(codes, trees, cut, now, inside, i, in_leaf, spare, total):
    """Write into total[o, v] the residual without tree i, summed over the rows in leaf v.

    `cut` is about the trunks `now`; leaf l of the forest lies in leaf inside[l] of its trunk.
    """
    leaf, a = leaves_of(trees, i), trees.offsets[i]
    weight = trees.weight[a : trees.offsets[i + 1]]
    there = inside[trees.first_leaf[i] : trees.first_leaf[i + 1]]
    end = cut.end[now.first_leaf[i] : now.first_leaf[i + 1]]
    for o in range(total.shape[0]):
        row = total[o]
        sum_by(codes[i], cut.residual[o], in_leaf[: leaf.size], spare)
        if cut.depth[i]:
            add = adds_of(now, cut, i, o)
            for rank in range(leaf.size):
                row[leaf[rank]] = in_leaf[rank] + weight[leaf[rank]] * add[end[there[rank]]]
        else:
            for rank in range(leaf.size):
                row[leaf[rank]] = in_leaf[rank]


@kernel
def _worth_now(trees, price, cut, now, nodes, i, total):
    """Return what tree i, as it is pruned now, is worth."""
    a, first = now.offsets[i], now.first_leaf[i]
    worth = price.shrinkage * cut.off[i] + price.alpha * cut.cost[i]
    for j in range(first, first + cut.n_ends[i]):
        v = a + cut.ends[j]
        for o in range(total.shape[0]):
            f = cut.value[o, v]
            worth += f * (now.weight[v] * f - 2.0 * total[o, nodes[v] - trees.offsets[i]])
    return worth


@kernel
def gains_of_whole(some, codes, trees, price, cut, now, nodes, inside, gain):
    """Write into gain[i] what the best pruning of some trees, not of their trunks, would gain.

    nodes[v] is the forest's number of node v of the trunks `now`; the rest as in `choose_trunks`.
    """
    outputs, size = trees.origin.shape[0], largest_tree(trees)
    in_leaf, best, spare = np.empty(size), np.empty(size), np.empty((3, FEW))
    total, keep = np.empty((outputs, size)), np.empty(size, np.bool_)
    for i in some:
        _look_at_whole(codes, trees, cut, now, inside, i, in_leaf, spare, total)
        root = decide(trees, price, i, 1.0, 1.0, total, best, keep)
        gain[i] = _worth_now(trees, price, cut, now, nodes, i, total) - min(root, 0.0)


@kernel
def choose_trunks(start, stop, codes, trees, price, cut, now, inside, kept, ahead, trunk):
    """Write which splits belong to the trunks of some trees.

    `cut` is about the trunks there are `now`; leaf l of the forest lies in leaf inside[l] of its
    present trunk. kept[s] tells whether the forest's split s is kept. Costs count by `ahead`.
    """
    outputs, size = trees.origin.shape[0], largest_tree(trees)
    in_leaf, best, spare = np.empty(size), np.empty(size), np.empty((3, FEW))
    total, keep = np.empty((outputs, size)), np.empty(size, np.bool_)
    on = np.empty(size, np.bool_)
    for i in range(start, stop):
        split, first = splits_of(trees, i), (trees.offsets[i] - i) // 2
        _look_at_whole(codes, trees, cut, now, inside, i, in_leaf, spare, total)
        decide(trees, price, i, 1.0, ahead, total, best, keep)
        on[0] = True
        for s in range(split.size):
            here = on[split[s]] and (keep[s] or kept[first + s])
            trunk[first + s] = here
            on[2 * s + 1] = here
            on[2 * s + 2] = here


@kernel
def fill_trunks(start, stop, codes, trees, trunk, offsets, node, split, leaf, inside, new_codes):
    """Give numbers to the nodes of some trunks, and write which leaf of its trunk each row is in.

    offsets[i] is where the nodes of trunk i begin. Writes the forest's number of each node, of
    each trunk the splits and leaves in level order, and in which of these each leaf of the forest
    lies.
    """
    nodes = largest_tree(trees)
    place, rank_of = np.empty(nodes, np.int32), np.empty(nodes, np.int32)
    is_split, rank_in = np.empty(nodes, np.bool_), np.empty(nodes, np.int32)
    for i in range(start, stop):
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
        in_leaf = inside[trees.first_leaf[i] : trees.first_leaf[i + 1]]
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
