"""What a report says, as a dict of plain numbers and texts."""

import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from forestprune._version import __version__
from forestprune.forest.forest import Forest
from forestprune.select.beside import Beside
from forestprune.select.figures import LABELS, short_name
from forestprune.select.path import PruningPath
from forestprune.select.pruned import PrunedForest, model_size
from forestprune.select.routed import HeldOut, RoutedRows
from forestprune.select.scoring import known_scorer
from forestprune.select.validation import validate
from forestprune.show.plotting.look import short_number
from forestprune.show.report.curves import class_curves
from forestprune.show.report.features import feature_summary
from forestprune.show.report.loading import how_to_load
from forestprune.show.report.measured import Figures, measured
from forestprune.show.report.timing import first_rows, n_rows, prediction_times
from forestprune.show.report.tradeoff import Call, score_name, tradeoff
from forestprune.show.report.trees import drawn_trees
from forestprune.text import constraints_in_words, meaning
from forestprune.text.additive import is_read_whole

MAX_TEXT, MAX_FORMULA = 400, 100
"""Nodes that can still be read as a text, and as a formula."""

LONGEST_OPTION, LONGEST_TEXT = 200, 200_000
"""Letters of an option's value, and of a text or formula."""

_HELD_OUT = (
    "rows held out, by which it may have been chosen; if the model was trained on them, its own "
    "error flatters"
)


@dataclass(frozen=True, kw_only=True)
class About:
    """What the caller knows about a model; see `write_report` for the attributes not listed.

    Attributes
    ----------
    held_out : str
        What the rows held out are.
    caution : str or None
        Why the error of the full model on them may be too low.
    warnings : sequence of str
        Warnings issued when the model was made.
    call : function or None
        Returns the command for a model of some nodes and some shrinkage; None in Python.
    rows : HeldOut or None
        The rows that the errors of the path are measured on, for other figures and curves.
    """

    title: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    model_bytes: int | None = None
    small_file: Path | None = None
    held_out: str = _HELD_OUT
    caution: str | None = None
    warnings: Sequence[str] = ()
    call: Call | None = None
    rows: HeldOut | None = None


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
    file, origin = about.small_file, full.origin
    natives: dict[str, Any] = {"full": full, "small": small.forest}
    if origin is not None:
        natives = {"full": path.source.wrap(full.to_native()), "small": small.to_native()}
    ending = small.ending if file is None else file.suffix
    sizes = {
        "full": _size(full, about.model_bytes or model_size(full, ending, lambda: natives["full"])),
        "small": _size(small.forest, small.n_bytes if file is None else file.stat().st_size),
    }
    rows = None if X is None else first_rows(X)
    if rows is not None:
        for name, seconds in prediction_times(natives, rows).items():
            sizes[name]["milliseconds"] = 1000.0 * seconds
    model_class = type(natives["full"]).__name__
    further = X is not None and y is not None
    given = HeldOut(X, y, sample_weight) if further else about.rows
    of_classes = origin is not None and bool(origin.classes)
    # Rows held out have been measured already; only curves need them again.
    known = path.validation is not None and not further
    routed = curves = None
    if given is not None and (of_classes or not known):
        routed = path.routed(given.X, given.y, given.sample_weight)
        curves = class_curves(routed, small.decision_function(given.X)) if of_classes else None
    figures = measured(path, None if known else routed)
    stands_for = meaning(origin)
    deepest = max(full.max_depth, small.max_depth)  # new splits may go deeper
    return {
        "title": about.title or f"{model_class}, made small",
        "model": {
            "class": model_class,
            "predicts": stands_for.total,
            "prediction": stands_for.prediction,
            "classes": [] if origin is None else list(origin.classes),
            "features": full.n_features,
            "constraints": constraints_in_words(full),
        },
        **sizes,
        "rows_timed": None if rows is None else n_rows(rows),
        "error": _told(_error(path, place, about, routed if further else None), figures, place),
        "polish": _polish(path, place, figures),
        "path": {**tradeoff(path, place, about.call, figures), "figures_further": further},
        "certificate": None if small.certificate is None else small.certificate.in_words(),
        "labels": LABELS,
        "curves": curves,
        "depths": {  # trees that are gone have depth 0
            "before": np.bincount(full.depths, minlength=deepest + 1).tolist(),
            "after": np.bincount(small.depths, minlength=deepest + 1).tolist(),
        },
        "features": feature_summary(full, small.forest),
        "trees": drawn_trees(small),
        "text": _text(small, small.to_text, MAX_TEXT),
        "formula": _text(small, small.to_formula, MAX_FORMULA),  # with all digits
        "loading": how_to_load(small, file),
        "options": {name: _spelled(value) for name, value in about.options.items()},
        "warnings": list(about.warnings),
        "versions": _versions("sklearn" if origin is None else origin.library),
    }


def _size(forest: Forest, n_bytes: int) -> dict[str, Any]:
    return {
        "trees": forest.n_trees,
        "nodes": forest.n_nodes,
        "depth": forest.max_depth,
        "bytes": n_bytes,
        "milliseconds": None,
    }


def _error(
    path: PruningPath, place: int, about: About, further: RoutedRows | None
) -> dict[str, Any]:
    """Return the score of both models: on further rows, else on rows held out, if there are any."""
    validation, score = path.validation, score_name(path)
    if further is not None:
        judged = validate(further, [path.points[place]], known_scorer(score))
        on = f"{further.encoding.n_rows:,} further rows, given for this report"
        scores = {"full": judged.full, "small": float(judged.scores[0])}
        return {"on": on, **scores, "score": judged.name, "further": True, "caution": None}
    result = {"score": score, "further": False, "caution": about.caution}
    if validation is None:
        on = "the rows it was pruned with, which flatters"
        return {"on": on, "full": None, "small": 1.0 - path.points[place].loss, **result}
    scored = float(validation.scores[place])
    return {"on": about.held_out, "full": validation.full, "small": scored, **result}


def _polish(path: PruningPath, place: int, figures: Figures | None) -> dict[str, Any] | None:
    """Return what choosing splits anew has changed; None if the model has no such splits.

    Of a model that is only pruned, whether others with new splits were there to choose; of figures,
    whether they are those of rows that were `seen` in pruning.
    """
    small, beside = path[place], Beside.of(path.points, place)
    if not small.n_new_splits and beside is None:
        return None
    told: dict[str, Any] = dict.fromkeys(("label", "nodes", "before", "after"))
    told |= {"splits": small.n_splits, "new": small.n_new_splits, "seen": False}
    if beside is None or place == beside.pruned:
        return told | {"preferred": beside is not None}
    told |= {"nodes": int(path.n_nodes[beside.pruned]), "preferred": False}
    places = {"before": beside.pruned, "after": place}
    if figures is not None and "rmse" in figures.names:
        numbers = {name: short_number(figures.points[i]["rmse"]) for name, i in places.items()}
        return told | numbers | {"label": LABELS["rmse"]}
    score = score_name(path)
    scores = 1.0 - path.losses if path.validation is None else path.validation.scores
    numbers = {name: f"{scores[i]:.4f}" for name, i in places.items()}
    return told | numbers | {"label": short_name(score), "seen": path.validation is None}


def _told(error: dict[str, Any], figures: Figures | None, place: int) -> dict[str, Any]:
    """Add other figures, and how much larger the small model's RMSE is, as far as that is known."""
    full, small, change = error["full"], error["small"], None
    if figures is not None:
        before, after = figures.full, figures.points[place]
        if before.get("rmse"):
            change = after["rmse"] / before["rmse"] - 1.0
    elif error["score"] == "R squared" and full is not None and full < 1.0:
        # Both squared errors are over the same variance.
        change = ((1.0 - small) / (1.0 - full)) ** 0.5 - 1.0
    both = None if figures is None else {"full": dict(before), "small": dict(after)}
    return {**error, "score": short_name(error["score"]), "figures": both, "change": change}


def _text(small: PrunedForest, write: Any, limit: int) -> str | None:
    forest = small.forest
    whole = is_read_whole(forest) and write == small.to_text
    if small.n_nodes > limit or (forest.n_outputs > 1 and not whole):
        return None
    text = str(write())
    return text if len(text) <= LONGEST_TEXT else None


def _spelled(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= LONGEST_OPTION else f"{text[:LONGEST_OPTION]} ..."


def _versions(library: str) -> dict[str, str]:
    """Return the versions of Python, this package, and the libraries of the model."""
    found = {"forestprune": __version__, "Python": platform.python_version()}
    package = "scikit-learn" if library == "sklearn" else library
    for name in (package, "scikit-learn", "numpy"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
