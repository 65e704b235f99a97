"""Progress for people who wait more than two seconds: a bar on a terminal and in a notebook.

Elsewhere one line says that kernels are compiled, which happens once in each installation.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from forestprune.system.bars import Bar, bar_to_look_at
from forestprune.system.work import Work, share_done, time_left

Item = TypeVar("Item")

PATIENCE = 2.0
"""Seconds before a bar appears."""

COMPILING = " (compiling, once for each installation)"

LINE = "forestprune: compiling, once for each installation; this takes some seconds."

SOON = 0.5
"""Seconds of compiling after which that line is printed where there is no bar."""


class _Display:
    """The one bar for all work that is under way, each within a step of the one before."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._works: list[Work] = []
        self._bar: Bar | None = None
        self._kind: Callable[[], Bar] | None = None
        self._furthest = 0.0
        self._thread: int | None = None
        self._compiling = 0
        self._spent = self._spent_before = 0.0
        self._since = 0.0
        self._said = False

    def belongs_here(self) -> bool:
        """Tell whether work that begins now, in this thread, is part of what is shown."""
        if self._works:  # then somebody looks, though rich may have put its own stderr in place
            return self._thread == threading.get_ident()
        self._kind = bar_to_look_at()
        return self._kind is not None

    def enter(self, work: Work) -> None:
        with self._lock:
            self._thread = threading.get_ident()
            if self._works:
                self._works[-1].begin(work)
            else:
                self._furthest, self._spent_before = 0.0, self._spent
            self._works.append(work)

    def leave(self, work: Work) -> None:
        with self._lock:
            if work not in self._works:  # a loop that was given up, and what it was within too
                return
            del self._works[self._works.index(work) :]
            if self._works:
                self._works[-1].end(work)
            elif self._bar is not None:
                bar, self._bar = self._bar, None
                bar.close()

    def update(self, work: Work, done: float) -> None:
        with self._lock:
            work.advance(done)
            self.show()

    def show(self, *, at_once: bool = False) -> None:
        """Draw the bar, if somebody has waited long enough for one."""
        with self._lock:
            late = time.monotonic() - PATIENCE
            visible = [work.description for work in self._works if work.begun < late]
            if not visible or self._kind is None:
                return
            if self._bar is None:
                self._bar, at_once = self._kind(), True
            share, left = share_done(self._works), ""
            if share is not None:  # it never goes back, nor says that all is done
                share = self._furthest = min(max(self._furthest, share), 0.99)
                # What compiling takes says nothing of the rest.
                elapsed = time.monotonic() - self._works[0].begun
                left = time_left(share, elapsed - (self._spent - self._spent_before))
            text = ": ".join(dict.fromkeys((visible[0], visible[-1])))
            if self._compiling:
                text, left = text + COMPILING, ""
            self._bar.draw(text, share, left, at_once=at_once)

    def compile(self, step: int) -> None:
        """Count what the compiler is at, in whatever thread; say so where somebody waits for it."""
        with self._lock:
            if self._compiling == 0:
                self._since = time.monotonic()
                self._say_once()
            self._compiling += step
            if self._compiling == 0:
                self._spent += time.monotonic() - self._since
            if self._works and self._compiling == step == 1:
                _later(self.show)
            if self._bar is not None:
                self.show(at_once=True)

    def _say_once(self) -> None:
        """Where nobody sees bars, as in a log, say that it takes a while."""
        if self._said or _hidden or self._spent < SOON or self._works or bar_to_look_at():
            return
        self._said = True
        with suppress(OSError, ValueError, AttributeError):  # stderr may be closed, or none at all
            print(LINE, file=sys.stderr, flush=True)


_display = _Display()
_hidden = False


@contextmanager
def bar(
    description: str, total: float | None, *, power: float = 1.0
) -> Iterator[Callable[[float], None]]:
    """Return a function to be told how much of `total` is done; a bar appears if it takes long.

    `total` can be a guess: there may be less to do, and more. Without one, as where one call does
    everything, the bar only says that work is under way. `power` is more than 1 if work becomes
    slower: see :class:`forestprune.system.work.Work`.
    """
    if _hidden or not _display.belongs_here():
        yield lambda _: None
        return
    work = Work(description, total, power)
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

    event.register("numba:compile", listener())  # type: ignore[no-untyped-call]


def listener() -> Any:
    """Return what tells the present display, whenever numba asks it to, of what is compiled."""
    from numba.core import event

    display = _display

    class Compiler(event.Listener):
        def on_start(self, event: event.Event) -> None:
            if _is_ours(event):
                display.compile(1)

        def on_end(self, event: event.Event) -> None:
            if _is_ours(event):
                display.compile(-1)

    return Compiler()


def _is_ours(event: Any) -> bool:
    """Tell whether it is one of our kernels that is compiled, not a function of the user's."""
    function = getattr(event.data.get("dispatcher"), "py_func", None)
    return getattr(function, "__module__", "").startswith("forestprune.")


def track(
    items: Iterable[Item], description: str, total: float | None, *, power: float = 1.0
) -> Iterator[Item]:
    """Yield from `items`; show how much of them is done if it takes long: see :func:`bar`."""
    with bar(description, total, power=power) as show:
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
