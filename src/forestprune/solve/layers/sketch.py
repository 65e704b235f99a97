"""Cells of rows that many trees of a forest tell apart in much the same way."""

import numpy as np
from numpy.typing import NDArray

from forestprune import kernels
from forestprune.forest.checks import seal
from forestprune.kernels.cuts import Steps
from forestprune.rows.encoding import Encoding
from forestprune.system.threads import run_in_threads, split_range, thread_count

CELLS = 128
LAYERS = 6
"""Layers that cells are made by; deeper ones differ too much from tree to tree."""

LEAST_ROWS = 4096
"""With fewer, looking at the rows themselves is as cheap."""

LEAST_SHARE = 0.3
"""What the cells must explain of the trees' layers to be worth their while."""

PROBED_TREES = 8
"""Trees that show how much that is."""

SAMPLED_ROWS = 4096
SAMPLED_TREES = 16
"""Rows and trees from which cells are made."""


def add_sketch(encoding: Encoding, steps: Steps, n_jobs: int | None) -> Steps:
    """Return `steps` with a sketch of each layer, if one is worth having."""
    forest = encoding.forest
    if encoding.n_rows < LEAST_ROWS or forest.n_trees < 3 or forest.max_depth == 0:
        return steps
    cell = _find_cells(encoding, steps)
    cells = int(cell.max()) + 1
    weights = encoding.sample_weight
    row_weight = seal(np.empty(0)) if weights is None else weights
    cell_weight = np.bincount(cell, weights=weights, minlength=cells).astype(np.float64)
    # A cell whose rows all weigh nothing explains nothing.
    cell_weight[cell_weight == 0.0] = 1.0
    share = np.zeros((forest.n_trees, cells * forest.n_outputs, forest.max_depth))
    rest = np.zeros_like(steps.reach)

    def fill(pieces: list[tuple[int, int]]) -> None:
        tasks = [
            (encoding.codes, row_weight, cell, cell_weight, first, last, steps, share, rest)
            for first, last in pieces
        ]
        run_in_threads(kernels.sketch_layers, tasks, n_jobs, "sketching layers")

    # A few trees show whether the others are alike; always the same few.
    some = np.unique(np.linspace(0, forest.n_trees - 1, PROBED_TREES).astype(np.int64))
    fill([(tree, tree + 1) for tree in some])
    known = float((share[some] ** 2).sum())
    deeper = np.maximum(np.diff(steps.reach[some], axis=1), 0.0)
    all_of_it = float((deeper**2).sum())
    if known < LEAST_SHARE * all_of_it:
        return steps
    fill(split_range(forest.n_trees, 4 * thread_count(n_jobs)))
    return steps._replace(share=share, rest=rest)


def _find_cells(encoding: Encoding, steps: Steps) -> NDArray[np.uint16]:
    """Put each row into a cell: the leaf it reaches in a tree that is fitted to the trees.

    Its features are the nodes that rows reach in some of the trees, level order making them
    ordinal; its targets are the layers, each averaged over these trees.
    """
    from sklearn.tree import DecisionTreeRegressor

    forest = encoding.forest
    trees = np.unique(np.linspace(0, forest.n_trees - 1, SAMPLED_TREES).astype(np.int64))
    rows = np.arange(0, encoding.n_rows, -(-encoding.n_rows // SAMPLED_ROWS))
    layers = min(forest.max_depth, LAYERS)
    nodes = np.empty((encoding.n_rows, trees.size), np.float32)
    target = np.zeros((rows.size, layers, forest.n_outputs))
    for j, tree in enumerate(trees):
        codes = encoding.codes[tree]
        inside = slice(forest.offsets[tree], forest.offsets[tree + 1])
        step, bounds = steps.step[:, inside], forest.layers[tree]
        split = np.flatnonzero(forest.left[inside] >= 0)
        ends = kernels.ends_at(steps, tree, layers)
        nodes[:, j] = ends[codes]
        for k in range(min(layers, bounds.size - 2), 0, -1):
            there = ends >= bounds[k]
            target[:, k - 1] += (there * step[:, ends]).T[codes[rows]]
            ends = np.where(there, split[(ends - 1) // 2], ends)
    fitted = DecisionTreeRegressor(max_leaf_nodes=CELLS, random_state=0).fit(
        nodes[rows], target.reshape(rows.size, -1)
    )
    leaves = fitted.apply(nodes)
    number = np.cumsum(fitted.tree_.children_left < 0) - 1
    return seal(number[leaves].astype(np.uint16))
