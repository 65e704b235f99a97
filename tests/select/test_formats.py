"""A budget in bytes counts the file that the small model will be written to."""

import pytest
from shops import fitted
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import forestprune as fp
from forestprune.forest import registry

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
