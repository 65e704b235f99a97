"""`forestprune inspect`, and which model files it takes."""

import json
from dataclasses import replace

import joblib
import numpy as np
import pytest
from shops import ENDINGS, IDS, MODELS, NAMES, RF, fails, need, succeeds
from sklearn.ensemble import (
    GradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import forestprune as fp
from forestprune.text import to_formula, to_text

pytest.importorskip("pandas")


@pytest.mark.parametrize(("library", "ending"), MODELS, ids=IDS)
def test_inspect_says_what_is_in_a_file(library, ending, shop):
    need(library, ending)
    path = shop / f"{library}.{ending}"
    forest = fp.Forest.from_file(path, trust=True)
    text = succeeds("inspect", path, "--trust").stdout
    assert forest.origin.model_class in text
    assert f"{forest.n_nodes:,}" in text
    document = json.loads(succeeds("inspect", path, "--trust", "--json").stdout)
    assert document["library"] == library
    assert document["class"] == forest.origin.model_class
    assert document["predicts"] == "y"
    assert document["trees"] == forest.n_trees
    assert document["nodes"] == forest.n_nodes
    assert document["max_depth"] == forest.max_depth
    assert document["bytes"] == path.stat().st_size
    assert document["features"] == 5
    assert document["features_used"] == len(set(forest.feature.tolist()) - {-1})
    assert {e["from"]: e["trees"] for e in document["depths"] if e["trees"]} == dict(
        zip(*np.unique(forest.depths, return_counts=True), strict=True)
    )


def test_inspect_says_what_constraints_there_are(tmp_path):
    X = np.random.default_rng(0).normal(size=(100, 3))
    model = RandomForestRegressor(3, max_depth=2, monotonic_cst=[1, 0, -1], random_state=0)
    joblib.dump(model.fit(X, X @ [1.0, 1.0, -1.0]), tmp_path / "model.joblib")
    text = succeeds("inspect", tmp_path / "model.joblib", "--trust").stdout
    assert "only rising with x0; only falling with x2" in text
    document = json.loads(
        succeeds("inspect", tmp_path / "model.joblib", "--trust", "--json").stdout
    )
    assert document["monotone"] == {"rising": ["x0"], "falling": ["x2"]}
    assert document["interactions"] == []


def test_inspect_draws_the_depths(friedman, tmp_path):
    model = RandomForestRegressor(8, random_state=0).fit(*friedman)
    forest = fp.Forest.from_model(model)
    forest.truncate([1, 1, 1, 1, 3, 3, 3, 5]).save(tmp_path / "m.npz")
    lines = succeeds("inspect", tmp_path / "m.npz").stdout.splitlines()
    bars = [line.split() for line in lines[lines.index("trees by depth") + 1 :]]
    assert [bar[0] for bar in bars] == ["1", "2", "3", "4", "5"]
    assert [bar[-1] for bar in bars] == ["4", "0", "3", "0", "1"]
    assert [len(bar[1]) if len(bar) == 3 else 0 for bar in bars] == [40, 0, 30, 0, 10]


def test_inspect_puts_many_depths_together(tmp_path):
    X = np.arange(120.0)[:, np.newaxis]
    y = 1.7 ** X[:, 0]  # each split takes one row off
    forest = fp.Forest.from_model(RandomForestRegressor(30, random_state=0).fit(X, y))
    cuts = np.linspace(1, forest.depths.min(), 30).astype(int)
    forest.truncate(cuts).save(tmp_path / "m.npz")
    document = json.loads(succeeds("inspect", tmp_path / "m.npz", "--json").stdout)
    assert document["max_depth"] > 20
    assert len(document["depths"]) <= 20
    assert sum(entry["trees"] for entry in document["depths"]) == 30
    for entry in document["depths"]:
        assert entry["trees"] == np.sum((cuts >= entry["from"]) & (cuts <= entry["to"]))


def test_inspect_names_the_steps_of_a_pipeline_and_what_is_predicted(friedman, tmp_path):
    X, y = friedman
    boosting = GradientBoostingRegressor(n_estimators=3, loss="quantile", alpha=0.9)
    joblib.dump(make_pipeline(StandardScaler(), boosting).fit(X, y), tmp_path / "m.joblib")
    text = succeeds("inspect", tmp_path / "m.joblib", "--trust").stdout
    assert "StandardScaler, GradientBoostingRegressor" in text
    assert "quantile of y" in text


@pytest.mark.parametrize(("way", "write"), [("text", to_text), ("formula", to_formula)])
def test_inspect_writes_a_small_model_down(way, write, shop, tmp_path):
    small = fp.Forest.from_file(shop / RF, trust=True).truncate([3] * 2 + [0] * 6).compact()
    names = tuple(name + " but much longer than any line" * 9 for name in NAMES)
    small = replace(small, input=replace(small.input, feature_names=names))
    small.save(tmp_path / "m.npz")
    # No line is broken, not even by those who print it.
    expected = write(small) + "\n"
    assert max(map(len, expected.splitlines())) > 250
    assert succeeds("inspect", tmp_path / "m.npz", "--as", way).stdout == expected
    document = json.loads(succeeds("inspect", tmp_path / "m.npz", "--as", way, "--json").stdout)
    assert document[way] == [write(small)]
    assert document["trees"] == small.n_trees


def test_inspect_writes_each_output_down(friedman, tmp_path):
    X, y = friedman
    model = RandomForestRegressor(2, max_depth=1, random_state=0).fit(X, np.column_stack([y, -y]))
    forest = fp.Forest.from_model(model)
    forest.save(tmp_path / "m.npz")
    shown = succeeds("inspect", tmp_path / "m.npz", "--as", "text").stdout
    for output in (0, 1):
        assert f"# Output {output}\n{to_text(forest, output=output)}\n" in shown


def test_a_formula_of_a_large_model_is_refused(friedman, tmp_path):
    model = GradientBoostingRegressor(n_estimators=1001, max_depth=1).fit(*friedman)
    joblib.dump(model, tmp_path / "m.joblib")
    args = ["inspect", tmp_path / "m.joblib", "--trust", "--as", "formula"]
    fails(tmp_path, *args, match="can have 1,000 trees .* but this forest has 1,001")


def test_inspect_quietly_only_checks(shop):
    result = succeeds("inspect", shop / RF, "--quiet")
    assert result.output == ""


@pytest.mark.parametrize(("library", "ending"), MODELS, ids=IDS)
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 0.97])
@pytest.mark.filterwarnings("ignore")
def test_models_cut_short(library, ending, share, shop, tmp_path):
    need(library, ending)
    content = (shop / f"{library}.{ending}").read_bytes()
    model, out = tmp_path / f"m.{ending}", tmp_path / f"small.{ending}"
    model.write_bytes(content[: int(share * len(content))])
    fails(tmp_path, "inspect", model, "--trust", match=rf"m\.{ending}")
    args = ["prune", model, shop / "rows.csv", "--target", "y", "--trust", "-o", out]
    fails(tmp_path, *args, match=rf"m\.{ending}")


@pytest.mark.parametrize("ending", sorted({e for endings in ENDINGS.values() for e in endings}))
@pytest.mark.parametrize("content", [b"Dear all,\n", b"\x00" * 300, b"{}", b"a,b\n1,2\n"])
def test_files_that_are_no_models(ending, content, tmp_path):
    need("sklearn", ending)
    model = tmp_path / f"m.{ending}"
    model.write_bytes(content)
    fails(tmp_path, "inspect", model, "--trust", match=rf"m\.{ending}")


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("nowhere.json", "no file .*nowhere.json"),
        ("nowhere.joblib", "no file .*nowhere.joblib"),
        ("folder.json", "folder.json is a folder"),
        ("folder.joblib", "folder.joblib is a folder"),
        ("model.onnx", r"must end in \.json"),
    ],
)
def test_models_that_are_not_there(name, match, tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"x")
    for ending in ("json", "joblib"):
        (tmp_path / f"folder.{ending}").mkdir()
    fails(tmp_path, "inspect", tmp_path / name, match=match)


def test_models_that_are_no_forests(friedman, tmp_path):
    joblib.dump(LinearRegression().fit(*friedman), tmp_path / "m.joblib")
    fails(tmp_path, "inspect", tmp_path / "m.joblib", "--trust", match="got LinearRegression")


def test_a_saved_path_is_no_model(shop, friedman, tmp_path):
    fp.prune_path(shop / RF, *friedman, n_alphas=3).save(tmp_path / "p.npz")
    fails(tmp_path, "inspect", tmp_path / "p.npz", match="does not hold a forest")
