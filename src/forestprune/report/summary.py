"""What a report says, as a dict of plain numbers and texts."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from forestprune.forest import Forest
from forestprune.path import PruningPath
from forestprune.pruned import PrunedForest, file_size
from forestprune.report.features import feature_summary
from forestprune.report.loading import how_to_load
from forestprune.report.timing import first_rows, n_rows, prediction_time
from forestprune.report.tradeoff import tradeoff
from forestprune.report.trees import drawn_trees
from forestprune.report.versions import versions
from forestprune.source import Source

MAX_TEXT, MAX_FORMULA = 400, 100
"""Nodes that can still be read as a text, and as a formula."""

LONGEST_OPTION = 200
"""Letters of an option's value that are put on record."""


def summarise(
    path: PruningPath,
    place: int,
    *,
    X: Any = None,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    title: str | None = None,
    options: Mapping[str, Any] | None = None,
    model_bytes: int | None = None,
    small_file: str | os.PathLike[str] | None = None,
) -> dict[str, Any]:
    """Return what there is to say about one point of a path: see `write_report`."""
    small, full = path[place], path.source.original
    file = None if small_file is None else Path(small_file)
    origin = full.origin
    natives = {
        "full": _native(full, path.source),
        "small": small.forest if origin is None else small.to_native(),
    }
    sizes = {
        "full": _size(full, model_bytes or file_size(natives["full"])),
        "small": _size(small.forest, small.n_bytes if file is None else file.stat().st_size),
    }
    rows = None if X is None else first_rows(X)
    if rows is not None:
        for name, model in natives.items():
            sizes[name]["milliseconds"] = 1000.0 * prediction_time(model, rows)
    model_class = "Forest" if origin is None else origin.model_class
    return {
        "title": title or f"{model_class}, made small",
        "model": {
            "class": model_class,
            "predicts": "y" if origin is None else origin.predicts,
            "features": full.n_features,
            "outputs": full.n_outputs,
        },
        **sizes,
        "rows_timed": None if rows is None else n_rows(rows),
        "error": _error(path, place, small, X, y, sample_weight),
        "path": tradeoff(path, place),
        "depths": _depths(full, small),
        "features": feature_summary(full, small.forest),
        "trees": drawn_trees(small),
        "text": _text(small, small.to_text, MAX_TEXT),
        "formula": _text(small, small.to_formula, MAX_FORMULA),
        "loading": how_to_load(small, file),
        "options": {name: _spelled(value) for name, value in (options or {}).items()},
        "versions": versions(full),
    }


def _native(full: Forest, source: Source) -> Any:
    return full if full.origin is None else source.wrap(full.to_native())


def _size(forest: Forest, n_bytes: int) -> dict[str, Any]:
    return {
        "trees": forest.n_trees,
        "nodes": forest.n_nodes,
        "depth": forest.max_depth,
        "bytes": n_bytes,
        "milliseconds": None,
    }


def _error(
    path: PruningPath,
    place: int,
    small: PrunedForest,
    X: Any,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
) -> dict[str, Any]:
    """Return R squared of both models where it tells most: further rows, rows held out, or none."""
    validation = path.validation
    if X is not None and y is not None:
        from sklearn.metrics import r2_score

        rows = path.source.transform(X)
        target = path.source.target(rows, y)
        scores = [
            float(
                r2_score(target, said, sample_weight=sample_weight, multioutput="variance_weighted")
            )
            for said in (path.source.original.predict(rows), small.forest.predict(rows))
        ]
        return {
            "on": "test",
            "rows": len(np.asarray(target)),
            "full": scores[0],
            "small": scores[1],
        }
    if validation is not None:
        full, scored = validation.full, float(validation.scores[place])
        return {"on": "held out", "rows": None, "full": full, "small": scored}
    return {"on": "pruned with", "rows": None, "full": None, "small": 1.0 - small.loss}


def _depths(full: Forest, small: PrunedForest) -> dict[str, list[int]]:
    """Return how many trees have which depth; those that are gone have depth 0."""
    deepest = full.max_depth
    return {
        "before": np.bincount(full.depths, minlength=deepest + 1).tolist(),
        "after": np.bincount(small.depths, minlength=deepest + 1).tolist(),
    }


def _text(small: PrunedForest, write: Any, limit: int) -> str | None:
    if small.n_nodes > limit or small.forest.n_outputs > 1:
        return None
    return str(write(digits=4))


def _spelled(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= LONGEST_OPTION else f"{text[:LONGEST_OPTION]} ..."
