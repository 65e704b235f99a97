"""`forestprune report`: a page about a model that could be made, and what it was chosen from."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from forestprune.cli.arguments import PRINT
from forestprune.cli.groups import Files, Given, How, Saying
from forestprune.cli.outcome import describe, doubt, table
from forestprune.cli.pages import Asked, check_report, write_report
from forestprune.cli.size import Size


def report(
    files: Files,
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FILE.html", help="Where it goes.", rich_help_panel=PRINT
        ),
    ],
    size: Size,
    how: How,
    given: Given,
    saying: Saying,
    title: Annotated[
        str | None, typer.Option(help="What stands above it.", rich_help_panel=PRINT)
    ] = None,
) -> None:
    """Show the trade-off, and a model of the size asked for, as a page for a browser.

    No model is written: `prune --report` does both.
    """
    output = saying.output()
    with output.working():
        division = given.division(size.share)
        options = how.options(given, division, size.shrinkages)
        size.check(division, how.polish)
        begun = time.perf_counter()

        from forestprune.cli.models import read_source

        check_report(out, force=saying.force)
        given.check(files)
        # A small model would go to a file like that of the large one.
        source = read_source(files.model, trust=files.trust)
        source = replace(source, ending=files.model.suffix.lower())
        work = given.read(source, files, division)
        output.note(*work.described(size.use))
        output.warn(work.overlap)
        path, place = size.choose(work, options, how.points, whole=True)
        small = path[place]
        if size.alpha is not None:
            path, place = size.surroundings(path, work, options, how.points)
        n_bytes = files.model.stat().st_size
        document = {
            "model": str(files.model),
            "report": str(out),
            **describe(work, small, options, full_bytes=n_bytes, small_bytes=small.n_bytes),
            "asked": size.asked(),
        }
        output.warn(doubt(work, document["full"]["r_squared"]), size.too_small(small))
        write_report(
            out,
            path,
            place,
            work,
            Asked(files, size, how, given),
            output.warnings,
            force=saying.force,
            n_bytes=n_bytes,
            title=title,
        )
        document["seconds"] = round(time.perf_counter() - begun, 3)
        shown = [table(document), f"report: {out}"]
    output.result(document, *shown)
