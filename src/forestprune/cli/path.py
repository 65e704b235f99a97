"""`forestprune path`: the whole trade-off between size and error."""

import csv as csv_files
import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from forestprune.cli.errors import CommandError, WrongCallError
from forestprune.cli.parameters import OUTPUT, Data, Files, How, Printing, option, taking

if TYPE_CHECKING:
    from rich.table import Table

    from forestprune.select.path import PruningPath

_HEADINGS = {
    "max_depth": "depth",
    "r_squared": "R² held out",
    "d_squared": "D² held out",
    "standard_error": "std. error",
    "new_splits": "new splits",
    "accuracy": "acc.",
    "balanced_accuracy": "bal. acc.",
}
"""Of columns that are called something else in the table for people."""


def path(
    files: Files,
    how: How,
    data_options: Data,
    printing: Printing,
    max_depth: Annotated[int | None, option("max_depth")] = None,
    max_trees: Annotated[
        int | None, option("max_trees", text="Trees that {polish='subset'} picks at each point.")
    ] = None,
    csv: Annotated[
        Path | None,
        taking("FILE.csv", "Write all points; the table shows a model once.", panel=OUTPUT),
    ] = None,
    save: Annotated[
        Path | None,
        taking("FILE.npz", "Save the path itself, for PruningPath.load in Python.", panel=OUTPUT),
    ] = None,
) -> None:
    """Show the trade-off: models from a constant to the full one, what each costs and gains.

    The loss is that on the rows to prune with, over the loss of the best constant: 1 - R squared
    for squared error. It is no measure of how a model does on others.
    """
    output = printing.output()
    with output.working():
        division = data_options.division()
        options = how.options(data_options, division)
        if max_trees is not None and options.polish != "subset":
            raise WrongCallError(
                "--max-trees needs --polish subset: it is how many trees that picks."
            )
        if how.shrinkage is not None and len(how.shrinkage) > 1 and not division:
            raise WrongCallError(
                "--shrinkage can be repeated only if rows are held out: not with --holdout 0."
            )
        if printing.quiet and csv is None and save is None:
            raise WrongCallError("with --quiet nothing would come out: give --csv or --save.")

        from forestprune import api
        from forestprune.cli import models, work
        from forestprune.cli.summary import doubt, explained, score_of, size_of, unknown
        from forestprune.select.figures import column_name

        written = [each for each in (csv, save) if each is not None]
        for each, ending in ((csv, ".csv"), (save, ".npz")):
            if each is not None:
                if each.suffix != ending:
                    raise WrongCallError(f"{each.name} must end in {ending}.")
                models.check_new_file(each, force=printing.force)
        work.check_tables(files, data_options)
        for each in written:
            models.check_not_read(each, [files.model, files.data, data_options.validation])
        source = models.read_source(files.model, trust=files.trust)
        if save is not None and source.pipeline is not None:
            raise CommandError("The path of a pipeline cannot be saved: leave --save out.")
        task = work.prepare(source, files, data_options, division)
        output.note(*task.described("scoring on"), task.overlap)
        found = api.prune_path(
            source,
            **task.arguments(),
            **task.validation_arguments(),
            n_alphas=how.points,
            max_depth=max_depth,
            max_trees=max_trees,
            **vars(options),
        )
        validation = found.validation
        scores: dict[str, float | None] = unknown(task)
        if validation is not None:
            scores |= {column_name(validation.name): validation.full}
            scores |= dict(validation.full_metrics)
        rows, scored = task.held_out, None if validation is None else validation.full
        if rows is not None and options.scoring is not None:
            scored = explained(task, rows)
            scores[column_name(score_of(task))] = scored
        output.note(doubt(task, scored))
        points = _points(found)
        for each in written:
            models.check_new_file(each, force=printing.force)  # it may exist by now
            if each is csv:
                _write_csv(each, points)
            else:
                found.save(each)
            output.written.append(each)
        document = {
            "model": str(files.model),
            "rows": len(task.rows),
            "rows_held_out": task.n_held_out,
            "held_out_from": str(division) if division else None,
            "of_target": validation is None or validation.of_target,
            "full": size_of(source.forest) | scores,
            "points": points,
        }
        shown = [_table(document), *(f"written to {each}" for each in written)]
    output.result(document, *shown)


def _points(found: "PruningPath") -> list[dict[str, Any]]:
    """Return a line of the table for each point."""
    lists = {name: column.tolist() for name, column in found.columns().items()}
    known = [[None if x != x else x for x in line] for line in zip(*lists.values(), strict=True)]
    return [dict(zip(lists, line, strict=True)) for line in known]


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

    from forestprune.select.figures import LABELS, OF_CLASSES

    points, headings = document["points"], LABELS | _HEADINGS
    table = Table(box=None, pad_edge=False)
    hidden = {"objective", "bound"}
    if any(name in points[0] for name in OF_CLASSES):
        hidden |= {"loss", "max_depth"}  # a terminal is not wide enough for all
    resplit = "new_splits" in points[0]
    if resplit:
        hidden |= {"max_depth", "mae", "balanced_accuracy"}
        hidden |= {"loss"} if "standard_error" in points[0] else set()
    shown = [name for name in points[0] if name not in hidden]
    for name in shown:
        heading = headings.get(name, name)
        if name in ("r_squared", "d_squared") and not document["of_target"]:
            heading = f"{heading[:2]} of the model's own prediction, held out"
        table.add_column(heading, justify="right")
    full = {"alpha": "full", "loss": ""}
    n_full = document["full"]["nodes"]
    if points[-1]["nodes"] == n_full and points[-1]["alpha"] == 0.0:
        # The last point is the full model, which has a line of its own.
        full |= {
            name: _cell(points[-1][name]) for name in ("loss", "standard_error") if name in shown
        }
        points = points[:-1]
    before: dict[bool, dict[str, Any]] = {}  # models with new splits stand beside the others
    told = ("nodes", "trees", "max_depth", "loss")
    for point in points:
        kind = resplit and point["new_splits"] > 0
        if any(point[name] != before.get(kind, {}).get(name) for name in told):
            table.add_row(*(_cell(point[name]) for name in shown))
        before[kind] = point
    full |= {name: _cell(entry) for name, entry in document["full"].items() if entry is not None}
    table.add_section()
    table.add_row(*(full.get(name, "") for name in shown))
    return table


def _cell(entry: float | None) -> str:
    if entry is None:
        return ""
    return f"{entry:,}" if isinstance(entry, int) else f"{entry:.4g}"
