"""`forestprune bench`: what pruning takes and gains on this machine, side by side."""

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forestprune.cli.output import Output
from forestprune.cli.parameters import Json, Quiet

if TYPE_CHECKING:
    from rich.table import Table

_COLUMNS = {
    "model": "",
    "nodes": "nodes",
    "fit_seconds": "fit, s",
    "read": "read",
    "prune": "prune",
    "export": "export",
    "file_ratio": "file",
    "predict_ratio": "predict",
    "error_ratio": "error",
}
"""What is shown of a model; ratios but for the first three."""


def bench(
    rows: Annotated[
        int, typer.Option(min=100, metavar="N", help="Rows of the generated data.")
    ] = 4000,
    trees: Annotated[int, typer.Option(min=1, metavar="N", help="Trees of each model.")] = 100,
    nodes: Annotated[
        int, typer.Option(min=3, metavar="N", help="Nodes that models are pruned to.")
    ] = 500,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure on generated data what it takes to read, prune and export models, and what it gains.

    One model of each library that is installed; all run on one core, except the pruning.
    """
    output = Output(as_json=json, quiet=quiet)
    with output.working():
        from forestprune.bench import measure

        output.note(
            f"{rows:,} rows, {trees} trees, pruned to {nodes:,} nodes; {os.cpu_count()} cores. The "
            "first run after an installation compiles: the second counts."
        )
        measured = measure(rows, trees, nodes)
        document = {"rows": rows, "trees": trees, "max_nodes": nodes, "models": measured}
        shown = [
            _table(measured),
            "read, prune, export: time over that of the fit. file, predict, error: the full "
            "model's size, time and test error over the small one's; above 1 the small "
            "one is better.",
        ]
    output.result(document, *shown)


def _table(lines: list[dict[str, Any]]) -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in _COLUMNS.values():
        table.add_column(heading, justify="right" if heading else "left", no_wrap=not heading)
    for line in lines:
        shown = line | {"model": line["model"].removesuffix("Regressor")}
        table.add_row(*(_cell(shown[name]) for name in _COLUMNS))
    return table


def _cell(entry: Any) -> str:
    if isinstance(entry, float):
        return f"{entry:.2g}" if entry < 1 else f"{entry:,.2f}" if entry < 100 else f"{entry:,.0f}"
    return entry if isinstance(entry, str) else f"{entry:,}"
