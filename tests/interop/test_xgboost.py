"""XGBoost in and out: the library's own predictions are the truth."""

import json
import pickle
from dataclasses import asdict, replace

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from effort import examples
from exported import predicts_alone
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from strategies import N_FEATURES, probing_rows, training_sets
from threadpoolctl import threadpool_limits

import forestprune as fp
from forestprune.forest.origin import origin_from_metadata

xgb = pytest.importorskip("xgboost")

from forestprune.interop import ubjson, xgboost_model  # noqa: E402
from forestprune.interop import xgboost as interop  # noqa: E402

VERSION = tuple(int(part) for part in xgb.__version__.split(".")[:2])
STORES_CATEGORIES = VERSION >= (3, 1)


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """Models this small gain nothing from a second thread, and wait for it if others work too."""
    with threadpool_limits(1):
        yield


def regressor(**params):
    params = {"n_estimators": 4, "max_depth": 4, "n_jobs": 1, "min_child_weight": 0} | params
    return lambda seed: xgb.XGBRegressor(random_state=seed, **params)


class Trainer:
    """Gives xgb.train the face of an estimator: what it fits is a Booster."""

    def __init__(self, **params):
        self.params = {"nthread": 1, "max_depth": 4} | params

    def __call__(self, seed):
        self.params["seed"] = seed
        return self

    def fit(self, X, y, sample_weight=None, rounds=4):
        return xgb.train(self.params, xgb.DMatrix(X, y, weight=sample_weight), rounds)


PLAIN = {
    "gbtree": regressor(),
    "exact": regressor(tree_method="exact", gamma=0.1),
    "approx": regressor(tree_method="approx", reg_lambda=0.0, reg_alpha=0.1),
    "lossguide": regressor(grow_policy="lossguide", max_leaves=6, max_depth=0, base_score=2.5),
    "dart": regressor(booster="dart", rate_drop=0.5, one_drop=True, n_estimators=6),
    "parallel trees": regressor(num_parallel_tree=3, subsample=0.7, n_estimators=2),
    "random forest": lambda seed: xgb.XGBRFRegressor(n_estimators=3, n_jobs=1, random_state=seed),
    "booster": Trainer(),
    "booster, dart": Trainer(booster="dart", rate_drop=0.5, one_drop=1),
    "booster, absolute error": Trainer(objective="reg:absoluteerror"),
    "pseudo huber": regressor(objective="reg:pseudohubererror"),
    "quantile": regressor(objective="reg:quantileerror", quantile_alpha=0.8),
    "squared log": regressor(objective="reg:squaredlogerror"),
    "hinge": regressor(objective="binary:hinge"),
}
LINKED = {
    "poisson": regressor(objective="count:poisson"),
    "gamma": regressor(objective="reg:gamma"),
    "tweedie": regressor(objective="reg:tweedie", tweedie_variance_power=1.3),
    "logistic": regressor(objective="reg:logistic"),
    "booster, binary": Trainer(objective="binary:logistic"),
    "binary, raw": regressor(objective="binary:logitraw", base_score=0.3),
}
MODELS = PLAIN | LINKED
POSITIVE = ("squared log", "poisson", "gamma", "tweedie")
SHARES = ("logistic", "booster, binary", "binary, raw")


def target(name, y):
    if name in POSITIVE:
        return np.abs(y) + 0.1
    if name in SHARES:  # some versions cannot be trained if all are 1
        return np.where(y > 0, 0.9, 0.1)
    return (y > 0).astype(float) if name == "hinge" else y


@st.composite
def fitted(draw, name):
    """Draw a training set and fit the model called `name` to it."""
    X, y, weight = draw(training_sets(missing=True))
    model = MODELS[name](draw(st.integers(0, 99)))
    return model.fit(X, target(name, y), sample_weight=weight), X


def booster_of(model):
    return model if isinstance(model, xgb.Booster) else model.get_booster()


def raw(model, rows):
    """Return the library's raw prediction."""
    if isinstance(model, xgb.Booster):
        return model.predict(xgb.DMatrix(rows, nthread=1), output_margin=True)
    return model.predict(rows, output_margin=True)


def sum_of_leaves(model, rows):
    """Add up, in float64, the leaves that the library says rows reach."""
    booster, last = booster_of(model), 0
    if not isinstance(model, xgb.Booster) and booster.attr("best_iteration"):
        last = model.best_iteration + 1
    data = xgb.DMatrix(rows, nthread=1)
    reached = booster.predict(
        data, pred_leaf=True, strict_shape=True, iteration_range=(0, last), validate_features=False
    )
    reached = reached.reshape(len(rows), -1).astype(int)
    part = json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]
    trees = part.get("gbtree", part)["model"]["trees"]
    weights = np.float32(part.get("weight_drop", np.ones(len(trees)))).astype(float)
    total = np.zeros(len(rows))
    for i in range(reached.shape[1]):
        total += weights[i] * np.float32(trees[i]["split_conditions"])[reached[:, i]]
    return total


def same(a, b):
    """Compare sums in float32: their rounding grows with what is added up."""
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5 * (1 + np.abs(b).max()))


def fingerprint(model):
    booster = booster_of(model)
    return pickle.dumps(model), booster.save_raw("json"), booster.save_config()


def file_size(model, path):
    booster_of(model).save_model(path)
    return path.stat().st_size


def n_nodes(model):
    return sum(tree["left_children"].size for tree in trees_of(model))


def trees_of(model):
    return xgboost_model.body_of(ubjson.loads(booster_of(model).save_raw("ubj")))["trees"]


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=examples(8))
@given(data=st.data())
def test_in_and_out_predict_what_the_library_does(name, data):
    model, X = data.draw(fitted(name))
    before = fingerprint(model)
    forest = fp.Forest.from_model(model)
    assert fingerprint(model) == before
    rows = probing_rows(forest, X).astype(np.float32).astype(float)
    rows[:: len(rows) // 3 + 1, 0] = np.nan
    same(forest.predict(rows), raw(model, rows))
    leaves = sum_of_leaves(model, rows)
    np.testing.assert_allclose(forest.predict(rows) - forest.base, leaves, rtol=1e-9, atol=1e-9)
    native = forest.to_native()
    assert type(native) is type(model)
    same(raw(native, rows), raw(model, rows))
    if "dart" not in name and forest.depths.all():
        # Nothing was weighted and no tree was a constant, so nothing is rounded on the way.
        again = fp.Forest.from_model(native)
        assert again.origin == forest.origin
        for array in ("offsets", "left", "feature", "threshold", "missing_left", "value", "cover"):
            np.testing.assert_array_equal(getattr(again, array), getattr(forest, array))


@st.composite
def pruned(draw, forest):
    """Draw what pruning may leave of a forest: subtrees, new values, weights, a constant."""
    if draw(st.integers(0, 5)) == 0:
        return forest.truncate(0)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    mask = np.zeros(forest.n_nodes, bool)
    mask[forest.offsets[:-1]] = True
    start = np.repeat(forest.offsets[:-1], np.diff(forest.offsets))
    for v in np.flatnonzero(forest.left >= 0):
        mask[start[v] + forest.left[v] + np.array([0, 1])] = mask[v] and rng.random() < 0.7
    kept = forest.keep(mask)
    return replace(
        kept,
        scale=kept.scale * rng.normal(size=kept.n_trees),
        value=kept.value + rng.normal(size=kept.value.shape),
        base=kept.base + rng.normal(size=1),
    )


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=examples(8))
@given(data=st.data())
def test_pruned_models_predict_what_the_pruned_forest_does(name, data):
    model, X = data.draw(fitted(name))
    forest = fp.Forest.from_model(model)
    small = data.draw(pruned(forest))
    native = small.to_native()
    rows = probing_rows(forest, X)
    same(raw(native, rows), small.predict(rows))
    compact = small.compact()
    assert n_nodes(native) == max(1, compact.n_nodes)
    again = fp.Forest.from_model(native)
    same(again.predict(rows), small.predict(rows))
    same(raw(pickle.loads(pickle.dumps(native)), rows), small.predict(rows))
    reloaded = xgb.Booster()
    reloaded.load_model(booster_of(native).save_raw("json"))
    same(raw(reloaded, rows), small.predict(rows))
    if name in PLAIN:
        # The constant is where the library keeps it, not in a tree.
        np.testing.assert_allclose(again.base, compact.base, rtol=1e-6, atol=1e-30)
    if not isinstance(native, xgb.Booster):
        native.set_params(n_jobs=1)  # hands all parameters to the library again
        same(raw(native, rows), small.predict(rows))


@pytest.fixture(scope="module")
def friedman():
    X, y = make_friedman1(300, n_features=6, noise=1.0, random_state=0)
    return pd.DataFrame(X, columns=list("abcdef")), y


@pytest.mark.parametrize("rule", ["subtree", "layer"])
@pytest.mark.parametrize("name", ["gbtree", "dart", "parallel trees", "random forest", "booster"])
def test_pruned_against_y(name, rule, friedman, tmp_path):
    X, y = friedman
    model = MODELS[name](0).fit(X, y)
    before = fingerprint(model)
    small = fp.prune(model, X, y, max_nodes=40, rule=rule)
    assert fingerprint(model) == before
    native = small.to_native()
    assert type(native) is type(model)
    assert 3 <= n_nodes(native) == small.n_nodes <= 40
    same(raw(native, X), small.predict(X))
    assert file_size(native, tmp_path / "a.ubj") < file_size(model, tmp_path / "b.ubj")
    assert booster_of(native).feature_names == list(X.columns)
    joblib.dump(native, tmp_path / "small")
    assert small.n_bytes == (tmp_path / "small").stat().st_size < len(before[0])
    np.testing.assert_array_equal(raw(joblib.load(tmp_path / "small"), X), raw(native, X))
    for suffix in ("json", "ubj"):
        booster_of(native).save_model(tmp_path / f"model.{suffix}")
        loaded = interop.load(tmp_path / f"model.{suffix}")
        same(raw(loaded, X), raw(native, X))


# Wrappers


def test_parameters_and_configuration_are_carried_over(friedman):
    X, y = friedman
    model = xgb.XGBRegressor(
        n_estimators=7,
        max_depth=3,
        learning_rate=np.float64(0.07),
        n_jobs=1,
        booster="dart",
        rate_drop=0.3,
        base_score=3.0,
        monotone_constraints=(1, 0, 0, 0, 0, -1),
        feature_weights=np.arange(1.0, 7.0),
        interaction_constraints=[["a", "b"], ["c", "d", "e", "f"]],
        eval_metric=["rmse", "mae"],
    )
    if VERSION < (3, 0):
        model.set_params(feature_weights=None)
    model.fit(X, y)
    native = fp.Forest.from_model(model).to_native()
    expected = model.get_params()
    if expected["feature_weights"] is not None:
        expected["feature_weights"] = expected["feature_weights"].tolist()
    assert {k: v for k, v in native.get_params().items() if v == v} == {
        k: v for k, v in expected.items() if v == v
    }
    assert native.get_booster().save_config() == model.get_booster().save_config()
    assert list(native.feature_names_in_) == list(X.columns)
    assert native.n_features_in_ == 6
    unfitted = clone(native)
    with pytest.raises(NotFittedError):
        unfitted.predict(X)
    same(unfitted.fit(X, y).predict(X), model.predict(X))


def test_a_wrapper_that_was_loaded_from_a_file(friedman, tmp_path):
    X, y = friedman
    regressor(n_estimators=6)(0).fit(X, y).save_model(tmp_path / "model.json")
    model = xgb.XGBRegressor()
    model.load_model(tmp_path / "model.json")
    small = fp.Forest.from_model(model).truncate(2)
    native = small.to_native()
    same(native.set_params(n_jobs=1).predict(X), small.predict(X))
    native.save_model(tmp_path / "small.json")
    model.load_model(tmp_path / "small.json")
    same(model.predict(X), small.predict(X))


def test_sizes_follow_the_trees(friedman):
    X, y = friedman
    forest = fp.Forest.from_model(regressor(base_score=4.0)(0).fit(X, y))
    small = forest.truncate(np.array([2, 0, 1, 0]))
    native = small.to_native()
    assert native.n_estimators == native.get_booster().num_boosted_rounds() == 2
    assert native.base_score == pytest.approx(small.compact().base[0])
    constant = forest.truncate(0).to_native()
    assert constant.n_estimators == constant.get_booster().num_boosted_rounds() == 1
    # All that its one leaf adds is what float32 cannot hold of the constant.
    dump = json.loads(constant.get_booster().get_dump(dump_format="json")[0])
    assert abs(dump["leaf"]) < 1e-6


@pytest.mark.parametrize(
    ("depths", "per_round"), [([2, 2, 0, 2, 0, 2], 2), ([2, 2, 2, 0, 0, 2], 1), ([1] * 6, 3)]
)
def test_rounds_of_several_trees_stay_whole_or_fall_apart(depths, per_round, friedman):
    X, y = friedman
    model = regressor(num_parallel_tree=3, n_estimators=2)(0).fit(X, y)
    small = fp.Forest.from_model(model).truncate(np.array(depths))
    native = small.to_native()
    n_trees = np.count_nonzero(depths)
    assert native.num_parallel_tree == per_round
    assert native.n_estimators == native.get_booster().num_boosted_rounds() == n_trees // per_round
    same(native.predict(X), small.predict(X))
    # The first round alone is the first trees alone.
    compact = small.compact()
    scale = np.where(np.arange(n_trees) < per_round, compact.scale, 0.0)
    same(native.predict(X, iteration_range=(0, 1)), replace(compact, scale=scale).predict(X))


def test_the_trees_of_a_random_forest_are_one_round(friedman):
    X, y = friedman
    model = xgb.XGBRFRegressor(n_estimators=5, n_jobs=1).fit(X, y)
    native = fp.Forest.from_model(model).truncate(np.array([3, 0, 2, 0, 1])).to_native()
    assert native.n_estimators == 3
    assert native.get_booster().num_boosted_rounds() == 1
    assert native.num_parallel_tree is None


@pytest.mark.parametrize("booster", ["gbtree", "dart"])
def test_early_stopping(booster, friedman, tmp_path):
    X, y = friedman
    model = xgb.XGBRegressor(
        n_estimators=60, learning_rate=1.0, early_stopping_rounds=4, n_jobs=1, booster=booster
    )
    model.fit(X[:150], y[:150], eval_set=[(X[150:], y[150:])], verbose=False)
    rounds = model.get_booster().num_boosted_rounds()
    assert model.best_iteration + 1 < rounds
    forest = fp.Forest.from_model(model)
    assert forest.n_trees == model.best_iteration + 1
    same(forest.predict(X), model.predict(X))
    native = forest.truncate(np.arange(forest.n_trees) % 3).to_native()
    assert native.early_stopping_rounds == 4
    assert native.best_iteration + 1 == native.n_estimators
    assert native.n_estimators == native.get_booster().num_boosted_rounds()
    with pytest.raises(AttributeError):
        _ = native.best_score
    same(native.predict(X), forest.truncate(np.arange(forest.n_trees) % 3).predict(X))
    constant = forest.truncate(0).to_native()
    assert constant.best_iteration == 0
    same(constant.predict(X), forest.truncate(0).predict(X))
    # A Booster predicts with all rounds unless told otherwise; read from a file, that is said.
    model.save_model(tmp_path / "m.json")
    with pytest.warns(UserWarning, match=f"with {forest.n_trees} rounds of {rounds}: all are read"):
        assert fp.Forest.from_file(tmp_path / "m.json").n_trees == rounds
    cut = model.get_booster()[: forest.n_trees]
    cut.save_model(tmp_path / "cut.json")
    assert fp.Forest.from_file(tmp_path / "cut.json").n_trees == forest.n_trees
    whole = fp.Forest.from_model(model.get_booster())
    assert whole.n_trees == rounds
    data = xgb.DMatrix(X)
    same(whole.predict(X), model.get_booster().predict(data))
    native = whole.to_native()
    assert native.best_iteration == rounds - 1
    same(native.predict(data), whole.predict(X))


def test_attributes_of_a_booster_are_kept(friedman):
    X, y = friedman
    booster = Trainer(eta=0.125)(0).fit(X, y)
    booster.set_attr(owner="me", best_score="1.5")
    native = fp.Forest.from_model(booster).truncate(1).to_native()
    assert native.attributes() == {"owner": "me"}
    assert native.feature_types == booster.feature_types
    config = json.loads(native.save_config())["learner"]["gradient_booster"]
    assert config["tree_train_param"]["eta"] == "0.125"
    assert native.get_score(importance_type="gain").keys() <= booster.get_score().keys()


def test_gains_and_covers_are_kept(friedman):
    X, y = friedman
    booster = Trainer()(0).fit(X, y, rounds=1)
    native = fp.Forest.from_model(booster).to_native()
    for kind in ("gain", "cover", "weight", "total_gain"):
        before, after = (b.get_score(importance_type=kind) for b in (booster, native))
        assert after == pytest.approx(before)
    data = xgb.DMatrix(X)
    contributions = [b.predict(data, pred_contribs=True) for b in (booster, native)]
    np.testing.assert_allclose(*contributions, rtol=1e-5, atol=1e-5)
    assert sorted(native.get_dump()[0]) == sorted(booster.get_dump()[0])


def test_parameters_that_are_no_plain_data_become_none(friedman):
    X, y = friedman

    def mine(y, p):
        return float(np.mean(y - p))

    generator = np.random.RandomState(0)
    model = regressor(eval_metric=mine, callbacks=[xgb.callback.EvaluationMonitor()])(generator)
    model.fit(X, y, eval_set=[(X, y)], verbose=False)
    state = generator.get_state()[2]
    native = fp.Forest.from_model(model).to_native()
    assert generator.get_state()[2] == state
    assert (native.random_state, native.callbacks, native.eval_metric) == (None, None, None)
    assert not hasattr(native, "evals_result_")


def test_a_saved_forest_still_goes_back(friedman, tmp_path):
    X, y = friedman
    for name in MODELS:
        model = MODELS[name](0).fit(X, target(name, y - np.mean(y)))
        forest = fp.Forest.from_model(model).truncate(2)
        assert origin_from_metadata(json.loads(json.dumps(asdict(forest.origin)))) == forest.origin
        forest.save(tmp_path / "forest.npz")
        loaded = fp.Forest.load(tmp_path / "forest.npz")
        assert loaded == forest
        same(raw(loaded.to_native(), X), forest.predict(X))
        forest.truncate(0).compact().save(tmp_path / "constant.npz")
        constant = fp.Forest.load(tmp_path / "constant.npz").to_native()
        same(raw(constant, X), forest.truncate(0).predict(X))


def test_exports_share_nothing_with_the_forest(friedman):
    X, y = friedman
    forest = fp.Forest.from_model(regressor(eval_metric=["mae", "rmse"])(0).fit(X, y))
    forest.to_native().eval_metric.pop()
    assert forest.to_native().eval_metric == ["mae", "rmse"]


def test_the_model_predicts_where_the_package_is_not_installed(friedman, tmp_path):
    X, y = friedman
    native = fp.Forest.from_model(regressor()(0).fit(X, y)).truncate(2).to_native()
    predicts_alone(native, X, tmp_path)


def test_as_the_last_step_of_a_pipeline(friedman):
    X, y = friedman
    pipeline = make_pipeline(FunctionTransformer(), regressor()(0)).fit(X, y)
    small = fp.prune(pipeline, X, y, max_nodes=20)
    same(small.to_native().predict(X), small.predict(X))


def test_training_goes_on_from_a_pruned_model(friedman):
    X, y = friedman
    native = fp.Forest.from_model(regressor()(0).fit(X, y)).truncate(2).to_native()
    more = regressor()(0).fit(X, y, xgb_model=native)
    assert more.get_booster().num_boosted_rounds() == 8
    assert np.mean((more.predict(X) - y) ** 2) < np.mean((native.predict(X) - y) ** 2)
    same(fp.Forest.from_model(more).predict(X), more.predict(X))


# Rows


@pytest.mark.parametrize("name", ["gbtree", "exact", "approx"])
def test_thresholds_at_the_ends_of_float32(name):
    top = float(np.finfo(np.float32).max)
    rows = np.array([[top], [-top], [3e38], [-3e38], [1e-45], [-1e-45], [0.0], [np.nan]])
    probes = np.vstack([rows, [[np.inf], [-np.inf], [1e39], [1.1754942e-38]]])
    model = MODELS[name](0).set_params(gamma=0, reg_lambda=0, max_depth=8, n_estimators=2)
    rng = np.random.default_rng(0)
    for some in ([0, 7], [1, 7], [1, 3, 7], [0, 2], [4, 5, 6], [4, 6, 7], list(range(8))):
        X = np.repeat(rows[some], 5, axis=0)
        model.fit(X, np.repeat(rng.normal(size=len(some)), 5))
        forest = fp.Forest.from_model(model)
        with np.errstate(over="ignore"):
            same(forest.predict(probes), model.predict(probes))
            same(forest.to_native().predict(probes), model.predict(probes))


def edited(model, change):
    """Return a Booster like `model`, but with `change` made to its trees."""
    document = ubjson.loads(booster_of(model).save_raw("ubj"))
    change(xgboost_model.body_of(document)["trees"])
    return xgboost_model.load_bytes(ubjson.dumps(document))


@pytest.mark.parametrize(
    "t", [-np.inf, np.inf, np.nan, -np.finfo(np.float32).max, 0.0, -0.0, 1e-45]
)
@pytest.mark.parametrize("default_left", [0, 1])
def test_any_threshold_goes_in_and_out(t, default_left):
    X = np.arange(8.0)[:, np.newaxis]
    model = regressor(n_estimators=1, max_depth=1, base_score=0.0)(0).fit(X, X[:, 0])

    def change(trees):
        trees[0]["split_conditions"][0] = t
        trees[0]["default_left"][0] = default_left

    booster = edited(model, change)
    forest = fp.Forest.from_model(booster)
    low = np.finfo(np.float32)
    rows = [np.inf, -np.inf, low.max, -low.max, 0.0, -0.0, 1e-45, -1e-45, 3e-45, np.nan]
    rows = np.array(rows)[:, np.newaxis]
    expected = booster.inplace_predict(rows)
    np.testing.assert_array_equal(forest.predict(rows).astype(np.float32), expected)
    np.testing.assert_array_equal(forest.to_native().inplace_predict(rows), expected)


def test_thresholds_of_no_float32_are_rounded_to_the_right_side():
    X = np.arange(8.0)[:, np.newaxis]
    forest = fp.Forest.from_model(regressor(n_estimators=1, max_depth=1)(0).fit(X, X[:, 0]))
    for t in (0.1, 0.3, 1 / 3, 16777217.0):
        moved = replace(forest, threshold=np.where(forest.left >= 0, t, 0.0))
        rows = np.float32(t) * np.ones((3, 1), np.float32)
        rows[1:, 0] = np.nextafter(rows[0, 0], np.float32([-np.inf, np.inf]))
        same(moved.to_native().predict(rows), moved.predict(rows))


@pytest.mark.filterwarnings("ignore:.*You have manually specified the `updater`")
def test_nodes_that_training_deleted_are_left_out(friedman):
    X, y = friedman
    params = {
        "tree_method": "exact",
        "gamma": 60.0,
        "max_depth": 6,
        "updater": "grow_colmaker,prune",
    }
    booster = Trainer(**params)(0).fit(X, y)
    deleted = [int(tree["tree_param"]["num_deleted"]) for tree in trees_of(booster)]
    assert sum(deleted) > 0
    native = fp.Forest.from_model(booster).to_native()
    assert all(tree["tree_param"]["num_deleted"] == "0" for tree in trees_of(native))
    assert n_nodes(native) == n_nodes(booster) - sum(deleted)
    same(raw(native, X), raw(booster, X))


@pytest.mark.parametrize("missing", [-999.0, 0.0, 0.1, np.inf])
def test_a_number_that_stands_for_missing(missing, friedman):
    X, y = friedman
    rows = X.to_numpy().copy()
    rows[::3, 0] = missing
    rows[::4, 1] = np.nan
    model = regressor(missing=missing)(0).fit(rows, y)
    forest = fp.Forest.from_model(model)
    native = forest.to_native()
    assert native.missing == missing
    with pytest.raises(TypeError, match="missing_number must be None or a float, got 'x'"):
        replace(forest.input, missing_number="x")
    again = fp.Forest.from_model(native)
    for table in (rows, rows.astype(np.float32), sparse.csr_matrix(rows), sparse.coo_matrix(rows)):
        expected = model.predict(table)
        same(forest.predict(table), expected)
        same(native.predict(table), expected)
        same(again.predict(table), expected)


def test_what_a_sparse_matrix_does_not_store_is_missing(friedman):
    X, y = friedman
    rows = X.to_numpy() * (np.random.default_rng(0).random(X.shape) < 0.4)
    table = sparse.csr_matrix(rows)
    table.data[::5] = 0.0  # stored zeros are zeros
    for model in (regressor()(0).fit(table, y), Trainer()(0).fit(table, y)):
        forest = fp.Forest.from_model(model)
        same(forest.predict(table), raw(model, table))
        same(forest.predict(sparse.csc_array(table)), raw(model, table))
        assert np.abs(forest.predict(table.toarray()) - forest.predict(table)).max() > 0.01
        small = fp.prune(model, table, y, max_nodes=30)
        same(raw(small.to_native(), table), small.predict(table))


def test_frames_of_every_make(friedman):
    X, y = friedman
    forest = fp.Forest.from_model(regressor()(0).fit(X, y))
    expected = forest.predict(X)
    np.testing.assert_array_equal(forest.predict(pl.DataFrame(X.to_dict("list"))), expected)
    np.testing.assert_array_equal(forest.predict(X.convert_dtypes()), expected)
    with pytest.raises(ValueError, match="order of training"):
        forest.predict(X[list("bacdef")])
    with pytest.warns(UserWarning, match="no column names"):
        forest.predict(X.to_numpy())
    # Without names the library numbers the columns of a frame.
    numbered = pd.DataFrame(X.to_numpy())
    model = regressor()(0).fit(numbered, y)
    assert model.get_booster().feature_names == list("012345")
    native = fp.Forest.from_model(model).to_native()
    assert native.get_booster().feature_names == list("012345")
    for rows in (numbered, X.to_numpy()):
        same(fp.Forest.from_model(model).predict(rows), model.predict(numbered))


def test_the_librarys_own_containers(friedman):
    X, y = friedman
    X = X.where(X > 0.1)
    data = xgb.DMatrix(X, y, nthread=1)
    booster = xgb.train({"nthread": 1, "max_bin": 16, "max_depth": 4}, data, 4)
    forest = fp.Forest.from_model(booster)
    same(forest.predict(data), booster.predict(data))
    np.testing.assert_array_equal(forest.predict(data), forest.predict(X))
    small = fp.prune(booster, data, y, max_nodes=30)
    same(small.to_native().predict(data), small.predict(X))
    with pytest.raises(ValueError, match="columns of X must be those of training"):
        forest.predict(xgb.DMatrix(X.rename(columns={"a": "z"}), nthread=1))
    bins = xgb.QuantileDMatrix(X, y, nthread=1, max_bin=16)
    same(forest.predict(bins), booster.predict(bins))
    assert interop.table_of(booster) is None


def test_a_container_that_has_lost_its_rows(friedman, monkeypatch):
    X, y = friedman
    forest = fp.Forest.from_model(Trainer()(0).fit(X, y))
    data = xgb.DMatrix(X, nthread=1)

    def gone(self):
        raise xgb.core.XGBoostError("not here\nStack trace")

    monkeypatch.setattr(xgb.DMatrix, "get_data", gone)
    with pytest.raises(ValueError, match=r"a DMatrix that does not give them: not here\. Pass"):
        forest.predict(data)


# Categories

COLOURS = list("edcbaf")


@pytest.fixture(scope="module")
def coloured():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 6, 300)
    X = pd.DataFrame(
        {
            "x": rng.normal(size=300),
            "colour": pd.Categorical(np.array(COLOURS)[codes], categories=COLOURS),
            "size": pd.Categorical(rng.integers(0, 40, 300) * 10),
        }
    )
    X.loc[::17, "colour"] = None
    return X, np.array([3.0, 1, 4, 1, 5, 9])[codes] + X["x"] + X["size"].cat.codes % 3


def as_codes(X):
    columns = [X["x"], *(X[c].cat.codes.where(X[c].notna()) for c in ("colour", "size"))]
    return np.column_stack(columns).astype(float)


CATEGORICAL = {
    "one-hot": {"max_cat_to_onehot": 99},
    "sets": {"max_cat_to_onehot": 1},
    "dart": {"max_cat_to_onehot": 1, "booster": "dart", "rate_drop": 0.5},
    "approx": {"max_cat_to_onehot": 3, "tree_method": "approx"},
}


@pytest.mark.parametrize("kind", CATEGORICAL)
def test_categories(kind, coloured, tmp_path):
    X, y = coloured
    model = regressor(enable_categorical=True, **CATEGORICAL[kind])(0).fit(X, y)
    forest = fp.Forest.from_model(model)
    assert forest.category_set.size
    codes = as_codes(X)
    invalid = np.array(
        [-1, -0.5, -0.0, 0.5, 2.9, 6, 31, 32, 63.5, 64, 1e9, 2**24, 2**24 - 1, np.nan]
    )
    probes = np.tile(codes[:3], (invalid.size, 1))
    probes[:, 1] = np.repeat(invalid, 3)
    probes = np.vstack([probes, probes[:, [0, 2, 1]], [[0.0, np.inf, -np.inf]]])
    small = forest.truncate(np.array([3, 0, 1, 2]))
    native, whole = small.to_native(), forest.to_native()
    assert native.enable_categorical is True
    nameless = replace(forest.input, feature_names=None)
    same(replace(forest, input=nameless).predict(probes), model.predict(probes))
    same(replace(small, input=nameless).predict(probes), native.predict(probes))
    same(whole.predict(probes), model.predict(probes))
    for name in ("colour", "size"):
        X = X.assign(**{name: X[name].cat.remove_unused_categories()})
    same(forest.predict(X), model.predict(X))
    same(native.predict(X), small.predict(X))
    pruned = fp.prune(model, X, y, max_nodes=30)
    same(pruned.to_native().predict(X), pruned.predict(X))
    forest.save(tmp_path / "forest.npz")
    assert fp.Forest.load(tmp_path / "forest.npz") == forest


@pytest.mark.skipif(not STORES_CATEGORIES, reason="older versions do not know names of categories")
def test_names_of_categories_are_what_counts(coloured):
    X, y = coloured
    model = regressor(enable_categorical=True, max_cat_to_onehot=1)(0).fit(X, y)
    forest = fp.Forest.from_model(model)
    assert forest.input.categories[1] == tuple(COLOURS)
    shuffled = X.assign(colour=X["colour"].cat.reorder_categories(sorted(COLOURS)))
    same(model.predict(shuffled), model.predict(X))
    same(forest.predict(shuffled), model.predict(X))
    native = forest.truncate(2).to_native()
    same(native.predict(shuffled), forest.truncate(2).predict(X))
    polars = pl.DataFrame(
        {
            "x": X["x"].to_list(),
            "colour": pl.Series(
                X["colour"].astype(object).where(X["colour"].notna(), None).to_list()
            ),
            "size": pl.Series(X["size"].astype(str).to_list()).cast(pl.Int64),
        }
    )
    polars = polars.with_columns(pl.col("colour").cast(pl.Categorical))
    names = {name: code for code, name in enumerate(X["size"].cat.categories)}
    polars = polars.with_columns(pl.col("size").replace_strict(names))
    same(forest.predict(polars), model.predict(X))
    stranger = X.assign(colour=X["colour"].cat.rename_categories({"a": "z"}))
    with pytest.raises(xgb.core.XGBoostError, match="category not in the training set"):
        model.predict(stranger)
    with pytest.raises(ValueError, match=r"'colour' has categories .* not seen in training: 'z'"):
        forest.predict(stranger)
    with pytest.raises(ValueError, match="Pass the data frame itself"):
        forest.predict(xgb.DMatrix(X, enable_categorical=True))


def test_models_that_know_only_codes_take_those_of_the_frame(coloured):
    X, y = coloured
    model = regressor(enable_categorical=True, feature_types=["float", "c", "c"])(0)
    model.fit(as_codes(X), y)
    forest = fp.Forest.from_model(model)
    assert forest.input.categories == (None, (), ())
    same(forest.predict(as_codes(X)), model.predict(as_codes(X)))
    shuffled = X.assign(colour=X["colour"].cat.reorder_categories(sorted(COLOURS)))
    for rows in (X, shuffled):
        same(forest.predict(rows), model.predict(rows, validate_features=False))
    assert forest.to_native().feature_types == ["float", "c", "c"]


# What is refused


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (xgb.XGBModel(n_estimators=1), "got XGBModel"),
        (xgb.XGBRegressor(n_estimators=1, booster="gblinear"), "this one is gblinear"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_cannot_be_read_is_refused(model, message, friedman):
    X, y = friedman
    fitted = model.fit(X, (y > np.median(y)).astype(int))
    with pytest.raises(fp.UnsupportedModelError, match=message):
        fp.Forest.from_model(fitted)


class Stubborn(xgb.XGBRegressor):
    def predict(self, X):
        return super().predict(X) + 1


class StubbornBooster(xgb.Booster):
    pass


def test_a_subclass_may_predict_differently_and_is_refused(friedman):
    with pytest.raises(fp.UnsupportedModelError, match="subclass of XGBRegressor"):
        fp.Forest.from_model(Stubborn(n_estimators=2).fit(*friedman))
    with pytest.raises(fp.UnsupportedModelError, match="subclass of Booster"):
        fp.Forest.from_model(StubbornBooster())


def test_an_unfitted_model_is_refused():
    for model in (xgb.XGBRegressor(), xgb.XGBRFRegressor()):
        with pytest.raises(NotFittedError):
            fp.Forest.from_model(model)
    with pytest.raises(fp.UnsupportedModelError, match="trained or loaded is required"):
        fp.Forest.from_model(xgb.Booster())


def test_fields_of_the_future_are_refused(friedman):
    tree = trees_of(Trainer()(0).fit(*friedman))[0]
    with pytest.raises(fp.UnsupportedModelError, match="store slopes"):
        interop.read_tree(tree | {"slopes": np.zeros(3)})


def test_what_cannot_be_written_is_refused(friedman):
    X, y = friedman
    forest = fp.Forest.from_model(Trainer()(0).fit(X, y))
    with pytest.raises(fp.UnsupportedModelError, match="can be written, not 'XGBModel'"):
        replace(forest, origin=replace(forest.origin, model_class="XGBModel")).to_native()
    two = {"value": np.tile(forest.value, 2), "base": np.tile(forest.base, 2)}
    with pytest.raises(fp.UnsupportedModelError, match="this forest has 2"):
        replace(forest, **two).to_native()


def test_extras_are_not_needed(friedman):
    X, y = friedman
    forest = fp.Forest.from_model(regressor(num_parallel_tree=2)(0).fit(X, y))
    bare = replace(forest, node_extras={}, tree_extras={})
    same(bare.to_native().predict(X), forest.predict(X))
    assert bare.to_native().n_estimators == 8


def test_a_configuration_of_another_version_is_left_alone(friedman):
    X, y = friedman
    forest = fp.Forest.from_model(Trainer(eta=0.125)(0).fit(X, y))
    state = dict(forest.origin.state)
    state["config"] = state["config"] | {"version": [0, 9, 0], "learner": {}}
    native = replace(forest, origin=replace(forest.origin, state=state)).to_native()
    same(raw(native, X), forest.predict(X))


# Files


@pytest.mark.parametrize("name", ["model.bin", "model.model", "model"])
def test_other_files_are_refused(name, tmp_path):
    (tmp_path / name).write_bytes(b"binf")
    with pytest.raises(fp.UnsupportedModelError, match=f".json or .ubj, got {name}. Load it with"):
        interop.load(tmp_path / name)


@pytest.mark.parametrize("content", [b"", b"{}", b"hello", b'{"learner": {}}', b"{L\0\0"])
@pytest.mark.parametrize("suffix", [".json", ".ubj"])
def test_files_that_hold_no_model_are_refused(content, suffix, tmp_path):
    path = tmp_path / f"model{suffix}"
    path.write_bytes(content)
    with pytest.raises(fp.UnsupportedModelError, match="is not a model of XGBoost") as caught:
        interop.load(str(path))
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file"):
        interop.load(tmp_path / "model.json")


def test_the_binary_form_is_read_and_written_as_the_library_does(friedman, coloured):
    models = [Trainer(booster="dart")(0).fit(*friedman)]
    models.append(regressor(enable_categorical=True, n_estimators=2)(0).fit(*coloured))
    for model in models:
        booster = booster_of(model)
        booster.set_attr(text="grün")
        document = ubjson.loads(booster.save_raw("ubj"))
        text = json.loads(booster.save_raw("json"), parse_float=lambda x: float(np.float32(x)))
        assert json.dumps(as_lists(document)) == json.dumps(text)  # as text NaN equals NaN
        again = xgboost_model.load_bytes(ubjson.dumps(document))
        assert again.save_raw("ubj") == booster.save_raw("ubj")


def as_lists(thing):
    if isinstance(thing, dict):
        return {name: as_lists(item) for name, item in thing.items()}
    if isinstance(thing, list):
        return [as_lists(item) for item in thing]
    return thing.tolist() if isinstance(thing, np.ndarray) else thing


def test_binary_json():
    thing = {"a": [1, -(2**40), 0.5, "x", None, True, False, []], "b": {}, "c": ""}
    assert ubjson.loads(ubjson.dumps(thing)) == thing
    assert ubjson.loads(b"[U\x05I\x01\x00D?\xe0\0\0\0\0\0\0]") == [5, 256, 0.5]
    for dtype in ("i1", "u1", "i2", "i4", "i8", "f4", "f8"):
        array = np.arange(3, dtype=dtype)
        again = ubjson.loads(ubjson.dumps(array))
        assert again.dtype == array.dtype
        np.testing.assert_array_equal(again, array)
    for bad, message in [
        (b"[$d#L", "too early"),
        (b"?", "no type"),
        (b"Sl\xff\xff\xff\xff", "ends"),
    ]:
        with pytest.raises(ValueError, match=message):
            ubjson.loads(bad)


# Small cases


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("y", [[2.5], [1.0, 1.0, 1.0]])
def test_one_row_and_a_constant_target(name, y):
    X = np.zeros((len(y), 1))
    model = MODELS[name](0).fit(X, target(name, np.array(y)))
    forest = fp.Forest.from_model(model)
    same(forest.predict(X), raw(model, X))
    same(raw(forest.to_native(), X), raw(model, X))


@pytest.mark.parametrize("name", ["booster", "booster, binary"])
def test_a_model_without_trees(name, friedman):
    X, y = friedman
    booster = MODELS[name](0).fit(X, y > np.mean(y), rounds=0)
    forest = fp.Forest.from_model(booster)
    assert forest.n_trees == 0
    same(forest.predict(X), raw(booster, X))
    same(raw(forest.to_native(), X), raw(booster, X))


@pytest.mark.parametrize(
    ("name", "predicts"),
    [
        ("gbtree", "y"),
        ("booster, absolute error", "y"),
        ("quantile", "the 0.8 quantile of y"),
        ("gamma", "the log of the mean of y"),
        ("logistic", "the log-odds of y"),
        ("booster, binary", "the log-odds of y"),
    ],
)
def test_what_the_sum_stands_for(name, predicts, friedman):
    X, y = friedman
    model = MODELS[name](0).fit(X, target(name, y))
    assert fp.Forest.from_model(model).origin.predicts == predicts


def test_number_of_features_is_not_that_of_the_splits():
    X = np.zeros((20, N_FEATURES))
    X[:, 0] = np.arange(20)
    forest = fp.Forest.from_model(regressor()(0).fit(X, X[:, 0]))
    assert forest.n_features == forest.to_native().n_features_in_ == N_FEATURES


# Names


def test_names_and_attributes_in_any_script(friedman):
    X, y = friedman
    names = ["größe", "ширина", "a b", 'quo"te', *map(str, range(X.shape[1] - 4))]
    frame = X.set_axis(names, axis=1)
    model = regressor()(0).fit(frame, y)
    model.get_booster().set_attr(note="über")
    native = fp.prune(model, frame, y, max_nodes=60).to_native()
    assert list(native.feature_names_in_) == names
    assert native.get_booster().attr("note") == "über"
    assert native.predict(frame).shape == y.shape


@pytest.mark.parametrize("names", [["x", "y", "z", "ü"], ["Köln", "Berlin", "Bonn", "München"]])
def test_names_of_categories_that_xgboost_damages_are_refused(names):
    if not hasattr(xgb.DMatrix, "get_categories"):
        pytest.skip("older versions do not keep names of categories")
    rng = np.random.default_rng(0)
    chosen = rng.integers(0, 4, 100)
    frame = pd.DataFrame({"c": pd.Categorical(np.array(names)[chosen])})
    model = regressor(enable_categorical=True)(0).fit(frame, chosen)
    with pytest.raises(fp.UnsupportedModelError, match=r"Feature 'c' .*letters outside ASCII"):
        fp.Forest.from_model(model)


def test_a_number_for_missing_values_does_not_go_with_names_of_categories():
    if not hasattr(xgb.DMatrix, "get_categories"):
        pytest.skip("older versions do not keep names of categories")
    frame = pd.DataFrame({"c": pd.Categorical(list("uvw") * 20), "n": np.arange(60.0)})
    model = regressor(enable_categorical=True, missing=0)(0).fit(frame, np.arange(60.0))
    with pytest.raises(fp.UnsupportedModelError, match=r"here missing=0.*Put NaN into the data"):
        fp.Forest.from_model(model)


def test_a_base_margin_is_refused(friedman):
    X, y = friedman
    forest = fp.Forest.from_model(regressor()(0).fit(X, y))
    rows = xgb.DMatrix(X, base_margin=np.ones(len(X)))
    with pytest.raises(ValueError, match=r"without a base margin is required.*rates for y"):
        forest.predict(rows)
