"""What can be drawn: anything that has trees."""

from typing import Any

from forestprune.forest.forest import Forest
from forestprune.interop.source import Source
from forestprune.select.path import PruningPath
from forestprune.select.pruned import PrunedForest


def forest_of(model: Any) -> Forest:
    """Return the trees of a pruned forest, a forest or a model; of a path, those of the original.

    A model can be whatever :func:`forestprune.prune` takes.
    """
    if isinstance(model, PrunedForest):
        return model.forest
    if isinstance(model, PruningPath):
        return model.source.original
    return Source.of(model).forest


def one_forest(model: Any, function: str) -> Forest:
    """Return the trees of anything but a path, of which `function` draws only one point."""
    if isinstance(model, PruningPath):
        raise TypeError(
            f"{function}() draws one pruned forest, got a path of {len(model)}. Choose one of "
            f"them: {function}(path.select(max_nodes=500)), or path[i]."
        )
    return forest_of(model)
