"""`forestprune polish`: a small model in, one of the same size with other splits out."""

from pathlib import Path
from typing import Annotated

from forestprune.cli.parameters import (
    OUTPUT,
    Data,
    Files,
    How,
    Printing,
    Size,
    option,
    taking,
)
from forestprune.cli.prune import OUT
from forestprune.cli.pruning import Asked, make_small


def polish(
    files: Files,
    out: Annotated[Path, taking("FILE", OUT, "--out", "-o", panel=OUTPUT)],
    data_options: Data,
    printing: Printing,
    shrinkage: Annotated[
        list[float] | None,
        option(
            "shrinkage",
            text="How strongly the values of leaves are drawn to 0, in rows; several, to choose "
            "from.",
            unset="the best of 30, 150 and 6 or 750",
        ),
    ] = None,
    scoring: Annotated[str | None, option("scoring")] = None,
    n_jobs: Annotated[int | None, option("n_jobs", "--jobs", "-j")] = None,
    report: Annotated[
        Path | None, taking("FILE.html", "Write a report, with the trees.", panel=OUTPUT)
    ] = None,
) -> None:
    """Choose the splits of a model anew, each tree given all others; for small models.

    Nothing is pruned: `prune --polish split` does both, and finds better models. The model has no
    more nodes afterwards and no more trees. Rows held out choose between it and what it was.
    """
    output = printing.output()
    with output.working():
        how = How(polish="split", shrinkage=shrinkage, scoring=scoring, n_jobs=n_jobs)
        asked = Asked(files, Size(), how, data_options, prunes=False)
        document, shown = make_small(asked, output, force=printing.force, out=out, page=report)
    output.result(document, *shown)
