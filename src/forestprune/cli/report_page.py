"""Reports from the command line: what is checked first, what is put on record."""

import shlex
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forestprune.cli.errors import WrongCallError, spelled
from forestprune.cli.parameters import Files, Size
from forestprune.cli.pruning import Asked
from forestprune.cli.work import Work

if TYPE_CHECKING:
    from forestprune.select.path import PruningPath

ENDINGS = (".html", ".htm")


def check_report(page: Path, *, force: bool) -> None:
    """Refuse a report that could not be written, before there is anything to report."""
    from forestprune.cli.models import check_new_file
    from forestprune.show.report.page import check_installed

    if page.suffix.lower() not in ENDINGS:
        raise WrongCallError(f"A report must end in {' or '.join(ENDINGS)}, got {page.name}.")
    check_new_file(page, force=force)
    check_installed()


def write_report(
    page: Path,
    path: "PruningPath",
    place: int,
    work: Work,
    asked: Asked,
    warnings: list[str],
    force: bool,
    small: Path | None,
    title: str | None,
) -> None:
    """Write a report on a model of a path, which was pruned into the file `small`, if any."""
    from forestprune.cli.models import check_new_file, writing
    from forestprune.select.routed import HeldOut
    from forestprune.show.report.summary import About, summarise
    from forestprune.show.report.write import write_page

    model, point = asked.files.model, path.points[place]
    # Of rows to prune with the features of some may be all that is left.
    shown = work.rows.some() if work.held_out is None else work.held_out
    rows, chosen = f"{len(work.rows):,}", "by which it was chosen"
    if work.held_out is not None:
        rows += f", and {work.n_held_out:,} others: {work.division}"
    if asked.size.alpha is not None:
        chosen = "which did not choose it"
    same_format = small is None or model.suffix.lower() == small.suffix.lower()
    about = About(
        title=title or f"{model.name}, {'made small' if asked.prunes else 'with new splits'}",
        options={
            "command": _command(asked, page, small, title),
            "rows to prune with": rows,
            "target": ", ".join(work.targets) or "the model's own predictions",
            "alpha taken": f"{point.alpha:g}",
            **{
                f"{name} taken": f"{value}"
                for name, value in point.report.items()
                if name != "certificate"  # which stands in the text
            },
        },
        warnings=warnings,
        # Files of different formats cannot be compared.
        model_bytes=model.stat().st_size if same_format else None,
        small_file=small,
        held_out=f"{work.n_held_out:,} rows, {chosen}: {work.division}",
        caution=work.caution,
        call=partial(_another, asked, small),
        rows=HeldOut(shown.X, shown.y, shown.weight),
    )
    check_new_file(page, force=force)  # it may exist by now
    summary = summarise(path, place, about, shown.X)
    with writing(page):
        write_page(page, summary)


def _command(asked: Asked, page: Path, small: Path | None, title: str | None) -> str:
    """Return the command that was given, so that somebody else can run it."""
    groups = (asked.data, asked.size, asked.how)
    if small is not None and not asked.prunes:
        how = replace(asked.how, polish=None)
        words = _words("polish", asked.files, small.name, asked.data, how)
        return shlex.join([*words, "--report", page.name])
    if small is not None:
        extra = ["--report", page.name]
        return shlex.join([*_words("prune", asked.files, small.name, *groups), *extra])
    extra = [] if title is None else ["--title", title]
    return shlex.join([*_words("report", asked.files, page.name, *groups), *extra])


def _another(
    asked: Asked, small: Path | None, nodes: int, shrinkage: float | None, polished: bool
) -> str | None:
    """Return the command for another model, which does not replace the one there is.

    None if that is the model as it was read.
    """
    if not asked.prunes and not polished:
        return None
    like = Path(f"small{asked.files.model.suffix}") if small is None else small
    size = Size(
        max_nodes=nodes,
        max_trees=asked.size.max_trees if asked.how.polish == "subset" else None,
        max_depth=asked.size.max_depth,
    )
    how = asked.how if shrinkage is None else replace(asked.how, shrinkage=[shrinkage])
    if asked.how.polish == "split" and (not polished or not asked.prunes):
        how = replace(how, polish=None)
    # Else some rows would be held out by default.
    data = asked.data if asked.division else replace(asked.data, holdout=0.0)
    out = f"{like.stem}-{nodes}{like.suffix}"
    if not asked.prunes:
        return shlex.join(_words("polish", asked.files, out, data, how))
    return shlex.join(_words("prune", asked.files, out, data, size, how))


def _words(command: str, files: Files, out: str, *groups: Any) -> list[str]:
    """Return how to call a command with the options of some groups that are not the default.

    Files are given by name only, since others have them elsewhere.
    """
    words = ["forestprune", command, files.model.name, files.data.name, "--out", out]
    for group in (files, *groups):
        for each in fields(group):
            value = getattr(group, each.name)
            if each.name not in ("model", "data") and value != each.default:
                words += _option(spelled(each.name), value)
    return words


def _option(flag: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [flag if value else f"--no-{flag[2:]}"]
    if isinstance(value, list | tuple):
        return [word for each in value for word in _option(flag, each)]
    if isinstance(value, Path):
        return [flag, value.name]
    if isinstance(value, float) and float(f"{value:g}") == value:
        return [flag, f"{value:g}"]
    return [flag, f"{value}"]
