"""How progress is drawn: on a terminal by rich, in a notebook as a line of HTML.

A bar is gone when it is closed.
"""

import html
import sys
import time
from typing import Any, ClassVar, NamedTuple, Protocol
from uuid import uuid4

EVERY = 0.25
"""Seconds between two drawings in a notebook, each of which is a message to the browser."""


class Bar(Protocol):
    """One bar that somebody looks at."""

    def draw(self, text: str, share: float | None, left: str, *, at_once: bool = False) -> None:
        """Say what is done, how much of it, from 0 to 1 or None, and how long the rest takes."""

    def close(self) -> None:
        """Take the bar away."""


class TerminalBar:
    """A bar on stderr, which what is printed meanwhile stays clear of."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[left]}"),
            console=Console(stderr=True),
            transient=True,
        )
        self._progress.add_task("", total=None, left="")
        self._task = self._progress.tasks[0]
        self._progress.start()

    def draw(self, text: str, share: float | None, left: str, *, at_once: bool = False) -> None:
        """See :class:`Bar`."""
        self._task.total = None if share is None else 1.0
        self._progress.update(
            self._task.id, description=text, completed=share or 0.0, left=left, refresh=at_once
        )

    def close(self) -> None:
        """See :class:`Bar`."""
        self._progress.stop()


class NotebookBar:
    """A bar among the outputs of a notebook's cell.

    rich would need ipywidgets for that, warns if it is missing, and leaves "Output()" in the file.
    One output that is drawn anew needs nothing; emptied, it is not seen. What a cell does next is
    drawn there as well, so that no empty ones gather.
    """

    class _Output(NamedTuple):
        cell: object
        name: str

    _last: ClassVar[_Output | None] = None

    def __init__(self) -> None:
        self._drawn: float | None = None

    def draw(self, text: str, share: float | None, left: str, *, at_once: bool = False) -> None:
        """See :class:`Bar`."""
        if self._drawn is not None and not at_once and time.monotonic() < self._drawn + EVERY:
            return
        percent = "" if share is None else f"{share:.0%}".replace("%", " %")
        words = ", ".join(word for word in (text, percent, left) if word)
        value = "" if share is None else f' value="{share:.3f}"'
        style = "width: 20em; vertical-align: middle; margin-right: 0.5em"
        bar = f'<progress max="1"{value} style="{style}"></progress>'
        self._publish({"text/plain": words, "text/html": bar + html.escape(words)})

    def close(self) -> None:
        """See :class:`Bar`."""
        if self._drawn is not None:
            self._publish({"text/plain": "", "text/html": ""})

    def _publish(self, data: dict[str, str]) -> None:
        from IPython.display import display, update_display

        cell, last = getattr(_shell(), "execution_count", None), NotebookBar._last
        show: Any = update_display
        if last is None or last.cell != cell:
            show, last = display, NotebookBar._Output(cell, f"forestprune-{uuid4().hex}")
            NotebookBar._last = last
        show(data, raw=True, display_id=last.name)
        self._drawn = time.monotonic()


def bar_to_look_at() -> type[TerminalBar] | type[NotebookBar] | None:
    """Return the kind of bar that is seen where this runs, if any is."""
    if _in_notebook():
        return NotebookBar
    return TerminalBar if _on_terminal() else None


def _in_notebook() -> bool:
    """Tell whether a kernel of Jupyter runs this; without IPython there is none."""
    return getattr(_shell(), "kernel", None) is not None


def _shell() -> Any:
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()


def _on_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # a program without a console has no stderr, or closed it
        return False
