"""Boosting by class: trees in rounds, each of which has one tree for every output."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestprune.forest.forest import Forest


def whole_rounds(forest: Forest, unknown: dict[str, Any]) -> tuple[Forest, int]:
    """Return the trees in rounds, one for each output, and how many rounds there are.

    Where an output has fewer trees than others, roots that add nothing take their place.
    """
    outputs = forest.n_outputs
    own = forest.tree_output if forest.tree_output.size else np.zeros(forest.n_trees, np.int64)
    counts = np.bincount(own, minlength=outputs)
    rounds = max(int(counts.max(initial=0)), 1)
    order = np.full((rounds, outputs), -1)
    for output in range(outputs):
        order[: counts[output], output] = np.flatnonzero(own == output)
    places = order.ravel()
    sizes = np.where(places >= 0, np.diff(forest.offsets)[places] if forest.n_trees else 1, 1)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    nodes = np.concatenate(
        [
            np.arange(forest.offsets[tree], forest.offsets[tree + 1]) if tree >= 0 else [-1]
            for tree in places.tolist()
        ]
    )
    there = nodes >= 0

    def column(array: NDArray[Any], nothing: Any) -> NDArray[Any]:
        filled = np.full((nodes.size, *array.shape[1:]), nothing, dtype=array.dtype)
        filled[there] = array[nodes[there]]
        return filled

    def of_trees(array: NDArray[Any], nothing: Any) -> NDArray[Any]:
        filled = np.full((places.size, *array.shape[1:]), nothing, dtype=array.dtype)
        filled[places >= 0] = array[places[places >= 0]]
        return filled

    sets = forest.category_set.size
    value = forest.value if forest.value.shape[1] == 1 else np.empty((0, 1))
    whole = replace(
        forest,
        offsets=offsets,
        left=column(forest.left, -1),
        feature=column(forest.feature, -1),
        threshold=column(forest.threshold, 0.0),
        missing_left=column(forest.missing_left, False),
        value=column(value, 0.0),
        cover=column(forest.cover, 0.0),
        category_set=column(forest.category_set, -1) if sets else forest.category_set,
        scale=of_trees(forest.scale, 1.0),
        tree_output=np.tile(np.arange(outputs), rounds) if outputs > 1 else np.empty(0, np.int64),
        node_extras={
            name: column(array, unknown.get(name, 0)) for name, array in forest.node_extras.items()
        },
        tree_extras={
            name: of_trees(array, unknown.get(name, 0))
            for name, array in forest.tree_extras.items()
        },
    )
    return whole, rounds
