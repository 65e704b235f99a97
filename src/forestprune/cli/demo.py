"""`forestprune demo`: a first look."""

from typing import Annotated

import typer

from forestprune.cli.output import Output


def demo(
    trees: Annotated[int, typer.Option(min=1, help="Trees of the forest to be pruned.")] = 100,
) -> None:
    """Fit a forest to bundled data, prune it to a few budgets, show what that costs."""
    with Output().working(prints=True):
        from forestprune.demo import main

        main(trees)
