"""What pruned trees add, row by row, through a table of what they add in each leaf."""

import numpy as np

from forestprune.kernels.jit import kernel


@kernel
def fill_columns(codes, start, stop, trees, first_leaf, table, output, columns):
    """Write what trees[j] adds to one output for the rows start..stop into columns[:, j]."""
    for j in range(trees.size):
        code, first = codes[trees[j]], first_leaf[trees[j]]
        for x in range(start, stop):
            columns[x - start, j] = table[first + code[x], output]


@kernel
def replace_columns(codes, trees, first_leaf, tree_output, old, new, out):
    """Let some trees add to every row of out, (n_outputs, m), what is in `new`, not in `old`.

    To all outputs, or if `tree_output` is not empty, to output tree_output[i] alone. Then `old` is
    made the same as `new` for these trees.
    """
    for i in trees:
        code, first = codes[i], first_leaf[i]
        by = np.empty(first_leaf[i + 1] - first)
        for o in range(old.shape[1]):
            for leaf in range(by.size):
                by[leaf] = new[first + leaf, o] - old[first + leaf, o]
                old[first + leaf, o] = new[first + leaf, o]
            row = out[tree_output[i]] if tree_output.size else out[o]
            for x in range(row.size):
                row[x] += by[code[x]]
