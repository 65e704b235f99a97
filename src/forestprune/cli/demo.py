"""`forestprune demo`: a first look."""

from pathlib import Path
from typing import Annotated

import typer

from forestprune.cli.models import check_new_file, check_new_folder
from forestprune.cli.output import Output
from forestprune.cli.parameters import Force


def demo(
    trees: Annotated[
        int, typer.Option(min=1, metavar="N", help="Trees of the forest to be pruned.")
    ] = 100,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where the report goes.")
    ] = Path("forestprune-demo"),
    force: Force = False,
) -> None:
    """Fit models to bundled data, prune them to a few sizes, and report what that costs."""
    with Output().working(prints=True):
        check_new_folder(out)
        for name in ("path.png", "report.html"):
            if (out / name).exists():
                check_new_file(out / name, force=force)
        from forestprune.demo import main

        main(trees, out)
