"""Classifiers, and models with links, on the command line."""

import json
import re

import joblib
import numpy as np
import pandas as pd
import pytest
from shops import fails, succeeds
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    f1_score,
    log_loss,
    roc_auc_score,
)

import forestprune as fp
from forestprune.text import to_formula, to_text

LABELS = {
    "words": np.array(["NA", "no, never", "yes"]),  # one of them looks missing, one has a comma
    "numbers": np.array([3, 5, 9]),
    "truth": np.array([False, True]),
    "text of numbers": np.array(["0", "1"]),
}


def made(labels, folder, model=None):
    """Write a model, the rows that it was trained on, and others; return it and the others."""
    X, y = make_classification(
        360, 5, n_informative=4, n_redundant=0, n_classes=len(labels), flip_y=0.05, random_state=0
    )
    table = pd.DataFrame(X, columns=list("abcde"))
    model = GradientBoostingClassifier(n_estimators=8, random_state=0) if model is None else model
    joblib.dump(model.fit(table[:240], labels[y[:240]]), folder / "model.joblib")
    table = table.assign(kind=labels[y])
    for name, some in (("rows", table[:240]), ("others", table[240:])):
        some.to_csv(folder / f"{name}.csv", index=False)
        some.to_parquet(folder / f"{name}.parquet")
    return model, table[240:]


def command(folder, name, ending="csv", out="small.joblib"):
    args = [name, folder / "model.joblib", folder / f"rows.{ending}", "--target", "kind"]
    args += ["--trust", "--validation", folder / f"others.{ending}"]
    return [*args, "--out", folder / out, "--force"] if name != "path" else args


@pytest.mark.sampled(3)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("kind", LABELS)
def test_labels_are_taken_as_they_are(kind, ending, tmp_path):
    model, others = made(LABELS[kind], tmp_path)
    args = [*command(tmp_path, "prune", ending), "--max-nodes", 30, "--json"]
    document = json.loads(succeeds(*args).stdout)
    small, X, y = joblib.load(tmp_path / "small.joblib"), others[list("abcde")], others["kind"]
    assert document["classes"] == LABELS[kind].tolist()
    for name, native in (("full", model), ("small", small)):
        several = {"multi_class": "ovr"} if len(LABELS[kind]) > 2 else {}
        sure = native.predict_proba(X)
        expected = {
            "accuracy": accuracy_score(y, native.predict(X)),
            "balanced_accuracy": balanced_accuracy_score(y, native.predict(X)),
            "log_loss": log_loss(y, sure, labels=native.classes_),
            "roc_auc": roc_auc_score(y, sure if several else sure[:, 1], **several),
        }
        told = {figure: document[name][figure] for figure in expected}
        assert told == pytest.approx(expected)
        assert 0 < document[name]["d_squared"] < 1
    assert 0 < document["small"]["nodes"] <= 30


def test_figures_of_classes_are_in_the_tables(tmp_path):
    made(LABELS["words"], tmp_path)
    shown = succeeds(*command(tmp_path, "prune"), "--max-nodes", 30, "--scoring", "f1_macro").stdout
    for name in ("D squared, 120 rows held out", "accuracy", "log-loss", "AUC", "f1_macro"):
        assert any(line.startswith(name) for line in shown.splitlines())
    assert "RMSE" not in shown
    shown = succeeds(*command(tmp_path, "path"), "--n-alphas", 4).stdout
    assert "D²" in shown
    assert "…" not in shown
    assert "AUC" in shown


def test_any_scorer_chooses_and_tolerance_is_measured_in_it(tmp_path):
    model, others = made(LABELS["words"], tmp_path)
    args = [*command(tmp_path, "prune"), "--scoring", "f1_macro", "--tolerance", 0.1, "--json"]
    done = succeeds(*args)
    assert "choosing by f1_macro on " in done.stderr
    document = json.loads(done.stdout)
    X, y = others[list("abcde")], others["kind"]
    small = joblib.load(tmp_path / "small.joblib")
    scores = [f1_score(y, each.predict(X), average="macro") for each in (model, small)]
    assert [document[name]["f1_macro"] for name in ("full", "small")] == pytest.approx(scores)
    assert scores[1] >= scores[0] - 0.1
    path = json.loads(
        succeeds(*command(tmp_path, "path"), "--scoring", "f1_macro", "--json").stdout
    )
    assert path["full"]["f1_macro"] == pytest.approx(scores[0])
    small_enough = [p["nodes"] for p in path["points"] if p["f1_macro"] >= scores[0] - 0.1]
    assert document["small"]["nodes"] <= min(small_enough)
    match = "--scoring must be None, the name of a scorer .* got 'f2'"
    args = [*command(tmp_path, "prune")[:-3], "--scoring", "f2", "-o", tmp_path / "new.joblib"]
    fails(tmp_path, *args, match=match, code=2)


def test_a_scorer_scores_what_comes_of_an_alpha(tmp_path):
    pytest.importorskip("jinja2")
    made(LABELS["words"], tmp_path)
    args = [*command(tmp_path, "report", out="r.html"), "--alpha", 3, "--n-alphas", 5]
    document = json.loads(succeeds(*args, "--scoring", "f1_macro", "--json").stdout)
    page = (tmp_path / "r.html").read_text("utf-8")
    data = json.loads(re.search(r'id="data">(.*?)</script>', page)[1])
    place = {mark["name"]: mark["place"] for mark in data["path"]["marks"]}["this model"]
    assert data["path"]["score"] == "f1_macro"
    scored = 1 - data["path"]["points"][place]["error"]
    assert scored == pytest.approx(document["small"]["f1_macro"])
    assert len(data["curves"]["classes"]) == 3
    own = [arg for arg in args if arg not in ("--target", "kind")]
    match = "--scoring needs a --target"
    fails(tmp_path, *own, "--no-target", "--scoring", "f1_macro", match=match, code=2)


def test_labels_that_the_model_does_not_have(tmp_path):
    xgboost = pytest.importorskip("xgboost")
    _, table = made(LABELS["numbers"], tmp_path)
    table.assign(kind=7).to_csv(tmp_path / "rows.csv", index=False)
    args = ["prune", tmp_path / "model.joblib", tmp_path / "rows.csv", "--trust"]
    args += ["--target", "kind", "-o", tmp_path / "small.joblib"]
    fails(tmp_path, *args, match=r"labels of the model, which are 3, 5, 9, but has '7\.0' in row 1")
    table[5:].assign(kind="x").to_csv(tmp_path / "rows.csv", index=False)
    fails(tmp_path, *args, match="which are 3, 5, 9, but has 'x' in row 1")
    # A Booster has numbers for labels, whatever they were called.
    rows = xgboost.DMatrix(table[list("abcde")], table["kind"] > 4)
    booster = xgboost.train({"objective": "binary:logistic", "nthread": 1}, rows, 3)
    booster.save_model(tmp_path / "model.json")
    args[1:] = [tmp_path / "model.json", *args[2:3], *args[4:-1], tmp_path / "small.json"]
    fails(tmp_path, *args, match="which are 0, 1, but has 'x' in row 1. .*classes by number only")
    incomplete = table.assign(kind=(table["kind"] > 4).astype(float).where(table.index != 242))
    incomplete.to_csv(tmp_path / "rows.csv", index=False)
    fails(tmp_path, *args, match="1 have none; the first is row 3")


def test_inspect_calls_the_brier_score_by_its_name(tmp_path):
    model = RandomForestClassifier(2, max_depth=2, random_state=0)
    joblib.dump(model.fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]), tmp_path / "model.joblib")
    shown = succeeds("inspect", tmp_path / "model.joblib", "--trust").stdout
    assert re.search(r"trained for +Brier score", shown)


def test_inspect_speaks_of_classes(tmp_path):
    made(LABELS["words"], tmp_path)
    text = succeeds("inspect", tmp_path / "model.joblib", "--trust").stdout
    for said in ("'NA', 'no, never', 'yes'", "log loss, link softmax", "raw predictions of 3"):
        assert said in text
    command = ["inspect", tmp_path / "model.joblib", "--trust", "--as"]
    document = json.loads(succeeds(*command, "text", "--json").stdout)
    assert document["classes"] == LABELS["words"].tolist()
    assert (document["objective"], document["link"]) == ("log_loss", "softmax")
    assert document["outputs"] == 3
    forest = fp.Forest.from_file(tmp_path / "model.joblib", trust=True)
    assert document["text"] == [to_text(forest)]
    assert f"# 'no, never'\n{to_formula(forest, output=1)}" in succeeds(*command, "formula").stdout


@pytest.mark.parametrize(
    ("weights", "told", "line"),
    [("balanced", "balanced", "balanced"), ({False: 1, True: 7.5}, [1.0, 7.5], "1, 7.5")],
)
def test_weights_of_classes_are_inspected(weights, told, line, tmp_path):
    made(LABELS["truth"], tmp_path, RandomForestClassifier(3, max_depth=2, class_weight=weights))
    args = ["inspect", tmp_path / "model.joblib", "--trust"]
    assert json.loads(succeeds(*args, "--json").stdout)["class_weights"] == told
    assert re.search(rf"class weights +{line} *\n", succeeds(*args).stdout)


def test_averages_of_distributions_are_inspected(tmp_path):
    model = RandomForestClassifier(3, max_depth=2, random_state=0)
    made(LABELS["truth"], tmp_path, model)
    document = json.loads(
        succeeds("inspect", tmp_path / "model.joblib", "--trust", "--json").stdout
    )
    assert document["predicts"] == "the probability of class True"
    assert document["outputs"] == 1


def test_a_model_of_counts_has_errors_in_their_units(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(400, 3)), columns=list("abc"))
    table["n"] = rng.poisson(np.exp(table["a"]))
    model = HistGradientBoostingRegressor(loss="poisson", max_iter=10).fit(
        table[:300][list("abc")], table["n"][:300]
    )
    joblib.dump(model, tmp_path / "model.joblib")
    table[:300].to_csv(tmp_path / "rows.csv", index=False)
    table[300:].to_csv(tmp_path / "others.csv", index=False)
    args = ["prune", tmp_path / "model.joblib", tmp_path / "rows.csv", "--target", "n", "--trust"]
    args += ["--validation", tmp_path / "others.csv", "--max-nodes", 20]
    result = succeeds(*args, "--out", tmp_path / "small.joblib", "--json")
    document = json.loads(result.stdout)
    small = joblib.load(tmp_path / "small.joblib")
    errors = table["n"][300:] - small.predict(table[300:][list("abc")])
    assert document["small"]["rmse"] == pytest.approx(np.sqrt(np.mean(errors**2)))
    assert document["score"] == "D squared"
    assert "r_squared" not in document["full"]


def test_rows_of_one_class_cannot_choose(tmp_path):
    _, others = made(LABELS["words"], tmp_path)
    others[others["kind"] == "yes"].to_csv(tmp_path / "others.csv", index=False)
    match = "do not differ .*: all have 'yes'.* or leave --validation out"
    fails(tmp_path, *command(tmp_path, "prune"), match=match)


def test_what_does_worse_than_a_constant_is_doubted(tmp_path):
    made(LABELS["truth"], tmp_path)
    for name in ("rows.csv", "others.csv"):
        table = pd.read_csv(tmp_path / name)
        table.assign(kind=~table["kind"]).to_csv(tmp_path / name, index=False)
    result = succeeds(*command(tmp_path, "prune"), "--max-nodes", 20)
    assert "worse than a constant on the rows held out (D squared -" in result.stderr
    assert "with classes numbered as they were then?" in result.stderr
    scored = succeeds(*command(tmp_path, "path"), "--scoring", "accuracy")
    assert "worse than a constant on the rows held out (D squared -" in scored.stderr
