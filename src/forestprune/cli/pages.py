"""Reports from the command line: what is checked first, what is put on record."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from forestprune.cli.failures import WrongCallError
from forestprune.cli.groups import Files
from forestprune.cli.size import Size
from forestprune.cli.work import Division, Work

if TYPE_CHECKING:
    from forestprune.path import PruningPath

ENDINGS = (".html", ".htm")


def check_report(file: Path, *, force: bool) -> None:
    """Refuse a report that could not be written, before there is anything to report."""
    from forestprune.cli.models import check_new_file
    from forestprune.report.page import check_installed

    if file.suffix.lower() not in ENDINGS:
        raise WrongCallError(f"A report must end in {' or '.join(ENDINGS)}, got {file.name}.")
    check_new_file(file, force=force)
    check_installed()


def on_record(
    files: Files, work: Work, division: Division, size: Size, options: dict[str, Any]
) -> dict[str, Any]:
    """Return what a report puts on record: what was read, what was asked, how it was pruned."""
    rows = f"{len(work.rows):,}"
    if work.held_out is not None:
        rows += f", and {len(work.held_out):,} others: {division}"
    return {
        "model": files.model.name,
        "data": files.data.name,
        "rows to prune with": rows,
        "target": "its column" if work.labelled else "the model's own predictions",
        **size.asked(),
        **{name: value for name, value in options.items() if value is not None},
    }


def write_page(
    file: Path,
    path: "PruningPath",
    place: int,
    work: Work,
    record: dict[str, Any],
    *,
    force: bool,
    n_bytes: int,
    small: Path | None = None,
    title: str | None = None,
) -> None:
    """Write a report on a model whose file had `n_bytes`, pruned into the file `small`, if any."""
    from forestprune.cli.models import check_new_file
    from forestprune.report import write_report

    rows = work.rows if work.held_out is None else work.held_out
    check_new_file(file, force=force)  # it may have come about meanwhile
    write_report(
        file,
        path,
        place,
        X=rows.X,
        title=title,
        options=record,
        model_bytes=n_bytes,
        small_file=small,
    )
