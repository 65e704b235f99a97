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


def refuse_path(model: Any, call: str) -> None:
    """Raise an error for a path where one point of it is required."""
    if isinstance(model, PruningPath):
        raise TypeError(
            f"{call} draws one pruned forest, got a path of {len(model)}. Choose one of them: "
            f"{call.removesuffix('()')}(path.select(max_nodes=500)), or path[i]."
        )
