import re
import subprocess
import sys

import numba
import numpy as np
import pytest

from forestprune import demo

COMPILED = """
import sys

from forestprune import demo, kernels


def compiled():
    modules = {name: sys.modules.get(f"forestprune.kernels.{file}") for name, file in FILES}
    return {
        (name, signature)
        for name, module in modules.items()
        if module is not None
        for signature in getattr(module, name).signatures
    }


def compile_first(*args):
    seconds = before_all(*args)
    first.update(compiled())
    return seconds


FILES = kernels._FILES.items()
first, before_all = set(), demo._compile
demo._compile = compile_first
demo.main(int(sys.argv[1]))
assert first
assert compiled() == first, [name for name, _ in compiled() - first]
"""


def tables(text):
    lines = [line for line in text.splitlines() if "│" in line]
    rows = [[cell.strip() for cell in line.strip("│ ").split("│")] for line in lines]
    starts = [i for i, row in enumerate(rows) if row[0] == "full model"]
    return [rows[start:end] for start, end in zip(starts, [*starts[1:], None], strict=True)]


def test_the_demo_shows_the_trade_off_and_writes_a_report(capsys, tmp_path):
    demo.main(n_trees=10, folder=tmp_path / "demo")
    text = capsys.readouterr().out
    *found, classes = tables(text)
    assert len(found) == 2
    assert [row[0] for row in classes][2:] == [f"max {n} nodes" for n in demo.FEW]
    assert int(classes[-1][1]) <= demo.FEW[-1] < int(classes[0][1])
    for *_, accuracy, log_loss, area in classes:
        assert 0.5 < float(accuracy) <= 1.0
        assert 0.0 < float(log_loss) < 1.0
        assert 0.5 < float(area) <= 1.0
    assert re.search(r"\nLog-odds of 'malignant' = \S+ \+ what ", text)
    for rows in found:
        assert [row[0] for row in rows][3:] == [f"max {n:,} nodes" for n in demo.BUDGETS]
        nodes = [int(row[1].replace(",", "")) for row in rows]
        for count, budget in zip(nodes[3:], demo.BUDGETS, strict=True):
            assert 0 < count <= budget
        assert max(nodes) == nodes[0]
        sizes = [float(row[4].replace(",", "")) for row in rows]
        assert sizes[0] == max(sizes)
        assert all(re.fullmatch(r"0\.\d{4}", row[5]) for row in rows)
        assert all(float(row[6]) > 0 for row in rows)
    assert text.splitlines()[-1].endswith(str(tmp_path / "demo" / "report.html"))
    report = (tmp_path / "demo" / "report.html").read_text("utf-8")
    full, picked = (int(row[1].replace(",", "")) for row in found[1][:2])
    assert f"{full:,} → {picked:,}" in report
    assert "alcohol" in report
    assert (tmp_path / "demo" / "path.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_missing_is_said_word_for_word(capsys, tmp_path, monkeypatch):
    def refuse():
        raise ImportError('Reports need jinja2: pip install "forestprune[report]"')

    def refuse_too(*_):
        raise ImportError('Plots need matplotlib: pip install "forestprune[plot]"')

    monkeypatch.setattr("forestprune.demo.check_installed", refuse)
    monkeypatch.setattr("forestprune.demo._save_figure", refuse_too)
    demo.main(n_trees=3, folder=tmp_path / "demo")
    assert capsys.readouterr().out.splitlines()[-2:] == [
        'There is no figure: Plots need matplotlib: pip install "forestprune[plot]"',
        'There is no report: Reports need jinja2: pip install "forestprune[report]"',
    ]
    assert not (tmp_path / "demo").exists()


def test_names_of_folders_are_not_markup(capsys, tmp_path):
    folder = tmp_path / "[bold]" / ":wine_glass:"
    demo.main(n_trees=3, folder=folder)
    figure, report = capsys.readouterr().out.splitlines()[-2:]
    assert figure.endswith(f": {folder / 'path.png'}")
    assert report.endswith(f": {folder / 'report.html'}")


@pytest.mark.parametrize(("seconds", "said"), [(0.0, 0), (21.3, 1)])
def test_compiling_has_a_line_of_its_own_if_there_was_any(
    capsys, tmp_path, monkeypatch, seconds, said
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "_compile", lambda *_: seconds)
    demo.main(n_trees=3)
    text = capsys.readouterr().out
    assert text.lower().count("compil") == said
    assert text.startswith("Compiling, once for each installation, took 21 s.\n") == bool(said)


@pytest.mark.long
def test_nothing_is_compiled_while_something_is_timed(tmp_path):
    call = [sys.executable, "-c", COMPILED, str(demo.ENOUGH_TREES + 5)]
    result = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_the_seconds_of_the_compiler_are_counted(monkeypatch):
    X, y = np.zeros((4, 1)), np.arange(4.0)
    monkeypatch.setattr(demo, "prune_path", lambda *_, **__: Compiling())
    wines, cells = (demo._Division(X, target, X, target, X, target) for target in (y, y > 1.0))
    assert demo._compile(1, wines, cells) > 0.0


class Compiling:
    """Stands for a path that has to be compiled."""

    def select(self, **_):
        return self

    def predict(self, _):
        return None

    def to_native(self):
        numba.njit(lambda x: x + 1)(1)
