"""Whatever else happens: one line, an exit status, and nothing half-written."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from shops import RF, call, fails, fails_noted, registry_writers, succeeds

from forestprune.select import request as choosing
from forestprune.tables import optional

pytest.importorskip("pandas")


def test_an_unexpected_error_is_one_line_with_its_type(shop, tmp_path, monkeypatch):
    def fail(*args, **kwargs):
        raise RuntimeError("\n boom\nand more\n")

    monkeypatch.setattr(choosing, "choose", fail)
    args = ["prune", shop / RF, shop / "rows.csv", "--target", "y", "-o", tmp_path / "s.npz"]
    fails_noted(tmp_path, *args, match=r"^forestprune: RuntimeError: boom \(FORESTPRUNE_DEBUG=1")
    monkeypatch.setenv("FORESTPRUNE_DEBUG", "1")
    result = call(*args)
    assert isinstance(result.exception, RuntimeError)
    monkeypatch.setenv("FORESTPRUNE_DEBUG", "0")
    assert isinstance(call(*args).exception, SystemExit)


def test_an_error_of_a_library_shows_its_type(shop, tmp_path, friedman):
    X, y = friedman
    X.assign(y=y, a=np.inf).to_csv(tmp_path / "rows.csv", index=False)
    args = ["prune", shop / RF, tmp_path / "rows.csv", "--target", "y", "-o", tmp_path / "s.npz"]
    fails_noted(tmp_path, *args, match=r"ValueError: Input X contains infinity.*FORESTPRUNE_DEBUG")


def test_ctrl_c_ends_with_130(shop, tmp_path, monkeypatch):
    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    args = ["prune", shop / RF, shop / "rows.csv", "--target", "y", "-o", tmp_path / "s.joblib"]
    with monkeypatch.context() as patch:
        patch.setattr(choosing, "choose", stop)
        result = call(*args)
    assert result.exit_code == 130
    assert result.stderr.endswith("stopped; nothing was written.\n")
    with monkeypatch.context() as patch:

        def half(model, path):
            Path(path).write_bytes(b"half")
            raise KeyboardInterrupt

        patch.setitem(registry_writers(), ".joblib", half)
        assert call(*args, "--max-nodes", 9).exit_code == 130
    assert list(tmp_path.iterdir()) == []


def test_warnings_are_notes_and_said_once(shop, tmp_path, monkeypatch):
    original = choosing.choose

    def warn(*args, **kwargs):
        print("a library that likes to talk")
        for _ in range(3):
            warnings.warn("mind the gap\nand more", UserWarning, stacklevel=1)
            warnings.warn("old-fashioned", DeprecationWarning, stacklevel=1)
        return original(*args, **kwargs)

    monkeypatch.setattr(choosing, "choose", warn)
    args = ["prune", shop / RF, shop / "rows.csv", "--target", "y", "--max-nodes", 15]
    result = succeeds(*args, "-o", tmp_path / "s.npz", "--json")
    assert result.stderr.count("forestprune: mind the gap\n") == 1
    assert "old-fashioned" not in result.output
    assert json.loads(result.stdout)["rows"] == 120
    result = succeeds(*args, "-o", tmp_path / "t.npz", "--quiet")
    assert result.output == ""
    assert (tmp_path / "t.npz").exists()


def test_numbers_that_are_none_are_null(shop, tmp_path, monkeypatch):
    from forestprune.cli import summary

    scores = [dict.fromkeys(("r_squared", "rmse", "mae"), float(x)) for x in ("nan", "-inf")]
    monkeypatch.setattr(summary, "scores", lambda work, small, scoring: tuple(scores))
    args = ["prune", shop / RF, shop / "rows.csv", "--target", "y", "--max-nodes", 15]
    result = succeeds(*args, "-o", tmp_path / "s.npz", "--json")
    document = json.loads(result.stdout, parse_constant=pytest.fail)
    assert document["full"]["r_squared"] is None
    assert document["small"]["r_squared"] is None


def test_pandas_that_is_missing_is_named(shop, tmp_path, monkeypatch):
    original = optional.importlib.import_module

    def look(hidden):
        def find(name):
            if name == hidden:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            return original(name)

        return find

    args = ["prune", shop / RF, shop / "rows.csv", "--target", "y", "-o", tmp_path / "s.npz"]
    monkeypatch.setattr(optional.importlib, "import_module", look("pandas"))
    fails(tmp_path, *args, match="needs pandas.*pip install pandas pyarrow")
    (tmp_path / "rows.parquet").write_bytes(b"PAR1")
    args[2] = tmp_path / "rows.parquet"
    monkeypatch.setattr(optional.importlib, "import_module", look("pyarrow"))
    fails(tmp_path, *args, match="needs pyarrow.*pip install pandas pyarrow")


def test_skops_that_is_missing_is_named_before_anything_is_read(shop, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (tmp_path / "empty.csv").touch()
    args = ["prune", shop / RF, tmp_path / "empty.csv", "--target", "y"]
    fails(tmp_path, *args, "-o", tmp_path / "s.skops", match="pip install skops")
