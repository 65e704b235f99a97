"""scikit-learn in and out: the library's own predictions are the truth."""

import io
import json
import pickle
from dataclasses import asdict, replace

import joblib
import matplotlib as mpl
import matplotlib.pyplot as plt
import naive
import numpy as np
import pandas as pd
import pytest
from effort import examples
from exported import predicts_alone
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor, export_text, plot_tree
from sklearn.utils.validation import check_is_fitted
from strategies import probing_rows, training_sets

import forestprune as fp
from forestprune.forest.origin import origin_from_metadata
from forestprune.interop import sklearn_params, sklearn_trees

mpl.use("Agg")

TREES = {
    "tree": lambda seed: DecisionTreeRegressor(random_state=seed),
    "tree, absolute error": lambda seed: DecisionTreeRegressor(
        criterion="absolute_error", max_depth=4, random_state=seed
    ),
    "extra tree": lambda seed: ExtraTreeRegressor(random_state=seed),
}
ENSEMBLES = {
    "random forest": lambda seed: RandomForestRegressor(3, random_state=seed),
    "random forest, no bootstrap": lambda seed: RandomForestRegressor(
        3, bootstrap=False, max_features=1, max_leaf_nodes=6, random_state=seed
    ),
    "extra trees": lambda seed: ExtraTreesRegressor(3, random_state=seed),
    "bagging": lambda seed: BaggingRegressor(n_estimators=3, random_state=seed),
    "bagging, features": lambda seed: BaggingRegressor(
        ExtraTreeRegressor(max_depth=4),
        n_estimators=3,
        max_features=2,
        bootstrap_features=True,
        random_state=seed,
    ),
}
BOOSTED = {
    "boosting": lambda seed: GradientBoostingRegressor(n_estimators=5, random_state=seed),
    "boosting, from zero": lambda seed: GradientBoostingRegressor(
        n_estimators=3, init="zero", subsample=0.6, learning_rate=0.3, random_state=seed
    ),
    "boosting, own constant": lambda seed: GradientBoostingRegressor(
        n_estimators=3, init=DummyRegressor(strategy="median"), random_state=seed
    ),
    "boosting, rate 0": lambda seed: GradientBoostingRegressor(n_estimators=2, learning_rate=0.0),
    "boosting, from zero, rate 0": lambda seed: GradientBoostingRegressor(
        n_estimators=2, init="zero", learning_rate=0.0, random_state=seed
    ),
    "boosting, early end": lambda seed: GradientBoostingRegressor(
        n_estimators=20, n_iter_no_change=1, validation_fraction=0.5, random_state=seed
    ),
    "boosting, absolute error": lambda seed: GradientBoostingRegressor(
        n_estimators=3, loss="absolute_error", random_state=seed
    ),
    "boosting, huber": lambda seed: GradientBoostingRegressor(
        n_estimators=3, loss="huber", alpha=0.8, random_state=seed
    ),
    "boosting, quantile": lambda seed: GradientBoostingRegressor(
        n_estimators=3, loss="quantile", alpha=0.2, random_state=seed
    ),
}
MODELS = TREES | ENSEMBLES | BOOSTED


def takes_missing(name):
    return name not in BOOSTED and "absolute" not in name


def takes_outputs(name):
    return name in TREES | ENSEMBLES


@st.composite
def fitted(draw, name):
    """Draw a training set and fit the model called `name` to it."""
    outputs = draw(st.integers(1, 2)) if takes_outputs(name) else 1
    X, y, weight = draw(training_sets(missing=takes_missing(name), outputs=outputs))
    return MODELS[name](draw(st.integers(0, 99))).fit(X, y, sample_weight=weight), X


def cut_in_place(model, depth):
    """Return a copy of a fitted tree estimator whose splits at `depth` have lost their children."""
    constructor, arguments, state = model.tree_.__reduce__()
    nodes = state["nodes"].copy()
    at = [(0, 0)]
    while at:
        node, level = at.pop()
        if level == depth:
            nodes["left_child"][node] = nodes["right_child"][node] = -1
        elif nodes["left_child"][node] >= 0:
            at += [(nodes[side][node], level + 1) for side in ("left_child", "right_child")]
    tree = constructor(*arguments)
    tree.__setstate__(state | {"nodes": nodes})
    result = pickle.loads(pickle.dumps(model))
    result.tree_ = tree
    return result


def same(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=examples(20))
@given(data=st.data())
def test_in_and_out_predict_what_the_library_does(name, data):
    model, X = data.draw(fitted(name))
    before = joblib.hash(model)
    forest = fp.Forest.from_model(model)
    native = forest.to_native()
    rows = probing_rows(forest, X)
    if takes_missing(name):
        rows[:: len(rows) // 3 + 1, 0] = np.nan
    same(forest.predict(rows), model.predict(rows))
    assert type(native) is type(model)
    same(native.predict(rows), model.predict(rows))
    assert joblib.hash(model) == before
    if forest.depths.all():
        # No tree was a constant, so nothing is rounded on the way.
        np.testing.assert_array_equal(fp.Forest.from_model(native).value, forest.value)


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=examples(20))
@given(data=st.data())
def test_pruned_models_predict_what_the_pruned_forest_does(name, data):
    model, X = data.draw(fitted(name))
    forest = fp.Forest.from_model(model)
    depths = data.draw(
        st.just(0) | st.lists(st.integers(0, 3), min_size=forest.n_trees, max_size=forest.n_trees)
    )
    pruned = forest.truncate(np.array(depths, dtype=int))
    native = pruned.to_native()
    rows = probing_rows(forest, X)
    same(native.predict(rows), pruned.predict(rows))
    again = fp.Forest.from_model(native)
    same(again.predict(rows), pruned.predict(rows))
    trees = np.ravel(getattr(native, "estimators_", [native]))
    assert len(trees) == max(1, pruned.compact().n_trees)
    assert [t.get_depth() for t in trees] == ([d for d in pruned.depths if d] or [0])
    assert sum(t.tree_.node_count for t in trees) == max(1, pruned.compact().n_nodes)


@pytest.mark.parametrize("name", TREES)
@settings(max_examples=examples(20))
@given(data=st.data())
def test_partial_sums_are_the_native_trees_cut_in_place(name, data):
    model, X = data.draw(fitted(name))
    forest = fp.Forest.from_model(model)
    rows = probing_rows(forest, X)
    matrices = fp.depth_difference(forest, rows)[0]
    same(matrices.sum(axis=1), model.predict(rows))
    for depth in range(min(forest.max_depth, 4) + 1):
        expected = cut_in_place(model, depth).predict(rows)
        same(matrices[:, : depth + 1].sum(axis=1), expected)
        same(forest.truncate(depth).to_native().predict(rows), expected)


@pytest.mark.parametrize("name", ["boosting, absolute error", "boosting, huber"])
@settings(max_examples=examples(20))
@given(data=st.data())
def test_other_losses_get_split_values_from_their_leaves(name, data):
    forest = fp.Forest.from_model(data.draw(fitted(name))[0])
    order = [n for root in naive.from_forest(forest) for n in naive.level_order(root)]
    same(forest.value, [naive.average_of_leaves(node)[0] for node in order])


@pytest.fixture(scope="module")
def friedman():
    X, y = make_friedman1(200, n_features=6, random_state=0)
    return pd.DataFrame(X, columns=[f"x{i}" for i in range(6)]), y


@pytest.mark.parametrize("name", MODELS)
def test_the_pruned_model_is_a_proper_estimator(name, friedman):
    X, y = friedman
    model = MODELS[name](0).fit(X, y)
    forest = fp.Forest.from_model(model)
    native = forest.truncate(2).to_native()

    check_is_fitted(native)
    assert list(native.feature_names_in_) == list(X.columns)
    assert native.n_features_in_ == 6
    expected = model.get_params(deep=False)
    if name not in TREES:
        expected["n_estimators"] = len(native.estimators_)
        assert getattr(native, "n_estimators_", native.n_estimators) == native.n_estimators
    assert clone(native).get_params(deep=False).keys() == expected.keys()
    for param, value in native.get_params(deep=False).items():
        assert repr(value) == repr(expected[param])
    assert set(vars(native)) == set(vars(model))
    assert len(pickle.dumps(native)) < len(pickle.dumps(model))
    file = io.BytesIO()
    joblib.dump(native, file)
    file.seek(0)
    same(joblib.load(file).predict(X), native.predict(X))
    if "bagging" not in name:
        np.testing.assert_allclose(native.feature_importances_.sum(), 1.0)
    if hasattr(model, "estimator_"):
        assert repr(native.estimator_) == repr(model.estimator_)
    old, new = (np.ravel(getattr(m, "estimators_", [m]))[0] for m in (model, native))
    assert repr(new) == repr(old) or isinstance(old.random_state, np.random.RandomState)
    for attribute in ("max_features_", "n_features_in_", "n_outputs_"):
        assert getattr(new, attribute) == getattr(old, attribute)
    clone(native).fit(X, y).predict(X)


def test_what_only_training_knew_is_not_claimed(friedman):
    forest = RandomForestRegressor(60, oob_score=True, random_state=0).fit(*friedman)
    native = fp.Forest.from_model(forest).truncate(2).to_native()
    assert set(vars(forest)) - set(vars(native)) == {"oob_score_", "oob_prediction_"}
    boosted = GradientBoostingRegressor(n_estimators=4, subsample=0.5).fit(*friedman)
    native = fp.Forest.from_model(boosted).truncate(np.array([2, 0, 2, 0])).to_native()
    for name in ("train_score_", "oob_scores_", "oob_improvement_"):
        assert getattr(native, name).shape == (2,)
        assert np.isnan(getattr(native, name)).all()


@pytest.mark.parametrize("name", [name for name in MODELS if name not in TREES])
def test_training_can_go_on_from_the_pruned_model(name, friedman):
    X, y = friedman
    native = fp.Forest.from_model(MODELS[name](0).fit(X, y)).truncate(2).to_native()
    kept = len(native.estimators_)
    trees = np.ravel(native.estimators_)[:kept].tolist()
    native.set_params(warm_start=True, n_estimators=kept + 3).fit(X, y)
    assert np.ravel(native.estimators_)[:kept].tolist() == trees
    assert len(native.estimators_) == kept + 3 or name == "boosting, early end"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("depth", [0, 2])
@pytest.mark.parametrize("name", MODELS)
def test_the_pruned_trees_can_be_drawn(name, depth, friedman):
    native = fp.Forest.from_model(MODELS[name](0).fit(*friedman)).truncate(depth).to_native()
    for tree in np.ravel(getattr(native, "estimators_", [native])):
        _, axes = plt.subplots()
        boxes = plot_tree(tree, ax=axes)
        assert len([box for box in boxes if "value" in box.get_text()]) == tree.tree_.node_count
        plt.close()


def test_trees_keep_their_statistics(friedman):
    X, y = friedman
    model = RandomForestRegressor(2, random_state=0).fit(X, y)
    for old, new in zip(
        model.estimators_,
        fp.Forest.from_model(model).truncate(3).to_native().estimators_,
        strict=True,
    ):
        assert new.random_state == old.random_state
        pairs = [(0, 0)]
        while pairs:
            a, b = pairs.pop()
            for name in ("impurity", "n_node_samples", "weighted_n_node_samples", "value"):
                assert getattr(new.tree_, name)[b] == getattr(old.tree_, name)[a]
            if new.tree_.children_left[b] >= 0:
                for side in ("children_left", "children_right"):
                    pairs.append((getattr(old.tree_, side)[a], getattr(new.tree_, side)[b]))
        assert new.get_n_leaves() == new.tree_.n_leaves == np.sum(new.tree_.children_left < 0)
        assert new.tree_.max_depth == 3
        # As text, it is the original down to that depth.
        old_text = export_text(old, max_depth=2).splitlines()
        new_text = export_text(new, max_depth=2).splitlines()
        splits = [line for line in old_text if "truncated" not in line and "value" not in line]
        assert [line for line in new_text if "value" not in line] == splits


@pytest.mark.parametrize("name", ["random forest", "bagging, features"])
def test_the_rows_of_each_tree_are_still_known(name, friedman):
    X, y = friedman
    model = MODELS[name](0).fit(X, y)
    native = fp.Forest.from_model(model).truncate(np.array([2, 0, 2])).to_native()
    assert len(native.estimators_samples_) == 2
    for old, new in zip((0, 2), (0, 1), strict=True):
        np.testing.assert_array_equal(
            native.estimators_samples_[new], model.estimators_samples_[old]
        )


def test_with_sample_weights_the_rows_of_each_tree_are_not_known(friedman):
    """They were drawn by weight, and the weights of the training rows stay behind."""
    X, y = friedman
    model = RandomForestRegressor(2, random_state=0).fit(X, y, sample_weight=y)
    native = fp.Forest.from_model(model).truncate(2).to_native()
    if hasattr(model, "_sample_weight"):
        with pytest.raises(AttributeError, match="_sample_weight"):
            _ = native.estimators_samples_
    else:  # older versions draw rows without looking at their weights
        for old, new in zip(model.estimators_samples_, native.estimators_samples_, strict=True):
            np.testing.assert_array_equal(new, old)


def test_a_tree_cut_to_its_root_keeps_its_statistics(friedman):
    model = RandomForestRegressor(2, random_state=0).fit(*friedman)
    tree = fp.Forest.from_model(model).truncate(0).to_native().estimators_[0]
    assert tree.random_state == model.estimators_[0].random_state
    for name in ("impurity", "n_node_samples", "weighted_n_node_samples"):
        assert getattr(tree.tree_, name)[0] == getattr(model.estimators_[0].tree_, name)[0]


def test_exports_share_nothing_with_the_forest(friedman):
    X, y = friedman
    model = RandomForestRegressor(2, monotonic_cst=[1, 0, 0, 0, 0, 0], random_state=0).fit(X, y)
    forest = fp.Forest.from_model(model)
    native = forest.to_native()
    native.monotonic_cst[0] = -1
    native.estimators_[0].tree_.value[:] = 0
    assert forest.to_native().monotonic_cst[0] == 1
    same(forest.predict(X), model.predict(X))


@pytest.mark.parametrize("extra", ["left_child", "right_child", "feature", "mine"])
def test_extras_cannot_replace_what_was_checked(extra, friedman):
    """A file may hold any extra; trees with wild children would crash scikit-learn."""
    X, y = friedman
    forest = fp.Forest.from_model(DecisionTreeRegressor(max_depth=3).fit(X, y))
    wild = np.full(forest.n_nodes, 10**9)
    forged = replace(forest, node_extras=dict(forest.node_extras) | {extra: wild})
    same(forged.to_native().predict(X), forest.predict(X))
    constant = forged.truncate(0).compact()
    same(constant.to_native().predict(X), constant.predict(X))


def test_attributes_cannot_contradict_the_trees(friedman):
    X, y = friedman
    forest = fp.Forest.from_model(DecisionTreeRegressor(max_depth=3).fit(X, y))
    state = dict(forest.origin.state)
    state["attributes"] = {"n_features_in_": 1, "n_outputs_": 9, "__class__": "x"}
    native = replace(forest, origin=replace(forest.origin, state=state)).to_native()
    assert (native.n_features_in_, native.n_outputs_) == (6, 1)
    with pytest.raises(fp.UnsupportedModelError, match="can be written, not 'Forest'"):
        replace(forest, origin=fp.Origin("sklearn", "Forest")).to_native()
    sets = {"category_set": np.full(forest.n_nodes, -1), "set_offsets": np.array([0])}
    with pytest.raises(fp.UnsupportedModelError, match="categorical splits"):
        replace(forest, **sets).to_native()
    with pytest.raises(TypeError, match="library must be a string"):
        fp.Origin(["sklearn"], "Forest")


@pytest.mark.parametrize("name", MODELS)
def test_a_saved_forest_still_goes_back(name, friedman, tmp_path):
    X, y = friedman
    forest = fp.Forest.from_model(MODELS[name](0).fit(X, y)).truncate(2)
    assert origin_from_metadata(json.loads(json.dumps(asdict(forest.origin)))) == forest.origin
    forest.save(tmp_path / "forest.npz")
    native = fp.Forest.load(tmp_path / "forest.npz").to_native()
    same(native.predict(X), forest.predict(X))
    # Made constant and compacted before it was saved, it has no tree left.
    forest.truncate(0).compact().save(tmp_path / "constant.npz")
    constant = fp.Forest.load(tmp_path / "constant.npz").to_native()
    same(constant.predict(X), forest.truncate(0).predict(X))
    assert len(np.unique(constant.predict(X))) == 1


def test_the_model_predicts_where_the_package_is_not_installed(friedman, tmp_path):
    X, y = friedman
    native = fp.Forest.from_model(RandomForestRegressor(3).fit(X, y)).truncate(2).to_native()
    predicts_alone(native, X, tmp_path)


def test_a_split_on_being_missing_has_no_finite_threshold():
    X = np.array([[1.0], [2.0], [np.nan], [np.nan]])
    model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 1.0, 1.0])
    assert np.isinf(model.tree_.threshold[0])
    forest = fp.Forest.from_model(model)
    assert np.isfinite(forest.threshold).all()
    rows = np.array([[np.nan], [np.finfo(np.float32).max], [-5.0]])
    same(forest.predict(rows), model.predict(rows))
    native = forest.to_native()
    assert np.isinf(native.tree_.threshold[0])
    same(native.predict(rows), model.predict(rows))


def test_a_threshold_that_is_nan_sends_every_number_right():
    X = np.array([[1.0], [2.0], [np.nan], [np.nan]])
    model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 1.0, 1.0])
    constructor, arguments, state = model.tree_.__reduce__()
    nodes = state["nodes"].copy()
    nodes["threshold"][0] = np.nan
    nodes["missing_go_to_left"][0] = 1
    model.tree_ = constructor(*arguments)
    model.tree_.__setstate__(state | {"nodes": nodes})
    rows = np.array([[np.nan], [np.finfo(np.float32).min], [np.finfo(np.float32).max]])
    forest = fp.Forest.from_model(model)
    same(forest.predict(rows), model.predict(rows))
    same(forest.to_native().predict(rows), model.predict(rows))


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_inputs_are_accepted_as_the_library_accepts_them(friedman):
    X, y = friedman
    missing = X.copy()
    missing.iloc[0, 0] = np.nan
    infinite = X.copy()
    infinite.iloc[0] = np.inf
    for name in MODELS:
        model = MODELS[name](0).fit(X, y)
        forest = fp.Forest.from_model(model)
        for rows in (X, missing, infinite, X * 1e300):
            try:
                expected = model.predict(rows)
            except ValueError:
                with pytest.raises(ValueError, match=r"NaN|infinity"):
                    forest.predict(rows)
            else:
                same(forest.predict(rows), expected)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (AdaBoostRegressor(n_estimators=2), "weighted median"),
        (AdaBoostClassifier(n_estimators=2), "only sums of leaves can be pruned"),
        (LinearRegression(), "required, got LinearRegression"),
        (BaggingRegressor(LinearRegression(), n_estimators=2), "got LinearRegression"),
        (
            GradientBoostingRegressor(n_estimators=2, init=LinearRegression()),
            "starts from a constant.*LinearRegression",
        ),
        (GridSearchCV(RandomForestRegressor(2), {"max_depth": [1]}), "best_estimator_"),
    ],
)
def test_what_cannot_be_read_is_refused(model, message, friedman):
    X, y = friedman
    model.fit(X, y > np.median(y) if isinstance(model, AdaBoostClassifier) else y)
    with pytest.raises(fp.UnsupportedModelError, match=message):
        fp.Forest.from_model(model)


class ShiftedDummyRegressor(DummyRegressor):
    def predict(self, X):
        return super().predict(X) + 1


ShiftedDummyRegressor.__name__ = "DummyRegressor"


def test_only_the_real_constant_is_taken_for_one(friedman):
    model = GradientBoostingRegressor(n_estimators=2, init=ShiftedDummyRegressor()).fit(*friedman)
    with pytest.raises(fp.UnsupportedModelError, match="starts from a constant"):
        fp.Forest.from_model(model)


def test_bagging_with_subsets_of_different_size_is_refused(friedman):
    model = BaggingRegressor(n_estimators=2, max_features=2, warm_start=True).fit(*friedman)
    model.set_params(max_features=3, n_estimators=4).fit(*friedman)
    with pytest.raises(fp.UnsupportedModelError, match="same number of features"):
        fp.Forest.from_model(model)


class Stubborn(RandomForestRegressor):
    def predict(self, X):
        return super().predict(X) + 1


def test_a_subclass_may_predict_differently_and_is_refused(friedman):
    with pytest.raises(fp.UnsupportedModelError, match="subclass of RandomForestRegressor"):
        fp.Forest.from_model(Stubborn(2).fit(*friedman))


@pytest.mark.parametrize("name", MODELS)
def test_an_unfitted_model_is_refused(name):
    with pytest.raises(NotFittedError):
        fp.Forest.from_model(MODELS[name](0))


def test_node_fields_of_the_future_are_refused(friedman, monkeypatch):
    """A field that routing would have to know must not be ignored."""
    model = DecisionTreeRegressor(max_depth=2).fit(*friedman)
    monkeypatch.setattr(
        sklearn_trees, "_NODE_FIELDS", sklearn_trees._NODE_FIELDS - {"n_node_samples"}
    )
    with pytest.raises(fp.UnsupportedModelError, match="store 'n_node_samples'"):
        fp.Forest.from_model(model)


def test_a_random_generator_as_parameter_becomes_none(friedman):
    model = RandomForestRegressor(2, random_state=np.random.RandomState(0)).fit(*friedman)
    assert fp.Forest.from_model(model).to_native().random_state is None


def test_parameters_that_json_cannot_hold_are_refused():
    with pytest.raises(fp.UnsupportedModelError, match="criterion must be a plain value"):
        sklearn_params.encoded("criterion", object())


@pytest.mark.parametrize("constraint", [[1, 0, -1], np.array([1, 0, -1])])
def test_constraints_are_carried_over(constraint):
    rng = np.random.default_rng(0)
    model = RandomForestRegressor(2, monotonic_cst=constraint, random_state=0)
    model.fit(rng.normal(size=(50, 3)), rng.normal(size=50))
    assert fp.Forest.from_model(model).to_native().monotonic_cst == [1, 0, -1]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("y", [[2.5], [2.5, 2.5, 2.5]])
def test_one_row_and_a_constant_target(name, y):
    if len(y) == 1 and name in ("boosting, early end", "boosting, from zero"):
        pytest.skip("scikit-learn cannot set rows aside when there is one")
    X = np.zeros((len(y), 2))
    forest = fp.Forest.from_model(MODELS[name](0).fit(X, y))
    same(forest.predict(X), y if "from zero" not in name else forest.to_native().predict(X))
    same(forest.to_native().predict(X), forest.predict(X))
