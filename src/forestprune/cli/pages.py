"""Reports from the command line: what is checked first, what is put on record."""

import shlex
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forestprune.cli.failures import WrongCallError
from forestprune.cli.groups import Files, Given, How
from forestprune.cli.repeat import written_down
from forestprune.cli.size import Size
from forestprune.cli.work import Work

if TYPE_CHECKING:
    from forestprune.select.path import PruningPath
    from forestprune.select.solver import Point

ENDINGS = (".html", ".htm")


def check_report(file: Path, *, force: bool) -> None:
    """Refuse a report that could not be written, before there is anything to report."""
    from forestprune.cli.models import check_new_file
    from forestprune.show.report.page import check_installed

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

    def command(self, file: Path, small: Path | None, title: str | None) -> str:
        """Return the command that was given: for a report in `file`, and perhaps a small model."""
        groups = (self.given, self.how, self.size)
        if small is None:
            words = written_down("report", self.files, file.name, *groups)
            return words if title is None else f"{words} --title {shlex.quote(title)}"
        page = f"--report {shlex.quote(file.name)}"
        return f"{written_down('prune', self.files, small.name, *groups)} {page}"

    def again(self, small: Path | None, nodes: int, shrinkage: float | None) -> str:
        """Return the command for another model, which does not replace the one there is."""
        like = Path(f"small{self.files.model.suffix}") if small is None else small
        size = Size(
            max_nodes=nodes,
            max_trees=self.size.max_trees if self.how.polish == "subset" else None,
            max_depth=self.size.max_depth,
            shrinkage=self.size.shrinkage if shrinkage is None else [shrinkage],
        )
        given = self.given
        if not given.division(self.size.share):  # else some rows would be held out by default
            given = replace(given, holdout=0.0)
        out = f"{like.stem}-{nodes}{like.suffix}"
        return written_down("prune", self.files, out, given, self.how, size)

    def record(
        self, work: Work, point: "Point", file: Path, small: Path | None, title: str | None
    ) -> dict[str, Any]:
        """Return what a report puts on record: what was read, what was asked, what was chosen."""
        rows = f"{len(work.rows):,}"
        if work.held_out is not None:
            rows += f", and {len(work.held_out):,} others: {work.division}"
        return {
            "command": self.command(file, small, title),
            "rows to prune with": rows,
            "target": ", ".join(work.targets) or "the model's own predictions",
            "alpha taken": f"{point.alpha:g}",
            **{f"{name} taken": f"{value}" for name, value in point.report.items()},
        }

    def held_out(self, work: Work) -> str:
        """Return what the rows held out are, and what they are good for."""
        chose = (
            "which did not choose it" if self.size.alpha is not None else "by which it was chosen"
        )
        count = 0 if work.held_out is None else len(work.held_out)
        return f"{count:,} rows, {chose}: {work.division}"


def write_report(
    file: Path,
    path: "PruningPath",
    place: int,
    work: Work,
    asked: Asked,
    warnings: list[str],
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
    from forestprune.show.report.summary import About, summarise
    from forestprune.show.report.write import write_page

    rows = work.rows if work.held_out is None else work.held_out
    check_new_file(file, force=force)  # it may have come about meanwhile
    about = About(
        title=title or f"{asked.files.model.name}, made small",
        options=asked.record(work, path.points[place], file, small, title),
        warnings=warnings,
        model_bytes=n_bytes,
        small_file=small,
        held_out=asked.held_out(work),
        caution=work.caution,
        call=partial(asked.again, small),
    )
    summary = summarise(path, place, about, rows.X)
    with writing(file):
        write_page(file, summary)
