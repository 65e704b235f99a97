"""polish="split" and fp.polish, as users call them: what comes, and what is refused, and why."""

import numpy as np
import pytest
from catboost import CatBoostRegressor
from lightgbm import LGBMRegressor
from resplit import FOREST, HELD_OUT, X_TEST, Y_TEST, X, Y, polished
from sklearn.ensemble import (
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from xgboost import XGBRegressor

import forestprune as fp
from forestprune.exceptions import OptionError, UnsupportedModelError

CLASSES = np.digitize(Y, [-0.5, 0.5])
QUIET = {"verbose": 0, "allow_writing_files": False, "thread_count": 1}


@pytest.mark.parametrize(
    "asked",
    [
        {"max_nodes": None, "alpha": 1.0},
        {"max_nodes": None, "max_trees": 3},
        {"max_nodes": None, "max_bytes": 12_000},
        {"max_depth": 2},
        {"rule": "layer"},
        {"rule": "layer", "joint": "ridge"},
        {"rule": "layer", "weighting": "depth", "local_search": "random", "random_state": 0},
        {"refit": False},
        {"shrinkage": 50.0},
        HELD_OUT,
        {"max_nodes": None, "tolerance": 0.0, **HELD_OUT},
        {"max_nodes": None, "one_standard_error": True, **HELD_OUT},
        {"scoring": "neg_mean_absolute_error", **HELD_OUT},
        {"sample_weight": (np.arange(400) % 2).astype(float)},
    ],
    ids=lambda asked: ", ".join(asked),
)
def test_it_keeps_to_what_is_asked_for(asked):
    small = polished(**asked)
    native = small.to_native()
    np.testing.assert_allclose(native.predict(X_TEST), small.predict(X_TEST))
    assert small.n_nodes <= (asked.get("max_nodes", 30) or 10_000)
    assert small.n_trees <= asked.get("max_trees", 10)
    assert small.max_depth <= asked.get("max_depth", 20)
    assert small.n_bytes <= asked.get("max_bytes", 10**9)


def test_it_is_better_where_the_splits_were_the_limit():
    pruned = fp.prune(FOREST, X, Y, max_nodes=30, **HELD_OUT)
    small = polished(**HELD_OUT)
    assert small.n_new_splits > 0
    scores = [each.to_native().score(X_TEST, Y_TEST) for each in (pruned, small)]
    assert scores[1] > scores[0] + 0.1


def test_noise_is_not_learnt():
    rng = np.random.default_rng(0)
    y, y_val = (rng.normal(size=len(rows)) + 0.2 * rows[:, 0] for rows in (X, HELD_OUT["X_val"]))
    model = RandomForestRegressor(10, max_depth=5, random_state=0).fit(X, y)
    small = fp.prune(model, X, y, polish="split", X_val=HELD_OUT["X_val"], y_val=y_val)
    assert small.n_new_splits < 50  # far from what all of them could be
    assert small.validation.score > -0.1


@pytest.mark.parametrize("shift", [0.0, 1000.0])
def test_where_the_target_lies_changes_nothing(shift):
    model = RandomForestRegressor(10, max_depth=3, random_state=0).fit(X, Y + shift)
    better = fp.polish(model, X, Y + shift)
    assert better.n_nodes <= better.full.n_nodes
    assert better.to_native().score(X_TEST, Y_TEST + shift) > model.score(X_TEST, Y_TEST + shift)


@pytest.mark.parametrize("rows", [400, 45])
def test_leaves_of_averaged_classes_stay_distributions(rows):
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X[:rows], CLASSES[:rows])
    for small in (
        fp.polish(model, X[:rows], CLASSES[:rows]),
        fp.prune(model, X[:rows], CLASSES[:rows], max_nodes=30, polish="split"),
    ):
        found = small.to_native().predict_proba(X_TEST)
        np.testing.assert_allclose(found, small.predict_proba(X_TEST), atol=1e-9)
        np.testing.assert_allclose(found.sum(axis=1), 1.0)
        assert (found >= 0.0).all()


def test_a_model_may_stay_as_it_was():
    native = polished(max_nodes=15).to_native()
    path = fp.polish(native, X, Y, shrinkage=1e6, **HELD_OUT).path
    assert path.n_nodes[-1] == fp.Forest.from_model(native).n_nodes
    taken = fp.polish(native, X, Y, shrinkage=1e6, **HELD_OUT)
    assert taken.n_new_splits == 0
    np.testing.assert_allclose(taken.predict(X), native.predict(X))


def test_monotone_constraints_hold():
    model = XGBRegressor(
        n_estimators=10, max_depth=4, monotone_constraints=(1, 0, 0, 0, 0), n_jobs=1
    ).fit(X, Y)
    small = fp.prune(model, X, Y, max_nodes=40, polish="split")
    assert small.n_new_splits > 0
    lines = np.repeat(X_TEST[:20, np.newaxis], 40, axis=1)
    lines[:, :, 0] = np.linspace(-3, 3, 40)
    found = small.to_native().predict(lines.reshape(-1, 5)).reshape(20, 40)
    assert (np.diff(found, axis=1) >= -1e-6).all()


@pytest.mark.parametrize("count", [1, 2, 7, 39])
def test_few_rows_are_few_but_enough(count):
    for small in (polished(), fp.polish(FOREST, X[:count], Y[:count])):
        assert np.isfinite(small.to_native().predict(X_TEST)).all()
    small = fp.prune(FOREST, X[:count], Y[:count], max_nodes=30, polish="split")
    assert np.isfinite(small.to_native().predict(X_TEST)).all()


def test_rows_that_tell_nothing_apart():
    same = np.ones_like(X)
    with pytest.warns(UserWarning, match="Only a constant"):
        small = fp.prune(FOREST, same, Y, max_nodes=30, polish="split")
    assert small.n_new_splits == 0
    assert fp.polish(FOREST, same, Y).n_new_splits == 0


def test_gaps_in_rows():
    gaps = X.copy()
    gaps[:, 3] = np.nan
    gaps[::5, 0] = np.nan
    model = XGBRegressor(n_estimators=10, n_jobs=1).fit(gaps, Y)
    small = fp.prune(model, gaps, Y, max_nodes=40, polish="split")
    np.testing.assert_allclose(small.to_native().predict(gaps), small.predict(gaps), atol=1e-5)


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeRegressor(max_depth=1),
        HistGradientBoostingRegressor(max_iter=1, max_leaf_nodes=2),
        XGBRegressor(n_estimators=1, max_depth=1, n_jobs=1),
        LGBMRegressor(n_estimators=1, num_leaves=2, verbose=-1),
        CatBoostRegressor(iterations=1, depth=1, grow_policy="Depthwise", nan_mode="Min", **QUIET),
        CatBoostRegressor(iterations=1, depth=1, grow_policy="Depthwise", nan_mode="Max", **QUIET),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_new_split_may_ask_for_what_is_missing_alone(model):
    rng = np.random.default_rng(0)
    gaps = rng.random(400) < 0.4
    rows = np.column_stack([np.where(gaps, np.nan, rng.integers(0, 2, 400)), X[:, 0]])
    y = 2.0 * gaps
    model.fit(rows, X[:, 0])  # asks for the other column
    small = fp.polish(model, rows, y, shrinkage=0.0)
    native = small.to_native()
    np.testing.assert_allclose(native.predict(rows), y, atol=1e-5)
    np.testing.assert_allclose(native.predict(rows), small.predict(rows), atol=1e-5)


@pytest.mark.parametrize("only", [np.nan, 1.0])
@pytest.mark.parametrize("asked", [{}, {"shrinkage": 30.0}, HELD_OUT], ids=lambda asked: len(asked))
def test_columns_without_two_numbers_in_rows_that_prune(only, asked):
    rows = X.copy()
    rows[:, 1] = only  # the model splits on it, and the first model that is polished may not
    for model in (FOREST, XGBRegressor(n_estimators=10, n_jobs=1).fit(X, Y)):
        small = fp.prune(model, rows, Y, max_nodes=30, polish="split", **asked)
        assert small.n_nodes <= 30
        native = small.to_native()
        np.testing.assert_allclose(native.predict(X_TEST), small.predict(X_TEST), atol=1e-5)


def test_pipelines_and_models_own_predictions():
    pipeline = make_pipeline(StandardScaler(), RandomForestRegressor(5, max_depth=4)).fit(X, Y)
    small = fp.prune(pipeline, X, Y, max_nodes=30, polish="split")
    np.testing.assert_allclose(small.to_native().predict(X_TEST), small.predict(X_TEST))
    assert fp.prune(FOREST, X, max_nodes=30, polish="split").n_nodes <= 30
    assert fp.polish(FOREST, X).n_nodes <= fp.Forest.from_model(FOREST).n_nodes


@pytest.mark.parametrize(
    ("asked", "match"),
    [
        ({"joint": "ridge"}, "needs rule='layer'"),
        ({"weighting": np.ones(400)}, "splits that are chosen anew make others"),
        ({"scoring": "r2"}, "scoring needs validation rows"),
        ({"shrinkage": [1, 2]}, "needs validation rows"),
        ({"max_depth": 0}, "max_depth must be"),
        ({"tolerance": 0.1}, "need validation rows"),
    ],
)
def test_what_cannot_be_is_refused(asked, match):
    with pytest.raises(OptionError, match=match):
        polished(**asked)


def test_symmetric_trees_are_refused_unless_they_need_not_stay_so():
    model = CatBoostRegressor(
        iterations=10, depth=3, verbose=0, thread_count=1, allow_writing_files=False
    ).fit(X, Y)
    for call in (
        lambda: fp.prune(model, X, Y, max_nodes=30, polish="split"),
        lambda: fp.polish(model, X, Y),
    ):
        with pytest.raises(UnsupportedModelError, match="rule='subtree'"):
            call()
    small = fp.prune(model, X, Y, max_nodes=30, rule="subtree", polish="split")
    np.testing.assert_allclose(small.to_native().predict(X), small.predict(X), atol=1e-5)


def test_other_columns_are_refused():
    with pytest.raises(ValueError, match="X has 3 columns, but the model was trained on 5"):
        fp.polish(FOREST, X[:, :3], Y)
