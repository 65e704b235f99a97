"""Reports from the command line: what is checked first, what is put on record."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forestprune.cli.failures import WrongCallError
from forestprune.cli.groups import Files, Given, How
from forestprune.cli.repeat import written_down
from forestprune.cli.size import Size
from forestprune.cli.work import Division, Work

if TYPE_CHECKING:
    from forestprune.path import PruningPath
    from forestprune.solver import Point

ENDINGS = (".html", ".htm")


def check_report(file: Path, *, force: bool) -> None:
    """Refuse a report that could not be written, before there is anything to report."""
    from forestprune.cli.models import check_new_file
    from forestprune.report.page import check_installed

    if file.suffix.lower() not in ENDINGS:
        raise WrongCallError(f"A report must end in {' or '.join(ENDINGS)}, got {file.name}.")
    check_new_file(file, force=force)
    check_installed()


@dataclass(frozen=True)
class Asked:
    """All that a command was called with that a report is about."""

    files: Files
    size: Size
    how: How
    given: Given

    def command(self, small: Path | None, *groups: Any) -> str:
        """Return the command that makes the model, or one like it."""
        out = f"small{self.files.model.suffix}" if small is None else small.name
        return written_down(self.files, out, self.given, self.how, *groups)

    def record(self, work: Work, division: Division, point: "Point") -> dict[str, Any]:
        """Return what a report puts on record: what was read, what was asked, what was chosen."""
        rows = f"{len(work.rows):,}"
        if work.held_out is not None:
            rows += f", and {len(work.held_out):,} others: {division}"
        target = self.given.target if work.labelled else None
        return {
            "rows to prune with": rows,
            "target": ", ".join(target) if target else "the model's own predictions",
            "alpha taken": f"{point.alpha:g}",
            **{f"{name} taken": f"{value}" for name, value in point.report.items()},
        }

    def held_out(self, work: Work, division: Division) -> str:
        """Return what the rows held out are, and what they are good for."""
        chose = (
            "which did not choose it" if self.size.alpha is not None else "by which it was chosen"
        )
        words = f"{0 if work.held_out is None else len(work.held_out):,} rows, {chose}: {division}"
        if division.file is not None or not work.labelled:
            return words
        return f"{words}; if the model was trained on them, its own error flatters"


def write_report(
    file: Path,
    path: "PruningPath",
    place: int,
    work: Work,
    division: Division,
    asked: Asked,
    *,
    force: bool,
    n_bytes: int | None,
    small: Path | None = None,
    title: str | None = None,
) -> None:
    """Write a report on a model whose file had `n_bytes`, pruned into the file `small`, if any.

    None for `n_bytes` if it was a file of another kind than that of the small one.
    """
    from forestprune.cli.models import check_new_file, writing
    from forestprune.report.summary import About, summarise
    from forestprune.report.write import write_page

    rows = work.rows if work.held_out is None else work.held_out
    check_new_file(file, force=force)  # it may have come about meanwhile
    about = About(
        title=title or f"{asked.files.model.name}, made small",
        options={"command": asked.command(small, asked.size)}
        | asked.record(work, division, path.points[place]),
        model_bytes=n_bytes,
        small_file=small,
        held_out=asked.held_out(work, division),
        command=asked.command(small),
    )
    summary = summarise(path, place, about, rows.X)
    with writing(file):
        write_page(file, summary)
