import io
import sys

import pytest

from forestprune import progress


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


def closed():
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("stderr", [None, object(), closed()])
def test_a_program_without_a_console_runs(monkeypatch, stderr):
    monkeypatch.setattr(sys, "stderr", stderr)
    assert list(progress.track(range(5), "counting", 5)) == list(range(5))
