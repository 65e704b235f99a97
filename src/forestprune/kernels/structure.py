"""The shape of trees: sorting nodes, checking them, dropping some.

In level order the children of a tree's k-th split, counted from 0, are its nodes 2k + 1 and 2k + 2.
"""

import numpy as np

from forestprune.kernels.faults import (
    BAD_COVER,
    BAD_THRESHOLD,
    BAD_VALUE,
    CHILD_BEFORE_PARENT,
    NO_SUCH_CHILD,
    NO_SUCH_FEATURE,
    NO_SUCH_SET,
    NOBODYS_CHILD,
    NOT_LEVEL_ORDER,
    PARENT_DROPPED,
    ROOT_DROPPED,
    SIBLINGS_DIFFER,
    SOUND,
)
from forestprune.kernels.jit import kernel


@kernel
def level_order(left, right, order):
    """Fill `order` with the nodes met from node 0, level by level; return how many there are.

    left, right are negative at a leaf. Returns -1 if more nodes are met than there are: then some
    node has two parents, or is its own ancestor.
    """
    order[0] = 0
    met = 1
    k = 0
    while k < met:
        v = order[k]
        if left[v] >= 0:
            if met + 2 > order.size:
                return -1
            order[met] = left[v]
            order[met + 1] = right[v]
            met += 2
        k += 1
    return met


@kernel
def first_fault(splits, n_features, value, cover):
    """Return what is wrong with a forest and at which node; (SOUND, -1) if nothing is.

    Other kernels index by what is checked here without looking again.
    """
    n_sets = splits.set_offsets.size - 1
    for i in range(splits.offsets.size - 1):
        a, b = splits.offsets[i], splits.offsets[i + 1]
        n_splits = 0
        for v in range(a, b):
            left, feature = splits.left[v], splits.feature[v]
            category_set = splits.category_set[v] if splits.category_set.size else -1
            if left < -1 or left + 1 >= b - a:
                return NO_SUCH_CHILD, v
            if left >= 0:
                if left <= v - a:
                    return CHILD_BEFORE_PARENT, v
                if left != 2 * n_splits + 1:
                    return NOT_LEVEL_ORDER, v
                n_splits += 1
                if feature < 0 or feature >= n_features:
                    return NO_SUCH_FEATURE, v
                if category_set < -1 or category_set >= n_sets:
                    return NO_SUCH_SET, v
            else:
                if feature != -1:
                    return NO_SUCH_FEATURE, v
                if category_set != -1:
                    return NO_SUCH_SET, v
            if not np.isfinite(splits.threshold[v]):
                return BAD_THRESHOLD, v
            if not (np.isfinite(cover[v]) and cover[v] >= 0.0):
                return BAD_COVER, v
            for k in range(value.shape[1]):
                if not np.isfinite(value[v, k]):
                    return BAD_VALUE, v
        if 2 * n_splits + 1 != b - a:
            return NOBODYS_CHILD, a + 2 * n_splits + 1
    return SOUND, -1


@kernel
def keep_nodes(offsets, left, mask, new_offsets, kept, new_left):
    """Write which nodes `mask` keeps into `kept`, and the shape of the forest they make.

    Returns what is wrong with the mask and at which node; (SOUND, -1) if nothing is.
    """
    n = 0
    for i in range(offsets.size - 1):
        a = offsets[i]
        new_offsets[i] = n
        if not mask[a]:
            return ROOT_DROPPED, a
        n_splits = 0
        for v in range(a, offsets[i + 1]):
            child = a + left[v]
            is_split = left[v] >= 0 and mask[child]
            if left[v] >= 0 and mask[child] != mask[child + 1]:
                return SIBLINGS_DIFFER, v
            if is_split and not mask[v]:
                return PARENT_DROPPED, v
            if mask[v]:
                kept[n] = v
                new_left[n] = 2 * n_splits + 1 if is_split else -1
                n_splits += 1 if is_split else 0
                n += 1
    new_offsets[-1] = n
    return SOUND, -1
