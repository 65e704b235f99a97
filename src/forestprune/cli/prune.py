"""`forestprune prune`: a model file in, a small one out."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from forestprune.cli.arguments import PRINT
from forestprune.cli.failures import WrongCallError
from forestprune.cli.groups import Files, Given, How, Saying
from forestprune.cli.outcome import describe, doubt, table
from forestprune.cli.pages import Asked, check_report, write_report
from forestprune.cli.size import Size


def prune(
    files: Files,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Where the small model goes. Its ending says the format: .json, .ubj (XGBoost), "
            ".txt (LightGBM), .cbm, .json (CatBoost), .skops (scikit-learn), .joblib, .pkl (any), "
            ".npz (a Forest).",
            rich_help_panel=PRINT,
        ),
    ],
    size: Size,
    how: How,
    given: Given,
    saying: Saying,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.html",
            help="Write a page about it, with the whole trade-off, for a browser.",
            rich_help_panel=PRINT,
        ),
    ] = None,
) -> None:
    """Prune a model to a budget, and write a model of the same class.

    Without a budget, what does best on the rows held out is taken.
    """
    output = saying.output()
    with output.working():
        division = given.division(size.share)
        options = how.options(given, division, size.shrinkages)
        size.check(division, how.polish)
        if how.n_alphas is not None and size.alpha is not None and report is None:
            raise WrongCallError("--n-alphas is for paths, but --alpha asks for one point.")
        begun = time.perf_counter()

        from forestprune.cli.models import (
            check_ending,
            check_new_file,
            check_not_read,
            read_source,
            write_small,
        )

        check_new_file(out, force=saying.force)
        check_not_read(out, [files.model, files.data, given.validation])
        if report is not None:
            check_report(report, force=saying.force)
        given.check(files)
        source = read_source(files.model, trust=files.trust)
        check_ending(out, source)
        source = replace(source, ending=out.suffix)
        work = given.read(source, files, division)
        output.note(*work.described(size.use))
        output.warn(work.overlap)
        path, place = size.choose(work, options, how.points, whole=report is not None)
        small = path[place]
        n_bytes = files.model.stat().st_size
        same_format = files.model.suffix.lower() == out.suffix.lower()
        write_small(small, out, force=saying.force)
        output.written.append(out)
        document = {
            "model": str(files.model),
            "out": str(out),
            **describe(work, small, options, full_bytes=n_bytes, small_bytes=out.stat().st_size),
            "asked": size.asked(),
        }
        output.warn(doubt(work, document["full"]["r_squared"]), size.too_small(small))
        shown: list[Any] = [f"written to {out}"]
        if report is not None:
            if size.alpha is not None:
                path, place = size.surroundings(path, work, options, how.points)
            write_report(
                report,
                path,
                place,
                work,
                Asked(files, size, how, given),
                output.warnings,
                force=saying.force,
                n_bytes=n_bytes if same_format else None,
                small=out,
            )
            document["report"] = str(report)
            shown.append(f"report: {report}")
        document["seconds"] = round(time.perf_counter() - begun, 3)
        shown.insert(0, table(document))
    output.result(document, *shown)
