"""Where a tree's splits and leaves stand among those of all trees.

In level order the children of a tree's s-th split are its nodes 2s + 1 and 2s + 2, so a tree of n
nodes has (n - 1) / 2 splits and (n + 1) / 2 leaves, and the first of tree i is known from where
its nodes begin. Loops over either need not ask each node what it is, which would be a branch that
cannot be foreseen. Their numbers have no sign: of one that has, kernels ask each time whether it
is negative.
"""

import numpy as np

from forestprune.kernels.jit import inner

ONE = np.uint64(1)
"""For places that are counted down: kernels cannot tell otherwise that they are not negative."""


@inner
def first_split(offset, i):
    """Return where the splits of tree i, whose nodes begin at `offset`, begin."""
    return (offset - i) // 2


@inner
def first_leaf(offset, i):
    """Return where the leaves of tree i, whose nodes begin at `offset`, begin."""
    return (offset + i) // 2


@inner
def splits_of(trees, i):
    """Return the splits of tree i in level order; the children of the s-th are 2s + 1, 2s + 2."""
    a, b = trees.offsets[i], trees.offsets[i + 1]
    return trees.split[first_split(a, i) : first_split(b, i + 1)]


@inner
def leaves_of(trees, i):
    """Return the leaves of tree i in level order, so by their rank."""
    a, b = trees.offsets[i], trees.offsets[i + 1]
    return trees.leaf[first_leaf(a, i) : first_leaf(b, i + 1)]


@inner
def largest_tree(trees):
    """Return how many nodes the largest tree has, at least 1."""
    largest = 1
    for i in range(trees.offsets.size - 1):
        largest = max(largest, trees.offsets[i + 1] - trees.offsets[i])
    return largest


@inner
def add_up_splits(split, sums):
    """Set sums[v] of the splits of a tree to that of their children, from the leaves up."""
    for k in range(split.size):
        s = np.uint64(split.size - 1 - k)
        left = s + s + ONE
        sums[split[s]] = sums[left] + sums[left + ONE]
