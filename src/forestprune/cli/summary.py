"""Models in numbers, as commands show them: what is in a file, and what came of pruning."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from forestprune.cli.work import Work

if TYPE_CHECKING:
    from rich.table import Table

    from forestprune.forest.forest import Forest
    from forestprune.loss import Measured
    from forestprune.options import Options
    from forestprune.select.pruned import PrunedForest
    from forestprune.select.routed import RoutedRows
    from forestprune.tables.rows import Rows

_MOST_BARS = 20
_LONGEST_BAR = 40

_ENOUGH = 100
"""Rows from which on R squared says something of others."""

_OF_CLASSES = ("accuracy", "balanced_accuracy", "log_loss", "roc_auc")
"""Figures of classifiers."""

_MUCH_LESS = 0.5
"""How much less of its error than elsewhere a model has where it was trained, at least."""


def size_of(forest: "Forest") -> dict[str, Any]:
    """Return how large a forest is."""
    return {"trees": forest.n_trees, "nodes": forest.n_nodes, "max_depth": forest.max_depth}


def origin_of(forest: "Forest") -> dict[str, Any]:
    """Return what kind of model a forest came from, and what it predicts."""
    from forestprune.text import constraints

    origin = forest.origin
    return {
        "library": None if origin is None else origin.library,
        "class": "Forest" if origin is None else origin.model_class,
        "predicts": "y" if origin is None else origin.predicts,
        "outputs": forest.n_outputs,
        **constraints(forest),
    }


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
    # Rounded up, so that a tree among thousands still shows.
    lengths = [-(-entry["trees"] * _LONGEST_BAR // most) for entry in histogram]
    return [
        f"  {label:>{width}}  {'#' * length} {entry['trees']:,}"
        for label, length, entry in zip(labels, lengths, histogram, strict=True)
    ]


def describe(work: Work, small: "PrunedForest", options: "Options") -> dict[str, Any]:
    """Return what came of pruning."""
    full, pruned = scores(work, small)
    shrinkage = options.shrinkages[0] if options.new_values else None
    return {
        **origin_of(work.source.forest),
        "target": list(work.targets) or None,  # none: its own predictions
        "rows": len(work.rows),
        "rows_held_out": work.n_held_out,
        "held_out_from": str(work.division) if work.division else None,
        "full": size_of(work.source.forest) | full,
        "small": size_of(small.forest) | pruned,
        "alpha": small.alpha,
        "shrinkage": small.report.get("shrinkage", shrinkage),
        "loss": small.loss,
    }


Scores = dict[str, float | str | None]


def scores(work: Work, small: "PrunedForest") -> tuple[Scores, Scores]:
    """Return how the full and the small model do on the rows held out; None if there are none.

    Without a target the full model is right by definition, and no error is in units of it.
    """
    rows = work.held_out
    unknown: Scores = dict.fromkeys(("r_squared", "rmse", "mae"))
    if rows is None or len(rows) < 2:  # of one row there is no R squared
        return unknown, dict(unknown)
    routed = _routed(work, rows)
    found = []
    for raw in (routed.full, _by_output(small.decision_function(rows.X))):
        measured = measure(routed, raw)
        known: Scores = {"r_squared": measured.score, "score": _score_name(routed)}
        if work.targets:
            known |= measured.metrics
        found.append(unknown | known)
    return found[0], found[1]


def doubt(work: Work, full_score: float | None) -> str | None:
    """Return what to say of a model that does strangely on the rows held out."""
    if full_score is None or not work.targets:
        return None
    if full_score < 0.0:
        return (
            f"the model itself does worse than a constant on the rows held out (R squared "
            f"{full_score:.4g}): does --target name the column that it was trained to predict?"
        )
    if work.division.file is None or work.n_held_out < _ENOUGH:
        return None
    here = _score_of_some(work)
    if here is not None and 1.0 - full_score < _MUCH_LESS * (1.0 - here):
        return (
            f"the model does far better on the rows held out (R squared {full_score:.4g}) than on "
            f"those to prune with ({here:.4g}): were the former, not the latter, its training rows?"
        )
    return None


def _score_of_some(work: Work) -> float | None:
    """Return R squared of the full model on some of the rows to prune with, if they tell."""
    rows = work.rows.some()
    weighed = rows.weight is None or bool(rows.weight.any())
    if rows.y is None or len(rows) < _ENOUGH or not weighed or not rows.y.std():
        return None
    routed = _routed(work, rows)
    return measure(routed, routed.full).score


def _routed(work: Work, rows: "Rows") -> "RoutedRows":
    from forestprune.select.routed import RoutedRows

    return RoutedRows.of(work.source, rows.X, rows.y, rows.weight)


def _score_name(rows: "RoutedRows") -> str:
    return "R squared" if rows.loss.quadratic and not rows.is_classes else "D squared"


def _by_output(raw: Any) -> Any:
    return np.atleast_2d(np.asarray(raw, np.float64).T)


def measure(rows: "RoutedRows", raw: Any) -> "Measured":
    """Return how well raw predictions for some rows do."""
    from forestprune.select.scoring import yardstick_for

    return yardstick_for(rows).measure(raw)


def table(document: dict[str, Any]) -> "Table":
    """Return what came of pruning, as a table for people."""
    from rich.table import Table

    full, small = document["full"], document["small"]
    result = Table(box=None, pad_edge=False)
    for heading in ("", "full", "small", "full / small"):
        result.add_column(heading, justify="right" if heading else "left")
    names = {"max_depth": "deepest tree", "bytes": "file, bytes"}
    endings = {Path(document[key]).suffix.lower() for key in ("model", "out") if key in document}
    for key in ("trees", "nodes", "max_depth", "bytes"):
        name, ratio = names.get(key, key), f"{full[key] / small[key]:,.1f}" if small[key] else ""
        if key == "bytes" and len(endings) > 1:
            name, ratio = f"{name} (other formats)", ""
        result.add_row(name, f"{full[key]:,}", f"{small[key]:,}", ratio)
    label = full.get("score") or "R squared"
    label = label if document["target"] else f"{label} of the model's own prediction"
    if full["r_squared"] is not None:
        label = f"{label}, {document['rows_held_out']:,} rows held out"
        result.add_row(label, f"{full['r_squared']:.4f}", f"{small['r_squared']:.4f}")
        for key, after in small.items():
            if key in ("rmse", "mae") and after is not None:
                label = f"{key.upper()}, in units of the target"
                result.add_row(label, f"{full[key]:.4g}", f"{after:.4g}")
            elif key in _OF_CLASSES:
                result.add_row(key.replace("_", " "), f"{full[key]:.4g}", f"{after:.4g}")
    else:
        pruned_with = f"{label}, rows it was pruned with"
        result.add_row(pruned_with, "not measured", f"{1.0 - document['loss']:.4f}")
    return result
