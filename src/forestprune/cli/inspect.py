"""`forestprune inspect`: what is in a model file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from forestprune.cli.errors import WrongCallError
from forestprune.cli.output import Output
from forestprune.cli.parameters import OUTPUT, Json, ModelFile, Quiet, Trust

if TYPE_CHECKING:
    from rich.table import Table

    from forestprune.forest.forest import Forest
    from forestprune.interop.source import Source

Reading = Literal["text", "formula"]


def inspect(
    model: ModelFile,
    trust: Trust = False,
    read_as: Annotated[
        Reading | None,
        typer.Option(
            "--as",
            help="Print the model itself, in words or as a Python expression; for small ones.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show what is in a model file: its class, its size, the depths of its trees; or all of it."""
    output = Output(as_json=json, quiet=quiet)
    with output.working():
        if quiet and read_as is not None:
            raise WrongCallError("--quiet and --as exclude each other: nothing would come out.")

        from forestprune.cli.models import read_source
        from forestprune.cli.summary import bars
        from forestprune.text import constraints_in_words

        source = read_source(model, trust=trust)
        document = _describe(model, source)
        shown: list[Any] = [_table(document, constraints_in_words(source.forest))]
        if document["depths"]:
            shown += ["", "trees by depth", *bars(document["depths"])]
        if read_as is not None:
            document[read_as] = shown = _written_down(source.forest, read_as)
            if len(shown) > 1:
                shown = [f"# Output {number}\n{part}\n" for number, part in enumerate(shown)]
    output.result(document, *shown)


def _written_down(forest: "Forest", read_as: Reading) -> list[str]:
    """Return the model in words or as an expression, once for each output."""
    from forestprune.text import to_formula, to_text

    write = to_text if read_as == "text" else to_formula
    return [write(forest, output=number) for number in range(forest.n_outputs)]


def _describe(path: Path, source: "Source") -> dict[str, Any]:
    from forestprune.cli.summary import depth_histogram, origin_of, size_of

    forest = source.forest
    steps = [] if source.pipeline is None else [type(s).__name__ for _, s in source.pipeline.steps]
    return {
        "model": str(path),
        **origin_of(forest),
        "pipeline": steps,
        **size_of(forest),
        "bytes": path.stat().st_size,
        "features": forest.n_features,
        "features_used": len({*forest.feature.tolist()} - {-1}),
        "depths": depth_histogram(forest),
    }


def _table(document: dict[str, Any], constraints: str) -> "Table":
    from rich.table import Table

    lines = {
        "model": document["model"],
        "class": f"{document['class']} ({document['library'] or 'forestprune'})",
        "pipeline": ", ".join(document["pipeline"]),
        "predicts": document["predicts"],
        "outputs": f"{document['outputs']:,}" if document["outputs"] > 1 else "",
        "constraints": constraints,
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
