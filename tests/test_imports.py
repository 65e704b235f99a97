"""The import table: what it allows holds, and the script that checks it can tell when not."""

import importlib.util
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from forestprune import kernels

TOOL = Path(__file__).parent.parent / "tools" / "check_imports.py"


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
        ("forest.py", "from forestprune.encoding import encode", "stands below it"),
        ("forest.py", "def f():\n    import forestprune.build", "stands below it"),
        ("threads.py", "from forestprune import forest", "stands below it"),
        ("kernels/fast.py", "import scipy", "a kernel imports scipy"),
        ("misc.py", "", "not in the table"),
        ("forest.py", "import forestprune.misc", "not in the table"),
        ("encoding.py", "from forestprune.forest import Forest", None),
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


def test_no_other_library_is_imported_unasked():
    script = """
        import sys, sklearn
        before = set(sys.modules)
        import forestprune
        print(*set(sys.modules) - before)
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
    )
    added = set(run.stdout.split())
    assert "forestprune.forest" in added
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


def test_kernels_are_found_by_name():
    for name in kernels._FILES:
        assert callable(getattr(kernels, name))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = kernels.nonsense
