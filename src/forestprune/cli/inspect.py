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

_MOST_CLASSES = 30
"""How many classes are named."""

_PROPER_NAMES = {"brier": "Brier score", "poisson": "Poisson loss"}
"""Losses whose names here do not say enough of them, or not as people write it."""


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
        from forestprune.text import constraints_in_words, meaning
        from forestprune.text.meaning import capitalised

        source = read_source(model, trust=trust)
        origin = source.forest.origin
        document = _describe(model, source)
        shown: list[Any] = [_table(document, constraints_in_words(source.forest))]
        if document["depths"]:
            shown += ["", "trees by depth", *bars(document["depths"])]
        if read_as is not None:
            document[read_as] = shown = _written_down(source.forest, read_as)
            if len(shown) > 1:
                names = [capitalised(meaning(origin).named(k)) for k in range(len(shown))]
                told = zip(names, shown, strict=True)
                shown = [f"# {name}\n{part}\n" for name, part in told]
    output.result(document, *shown)


def _written_down(forest: "Forest", read_as: Reading) -> list[str]:
    """Return the model in words or as an expression, for each output unless words are of all."""
    from forestprune.text import to_formula, to_text
    from forestprune.text.additive import is_read_whole

    if read_as == "text" and is_read_whole(forest):
        return [to_text(forest)]
    write = to_text if read_as == "text" else to_formula
    return [write(forest, output=number) for number in range(forest.n_outputs)]


def _describe(path: Path, source: "Source") -> dict[str, Any]:
    from forestprune.cli.summary import count_new_splits, depth_histogram, origin_of, size_of

    forest = source.forest
    steps = [] if source.pipeline is None else [type(s).__name__ for _, s in source.pipeline.steps]
    return {
        "model": str(path),
        **origin_of(forest),
        "class_weights": _weights_of(forest),
        "pipeline": steps,
        **size_of(forest),
        "bytes": path.stat().st_size,
        "new_splits": count_new_splits(forest),
        "features": forest.n_features,
        "depths": depth_histogram(forest),
    }


def _weights_of(forest: "Forest") -> str | list[float] | None:
    """Return what rows of each class count for; None if that was the same for all."""
    weights = () if forest.origin is None else forest.origin.class_weight
    return weights if isinstance(weights, str) else list(weights) or None


def _class_weights(weights: str | list[float] | None) -> str:
    if isinstance(weights, list):
        return ", ".join(f"{weight:.4g}" for weight in weights)
    return "" if weights is None else weights.replace("_", " ")


def _table(document: dict[str, Any], constraints: str) -> "Table":
    from rich.table import Table

    from forestprune.forest.frames import listed

    lines = {
        "model": document["model"],
        "class": f"{document['class']} ({document['library'] or 'forestprune'})",
        "pipeline": ", ".join(document["pipeline"]),
        "predicts": document["predicts"],
        "classes": listed(document["classes"], _MOST_CLASSES) if document["classes"] else "",
        "class weights": _class_weights(document["class_weights"]),
        "trained for": _trained_for(document),
        "outputs": f"{document['outputs']:,}" if document["outputs"] > 1 else "",
        "constraints": constraints,
        "trees": f"{document['trees']:,}",
        "nodes": f"{document['nodes']:,}",
        "deepest tree": f"{document['max_depth']:,}",
        "different thresholds": f"{document['thresholds']:,}",
        "new splits": _new_splits(document),
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


def _new_splits(document: dict[str, Any]) -> str:
    """Return how many splits were chosen anew, if some were."""
    if not document["new_splits"]:
        return ""
    n_splits = (document["nodes"] - document["trees"]) // 2
    return f"{document['new_splits']:,} of {n_splits:,}: the original model does not have them"


def _trained_for(document: dict[str, Any]) -> str:
    """Return the loss that a model was trained for, and its link if it has one."""
    objective, link = document["objective"], document["link"]
    if objective in (None, "unknown"):
        return "" if link == "identity" else f"a loss with the link {link}"
    words = _PROPER_NAMES.get(objective, objective.replace("_", " "))
    return words if link == "identity" else f"{words}, link {link}"
