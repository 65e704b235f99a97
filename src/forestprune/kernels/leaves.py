"""The leaves of pruned trees: which nodes they are, and what rows are in them.

As columns of a matrix A they are 1 where a row is in the leaf, else 0. That matrix is never built.
"""

from forestprune.kernels.jit import inner, kernel
from forestprune.kernels.nodes import first_leaf, first_split, leaves_of, splits_of


@inner
def number_leaves(trees, kept, i, leaves, leaf_of, node_leaf):
    """Give numbers to the leaves of tree i if it keeps the splits `kept`; return how many.

    Writes their nodes into `leaves`, rising, and into leaf_of[rank] the number of the one that the
    rows of an unpruned leaf are in. A lone root is no leaf. `node_leaf` is scratch for its nodes.
    """
    split, leaf = splits_of(trees, i), leaves_of(trees, i)
    here = kept[first_split(trees.offsets[i], i) :]
    # First whether a node is split, then in which leaf it lies.
    for rank in range(leaf.size):
        node_leaf[leaf[rank]] = 0
    for s in range(split.size):
        node_leaf[split[s]] = 1 if here[s] else 0
    count = 0
    node_leaf[0] = 0
    for s in range(split.size):
        above = node_leaf[split[s]]
        for c in range(2 * s + 1, 2 * s + 3):
            if here[s] and not node_leaf[c]:
                leaves[count] = c
                node_leaf[c] = count
                count += 1
            else:
                node_leaf[c] = above
    for rank in range(leaf.size):
        leaf_of[rank] = node_leaf[leaf[rank]]
    return count


@kernel
def number_all_leaves(trees, some, kept, scratch, leaves, n_leaves, leaf_of):
    """Give numbers to the leaves of some trees, each from where its unpruned leaves begin."""
    for i in some:
        first, last = first_leaf(trees.offsets[i], i), first_leaf(trees.offsets[i + 1], i + 1)
        n_leaves[i] = number_leaves(
            trees, kept, i, leaves[first:last], leaf_of[first:last], scratch
        )


@kernel
def add_leaves(codes, some, first, last, group, value, table, out):
    """Add A value to `out`, (n_outputs, m).

    Tree some[j] has the leaves first[j]..last[j] of the unpruned trees, and group[l] is the column
    of the rows in leaf l. `table` is scratch for the leaves of any tree.
    """
    for j in range(some.size):
        code, columns = codes[some[j]], group[first[j] : last[j]]
        for o in range(out.shape[0]):
            row, values = out[o], value[o]
            for rank in range(columns.size):
                table[rank] = values[columns[rank]]
            for x in range(row.size):
                row[x] += table[code[x]]


@kernel
def sum_leaves(codes, some, first, last, group, amount, table, out):
    """Add to out[o] the sums of amount[o], (n_outputs, m), over the rows in each column of A."""
    for j in range(some.size):
        code, columns = codes[some[j]], group[first[j] : last[j]]
        for o in range(out.shape[0]):
            row, sums = amount[o], out[o]
            for rank in range(columns.size):
                table[rank] = 0.0
            for x in range(row.size):
                table[code[x]] += row[x]
            for rank in range(columns.size):
                sums[columns[rank]] += table[rank]


@kernel
def share_leaves(codes, some, first, last, group, row_weight, column, out):
    """Add to `out` the weight of the rows that each two columns of A share: A' diag(weight) A.

    `column` is scratch: for each row its column in one tree.
    """
    for j in range(some.size):
        code, columns = codes[some[j]], group[first[j] : last[j]]
        for x in range(column.size):
            column[x] = columns[code[x]]
            out[column[x], column[x]] += row_weight[x]
        for k in range(j):  # a row is in one leaf of each tree
            other, others = codes[some[k]], group[first[k] : last[k]]
            for x in range(column.size):
                out[column[x], others[other[x]]] += row_weight[x]
        for rank in range(columns.size):
            c = columns[rank]
            for b in range(c):
                out[b, c] = out[c, b]
