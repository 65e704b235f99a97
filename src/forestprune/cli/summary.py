"""Models in numbers, as commands show them: what is in a file, and what came of pruning."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from forestprune.cli.work import Work

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from forestprune.forest.forest import Forest
    from forestprune.options import Options
    from forestprune.select.path import PruningPath
    from forestprune.select.pruned import PrunedForest
    from forestprune.select.routed import RoutedRows
    from forestprune.select.scoring import Scoring
    from forestprune.tables.rows import Rows

_MOST_BARS = 20
_LONGEST_BAR = 40

_SPLITS = ("splits", "new_splits")
"""What is said of a model whose splits were to be chosen anew."""

_ENOUGH = 100
"""Rows from which on a score says something of others."""

_MUCH_LESS = 0.5
"""How much less of its error than elsewhere a model has where it was trained, at least."""


def size_of(forest: "Forest") -> dict[str, Any]:
    """Return how large a forest is."""
    return {
        "trees": forest.n_trees,
        "nodes": forest.n_nodes,
        "max_depth": forest.max_depth,
        "features_used": forest.n_features_used,
        "thresholds": forest.n_thresholds,
    }


def count_new_splits(forest: "Forest") -> int | None:
    """Return how many splits were chosen anew; None if a file does not tell, as native ones."""
    from forestprune.forest.new_splits import NEW_SPLIT, new_splits

    if NEW_SPLIT not in forest.node_extras:
        return None
    return int(np.count_nonzero(new_splits(forest)))


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


def describe(work: Work, path: "PruningPath", place: int, options: "Options") -> dict[str, Any]:
    """Return what came of pruning: one model of a path."""
    small, other = path[place], None
    if options.polish == "split":
        other = _counterpart(path, place)
    models = [small] if other is None else [small, other]
    full, pruned, *rest = scores(work, models, options.scoring)
    shrinkage = options.shrinkages[0] if options.new_values else None
    told: dict[str, Any] = {}
    if options.polish == "split":
        pruned |= _splits_of(small)
        found = None
        if other is not None:
            found = size_of(other.forest) | rest[0] | _splits_of(other) | {"loss": other.loss}
        told["polish"] = {"taken": path.points[place].forest is not None, "other": found}
    return {
        **origin_of(work.source.forest),
        "target": list(work.targets) or None,  # none: its own predictions
        "rows": len(work.rows),
        "rows_held_out": work.n_held_out,
        "held_out_from": str(work.division) if work.division else None,
        "score": score_of(work),
        "scoring": None if options.scoring is None else str(options.scoring),
        "full": size_of(work.source.forest) | full,
        "small": size_of(small.forest) | pruned,
        "alpha": small.alpha,
        "shrinkage": small.report.get("shrinkage", shrinkage),
        "loss": small.loss,
        "certificate": None if small.certificate is None else small.certificate.to_dict(),
        **told,
    }


def _counterpart(path: "PruningPath", place: int) -> "PrunedForest | None":
    """Return the model that is only pruned beside one with new splits, or the other way round."""
    from forestprune.select.beside import Beside

    beside = Beside.of(path.points, place)
    if beside is None:
        return None
    if place != beside.pruned:
        return path[beside.pruned]
    errors = path.losses if path.validation is None else -path.validation.scores
    return path[min(beside.polished, key=lambda each: float(errors[each]))]


def _splits_of(small: "PrunedForest") -> dict[str, Any]:
    return dict(zip(_SPLITS, (small.n_splits, small.n_new_splits), strict=True))


Scores = dict[str, float | None]


def scores(work: Work, models: "Sequence[PrunedForest]", scoring: "Scoring" = None) -> list[Scores]:
    """Return how the full model and some others do on the rows held out; None if there are none.

    The share of the loss that is explained comes first, then what `scoring` says, if it is given.
    Without a target the full model is right by definition, and there are no other figures.
    """
    from forestprune.select.figures import column_name
    from forestprune.select.scoring import judge_for

    rows = work.held_out
    if rows is None or len(rows) < 2:  # of one row nothing is explained
        return [unknown(work) for _ in range(1 + len(models))]
    routed = _routed(work, rows)
    judges = [judge_for(routed, asked) for asked in dict.fromkeys((None, scoring))]
    found = []
    for raw in (routed.full, *(_by_output(each.decision_function(rows.X)) for each in models)):
        judged = [judge.judge(raw) for judge in judges]
        told = zip(judges, judged, strict=True)
        known: Scores = {column_name(judge.name): each.score for judge, each in told}
        found.append(unknown(work) | known | (dict(judged[0].metrics) if work.targets else {}))
    return found


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
        column, advice = "the column that it was trained to predict", ""
        if origin is not None and origin.classes:
            if not isinstance(origin.classes[0], str):
                column += ", with classes numbered as they were then"
            advice = " If so, it is too sure of itself."
        elif origin is not None and origin.link == "log":
            advice = " If it was with the log of exposure as an offset, give rates for --target, "
            advice += "and exposure for --weight."
        return (
            f"the model itself does worse than a constant on the rows held out ({name} "
            f"{full_score:.4g}): does --target name {column}?{advice}"
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
    """Return what came of pruning, as a table for people.

    Where splits were chosen anew, beside what would have come without, or the other way round.
    """
    from rich.table import Table

    from forestprune.select.figures import IN_UNITS, LABELS, column_name

    full, small = document["full"], document["small"]
    models = {"full": full, **_beside(document), "small": small | {"loss": document["loss"]}}
    result = Table(box=None, pad_edge=False)
    for heading in ("", *models, "full / small"):
        result.add_column(heading, justify="right" if heading else "left")

    def cells(key: str, spelled: Callable[[Any], str]) -> list[str]:
        return [spelled(each[key]) if key in each else "" for each in models.values()]

    names = {
        "max_depth": "deepest tree",
        "features_used": "features used",
        "thresholds": "different thresholds",
        "bytes": "file, bytes",
    }
    endings = {Path(document[key]).suffix.lower() for key in ("model", "out") if key in document}
    sizes = ("trees", "nodes", "max_depth", "features_used", "thresholds", "bytes")
    for key in sizes:
        name, ratio = names.get(key, key), f"{full[key] / small[key]:,.1f}" if small[key] else ""
        if key == "bytes" and len(endings) > 1:
            name, ratio = f"{name} (other formats)", ""
        result.add_row(name, *cells(key, "{:,}".format), ratio)
    if "counted" in document:
        counted = document["counted"]
        empty = [""] * (len(models) - 1)
        result.add_row(f"as {counted['format']}, bytes", *empty, f"{counted['bytes']:,}", "")
    if "new_splits" in small:
        for key, name in zip(_SPLITS, ("splits", "of these new"), strict=True):
            result.add_row(name, *cells(key, "{:,}".format))
    score = document["score"]
    label = score if document["target"] else f"{score} of the model's own prediction"
    if full[column_name(score)] is None:
        pruned_with = f"{label}, rows it was pruned with"
        _, *measured = cells("loss", lambda loss: f"{1.0 - loss:.4f}")
        result.add_row(pruned_with, "not measured", *measured)
        return result
    label = f"{label}, {document['rows_held_out']:,} rows held out"
    for key, after in small.items():
        if key in (*sizes, *_SPLITS) or after is None:
            continue
        digits = ".4f" if key == column_name(score) else ".4g"
        name = label if key == column_name(score) else LABELS.get(key, key)
        name += ", in units of the target" if key in IN_UNITS else ""
        result.add_row(name, *cells(key, f"{{:{digits}}}".format))
    return result


def _beside(document: dict[str, Any]) -> dict[str, Any]:
    """Return by name what the small model was preferred to, if its splits were to be chosen anew.

    Not if that is the full model, which is shown already.
    """
    polish = document.get("polish")
    if polish is None or polish["other"] is None:
        return {}
    if not polish["taken"]:
        return {"with new splits": polish["other"]}
    if polish["other"]["nodes"] == document["full"]["nodes"]:
        return {}
    return {"only pruned": polish["other"]}


def about_polish(document: dict[str, Any]) -> list[str]:
    """Return what to say of a model that has no new splits although they were asked for."""
    polish = document.get("polish")
    if polish is None or polish["taken"]:
        return []
    if polish["other"] is None:
        why = "no model with new splits was found that keeps to what was asked for"
    elif {"tolerance", "one_standard_error"} & document["asked"].keys():
        why = "with new splits, no smaller model is good enough"
    else:
        why = "on the rows held out, new splits are no better by more than chance"
    pruned = document["small"]["nodes"] < document["full"]["nodes"]
    return [f"{why}: the small model is {'only pruned' if pruned else 'the model as it was'}."]


def about_gap(small: "PrunedForest") -> list[str]:
    """Return how far from the best pruning a model can be, if that was asked for."""
    return [] if small.certificate is None else [small.certificate.in_words()]
