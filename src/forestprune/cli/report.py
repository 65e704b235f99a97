"""`forestprune report`: a page about a model that could be made, and what it was chosen from."""

from pathlib import Path
from typing import Annotated

from forestprune.cli.parameters import OUTPUT, Data, Files, How, Printing, Size, taking
from forestprune.cli.pruning import Asked, make_small


def report(
    files: Files,
    out: Annotated[Path, taking("FILE.html", "Where it goes.", "--out", "-o", panel=OUTPUT)],
    size: Size,
    how: How,
    data_options: Data,
    printing: Printing,
    title: Annotated[str | None, taking("TEXT", "Title of the report.", panel=OUTPUT)] = None,
) -> None:
    """Show the trade-off, and a model of the size asked for, as a page for a browser.

    No model is written: `prune --report` does both.
    """
    output = printing.output()
    with output.working():
        asked = Asked(files, size, how, data_options)
        document, shown = make_small(asked, output, force=printing.force, page=out, title=title)
    output.result(document, *shown)
