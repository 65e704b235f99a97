"""CatBoost in and out: the library's own raw predictions are the truth."""

import json
import pickle
import re
from dataclasses import asdict, replace

import joblib
import naive
import numpy as np
import pandas as pd
import polars as pl
import pytest
from effort import INTERPRETED, examples
from exported import predicts_alone
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from monotone import turns
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from strategies import NUMBERS, probing_rows, training_sets

import forestprune as fp
from forestprune.forest.origin import origin_from_metadata

catboost = pytest.importorskip("catboost")

from catboost import CatBoost, CatBoostRegressor, Pool  # noqa: E402

from forestprune.interop import catboost as interop  # noqa: E402
from forestprune.interop import catboost_trees  # noqa: E402

VERSION = tuple(int(part) for part in catboost.__version__.split(".")[:3])
TAKES_POLARS = VERSION >= (1, 2, 9)

compiled_only = pytest.mark.skipif(INTERPRETED, reason="too many rows to go through interpreted")

QUIET = {
    "thread_count": 1,
    "allow_writing_files": False,
    "logging_level": "Silent",
    "allow_const_label": True,
}
KINDS = {
    "symmetric": {},
    "symmetric, NaN above all": {"nan_mode": "Max", "depth": 3},
    "depthwise": {"grow_policy": "Depthwise", "depth": 3},
    "depthwise, NaN above all": {"grow_policy": "Depthwise", "nan_mode": "Max", "depth": 4},
    "lossguide": {"grow_policy": "Lossguide", "max_leaves": 6},
}


def regressor(kind="symmetric", **params):
    return CatBoostRegressor(**{"iterations": 4, **QUIET, **KINDS[kind], **params})


def raw(model, X):
    return model.predict(X, prediction_type="RawFormulaVal", thread_count=1)


def same(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


def snapshot(model):
    return pickle.dumps(model)


def document(model, tmp_path):
    model.save_model(str(tmp_path / "written.json"), format="json")
    return json.loads((tmp_path / "written.json").read_text())


def edited(model, tmp_path, edit):
    """Return the model after `edit` has changed its JSON."""
    text = document(model, tmp_path)
    edit(text)
    (tmp_path / "edited.json").write_text(json.dumps(text))
    return type(model)().load_model(str(tmp_path / "edited.json"), format="json")


def shapes(model, tmp_path):
    """Return the number of nodes of each tree that the library has written."""

    def count(node):
        return 1 + (count(node["left"]) + count(node["right"]) if "split" in node else 0)

    text = document(model, tmp_path)
    sizes = [2 * len(tree["leaf_values"]) - 1 for tree in text.get("oblivious_trees", [])]
    return sizes + [count(root) for root in text.get("trees", [])]


@st.composite
def fitted(draw, kind):
    """Draw a training set and fit a model of the given kind to it."""
    X, y, weight = draw(training_sets(missing=True))
    # CatBoost needs a column of which it sees two numbers.
    assume(any(np.unique(np.float32(column[~np.isnan(column)])).size > 1 for column in X.T))
    model = regressor(kind, random_seed=draw(st.integers(0, 100)))
    return model.fit(X, y, sample_weight=weight), X


@st.composite
def descendants(draw, forest):
    """Draw rooted subtrees of the forest's trees, other values, weights and another constant."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    share = draw(st.sampled_from([0.0, 0.5, 0.8, 1.0]))
    mask = np.zeros(forest.n_nodes, bool)
    mask[forest.offsets[:-1]] = True
    starts = np.repeat(forest.offsets[:-1], np.diff(forest.offsets))
    for v in np.flatnonzero(forest.left >= 0):
        a = starts[v] + forest.left[v]
        mask[a : a + 2] = mask[v] and rng.random() < share
    kept = forest.keep(mask)
    if draw(st.booleans()):
        kept = replace(kept, value=rng.normal(size=kept.value.shape))
    return replace(kept, scale=rng.normal(size=kept.n_trees), base=rng.normal(size=1))


def extremes(forest, X):
    """Return rows on and beside all thresholds, and rows with what else a float can be."""
    between = []
    for v in np.flatnonzero(forest.left >= 0):  # numbers that float32 takes to be the threshold
        for direction in (-np.inf, np.inf):
            row = X[v % len(X)].copy()
            row[forest.feature[v]] = np.nextafter(forest.threshold[v], direction)
            between.append(row)
    rows = np.concatenate([probing_rows(forest, X), np.reshape(between, (-1, X.shape[1]))])
    limits = [np.nan, np.inf, -np.inf, np.finfo("f4").max, np.finfo("f4").min, 1e300, -1e300]
    more = np.repeat(X[:1], len(limits) * X.shape[1], axis=0)
    for j in range(X.shape[1]):
        more[j * len(limits) : (j + 1) * len(limits), j] = limits
    return np.concatenate([rows, more])


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8 if INTERPRETED else examples(25))
@given(data=st.data())
def test_in_and_out_predict_what_the_library_does(kind, data):
    model, X = data.draw(fitted(kind))
    before = snapshot(model)
    forest = fp.Forest.from_model(model)
    native = forest.to_native()
    rows = extremes(forest, X)
    same(forest.predict(rows), raw(model, rows))
    assert type(native) is CatBoostRegressor
    same(raw(native, rows), raw(model, rows))
    assert snapshot(model) == before
    assert forest.n_trees == model.tree_count_
    if forest.depths.all():
        again = fp.Forest.from_model(native)
        for name in ("left", "feature", "threshold", "missing_left", "cover"):
            np.testing.assert_array_equal(getattr(again, name), getattr(forest, name))
        # CatBoost may read a number one unit in the last place off.
        leaves = forest.left < 0
        np.testing.assert_allclose(again.value[leaves], forest.value[leaves], rtol=1e-15)


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8 if INTERPRETED else examples(25))
@given(data=st.data())
def test_whatever_is_left_predicts_the_same_outside(kind, data, tmp_path_factory):
    model, X = data.draw(fitted(kind))
    forest = fp.Forest.from_model(model)
    pruned = data.draw(descendants(forest))
    native = pruned.to_native()
    rows = extremes(forest, X)
    same(raw(native, rows), pruned.predict(rows))
    same(fp.Forest.from_model(native).predict(rows), pruned.predict(rows))
    compact = pruned.compact()
    folder = tmp_path_factory.mktemp("shapes", numbered=True)
    assert shapes(native, folder) == (np.diff(compact.offsets).tolist() or [1])


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8 if INTERPRETED else examples(20))
@given(data=st.data())
def test_splits_get_their_values_from_their_leaves(kind, data):
    model, _ = data.draw(fitted(kind))
    forest = fp.Forest.from_model(model)
    order = [n for root in naive.from_forest(forest) for n in naive.level_order(root)]
    same(forest.value, [naive.average_of_leaves(node)[0] for node in order])
    for node in order:
        if not node.is_leaf:
            same(node.cover, node.left.cover + node.right.cover)
    leaves = forest.left < 0
    same(np.sort(forest.value[leaves, 0]), np.sort(model.get_leaf_values()))
    same(np.sort(forest.cover[leaves]), np.sort(model.get_leaf_weights()))


@pytest.fixture(scope="module")
def friedman():
    X, y = make_friedman1(200, n_features=6, random_state=0)
    return pd.DataFrame(X, columns=[f"x{i}" for i in range(6)]), y


@compiled_only
@pytest.mark.parametrize("how", [{}, {"polish": "ridge"}, {"polish": "leaf"}, {"refit": False}])
def test_what_is_left_of_symmetric_trees_can_do_what_these_can(how, friedman, tmp_path):
    X, y = friedman
    model = regressor(iterations=30, depth=4).fit(X, y)
    small = fp.prune(model, X, y, max_nodes=100, n_jobs=1, **how)
    native = small.to_native()
    assert "oblivious_trees" in document(native, tmp_path)
    expected = small.predict(X)
    # Trained on: it begins where the pruned model ends, and goes on from there.
    more = regressor(iterations=15, learning_rate=0.1).fit(X, y, init_model=native)
    assert more.tree_count_ == small.n_trees + 15
    same(more.predict(X, ntree_end=small.n_trees), expected)
    assert np.mean((more.predict(X) - y) ** 2) < np.mean((expected - y) ** 2)
    shap = native.get_feature_importance(Pool(X), type="ShapValues", thread_count=1)
    same(shap.sum(axis=1), expected)
    native.save_model(str(tmp_path / "model.onnx"), format="onnx")
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(tmp_path / "model.onnx")
    rows = {session.get_inputs()[0].name: X.to_numpy(dtype=np.float32)}
    np.testing.assert_allclose(session.run(None, rows)[0].ravel(), expected, rtol=1e-4)


def test_parts_of_symmetric_trees_are_kept_on_request(friedman, tmp_path):
    X, y = friedman
    model = regressor(iterations=20, depth=4).fit(X, y)
    native = fp.prune(model, X, y, max_nodes=60, rule="subtree", n_jobs=1).to_native()
    assert "trees" in document(native, tmp_path)
    with pytest.raises(catboost.CatBoostError, match="non symmetric"):
        native.save_model(str(tmp_path / "model.onnx"), format="onnx")


@compiled_only
@pytest.mark.parametrize("rule", [None, "subtree", "layer"])
@pytest.mark.parametrize("kind", KINDS)
def test_pruning_ends_in_a_smaller_model(kind, rule, friedman, tmp_path):
    X, y = friedman
    model = regressor(kind, iterations=30).fit(X, y)
    small = fp.prune(model, X, y, max_nodes=60, rule=rule, n_jobs=1)
    native = small.to_native()
    same(raw(native, X), small.predict(X))
    assert 1 < sum(shapes(native, tmp_path)) == small.n_nodes <= 60
    assert native.tree_count_ == small.n_trees < 30
    for form in ("cbm", "json"):
        sizes = []
        for name, m in (("large", model), ("small", native)):
            m.save_model(str(tmp_path / name), format=form)
            sizes.append((tmp_path / name).stat().st_size)
            loaded = CatBoostRegressor().load_model(str(tmp_path / name), format=form)
            same(raw(loaded, X), raw(m, X))
        assert sizes[1] < 0.8 * sizes[0]
    assert len(pickle.dumps(native)) < 0.8 * len(pickle.dumps(model))


def test_symmetric_trees_stay_symmetric_if_whole_layers_go(friedman, tmp_path):
    model = regressor(iterations=5).fit(*friedman)
    forest = fp.Forest.from_model(model)
    layers = forest.truncate([6, 3, 0, 1, 2])
    assert "oblivious_trees" in document(layers.to_native(), tmp_path)
    mask = np.ones(forest.n_nodes, bool)
    mask[-2:] = False
    assert "trees" in document(forest.keep(mask).to_native(), tmp_path)
    assert "oblivious_trees" in document(forest.truncate(0).to_native(), tmp_path)
    # What was not stays what it was, so that it can be trained on as before.
    forest = fp.Forest.from_model(regressor("depthwise").fit(*friedman))
    for depth in (0, 1):
        assert "trees" in document(forest.truncate(depth).to_native(), tmp_path)


def test_the_same_depth_with_other_splits_is_not_symmetric(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    model = regressor("depthwise", depth=2, iterations=1).fit(
        X, np.where(X[:, 0] > 0, X[:, 1], X[:, 2])
    )
    forest = fp.Forest.from_model(model)
    assert forest.n_nodes == 7
    forged = dict(forest.origin.state) | {"symmetric": True}
    native = replace(forest, origin=replace(forest.origin, state=forged)).to_native()
    assert "trees" in document(native, tmp_path)
    same(raw(native, X), raw(model, X))


@pytest.mark.parametrize("cls", [CatBoostRegressor, CatBoost])
@pytest.mark.parametrize("kind", KINDS)
def test_the_pruned_model_is_a_proper_estimator(kind, cls, friedman, tmp_path):
    X, y = friedman
    params = {**QUIET, **KINDS[kind], "iterations": 6, "learning_rate": 0.2, "random_seed": 5}
    model = cls(params) if cls is CatBoost else cls(**params)
    model.fit(X, y, eval_set=(X, y))
    forest = fp.Forest.from_model(model).truncate([2, 3, 0, 1, 2, 0])
    native = forest.to_native()
    assert type(native) is cls
    assert native.is_fitted()
    assert native.tree_count_ == 4
    assert vars(native).keys() == vars(model).keys()
    for name in ("feature_names_", "n_features_in_", "learning_rate_", "random_seed_"):
        assert getattr(native, name) == getattr(model, name)
    assert native.get_params() == model.get_params()
    assert native.get_param("iterations") == 6
    assert native.get_all_params() == model.get_all_params()
    # What only training could tell is not claimed.
    assert model.best_iteration_ is not None
    assert native.best_iteration_ is None
    assert native.best_score_ == native.evals_result_ == {}
    np.testing.assert_allclose(native.feature_importances_.sum(), 100.0)
    assert set(native.get_borders()) == set(range(6))
    same(native.get_leaf_weights().sum(), 4 * len(X))

    rows = X.to_numpy()
    expected = forest.predict(X)
    for table in (X, rows, Pool(X), Pool(rows), *([pl.DataFrame(X)] if TAKES_POLARS else [])):
        same(native.predict(table), expected)
    same(forest.predict(pl.DataFrame(X)), expected)
    shap = native.get_feature_importance(Pool(X), type="ShapValues", thread_count=1)
    same(shap.sum(axis=1), expected)
    copies = [native.copy(), pickle.loads(pickle.dumps(native))]
    joblib.dump(native, tmp_path / "native.joblib")
    copies.append(joblib.load(tmp_path / "native.joblib"))
    for again in copies:
        assert again.get_params() == model.get_params()
        same(again.predict(rows), expected)
    if cls is CatBoostRegressor:
        fresh = clone(native)
        assert not fresh.is_fitted()
        assert fresh.get_params() == model.get_params()
        same(fresh.fit(X, y).predict(X), model.copy().predict(X))


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_but_the_constant(kind, friedman):
    X, y = friedman
    model = regressor(kind).fit(X, y)
    for forest in (
        fp.Forest.from_model(model).truncate(0),
        fp.Forest.from_model(model).truncate(0).compact(),
    ):
        native = forest.to_native()
        assert native.tree_count_ == 1
        assert native.get_leaf_weights() == (len(X) if forest.n_trees else 1)
        same(native.predict(X), np.full(len(X), forest.predict(X)[0]))
        np.testing.assert_array_equal(native.feature_importances_, np.zeros(6))
        assert not any(native.get_borders().values())
        same(pickle.loads(pickle.dumps(native)).predict(X), native.predict(X))


@pytest.mark.parametrize("kind", ["symmetric", "depthwise"])
def test_only_borders_that_are_asked_about_stay(kind, friedman):
    model = regressor(kind, iterations=10).fit(*friedman)
    forest = fp.Forest.from_model(model).truncate(1)
    native = forest.to_native()
    for column, borders in native.get_borders().items():
        asked = forest.threshold[(forest.left >= 0) & (forest.feature == column)]
        np.testing.assert_array_equal(borders, np.unique(asked))


@pytest.mark.parametrize("kind", ["symmetric", "depthwise"])
def test_training_can_go_on_from_the_pruned_model(kind, friedman):
    X, y = friedman
    native = fp.Forest.from_model(regressor(kind).fit(X, y)).truncate(2).to_native()
    longer = regressor(kind, iterations=3).fit(X, y, init_model=native)
    assert longer.tree_count_ == 7
    assert np.mean((longer.predict(X) - y) ** 2) < np.mean((native.predict(X) - y) ** 2)


def test_an_early_stopped_model_has_only_the_trees_that_predict(friedman):
    X, y = friedman
    rng = np.random.default_rng(0)
    model = regressor(iterations=200, learning_rate=0.9)
    model.fit(
        X[:50],
        y[:50] + 3 * rng.normal(size=50),
        eval_set=(X[100:], y[100:]),
        early_stopping_rounds=3,
    )
    assert model.tree_count_ == model.best_iteration_ + 1 < 100
    forest = fp.Forest.from_model(model)
    assert forest.n_trees == model.tree_count_
    same(forest.predict(X), model.predict(X))
    native = forest.to_native()
    assert native.tree_count_ == model.tree_count_
    assert native.get_params() == model.get_params()


class Stubborn(CatBoostRegressor):
    def predict(self, X):
        return super().predict(X) + 1


def test_subclasses_are_refused(friedman):
    model = Stubborn(iterations=1, **QUIET).fit(*friedman)
    message = "got Stubborn. It is a subclass of CatBoostRegressor"
    with pytest.raises(fp.UnsupportedModelError, match=message):
        fp.Forest.from_model(model)


def test_what_is_no_model_is_refused(friedman):
    X, y = friedman
    with pytest.raises(
        fp.UnsupportedModelError,
        match="CatBoostClassifier, CatBoostRanker or CatBoost is required, got Pool",
    ):
        fp.Forest.from_model(Pool(X, y))
    for model in (regressor(), CatBoost()):
        with pytest.raises(NotFittedError, match=f"This {type(model).__name__} is not fitted"):
            fp.Forest.from_model(model)
    empty = regressor().fit(X, y)
    empty.shrink(0)
    with pytest.raises(fp.UnsupportedModelError, match="at least one tree"):
        fp.Forest.from_model(empty)


def test_features_that_are_not_numbers_are_refused(friedman):
    X, y = friedman
    X = X.assign(kind=np.round(y).astype(str), text="some words", spot=[[1.0, 2.0]] * len(X))
    for kind, columns in (("cat", ["kind"]), ("text", ["text"]), ("embedding", ["spot"])):
        options = {f"{kind}_features": columns}
        rows = X[["x0", *columns]]
        try:
            model = regressor(iterations=1).fit(rows, y, **options)
        except catboost.CatBoostError:
            continue  # a kind that regression does not take
        with pytest.raises(
            fp.UnsupportedModelError, match=rf"{kind}\w* features: '{columns[0]}'"
        ) as caught:
            fp.Forest.from_model(model)
        assert ("TargetEncoder" in str(caught.value)) == (kind == "cat")
        if kind == "cat":
            numeric = fp.Forest.from_model(regressor(iterations=1).fit(rows.assign(kind=1.0), y))
            with pytest.raises(ValueError, match="Pool of numeric features is required"):
                numeric.predict(Pool(rows, cat_features=columns))


@pytest.mark.parametrize("kind", ["symmetric", "depthwise"])
def test_models_without_leaf_weights_are_refused(kind, friedman, tmp_path):
    """CatBoost itself crashes on writing some of them."""

    def strip(node):
        for entry in node.values() if isinstance(node, dict) else node:
            if isinstance(entry, dict | list):
                strip(entry)
        if isinstance(node, dict):
            node.pop("weight", None)
            node.pop("leaf_weights", None)

    model = edited(regressor(kind).fit(*friedman), tmp_path, strip)
    with pytest.raises(fp.UnsupportedModelError, match="weight of its leaves"):
        fp.Forest.from_model(model)


def test_sums_of_models_are_read(friedman):
    X, y = friedman
    parts = [regressor(random_seed=seed, iterations=2).fit(X, y) for seed in (0, 1)]
    total = catboost.sum_models(parts, weights=[0.5, 2.0])
    forest = fp.Forest.from_model(total)
    assert forest.origin.predicts == "y"
    same(forest.predict(X), total.predict(X))
    native = forest.to_native()
    same(native.predict(X), total.predict(X))
    assert not any(name.startswith("model") for name in dict(native.get_metadata()))
    same(fp.Forest.from_model(native).predict(X), total.predict(X))


def test_sums_of_models_keep_the_constraints_of_all(friedman):
    X, y = friedman
    signs = [0] * X.shape[1]
    parts = []
    for more in ([1, -1], [1, 0]):
        signs[:2] = more
        parts.append(regressor(monotone_constraints=signs).fit(X, y))
    forest = fp.Forest.from_model(catboost.sum_models(parts, weights=[0.5, 2.0]))
    assert forest.monotone.tolist() == [1] + [0] * (X.shape[1] - 1)
    small = fp.prune(forest, X, -y, max_nodes=100, shrinkage=0.0).to_native()
    assert turns(small.predict, X.to_numpy(), [1], rng=np.random.default_rng(0))[0] == 0
    # A difference keeps nothing, whatever its parts did.
    assert not fp.Forest.from_model(catboost.sum_models(parts, weights=[1, -1])).monotone.size


def test_scale_and_bias_that_were_set(friedman):
    X, y = friedman
    model = regressor("depthwise").fit(X, y)
    model.set_scale_and_bias(2.5, [1.0])
    forest = fp.Forest.from_model(model)
    np.testing.assert_array_equal(forest.scale, 2.5)
    assert forest.base == 1.0
    same(forest.predict(X), model.predict(X))
    native = forest.to_native()
    assert native.get_scale_and_bias() == (1.0, 1.0)
    same(native.predict(X), model.predict(X))


def test_what_users_wrote_into_the_model_is_kept(friedman):
    model = regressor().fit(*friedman)
    model.get_metadata()["mine"] = "remember"
    native = fp.Forest.from_model(model).truncate(1).to_native()
    assert native.get_metadata()["mine"] == "remember"
    assert "training" not in dict(native.get_metadata())


@pytest.mark.parametrize(
    "table", ["numpy", "pandas, numbered", "pandas", *(["polars"] if TAKES_POLARS else [])]
)
def test_feature_names(table, friedman):
    X, y = friedman
    rows = {
        "numpy": X.to_numpy(),
        "pandas, numbered": pd.DataFrame(X.to_numpy()),
        "pandas": X,
        "polars": pl.DataFrame(X),
    }[table]
    model = regressor().fit(rows, y)
    forest = fp.Forest.from_model(model)
    assert forest.n_features == 6
    assert forest.feature_names == (tuple(X.columns) if table in ("pandas", "polars") else None)
    assert forest.to_native().feature_names_ == model.feature_names_
    same(forest.predict(rows), model.predict(rows))
    same(forest.predict(Pool(rows)), model.predict(rows))
    if forest.feature_names is not None:
        for other in (X.to_numpy(), Pool(X.to_numpy())):
            with pytest.warns(UserWarning, match="X has no column names"):
                same(forest.predict(other), model.predict(rows))
        with pytest.raises(ValueError, match="order of training"):
            forest.predict(Pool(X[X.columns[::-1]]))


def test_dropped_and_ignored_features(friedman):
    X, y = friedman
    model = regressor(ignored_features=np.array([1, 5]), iterations=2, depth=1).fit(X, y)
    forest = fp.Forest.from_model(model)
    assert forest.feature_names == tuple(X.columns)
    native = forest.to_native()
    assert native.feature_names_ == list(X.columns)
    assert native.get_param("ignored_features") == [1, 5]
    model.drop_unused_features()
    rows = X.to_numpy()
    for dropped in (model, model.copy()):
        forest = fp.Forest.from_model(dropped)
        assert forest.feature_names is None
        used = rows[:, : forest.n_features]
        assert forest.n_features == (6 if dropped is model else 1 + max(forest.feature))
        same(forest.predict(used), model.predict(rows))
        same(forest.to_native().predict(used), model.predict(rows))


def test_sparse_rows_are_zero_where_they_store_nothing():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((80, 3)) < 0.6, 0.0, rng.normal(size=(80, 3)))
    X[3, 1] = np.nan
    stored = sparse.csr_matrix(X)
    model = regressor().fit(stored, np.nansum(X, axis=1))
    forest = fp.Forest.from_model(model)
    for rows in (X, stored, sparse.csc_matrix(X), sparse.coo_matrix(X), Pool(stored)):
        same(forest.predict(rows), model.predict(stored))


def test_pools_that_do_not_give_their_rows(friedman):
    X, y = friedman
    model = regressor().fit(X, y)
    forest = fp.Forest.from_model(model)
    pool = Pool(X, y)
    pool.quantize()
    with pytest.raises(ValueError, match="quantized"):
        forest.predict(pool)
    shifted = Pool(X, y, baseline=np.full(len(X), 100.0))
    same(model.predict(shifted), model.predict(X) + 100)
    with pytest.raises(ValueError, match="baseline"):
        forest.predict(shifted)
    assert interop.table_of(model) is None


def test_nan_is_taken_where_training_saw_none(friedman):
    X, y = friedman
    for mode in ("Min", "Max", "Forbidden"):
        model = regressor(nan_mode=mode).fit(X, y)
        rows = X.copy()
        rows.iloc[::2, :] = np.nan
        forest = fp.Forest.from_model(model)
        same(forest.predict(rows), model.predict(rows))
        same(forest.to_native().predict(rows), model.predict(rows))


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize("kind", KINDS)
def test_numbers_that_float32_cannot_hold(kind):
    X = np.array(NUMBERS)[:, np.newaxis]
    model = regressor(kind, iterations=8).fit(X, np.arange(len(X)))
    forest = fp.Forest.from_model(model)
    rows = extremes(forest, X)
    same(forest.predict(rows), model.predict(rows))
    assert len(np.unique(forest.predict(rows))) > 5


@pytest.mark.parametrize("kind", KINDS)
def test_few_rows_and_constant_targets(kind):
    X = np.array([[1.0, 0.0], [2.0, 0.0]])
    for y in ([1.0, 2.0], [2.5, 2.5]):
        model = regressor(kind).fit(X, y)
        forest = fp.Forest.from_model(model)
        same(forest.predict(X), model.predict(X))
        native = forest.to_native()
        same(native.predict(X), model.predict(X))
        assert native.tree_count_ == (4 if forest.depths.all() else 1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_forest_still_goes_back(kind, friedman, tmp_path):
    X, y = friedman
    params = {"monotone_constraints": {"x0": 1, "x1": -1}} if kind == "symmetric" else {}
    params |= {"random_seed": np.int64(3), "custom_metric": ["MAE", "R2"]}
    model = regressor(kind, **params).fit(X, y)
    forest = fp.Forest.from_model(model).truncate(2)
    assert origin_from_metadata(json.loads(json.dumps(asdict(forest.origin)))) == forest.origin
    forest.save(tmp_path / "forest.npz")
    native = fp.Forest.load(tmp_path / "forest.npz").to_native()
    same(native.predict(X), forest.predict(X))
    assert native.get_params() == model.get_params()
    native._init_params["custom_metric"].append("MAPE")
    assert forest.to_native().get_param("custom_metric") == ["MAE", "R2"]


def test_parameters_are_kept_as_they_are(friedman, tmp_path):
    X, y = friedman
    params = {
        "monotone_constraints": {0: 1, 2: -1},  # JSON would make strings of the keys
        "ignored_features": np.array([4]),
        "per_float_feature_quantization": ["1:border_count=10"],
    }
    forest = fp.Forest.from_model(regressor(**params).fit(X.to_numpy(), y))
    forest.save(tmp_path / "forest.npz")
    native = fp.Forest.load(tmp_path / "forest.npz").to_native()
    expected = regressor(**params | {"ignored_features": [4]})
    assert native.get_params() == expected.get_params()
    # sklearn's clone() takes no CatBoost model with lists among its parameters.
    again = CatBoostRegressor(**native.get_params()).fit(X.to_numpy(), y)
    same(again.predict(X), native.predict(X))


@compiled_only
def test_pools_are_rows_to_prune_with(friedman):
    X, y = friedman
    model = regressor(iterations=10).fit(X, y)
    from_pool, from_table = (
        fp.prune(model, rows, y, max_nodes=40, n_jobs=1) for rows in (Pool(X, y), X)
    )
    assert from_pool.forest == from_table.forest


def test_the_model_predicts_where_the_package_is_not_installed(friedman, tmp_path):
    X, y = friedman
    native = fp.Forest.from_model(regressor("depthwise").fit(X, y)).truncate(2).to_native()
    predicts_alone(native, X, tmp_path)


@compiled_only
@pytest.mark.skipif(VERSION < (1, 2, 9), reason="unfit for the pipelines of newer scikit-learn")
def test_in_a_pipeline(friedman):
    X, y = friedman
    model = make_pipeline(StandardScaler(), regressor(iterations=10)).fit(X, y)
    small = fp.prune(model, X, y, max_nodes=40, n_jobs=1)
    same(small.to_native().predict(X), small.predict(X))


@pytest.mark.parametrize("suffix", ["cbm", "json"])
def test_files_are_loaded(suffix, friedman, tmp_path):
    X, y = friedman
    model = regressor().fit(X, y)
    path = tmp_path / f"model.{suffix}"
    model.save_model(str(path), format=suffix)
    for place in (path, str(path)):
        loaded = interop.load(place)
        assert type(loaded) is CatBoost
        forest = fp.Forest.from_model(loaded)
        same(forest.predict(X), model.predict(X))
        same(forest.to_native().predict(X), model.predict(X))


@pytest.mark.parametrize("name", ["wrong.cbm", "wrong.json", "empty.json"])
def test_other_files_are_refused(name, tmp_path):
    path = tmp_path / name
    path.write_text("{}" if name == "empty.json" else "not a model")
    with pytest.raises(ValueError, match=f"{re.escape(name)} does not hold a CatBoost model"):
        interop.load(path)
    with pytest.raises(FileNotFoundError, match="There is no file"):
        interop.load(tmp_path / "absent.cbm")


def test_forests_that_catboost_cannot_hold(friedman, monkeypatch):
    forest = fp.Forest.from_model(regressor("depthwise").fit(*friedman))
    sets = {"category_set": np.full(forest.n_nodes, -1), "set_offsets": np.array([0])}
    for forged in (sets, {"missing_left": np.zeros(forest.n_nodes, bool)}):
        with pytest.raises(
            fp.UnsupportedModelError, match="Splits must be on the numeric features"
        ):
            replace(forest, **forged).to_native()
    with pytest.raises(fp.UnsupportedModelError, match="can be written, not 'Forest'"):
        replace(forest, origin=fp.Origin("catboost", "Forest")).to_native()
    monkeypatch.setattr(catboost_trees, "_MOST_LEFT", 2)
    with pytest.raises(fp.UnsupportedModelError, match=r"at most 2 nodes .*node 2 of tree 3 has 3"):
        forest.to_native()


@compiled_only
def test_the_largest_trees(tmp_path):
    """Just below what CatBoost can hold, it works; just above, it would crash."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    forest = fp.Forest.from_model(regressor(depth=16, iterations=1).fit(X, X[:, 0] * X[:, 1]))
    if forest.n_nodes < 2**17 - 1:
        pytest.fail("the tree must be complete for this test")
    mask = np.ones(forest.n_nodes, bool)
    mask[-2:] = False
    with pytest.raises(fp.UnsupportedModelError, match=r"at most 65534 nodes.*has 65535"):
        forest.keep(mask).to_native()
    first = 2**16 - 1
    mask[first : first + 2] = False
    rows = rng.normal(size=(2000, 3))
    same(forest.keep(mask).to_native().predict(rows), forest.keep(mask).predict(rows))
