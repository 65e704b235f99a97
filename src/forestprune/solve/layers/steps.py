"""The trees of a forest as the kernels that cut them read them."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from forestprune import kernels
from forestprune.forest.checks import seal
from forestprune.forest.forest import Forest
from forestprune.kernels.cuts import Steps
from forestprune.rows.encoding import Encoding
from forestprune.solve.layers.sketch import add_sketch
from forestprune.system.threads import run_in_threads, split_range, thread_count


def splits_and_leaves(forest: Forest) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return which nodes are splits and which are leaves, each counted from its tree's root."""
    is_split = [forest.left[a:b] >= 0 for a, b in pairwise(forest.offsets)]
    split = [np.flatnonzero(tree).astype(np.uint32) for tree in is_split]
    leaf = [np.flatnonzero(~tree).astype(np.uint32) for tree in is_split]
    none = np.empty(0, np.uint32)
    return seal(np.concatenate([none, *split])), seal(np.concatenate([none, *leaf]))


def tree_steps(forest: Forest) -> Steps:
    """Return the steps of all nodes: all that is needed to know what cut trees add.

    What depends on rows, the weights of nodes and the measures of layers, is left empty.
    """
    sizes = np.diff(forest.offsets)
    parent = forest.parent + np.repeat(forest.offsets[:-1], sizes)
    step = forest.value - forest.value[np.maximum(parent, 0)]
    step[forest.offsets[:-1]] = 0.0
    step *= np.repeat(forest.scale, sizes)[:, np.newaxis]
    split, leaf = splits_and_leaves(forest)
    counts = [bounds.size for bounds in forest.layers]
    return Steps(
        offsets=forest.offsets,
        split=split,
        leaf=leaf,
        step=seal(np.ascontiguousarray(step.T)),
        weight=seal(np.empty(0)),
        bounds=seal(np.concatenate([np.empty(0, np.int64), *forest.layers])),
        first_bound=seal(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)),
        square=np.empty((forest.n_trees, 0)),
        reach=np.empty((forest.n_trees, 0)),
        share=np.empty((forest.n_trees, 0, 0)),
        rest=np.empty((forest.n_trees, 0)),
    )


def measured_steps(encoding: Encoding, n_jobs: int | None, *, sketched: bool = True) -> Steps:
    """Return the steps of all nodes with the weight of their rows, and the layers measured.

    If `sketched`, with a sketch of each layer, if one is worth having.
    """
    forest = encoding.forest
    shape = (forest.n_trees, forest.max_depth + 1)
    steps = tree_steps(forest)._replace(
        weight=encoding.node_weights, square=np.zeros(shape), reach=np.zeros(shape)
    )
    tasks = [(a, b, steps) for a, b in split_range(forest.n_trees, 4 * thread_count(n_jobs))]
    run_in_threads(kernels.measure_layers, tasks, n_jobs, "measuring layers")
    return add_sketch(encoding, steps, n_jobs) if sketched else steps
