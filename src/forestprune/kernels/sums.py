"""Adding up over the nodes of trees.

Node numbers are local to a tree and in level order: children stand behind their parent, the right
one directly behind the left one, so a backward loop meets children first.
"""

import numpy as np

from forestprune.kernels.jit import inner, kernel

FEW = 256
"""Up to how many totals `sum_by` keeps four of each: they must stay in the nearest cache."""


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
def add_up_children(left, offsets, sums):
    """Set the sums of each split to those of its children; `left` counts from its tree's root."""
    for i in range(offsets.size - 1):
        a = offsets[i]
        for v in range(offsets[i + 1] - 1, a - 1, -1):
            c = a + left[v]
            for o in range(sums.shape[0] if left[v] >= 0 else 0):
                sums[o, v] = sums[o, c] + sums[o, c + 1]


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


@inner
def sum_by(code, amount, sums, spare):
    """Write into sums[j] the total of `amount` over the rows with code j.

    Rows that follow each other often share a code if there are few; an addition would then wait for
    the one before. So they take turns between four totals: `spare` is scratch, (3, at least FEW).
    """
    few = sums.size <= FEW
    for j in range(sums.size):
        sums[j] = 0.0
    begin = 0
    if few:
        second, third, fourth = spare[0], spare[1], spare[2]
        for j in range(sums.size):
            second[j] = 0.0
            third[j] = 0.0
            fourth[j] = 0.0
        begin = amount.size // 4 * 4
        for x in range(0, begin, 4):
            sums[code[x]] += amount[x]
            second[code[x + 1]] += amount[x + 1]
            third[code[x + 2]] += amount[x + 2]
            fourth[code[x + 3]] += amount[x + 3]
    for x in range(begin, amount.size):
        sums[code[x]] += amount[x]
    if few:
        for j in range(sums.size):
            sums[j] += second[j] + third[j] + fourth[j]


@inner
def subtract(by, code, row_weight, residual):
    """Take by[code[x]] from each row of a residual that is kept times the rows' weights."""
    if row_weight.size:
        for x in range(residual.size):
            residual[x] -= row_weight[x] * by[code[x]]
    else:
        for x in range(residual.size):
            residual[x] -= by[code[x]]
