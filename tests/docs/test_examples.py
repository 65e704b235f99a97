"""The examples run, and what they print of themselves is so."""

import re
import runpy
import shutil
import sys

import pytest
from pages import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)

    def run(name, *arguments):
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
        return capsys.readouterr().out

    return run


def numbers(output, what):
    """Return the numbers of a line of a table."""
    line = next(line for line in output.splitlines() if line.startswith(what))
    return [float(text.replace(",", "")) for text in line.removeprefix(what).split()]


def table(output):
    """Return the lines of a table."""
    lines = output.splitlines()
    begun = next(place for place, line in enumerate(lines) if line.startswith(" "))
    return lines[begun : lines.index("", begun)]


def test_shrink_a_forest(run):
    output = run("shrink_a_forest.py", "--trees", "10", "--tolerance", "0.05")
    full, small = numbers(output, "joblib file, bytes")
    assert small < full / 5
    full, small = numbers(output, "R squared, rows chosen by")
    assert small >= full - 0.051
    assert "at most 0.05 below the full one's" in output
    assert len({len(line) for line in table(output)}) == 1
    assert "a RandomForestRegressor was loaded; its 1,625 predictions are the same" in output


def test_flash_budget(run, tmp_path):
    output = run("flash_budget.py", "--bytes", "1000", "--trees", "30", "--out", "wine.h")
    small = numbers(output, "C program, bytes at most")[1]
    assert 500 < small <= 1000
    assert output.startswith("Budget: 1,000 bytes of flash")
    assert f"\n{small:,.0f} of 1,000 bytes are used: " in output
    assert len({len(line) for line in table(output)}) == 1
    assert "wine_predict" in (tmp_path / "wine.h").read_text()
    if shutil.which("cc") is None:
        assert "NOT verified" in output
    else:
        error, promised = re.search(r"within (\S+) of the model's; .* (\S+)\.\n", output).groups()
        assert float(error) <= float(promised) < 1e-3


def test_flash_budget_without_a_compiler(run, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert "NOT verified" in run("flash_budget.py", "--bytes", "400", "--trees", "5")


def test_flash_budget_says_what_the_least_is(run):
    with pytest.raises(SystemExit, match=r"max_bytes=100\. The smallest .* takes \d+ bytes"):
        run("flash_budget.py", "--bytes", "100", "--trees", "5")


def test_xgboost_in_production(run):
    pytest.importorskip("xgboost")
    output = run("xgboost_in_production.py", "--rows", "1000", "--trees", "40")
    full, small = numbers(output, "file, bytes")
    assert small < full / 2
    assert float(re.search(r"within (\S+) of what", output)[1]) < 1e-4


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_examples_say_how_to_run_them_and_are_tested(example):
    assert f"    python examples/{example.name}" in example.read_text(encoding="utf-8")
    assert f"test_{example.stem}" in globals()
