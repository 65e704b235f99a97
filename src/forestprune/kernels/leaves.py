"""The leaves of pruned trees as columns of a matrix A: 1 where a row is in the leaf, else 0.

The matrix is never built. group[l] is the column of the rows in leaf l of the unpruned trees.
"""

from forestprune.kernels.jit import kernel
from forestprune.kernels.nodes import leaves_of, splits_of


@kernel
def number_leaves(trees, kept, some, end, group, node, tree):
    """Give the leaves of some trees that keep the splits `kept` numbers; return how many.

    Writes their nodes and their trees, and into group[l] the number of the one that holds leaf l of
    the unpruned tree. `end` is scratch for the nodes of any tree.
    """
    count = 0
    for i in some:
        a = trees.offsets[i]
        first_split, first_leaf = (a - i) // 2, trees.first_leaf[i]
        split, leaf = splits_of(trees, i), leaves_of(trees, i)
        end[0] = -1
        for s in range(split.size):
            v = split[s]
            above = -1 if kept[first_split + s] else end[v]
            if above < 0 and not kept[first_split + s]:
                # The first split not kept on the way down: its node is a leaf now.
                above = count
                node[count] = a + v
                tree[count] = i
                count += 1
            end[2 * s + 1] = above
            end[2 * s + 2] = above
        for rank in range(leaf.size):
            here = end[leaf[rank]]
            if here < 0:
                here = count
                node[count] = a + leaf[rank]
                tree[count] = i
                count += 1
            group[first_leaf + rank] = here
    return count


@kernel
def add_leaves(codes, trees, some, group, value, table, out):
    """Add A value to `out`, (n_outputs, m). `table` is scratch for the leaves of any tree."""
    for i in some:
        code, first = codes[i], trees.first_leaf[i]
        leaves = trees.first_leaf[i + 1] - first
        for o in range(out.shape[0]):
            row, values = out[o], value[o]
            for rank in range(leaves):
                table[rank] = values[group[first + rank]]
            for x in range(row.size):
                row[x] += table[code[x]]


@kernel
def sum_leaves(codes, trees, some, group, amount, table, out):
    """Add to out[o] the sums of amount[o], (n_outputs, m), over the rows in each leaf."""
    for i in some:
        code, first = codes[i], trees.first_leaf[i]
        leaves = trees.first_leaf[i + 1] - first
        for o in range(out.shape[0]):
            row, sums = amount[o], out[o]
            for rank in range(leaves):
                table[rank] = 0.0
            for x in range(row.size):
                table[code[x]] += row[x]
            for rank in range(leaves):
                sums[group[first + rank]] += table[rank]
