"""Cells of rows that many trees of a forest tell apart in much the same way."""

import numpy as np
from numpy.typing import NDArray

from forestprune import kernels
from forestprune.forest.checks import seal
from forestprune.kernels.records import Layers
from forestprune.rows.encoding import Encoding
from forestprune.solve.layers.tuning import Tuning
from forestprune.solve.problem import Problem
from forestprune.system.threads import run_in_threads, split_range, thread_count


def add_sketch(problem: Problem, layers: Layers, tuning: Tuning) -> Layers:
    """Return `layers` with a sketch of each, if one is worth having."""
    encoding, n_jobs = problem.encoding, problem.n_jobs
    forest = encoding.forest
    if encoding.n_rows < tuning.sketch_rows or forest.n_trees < 3 or forest.max_depth == 0:
        return layers
    cell = _find_cells(encoding, layers, tuning)
    cells = int(cell.max()) + 1
    weights, row_weight = problem.sample_weight, problem.row_weight
    cell_weight = np.bincount(cell, weights=weights, minlength=cells).astype(np.float64)
    # A cell whose rows all weigh nothing explains nothing.
    cell_weight[cell_weight == 0.0] = 1.0
    share = np.zeros((forest.n_trees, cells * forest.n_outputs, forest.max_depth))
    rest = np.zeros_like(layers.reach)

    def fill(pieces: list[tuple[int, int]]) -> None:
        tasks = [
            (encoding.codes, row_weight, cell, cell_weight, first, last, layers, share, rest)
            for first, last in pieces
        ]
        run_in_threads(kernels.sketch_layers, tasks, n_jobs, "sketching layers")

    # A few trees show whether the others are alike; always the same few.
    some = np.unique(np.linspace(0, forest.n_trees - 1, tuning.probed_trees).astype(np.int64))
    fill([(tree, tree + 1) for tree in some])
    known = float((share[some] ** 2).sum())
    deeper = np.maximum(np.diff(layers.reach[some], axis=1), 0.0)
    all_of_it = float((deeper**2).sum())
    if known < tuning.sketch_share * all_of_it:
        return layers
    fill(split_range(forest.n_trees, 4 * thread_count(n_jobs)))
    return layers._replace(share=share, rest=rest)


def _find_cells(encoding: Encoding, layers: Layers, tuning: Tuning) -> NDArray[np.uint16]:
    """Put each row into a cell: the leaf it reaches in a tree that is fitted to the trees.

    Its features are the nodes that rows reach in some of the trees, level order making them
    ordinal; its targets are the layers, each averaged over these trees.
    """
    from sklearn.tree import DecisionTreeRegressor

    forest = encoding.forest
    trees = np.unique(np.linspace(0, forest.n_trees - 1, tuning.sampled_trees).astype(np.int64))
    rows = np.arange(0, encoding.n_rows, -(-encoding.n_rows // tuning.sampled_rows))
    n_layers = min(forest.max_depth, tuning.cell_layers)
    nodes = np.empty((encoding.n_rows, trees.size), np.float32)
    target = np.zeros((rows.size, n_layers, forest.n_outputs))
    for j, tree in enumerate(trees):
        codes = encoding.codes[tree]
        inside = slice(forest.offsets[tree], forest.offsets[tree + 1])
        step, bounds = layers.step[:, inside], forest.layers[tree]
        split = np.flatnonzero(forest.left[inside] >= 0)
        ends = kernels.ends_at(layers, tree, n_layers)
        nodes[:, j] = ends[codes]
        for k in range(min(n_layers, bounds.size - 2), 0, -1):
            there = ends >= bounds[k]
            target[:, k - 1] += (there * step[:, ends]).T[codes[rows]]
            ends = np.where(there, split[(ends - 1) // 2], ends)
    fitted = DecisionTreeRegressor(max_leaf_nodes=tuning.cells, random_state=0).fit(
        nodes[rows], target.reshape(rows.size, -1)
    )
    leaves = fitted.apply(nodes)
    number = np.cumsum(fitted.tree_.children_left < 0) - 1
    return seal(number[leaves].astype(np.uint16))
