"""A progress bar for people who wait: only on a terminal, and only after two seconds."""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")

PATIENCE = 2.0
"""Seconds before a bar appears."""


_showing = False


def track(items: Iterable[Item], description: str, total: int) -> Iterator[Item]:
    """Yield from `items`; show how many of `total` are done if it takes long.

    Within a loop that is tracked already, nothing more is shown.
    """
    global _showing
    if _showing or not _somebody_looks():
        yield from items
        return
    _showing = True
    try:
        yield from _with_bar(items, description, total)
    finally:
        _showing = False


@contextmanager
def hidden() -> Iterator[None]:
    """Show no bar within this context."""
    global _showing
    before, _showing = _showing, True
    try:
        yield
    finally:
        _showing = before


def _with_bar(items: Iterable[Item], description: str, total: int) -> Iterator[Item]:
    from rich.console import Console
    from rich.progress import Progress

    begun = time.monotonic()
    with Progress(console=Console(stderr=True), transient=True, disable=True) as bar:
        task = bar.add_task(description, total=total)
        for done, item in enumerate(items):
            if bar.disable and time.monotonic() - begun > PATIENCE:
                bar.disable = False
                bar.start()
            bar.update(task, completed=done)
            yield item


def _somebody_looks() -> bool:
    try:
        return sys.stderr.isatty()
    except (
        AttributeError,
        ValueError,
    ):  # a program without a console has no stderr, or a closed one
        return False
