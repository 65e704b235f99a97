"""Folders, patterns and schedulers on the command line: rows by the block."""

import json

import numpy as np
import pytest
from effort import INTERPRETED
from shops import RF, fails, fails_noted, succeeds

import forestprune as fp
from forestprune.select import by_sample, resplit_by_block
from forestprune.tables import block_rows

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytestmark = pytest.mark.skipif(INTERPRETED, reason="whole prunings, left to the compiled run")


@pytest.fixture
def folder(friedman, tmp_path):
    X, y = friedman
    table, rows = X.assign(y=y, w=1.0, text="x"), tmp_path / "rows"
    rows.mkdir()
    for number in range(3):
        table[number::3].to_parquet(rows / f"{number}.parquet")
    return rows


@pytest.mark.parametrize("way", ["folder", "pattern", "one file"])
def test_rows_of_several_files(way, folder, shop, tmp_path):
    data = {"folder": [folder], "pattern": [folder / "*.parquet"]}.get(way)
    data = data or [folder / "0.parquet", "--batch-rows", 7]
    out, page = tmp_path / "small.npz", tmp_path / "page.html"
    args = [*data, "--target", "y", "--weight", "w", "--max-nodes", 40, "--out", out]
    told = json.loads(succeeds("prune", shop / RF, *args, "--report", page, "--json").stdout)
    total = len(pd.read_parquet(folder if way != "one file" else folder / "0.parquet"))
    assert told["rows"] + told["rows_held_out"] == total
    assert 0.1 < told["rows_held_out"] / total < 0.4
    assert fp.Forest.load(out).n_nodes <= 40
    assert page.exists()


def test_held_out_rows_are_no_others(folder):
    rows = fp.open_rows(folder, target="y")
    kept, held_out = rows.divided(0.25, 3)
    assert kept.count() == sum(len(X) for X, _, _ in kept)
    assert kept.count() + held_out.count() == rows.count()
    sums = [sum(float(y.sum()) for _, y, _ in each) for each in (kept, held_out, rows)]
    assert sums[0] + sums[1] == pytest.approx(sums[2])
    again = rows.divided(0.25, 4)[1]
    assert [X.a.tolist() for X, _, _ in again] != [X.a.tolist() for X, _, _ in held_out]


def test_validation_files_and_paths(folder, shop, tmp_path, monkeypatch):
    monkeypatch.setattr(block_rows, "HELD_OUT_ROWS", 50)
    args = [folder, "--target", "y", "--validation", folder / "1.parquet", "--n-alphas", 5]
    told = json.loads(succeeds("path", shop / RF, *args, "--json").stdout)
    assert 20 < told["rows_held_out"] < 90
    assert len(told["points"]) > 3
    args = [folder, "--target", "y", "--holdout", 0, "--alpha", 0.1, "--out", tmp_path / "s.npz"]
    succeeds("prune", shop / RF, *args, "--report", tmp_path / "page.html")


def test_what_is_wrong_is_said(folder, shop, tmp_path):
    out = ["--out", tmp_path / "small.npz", "--max-nodes", 40]
    args = ["prune", shop / RF, folder]
    fails(tmp_path, *args, "--target", "yy", *out, match="no column 'yy' .is 'y' meant")
    nothing = tmp_path / "none*.parquet"
    args = ["prune", shop / RF, nothing, "--target", "y"]
    fails(tmp_path, *args, *out, match="none that fits it as a pattern")
    args = ["prune", shop / RF, folder, "--target", "y"]
    fails(tmp_path, *args, "--decimal", ",", *out, match="--decimal is for one CSV file", code=2)
    fails_noted(tmp_path, *args, "--rule", "layer", *out, match="Rows by the block are for --rule")
    bad = pd.read_parquet(folder / "1.parquet")
    bad.loc[bad.index[3], "y"] = np.inf
    bad.to_parquet(folder / "1.parquet")
    fails_noted(
        tmp_path, *args, "--holdout", 0, *out, match=r"must be finite.*1\.parquet, rows 1 to"
    )
    args += ["--polish", "ridge"]
    fails_noted(tmp_path, *args, "--holdout", 0, *out, match="by 'leaf', 'split' or not at all")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("polish", ["leaf", "split"])
def test_rows_of_folders_polish(polish, folder, shop, tmp_path, monkeypatch):
    monkeypatch.setattr(by_sample, "SAMPLE_ROWS", 90)
    monkeypatch.setattr(resplit_by_block, "SPLIT_ROWS", 100)
    monkeypatch.setattr(by_sample, "ROWS_A_LEAF", 2)
    out, page = tmp_path / "small.npz", tmp_path / "page.html"
    args = ["prune", shop / RF, folder, "--target", "y", "--max-nodes", 30, "--out", out]
    args += ["--polish", polish, "--shrinkage", 5, "--batch-rows", 31, "--holdout", 0, "--json"]
    told = json.loads(succeeds(*args, "--report", page).stdout)
    assert told["small"]["nodes"] <= 30
    assert fp.Forest.load(out).n_nodes == told["small"]["nodes"]
    assert "passes taken" in page.read_text()


def test_models_are_polished_by_the_block(folder, shop, tmp_path, monkeypatch):
    monkeypatch.setattr(resplit_by_block, "SPLIT_ROWS", 100)
    out = tmp_path / "polished.npz"
    args = ["polish", shop / RF, folder / "*.parquet", "--target", "y", "--out", out]
    told = json.loads(succeeds(*args, "--shrinkage", 5, "--holdout", 0, "--json").stdout)
    assert told["small"]["nodes"] <= told["full"]["nodes"]
    assert fp.Forest.load(out).n_nodes == told["small"]["nodes"]


def test_a_scheduler_that_does_not_answer(folder, shop, tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("forestprune.cli.work.TIMEOUT", 0.5)
    args = ["prune", shop / RF, folder, "--target", "y", "--out", tmp_path / "small.npz"]
    fails(tmp_path, *args, "--dask", "tcp://127.0.0.1:9", match="No Dask scheduler answers at tcp")
    args += ["--dask", "tcp://127.0.0.1:9", "--batch-rows", 5]
    fails(tmp_path, *args, match="--batch-rows would change nothing with --dask", code=2)
