"""Sending rows down trees.

A row goes left at a numeric split if `x <= threshold`, at a categorical split if its category is in
the node's set, and at either by `missing_left` if x is NaN. Node numbers are local to a tree, and
the right child always stands directly behind the left one.

Two walks give the same answer. `_walk` follows one row after the other straight through the
forest's arrays: it handles everything, and is the faster one for few rows. `_walk_packed` first
gathers what a step needs into 16 bytes a node, so that one step touches one cache line, and moves
a block of rows forward together, one layer at a time, so that the memory latency of one row is
hidden behind the others.
"""

import numpy as np

from forestprune.kernels.jit import inner, kernel
from forestprune.kernels.records import Splits

BLOCK = 512
"""Rows that move together: their state stays in the first-level cache."""

PACKED_NODE = np.dtype([("threshold", "f8"), ("left", "i4"), ("split", "u4")])
"""One node: left is negative at a leaf; split holds 2 * feature + (1 if NaN goes right)."""


@inner
def _in_set(x, words):
    """Tell whether category x has its bit set in `words`."""
    # Compared as float first: casting a huge or infinite float to an integer is undefined.
    if not (0.0 <= x < 32.0 * words.size):
        return False
    category = np.int64(x)
    return (words[category >> 5] >> np.uint32(category & 31)) & np.uint32(1) == np.uint32(1)


@inner
def _walk(X, start, tree, reached):
    """Write the leaf that row start + j reaches into reached[j]; one row at a time."""
    for j in range(reached.size):
        v = 0
        while tree.left[v] >= 0:
            x = X[start + j, tree.feature[v]]
            if np.isnan(x):
                goes_left = tree.missing_left[v]
            elif tree.category_set.size and tree.category_set[v] >= 0:
                s = tree.category_set[v]
                words = tree.set_words[tree.set_offsets[s] : tree.set_offsets[s + 1]]
                goes_left = _in_set(x, words)
            else:
                goes_left = x <= tree.threshold[v]
            v = tree.left[v] if goes_left else tree.left[v] + 1
        reached[j] = v


@inner
def _pack(tree):
    """Gather what a step through `tree` needs, node by node."""
    nodes = np.empty(tree.left.size, PACKED_NODE)
    for v in range(nodes.size):
        nodes[v]["threshold"] = tree.threshold[v]
        nodes[v]["left"] = tree.left[v]
        nodes[v]["split"] = 2 * max(tree.feature[v], 0) + (0 if tree.missing_left[v] else 1)
    return nodes


@inner
def _step(X, row, node):
    """Return the child of `node` that `row` goes to, without a branch."""
    one = np.uint32(1)
    x = X[row, node["split"] >> one]
    right = (x > node["threshold"]) | ((x != x) & ((node["split"] & one) == one))
    return node["left"] + np.int32(right)


@inner
def _walk_packed(X, start, nodes, reached):
    """Write the leaf that row start + j reaches into reached[j]; a block of rows at a time.

    Above the first leaf all rows step together. From there on active[:k] are the rows still on
    their way and at[:k] their nodes; a row that has arrived is overwritten by the next one that
    has not. No branch depends on the data, so the processor has nothing to guess.
    """
    first_leaf = 0
    while nodes[first_leaf]["left"] >= 0:
        first_leaf += 1
    steps = 0
    while (2 << steps) - 1 <= first_leaf:
        steps += 1
    active = np.empty(BLOCK, np.int32)
    at = np.empty(BLOCK, np.int32)
    # Unsigned indices spare the check for negative ones.
    for block in range(0, reached.size, BLOCK):
        rows = min(BLOCK, reached.size - block)
        first = np.uint32(start + block)
        at[:rows] = 0
        for _ in range(steps):
            for j in range(rows):
                at[j] = _step(X, first + np.uint32(j), nodes[np.uint32(at[j])])
        k = 0
        for j in range(rows):
            child = at[j]
            reached[block + j] = child
            active[k] = j
            at[k] = child
            k += np.int32(nodes[np.uint32(child)]["left"] >= 0)
        while k > 0:
            still = 0
            for j in range(k):
                row = np.uint32(active[j])
                child = _step(X, first + row, nodes[np.uint32(at[j])])
                reached[block + row] = child
                active[still] = row
                at[still] = child
                still += np.int32(nodes[np.uint32(child)]["left"] >= 0)
            k = still


@inner
def _route(X, start, splits, i, reached):
    """Send the rows from `start` on, one for each entry of `reached`, down tree i."""
    a, b = splits.offsets[i], splits.offsets[i + 1]
    categorical = splits.category_set.size > 0
    tree = Splits(
        splits.offsets,
        splits.left[a:b],
        splits.feature[a:b],
        splits.threshold[a:b],
        splits.missing_left[a:b],
        splits.category_set[a:b] if categorical else splits.category_set,
        splits.set_offsets,
        splits.set_words,
    )
    # Packing reads every node once, so it pays when the rows visit many of them.
    if categorical or 4 * reached.size < b - a:
        _walk(X, start, tree, reached)
    else:
        _walk_packed(X, start, _pack(tree), reached)


@kernel
def encode_trees(X, first, last, start, stop, splits, codes):
    """Write codes[i, x] for trees first..last and rows start..stop.

    The code of a row is the rank, among the leaves of the tree in level order, of the leaf that it
    reaches.
    """
    reached = np.empty(stop - start, np.int32)
    for i in range(first, last):
        _route(X, start, splits, i, reached)
        a, b = splits.offsets[i], splits.offsets[i + 1]
        rank = np.empty(b - a, np.int32)
        leaves = 0
        for v in range(b - a):
            rank[v] = leaves
            leaves += 1 if splits.left[a + v] < 0 else 0
        for j in range(reached.size):
            codes[i, start + j] = rank[reached[j]]


@kernel
def predict_rows(X, start, stop, splits, value, scale, tree_output, out):
    """Add scale[i] * value[leaf of x in tree i] to out[x], for rows start..stop and all trees.

    To all outputs, or if `tree_output` is not empty, to output tree_output[i] alone.
    """
    reached = np.empty(stop - start, np.int32)
    for i in range(splits.offsets.size - 1):
        _route(X, start, splits, i, reached)
        a = splits.offsets[i]
        if tree_output.size:
            k = tree_output[i]
            for j in range(reached.size):
                out[start + j, k] += scale[i] * value[a + reached[j], 0]
        else:
            for j in range(reached.size):
                for k in range(value.shape[1]):
                    out[start + j, k] += scale[i] * value[a + reached[j], k]
