"""A model in numbers, as commands show it."""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from forestprune.forest.forest import Forest

_MOST_BARS = 20
_LONGEST_BAR = 40


def size_of(forest: "Forest", n_bytes: int) -> dict[str, Any]:
    """Return how large a forest is, and its file."""
    return {
        "trees": forest.n_trees,
        "nodes": forest.n_nodes,
        "max_depth": forest.max_depth,
        "bytes": n_bytes,
    }


def origin_of(forest: "Forest") -> dict[str, Any]:
    """Return what kind of model a forest came from, and what it predicts."""
    origin = forest.origin
    return {
        "library": None if origin is None else origin.library,
        "class": "Forest" if origin is None else origin.model_class,
        "predicts": "y" if origin is None else origin.predicts,
        "outputs": forest.n_outputs,
    }


def features_used(forest: "Forest") -> int:
    """Return how many features any split looks at."""
    return int(np.unique(forest.feature[forest.feature >= 0]).size)


def depth_histogram(forest: "Forest") -> list[dict[str, int]]:
    """Return how many trees there are of each depth, or range of depths if these are many."""
    depths = forest.depths
    if not depths.size:
        return []
    low, high = int(depths.min()), int(depths.max())
    width = -(-(high - low + 1) // _MOST_BARS)
    return [
        {
            "from": start,
            "to": min(start + width - 1, high),
            "trees": int(np.count_nonzero((depths >= start) & (depths < start + width))),
        }
        for start in range(low, high + 1, width)
    ]


def bars(histogram: list[dict[str, int]]) -> list[str]:
    """Return a line of text for each entry, as long as it has trees."""
    most = max((entry["trees"] for entry in histogram), default=0)
    labels = [
        f"{e['from']}" if e["from"] == e["to"] else f"{e['from']}-{e['to']}" for e in histogram
    ]
    width = max(map(len, labels), default=0)
    return [
        f"  {label:>{width}}  {_bar(entry['trees'], most)} {entry['trees']:,}"
        for label, entry in zip(labels, histogram, strict=True)
    ]


def _bar(number: int, most: int) -> str:
    # A tree among thousands still shows.
    return "#" * -(-number * _LONGEST_BAR // most)
