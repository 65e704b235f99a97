"""From a call to a small model: what `prune` and `report` have in common.

Of the commands' modules this is the one that knows how models are chosen.
"""

import time
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forestprune.cli.errors import CommandError, describe
from forestprune.cli.output import Output
from forestprune.cli.parameters import Data, Division, Files, How, Size
from forestprune.cli.work import Work
from forestprune.options import Options

if TYPE_CHECKING:
    from forestprune.select.path import PruningPath


@dataclass(frozen=True)
class Asked:
    """All that a command was called with to make a model small."""

    files: Files
    size: Size
    how: How
    data: Data
    prunes: bool = True
    """Whether the model is made smaller, before its splits are chosen anew if they are to be."""

    @cached_property
    def division(self) -> Division:
        """Where the rows to choose by come from."""
        return self.data.division(self.size.share)

    @cached_property
    def options(self) -> Options:
        """How to prune; what does not go together is refused."""
        options = self.how.options(self.data, self.division)
        self.size.check(self.division, options)
        return options


def make_small(
    asked: Asked,
    output: Output,
    *,
    force: bool,
    out: Path | None = None,
    page: Path | None = None,
    title: str | None = None,
) -> tuple[dict[str, Any], list[Any]]:
    """Prune a model, into a file `out` or for a `page` about it, or both.

    Returns what came of it, for machines and for people.
    """
    begun = time.perf_counter()
    files, size, options = asked.files, asked.size, asked.options
    from forestprune.cli import models, summary, work
    from forestprune.cli.report_page import check_report, write_report
    from forestprune.select.figures import column_name
    from forestprune.select.path import PruningPath

    if out is not None:
        models.check_new_file(out, force=force)
        models.check_not_read(out, [files.model, files.data, asked.data.validation])
    if page is not None:
        check_report(page, force=force)
    work.check_tables(files, asked.data)
    source = models.read_source(files.model, trust=files.trust)
    if out is not None:
        models.check_ending(out, source)
    # Without a file of its own, a small model would go to one like that of the large one.
    ending = (files.model if out is None else out).suffix.lower()
    source = replace(source, ending=ending if size.format is None else f".{size.format}")
    task = work.prepare(source, files, asked.data, asked.division)
    choosing = f"choosing by {options.scoring} on" if options.scoring else "choosing by"
    doing = "pruning" if asked.prunes else "choosing splits"
    output.note(*task.described(choosing if size.alpha is None else "scoring on", doing))
    output.warn(task.overlap)
    if asked.prunes:
        path, place = _chosen(task, asked, whole=page is not None)
    else:
        path, place = _polished(task, options)
    counted = {}
    if size.format is not None:
        counted = {"counted": {"format": size.format, "bytes": path[place].n_bytes}}
        path = PruningPath(replace(path.source, ending=ending), path.points, path.validation)
    small = path[place]
    if out is not None:
        models.write_small(small, out, force=force)
        output.written.append(out)
    document = {
        "model": str(files.model),
        **({} if out is None else {"out": str(out)}),
        **summary.describe(task, path, place, options),
        "asked": size.asked(),
        **counted,
    }
    document["full"]["bytes"] = files.model.stat().st_size
    document["small"]["bytes"] = small.n_bytes if out is None else out.stat().st_size
    score = document["full"][column_name(document["score"])]
    output.warn(summary.doubt(task, score))
    if size.alpha is not None and not small.n_trees:
        output.warn(f"no tree is left at --alpha {size.alpha:g}: a smaller one keeps more.")
    if page is not None:
        if size.alpha is not None:
            path, place = _surroundings(path, place, task, asked)
        write_report(page, path, place, task, asked, output.warnings, force, out, title)
        document["report"] = str(page)
    document["seconds"] = round(time.perf_counter() - begun, 3)
    written = {"written to": out, "report:": page}
    lines = [f"{what} {file}" for what, file in written.items() if file is not None]
    told = [*summary.about_polish(document), *summary.about_gap(small)]
    return document, [summary.table(document), *told, *lines]


def _chosen(work: Work, asked: Asked, *, whole: bool) -> tuple["PruningPath", int]:
    """Return all models that were looked at, and the place of the one to take.

    The `whole` path is for reports. With a given alpha there is none, see `_surroundings`.
    """
    from forestprune.exceptions import OutOfReachError
    from forestprune.select.budget import Budget
    from forestprune.select.choose import Wanted
    from forestprune.select.request import choose

    size, rows, options = asked.size, work.rows, asked.options
    if size.alpha is not None:
        options = replace(options, scoring=None)  # it scores what comes of it, and chooses nothing
    wanted = Wanted(
        alpha=size.alpha,
        budget=Budget(max_nodes=size.max_nodes, max_trees=size.max_trees, max_bytes=size.max_bytes),
        max_depth=size.max_depth,
        tolerance=size.tolerance,
        one_standard_error=size.one_standard_error,
        confidence=size.confidence,
        n_alphas=asked.how.points,
        whole=whole,
    )
    try:
        return choose(
            work.source,
            rows.X if whole and size.alpha is not None else rows.hand_over(),
            rows.y,
            rows.weight,
            wanted,
            # With a given alpha there is nothing to choose: rows that are held out only score.
            _held_out(work) if size.alpha is None else None,
            options,
        )
    except OutOfReachError as error:
        caution = f" {work.caution}" if work.caution and size.tolerance is not None else ""
        raise CommandError(f"{describe(error)}{caution}") from error


def _polished(work: Work, options: Options) -> tuple["PruningPath", int]:
    """Return a model and what new splits make of it, and the place of the one to take."""
    from forestprune import api

    small = api.polish(
        work.source,
        **work.arguments(),
        **work.validation_arguments(),
        shrinkage=options.shrinkage,
        scoring=options.scoring,
        n_jobs=options.n_jobs,
    )
    if small.path is None or small.index is None:  # as of copies, which this is not
        raise AssertionError
    return small.path, small.index


def _held_out(work: Work) -> Any:
    from forestprune.select.routed import HeldOut

    rows = work.held_out
    return None if rows is None else HeldOut(rows.X, rows.y, rows.weight)


def _on_path(asked: Asked) -> Any:
    """Return the solver for the models around one that was asked for."""
    return "heuristic" if asked.options.solver == "exact" else asked.options.solver


def _surroundings(
    path: "PruningPath", place: int, work: Work, asked: Asked
) -> tuple["PruningPath", int]:
    """Return the path around a point of a given alpha, with which one can see what it is worth."""
    from forestprune import api
    from forestprune.select.path import PruningPath
    from forestprune.select.validation import validate

    around = api.prune_path(
        work.source,
        **work.arguments(),
        n_alphas=asked.how.points,
        max_depth=asked.size.max_depth,
        max_trees=asked.size.max_trees,
        **vars(replace(asked.options, scoring=None, certify=False, solver=_on_path(asked))),
    )
    point = path.points[place]
    joined = PruningPath.joined(path.source, [*around.points, *path.points], [])
    place = next(place for place, each in enumerate(joined.points) if each is point)
    rows = work.held_out
    if rows is None:
        return joined, place
    routed = joined.routed(rows.X, rows.y, rows.weight, asked.options.n_jobs)
    return replace(joined, validation=validate(routed, joined.points, asked.options.scoring)), place
