"""The code that a report shows loads the model that was pruned."""

import joblib
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from report_pages import MODELS, Page, written
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import forestprune as fp
from forestprune.forest import registry
from forestprune.show.report.loading import how_to_load


@pytest.mark.parametrize(
    ("name", "ending"),
    [(name, ending) for name, (_, endings) in MODELS.items() for ending in endings],
)
def test_loading_as_told_gives_the_model(name, ending, data, tmp_path, monkeypatch):
    X, y, *_ = data
    small = fp.prune(MODELS[name][0].fit(X, y), X, y, max_nodes=20)
    file = tmp_path / f"it's{ending}"
    registry.save_model(small.to_native(), file)
    monkeypatch.chdir(tmp_path)
    code = how_to_load(small, file)["code"].replace("model.predict(X)", "said = model.predict(X)")
    found = {"X": X}
    exec(code, found)
    assert found["said"] == pytest.approx(small.predict(X), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_boosters_are_loaded_as_boosters(library, data, tmp_path, monkeypatch):
    X, y, *_ = data
    name = "XGBRegressor" if library == "xgboost" else "LGBMRegressor"
    model = MODELS[name][0].fit(X, y)
    booster = model.get_booster() if library == "xgboost" else model.booster_
    small = fp.prune(booster, X, y, max_nodes=20)
    file = tmp_path / f"small{'.json' if library == 'xgboost' else '.txt'}"
    registry.save_model(small.to_native(), file)
    monkeypatch.chdir(tmp_path)
    told = how_to_load(small, file)
    assert not told["as_booster"]
    found = {"X": X}
    lines = told["code"].splitlines()
    exec("\n".join([*lines[:-1], f"said = {lines[-1]}"]), found)
    assert found["said"] == pytest.approx(small.predict(X), rel=1e-5, abs=1e-5)


def test_a_booster_says_what_its_probabilities_are_of(data, tmp_path, monkeypatch):
    X, y, *_ = data
    model = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1)
    small = fp.prune(model.fit(X, np.where(y > 0, "high", "low")), X, None, max_nodes=20)
    registry.save_model(small.to_native(), tmp_path / "small.txt")
    monkeypatch.chdir(tmp_path)
    told = how_to_load(small, tmp_path / "small.txt")
    *lines, last = told["code"].splitlines()
    assert lines[-1] == "# what comes: the probability of 'low'"
    found = {"X": X}
    exec("\n".join([*lines, f"said = {last}"]), found)
    assert found["said"] == pytest.approx(small.predict_proba(X)[:, 1])
    assert "what comes" not in how_to_load(small, tmp_path / "small.joblib")["code"]


@pytest.mark.parametrize("as_booster", [False, True])
def test_xgboost_is_told_of_categories(as_booster, data, tmp_path, monkeypatch):
    X, y, *_ = data
    kind = pd.Categorical.from_codes((X[:, 1] > 0).astype(int), ["low", "high"])
    frame = pd.DataFrame(X, columns=list("abcd")).assign(b=kind)
    model = xgboost.XGBRegressor(n_estimators=10, max_depth=3, enable_categorical=True)
    model.fit(frame, y)
    booster = model.get_booster()
    small = fp.prune(booster if as_booster else model, frame, y, max_nodes=20)
    registry.save_model(small.to_native(), tmp_path / "small.json")
    monkeypatch.chdir(tmp_path)
    lines = how_to_load(small, tmp_path / "small.json")["code"].splitlines()
    found = {"X": frame}
    exec("\n".join([*lines[:-1], f"said = {lines[-1]}"]), found)
    assert found["said"] == pytest.approx(small.predict(frame), rel=1e-5, abs=1e-5)


def test_code_says_which_columns_the_model_takes(data):
    X, y, *_ = data
    frame = pd.DataFrame(X, columns=["a", "b\nimport os", "c", "d"])
    model = MODELS["XGBRegressor"][0]
    named = how_to_load(fp.prune(model.fit(frame, y), frame, y, max_nodes=20), None)["code"]
    comment = r"# X: a table with the columns 'a', 'b\nimport os', 'c', 'd', in this order"
    assert named.splitlines()[-2:] == [comment, "model.predict(X)"]
    steps = make_pipeline(StandardScaler(), RandomForestRegressor(3)).fit(frame, y)
    assert comment in how_to_load(fp.prune(steps, frame, y, max_nodes=20), None)["code"]
    nameless = how_to_load(fp.prune(model.fit(X, y), X, y, max_nodes=20), None)["code"]
    assert "# X: 4 columns, in the order of training\n" in nameless


def test_without_a_file_the_report_says_so(path, data, tmp_path, monkeypatch):
    small = path.select(max_nodes=40)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.joblib").write_bytes(b"another model, which has nothing to do with it")
    shown = Page(written(tmp_path, path, small)).text
    assert "not in a file yet" in shown
    assert f"→ {small.n_bytes / 1000:.1f} kB" in shown
    joblib.dump(small.to_native(), "small.joblib")
    found = {"X": data[0]}
    exec(how_to_load(small, None)["code"], found)
    assert found["model"].predict(data[0]) == pytest.approx(small.predict(data[0]))
    with pytest.raises(FileNotFoundError, match=r"nowhere\.pkl"):
        fp.write_report(tmp_path / "r.html", path, small, small_file="nowhere.pkl")


def test_files_give_sizes_and_a_name(tmp_path, path):
    small = path.select(max_nodes=40)
    (tmp_path / "tiny.pkl").write_bytes(b"x" * 500)
    files = {"model_bytes": 2_500_000, "small_file": tmp_path / "tiny.pkl"}
    shown = Page(written(tmp_path, path, small, **files)).text
    assert "5,000 \N{MULTIPLICATION SIGN} smaller 2.5 MB → 500 bytes" in shown
    assert "open('tiny.pkl', \"rb\")" in shown
    assert str(tmp_path) not in shown
