"""Rows in trees whose splits change: which leaf they reach, and what they would lose elsewhere.

Splits say of each bin of their column whether it goes left: goes_left[split_of[v]] at node v. The
right child stands behind the left one, and leaves have left[v] = -1.
"""

from forestprune.kernels.jit import inner, kernel


@inner
def _reached(bins, left, feature, goes_left, v, row):
    """Return the leaf that a row reaches from node v."""
    while left[v] >= 0:
        v = left[v] if goes_left[v, bins[feature[v], row]] else left[v] + 1
    return v


@kernel
def reach_leaves(bins, rows, left, feature, goes_left, node, leaf):
    """Write into leaf[row] the leaf that each of some rows reaches from a node."""
    for j in range(rows.size):
        leaf[rows[j]] = _reached(bins, left, feature, goes_left, node, rows[j])


@kernel
def fall_at_leaves(bins, rows, left, feature, goes_left, node, value, asked, weight, fall):
    """Add to fall[j] by how much the loss falls if rows[j] gets what it would get below a node.

    What rows ask for, (n_outputs, n), and weigh is in the order of `rows`; value is (n_outputs,
    n_nodes).
    """
    for j in range(rows.size):
        v = _reached(bins, left, feature, goes_left, node, rows[j])
        for k in range(value.shape[0]):
            f = value[k, v]
            fall[j] += f * (asked[k, j] - 0.5 * weight[j] * f)


@kernel
def order_rows(leaf, rank, begin, rows, spare):
    """Sort `rows` by the rank of the leaf that they are in, each leaf's in the order they are in.

    Those of rank r come to stand from begin[r] on, which is moved to where they end.
    """
    for j in range(rows.size):
        spare[j] = rows[j]
    for j in range(rows.size):
        r = rank[leaf[spare[j]]]
        rows[begin[r]] = spare[j]
        begin[r] += 1
