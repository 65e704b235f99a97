"""The arrays that kernels read and write together.

Tree i owns the nodes offsets[i]..offsets[i + 1]. Nodes, splits and leaves of a tree are counted
from its root, in level order: see nodes.py.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Splits(NamedTuple):
    """What routing reads of a forest."""

    offsets: NDArray[np.int64]
    left: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    missing_left: NDArray[np.bool_]
    category_set: NDArray[np.int32]  # the node's set, or -1; empty if no split is categorical
    set_offsets: NDArray[np.int64]
    set_words: NDArray[np.uint32]  # 32 categories a word


class Trees(NamedTuple):
    """What never changes while subtrees are chosen."""

    offsets: NDArray[np.int64]
    split: NDArray[np.uint32]  # which nodes of their tree the splits are
    leaf: NDArray[np.uint32]  # and the leaves
    origin: NDArray[np.float64]  # (n_outputs, n_nodes): value less the root's, times the scale
    weight: NDArray[np.float64]  # of the rows that pass the node
    low: NDArray[np.float64]  # (n_outputs, n_nodes): what a node must add at least, and at most;
    high: NDArray[np.float64]  # (n_outputs, 0) if it may add anything
    own: NDArray[np.float64]  # (n_nodes,): weight of the rows that are there, if these stand for
    excess: NDArray[np.float64]  # others too, and (n_outputs, n_nodes): what those sum up to beyond
    # them; (0,) and (n_outputs, 0) if all rows are there: see correction.py in solve/


class Pruning(NamedTuple):
    """Which splits are kept now, and what is known of the trees that keep none."""

    residual: NDArray[np.float64]  # (n_outputs, m), times the rows' weights
    value: NDArray[np.float64]  # (n_outputs, n_nodes): of those nodes that are leaves now
    leaves: NDArray[
        np.uint32
    ]  # (n_leaves,): which nodes; tree i has n_leaves[i], from its first on
    n_leaves: NDArray[np.int64]  # (n_trees,): 0 if the tree is absent
    leaf_of: NDArray[np.uint32]  # (n_leaves,): in which of them the rows of an unpruned leaf are
    row_leaf: NDArray[np.unsignedinteger]  # (n_trees, m): in which of them a row is; if refitted
    kept: NDArray[np.bool_]  # (n_splits,)
    depth: NDArray[np.int64]  # (n_trees,)
    cost: NDArray[np.float64]  # (n_trees,): of what is kept
    shift: NDArray[np.float64]  # (n_trees,): squared distance of leaf values from the original
    stretch: NDArray[np.float64]  # (n_trees, n_outputs, 2): of the intervals: see constraints.py
    moved: NDArray[np.float64]  # (1,): length of all moves of the residual so far
    absent_until: NDArray[np.float64]  # (n_trees,): the tree stays absent while moves are shorter
    absent_down_to: NDArray[np.float64]  # (n_trees,): and alpha is not lower


class Price(NamedTuple):
    """What prunings cost, times the target's total variation."""

    cost: NDArray[np.float64]  # (n_splits,): of both children together, at alpha = 1
    alpha: float  # times the variation
    shrinkage: float  # 0 if values are not refitted
    refit: bool
    min_gain: float  # a change must gain more than this
    centre: NDArray[np.float64]  # (n_outputs,): the intercept, if leaves must be distributions
    most_trees: int  # as many as may then be kept; see distributions.py


class Overlaps(NamedTuple):
    """How many rows leaves of pruned trees share: see overlaps.py."""

    weight: NDArray[np.float64]  # (n_slots, n_slots): of the rows that two slots share
    node: NDArray[np.int64]  # (n_slots,): the forest's node that a slot belongs to; -1 if none
    slot_of: NDArray[np.int32]  # (n_nodes,): one more than the node's slot; 0 if it has none


MOST_LEVELS = 10
"""Up to how many levels of a symmetric tree all choices are tried."""

MOST_CONSTRAINED = 8
"""The same for trees with constraints, where each choice takes an isotonic regression."""


class SymmetricTrees(NamedTuple):
    """What never changes while levels are chosen. Levels are bits, the last one lowest."""

    first: NDArray[np.int64]  # tree i has the leaves first[i]..first[i + 1], as codes count them
    depth: NDArray[np.int64]  # (n_trees,)
    origin: NDArray[np.float64]  # (n_outputs, n_leaves): value less the root's, times the scale
    cover: NDArray[np.float64]  # (n_leaves,): weight of the training rows
    weight: NDArray[np.float64]  # (n_leaves,): of the rows to prune with
    rising: NDArray[np.int64]  # (n_trees,): levels whose right side must not be below the left one
    falling: NDArray[np.int64]  # (n_trees,): or not above it


class Cells(NamedTuple):
    """The cells of all choices of levels, numbered by digits: see oblivious.py."""

    step: NDArray[np.int64]
    leaf: NDArray[np.int64]
    dropped: NDArray[np.int64]


class LevelCut(NamedTuple):
    """Which levels are kept now, and what is known of the trees that keep none."""

    residual: NDArray[np.float64]  # (n_outputs, m), times the rows' weights
    levels: NDArray[np.int64]  # (n_trees,)
    cell: NDArray[np.uint32]  # (n_leaves,): in which cell the rows of a leaf are
    value: NDArray[np.float64]  # (n_outputs, n_leaves): of tree i's cells, from first[i] on
    cost: NDArray[np.float64]  # (n_trees,): of what is kept
    shift: NDArray[np.float64]  # (n_trees,): squared distance of values from the original
    moved: NDArray[np.float64]  # (1,): length of all moves of the residual so far
    absent_until: NDArray[np.float64]  # (n_trees,): the tree stays absent while moves are shorter
    absent_down_to: NDArray[np.float64]  # (n_trees,): and alpha is not lower


class LevelPrice(NamedTuple):
    """What levels cost, times the target's total variation."""

    cost: NDArray[np.float64]  # (n_trees, max_depth + 1): of so many levels, at alpha = 1
    alpha: float  # times the variation
    shrinkage: float  # 0 if values are not refitted
    refit: bool
    min_gain: float  # a change must gain more than this


class Layers(NamedTuple):
    """What never changes while trees are cut at depths."""

    offsets: NDArray[np.int64]
    split: NDArray[np.uint32]
    leaf: NDArray[np.uint32]
    step: NDArray[np.float64]  # (n_outputs, n_nodes): value less the parent's, times the scale
    weight: NDArray[np.float64]  # of the rows that pass the node
    bounds: NDArray[np.int64]  # where layers begin, counted from the tree's root
    first_bound: NDArray[np.int64]  # tree i owns bounds[first_bound[i]:first_bound[i + 1]]
    square: NDArray[np.float64]  # (n_trees, max_depth + 1): q_k . q_k
    reach: NDArray[np.float64]  # (n_trees, max_depth + 1): |q_k - q_j| <= |reach_k - reach_j|
    share: NDArray[np.float64]  # (n_trees, n_directions, n_layers): the sketch; see sketch.py
    rest: NDArray[np.float64]  # (n_trees, max_depth + 1): reach of what the sketch leaves out


class Cut(NamedTuple):
    """At which depths the trees are cut now, and what is known of other depths."""

    residual: NDArray[np.float64]  # (n_outputs, m), times the rows' weights
    depth: NDArray[np.int64]  # (n_trees,)
    weight: NDArray[np.float64]  # (n_trees,): beta
    own: NDArray[np.float64]  # (n_trees, max_depth + 1): q_k . the tree's present contribution
    correlation: NDArray[np.float64]  # (n_trees, max_depth + 1): q_k . r when last looked at
    moved: NDArray[np.float64]  # (2,): length of all moves of the residual, and of its rest
    drift: NDArray[np.float64]  # (n_directions,): where its sketch is now
    moved_then: NDArray[np.float64]  # (n_trees, 2): when last looked at
    drift_then: NDArray[np.float64]  # (n_trees, n_directions)


class LayerPrice(NamedTuple):
    """What depths cost, times the target's total variation."""

    penalty: NDArray[np.float64]  # (n_trees, max_depth + 1)
    ridge: NDArray[np.float64]  # (n_trees,): of the square of the tree's weight
    free: bool  # whether the weight is chosen too, or stays 1
    signed: bool  # whether a free weight may be negative
    min_gain: float  # a change must gain more than this


MOST_BINS = 256
"""Bins that a column may have, one for what is missing included."""

NUMERIC, SETS, ONE_RIGHT = 0, 1, 2
"""What a column may be split by: a number; a set of categories; one category, which goes right."""


class BinnedColumns(NamedTuple):
    """What splits on binned columns may be: see splits.py."""

    first: NDArray[np.int64]  # (n_columns + 1,): column f has the bins first[f]..first[f + 1]
    kind: NDArray[np.int8]  # (n_columns,): NUMERIC, SETS or ONE_RIGHT
    sign: NDArray[np.int8]  # (n_columns,): 1 or -1 if predictions must not fall, or rise;
    # 0 of columns of categories
    missing: NDArray[np.int8]  # (n_columns,): where the last bin, of what is missing, goes: 1 left,
    # 0 right, -1 either way; -2 if there is no such bin


class SplitPrice(NamedTuple):
    """What splits are worth."""

    shrinkage: float  # of leaf values to 0, as a weight of rows
    least_weight: float  # of the rows in a leaf
    linear: bool  # whether rows say by how much the loss falls if they go left


MUST, MUST_NOT = 1, 2
"""What can be said of a split: it must be kept, or must not be; 0 leaves it open."""


class Prunings(NamedTuple):
    """Which prunings trees may have in a mixture, and what these cost, times the variation."""

    offsets: NDArray[np.int64]
    split: NDArray[np.uint32]
    leaf: NDArray[np.uint32]
    depth: NDArray[np.int64]  # (n_nodes,)
    origin: NDArray[np.float64]  # (n_outputs, n_nodes): value less the root's, times the scale
    leaf_weight: NDArray[np.float64]  # (n_leaves,): of the rows in each unpruned leaf
    cost: NDArray[np.float64]  # (n_splits,): of both children together; of subtrees
    layer_cost: NDArray[np.float64]  # (n_trees, max_depth + 1): of layers; (n_trees, 0) if subtrees
    shrinkage: float  # 0 if values are not refitted
    refit: bool
    least: NDArray[np.float64]  # (n_outputs,): what a refitted leaf may add at least, and at most
    most: NDArray[np.float64]
    said: NDArray[np.int8]  # (n_splits,): whether a split must be kept, or not; (0,) if all may


class Mixture(NamedTuple):
    """Weighted means of prunings, one for each tree: see mixtures.py."""

    residual: NDArray[np.float64]  # (n_outputs, m): of the means, times the rows' weights
    adds: NDArray[np.float64]  # (n_prunings, n_outputs, n_leaves): what each adds in each leaf
    share: NDArray[np.float64]  # (n_trees, n_prunings): those of a tree add up to 1
    penalty: NDArray[np.float64]  # (n_trees, n_prunings)
    square: NDArray[np.float64]  # (n_trees, n_prunings, n_prunings): their products over the rows
    kept: NDArray[np.float64]  # (n_prunings, n_splits): how much of splits is kept; (0, 0) if not
    first: NDArray[np.int64]  # of interest; tree i owns the splits first[i]..first[i + 1]
