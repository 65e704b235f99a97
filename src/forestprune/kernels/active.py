"""The active nodes of a tree: the part of it that sweeps look at, given that nobody keeps the rest.

Most splits of a deep tree hold a few rows and are never kept. Active is what a tree keeps now and
what it would keep if nodes cost a fraction of what they do. If residuals stay as they are, its best
pruning lies inside, since the best at a lower cost contains the best at a higher one. They do not
stay; so once sweeps find nothing better among active nodes, the whole trees are asked.
"""

import numpy as np

from forestprune.kernels.jit import kernel
from forestprune.kernels.nodes import first_leaf, first_split, largest_tree, leaves_of, splits_of


@kernel
def fill_active(some, codes, trees, chosen, offsets, node, split, leaf, inside, new_codes):
    """Give numbers to the active nodes of some trees, and write which leaf rows are in.

    Tree i's active nodes begin at offsets[i]. Writes the forest's number of each, of each active
    tree the splits and leaves in level order, and in which of these each leaf of the forest lies.
    """
    size = largest_tree(trees)
    place, rank_of = np.empty(size, np.int32), np.empty(size, np.int32)
    is_split, rank_in = np.empty(size, np.bool_), np.empty(size, np.int32)
    for i in some:
        a, old_split, old_leaf = trees.offsets[i], splits_of(trees, i), leaves_of(trees, i)
        begin, end = offsets[i], offsets[i + 1]
        next_split, next_leaf = first_split(begin, i), first_leaf(begin, i)
        stays = chosen[first_split(a, i) :]
        for u in range(end - begin):
            is_split[u] = False
        node[begin] = a
        place[0] = 0
        count = 1
        for s in range(old_split.size):
            if stays[s]:
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
                rank_of[c] = rank_in[place[c]] if stays[s] else above
        in_leaf = inside[first_leaf(a, i) :]
        for rank in range(old_leaf.size):
            in_leaf[rank] = rank_of[old_leaf[rank]]
        code, new_code = codes[i], new_codes[i]
        for x in range(code.size):
            new_code[x] = in_leaf[code[x]]
