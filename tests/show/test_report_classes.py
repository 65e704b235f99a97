"""Reports on classifiers and on models with links: their figures, curves and trees are true."""

import re

import numpy as np
import pandas as pd
import pytest
from report_pages import Page, data_in, written
from sklearn.calibration import calibration_curve
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    log_loss,
    roc_auc_score,
    roc_curve,
)

import forestprune as fp
from forestprune.select.routed import HeldOut
from forestprune.show.plotting import labels
from forestprune.show.report import curves
from forestprune.show.report.summary import About, summarise

NAMES = np.array(["ash", "<b>oak</b>", "yew", "fir"])


def made(model, n_classes, **options):
    """Return a path, and further rows."""
    X, y = make_classification(
        900, 6, n_informative=5, n_redundant=0, n_classes=n_classes, flip_y=0.1, random_state=0
    )
    X, y = pd.DataFrame(X, columns=list("abcdef")), NAMES[y]
    model.fit(X[:400], y[:400])
    path = fp.prune_path(
        model, X[:400], y[:400], X_val=X[400:600], y_val=y[400:600], n_alphas=8, **options
    )
    return path, X[600:], y[600:]


@pytest.fixture(scope="module")
def two():
    return made(GradientBoostingClassifier(n_estimators=10, random_state=0), 2)


@pytest.fixture(scope="module")
def four():
    return made(GradientBoostingClassifier(n_estimators=5, random_state=0), 4)


@pytest.fixture(scope="module")
def averaged():
    return made(RandomForestClassifier(6, max_depth=4, random_state=0), 4)


def figures(model, X, y):
    sure = model.predict_proba(X)
    two = sure.shape[1] == 2
    return {
        "accuracy": accuracy_score(y, model.predict(X)),
        "balanced_accuracy": balanced_accuracy_score(y, model.predict(X)),
        "log_loss": log_loss(y, sure, labels=model.classes_),
        "roc_auc": roc_auc_score(y, sure[:, 1] if two else sure, multi_class="ovr"),
    }


@pytest.mark.parametrize("kind", ["two", "four", "averaged"])
def test_figures_of_classes_are_told(kind, tmp_path, request):
    path, X, y = request.getfixturevalue(kind)
    text = written(tmp_path, path, 5, X=X, y=y)
    full = figures(path.source.forest.to_native(), X, y)
    small = figures(path[5].to_native(), X, y)
    shown = Page(text).text
    for name, before in full.items():
        label = {"log_loss": "log-loss", "roc_auc": "AUC"}.get(name, name.replace("_", " "))
        assert f"{label} {before:.4g} → {small[name]:.4g}" in shown
    assert "RMSE" not in shown
    chart = data_in(text)["path"]
    for place in (0, 5, len(path) - 1):
        expected = figures(path[place], X, y) if place else {}
        told = {name: chart["points"][place][name] for name in expected}
        # Rounding decides whether equal sums of trees are ties, on which areas depend.
        assert told == pytest.approx(expected, rel=1e-4)
    assert {name: chart["full"][name] for name in full} == pytest.approx(full)
    assert chart["score"] == "D²"
    assert "<b>oak" not in text


@pytest.mark.parametrize("kind", ["two", "four", "averaged"])
def test_curves_are_those_of_scikit_learn(kind, request):
    path, X, y = request.getfixturevalue(kind)
    told = summarise(path, 5, About(), X, y)["curves"]
    labels = path[5].classes_
    assert len(told["classes"]) == (1 if kind == "two" else 4)
    for number, one in enumerate(told["classes"], start=1 if kind == "two" else 0):
        assert one["name"] == repr(str(labels[number]))
        own = y == labels[number]
        assert one["rows"] == own.sum()
        for name, model in (("before", path.source.forest.to_native()), ("after", path[5])):
            sure = model.predict_proba(X)[:, number]
            found = one["models"][name]
            assert found["auc"] == pytest.approx(roc_auc_score(own, sure), abs=1e-4)
            wrong, right, _ = roc_curve(own, sure, drop_intermediate=False)
            exact = set(zip(np.round(wrong, 4).tolist(), np.round(right, 4).tolist(), strict=True))
            assert {(x, y) for x, y, _ in found["roc"]} <= exact
            assert found["roc"][0][:2] == [0, 0]
            assert found["roc"][-1][:2] == [1, 1]
            rows = [rows for *_, rows in found["calibration"]]
            assert sum(rows) == len(y)
            assert min(rows) >= curves.LEAST_ROWS
            mean, share = np.array(found["calibration"]).T[:2]
            assert np.average(mean, weights=rows) == pytest.approx(sure.mean(), abs=1e-4)
            assert np.average(share, weights=rows) == pytest.approx(own.mean(), abs=1e-4)


def test_reliability_is_that_of_scikit_learn_where_rows_are_many(two, monkeypatch):
    path, X, y = two
    monkeypatch.setattr(curves, "LEAST_ROWS", 1)
    told = summarise(path, 5, About(), X, y)["curves"]["classes"][0]["models"]["after"]
    sure = path[5].predict_proba(X)[:, 1]
    share, mean = calibration_curve(y == path[5].classes_[1], sure, n_bins=10)
    found = np.array(told["calibration"])
    assert found[:, 0] == pytest.approx(mean, abs=1e-4)
    assert found[:, 1] == pytest.approx(share, abs=1e-4)


def test_weights_count_in_figures_and_curves(two):
    path, X, y = two
    weight = np.where(np.arange(len(y)) % 3 == 0, 3.0, 1.0)
    told = summarise(path, 5, About(), X, y, weight)
    sure = path[5].predict_proba(X)[:, 1]
    area = roc_auc_score(y == path[5].classes_[1], sure, sample_weight=weight)
    [one] = told["curves"]["classes"]
    assert one["models"]["after"]["auc"] == pytest.approx(area, abs=1e-4)
    assert told["error"]["figures"]["small"]["roc_auc"] == pytest.approx(area)


def test_without_rows_there_are_no_curves(two, tmp_path):
    path, X, y = two
    text = written(tmp_path, path, 5)
    assert data_in(text)["curves"] is None
    assert "roc-chart" not in Page(text).text + str(Page(text).elements)
    assert "accuracy" in Page(text).text  # which is known from the validation rows
    told = summarise(path, 5, About(rows=HeldOut(X, y, None)), X)
    assert told["curves"] is not None


def test_of_many_classes_the_commonest_are_shown(four, monkeypatch):
    path, X, y = four
    monkeypatch.setattr(curves, "MAX_CLASSES", 2)
    told = summarise(path, 5, About(), X, y)["curves"]
    names, counts = np.unique(y, return_counts=True)
    common = sorted(names[np.argsort(-counts, kind="stable")[:2]])
    assert [one["name"] for one in told["classes"]] == [repr(str(name)) for name in common]
    assert told["not_shown"] == 2


def test_of_many_classes_some_are_listed(four, tmp_path, monkeypatch):
    path, *_ = four
    monkeypatch.setattr(labels, "CLASSES", 1)
    shown = Page(written(tmp_path, path, 5)).text
    assert re.search(r"4 classes = \('<b>oak</b>': \S+ and 3 others\) \+", shown)


def test_trees_say_which_class_they_add_to(four, tmp_path):
    path, X, y = four
    small = path[5]
    [output] = summarise(path, 5, About())["trees"]["outputs"]
    classes = small.classes_[small.forest.tree_output]
    expected = {
        f"tree {number}, for {str(name)!r}"
        for number, name in zip(small.tree_numbers, classes, strict=True)
    }
    assert {tree["title"] for tree in output["trees"]} == expected
    shown = Page(written(tmp_path, path, 5, X=X, y=y)).text
    assert "Raw predictions of 4 classes = ('<b>oak</b>': " in shown
    assert "the class with the largest sum is predicted" in shown
    assert "in words" in shown


def test_leaves_of_several_classes_name_the_one_that_they_raise_most(averaged):
    path, *_ = averaged
    forest = path[3].forest
    [output] = summarise(path, 3, About())["trees"]["outputs"]
    nodes = [node for tree in output["trees"] for node in tree["nodes"] if node["leaf"]]
    names = path[3].classes_
    roots = forest.value[forest.offsets[:-1]]
    tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.offsets))
    added = (forest.scale[tree, None] * (forest.value - roots[tree]))[forest.left < 0]
    assert sorted(node["lines"][0] for node in nodes) == sorted(
        repr(str(names[k])) if len(names[k]) < 10 else "'<b>oak…b>'" for k in added.argmax(axis=1)
    )
    for node in nodes:
        assert all(f"{str(name)!r} " in node["full"] for name in names)


def test_any_scorer_has_its_name(two, tmp_path):
    path, X, y = made(
        GradientBoostingClassifier(n_estimators=5, random_state=0), 2, scoring="neg_log_loss"
    )
    text = written(tmp_path, path, 4, X=X, y=y)
    chart = data_in(text)["path"]
    assert chart["error_name"] == "log loss"
    assert chart["points"][4]["error"] == pytest.approx(-path.validation.scores[4])
    assert chart["points"][4]["error"] > 0
    expected = -log_loss(y, path[4].predict_proba(X))
    assert summarise(path, 4, About(), X, y)["error"]["small"] == pytest.approx(expected)
    assert "Models were chosen by neg_log_loss." in Page(text).text


def test_a_scorer_that_is_a_figure_is_told_once(tmp_path):
    path, X, y = made(
        GradientBoostingClassifier(n_estimators=5, random_state=0), 2, scoring="balanced_accuracy"
    )
    shown = Page(written(tmp_path, path, 4, X=X, y=y)).text
    assert re.search(r"balanced accuracy \S+ →", shown)
    assert not re.search(r"balanced_accuracy \S+ →", shown)


def test_constraints_are_a_sentence_of_their_own(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = rng.poisson(np.exp(X[:, 0]))
    model = HistGradientBoostingRegressor(loss="poisson", max_iter=5, monotonic_cst=[1, 0, 0])
    path = fp.prune_path(model.fit(X, y), X, y, n_alphas=4)
    assert "exp(sum). Constraints, kept" in Page(written(tmp_path, path, 2)).text


def test_counts_have_errors_in_their_units(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = rng.poisson(np.exp(X[:, 0]))
    model = HistGradientBoostingRegressor(loss="poisson", max_iter=10).fit(X[:300], y[:300])
    path = fp.prune_path(model, X[:300], y[:300], n_alphas=8, X_val=X[300:], y_val=y[300:])
    text = written(tmp_path, path, 5)
    errors = y[300:] - path[5].to_native().predict(X[300:])
    rmse, mae = np.sqrt(np.mean(errors**2)), np.mean(np.abs(errors))
    point = data_in(text)["path"]["points"][5]
    assert [point["rmse"], point["mae"]] == pytest.approx([rmse, mae])
    shown = Page(text).text
    assert "Log of the mean of y = " in shown
    assert "the prediction is exp(sum)" in shown
    assert "D² is the share of the model's loss" in shown
    assert data_in(text)["curves"] is None


def test_without_a_figure_in_units_nothing_is_made_of_other_losses(two):
    """The root of a ratio of log-losses is no error that one speaks of."""
    path, *_ = two
    own = fp.prune_path(path.source.forest, two[1], n_alphas=5, X_val=two[1])
    assert own.validation.name == "D squared"
    assert summarise(own, 3, About())["error"]["change"] is None
