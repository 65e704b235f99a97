"""`forestprune export`: files of all kinds in, C, ONNX and treelite's out."""

import json
import shutil

import joblib
import numpy as np
import pytest
from compiled import Compiled, needs_gcc
from shops import NAMES, RF, fails, need, succeeds
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import forestprune as fp
from forestprune.deploy.c_header import to_c
from forestprune.deploy.compiler import object_bytes

pytest.importorskip("pandas")


@needs_gcc
@pytest.mark.parametrize("file", ["sklearn.npz", "xgboost.json", "lightgbm.txt", "catboost.cbm"])
def test_a_model_becomes_c(file, shop, friedman, tmp_path):
    need(file.partition(".")[0], "")
    out = tmp_path / "small.h"
    options = ["--name", "price", "--dtype", "float32", "--leaves", "int16"]
    document = json.loads(
        succeeds("export", shop / file, "--to", "c", *options, "--out", out, "--json").stdout
    )
    forest = fp.Forest.from_file(shop / file)
    header = to_c(forest, "price", dtype="float32", leaves="int16")
    assert out.read_text() == header
    assert document["bytes"] == len(header)
    assert document["table_bytes"] == header.table_bytes
    assert document["flash_bytes"] == header.n_bytes
    assert document["error_bound"] == header.error_bound
    assert (document["trees"], document["nodes"]) == (forest.n_trees, forest.n_nodes)
    X = friedman[0].to_numpy().astype(np.float32)
    raw = Compiled([header])("price", "raw", X)
    named = friedman[0].astype(np.float32)
    assert np.abs(raw - forest.predict(named)).max() <= header.error_bound
    if shutil.which("size"):
        assert header.table_bytes < document["object_bytes"] < header.n_bytes + 700
    text = succeeds("export", shop / file, "--to", "c", "--out", out, "--force").stdout
    assert f"written to {out}" in text
    assert f"{to_c(forest).table_bytes:,}" in text


def test_what_save_wrote_is_exported_too(friedman, tmp_path):
    X, y = friedman
    model = RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, y)
    small = fp.prune(model, X, y, max_nodes=20)
    small.save(tmp_path / "small.npz")
    succeeds("export", tmp_path / "small.npz", "--to", "c", "--out", tmp_path / "small.h")
    assert (tmp_path / "small.h").read_text() == small.to_c()


def test_a_model_becomes_onnx_and_treelites(shop, friedman, tmp_path):
    runtime, treelite = pytest.importorskip("onnxruntime"), pytest.importorskip("treelite")
    pytest.importorskip("onnx")
    X = friedman[0].to_numpy().astype(np.float32)
    expected = fp.Forest.from_file(shop / RF).predict(friedman[0])
    for kind, ending in (("onnx", "onnx"), ("treelite", "tl")):
        out = tmp_path / f"small.{ending}"
        told = succeeds("export", shop / RF, "--to", kind, "--out", out, "--json").stdout
        assert json.loads(told)["bytes"] == out.stat().st_size
        assert (
            "written to"
            in succeeds("export", shop / RF, "--to", kind, "--out", out, "--force").stdout
        )
        if kind == "onnx":
            (found,) = runtime.InferenceSession(out).run(None, {"X": X})
        else:
            found = treelite.gtil.predict(treelite.Model.deserialize(str(out)), X)
        np.testing.assert_allclose(found.ravel(), expected, rtol=1e-5)


def test_of_a_pipeline_the_last_step_is_exported(friedman, tmp_path):
    X, y = friedman
    model = make_pipeline(StandardScaler(), RandomForestRegressor(2, max_depth=2)).fit(X, y)
    joblib.dump(model, tmp_path / "model.joblib")
    out = tmp_path / "model.h"
    done = succeeds("export", tmp_path / "model.joblib", "--trust", "--to", "c", "--out", out)
    assert "its last step" in done.stderr
    assert f"x[0]: '{NAMES[0]}'" in out.read_text() or "x[" in out.read_text()


@pytest.mark.parametrize(
    ("options", "code", "match"),
    [
        (["--to", "onnx", "--out", "a.h"], 2, "a.h must end in .onnx"),
        (["--to", "c", "--out", "a.c"], 2, "a.c must end in .h"),
        (["--to", "onnx", "--dtype", "float32", "--out", "a.onnx"], 2, "--dtype is for C"),
        (["--to", "c", "--name", "a b", "--out", "a.h"], 1, "--name must be a name that functions"),
        (["--to", "c", "--out", "no/a.h"], 1, "there is no folder"),
        (["--to", "java", "--out", "a.h"], 2, "java"),
    ],
)
def test_wrong_calls_leave_nothing(options, code, match, shop, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fails(tmp_path, "export", shop / RF, *options, code=code, match=match)


def test_without_a_compiler_no_size_is_told(shop, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    out = tmp_path / "a.h"
    told = json.loads(succeeds("export", shop / RF, "--to", "c", "--out", out, "--json").stdout)
    assert told["object_bytes"] is None
    assert object_bytes("", "model") is None


def test_bytes_are_counted_as_what_is_deployed(shop, tmp_path):
    out = tmp_path / "small.npz"
    call = ["prune", shop / RF, shop / "rows.csv", "--target", "y", "--ignore", "w", "--out", out]
    told = succeeds(*call, "--max-bytes", "600", "--format", "c-int8", "--json").stdout
    document = json.loads(told)
    forest = fp.Forest.from_file(out)
    n_bytes = to_c(forest, dtype="float32", leaves="int8").n_bytes
    assert document["counted"] == {"format": "c-int8", "bytes": n_bytes}
    assert n_bytes <= 600 < document["small"]["bytes"] == out.stat().st_size
    text = succeeds(*call, "--force", "--max-bytes", "600", "--format", "c-int8").stdout
    assert "as c-int8, bytes" in text
    fails(
        tmp_path,
        *call,
        "--force",
        "--format",
        "c",
        code=2,
        match="--format says what --max-bytes counts",
    )
