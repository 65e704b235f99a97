"""Adding up over the nodes of trees.

Node numbers are local to a tree and in level order: children stand behind their parent, the right
one directly behind the left one, so a backward loop meets children first.
"""

import numpy as np

from forestprune.kernels.jit import kernel


@kernel
def add_up_rows(codes, amounts, first, last, offsets, left, sums):
    """Write into sums[v] the total of `amounts` over the rows that pass node v, trees first..last.

    codes[i, x] is the rank of row x's leaf among the leaves of tree i. One pass over the rows fills
    the leaves, one backward pass over the nodes their ancestors.
    """
    for i in range(first, last):
        a, b = offsets[i], offsets[i + 1]
        rank = (b - a + 1) // 2
        in_leaf = np.zeros(rank)
        for x in range(amounts.size):
            in_leaf[codes[i, x]] += amounts[x]
        for v in range(b - 1, a - 1, -1):
            if left[v] < 0:
                rank -= 1
                sums[v] = in_leaf[rank]
            else:
                sums[v] = sums[a + left[v]] + sums[a + left[v] + 1]


@kernel
def average_up(left, cover, value):
    """Set each split's value to its children's, weighted by cover (equally where there is none)."""
    for v in range(left.size - 1, -1, -1):
        c = left[v]
        if c >= 0:
            total = cover[c] + cover[c + 1]
            share = cover[c] / total if total > 0 else 0.5
            for k in range(value.shape[1]):
                value[v, k] = share * value[c, k] + (1.0 - share) * value[c + 1, k]


@kernel
def subtract(by, code, row_weight, residual):
    """Take by[code[x]] from each row of a residual that is kept times the rows' weights."""
    if row_weight.size:
        for x in range(residual.size):
            residual[x] -= row_weight[x] * by[code[x]]
    else:
        for x in range(residual.size):
            residual[x] -= by[code[x]]
