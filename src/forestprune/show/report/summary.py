"""What a report says, as a dict of plain numbers and texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from forestprune.forest.forest import Forest
from forestprune.interop.source import Source
from forestprune.select.path import PruningPath
from forestprune.select.pruned import PrunedForest, file_size
from forestprune.show.report.features import feature_summary
from forestprune.show.report.loading import how_to_load
from forestprune.show.report.timing import first_rows, n_rows, prediction_times
from forestprune.show.report.tradeoff import Call, tradeoff
from forestprune.show.report.trees import drawn_trees
from forestprune.show.report.versions import versions

MAX_TEXT, MAX_FORMULA = 400, 100
"""Nodes that can still be read as a text, and as a formula."""

LONGEST_OPTION = 200
"""Letters of an option's value that are put on record."""

LONGEST_TEXT = 200_000
"""Letters of a text or formula that a page can have."""

_HELD_OUT = (
    "rows held out, by which it may have been chosen; if the model was trained on them, its own "
    "error flatters"
)


@dataclass(frozen=True, kw_only=True)
class About:
    """What only whoever wants a report can know: see `write_report`.

    Attributes
    ----------
    title : str or None
    options : mapping
    model_bytes : int or None
    small_file : Path or None
    held_out : str
        What the rows held out are.
    caution : str or None
        What to think of before the error of the full model on them is believed.
    warnings : sequence of str
        What was warned of when the model was made.
    call : function or None
        Returns the command for a model of some nodes and some shrinkage; None in Python.
    """

    title: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    model_bytes: int | None = None
    small_file: Path | None = None
    held_out: str = _HELD_OUT
    caution: str | None = None
    warnings: Sequence[str] = ()
    call: Call | None = None


def summarise(
    path: PruningPath,
    place: int,
    about: About,
    X: Any = None,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> dict[str, Any]:
    """Return what there is to say about one point of a path."""
    small, full = path[place], path.source.original
    file = about.small_file
    origin = full.origin
    natives = {
        "full": _native(full, path.source),
        "small": small.forest if origin is None else small.to_native(),
    }
    sizes = {
        "full": _size(full, about.model_bytes or file_size(natives["full"], _ending(small, file))),
        "small": _size(small.forest, small.n_bytes if file is None else file.stat().st_size),
    }
    rows = None if X is None else first_rows(X)
    if rows is not None:
        for name, seconds in prediction_times(natives, rows).items():
            sizes[name]["milliseconds"] = 1000.0 * seconds
    model_class = type(natives["full"]).__name__
    return {
        "title": about.title or f"{model_class}, made small",
        "model": {
            "class": model_class,
            "predicts": "y" if origin is None else origin.predicts,
            "features": full.n_features,
            "outputs": full.n_outputs,
        },
        **sizes,
        "rows_timed": None if rows is None else n_rows(rows),
        "error": _error(path, place, small, about, X, y, sample_weight),
        "path": tradeoff(path, place, about.call),
        "depths": _depths(full, small),
        "features": feature_summary(full, small.forest),
        "trees": drawn_trees(small),
        "text": _text(small, small.to_text, MAX_TEXT),
        "formula": _text(small, small.to_formula, MAX_FORMULA),  # with all digits
        "loading": how_to_load(small, file),
        "options": {name: _spelled(value) for name, value in about.options.items()},
        "warnings": list(about.warnings),
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
    about: About,
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
        on = f"{len(np.asarray(target)):,} further rows, given for this report"
        return {
            "on": on,
            "full": scores[0],
            "small": scores[1],
            "further": True,
            "caution": None,
        }
    on, scored = "the rows it was pruned with, which flatters", 1.0 - small.loss
    full = None
    if validation is not None:
        on, full, scored = about.held_out, validation.full, float(validation.scores[place])
    return {"on": on, "full": full, "small": scored, "further": False, "caution": about.caution}


def _ending(small: PrunedForest, file: Path | None) -> str:
    return small.ending if file is None else file.suffix


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
    text = str(write())
    return text if len(text) <= LONGEST_TEXT else None


def _spelled(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= LONGEST_OPTION else f"{text[:LONGEST_OPTION]} ..."
