"""What cut trees add, row by row, through a table of what they add in each leaf."""

import numpy as np

from forestprune.kernels.jit import kernel
from forestprune.kernels.layers import write_adds
from forestprune.kernels.nodes import leaves_of, splits_of


@kernel
def fill_tables(steps, trees, depths, weights, first_leaf, table):
    """Write what some trees add for the rows in each of their leaves.

    Tree i, cut at depths[i] and times weights[i], owns table[first_leaf[i]:first_leaf[i + 1]].
    """
    for i in trees:
        leaf = leaves_of(steps, i)
        add = np.empty(steps.offsets[i + 1] - steps.offsets[i])
        for o in range(steps.step.shape[0]):
            write_adds(steps, i, o, (0, 0.0), (depths[i], weights[i]), add)
            for rank in range(leaf.size):
                table[first_leaf[i] + rank, o] = add[leaf[rank]]


@kernel
def fill_subtree_tables(trees, some, nodes, adds, weights, first_leaf, table):
    """Write what some trees add in each of their leaves if they keep `nodes`, which are rising.

    adds[o, j] is what nodes[j] adds if rows end there; the tree counts weights[i] times.
    """
    for i in some:
        a, b = trees.offsets[i], trees.offsets[i + 1]
        split, leaf = splits_of(trees, i), leaves_of(trees, i)
        place = np.full(b - a, -1)
        for j in range(np.searchsorted(nodes, a), np.searchsorted(nodes, b)):
            place[nodes[j] - a] = j
        for s in range(split.size):
            for c in range(2 * s + 1, 2 * s + 3):
                if place[c] < 0:
                    place[c] = place[split[s]]
        for rank in range(leaf.size):
            j = place[leaf[rank]]
            for o in range(adds.shape[0]):
                table[first_leaf[i] + rank, o] = weights[i] * adds[o, j] if j >= 0 else 0.0


@kernel
def fill_columns(codes, start, stop, trees, first_leaf, table, output, columns):
    """Write what trees[j] adds to one output for the rows start..stop into columns[:, j]."""
    for j in range(trees.size):
        code, first = codes[trees[j]], first_leaf[trees[j]]
        for x in range(start, stop):
            columns[x - start, j] = table[first + code[x], output]


@kernel
def replace_columns(codes, trees, first_leaf, old, new, out):
    """Let some trees add to every row of out, (n_outputs, m), what is in `new`, not in `old`.

    Then `old` is made the same as `new` for these trees.
    """
    for i in trees:
        code, first = codes[i], first_leaf[i]
        by = np.empty(first_leaf[i + 1] - first)
        for o in range(out.shape[0]):
            for leaf in range(by.size):
                by[leaf] = new[first + leaf, o] - old[first + leaf, o]
                old[first + leaf, o] = new[first + leaf, o]
            row = out[o]
            for x in range(row.size):
                row[x] += by[code[x]]
