import io
import sys
import types

import pytest

from forestprune.system import bars, progress
from forestprune.system.bars import NotebookBar, TerminalBar, bar_to_look_at


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def notebook(monkeypatch):
    """Let a kernel run this, as it seems; return what the browser is told: (how, name, data)."""
    told = []
    ipython, displays = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    shell = types.SimpleNamespace(kernel=object(), execution_count=7)
    ipython.get_ipython = lambda: shell
    ipython.display = displays

    def teller(how):
        def tell(data, *, raw, display_id):
            assert raw
            told.append((how, display_id, data))

        return tell

    displays.display, displays.update_display = teller("new"), teller("again")
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", displays)
    monkeypatch.setattr(NotebookBar, "_last", None)
    return told


def test_where_a_bar_is_seen(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert bar_to_look_at() is None
    assert "IPython" not in sys.modules
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert bar_to_look_at() is TerminalBar


@pytest.mark.parametrize("shell", [None, object()])  # IPython imported, or on a terminal
def test_ipython_alone_is_no_notebook(monkeypatch, notebook, shell):
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: shell)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert bar_to_look_at() is None


def test_a_notebook_has_one_output_that_is_empty_in_the_end(monkeypatch, notebook):
    err = io.StringIO()
    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    monkeypatch.setattr(bars, "EVERY", 0.0)
    assert bar_to_look_at() is NotebookBar
    for _ in progress.track(range(2), "rows < 5", 2):
        list(progress.track(range(3), "inner", 3))
    assert [how for how, _, _ in notebook] == ["new"] + ["again"] * (len(notebook) - 1)
    assert len({name for _, name, _ in notebook}) == 1
    data = [data for _, _, data in notebook]
    assert data[0]["text/plain"] == "rows < 5, 0 %"
    assert data[0]["text/html"].startswith('<progress max="1" value="0.000"')
    assert data[0]["text/html"].endswith("</progress>rows &lt; 5, 0 %")
    assert any("rows < 5: inner, " in each["text/plain"] for each in data)
    assert set(data[-1].values()) == {""}
    assert err.getvalue() == ""


def test_a_cell_has_one_output_for_all_it_does(notebook):
    for cell in (7, 7, 8):
        sys.modules["IPython"].get_ipython().execution_count = cell
        bar = NotebookBar()
        bar.draw("counting", 0.5, "")
        bar.close()
    assert [how for how, _, _ in notebook] == ["new", "again", "again", "again", "new", "again"]
    assert len({name for _, name, _ in notebook}) == 2


def test_a_browser_is_not_told_too_often(notebook):
    bar = NotebookBar()
    for number in range(100):
        bar.draw("counting", number / 100, "")
    assert len(notebook) < 50
    bar.draw("counting", None, "", at_once=True)
    assert notebook[-1][2]["text/plain"] == "counting"
    assert "value" not in notebook[-1][2]["text/html"]


def test_nothing_is_shown_in_a_notebook_for_what_is_quick(notebook):
    list(progress.track(range(5), "counting", 5))
    NotebookBar().close()
    assert notebook == []


def test_on_a_terminal_share_and_time_are_shown_and_gone_in_the_end(monkeypatch):
    err = Terminal()
    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    bar = TerminalBar()
    bar.draw("pruning", 0.456, "about 30 s left", at_once=True)
    for part in ("pruning", " 46%", "about 30 s left"):
        assert part in err.getvalue()
    before = len(err.getvalue())
    bar.draw("pruning", None, "", at_once=True)
    print("a warning meanwhile", file=sys.stderr)
    assert "%" not in err.getvalue()[before:]
    bar.close()
    after = err.getvalue()[before:]
    assert "a warning meanwhile\n" in after
    assert after.endswith("\x1b[2K")  # the line is erased
