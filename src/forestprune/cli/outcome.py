"""What came of pruning, in numbers: for machines, and as a table for people."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from forestprune.cli.work import Work

if TYPE_CHECKING:
    from rich.table import Table

    from forestprune.pruned import PrunedForest


def describe(
    work: Work, small: "PrunedForest", full_bytes: int, small_bytes: int
) -> dict[str, Any]:
    """Return what came out, in numbers."""
    from forestprune.cli.scores import scores
    from forestprune.cli.summary import origin_of, size_of

    full_score, small_score = scores(work, small)
    return {
        **origin_of(work.source.forest),
        "target": "column" if work.labelled else "own predictions",
        "rows": len(work.rows),
        "rows_held_out": 0 if work.held_out is None else len(work.held_out),
        "full": size_of(work.source.forest, full_bytes) | {"r_squared": full_score},
        "small": size_of(small.forest, small_bytes) | {"r_squared": small_score},
        "alpha": small.alpha,
        "shrinkage": small.report.get("shrinkage"),
        "loss": small.loss,
    }


def doubt(full_score: float | None) -> str | None:
    """Return what to say of a model that is no good on the rows it shall be compared on."""
    if full_score is None or full_score >= 0.0:
        return None
    return (
        f"the model itself does worse than a constant on the rows held out (R squared "
        f"{full_score:.4g}): does --target name the column that it was trained to predict?"
    )


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
        comparable = small[key] and (key != "bytes" or len(endings) == 1)
        ratio = f"{full[key] / small[key]:,.1f}" if comparable else ""
        result.add_row(name, f"{full[key]:,}", f"{small[key]:,}", ratio)
    if full["r_squared"] is not None:
        own = document["target"] == "own predictions"
        whose = " against the full model" if own else ""
        label = f"R squared{whose}, {document['rows_held_out']:,} rows held out"
        result.add_row(label, f"{full['r_squared']:.4f}", f"{small['r_squared']:.4f}")
    return result
