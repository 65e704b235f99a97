"""`forestprune export`: a model as C, ONNX or treelite's."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from forestprune.cli.errors import WrongCallError
from forestprune.cli.parameters import OUTPUT, ModelFile, Printing, Trust, taking

if TYPE_CHECKING:
    from rich.table import Table

    from forestprune.forest.forest import Forest

Kind = Literal["c", "onnx", "treelite"]

_ENDINGS = {"c": ".h", "onnx": ".onnx", "treelite": ".tl"}
_PANEL = "How"


def export(
    model: ModelFile,
    to: Annotated[
        Kind,
        typer.Option(
            "--to",
            help="What the model becomes: one header in C, or a file.",
            rich_help_panel=_PANEL,
        ),
    ],
    out: Annotated[
        Path,
        taking(
            "FILE",
            "Where it goes; its name ends in .h, .onnx or .tl.",
            "--out",
            "-o",
            panel=OUTPUT,
        ),
    ],
    printing: Printing,
    trust: Trust = False,
    name: Annotated[
        str | None, taking("NAME", "What functions in C are called (default: model).", panel=_PANEL)
    ] = None,
    dtype: Annotated[
        Literal["float64", "float32"] | None,
        typer.Option(
            "--dtype",
            help="Numbers in C: of rows, sums and predictions (default: float64).",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    layout: Annotated[
        Literal["tables", "branches"] | None,
        typer.Option(
            "--layout",
            help="Tables, which are small, or nested conditions, which are fast (default: tables).",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    leaves: Annotated[
        Literal["float64", "float32", "int16", "int8"] | None,
        typer.Option(
            "--leaves",
            help="As what C keeps the values of leaves (default: as --dtype says).",
            rich_help_panel=_PANEL,
        ),
    ] = None,
) -> None:
    """Write a model as C, ONNX or treelite's, to run where its library does not.

    Of a pipeline its last step. C needs no library and no compiler here; if there is gcc, the size
    of what it makes of the header is shown. ONNX needs onnx, and treelite needs treelite.
    """
    output = printing.output()
    with output.working():
        given = {"name": name, "dtype": dtype, "layout": layout, "leaves": leaves}
        given = {option: value for option, value in given.items() if value is not None}
        if given and to != "c":
            raise WrongCallError(f"--{next(iter(given))} is for C: give --to c, or leave it out.")
        if out.suffix != _ENDINGS[to]:
            raise WrongCallError(f"{out.name} must end in {_ENDINGS[to]}, as --to {to} asks for.")

        from forestprune.cli.models import (
            check_new_file,
            check_not_read,
            read_source,
            writing,
        )
        from forestprune.system.files import replace_atomically

        check_not_read(out, [model])
        check_new_file(out, force=printing.force)
        source = read_source(model, trust=trust)
        if source.pipeline is not None and len(source.pipeline.steps) > 1:
            output.note(
                "of the pipeline, its last step: it takes rows as the other steps make them."
            )
        document: dict[str, Any] = {"model": str(model), "to": to, "out": str(out)}
        with writing(out), replace_atomically(out) as file:
            document |= _write(source.forest, to, file, given)
        document |= {"bytes": out.stat().st_size}
        output.written.append(out)
    output.result(document, _table(document), f"written to {out}")


def _write(forest: "Forest", to: Kind, file: Path, given: dict[str, Any]) -> dict[str, Any]:
    """Write a forest to a file; return what is to be said of it."""
    known: dict[str, Any] = {"trees": forest.n_trees, "nodes": forest.n_nodes}
    if to == "onnx":
        from forestprune.deploy.onnx_model import to_onnx

        file.write_bytes(to_onnx(forest).SerializeToString())
    elif to == "treelite":
        from forestprune.deploy.treelite_model import to_treelite

        to_treelite(forest).serialize(str(file))
    else:
        from forestprune.deploy.c_header import to_c
        from forestprune.deploy.compiler import object_bytes

        header = to_c(forest, **given)
        file.write_text(header, encoding="ascii")
        known |= {
            "table_bytes": header.table_bytes,
            "flash_bytes": header.n_bytes,
            "object_bytes": object_bytes(header, given.get("name", "model")),
            "error_bound": header.error_bound,
        }
    return known


def _table(document: dict[str, Any]) -> "Table":
    from rich.table import Table

    names = {
        "trees": "trees",
        "nodes": "nodes",
        "bytes": "file, bytes",
        "table_bytes": "tables, bytes",
        "flash_bytes": "on a Cortex-M, bytes at most",
        "object_bytes": "compiled by gcc here, bytes",
    }
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column()
    table.add_column(justify="right")
    for key, name in names.items():
        if document.get(key) is not None:
            table.add_row(name, f"{document[key]:,}")
    if "error_bound" in document:
        table.add_row("sums differ by at most", f"{document['error_bound']:.2g}")
    return table
