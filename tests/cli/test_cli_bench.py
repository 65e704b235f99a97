"""`forestprune demo` and `forestprune bench`."""

import json
import os
from pathlib import Path

import pytest
from shops import fails, succeeds, there

pytest.importorskip("pandas")


def test_demo(tmp_path):
    text = succeeds("demo", "--trees", 3, "--out", tmp_path / "there").stdout
    assert "full model" in text
    assert "max 100 nodes" in text
    assert (tmp_path / "there" / "report.html").exists()


@pytest.mark.parametrize("name", ["path.png", "report.html"])
def test_a_demo_overwrites_nothing_unasked(name, tmp_path, monkeypatch):
    monkeypatch.setattr("forestprune.demo.main", lambda trees, out: (out / name).write_text("new"))
    (tmp_path / name).write_text("precious")
    fails(tmp_path, "demo", "--out", tmp_path, match=f"{name} exists already: add --force")
    succeeds("demo", "--out", tmp_path, "--force")
    assert (tmp_path / name).read_text() == "new"


def test_a_demo_that_could_not_be_written_is_refused_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr("forestprune.demo.main", None)
    (tmp_path / "file").write_text("precious")
    fails(tmp_path, "demo", "--out", tmp_path / "file", match="file is a file: give .* a folder")
    fails(tmp_path, "demo", "--out", tmp_path / "file" / "a" / "b", match="written: .*file is a")
    (tmp_path / "locked").mkdir()

    def may(path, mode):  # of the superuser, who may write anywhere, this would not come true
        return Path(path).name != "locked" or not mode & os.W_OK

    monkeypatch.setattr(os, "access", may)
    for out in ("locked", "locked/a", "locked/a/b"):
        fails(tmp_path, "demo", "--out", tmp_path / out, match="written: .*locked is read-only")
    assert not list((tmp_path / "locked").iterdir())


@pytest.mark.filterwarnings("ignore")
def test_bench():
    args = ["bench", "--rows", 150, "--trees", 5, "--nodes", 25]
    document = json.loads(succeeds(*args, "--json").stdout)
    models = {line["model"]: line for line in document["models"]}
    expected = {"RandomForestRegressor", "HistGradientBoostingRegressor"}
    classes = {"xgboost": "XGBRegressor", "lightgbm": "LGBMRegressor"}
    classes["catboost"] = "CatBoostRegressor"
    assert set(models) == expected | {c for name, c in classes.items() if there(name)}
    for line in models.values():
        assert all(line[name] > 0 for name in line if name != "model")
    forest = models["RandomForestRegressor"]
    assert forest["nodes"] / 25 <= forest["nodes_ratio"]
    assert forest["file_ratio"] > 1
    text = succeeds(*args).stdout
    assert "RandomForest " in text
    assert "predict error\n" in text
