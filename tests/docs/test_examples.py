"""The examples run, and what they print of themselves is so."""

import re
import runpy
import shutil
import sys

import numpy as np
import pytest
from pages import ROOT
from sklearn.ensemble import GradientBoostingRegressor

import forestprune as fp

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
    small = numbers(output, "tables in C, bytes")[1]
    assert 500 < small <= 1000
    assert output.startswith("Budget: 1,000 bytes of tables")
    assert f"\n{small:,.0f} of 1,000 bytes are used: " in output
    assert len({len(line) for line in table(output)}) == 1
    assert "forest_predict" in (tmp_path / "wine.h").read_text()
    if shutil.which("cc") is None:
        assert "NOT verified" in output
    else:
        n_bytes, error = re.search(r"Compiled: ([\d,]+) bytes .* within (\S+) of", output).groups()
        assert float(n_bytes.replace(",", "")) == numbers(output, "tables in C, bytes")[1]
        assert float(error) < 1e-5


def test_flash_budget_without_a_compiler(run, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert "NOT verified" in run("flash_budget.py", "--bytes", "200", "--trees", "5")


def test_flash_budget_says_what_the_least_is(run):
    with pytest.raises(SystemExit, match=r"^--bytes must be at least 30\b.*; got 29\.$"):
        run("flash_budget.py", "--bytes", "29")
    assert numbers(run("flash_budget.py", "--bytes", "30"), "tables in C, bytes")[1] == 30


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_c_sends_rows_that_stand_at_thresholds_where_the_model_does():
    example = runpy.run_path(str(ROOT / "examples" / "flash_budget.py"))
    rng = np.random.default_rng(0)
    X = rng.random((300, 3)).astype(np.float32)
    y = 10.0 * X[:, 0] + X[:, 1]
    forest = fp.Forest.from_model(GradientBoostingRegressor(n_estimators=10).fit(X, y))
    at = forest.threshold[forest.left >= 0].astype(np.float32)
    rows = np.repeat(np.concatenate([at, np.nextafter(at, np.float32(9))])[:, np.newaxis], 3, 1)
    predictions, _ = example["compiled_predictions"](example["to_c"](forest, ["a", "b", "c"]), rows)
    np.testing.assert_allclose(predictions, forest.predict(rows), atol=1e-5)


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
