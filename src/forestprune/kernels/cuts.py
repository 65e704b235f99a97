"""The arrays that cutting trees reads and writes together."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Steps(NamedTuple):
    """What never changes while the trees are cut: tree i owns offsets[i]..offsets[i + 1]."""

    offsets: NDArray[np.int64]
    split: NDArray[np.uint32]  # which nodes of their tree the splits are: see nodes.py
    leaf: NDArray[np.uint32]  # and the leaves
    step: NDArray[np.float64]  # (n_outputs, n_nodes)
    weight: NDArray[np.float64]  # of the rows that pass the node
    bounds: NDArray[np.int64]  # where layers begin, counted from the tree's root
    first_bound: NDArray[np.int64]  # tree i owns bounds[first_bound[i]:first_bound[i + 1]]
    square: NDArray[np.float64]  # (n_trees, max_depth + 1): q_k . q_k
    reach: NDArray[np.float64]  # (n_trees, max_depth + 1): |q_k - q_j| <= |reach_k - reach_j|
    share: NDArray[np.float64]  # (n_trees, n_directions, n_layers): the sketch; see sketch.py
    rest: NDArray[np.float64]  # (n_trees, max_depth + 1): reach of what the sketch leaves out


class Cut(NamedTuple):
    """How the trees are cut now, and what is known of how they could be."""

    residual: NDArray[np.float64]  # (n_outputs, m), times the rows' weights
    depth: NDArray[np.int64]  # (n_trees,)
    weight: NDArray[np.float64]  # (n_trees,): beta
    own: NDArray[np.float64]  # (n_trees, max_depth + 1): q_k . what the tree adds now
    correlation: NDArray[np.float64]  # (n_trees, max_depth + 1): q_k . r when last looked at
    moved: NDArray[np.float64]  # (2,): how far the residual has moved, and its rest, step by step
    drift: NDArray[np.float64]  # (n_directions,): where its sketch is now
    moved_then: NDArray[np.float64]  # (n_trees, 2): when last looked at
    drift_then: NDArray[np.float64]  # (n_trees, n_directions)


class Price(NamedTuple):
    """What choices cost, times the target's total variation."""

    penalty: NDArray[np.float64]  # (n_trees, max_depth + 1)
    ridge: NDArray[np.float64]  # (n_trees,): of the square of the tree's weight
    free: bool  # whether the weight is chosen too, or stays 1
    least: float  # a change must gain more than this


class Trees(NamedTuple):
    """What never changes while subtrees are chosen: tree i owns offsets[i]..offsets[i + 1]."""

    offsets: NDArray[np.int64]
    split: NDArray[np.uint32]  # which nodes of their tree the splits are: see nodes.py
    leaf: NDArray[np.uint32]  # and the leaves
    first_leaf: NDArray[np.int64]  # tree i owns the leaves first_leaf[i]..first_leaf[i + 1]
    origin: NDArray[np.float64]  # (n_outputs, n_nodes): what each node adds in the original
    weight: NDArray[np.float64]  # of the rows that pass the node


class Pruning(NamedTuple):
    """Which splits are kept now, and what is known of the trees that keep none."""

    residual: NDArray[np.float64]  # (n_outputs, m), times the rows' weights
    value: NDArray[np.float64]  # (n_outputs, n_nodes): what nodes add, of those where rows end
    ends: NDArray[np.uint32]  # (n_leaves,): from first_leaf[i] on, the n_ends[i] nodes they end in
    n_ends: NDArray[np.int64]  # (n_trees,)
    end: NDArray[np.uint32]  # (n_leaves,): in which of them the rows of each leaf end
    column: NDArray[np.unsignedinteger]  # (n_trees, m): in which of them each row ends; if refitted
    kept: NDArray[np.bool_]  # (n_splits,)
    depth: NDArray[np.int64]  # (n_trees,)
    cost: NDArray[np.float64]  # (n_trees,): of what is kept
    off: NDArray[np.float64]  # (n_trees,): squared distance of the leaves' values from the original
    moved: NDArray[np.float64]  # (1,): how far the residual has moved, step by step
    moved_then: NDArray[np.float64]  # (n_trees,): when the tree was last looked at
    slack: NDArray[np.float64]  # (n_trees,): how far it may move from then on
    lowest_alpha: NDArray[np.float64]  # (n_trees,): down to which alpha


class SplitPrice(NamedTuple):
    """What prunings cost, times the target's total variation."""

    cost: NDArray[np.float64]  # (n_splits,): of both children together, at alpha = 1
    alpha: float  # times the variation
    shrinkage: float  # 0 if values are not refitted
    refit: bool
    least: float  # a change must gain more than this


class Overlaps(NamedTuple):
    """How many rows leaves of pruned trees share: see overlaps.py."""

    weight: NDArray[np.float64]  # (n_slots, n_slots): of the rows that two slots share
    node: NDArray[np.int64]  # (n_slots,): the forest's node that a slot belongs to; -1 if none
    slot_of: NDArray[np.int32]  # (n_nodes,): one more than the node's slot; 0 if it has none
