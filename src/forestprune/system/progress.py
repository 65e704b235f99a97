"""Progress for people who wait more than two seconds: bars on a terminal, elsewhere one line.

That line says that kernels are compiled, which happens once in each installation.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

Item = TypeVar("Item")

PATIENCE = 2.0
"""Seconds before a bar appears."""

COMPILING = " (compiling, once for each installation)"

LINE = "forestprune: compiling, once for each installation; this takes some seconds."

SOON = 0.5
"""Seconds of compiling after which that line is printed where there is no terminal."""


@dataclass(eq=False)
class _Bar:
    """Some work that is under way."""

    description: str
    total: float | None
    begun: float = field(default_factory=time.monotonic)
    task: "TaskID | None" = None


class _Display:
    """The bars of all work that is under way, one within the other."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._bars: list[_Bar] = []
        self._shown: Progress | None = None
        self._thread: int | None = None
        self._compiling = 0
        self._spent = 0.0
        self._since = 0.0
        self._said = False

    def belongs_here(self) -> bool:
        """Tell whether work that begins now, in this thread, is part of what is shown."""
        if self._bars:  # then somebody looks, though rich may have put its own stderr in place
            return self._thread == threading.get_ident()
        return _somebody_looks()

    def enter(self, bar: _Bar) -> None:
        with self._lock:
            self._thread = threading.get_ident()
            self._bars.append(bar)

    def leave(self, bar: _Bar) -> None:
        with self._lock:
            self._bars.remove(bar)
            if self._shown is not None and bar.task is not None:
                self._shown.remove_task(bar.task)
            if self._shown is not None and not self._bars:
                self._shown.stop()
                self._shown = None

    def update(self, bar: _Bar, done: float) -> None:
        with self._lock:
            self.show()
            if self._shown is not None and bar.task is not None:
                self._shown.update(bar.task, completed=done)

    def show(self) -> None:
        """Let the bars appear for which somebody has waited long enough."""
        with self._lock:
            late = time.monotonic() - PATIENCE
            for bar in self._bars:
                if bar.task is None and bar.begun < late:
                    if self._shown is None:
                        self._shown = _started()
                    bar.task = self._shown.add_task(bar.description, total=bar.total)
                    self._say_why()

    def compile(self, step: int) -> None:
        """Count what the compiler is at, in whatever thread; say so where somebody waits for it."""
        with self._lock:
            if self._compiling == 0:
                self._since = time.monotonic()
                self._say_once()
            self._compiling += step
            if self._compiling == 0:
                self._spent += time.monotonic() - self._since
            if self._bars and self._compiling == step == 1:
                _later(self.show)
            self._say_why()

    def _say_once(self) -> None:
        """Where nobody sees bars, as in a notebook or a log, say that it takes a while."""
        if self._said or _hidden or self._spent < SOON or self._bars or _somebody_looks():
            return
        self._said = True
        with suppress(OSError, ValueError, AttributeError):  # stderr may be closed, or none at all
            print(LINE, file=sys.stderr, flush=True)

    def _say_why(self) -> None:
        """Let the last bar say what it waits for."""
        if self._shown is None:
            return
        visible = [(bar.task, bar.description) for bar in self._bars if bar.task is not None]
        for number, (task, description) in enumerate(visible, 1):
            why = COMPILING if self._compiling and number == len(visible) else ""
            self._shown.update(task, description=description + why)
        self._shown.refresh()


_display = _Display()
_hidden = False


def _started() -> "Progress":
    from rich.console import Console
    from rich.progress import Progress

    shown = Progress(console=Console(stderr=True), transient=True)
    shown.start()
    return shown


@contextmanager
def bar(description: str, total: float | None) -> Iterator[Callable[[float], None]]:
    """Return a function to be told how much of `total` is done; a bar appears if it takes long.

    Without a total, as where one call does everything, the bar only says that work is under way.
    """
    if _hidden or not _display.belongs_here():
        yield lambda _: None
        return
    work = _Bar(description, total)
    # Nobody says how far the work has come, so somebody has to look after the time.
    timer = _later(_display.show) if total is None else None
    _display.enter(work)
    try:
        yield lambda done: _display.update(work, done)
    finally:
        if timer is not None:
            timer.cancel()
        _display.leave(work)


def _later(call: Callable[[], None]) -> threading.Timer:
    timer = threading.Timer(PATIENCE + 0.1, call)
    timer.daemon = True
    timer.start()
    return timer


def watch_compiler() -> None:
    """Hear of what is compiled from now on."""
    from numba.core import event

    class Compiler(event.Listener):
        def on_start(self, event: event.Event) -> None:
            if _is_ours(event):
                _display.compile(1)

        def on_end(self, event: event.Event) -> None:
            if _is_ours(event):
                _display.compile(-1)

    event.register("numba:compile", Compiler())  # type: ignore[no-untyped-call]


def _is_ours(event: Any) -> bool:
    """Tell whether it is one of our kernels that is compiled, not a function of the user's."""
    function = getattr(event.data.get("dispatcher"), "py_func", None)
    return getattr(function, "__module__", "").startswith("forestprune.")


def track(items: Iterable[Item], description: str, total: int) -> Iterator[Item]:
    """Yield from `items`; show how many of `total` are done if it takes long."""
    with bar(description, total) as show:
        for done, item in enumerate(items):
            show(done)
            yield item


@contextmanager
def hidden() -> Iterator[None]:
    """Show no bar within this context."""
    global _hidden
    before, _hidden = _hidden, True
    try:
        yield
    finally:
        _hidden = before


def _somebody_looks() -> bool:
    try:
        return sys.stderr.isatty()
    except (
        AttributeError,
        ValueError,
    ):  # a program without a console has no stderr, or a closed one
        return False
