"""`forestprune inspect`: what is in a model file."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from forestprune.cli.arguments import Json, ModelFile, Quiet, Trust
from forestprune.cli.output import Output

if TYPE_CHECKING:
    from rich.table import Table

    from forestprune.source import Source


def inspect(
    model: ModelFile, trust: Trust = False, json: Json = False, quiet: Quiet = False
) -> None:
    """Say what is in a model file: its class, its size, how deep its trees are."""
    output = Output(as_json=json, quiet=quiet)
    with output.working():
        from forestprune.cli.models import read_source
        from forestprune.cli.summary import bars

        document = _describe(model, read_source(model, trust=trust))
        shown = [_table(document), *_histogram(bars(document["depths"]))]
    output.result(document, *shown)


def _describe(path: Path, source: "Source") -> dict[str, Any]:
    from forestprune.cli.summary import depth_histogram, features_used, origin_of, size_of

    forest = source.forest
    steps = [] if source.pipeline is None else [type(s).__name__ for _, s in source.pipeline.steps]
    return {
        "model": str(path),
        **origin_of(forest),
        "pipeline": steps,
        **size_of(forest, path.stat().st_size),
        "features": forest.n_features,
        "features_used": features_used(forest),
        "depths": depth_histogram(forest),
    }


def _table(document: dict[str, Any]) -> "Table":
    from rich.table import Table

    library = "forestprune" if document["library"] is None else document["library"]
    lines = {
        "model": document["model"],
        "class": f"{document['class']} ({library})",
        "pipeline": ", ".join(document["pipeline"]),
        "predicts": document["predicts"],
        "outputs": f"{document['outputs']:,}" if document["outputs"] > 1 else "",
        "trees": f"{document['trees']:,}",
        "nodes": f"{document['nodes']:,}",
        "deepest tree": f"{document['max_depth']:,}",
        "file, bytes": f"{document['bytes']:,}",
        "features used": f"{document['features_used']:,} of {document['features']:,}",
    }
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, entry in lines.items():
        if entry:
            table.add_row(name, entry)
    return table


def _histogram(lines: list[str]) -> list[str]:
    return ["", "trees by depth", *lines] if lines else []
