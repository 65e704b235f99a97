"""Models in numbers, as commands show them: what is in a file, and what came of pruning."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from forestprune.cli.work import Work

if TYPE_CHECKING:
    from rich.table import Table

    from forestprune.forest.forest import Forest
    from forestprune.options import Options
    from forestprune.select.pruned import PrunedForest
    from forestprune.select.routed import RoutedRows
    from forestprune.select.scoring import Scoring
    from forestprune.tables.rows import Rows

_MOST_BARS = 20
_LONGEST_BAR = 40

_ENOUGH = 100
"""Rows from which on a score says something of others."""

_MUCH_LESS = 0.5
"""How much less of its error than elsewhere a model has where it was trained, at least."""


def size_of(forest: "Forest") -> dict[str, Any]:
    """Return how large a forest is."""
    return {"trees": forest.n_trees, "nodes": forest.n_nodes, "max_depth": forest.max_depth}


def origin_of(forest: "Forest") -> dict[str, Any]:
    """Return what kind of model a forest came from, and what it predicts."""
    from forestprune.text import constraints, meaning

    origin = forest.origin
    return {
        "library": None if origin is None else origin.library,
        "class": "Forest" if origin is None else origin.model_class,
        "predicts": meaning(origin).total,
        "objective": None if origin is None else origin.objective,
        "link": "identity" if origin is None else origin.link,
        "classes": None if origin is None else list(origin.classes) or None,
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
    full, pruned = scores(work, small, options.scoring)
    shrinkage = options.shrinkages[0] if options.new_values else None
    return {
        **origin_of(work.source.forest),
        "target": list(work.targets) or None,  # none: its own predictions
        "rows": len(work.rows),
        "rows_held_out": work.n_held_out,
        "held_out_from": str(work.division) if work.division else None,
        "score": score_of(work),
        "full": size_of(work.source.forest) | full,
        "small": size_of(small.forest) | pruned,
        "alpha": small.alpha,
        "shrinkage": small.report.get("shrinkage", shrinkage),
        "loss": small.loss,
    }


Scores = dict[str, float | None]


def scores(work: Work, small: "PrunedForest", scoring: "Scoring" = None) -> tuple[Scores, Scores]:
    """Return how the full and the small model do on the rows held out; None if there are none.

    The share of the loss that is explained comes first, then what `scoring` says, if it is given.
    Without a target the full model is right by definition, and there are no other figures.
    """
    from forestprune.select.figures import column_name
    from forestprune.select.scoring import judge_for

    rows = work.held_out
    if rows is None or len(rows) < 2:  # of one row nothing is explained
        return unknown(work), unknown(work)
    routed = _routed(work, rows)
    judges = [judge_for(routed, asked) for asked in dict.fromkeys((None, scoring))]
    found = []
    for raw in (routed.full, _by_output(small.decision_function(rows.X))):
        judged = [judge.judge(raw) for judge in judges]
        told = zip(judges, judged, strict=True)
        known: Scores = {column_name(judge.name): each.score for judge, each in told}
        found.append(unknown(work) | known | (dict(judged[0].metrics) if work.targets else {}))
    return found[0], found[1]


def unknown(work: Work) -> Scores:
    """Return the score and the other figures of such a model by name, all unknown."""
    from forestprune.select.figures import IN_UNITS, OF_CLASSES, column_name

    origin = work.source.forest.origin
    figures = OF_CLASSES if origin is not None and origin.classes else IN_UNITS
    return dict.fromkeys((column_name(score_of(work)), *figures))


def score_of(work: Work) -> str:
    """Return what the share of the loss that is explained is called."""
    from forestprune.loss import loss_for
    from forestprune.select.figures import share_explained

    origin = work.source.forest.origin
    return share_explained(loss_for(origin, labelled=bool(work.targets)), origin)


def doubt(work: Work, full_score: float | None) -> str | None:
    """Return what to say of a model that does strangely on the rows held out.

    `full_score` is the share of the loss that it explains there, None if that is not known.
    """
    if full_score is None or not work.targets:
        return None
    name, origin = score_of(work), work.source.forest.origin
    if full_score < 0.0:
        sure = " If so, it is too sure of itself." if origin is not None and origin.classes else ""
        return (
            f"the model itself does worse than a constant on the rows held out ({name} "
            f"{full_score:.4g}): does --target name the column that it was trained to predict?"
            f"{sure}"
        )
    if work.division.file is None or work.n_held_out < _ENOUGH:
        return None
    here = explained(work, work.rows.some())
    if here is not None and 1.0 - full_score < _MUCH_LESS * (1.0 - here):
        return (
            f"the model does far better on the rows held out ({name} {full_score:.4g}) than on "
            f"those to prune with ({here:.4g}): were the former, not the latter, its training rows?"
        )
    return None


def explained(work: Work, rows: "Rows") -> float | None:
    """Return the share of the loss that the full model explains on some rows, if they tell."""
    weighed = rows.weight is None or bool(rows.weight.any())
    if rows.y is None or len(rows) < _ENOUGH or not weighed or bool((rows.y == rows.y[0]).all()):
        return None
    from forestprune.select.scoring import judge_for

    routed = _routed(work, rows)
    return judge_for(routed, None).judge(routed.full).score


def _routed(work: Work, rows: "Rows") -> "RoutedRows":
    from forestprune.select.routed import RoutedRows

    return RoutedRows.of(work.source, rows.X, rows.y, rows.weight)


def _by_output(raw: Any) -> Any:
    return np.atleast_2d(np.asarray(raw, np.float64).T)


def table(document: dict[str, Any]) -> "Table":
    """Return what came of pruning, as a table for people."""
    from rich.table import Table

    from forestprune.select.figures import IN_UNITS, LABELS, column_name

    full, small = document["full"], document["small"]
    result = Table(box=None, pad_edge=False)
    for heading in ("", "full", "small", "full / small"):
        result.add_column(heading, justify="right" if heading else "left")
    names = {"max_depth": "deepest tree", "bytes": "file, bytes"}
    endings = {Path(document[key]).suffix.lower() for key in ("model", "out") if key in document}
    sizes = ("trees", "nodes", "max_depth", "bytes")
    for key in sizes:
        name, ratio = names.get(key, key), f"{full[key] / small[key]:,.1f}" if small[key] else ""
        if key == "bytes" and len(endings) > 1:
            name, ratio = f"{name} (other formats)", ""
        result.add_row(name, f"{full[key]:,}", f"{small[key]:,}", ratio)
    score = document["score"]
    label = score if document["target"] else f"{score} of the model's own prediction"
    if full[column_name(score)] is None:
        pruned_with = f"{label}, rows it was pruned with"
        result.add_row(pruned_with, "not measured", f"{1.0 - document['loss']:.4f}")
        return result
    label = f"{label}, {document['rows_held_out']:,} rows held out"
    for key, after in small.items():
        if key in sizes or after is None:
            continue
        digits = ".4f" if key == column_name(score) else ".4g"
        name = label if key == column_name(score) else LABELS.get(key, key)
        name += ", in units of the target" if key in IN_UNITS else ""
        result.add_row(name, f"{full[key]:{digits}}", f"{after:{digits}}")
    return result
