"""What a pruned model knows of itself, how it is shown, saved and loaded."""

import copy
import gc
import json
import pickle
import weakref
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_friedman1
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.metrics import (
    d2_tweedie_score,
    log_loss,
    mean_absolute_error,
    r2_score,
    root_mean_squared_error,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import forestprune as fp

X, Y = make_friedman1(300, noise=1.0, random_state=0)
X_VAL, Y_VAL = make_friedman1(200, noise=1.0, random_state=1)
FOREST = RandomForestRegressor(15, max_depth=6, random_state=0).fit(X, Y)
VALIDATION = {"X_val": X_VAL, "y_val": Y_VAL}


@pytest.fixture(scope="module")
def small():
    return fp.prune(FOREST, X, Y, max_nodes=60, n_alphas=20, **VALIDATION)


@pytest.fixture(scope="module")
def unvalidated():
    return fp.prune(FOREST, X, Y, max_nodes=60, n_alphas=20)


def test_scores_on_the_rows_it_was_chosen_by(small, unvalidated):
    found = small.validation
    for predicted, score, rmse, mae in (
        (small.predict(X_VAL), found.score, found.rmse, found.mae),
        (FOREST.predict(X_VAL), found.full_score, found.full_rmse, found.full_mae),
    ):
        assert score == pytest.approx(r2_score(Y_VAL, predicted))
        assert rmse == pytest.approx(root_mean_squared_error(Y_VAL, predicted))
        assert mae == pytest.approx(mean_absolute_error(Y_VAL, predicted))
    assert found.n_rows == len(Y_VAL)
    assert found.shortfall == found.full_score - found.score
    assert 0 < found.shortfall_error < found.standard_error
    assert unvalidated.validation is None


def test_weights_of_rows_count_in_errors():
    weights = np.random.default_rng(0).integers(0, 3, len(Y_VAL)).astype(float)
    small = fp.prune(FOREST, X, Y, max_nodes=60, sample_weight_val=weights, **VALIDATION)
    rmse = root_mean_squared_error(Y_VAL, small.predict(X_VAL), sample_weight=weights)
    assert small.validation.rmse == pytest.approx(rmse)


def test_without_a_target_no_error_is_in_its_units():
    logarithmic = HistGradientBoostingRegressor(loss="poisson", max_iter=15).fit(X, Y - Y.min())
    small = fp.prune(logarithmic, X, max_nodes=60, X_val=X_VAL)
    found = small.validation
    assert not found.of_target
    assert (found.rmse, found.full_rmse, found.mae, found.full_mae) == (None,) * 4
    assert found.full_score == pytest.approx(1.0)
    own = logarithmic.predict(X_VAL)
    assert found.name == "D squared"
    assert found.score == pytest.approx(d2_tweedie_score(own, small.predict(X_VAL), power=1))
    for shown in (repr(small), small._repr_html_()):
        assert "RMSE" not in shown
    assert "of the model's own prediction" in repr(small)


def test_the_path_has_the_model_among_its_points(small):
    assert small.path[small.index].alpha == small.alpha
    np.testing.assert_array_equal(small.path[small.index].predict(X_VAL), small.predict(X_VAL))
    assert small.full == (15, fp.Forest.from_model(FOREST).n_nodes, 6)
    alone = fp.prune(FOREST, X, Y, alpha=0.3)
    assert (len(alone.path), alone.index) == (1, 0)


def test_the_original_forest_lives_as_long_as_the_path(small):
    mine = fp.prune(FOREST, X, Y, max_nodes=60, n_alphas=5)
    forest = weakref.ref(mine.path.source.forest)
    kept = copy.copy(mine)
    gc.disable()  # no cycle keeps it alive
    try:
        assert forest() is not None
        del mine
        assert forest() is None
    finally:
        gc.enable()
    assert kept.path is None


def test_pickles_leave_the_path_behind(small):
    for again in (pickle.loads(pickle.dumps(small)), copy.deepcopy(small)):
        assert (again.path, again.index) == (None, None)
        assert again.validation == small.validation
        np.testing.assert_array_equal(again.predict(X_VAL), small.predict(X_VAL))
    assert small.path is not None


def test_what_is_shown(small, unvalidated):
    found = small.validation
    words = (
        f"validation R squared {found.score:.4f} ± {found.standard_error:.4f} (full "
        f"{found.full_score:.4f}), RMSE {found.rmse:.4g} (full {found.full_rmse:.4g}), 200 rows)"
    )
    assert repr(small).endswith(words)
    assert "validation" not in repr(unvalidated)


class Cells(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.rows, self.open = [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if tag in ("tr", "p"):
            self.rows.append([])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.rows[-1].append(data)


def test_a_table_for_notebooks(small, unvalidated):
    *rows, [note] = Cells(small._repr_html_()).rows
    table = {row[0]: row[1:] for row in rows}
    full, found = fp.Forest.from_model(FOREST), small.validation
    share = f"{100 * small.n_nodes / full.n_nodes:.3g} %"
    assert table["RandomForestRegressor"] == ["full", "pruned", "of the full model's"]
    assert table["nodes"] == [f"{full.n_nodes:,}", f"{small.n_nodes:,}", share]
    assert table["trees"][:2] == ["15", f"{small.n_trees}"]
    assert table["RMSE"] == [f"{found.full_rmse:.4g}", f"{found.rmse:.4g}"]
    assert table["R squared"][0] == f"{found.full_score:.4f}"
    assert "200 validation rows" in note
    *rows, [note] = Cells(unvalidated._repr_html_()).rows
    assert "RMSE" not in {row[0] for row in rows}
    assert "no validation rows" in note
    assert "color" not in small._repr_html_()


def test_names_in_the_table_are_escaped(small):
    from dataclasses import replace

    origin = replace(small.forest.origin, model_class="<script>alert(1)</script>")
    evil = replace(small, forest=replace(small.forest, origin=origin))
    assert "<script>" not in evil._repr_html_()


@pytest.mark.parametrize("name", ["small.json", "small.JOBLIB"])
def test_a_file_does_not_look_like_that_of_another_library(name, small, tmp_path):
    with pytest.raises(ValueError, match=r"a name that ends in \.npz, or save to_native\(\)"):
        small.save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_what_is_pruned_already_is_given_as_it_was(small):
    for call in (fp.prune, fp.polish):
        with pytest.raises(fp.UnsupportedModelError, match=r"PrunedForest: give what its to_nat"):
            call(small, X, Y)


@pytest.mark.parametrize("options", [{}, {"rule": "layer", "polish": "ridge"}], ids=str)
@pytest.mark.parametrize("validation", [{}, VALIDATION], ids=["alone", "validated"])
def test_a_saved_model_comes_back(options, validation, tmp_path):
    small = fp.prune(FOREST, X, Y, max_nodes=60, n_alphas=10, **options, **validation)
    file = tmp_path / "small.npz"
    small.save(file)
    again = fp.PrunedForest.load(file)
    assert repr(again) == repr(small)
    assert again._repr_html_() == small._repr_html_()
    assert again.forest == small.forest
    assert again.validation == small.validation
    assert again.report == small.report
    assert again.full == small.full
    # Pickle stores strings once if they are one object, which those of a file are not.
    assert again.n_bytes == pytest.approx(small.n_bytes, rel=0.01)
    assert again.to_text() == small.to_text()
    np.testing.assert_array_equal(again.tree_numbers, small.tree_numbers)
    np.testing.assert_array_equal(again.weights, small.weights)
    np.testing.assert_array_equal(again.predict(X_VAL), small.predict(X_VAL))
    np.testing.assert_array_equal(
        again.to_native().predict(X_VAL), small.to_native().predict(X_VAL)
    )
    assert again.path is None


def test_the_file_of_a_small_model_is_small(tmp_path):
    large = RandomForestRegressor(100, random_state=0).fit(X, Y)
    small = fp.prune(large, X, Y, max_nodes=60, n_alphas=10)
    small.save(tmp_path / "small.npz")
    small.save(tmp_path / "path.npz", with_path=True)
    size, with_path = ((tmp_path / f"{name}.npz").stat().st_size for name in ("small", "path"))
    assert size < 20_000 < 20 * size < with_path


def test_a_model_can_take_its_path_along(small, tmp_path):
    file = tmp_path / "small.npz"
    small.save(file, with_path=True)
    again = fp.PrunedForest.load(file)
    assert repr(again) == repr(small)
    assert again.index == small.index
    np.testing.assert_array_equal(again.path.n_nodes, small.path.n_nodes)
    assert len(fp.PruningPath.load(file)) == len(small.path)
    again.save(file)
    with pytest.raises(ValueError, match="loaded or copied without it"):
        fp.PrunedForest.load(file).save(file, with_path=True)


def test_a_constant_can_be_saved(tmp_path):
    with pytest.warns(UserWarning, match="no tree is left"):
        small = fp.prune(FOREST, X, Y, tolerance=5.0, n_alphas=5, **VALIDATION)
    small.save(tmp_path / "small.npz")
    again = fp.PrunedForest.load(tmp_path / "small.npz")
    np.testing.assert_array_equal(again.predict(X_VAL), small.predict(X_VAL))


def test_the_format_of_bytes_is_kept(tmp_path):
    small = fp.prune(FOREST, X, Y, max_nodes=60, n_alphas=5, format="npz")
    small.save(tmp_path / "small.npz")
    assert fp.PrunedForest.load(tmp_path / "small.npz").n_bytes == small.n_bytes
    small.save(tmp_path / "path.npz", with_path=True)
    assert fp.PrunedForest.load(tmp_path / "path.npz").n_bytes == small.n_bytes


def test_a_pipeline_is_not_saved(tmp_path):
    pipeline = make_pipeline(StandardScaler(), GradientBoostingRegressor(n_estimators=5)).fit(X, Y)
    small = fp.prune(pipeline, X, Y, max_nodes=20, n_alphas=5)
    for with_path in (False, True):
        with pytest.raises(TypeError, match=r"can only be pickled.*joblib"):
            small.save(tmp_path / "small.npz", with_path=with_path)
    assert not list(tmp_path.iterdir())


def changed(file, arrays=None, **metadata):
    """Write a file again with other contents."""
    with np.load(file) as archive:
        contents = dict(archive)
    about = json.loads(contents["metadata"].tobytes()) | metadata
    contents["metadata"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
    contents |= arrays or {}
    np.savez(file, **contents)


NUMBERS = {"alpha": 1.0, "objective": 1.0, "loss": 0.5}


@pytest.mark.parametrize(
    "change",
    [
        {"arrays": {"depths": np.zeros(3, np.int64)}},
        {"arrays": {"depths": np.full(15, -1)}},
        {"arrays": {"depths": np.ones((15, 15), np.int64)}},
        {"arrays": {"depths": np.full(15, 0.5)}},
        {"arrays": {"weights": np.full(15, np.nan)}},
        {"arrays": {"weights": np.zeros(15)}},
        {"arrays": {"weights": np.array(["a"] * 15)}},
        {"arrays": {"forest/left": np.full(3, 10**6, np.int32)}},
        {"arrays": {"forest/nothing/more": np.zeros(3)}},
        {"pruned": NUMBERS | {"alpha": float("nan")}},
        {"pruned": NUMBERS | {"loss": "small"}},
        {"pruned": {}},
        {"pruned": None},
        {"n_iter": -1},
        {"n_iter": True},
        {"report": []},
        {"ending": ".exe"},
        {"ending": "../../etc/passwd"},
        {"full": [1, 2]},
        {"full": [15, 3, 3]},
        {"full": None},
        {"validation": {}},
        {"validation": []},
        {"forest": {}},
    ],
    ids=str,
)
def test_damaged_files_are_refused(small, tmp_path, change):
    file = tmp_path / "small.npz"
    small.save(file)
    changed(file)
    fp.PrunedForest.load(file)
    changed(file, **change)
    with pytest.raises(fp.InvalidForestError, match="does not hold a pruned model"):
        fp.PrunedForest.load(file)


@pytest.mark.parametrize("name", ["score", "n_rows", "standard_error"])
@pytest.mark.parametrize("value", [None, "0.5", float("inf"), [0.5]], ids=str)
def test_damaged_scores_are_refused(small, tmp_path, name, value):
    from dataclasses import asdict

    file = tmp_path / "small.npz"
    small.save(file)
    changed(file, validation=asdict(small.validation) | {name: value})
    with pytest.raises(fp.InvalidForestError, match="does not hold a pruned model"):
        fp.PrunedForest.load(file)


@pytest.mark.parametrize(
    "change",
    [
        {"metrics": {"rmse": None}},
        {"metrics": {"rmse": float("inf"), "mae": 1.0}},
        {"metrics": {"rmse": 1.0}},
        {"full_metrics": {}},
        {"name": 1},
    ],
    ids=str,
)
def test_damaged_figures_are_refused(small, tmp_path, change):
    from dataclasses import asdict

    file = tmp_path / "small.npz"
    small.save(file)
    changed(file, validation=asdict(small.validation) | change)
    with pytest.raises(fp.InvalidForestError, match="does not hold a pruned model"):
        fp.PrunedForest.load(file)


@pytest.mark.parametrize("index", [-1, 10**6, "0", 1.0, True])
def test_a_place_beyond_the_path_is_refused(small, tmp_path, index):
    file = tmp_path / "small.npz"
    small.save(file, with_path=True)
    changed(file, index=index)
    with pytest.raises(fp.InvalidForestError, match="there is no point"):
        fp.PrunedForest.load(file)


def test_other_files_are_no_pruned_models(small, tmp_path):
    file = tmp_path / "other.npz"
    small.path.save(file)
    with pytest.raises(
        fp.InvalidForestError, match=r"a whole path: read it with PruningPath\.load"
    ):
        fp.PrunedForest.load(file)
    small.forest.save(file)
    with pytest.raises(fp.InvalidForestError, match="no pruned model"):
        fp.PrunedForest.load(file)
    small.save(file)
    with pytest.raises(fp.InvalidForestError, match="does not hold a pruning path"):
        fp.PruningPath.load(file)
    file.write_bytes(b"{L")
    with pytest.raises(fp.InvalidForestError, match=r"by forestprune \(it is no npz archive\)"):
        fp.PrunedForest.load(file)
    np.savez(file, metadata=np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(fp.InvalidForestError, match="not a file written by forestprune"):
        fp.PrunedForest.load(file)


@pytest.mark.parametrize(("n_classes", "scoring"), [(2, None), (3, "accuracy")])
def test_a_classifier_tells_its_figures(n_classes, scoring):
    X, y = make_classification(
        300, 5, n_informative=4, n_redundant=0, n_classes=n_classes, random_state=0
    )
    model = GradientBoostingClassifier(n_estimators=5, random_state=0).fit(X[:200], y[:200])
    rows = {"X_val": X[200:], "y_val": y[200:]}
    small = fp.prune(model, X[:200], y[:200], max_nodes=30, scoring=scoring, **rows)
    right = np.mean(small.predict(X[200:]) == y[200:])
    full = log_loss(y[200:], model.predict_proba(X[200:]))
    score = "D squared" if scoring is None else scoring
    for shown in (repr(small), small._repr_html_()):
        assert score in shown
        assert "RMSE" not in shown
        assert f"{full:.4g}" in shown
        assert f"{right:.4g}" in shown
    assert f"validation {score} {small.validation.score:.4f} ± " in repr(small)
    # What was chosen by is not told twice.
    assert repr(small).count("accuracy") == 1
    assert ">AUC</th>" in small._repr_html_()
