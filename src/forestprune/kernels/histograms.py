"""What rows of a node ask for, added up by the bins of their features.

`sums` has a row for each bin of each feature, those of feature f from first[f] on: what is asked
for of each output, and in its last column the weight. Rows of a node stand together, and what they
ask for in the same order, so that only bins are read from far apart.
"""

from forestprune.kernels.jit import kernel


@kernel
def add_up_bins(columns, first, bins, rows, asked, weight, sums):
    """Add up, for some columns, what `rows` ask for, (n_outputs, n), and weigh, (n,)."""
    outputs = asked.shape[0]
    for f in columns:
        base, column = first[f], bins[f]
        for b in range(base, first[f + 1]):
            for k in range(outputs + 1):
                sums[b, k] = 0.0
        if outputs == 1:
            only = asked[0]
            for j in range(rows.size):
                b = base + column[rows[j]]
                sums[b, 0] += only[j]
                sums[b, 1] += weight[j]
        else:
            for j in range(rows.size):
                b = base + column[rows[j]]
                for k in range(outputs):
                    sums[b, k] += asked[k, j]
                sums[b, outputs] += weight[j]


@kernel
def total_of_rows(asked, weight, total):
    """Write what rows ask for, (n_outputs, n), and last what they weigh, in sum."""
    outputs = asked.shape[0]
    for k in range(outputs):
        here = 0.0
        for j in range(weight.size):
            here += asked[k, j]
        total[k] = here
    here = 0.0
    for j in range(weight.size):
        here += weight[j]
    total[outputs] = here


@kernel
def take_from_bins(columns, first, part, whole):
    """Take the sums of one child from those of its parent: what is left is the other child's."""
    for f in columns:
        for b in range(first[f], first[f + 1]):
            for k in range(whole.shape[1]):
                whole[b, k] -= part[b, k]


@kernel
def part_rows(column, goes_left, rows, asked, weight, spare_rows, spare):
    """Bring rows that go left before the others, each in their order; return how many do.

    `spare` is scratch for what rows ask for and weigh, (n_outputs + 1, n), and `spare_rows` for
    the rows.
    """
    outputs, lefts = asked.shape[0], 0
    for j in range(rows.size):
        lefts += 1 if goes_left[column[rows[j]]] else 0
    left, right = 0, lefts
    for j in range(rows.size):
        to = right
        if goes_left[column[rows[j]]]:
            to = left
            left += 1
        else:
            right += 1
        spare_rows[to] = rows[j]
        for k in range(outputs):
            spare[k, to] = asked[k, j]
        spare[outputs, to] = weight[j]
    for j in range(rows.size):
        rows[j] = spare_rows[j]
        weight[j] = spare[outputs, j]
        for k in range(outputs):
            asked[k, j] = spare[k, j]
    return lefts
