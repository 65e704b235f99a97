import io
import sys
import threading
from itertools import groupby

import numba
import pytest
from numba.core import event

from forestprune.system import progress
from forestprune.system.bars import TerminalBar


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_items_pass_through_and_nothing_shows_when_it_is_quick(monkeypatch, stream):
    err = stream()
    monkeypatch.setattr(sys, "stderr", err)
    assert list(progress.track(iter(range(50)), "counting", 50)) == list(range(50))
    assert err.getvalue() == ""


def test_a_bar_shows_on_a_terminal_when_it_takes_long(monkeypatch):
    err = Terminal()
    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    assert list(progress.track(range(5), "counting", 5)) == list(range(5))
    assert "counting" in err.getvalue()


def test_no_bar_where_nobody_looks(monkeypatch):
    err = io.StringIO()
    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    assert list(progress.track(range(5), "counting", 5)) == list(range(5))
    assert err.getvalue() == ""


def test_a_bar_can_be_hidden(monkeypatch):
    err = Terminal()
    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    with progress.hidden():
        assert list(progress.track(range(5), "counting", 5)) == list(range(5))
    assert err.getvalue() == ""
    list(progress.track(range(5), "counting", 5))
    assert "counting" in err.getvalue()


def impatient(monkeypatch):
    """Return a terminal; no fixture, since pytest puts its own stderr in place before a test."""
    err = Terminal()
    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    return err


def test_work_within_work_is_shown_too(monkeypatch):
    terminal = impatient(monkeypatch)
    for _ in progress.track(range(2), "outer", 2):
        assert list(progress.track(range(3), "inner", 3)) == [0, 1, 2]
    text = terminal.getvalue()
    assert "outer: inner" in text
    before = len(text)
    list(progress.track(range(3), "again", 3))  # the first display has ended
    assert "outer" not in terminal.getvalue()[before:]


def test_work_that_is_given_up_is_gone(monkeypatch):
    impatient(monkeypatch)
    for _ in progress.track(range(9), "given up", 9):
        break
    with pytest.raises(ZeroDivisionError), progress.bar("failing", 1):
        _ = 1 / 0
    assert not progress._display._works
    assert progress._display._bar is None


def test_loops_that_are_given_up_in_any_order_are_gone(monkeypatch):
    impatient(monkeypatch)
    outer, inner = (progress.track(range(9), name, 9) for name in ("outer", "inner"))
    next(outer)
    next(inner)
    outer.close()
    assert progress._display._bar is None
    inner.close()
    assert not progress._display._works


class Drawn:
    """A bar that keeps what is drawn."""

    kept: list

    def draw(self, text, share, left, *, at_once=False):
        self.kept.append((text, share, left))

    def close(self):
        self.kept.append("closed")


@pytest.fixture
def drawn(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    monkeypatch.setattr(progress, "bar_to_look_at", lambda: Drawn)
    # What is compiled meanwhile, in a thread that an earlier test has left behind, is shown there.
    monkeypatch.setattr(progress, "_display", progress._Display())
    monkeypatch.setattr(Drawn, "kept", [], raising=False)
    return Drawn.kept


def test_all_work_is_one_bar_that_never_goes_back(drawn):
    for _ in progress.track(range(3), "outer", 3):
        for _ in progress.track(range(10), "inner", 10):
            pass
        for _ in progress.track(range(10), "further", 10):
            pass
    assert drawn.pop() == "closed"
    assert "closed" not in drawn
    shares = [share for _, share, _ in drawn]
    assert shares == sorted(shares)
    assert 0.0 == shares[0] < shares[5] < 1 / 3 < shares[-1] <= 0.99
    # The three steps of the outer work are not all that is seen of it.
    assert len({round(share, 3) for share in shares}) > 20
    assert {text for text, _, _ in drawn} == {"outer", "outer: inner", "outer: further"}


@pytest.mark.parametrize("nested", [False, True])
def test_there_may_be_more_to_do_than_was_guessed_or_less(drawn, nested):
    for _ in progress.track(range(2), "outer", 2) if nested else [None]:
        assert list(progress.track(iter(range(25)), "guessed", 10)) == list(range(25))
        assert list(progress.track(iter(range(3)), "guessed", 10)) == [0, 1, 2]
    shares = [share for _, share, _ in filter(lambda what: what != "closed", drawn)]
    if nested:
        assert shares == sorted(shares)
        assert all(share < 1.0 for share in shares)
    else:
        assert None not in shares[:10]
        assert shares[10:25] == [None] * 15  # nobody knows any more
        assert shares[25:] == pytest.approx([0.0, 0.1, 0.2])


def test_no_time_is_guessed_while_the_compiler_works(drawn):
    with progress.bar("pruning", 4) as show:
        show(2)
        progress._display.compile(1)
        progress._display.compile(-1)
    # Whoever waits for the compiler is told from another thread as well, at any time.
    pictures = [(text, bool(left)) for text, _, left in drawn[:-1]]
    assert [picture for picture, _ in groupby(pictures)] == [
        ("pruning", True),
        ("pruning" + progress.COMPILING, False),
        ("pruning", True),
    ]


def test_other_threads_show_nothing(monkeypatch):
    terminal = impatient(monkeypatch)
    with progress.bar("here", 1) as show:
        show(0.5)
        thread = threading.Thread(target=lambda: list(progress.track(range(3), "elsewhere", 3)))
        thread.start()
        thread.join()
    assert "here" in terminal.getvalue()
    assert "elsewhere" not in terminal.getvalue()


def test_one_long_call_is_shown_though_nobody_says_how_far_it_has_come(monkeypatch):
    terminal = impatient(monkeypatch)
    shown = threading.Event()

    class Noticed(TerminalBar):
        def draw(self, *args, **how):
            super().draw(*args, **how)
            shown.set()

    monkeypatch.setattr(progress, "bar_to_look_at", lambda: Noticed)
    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    with progress.bar("one call", None):
        assert shown.wait(20)
    assert "one call" in terminal.getvalue()


def closed():
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("stderr", [None, object(), closed()])
def test_a_program_without_a_console_runs(monkeypatch, stderr):
    monkeypatch.setattr(sys, "stderr", stderr)
    assert list(progress.track(range(5), "counting", 5)) == list(range(5))


def as_kernel(function):
    """Return a function as if it were one of the package's kernels."""
    function.__module__ = "forestprune.kernels.drawn"
    return function


def test_where_there_is_no_terminal_one_line_says_so_once(monkeypatch):
    if numba.config.DISABLE_JIT:
        pytest.skip("nothing is compiled")
    monkeypatch.setattr(progress._display, "_said", True)  # which hears of it too
    monkeypatch.setattr(progress, "_display", progress._Display())
    monkeypatch.setattr(progress, "SOON", 0.0)
    log = io.StringIO()
    monkeypatch.setattr("sys.stderr", log)
    with event.install_listener("numba:compile", progress.listener()):
        numba.njit(lambda x: x + 1)(1)  # a function of the user's
        assert log.getvalue() == ""
        numba.njit(as_kernel(lambda x: x + 1))(1)
        numba.njit(as_kernel(lambda x: x + 2))(1)
    assert log.getvalue() == progress.LINE + "\n"
    assert "once for each installation" in progress.LINE
    monkeypatch.setattr(progress, "_display", progress._Display())
    with event.install_listener("numba:compile", progress.listener()), progress.hidden():
        numba.njit(as_kernel(lambda x: x + 3))(1)
    assert log.getvalue() == progress.LINE + "\n"


def test_waiting_for_the_compiler_is_said(monkeypatch):
    numba = pytest.importorskip("numba")
    if numba.config.DISABLE_JIT:
        pytest.skip("nothing is compiled")
    monkeypatch.setattr(progress, "_display", progress._Display())
    terminal = impatient(monkeypatch)
    thread = threading.Thread(target=numba.njit(as_kernel(lambda x: x + 1)), args=(1,))
    heard = event.install_listener("numba:compile", progress.listener())
    with heard, progress.bar("outer", 1) as outer, progress.bar("inner", 1) as inner:
        outer(0)
        inner(0)
        assert "compiling" not in terminal.getvalue()
        thread.start()  # work is shared among threads
        thread.join()
        before = terminal.getvalue()
        assert "inner (compiling, once for each installation)" in before
        assert "outer (compiling" not in before
        inner(0.5)
        progress._display.show(at_once=True)
        assert "compiling" not in terminal.getvalue()[len(before) :]
