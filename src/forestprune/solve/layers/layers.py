"""The layers of a forest as the kernels that cut trees at a depth read them."""

import numpy as np

from forestprune import kernels
from forestprune.forest.checks import seal
from forestprune.kernels.records import Layers
from forestprune.rows.trees import splits_and_leaves
from forestprune.solve.layers.sketch import add_sketch
from forestprune.solve.layers.tuning import Tuning
from forestprune.solve.problem import Problem
from forestprune.system.threads import run_in_threads, split_range, thread_count


def measured_layers(problem: Problem, tuning: Tuning) -> Layers:
    """Return the steps of all nodes, the layers measured, and a sketch if one is worth having."""
    forest, n_jobs = problem.encoding.forest, problem.n_jobs
    sizes = np.diff(forest.offsets)
    parent = forest.parent + np.repeat(forest.offsets[:-1], sizes)
    step = forest.value - forest.value[np.maximum(parent, 0)]
    step[forest.offsets[:-1]] = 0.0
    step *= np.repeat(forest.scale, sizes)[:, np.newaxis]
    split, leaf = splits_and_leaves(forest)
    counts = [bounds.size for bounds in forest.layers]
    shape = (forest.n_trees, forest.max_depth + 1)
    layers = Layers(
        offsets=forest.offsets,
        split=split,
        leaf=leaf,
        step=seal(np.ascontiguousarray(step.T)),
        weight=problem.node_weights,
        bounds=seal(np.concatenate([np.empty(0, np.int64), *forest.layers])),
        first_bound=seal(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)),
        square=np.zeros(shape),
        reach=np.zeros(shape),
        share=np.empty((forest.n_trees, 0, 0)),
        rest=np.empty((forest.n_trees, 0)),
    )
    tasks = [(a, b, layers) for a, b in split_range(forest.n_trees, 4 * thread_count(n_jobs))]
    run_in_threads(kernels.measure_layers, tasks, n_jobs, "measuring layers")
    return add_sketch(problem, layers, tuning)
