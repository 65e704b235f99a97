"""`forestprune path`: the whole trade-off between size and error."""

import csv as csv_files
import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forestprune.cli.arguments import PRINT, SIZE, Shrinkage
from forestprune.cli.failures import CommandError, WrongCallError
from forestprune.cli.groups import Files, Given, How, Saying
from forestprune.cli.outcome import doubt

if TYPE_CHECKING:
    from rich.table import Table

    from forestprune.select.path import PruningPath

_HEADINGS = {
    "alpha": "alpha",
    "nodes": "nodes",
    "trees": "trees",
    "max_depth": "depth",
    "loss": "loss",
    "r_squared": "R squared, held out",
    "standard_error": "std. error",
}


def path(
    files: Files,
    how: How,
    given: Given,
    saying: Saying,
    max_depth: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Depth at most.", rich_help_panel=SIZE)
    ] = None,
    max_trees: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Trees that --polish subset picks at each point.",
            rich_help_panel=SIZE,
        ),
    ] = None,
    shrinkage: Shrinkage = None,
    csv: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv",
            help="Write all points to a file; the table shows a model once.",
            rich_help_panel=PRINT,
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.npz",
            help="Save the path itself, for PruningPath.load in Python.",
            rich_help_panel=PRINT,
        ),
    ] = None,
) -> None:
    """Show the trade-off: models from a constant to the full one, what each costs and gains.

    The loss is 1 - R squared on the rows to prune with, which is no measure of how a model does on
    others.
    """
    output = saying.output()
    with output.working():
        division = given.division()
        options = how.options(given, division, shrinkage)
        if max_trees is not None and how.polish != "subset":
            raise WrongCallError(
                "--max-trees needs --polish subset: it is how many trees that picks."
            )
        if saying.quiet and csv is None and save is None:
            raise WrongCallError("with --quiet nothing would come out: give --csv or --save.")

        from forestprune import api
        from forestprune.cli.models import check_new_file, check_not_read, read_source

        _check_files(csv, save, force=saying.force)
        given.check(files)
        for file in (csv, save):
            if file is not None:
                check_not_read(file, [files.model, files.data, given.validation])
        source = read_source(files.model, trust=files.trust)
        if save is not None and source.pipeline is not None:
            raise CommandError("The path of a pipeline cannot be saved: leave --save out.")
        work = given.read(source, files, division)
        output.note(*work.described("scoring on"), work.overlap)
        found = api.prune_path(
            source,
            **work.arguments(),
            **work.validation_arguments(),
            n_alphas=how.points,
            max_depth=max_depth,
            max_trees=max_trees,
            **options,
        )
        output.note(doubt(work, None if found.validation is None else found.validation.full))
        points = _points(found)
        if csv is not None:
            check_new_file(csv, force=saying.force)
            _write_csv(csv, points)
            output.written.append(csv)
        if save is not None:
            check_new_file(save, force=saying.force)
            found.save(save)
        document = {
            "model": str(files.model),
            "rows": len(work.rows),
            "rows_held_out": 0 if work.held_out is None else len(work.held_out),
            "held_out_from": str(division) if division else None,
            "full": {
                "nodes": source.forest.n_nodes,
                "trees": source.forest.n_trees,
                "max_depth": source.forest.max_depth,
                "r_squared": None if found.validation is None else found.validation.full,
            },
            "points": points,
        }
        shown = [_table(document), *(f"written to {file}" for file in (csv, save) if file)]
    output.result(document, *shown)


def _check_files(csv: Path | None, save: Path | None, *, force: bool) -> None:
    from forestprune.cli.models import check_new_file

    for file, ending in ((csv, ".csv"), (save, ".npz")):
        if file is not None:
            if file.suffix != ending:
                raise WrongCallError(f"{file.name} must end in {ending}.")
            check_new_file(file, force=force)


def _points(found: "PruningPath") -> list[dict[str, Any]]:
    """Return a line of the table for each point."""
    columns = {
        "alpha": found.alphas,
        "nodes": found.n_nodes,
        "trees": found.n_trees,
        "max_depth": found.max_depths,
        "loss": found.losses,
    }
    if found.validation is not None:
        columns["r_squared"] = found.validation.scores
        columns["standard_error"] = found.validation.standard_errors
    lists = {name: column.tolist() for name, column in columns.items()}
    return [dict(zip(lists, line, strict=True)) for line in zip(*lists.values(), strict=True)]


def _write_csv(file: Path, points: list[dict[str, Any]]) -> None:
    from forestprune.system.files import write_atomically

    text = io.StringIO()
    writer = csv_files.DictWriter(text, list(points[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(points)
    with write_atomically(file) as target:
        target.write(text.getvalue().encode())


def _table(document: dict[str, Any]) -> "Table":
    from rich.table import Table

    points = document["points"]
    table = Table(box=None, pad_edge=False)
    same = ("nodes", "trees", "max_depth", "loss")
    for name in points[0]:
        table.add_column(_HEADINGS[name], justify="right")
    before: dict[str, Any] = {}
    for point in points:
        if any(point[name] != before.get(name) for name in same):
            table.add_row(*(_cell(entry) for entry in point.values()))
        before = point
    full = {"alpha": "full", "loss": ""} | {
        name: _cell(entry) for name, entry in document["full"].items() if entry is not None
    }
    table.add_section()
    table.add_row(*(full.get(name, "") for name in points[0]))
    return table


def _cell(entry: float) -> str:
    return f"{entry:,}" if isinstance(entry, int) else f"{entry:.4g}"
