"""The paper's depth-difference matrices, for study and for tests. The solver never builds them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestprune.forest.forest import Forest
from forestprune.rows.encoding import encode


def depth_difference(forest: Forest, X: Any) -> NDArray[np.float64]:
    """Return the depth-difference matrix of each tree (Algorithm 1 of the paper).

    Entry ``[i, x, k]`` is the step that tree i's value makes as row x goes from layer k - 1 to
    layer k, and 0 once the row has reached its leaf; entry ``[i, x, 0]`` is the value of the root.
    So a row sums to the tree's prediction, without the tree's scale, and its first k + 1 entries
    to the prediction of the tree cut at depth k.

    Parameters
    ----------
    forest : Forest
    X : array-like of shape (m, n_features)

    Returns
    -------
    array of shape (n_trees, m, max_depth + 1)
        With several outputs, one more axis of length n_outputs. This takes `8 * max_depth` times
        the memory of the codes that the solver works on, or more.
    """
    forest.require_joint_outputs("depth_difference()")
    codes = encode(forest, X).codes
    outputs = forest.n_outputs
    result = np.zeros((*codes.shape, forest.max_depth + 1, outputs))
    depths, parents = forest.node_depths, forest.parent
    for i, (start, end) in enumerate(pairwise(forest.offsets)):
        depth, parent, value = depths[start:end], parents[start:end], forest.value[start:end]
        step = value - np.where(parent[:, None] >= 0, value[parent], 0.0)
        leaves = np.flatnonzero(forest.left[start:end] < 0)
        steps_to_leaf = np.zeros((leaves.size, forest.max_depth + 1, outputs))
        # Climb from all leaves at once; those that have arrived above the root stay at -1.
        node = leaves.astype(np.int64)
        while (climbing := np.flatnonzero(node >= 0)).size:
            at = node[climbing]
            steps_to_leaf[climbing, depth[at]] = step[at]
            node[climbing] = parent[at]
        result[i] = steps_to_leaf[codes[i]]
    return result[..., 0] if outputs == 1 else result
