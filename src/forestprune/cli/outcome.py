"""What came of pruning, in numbers: for machines, and as a table for people."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from forestprune.cli.work import Work

if TYPE_CHECKING:
    from rich.table import Table

    from forestprune.select.pruned import PrunedForest

MUCH_LESS = 0.5
"""How much less of its error than elsewhere a model has where it was trained, at least."""


def describe(
    work: Work,
    small: "PrunedForest",
    options: dict[str, Any],
    *,
    full_bytes: int,
    small_bytes: int,
) -> dict[str, Any]:
    """Return what came out, in numbers."""
    from forestprune.cli.scores import scores
    from forestprune.cli.summary import origin_of, size_of
    from forestprune.options import Options

    full_score, small_score = scores(work, small)
    how = Options.of(options)
    return {
        **origin_of(work.source.forest),
        "target": list(work.targets) or None,  # none: its own predictions
        "rows": len(work.rows),
        "rows_held_out": 0 if work.held_out is None else len(work.held_out),
        "held_out_from": str(work.division) if work.division else None,
        "full": size_of(work.source.forest, full_bytes) | {"r_squared": full_score},
        "small": size_of(small.forest, small_bytes) | {"r_squared": small_score},
        "alpha": small.alpha,
        "shrinkage": small.report.get("shrinkage", how.shrinkages[0] if how.new_values else None),
        "loss": small.loss,
    }


def doubt(work: Work, full_score: float | None) -> str | None:
    """Return what to say of a model that does strangely on the rows it shall be compared on."""
    if full_score is None or not work.labelled:
        return None
    if full_score < 0.0:
        return (
            f"the model itself does worse than a constant on the rows held out (R squared "
            f"{full_score:.4g}): does --target name the column that it was trained to predict?"
        )
    if work.division.file is None or work.held_out is None:
        return None
    from forestprune.cli.scores import ENOUGH, score_of_some

    here = score_of_some(work) if len(work.held_out) >= ENOUGH else None
    if here is not None and 1.0 - full_score < MUCH_LESS * (1.0 - here):
        return (
            f"the model does far better on the rows held out (R squared {full_score:.4g}) than on "
            f"those to prune with ({here:.4g}): were the former, not the latter, its training rows?"
        )
    return None


def table(document: dict[str, Any]) -> "Table":
    """Return what came out, as people like to see it."""
    from rich.table import Table

    full, small = document["full"], document["small"]
    result = Table(box=None, pad_edge=False)
    for heading in ("", "full", "small", "full / small"):
        result.add_column(heading, justify="right" if heading else "left")
    names = {
        "trees": "trees",
        "nodes": "nodes",
        "max_depth": "deepest tree",
        "bytes": "file, bytes",
    }
    endings = {Path(document[key]).suffix.lower() for key in ("model", "out") if key in document}
    for key, name in names.items():
        ratio = f"{full[key] / small[key]:,.1f}" if small[key] else ""
        if key == "bytes" and len(endings) > 1:
            name, ratio = f"{name} (other formats)", ""
        result.add_row(name, f"{full[key]:,}", f"{small[key]:,}", ratio)
    label = "R squared" if document["target"] else "R squared against the full model"
    if full["r_squared"] is not None:
        label = f"{label}, {document['rows_held_out']:,} rows held out"
        result.add_row(label, f"{full['r_squared']:.4f}", f"{small['r_squared']:.4f}")
    else:
        pruned_with = f"{label}, rows it was pruned with"
        result.add_row(pruned_with, "not measured", f"{1.0 - document['loss']:.4f}")
    return result
