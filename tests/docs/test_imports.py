"""The import table: what it allows holds, and the script that checks it can tell when not."""

import importlib.util
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import forestprune
from forestprune import kernels

TOOL = Path(__file__).parent.parent.parent / "tools" / "check_imports.py"


@pytest.fixture
def tool():
    spec = importlib.util.spec_from_file_location("check_imports", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_package_keeps_to_the_table(tool):
    assert tool.violations() == []


@pytest.mark.parametrize(
    ("path", "line", "complaint"),
    [
        ("forest/a.py", "from forestprune.rows.encoding import encode", "does not stand above it"),
        ("forest/a.py", "def f():\n    import forestprune.solve.kept", "does not stand above it"),
        ("system/a.py", "from forestprune import forest", "does not stand above it"),
        ("kernels/fast.py", "import scipy", "a kernel imports scipy"),
        ("misc.py", "", "not in the table"),
        ("forest/a.py", "import forestprune.misc", "not in the table"),
        ("rows/a.py", "from forestprune.forest.forest import Forest", None),
        ("rows/a.py", "from forestprune.loss import Loss", "does not stand above it"),
        ("rows/a.py", "from forestprune.rows.b import encode", None),
        ("rows/a.py", "from forestprune.rows.b import _encode", "which is private"),
    ],
)
def test_the_script_sees_imports_that_go_the_wrong_way(
    tool, monkeypatch, tmp_path, path, line, complaint
):
    monkeypatch.setattr(tool, "PACKAGE", tmp_path)
    (tmp_path / path).parent.mkdir(exist_ok=True)
    (tmp_path / path).write_text(line)
    found = tool.violations()
    assert len(found) == (complaint is not None)
    if complaint:
        assert complaint in found[0]


def modules_after(script):
    """Return the modules that a fresh process has imported once it has run a script."""
    run = subprocess.run(
        [sys.executable, "-c", f"{textwrap.dedent(script)}\nimport sys\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(run.stdout.splitlines()[-1].split())


HEAVY = {"numpy", "scipy", "sklearn", "numba", "joblib", "pandas"}


def test_importing_the_package_imports_nothing_else():
    loaded = modules_after("import forestprune; dir(forestprune); forestprune.__version__")
    assert {name for name in loaded if name.startswith("forestprune")} == {
        "forestprune",
        "forestprune._version",
    }
    assert not loaded & (HEAVY | {"typer", "rich", "dataclasses"})


@pytest.mark.parametrize(
    "args",
    [
        ["--help"],
        ["--version"],
        ["--show-completion"],
        ["prune", "--help"],
        ["bench", "--help"],
        ["nonsense"],
        ["prune", "m.json", "d.csv", "--out", "s.json", "--max-nodes", "none"],
        ["path", "m.json", "d.csv", "--quiet", "--json"],
    ],
)
def test_the_command_line_answers_before_it_imports_what_commands_need(args):
    script = f"""
        import contextlib, io
        from forestprune.cli.app import app
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
            app({args!r})
    """
    loaded = modules_after(script)
    assert "forestprune.cli.prune" in loaded
    assert not loaded & HEAVY


def test_no_other_library_is_imported_unasked():
    before = modules_after("import sklearn")
    script = """
        import forestprune
        for name in forestprune.__all__:
            if not name.startswith("plot_"):
                getattr(forestprune, name)
    """
    added = modules_after(script) - before
    assert "forestprune.forest.forest" in added
    assert not added & {"sklearn.ensemble", "numba"}
    optional = {
        "pandas",
        "polars",
        "matplotlib",
        "xgboost",
        "lightgbm",
        "catboost",
        "rich",
        "typer",
    }
    assert not {name.partition(".")[0] for name in added} & optional


def test_every_public_name_is_found_whatever_was_imported_before():
    script = """
        import importlib, pkgutil
        import forestprune as fp
        for part in pkgutil.iter_modules(fp.__path__):
            if part.name != "__main__":
                importlib.import_module(f"forestprune.{part.name}")
        assert set(fp._MODULES) | {"__version__", "baselines"} == set(fp.__all__)
        assert set(fp.__all__) <= set(dir(fp))
        space = {}
        exec("from forestprune import *", space)
        for name, module in fp._MODULES.items():
            found = getattr(importlib.import_module(f"forestprune.{module}"), name)
            assert getattr(fp, name) is found is space[name], name
        assert fp.baselines is importlib.import_module("forestprune.baselines")
    """
    assert "forestprune.api" in modules_after(script)
    with pytest.raises(AttributeError, match="'forestprune' has no attribute 'nonsense'"):
        _ = forestprune.nonsense


def test_kernels_are_found_by_name():
    for name in kernels._FILES:
        assert callable(getattr(kernels, name))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = kernels.nonsense
