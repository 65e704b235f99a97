"""The report says what is true, whatever features are called, and is whole or not there."""

import html
import pickle
import re
import subprocess
import sys
from dataclasses import replace

import catboost
import joblib
import numpy as np
import pandas as pd
import pytest
import xgboost
from effort import examples
from hand_made import AWKWARD
from hypothesis import given, settings
from hypothesis import strategies as st
from report_pages import MODELS, Page, data_in, written
from sklearn.datasets import make_friedman1
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import forestprune as fp
from forestprune.forest import registry
from forestprune.options import Options
from forestprune.select.budget import Budget
from forestprune.select.choose import Wanted
from forestprune.select.path import breaks_off
from forestprune.select.request import choose
from forestprune.select.routed import HeldOut
from forestprune.show.plotting.look import shortened
from forestprune.show.report import page, timing
from forestprune.show.report.features import LONGEST
from forestprune.show.report.summary import About, summarise
from forestprune.show.report.tradeoff import frontier

MOST_BYTES = 1_000_000

SCRIPTS = len(page.SCRIPTS) + 1
"""In a page: its own, and the data."""


def test_a_small_model_makes_a_small_file(tmp_path, path):
    assert len(written(tmp_path, path, path.select(max_nodes=40))) < 80_000


# What it says


def test_headline_says_what_the_models_are(tmp_path, path, data):
    *_, X_test, y_test = data
    small = path.select(max_nodes=40)
    native, full = small.to_native(), path.source.forest.to_native()
    text = written(tmp_path, path, small, X=X_test, y=y_test)
    shown = Page(text).text
    nodes = sum(tree.tree_.node_count for tree in full.estimators_.ravel())
    scores = [r2_score(y_test, model.predict(X_test)) for model in (full, native)]
    assert f"{nodes:,} → {small.n_nodes:,}" in shown
    assert f"R² {scores[0]:.4f} → {scores[1]:.4f}" in shown
    change = 100 * (((1 - scores[1]) / (1 - scores[0])) ** 0.5 - 1)
    said = f"{abs(change):.{2 if abs(change) < 0.95 else 1}f} %"
    assert f"{said} {'more' if change > 0 else 'less'} error (RMSE)" in shown
    assert f"{100 * small.n_nodes / nodes:.1f} % of the nodes are left" in shown
    assert "on 100 further rows, given for this report" in shown
    joblib.dump(native, tmp_path / "small.joblib")
    kilobytes = (tmp_path / "small.joblib").stat().st_size / 1000
    assert f"→ {kilobytes:.1f} kB" in shown
    assert "100 rows at once" in shown


def in_units(model, X, y, weights=None):
    """RMSE and MAE."""
    errors = y - model.predict(X)
    averages = [np.average(each, weights=weights) for each in (errors**2, np.abs(errors))]
    return averages[0] ** 0.5, averages[1]


def test_errors_are_told_in_the_units_of_y(tmp_path, path, data):
    *_, X_test, y_test = data
    weights = np.linspace(1, 3, y_test.size)
    small = path.select(max_nodes=40)
    given = {"X": X_test, "y": y_test, "sample_weight": weights}
    text = written(tmp_path, path, small, **given)
    full = in_units(path.source.forest.to_native(), X_test, y_test, weights)
    mine = in_units(small.to_native(), X_test, y_test, weights)
    for name, before, after in zip(("RMSE", "MAE"), full, mine, strict=True):
        assert f"{name} {before:.4g} → {after:.4g}" in Page(text).text
    chart = data_in(text)["path"]
    assert [chart["full"]["rmse"], chart["full"]["mae"]] == pytest.approx(full)
    assert chart["figures_further"]
    for place in (0, 7, len(path) - 1):
        point = chart["points"][place]
        expected = in_units(path[place], X_test, y_test, weights)
        assert [point["rmse"], point["mae"]] == pytest.approx(expected)


def test_headline_is_the_change_in_rmse(path, data):
    *_, X_test, y_test = data
    full = path.source.forest.to_native()
    rmse = [in_units(model, X_test, y_test)[0] for model in (full, path[10])]
    told = summarise(path, 10, About(), X_test, y_test)["error"]
    assert told["change"] == pytest.approx(rmse[1] / rmse[0] - 1)
    validation = path.validation
    ratio = (1 - validation.scores[10]) / (1 - validation.full)
    told = summarise(path, 10, About())["error"]
    assert told["change"] == pytest.approx(ratio**0.5 - 1)
    unknown = summarise(replace(path, validation=None), 10, About())["error"]
    assert unknown["change"] is None


def test_without_a_target_in_its_units_no_such_error_is_told(tmp_path, path, data):
    X, y, *_ = data
    both = np.column_stack([y, 1000 * y])
    model = RandomForestRegressor(3, max_depth=3, random_state=0).fit(X, both)
    two = fp.prune_path(model, X, both, n_alphas=5)
    own = fp.prune_path(path.source.forest, X, n_alphas=5, X_val=X)
    for text in (written(tmp_path, two, 4, X=X, y=both), written(tmp_path, own, 4, X=X)):
        assert data_in(text)["path"]["full"]["rmse"] is None
        assert "MAE" not in Page(text).text


def test_errors_on_the_rows_of_the_path_are_told_in_units_too(path, data):
    _, _, X_val, y_val, *_ = data
    summary = summarise(path, 10, About())
    expected = in_units(path[10], X_val, y_val)
    told = summary["error"]["figures"]["small"]
    assert [told["rmse"], told["mae"]] == pytest.approx(expected)
    assert not summary["path"]["figures_further"]
    variance = np.var(y_val)
    assert told["rmse"] ** 2 / variance == pytest.approx(1 - path.validation.scores[10])


def test_larger_and_slower_models_are_called_so(tmp_path, path, data, monkeypatch):
    times = {"full": 0.002, "small": 0.003}
    monkeypatch.setattr(
        "forestprune.show.report.summary.prediction_times", lambda models, rows: times
    )
    shown = Page(written(tmp_path, path, 20, X=data[0], model_bytes=100)).text
    assert "1.5 \N{MULTIPLICATION SIGN} slower 2 ms → 3 ms" in shown
    assert re.search(r"[0-9.]+ \N{MULTIPLICATION SIGN} larger 100 bytes →", shown)


def test_sizes_are_those_of_files_of_one_kind(tmp_path, data):
    X, y, *_ = data
    model = xgboost.XGBRegressor(n_estimators=20).fit(X, y)
    model.save_model(tmp_path / "m.ubj")
    path = fp.prune_path(model, X, y, n_alphas=10)
    registry.save_model(path[8].to_native(), tmp_path / "s.ubj")
    shown = Page(written(tmp_path, path, 8, small_file=tmp_path / "s.ubj")).text
    kilobytes = [(tmp_path / name).stat().st_size / 1000 for name in ("m.ubj", "s.ubj")]
    assert f"{kilobytes[0]:.1f} kB → {kilobytes[1]:.1f} kB" in shown


def test_what_the_model_says_itself_is_no_target_like_others(tmp_path, data):
    X, y, X_val, *_ = data
    model = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X, y)
    path = fp.prune_path(model, X, n_alphas=10, X_val=X_val)
    text = written(tmp_path, path, 6)
    assert data_in(text)["path"]["own"]
    assert "measured against the full model's predictions; on rows held out" in Page(text).text
    with_y = fp.prune_path(model, X, y, n_alphas=5, X_val=X_val, y_val=data[3])
    assert not data_in(written(tmp_path, with_y, 3))["path"]["own"]


def test_formulas_are_exact_and_shrinkages_told(tmp_path, data):
    X, y, X_val, y_val, *_ = data
    model = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(20_000 + X, y)
    held_out = HeldOut(20_000 + X_val, y_val, None)
    wanted = Wanted(budget=Budget(max_nodes=30), n_alphas=15, whole=True)
    path, place = choose(model, 20_000 + X, y, None, wanted, held_out, Options())
    text = written(tmp_path, path, place)
    assert path[place].to_formula() in html.unescape(text)
    points = data_in(text)["path"]["points"]
    assert {point["shrinkage"] for point in points[:-1]} == {10.0, 100.0, 1000.0}
    assert points[-1]["shrinkage"] is None  # the full model
    assert points[place]["shrinkage"] == path[place].report["shrinkage"]
    assert (
        "one path for each shrinkage of the leaves' new values (10, 100, 1000)" in Page(text).text
    )


def test_trees_that_were_leaves_before_are_not_gone(tmp_path, data):
    X, y, *_ = data
    model = xgboost.XGBRegressor(n_estimators=20, gamma=60, max_depth=3).fit(X, y)
    path = fp.prune_path(model, X, y, n_alphas=8)
    depths = fp.Forest.from_model(model).depths
    assert np.count_nonzero(depths == 0) > 0
    small = path[7]
    gone = np.count_nonzero((small.depths == 0) & (depths > 0))
    assert f"{gone} trees of 20 are gone" in Page(written(tmp_path, path, 7)).text.replace(
        "1 tree of 20 is gone", "1 trees of 20 are gone"
    )


def test_models_are_timed_in_turns():
    calls = []

    class Model:
        def __init__(self, name):
            self.name = name

        def predict(self, rows):
            calls.append(self.name)

    times = timing.prediction_times({"full": Model("full"), "small": Model("small")}, [[1.0]])
    assert list(times) == ["full", "small"]
    assert calls == ["full", "small"] * (1 + timing.MAX_TURNS)


def test_names_without_end_do_not_make_it_larger(tmp_path, data):
    X, y, *_ = data
    names = [f"{letter * 20_000}" for letter in "abcd"]
    frame = pd.DataFrame(X, columns=names)
    model = RandomForestRegressor(30, random_state=0).fit(frame, y)
    path = fp.prune_path(model, frame, y, n_alphas=15)
    page_ = tmp_path / "report.html"
    for pick in (path.select(max_nodes=90), path.select(max_nodes=900)):
        fp.write_report(page_, path, pick)
        assert page_.stat().st_size < MOST_BYTES


def test_without_further_rows_the_error_is_that_on_rows_held_out(tmp_path, path):
    shown = Page(written(tmp_path, path, 10)).text
    validation = path.validation
    assert f"R² {validation.full:.4f} → {validation.scores[10]:.4f}" in shown
    assert "on rows held out, by which it may have been chosen;" in shown
    assert "not measured: there were no rows to predict" in shown


def test_without_rows_held_out_the_report_says_so(tmp_path, data):
    X, y, *_ = data
    model = RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, y)
    path = fp.prune_path(model, X, y, n_alphas=8)
    text = written(tmp_path, path, 5)
    shown = Page(text).text
    assert f"{1 - path.losses[5]:.4f} R²" in shown
    assert "No rows were held out" in shown
    assert "were not looked for" not in shown
    assert "which flatters" in shown
    chart = data_in(text)["path"]
    assert chart["full"]["error"] is None
    assert [point["error"] for point in chart["points"]] == pytest.approx(path.losses.tolist())


def test_every_point_of_the_path_is_there(tmp_path, path):
    chart = data_in(written(tmp_path, path, 12))["path"]
    assert [point["nodes"] for point in chart["points"]] == path.n_nodes.tolist()
    assert [point["trees"] for point in chart["points"]] == path.n_trees.tolist()
    assert [point["alpha"] for point in chart["points"]] == pytest.approx(path.alphas.tolist())
    errors = (1 - path.validation.scores).tolist()
    assert [point["error"] for point in chart["points"]] == pytest.approx(errors)
    marks = {mark["name"]: mark["place"] for mark in chart["marks"]}
    assert marks["this model"] == 12
    assert marks["best"] == int(np.argmin(errors))
    as_good = [i for i, error in enumerate(errors) if error <= 1 - path.validation.full]
    wanted = min(as_good, key=lambda i: path.n_nodes[i]) if as_good else None
    assert marks.get("smallest as good as the full model") == wanted


def test_of_a_path_that_breaks_off_the_full_model_is_not_called_best(tmp_path):
    X, y = make_friedman1(400, noise=1.0, random_state=0)
    model = GradientBoostingRegressor(random_state=0).fit(X[:200], y[:200])
    held_out = {"X_val": X[200:], "y_val": y[200:]}
    small = fp.prune(model, X[:200], y[:200], tolerance=0.1, n_alphas=20, **held_out)
    assert breaks_off(small.path)
    fp.write_report(tmp_path / "r.html", small)
    text = (tmp_path / "r.html").read_text()
    assert "larger models, up to the full one, were not looked for" in Page(text).text
    chart = data_in(text)["path"]
    assert chart["marks"] == [{"name": "this model", "place": small.index}]
    assert not chart["points"][-1]["frontier"]
    assert any(point["frontier"] for point in chart["points"])


def test_what_is_no_pruned_model_is_not_reported_on(tmp_path, path):
    with pytest.raises(TypeError, match=r"a file name and then what .* got str in its place"):
        fp.write_report(path[3], "report.html")
    with pytest.raises(TypeError, match="got RandomForestRegressor in its place"):
        fp.write_report(tmp_path / "r.html", RandomForestRegressor())
    with pytest.raises(TypeError, match="A path has many points"):
        fp.write_report(tmp_path / "r.html", path)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=12))
def test_frontier_has_what_nothing_else_beats(points):
    nodes, errors = np.array(points).T
    expected = []
    for i, (size, error) in enumerate(points):
        beaten = any(
            other_size <= size and other_error < error for other_size, other_error in points
        )
        # Of several with the same error the smallest counts, and of equal ones the first.
        twin = any(
            other_error == error and (other_size < size or (other_size == size and j < i))
            for j, (other_size, other_error) in enumerate(points)
        )
        expected.append(not beaten and not twin)
    assert frontier(nodes, errors.astype(float)).tolist() == expected


def test_depths_and_features_are_counted(tmp_path, path):
    small, full = path.select(max_nodes=40), path.source.forest
    text = written(tmp_path, path, small)
    chart = data_in(text)
    for depth, (before, after) in enumerate(
        zip(chart["depths"]["before"], chart["depths"]["after"], strict=True)
    ):
        assert before == np.count_nonzero(full.depths == depth)
        assert after == np.count_nonzero(small.depths == depth)
    shown = Page(text).text
    splits = [np.count_nonzero(each.feature >= 0) for each in (full, small.forest)]
    assert f"before, of {splits[0]} splits after, of {splits[1]} splits" in shown
    for column in np.unique(full.feature[full.feature >= 0]):
        before, after = (np.count_nonzero(f.feature == column) for f in (full, small.forest))
        shares = [100 * before / splits[0], 100 * after / splits[1]]
        said = [f"{share:.1f} %" if share else "none" for share in shares]
        assert f"x{column} before: {said[0]} after: {said[1]}" in shown
        plural = "" if before == 1 else "s"
        assert f'title="x{column}: {before} split{plural} before, {after} after"' in text


def test_features_that_are_gone_are_listed(tmp_path, data):
    X, y, *_ = data
    frame = pd.DataFrame(X, columns=["this", "that", "also", "noise & <i>nothing</i>"])
    model = GradientBoostingRegressor(n_estimators=50, random_state=0).fit(frame, y)
    path = fp.prune_path(model, frame, y, n_alphas=40)
    small = path.select(max_nodes=20)
    used = {frame.columns[i] for i in small.forest.feature if i >= 0}
    assert "noise & <i>nothing</i>" not in used
    text = written(tmp_path, path, small)
    listed = re.findall(r"<li>(.*?)</li>", text)
    assert "noise &amp; &lt;i&gt;nothing&lt;/i&gt;" in listed
    assert len(listed) == 4 - len(used)


def test_every_leaf_is_drawn_with_what_it_adds(tmp_path, path):
    small = path.select(max_nodes=40)
    place = [point.alpha for point in path.points].index(small.alpha)
    drawn = summarise(path, place, About())["trees"]
    nodes = [node for tree in drawn["outputs"][0]["trees"] for node in tree["nodes"]]
    leaves = [node for node in nodes if node["leaf"]]
    assert len(nodes) == small.n_nodes
    forest = small.forest
    assert len(leaves) == np.count_nonzero(forest.left < 0)
    tree_of = np.repeat(np.arange(forest.n_trees), np.diff(forest.offsets))
    roots = forest.value[forest.offsets[:-1], 0][tree_of]
    adds = (forest.scale[tree_of] * (forest.value[:, 0] - roots))[forest.left < 0]
    told = [float(re.match(r"adds (\S+);", leaf["full"])[1]) for leaf in leaves]
    assert sorted(told) == pytest.approx(sorted(adds.tolist()))
    shown = Page(written(tmp_path, path, small)).text
    assert all(line in shown for leaf in leaves for line in leaf["lines"])
    assert small.to_text(digits=4).splitlines()[0] in shown


def test_options_and_versions_are_on_record(tmp_path, path):
    weighting = np.arange(1000.0)
    options = {"max_nodes": 500, "rule": "subtree", "note": "<b>", "weighting": list(weighting)}
    shown = Page(written(tmp_path, path, 3, options=options, title="Wines & <co>")).text
    assert "Wines & <co>" in shown
    assert "max_nodes 500 rule subtree note <b> weighting [np.float64(0.0)" in shown
    assert len(shown) < 20_000
    assert f"forestprune {fp.__version__}" in shown


# What may be in a model


def test_names_of_features_stay_text(tmp_path, data):
    X, y, *_ = data
    names = [
        "<script>window.stolen = 1</script>",
        "</script><script>window.stolen = 2</script>",
        '"><img src=x onerror="window.stolen = 3">',
        "{{ 7 * 7 }}{% raw %}",
    ]
    frame = pd.DataFrame(X, columns=names)
    model = GradientBoostingRegressor(n_estimators=10, random_state=0).fit(frame, y)
    path = fp.prune_path(model, frame, y, n_alphas=10)
    text = written(tmp_path, path, 9, title=names[0], options={names[0]: names[1]})
    opened = Page(text)
    plain = Page(written(tmp_path, path, 9))
    assert opened.tags.count("script") == SCRIPTS
    assert "img" not in opened.tags
    assert opened.text.count("49") == plain.text.count("49")  # as which a template would run
    titles = " ".join(attributes.get("title", "") for _, attributes in opened.elements)
    for name in names[:3]:
        assert name in opened.text
        assert f"{name}: " in titles


@settings(max_examples=examples(15))
@given(
    st.lists(st.text() | st.sampled_from(AWKWARD), min_size=4, max_size=4, unique=True),
)
def test_no_name_breaks_the_page(names):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    forest = fp.Forest.from_model(
        RandomForestRegressor(3, max_depth=2, random_state=0).fit(X, X[:, 0] * X[:, 1])
    )
    forest = replace(forest, input=replace(forest.input, feature_names=tuple(names)))
    path = fp.prune_path(forest, pd.DataFrame(X, columns=names), X[:, 0] * X[:, 1], n_alphas=4)
    text = page.page(summarise(path, 3, About(title="t")))
    opened = Page(text)
    assert opened.tags.count("script") == SCRIPTS
    used = {names[column] for column in forest.feature if column >= 0}
    told = [each["title"] for tag, each in opened.elements if tag == "tr" and "title" in each]
    assert len(told) == len(used)
    for name in used:
        assert any(title.startswith(f"{shortened(name, LONGEST)}: ") for title in told)


def test_nothing_comes_from_outside(tmp_path, path):
    opened = Page(written(tmp_path, path, 9))
    for tag, attributes in opened.elements:
        assert tag not in ("link", "img", "iframe", "object", "embed")
        assert not {"src", "href", "srcset", "action"} & set(attributes)
    policy = next(a["content"] for _, a in opened.elements if "http-equiv" in a)
    assert policy.startswith("default-src 'none'")
    assert "unsafe-inline" not in policy.partition("script-src")[2]


def test_a_large_model_still_makes_a_small_file(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 600))
    y = X[:, :40].sum(axis=1) + rng.normal(size=1000)
    names = [f"a rather long name of a feature, number {i:,} of many" for i in range(600)]
    frame = pd.DataFrame(X, columns=names)
    model = RandomForestRegressor(50, max_features=0.1, n_jobs=2, random_state=0).fit(frame, y)
    path = fp.prune_path(model, frame, y, n_alphas=20)
    file = fp.write_report(tmp_path / "report.html", path, len(path) - 1, X=frame)
    assert path.n_nodes[-1] > 10_000
    assert file.stat().st_size < MOST_BYTES
    shown = Page(file.read_text("utf-8")).text
    assert "not drawn" in shown
    small = path.select(max_nodes=700)
    few = fp.write_report(tmp_path / "few.html", path, small)
    assert few.stat().st_size < MOST_BYTES
    used, kept = (np.unique(f.feature[f.feature >= 0]) for f in (path.source.forest, small.forest))
    assert f"and {used.size - kept.size - 300} more" in Page(few.read_text("utf-8")).text


def test_a_constant_has_a_report(tmp_path, path, data):
    text = written(tmp_path, path, 0, X=data[0])
    shown = Page(text).text
    assert path.n_nodes[0] == 0
    assert "No tree is left: the model is a constant." in shown
    assert "pruned to a constant: no tree is left." in shown
    assert "0 nodes: a constant" in shown
    assert "it has no nodes, so its dot is left of the axis, at 0" in shown


def test_several_outputs_are_drawn_apart(tmp_path, data):
    X, y, *_ = data
    model = RandomForestRegressor(5, max_depth=3, random_state=0).fit(X, np.column_stack([y] * 6))
    path = fp.prune_path(model, X, np.column_stack([y] * 6), n_alphas=6)
    shown = Page(written(tmp_path, path, 5)).text
    assert all(f"Output {number}." in shown for number in (1, 2, 3, 4))
    assert "Output 5." not in shown
    assert "2 further outputs not drawn" in shown


def test_what_is_no_y_is_named(tmp_path, data):
    X, y, *_ = data
    model = HistGradientBoostingRegressor(loss="poisson", max_iter=5).fit(X, np.exp(y / 3))
    path = fp.prune_path(model, X, n_alphas=5)
    shown = Page(written(tmp_path, path, 4, X=X)).text
    assert path.source.forest.origin.predicts in shown
    with pytest.raises(ValueError, match="y must be 0 or more for the Poisson loss"):
        fp.write_report(tmp_path / "other.html", path, 4, X=X, y=-np.exp(y))
    assert not (tmp_path / "other.html").exists()


def test_a_pipeline_takes_what_it_always_took(tmp_path, data):
    X, y, X_val, y_val, X_test, y_test = data
    pipeline = make_pipeline(StandardScaler(), RandomForestRegressor(5, max_depth=5)).fit(X, y)
    path = fp.prune_path(pipeline, X, y, n_alphas=5, X_val=X_val, y_val=y_val)
    shown = Page(written(tmp_path, path, 4, X=X_test, y=y_test)).text
    assert f"R² {r2_score(y_test, pipeline.predict(X_test)):.4f}" in shown


@pytest.mark.parametrize("container", ["DMatrix", "Booster", "polars", "Pool"])
def test_rows_of_any_kind_are_timed(tmp_path, data, container):
    import polars

    X, y, *_ = data
    if container == "Pool":
        model = MODELS["CatBoostRegressor"][0].fit(X, y)
        rows = catboost.Pool(X)
    elif container == "polars":
        rows = polars.DataFrame(X, schema=["a", "b", "c", "d"])
        model = RandomForestRegressor(5, max_depth=3, random_state=0).fit(rows, y)
    else:
        model = MODELS["XGBRegressor"][0].fit(X, y)
        model = model.get_booster()
        rows = X if container == "Booster" else xgboost.DMatrix(X)
    path = fp.prune_path(model, rows, y, n_alphas=5)
    assert "300 rows at once" in Page(written(tmp_path, path, 4, X=rows)).text


def test_no_more_rows_are_timed_than_needed():
    assert len(timing.first_rows(np.zeros((5000, 2)))) == timing.ROWS


def test_a_forest_without_a_library_has_a_report(tmp_path, path, data):
    forest = replace(path.source.forest, origin=None)
    own = fp.prune_path(forest, data[0], data[1], n_alphas=5)
    text = written(tmp_path, own, 4, X=data[0])
    assert "forestprune reads" in Page(text).text


# Whole or not there


def test_an_older_report_is_replaced_only_by_a_whole_one(tmp_path, path, monkeypatch):
    file = tmp_path / "report.html"
    file.write_text("older")

    def fail(_):
        raise RuntimeError("on the way")

    monkeypatch.setattr("forestprune.show.report.write.page", fail)
    with pytest.raises(RuntimeError):
        fp.write_report(file, path, 3)
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]
    assert file.read_text() == "older"


def test_wrong_calls_say_what_is_required(tmp_path, path, data):
    X, y, *_ = data
    other = fp.prune(path.source.forest, X, y, alpha=0.123)
    with pytest.raises(ValueError, match="is not a point of this path"):
        fp.write_report(tmp_path / "report.html", path, other)
    with pytest.raises(ValueError, match="y was given without X"):
        fp.write_report(tmp_path / "report.html", path, 3, y=y)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        fp.write_report(tmp_path / "nowhere" / "report.html", path, 3)
    assert not list(tmp_path.iterdir())


def test_what_is_missing_is_named_with_what_to_install():
    script = """
import sys
sys.modules["jinja2"] = None
import forestprune as fp
try:
    fp.write_report("x", None, 0)
except ImportError as error:
    print(error)
"""
    said = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout
    assert "pip install jinja2" in said


def test_the_model_is_left_alone(tmp_path, data):
    X, y, *_ = data
    model = RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, y)
    before = pickle.dumps(model)
    path = fp.prune_path(model, X, y, n_alphas=5)
    written(tmp_path, path, 3, X=X)
    assert pickle.dumps(model) == before


# As people write numbers


@pytest.mark.parametrize(
    ("n", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (13_444, "13.4 kB"), (2**31, "2.1 GB")],
)
def test_bytes(n, text):
    assert page.human_bytes(n) == text


@pytest.mark.parametrize(
    ("full", "small", "text"), [(10, 4, "2.5"), (9999, 3, "3,333"), (3, 0, "∞"), (1, 2, "2.0")]
)
def test_ratios(full, small, text):
    assert page.ratio(full, small) == text


@pytest.mark.parametrize(
    ("ms", "text"), [(0.0123, "0.012 ms"), (3.21, "3.2 ms"), (123.4, "123 ms"), (2500, "2.5 s")]
)
def test_times(ms, text):
    assert page.human_milliseconds(ms) == text
