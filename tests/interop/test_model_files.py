"""Model files: what is in them is told by suffix and first bytes, and comes back as it was."""

import builtins
import importlib
import json
import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import joblib
import numpy as np
import pytest
from effort import INTERPRETED
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_friedman1
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeRegressor
from threadpoolctl import threadpool_limits

import forestprune as fp
from forestprune.forest import registry
from forestprune.interop import model_files
from forestprune.interop.source import Source


@pytest.fixture(scope="module")
def friedman():
    X, y = make_friedman1(80, n_features=5, random_state=0)
    X[:, 4] = np.round(4 * X[:, 4])
    return X, y


@pytest.fixture(scope="module")
def models(friedman):
    chosen = {
        "tree": DecisionTreeRegressor(max_depth=4),
        "forest": RandomForestRegressor(3, max_depth=4),
        "extra": ExtraTreesRegressor(3, max_depth=4),
        "bagging": BaggingRegressor(n_estimators=3),
        "boosting": GradientBoostingRegressor(n_estimators=3),
        "histograms": HistGradientBoostingRegressor(max_iter=3),
        "categories": HistGradientBoostingRegressor(max_iter=3, categorical_features=[4]),
    }
    with threadpool_limits(1, user_api="openmp"):
        return {name: model.fit(*friedman) for name, model in chosen.items()}


def dump_plainly(model, path):
    path.write_bytes(pickle.dumps(model))


def dump_compressed(model, path):
    joblib.dump(model, path, compress=3)


@pytest.mark.parametrize("as_path", [str, Path])
@pytest.mark.parametrize(
    ("name", "dump"),
    [
        ("model.joblib", joblib.dump),
        ("model.joblib", dump_compressed),
        ("model.pkl", dump_plainly),
        ("Model.PICKLE", dump_plainly),
    ],
)
def test_pickled_models(name, dump, as_path, models, friedman, tmp_path):
    path = tmp_path / name
    dump(models["forest"], path)
    loaded = model_files.load(as_path(path), trust=True)
    assert type(loaded) is RandomForestRegressor
    forest = fp.Forest.from_file(as_path(path), trust=True)
    assert forest == fp.Forest.from_model(models["forest"])


class Bomb:
    """Leaves a file behind when it is unpickled."""

    def __reduce__(self):
        return Path.touch, (Path("exploded"),)


@pytest.mark.parametrize("suffix", ["joblib", "pkl", "PICKLE"])
def test_a_pickle_is_not_loaded_unless_it_is_trusted(suffix, friedman, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = f"model.{suffix}"
    Path(name).write_bytes(pickle.dumps(Bomb()))
    for read in (
        model_files.load,
        registry.load_model,
        Source.of,
        fp.Forest.from_file,
        lambda path: fp.prune(path, *friedman, max_nodes=20),
        lambda path: fp.prune_path(path, *friedman),
    ):
        with pytest.raises(fp.UnsupportedModelError) as caught:
            read(name)
        assert str(caught.value) == (
            f"{name} is a pickle, and loading one can run any code that is in it. If you trust "
            "whoever wrote it, load it yourself with joblib.load() and pass the model, or read it "
            "with Forest.from_file(path, trust=True)."
        )
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert not Path("exploded").exists()
    with pytest.raises(fp.UnsupportedModelError):
        fp.Forest.from_file(name, trust=True)
    assert Path("exploded").exists()


@pytest.mark.parametrize(
    "name", ["tree", "forest", "extra", "bagging", "boosting", "histograms", "categories"]
)
def test_skops_files_of_every_class(name, models, friedman, tmp_path):
    skops = pytest.importorskip("skops.io")
    skops.dump(models[name], tmp_path / "model.skops")
    loaded = model_files.load(tmp_path / "model.skops")
    assert type(loaded) is type(models[name])
    np.testing.assert_array_equal(loaded.predict(friedman[0]), models[name].predict(friedman[0]))
    forest = fp.Forest.from_file(tmp_path / "model.skops")
    assert forest == fp.Forest.from_model(models[name])
    # What is written fits into such a file again.
    skops.dump(forest.truncate(2).to_native(), tmp_path / "small.skops")
    assert fp.Forest.from_file(tmp_path / "small.skops").max_depth <= 2


def shout(X):
    return X


def test_skops_files_with_anything_else_are_refused(models, friedman, tmp_path):
    skops = pytest.importorskip("skops.io")
    pipeline = make_pipeline(FunctionTransformer(shout), models["forest"])
    skops.dump(pipeline, tmp_path / "model.skops")
    with pytest.raises(fp.UnsupportedModelError, match=r"but it has .*\.shout\. If you trust"):
        model_files.load(tmp_path / "model.skops")
    loaded = model_files.load(tmp_path / "model.skops", trust=True)
    np.testing.assert_array_equal(loaded.predict(friedman[0]), pipeline.predict(friedman[0]))


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("suffix", ["joblib", "skops"])
def test_pipelines_in_files(suffix, frozen, friedman, tmp_path):
    X, y = friedman
    prepare = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), [0, 1, 2, 3]), (OneHotEncoder(), [4])
    )
    pipeline = make_pipeline(prepare, RandomForestRegressor(2, max_depth=3)).fit(X, y)
    model = FrozenEstimator(pipeline) if frozen else pipeline
    path = tmp_path / f"model.{suffix}"
    (joblib if suffix == "joblib" else pytest.importorskip("skops.io")).dump(model, path)
    source = Source.of(path, trust=True)
    assert [name for name, _ in source.pipeline.steps] == [
        "columntransformer",
        "randomforestregressor",
    ]
    np.testing.assert_allclose(source.forest.predict(source.transform(X)), pipeline.predict(X))


@pytest.mark.skipif(INTERPRETED, reason="goes through pruning from the outside")
@pytest.mark.parametrize("as_path", [str, Path])
def test_pruning_by_path(as_path, models, friedman, tmp_path):
    fp.Forest.from_model(models["forest"]).save(tmp_path / "model.npz")
    path = as_path(tmp_path / "model.npz")
    small = fp.prune(path, *friedman, max_nodes=20)
    same = fp.prune(models["forest"], *friedman, max_nodes=20)
    assert small.n_nodes == same.n_nodes
    assert type(small.to_native()) is RandomForestRegressor
    np.testing.assert_array_equal(small.predict(friedman[0]), same.predict(friedman[0]))
    assert fp.prune_path(path, *friedman, n_alphas=3)[0].n_nodes >= 0


# The other libraries: each reads its own files


def trained(library, X, y):
    """Return small models of a library by the suffixes of the files that they go into."""
    if library == "xgboost":
        model = importlib.import_module("xgboost").XGBRegressor(n_estimators=2, n_jobs=1)
        model.fit(X, y)
        return {"json": model.save_model, "ubj": model.save_model}
    if library == "lightgbm":
        model = importlib.import_module("lightgbm").LGBMRegressor(
            n_estimators=2, n_jobs=1, verbose=-1
        )
        return {"txt": model.fit(X, y).booster_.save_model}
    model = importlib.import_module("catboost").CatBoostRegressor(
        iterations=2, depth=2, thread_count=1, verbose=0, allow_writing_files=False
    )
    model.fit(X, y)
    return {"cbm": model.save_model, "json": lambda path: model.save_model(path, format="json")}


LIBRARIES = ["xgboost", "lightgbm", "catboost"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("library", LIBRARIES)
def test_files_of_other_libraries(library, friedman, tmp_path):
    pytest.importorskip(library)
    pytest.importorskip(f"forestprune.interop.{library}")
    for suffix, save in trained(library, *friedman).items():
        path = tmp_path / f"model.{suffix}"
        save(str(path))
        loaded = model_files.load(path)
        assert type(loaded).__module__.partition(".")[0] == library
        assert fp.Forest.from_file(path).origin.library == library


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("library", LIBRARIES)
def test_files_go_to_the_module_of_their_library(library, friedman, tmp_path, monkeypatch):
    pytest.importorskip(library)
    asked = []

    class Module:
        @staticmethod
        def load(path):
            return f"model in {path.name}"

    monkeypatch.setattr(
        model_files.registry, "exporter_for", lambda name: asked.append(name) or Module
    )
    for suffix, save in trained(library, *friedman).items():
        path = tmp_path / f"model.{suffix}"
        save(str(path))
        assert model_files.load(path) == f"model in model.{suffix}"
        if suffix == "json":
            # However it is laid out, the first key tells.
            text = path.read_text()
            for layout in ({"indent": 1}, {"indent": None}, {"sort_keys": True}):
                path.write_text("\n  " + json.dumps(json.loads(text), **layout))
                assert model_files.load(path) == "model in model.json"
    assert set(asked) == {library}


def without(monkeypatch, *hidden):
    """Make it look as if some modules were not installed."""
    original = builtins.__import__

    def look(name, *args, **kwargs):
        if name.partition(".")[0] in hidden:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name.partition(".")[0])
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", look)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_that_is_missing_is_named(library, tmp_path, monkeypatch):
    contents = {
        "xgboost": ("model.json", '{"learner": {}}'),
        "lightgbm": ("model.txt", "tree\nversion=v4\n"),
        "catboost": ("model.json", '{"model_info": {}}'),
    }
    name, text = contents[library]
    (tmp_path / name).write_text(text)

    def missing(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(model_files.registry, "exporter_for", missing)
    with pytest.raises(ModuleNotFoundError, match=f"pip install {library}$"):
        fp.Forest.from_file(tmp_path / name)


def test_skops_that_is_missing_is_named(tmp_path, monkeypatch):
    (tmp_path / "model.skops").write_bytes(b"PK...")
    without(monkeypatch, "skops")
    with pytest.raises(ModuleNotFoundError, match=r"skops.*pip install skops$"):
        model_files.load(tmp_path / "model.skops")


def test_a_module_that_a_pickle_needs_is_named(tmp_path):
    (tmp_path / "woods.py").write_text("class Model: pass")
    script = "import woods, pickle; pickle.dump(woods.Model(), open('model.pkl', 'wb'))"
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    with pytest.raises(ModuleNotFoundError, match=r"model\.pkl needs the module woods, which is"):
        model_files.load(tmp_path / "model.pkl", trust=True)


# Saving


@pytest.mark.parametrize("suffix", ["joblib", "pkl", "pickle", "skops"])
@pytest.mark.parametrize("name", ["forest", "histograms"])
def test_models_of_scikit_learn_are_saved(suffix, name, models, friedman, tmp_path):
    if suffix == "skops":
        pytest.importorskip("skops")
    path = tmp_path / f"model.{suffix}"
    registry.save_model(models[name], path)
    assert list(tmp_path.iterdir()) == [path]
    if suffix in ("pkl", "pickle"):
        loaded = pickle.loads(path.read_bytes())
    else:
        loaded = model_files.load(path, trust=True)
    assert type(loaded) is type(models[name])
    np.testing.assert_array_equal(loaded.predict(friedman[0]), models[name].predict(friedman[0]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("library", LIBRARIES)
def test_models_of_other_libraries_are_saved_as_files_of_their_own(library, friedman, tmp_path):
    pytest.importorskip(library)
    model = next(iter(trained(library, *friedman).values())).__self__
    forest = fp.Forest.from_model(model)
    for suffix in registry.file_endings(library):
        path = tmp_path / f"model{suffix}"
        registry.save_model(model, str(path))
        again = fp.Forest.from_file(path, trust=True)
        assert again.origin.library == library
        np.testing.assert_allclose(
            again.predict(friedman[0]), forest.predict(friedman[0]), rtol=1e-6
        )
    assert len(list(tmp_path.iterdir())) == len(registry.file_endings(library)) >= 4


def test_forests_are_saved_as_plain_arrays(models, tmp_path):
    forest = fp.Forest.from_model(models["boosting"])
    registry.save_model(forest, tmp_path / "forest.npz")
    assert fp.Forest.load(tmp_path / "forest.npz") == forest


@pytest.mark.parametrize(
    ("name", "ending", "possible"),
    [
        ("forest", ".json", r"\.joblib, \.pkl, \.pickle or \.skops"),
        ("forest", ".npz", r"\.joblib, \.pkl, \.pickle or \.skops"),
        ("forest", "", r"\.joblib"),
        (None, ".joblib", r"ends in \.npz; got"),
    ],
)
def test_an_ending_that_a_model_cannot_have(name, ending, possible, models, tmp_path):
    model = models[name] if name else fp.Forest.from_model(models["tree"])
    with pytest.raises(fp.UnsupportedModelError, match=possible):
        registry.save_model(model, tmp_path / f"model{ending}")
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_written_leaves_nothing_behind(models, tmp_path):
    path = tmp_path / "model.pkl"
    path.write_bytes(b"old")
    with pytest.raises((AttributeError, pickle.PicklingError)):
        registry.save_model(FunctionTransformer(lambda X: X), path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_saving_without_skops_says_what_to_install(models, tmp_path, monkeypatch):
    without(monkeypatch, "skops")
    with pytest.raises(ModuleNotFoundError, match=r"pip install skops$"):
        registry.save_model(models["tree"], tmp_path / "model.skops")


# What is no model file


def test_no_such_file_and_folders(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file .*model\.json"):
        fp.Forest.from_file(tmp_path / "model.json")
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(IsADirectoryError, match=r"folder\.json is a folder"):
        model_files.load(tmp_path / "folder.json")
    with pytest.raises(FileNotFoundError, match="no file nonsense"):
        Source.of("nonsense")


@pytest.mark.parametrize("name", ["model.onnx", "model", "model.json.gz", ".json"])
def test_unknown_suffixes(name, tmp_path):
    (tmp_path / name).write_text("{}")
    with pytest.raises(fp.UnsupportedModelError, match=r"must end in \.json, .* or \.npz; got"):
        model_files.load(tmp_path / name)


def test_a_forest_of_our_own_is_read_like_any_model(models, friedman, tmp_path):
    forest = fp.Forest.from_model(models["tree"])
    forest.save(tmp_path / "forest.npz")
    assert fp.Forest.from_file(tmp_path / "forest.npz") == forest
    assert Source.of(tmp_path / "forest.npz").forest == forest


@pytest.mark.parametrize("suffix", [suffix.removeprefix(".") for suffix in model_files._FORMATS])
@pytest.mark.parametrize("content", [b"", b"\x00\xff\x00 nonsense", b"Dear all,\n", b"PK\x03\x04"])
def test_empty_and_foreign_files(suffix, content, tmp_path):
    if suffix == "skops" and content.startswith(b"PK"):
        pytest.importorskip("skops")
    path = tmp_path / f"model.{suffix}"
    path.write_bytes(content)
    with pytest.raises(fp.ForestPruneError, match=rf"model\.{suffix}") as caught:
        model_files.load(path, trust=True)
    assert str(caught.value).endswith("is empty.") == (content == b"")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"name": "tree", "version": "v4"}', "first key is 'name'.*save_model"),
        ('[{"nodeid": 0}]', r"begins with b'\[\{.*save_model"),
        ("{}", "begins with"),
        ("{1: 2}", "begins with"),
    ],
)
def test_json_that_is_no_model(text, message, tmp_path):
    (tmp_path / "model.json").write_text(text)
    with pytest.raises(fp.UnsupportedModelError, match=message):
        model_files.load(tmp_path / "model.json")


def test_a_model_that_is_no_forest_is_refused_as_ever(friedman, tmp_path):
    joblib.dump(LinearRegression().fit(*friedman), tmp_path / "model.joblib")
    assert type(model_files.load(tmp_path / "model.joblib", trust=True)) is LinearRegression
    with pytest.raises(fp.UnsupportedModelError, match="got LinearRegression"):
        fp.Forest.from_file(tmp_path / "model.joblib", trust=True)


def test_only_the_library_of_the_file_is_imported(models, tmp_path):
    joblib.dump(models["tree"], tmp_path / "model.joblib")
    script = """
        import sys, forestprune
        forestprune.Forest.from_file("model.joblib", trust=True)
        loaded = {name.partition(".")[0] for name in sys.modules}
        assert not loaded & {"xgboost", "lightgbm", "catboost", "skops"}, loaded
    """
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=tmp_path,
        check=True,
        env=os.environ | {"PYTHONPATH": str(Path(fp.__file__).parent.parent)},
    )
