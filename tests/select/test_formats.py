"""A budget in bytes counts the file that the small model will be written to."""

from dataclasses import replace

import pytest
from shops import fitted
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import forestprune as fp
from forestprune.deploy.c_header import to_c
from forestprune.deploy.sizes import C_OPTIONS
from forestprune.forest import registry
from forestprune.show.report.page import human_bytes

X, Y = make_friedman1(200, noise=1.0, random_state=0)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("library", "formats"),
    [
        ("sklearn", ["joblib", "pkl", "npz"]),
        ("xgboost", ["json", "ubj", "joblib"]),
        ("lightgbm", ["txt", "joblib"]),
        ("catboost", ["cbm", "json"]),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_bytes_are_counted_in_the_format_that_is_named(library, formats, tmp_path):
    model = fitted(library, X, Y)
    for ending in formats:
        file = tmp_path / f"small.{ending}"
        for small in (
            fp.prune(model, X, Y, max_bytes=25_000, n_alphas=15, format=ending),
            fp.prune_path(model, X, Y, n_alphas=15, format=ending).select(max_bytes=25_000),
            fp.prune_path(model, X, Y, n_alphas=15).select(max_bytes=25_000, format=ending),
            fp.ForestPruneRegressor(model, max_bytes=25_000, n_alphas=15, format=ending)
            .fit(X, Y)
            .pruned_,
        ):
            registry.save_model(small.forest if ending == "npz" else small.to_native(), file)
            assert small.n_bytes == file.stat().st_size <= 25_000
            assert small.n_trees
    # A model that comes from a file is taken to go to one of its kind.
    if library != "sklearn":
        registry.save_model(model, tmp_path / f"model.{formats[0]}")
        small = fp.prune(tmp_path / f"model.{formats[0]}", X, Y, max_bytes=25_000, n_alphas=15)
        assert small.ending == f".{formats[0]}"


@pytest.mark.parametrize(
    ("chosen", "complaint"),
    [
        ("txt", "format of a RandomForestRegressor must be 'joblib' or .*, got 'txt'"),
        (".npz", r"format must be None or 'joblib' or .*, got '\.npz'"),
        (5, "format must be None or 'joblib' or .*, got 5"),
    ],
)
def test_formats_that_a_model_cannot_have_are_refused(chosen, complaint):
    model = RandomForestRegressor(3, max_depth=3, random_state=0).fit(X, Y)
    for call in (
        lambda: fp.prune(model, X, Y, format=chosen),
        lambda: fp.prune_path(model, X, Y, n_alphas=2).select(max_nodes=9, format=chosen),
        lambda: fp.ForestPruneRegressorCV(model, n_alphas=3, format=chosen).fit(X, Y),
    ):
        with pytest.raises(ValueError, match=complaint):
            call()


def test_a_pipeline_goes_to_files_of_pickle():
    pipeline = make_pipeline(StandardScaler(), fitted("sklearn", X, Y))
    pipeline.fit(X, Y)
    assert fp.prune(pipeline, X, Y, max_nodes=20, format="pkl").n_bytes > 1000
    with pytest.raises(ValueError, match="format of a Pipeline with a RandomForestRegressor"):
        fp.prune(pipeline, X, Y, format="npz")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("library", ["sklearn", "lightgbm"])
def test_bytes_are_counted_as_the_model_is_deployed(library, tmp_path):
    model = fitted(library, X, Y)
    for format_, options in C_OPTIONS.items():
        small = fp.prune(model, X, Y, max_bytes=800, n_alphas=15, format=format_)
        assert small.n_trees
        assert small.n_bytes == small.to_c(**options).n_bytes <= 800
        # The best of those that fit.
        path = fp.prune_path(model, X, Y, n_alphas=15)
        again = path.select(max_bytes=800, format=format_)
        fitting = [each.loss for each in path if each.to_c(**options).n_bytes <= 800]
        assert again.loss == min(fitting)
        assert format_ != "c" or len(fitting) < len(path)
    small.save(tmp_path / "small.npz")
    assert fp.PrunedForest.load(tmp_path / "small.npz").n_bytes == small.n_bytes
    pytest.importorskip("onnx")
    small = fp.prune(model, X, Y, max_bytes=8_000, n_alphas=15, format="onnx")
    assert small.n_bytes == len(small.to_onnx().SerializeToString()) <= 8_000
    assert small.n_trees


def test_a_forest_without_a_library_and_a_pipeline_are_counted_too():
    forest = fp.Forest.from_model(fitted("sklearn", X, Y))
    pipeline = make_pipeline(StandardScaler(), fitted("sklearn", X, Y)).fit(X, Y)
    for model in (replace(forest, origin=None), pipeline):
        small = fp.prune(model, X, Y, max_bytes=700, n_alphas=15, format="c-int8")
        assert 200 < small.n_bytes <= 700


def test_a_report_has_sizes_of_what_is_deployed(tmp_path):
    pytest.importorskip("jinja2")
    model = fitted("sklearn", X, Y)
    small = fp.prune(model, X, Y, max_bytes=700, n_alphas=15, format="c-int8")
    fp.write_report(tmp_path / "report.html", small)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "small.joblib" in page
    full = fp.Forest.from_model(model)
    assert human_bytes(to_c(full, dtype="float32", leaves="int8").n_bytes) in page
