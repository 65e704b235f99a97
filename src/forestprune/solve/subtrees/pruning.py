"""What the subtree rule's kernels write to, before anything is kept."""

import numpy as np
from numpy.typing import NDArray

from forestprune.kernels.records import Pruning, Trees


def nothing_pruned(
    trees: Trees,
    codes: NDArray[np.unsignedinteger],
    residual: NDArray[np.float64],
    *,
    refits: bool,
) -> Pruning:
    """Return the state in which no tree keeps anything; `residual` is changed from now on."""
    n_trees, n_leaves = trees.offsets.size - 1, trees.leaf.size
    return Pruning(
        residual=residual,
        value=np.zeros(trees.origin.shape),
        leaves=np.zeros(n_leaves, np.uint32),
        n_leaves=np.zeros(n_trees, np.int64),
        leaf_of=np.zeros(n_leaves, np.uint32),
        # Pages that no tree writes to are never there; zeros_like would write to all.
        row_leaf=np.zeros(codes.shape if refits else (n_trees, 0), codes.dtype),
        kept=np.zeros(trees.split.size, np.bool_),
        depth=np.zeros(n_trees, np.int64),
        cost=np.zeros(n_trees),
        shift=np.zeros(n_trees),
        stretch=np.tile([1.0, 0.0], (n_trees, trees.origin.shape[0], 1)),
        moved=np.zeros(1),
        absent_until=np.zeros(n_trees),
        absent_down_to=np.full(n_trees, np.inf),
    )
