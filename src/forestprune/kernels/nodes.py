"""Which nodes of a tree are splits and which are leaves: loops over either need not ask each node.

Asking costs a branch that cannot be foreseen; in trees of ten thousands of nodes that is most of
the time. Their numbers have no sign: of one that has, kernels ask each time whether it is negative.
"""

import numpy as np

from forestprune.kernels.jit import kernel

ONE = np.uint64(1)
"""For places that are counted down: kernels cannot tell otherwise that they are not negative."""


@kernel
def splits_of(steps, i):
    """Return the splits of tree i in level order; the children of the s-th are 2s + 1, 2s + 2."""
    return steps.split[(steps.offsets[i] - i) // 2 : (steps.offsets[i + 1] - i - 1) // 2]


@kernel
def leaves_of(steps, i):
    """Return the leaves of tree i in level order, so by their rank."""
    return steps.leaf[(steps.offsets[i] + i) // 2 : (steps.offsets[i + 1] + i + 1) // 2]


@kernel
def largest_tree(trees):
    """Return how many nodes the largest tree has, at least 1."""
    largest = 1
    for i in range(trees.offsets.size - 1):
        largest = max(largest, trees.offsets[i + 1] - trees.offsets[i])
    return largest


@kernel
def add_up_splits(split, sums):
    """Set sums[v] of the splits of a tree to that of their children, from the leaves up."""
    for k in range(split.size):
        s = np.uint64(split.size - 1 - k)
        left = s + s + ONE
        sums[split[s]] = sums[left] + sums[left + ONE]
