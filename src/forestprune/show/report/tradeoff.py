"""The points of a path, and which of them to mark."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from forestprune.forest.new_splits import new_splits
from forestprune.loss import loss_for
from forestprune.select.beside import Beside
from forestprune.select.budget import Budget
from forestprune.select.figures import (
    IN_UNITS,
    LABELS,
    error_name,
    error_of,
    errors_of,
    share_explained,
    short_name,
)
from forestprune.select.path import PruningPath, breaks_off
from forestprune.show.report.measured import Figures

Call = Callable[[int, float | None, bool], str | None]
"""From a number of nodes, a shrinkage, and whether splits are new, to a command for such a model.

None if none is needed."""

_SMALLEST_TREE = 3
"""Its nodes."""


def tradeoff(
    path: PruningPath, place: int, call: Call | None = None, figures: Figures | None = None
) -> dict[str, Any]:
    """Return the points of a path for a chart: sizes, errors, which to mark.

    Errors are 1 - R squared, or that of another score, on rows held out, if there are any, else on
    the rows to prune with; `held_out` says which. A point is on the frontier if no smaller one is
    as good. Its `call` is how to get it; None if a command cannot, because it has no tree.
    `figures` are others, perhaps on other rows.
    """
    validation, score = path.validation, score_name(path)
    errors = path.losses if validation is None else errors_of(score, validation.scores)
    names = () if figures is None else figures.names
    spread = None if validation is None else validation.standard_errors
    full = path.source.original
    on_frontier = frontier(path.n_nodes, errors)
    if breaks_off(path):
        on_frontier[-1] = False  # a line to it would pass over better models that are not here
    points = [
        {
            "nodes": int(path.n_nodes[i]),
            "trees": int(path.n_trees[i]),
            "depth": int(path.max_depths[i]),
            "alpha": float(path.alphas[i]),
            "error": float(errors[i]),
            "standard_error": None if spread is None else float(spread[i]),
            **_numbers(names, None if figures is None else figures.points[i]),
            "frontier": bool(on_frontier[i]),
            "shrinkage": path.points[i].report.get("shrinkage"),
            "splits": (int(path.n_nodes[i]) - int(path.n_trees[i])) // 2,
            "new_splits": int(path.n_new_splits[i]),
            "call": _how_to_get(path, i, call),
        }
        for i in range(len(path))
    ]
    return {
        "held_out": validation is not None,
        "score": short_name(score),
        "error_name": error_name(score),
        "figures": [{"key": name, "label": LABELS[name]} for name in names],
        "by_command": call is not None,
        "breaks_off": breaks_off(path),
        # Whether the target was, or might have been, the full model's own prediction.
        "own": validation is not None and not validation.of_target,
        "shrinkages": sorted(
            {
                s
                for point, each in zip(points, path.points, strict=True)
                if (s := point["shrinkage"]) is not None and each.forest is None
            }
        ),
        "resplit": bool(path.n_new_splits.any()),
        "points": points,
        "full": {
            "nodes": full.n_nodes,
            "trees": full.n_trees,
            "depth": full.max_depth,
            "error": None if validation is None else error_of(score, validation.full),
            "splits": (full.n_nodes - full.n_trees) // 2,
            "new_splits": int(np.count_nonzero(new_splits(full))),
            **_numbers(names, None if figures is None else figures.full),
        },
        "marks": marks(path, place, errors),
    }


def score_name(path: PruningPath) -> str:
    """Return what models are scored by: on rows held out, or those to prune with."""
    if path.validation is not None:
        return path.validation.name
    origin = path.source.original.origin
    return share_explained(loss_for(origin, labelled=True), origin)


def _numbers(names: Sequence[str], figures: Mapping[str, float] | None) -> dict[str, float | None]:
    """Return figures by name; None for those in units of the target where these are unknown."""
    # More digits would be most of the file.
    known = {} if figures is None else {name: float(f"{figures[name]:.8g}") for name in names}
    return {**dict.fromkeys(IN_UNITS), **known}


def _how_to_get(path: PruningPath, place: int, call: Call | None) -> str | None:
    if call is None:
        return f"small.path[{place}]"
    nodes, point = int(path.n_nodes[place]), path.points[place]
    if nodes < _SMALLEST_TREE:
        return None
    return call(nodes, point.report.get("shrinkage"), point.forest is not None)


def frontier(nodes: np.ndarray[Any, Any], errors: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Tell for each point whether its error is below those of all points that are no larger."""
    by_size = np.lexsort((errors, nodes))
    sorted_errors = errors[by_size]
    before = np.minimum.accumulate(np.concatenate([[np.inf], sorted_errors[:-1]]))
    result = np.zeros(len(errors), dtype=np.bool_)
    result[by_size] = sorted_errors < before
    return result


def marks(
    path: PruningPath, place: int, errors: np.ndarray[Any, Any]
) -> list[dict[str, str | int]]:
    """Return the points to mark, by name: the one that was chosen, and others of interest."""
    named, beside = {"this model": place}, Beside.of(path.points, place)
    if beside is not None and place != beside.pruned:
        if path.n_nodes[beside.pruned] < path.source.original.n_nodes:
            named["only pruned"] = beside.pruned
    elif beside is not None:
        named["with new splits"] = min(beside.polished, key=lambda each: float(errors[each]))
    validation = path.validation
    if validation is not None:
        named["smallest within a standard error"] = path.choose(Budget(), None, True, validation)
        as_good = np.flatnonzero(errors <= error_of(validation.name, validation.full))
        if as_good.size:
            smallest = as_good[np.argmin(path.n_nodes[as_good])]
            named["smallest as good as the full model"] = int(smallest)
        named["best"] = path.choose(Budget(), None, False, validation)
    if breaks_off(path):
        # Among larger models that are not here there may be better ones, or smaller ones as good.
        named = {n: i for n, i in named.items() if i == place or i != len(path) - 1}
    return [{"name": name, "place": index} for name, index in named.items()]
