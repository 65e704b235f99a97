"""Histogram-based boosting of classes in and out: scikit-learn's raw predictions are the truth."""

import json
import pickle
from dataclasses import asdict, replace

import joblib
import numpy as np
import pandas as pd
import pytest
from effort import examples
from exported import predicts_alone
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted
from strategies import probing_rows, training_sets
from threadpoolctl import threadpool_limits

import forestprune as fp
from forestprune.forest.origin import origin_from_metadata


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Fits this small are done before the threads have met; on a busy machine they wait long."""
    with threadpool_limits(1, user_api="openmp"):
        yield


def boosted(**params):
    defaults = {"max_iter": 3, "min_samples_leaf": 2, "learning_rate": 0.5, "random_state": 0}
    return HistGradientBoostingClassifier(**defaults | params)


MODELS = {
    "plain": boosted,
    "balanced": lambda: boosted(class_weight="balanced"),
    "early stopping": lambda: boosted(
        max_iter=20, early_stopping=True, n_iter_no_change=2, validation_fraction=None
    ),
    "scored": lambda: boosted(early_stopping=True, validation_fraction=None, scoring="accuracy"),
    "few bins": lambda: boosted(max_bins=3, max_leaf_nodes=5, l2_regularization=1.0),
}
LABELS = {
    "strings": np.array(["no", "yes", "perhaps"]),
    "objects": np.array(["no", "yes", "perhaps"], dtype=object),
    "numbers": np.array([7, -3, 12]),
    "whole floats": np.array([1.0, 2.0, 5.0]),
    "truth values": np.array([False, True]),
}
CASES = [(name, n) for name in MODELS for n in (2, 3)]


@st.composite
def fitted(draw, name):
    """Draw a training set of numbers and fit the model called `name` to it."""
    X, y, weight = draw(training_sets(missing=True))
    n_classes = draw(st.sampled_from([2, 3]))
    labels = LABELS[draw(st.sampled_from([k for k, v in LABELS.items() if len(v) >= n_classes]))]
    X = np.tile(X, (8, 1))[: max(16, len(X))]
    X[:, np.isnan(X).all(axis=0)] = 0.0  # a column must not be missing altogether
    numbers = np.floor(np.resize(np.abs(y) * 3, len(X))).astype(int) % n_classes
    numbers[:n_classes] = np.arange(n_classes)
    weight = None if weight is None else np.resize(weight, len(X))
    return MODELS[name]().fit(X, labels[numbers], sample_weight=weight), X


def same(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def same_labels(a, b):
    assert a.dtype == b.dtype
    assert a.tolist() == b.tolist()


def same_predictions(forest, native, rows):
    raw = forest.predict(rows)
    same(native.decision_function(rows), raw)
    two = np.column_stack([-raw, raw]) if raw.ndim == 1 else raw
    expected = expit(two) if raw.ndim == 1 else softmax(raw, axis=1)
    same(native.predict_proba(rows), expected)
    top = np.sort(expected, axis=1)
    decided = top[:, -1] - top[:, -2] > 1e-9
    labels = native.classes_[expected.argmax(axis=1)]
    np.testing.assert_array_equal(native.predict(rows)[decided], labels[decided])


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=examples(8))
@given(data=st.data())
def test_in_and_out_predict_what_the_library_does(name, data):
    model, X = data.draw(fitted(name))
    before = joblib.hash(model)
    forest = fp.Forest.from_model(model)
    native = forest.to_native()
    rows = probing_rows(forest, X)
    rows[:: len(rows) // 3 + 1, 0] = np.nan
    np.testing.assert_allclose(forest.predict(rows), model.decision_function(rows), rtol=1e-13)
    assert joblib.hash(model) == before
    assert type(native) is type(model)
    same_predictions(forest, native, rows)
    same(native.predict_proba(rows), model.predict_proba(rows))
    same_labels(native.classes_, model.classes_)
    if forest.depths.all():
        np.testing.assert_array_equal(fp.Forest.from_model(native).value, forest.value)


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=examples(8))
@given(data=st.data())
def test_pruned_models_predict_what_the_pruned_forest_does(name, data):
    model, X = data.draw(fitted(name))
    forest = fp.Forest.from_model(model)
    depths = data.draw(
        st.just(0) | st.lists(st.integers(0, 3), min_size=forest.n_trees, max_size=forest.n_trees)
    )
    cut = forest.truncate(np.array(depths, dtype=int))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    pruned = replace(
        cut,
        value=cut.value + rng.normal(size=cut.value.shape),
        scale=rng.normal(size=cut.n_trees),
        base=rng.normal(size=cut.n_outputs),
    )
    rows = probing_rows(forest, X)
    compact = pruned.compact()
    for each in (pruned, compact):
        native = each.to_native()
        same_predictions(each, native, rows)
        same(fp.Forest.from_model(native).predict(rows), each.predict(rows))
    n_outputs = compact.n_outputs
    output = compact.tree_output if n_outputs > 1 else np.zeros(compact.n_trees, int)
    n_rounds = max(1, np.bincount(output, minlength=n_outputs).max())
    assert native.n_iter_ == native.max_iter == n_rounds
    assert {len(each) for each in native._predictors} == {n_outputs}
    sizes = [tree.nodes.size for each in native._predictors for tree in each]
    assert sum(sizes) == compact.n_nodes + n_rounds * n_outputs - compact.n_trees


def mixed_table(n_classes=3, labels="strings", m=120, seed=0):
    """Return a data frame with categories between columns of numbers, and labels."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "size": rng.normal(size=m),
            "kind": pd.Categorical(rng.choice(["x", "y", "z"], m)),
            "weight": rng.normal(size=m),
            "class": pd.Categorical(rng.choice([3, 5, 7], m)),
        }
    )
    table.loc[::7, "kind"] = np.nan
    table.loc[::5, "weight"] = np.nan
    score = table["size"] * (table["kind"] == "x") + (table["class"] == 5)
    numbers = pd.qcut(score + 0.3 * rng.normal(size=m), n_classes, labels=False).to_numpy()
    return table, LABELS[labels][:n_classes][numbers]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_categories_go_where_the_library_sends_them(n_classes):
    table, y = mixed_table(n_classes)
    model = boosted().fit(table, y)
    forest = fp.Forest.from_model(model)
    assert forest.input.categories == (None, ("x", "y", "z"), None, (3, 5, 7))
    assert set(forest.feature[forest.category_set >= 0]) <= {1, 3}
    same(forest.predict(table), model.decision_function(table))
    pruned = forest.truncate(2)
    native = pickle.loads(pickle.dumps(pruned.to_native()))
    same_predictions(pruned, native, table)
    assert fp.Forest.from_model(native).input == forest.input


@pytest.mark.parametrize("known", [["a", "b"], ["a", "b", "c", "d", "e"]])
def test_fewer_and_more_categories_than_classes(known):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"kind": pd.Categorical(rng.choice(known, 90), categories=known)})
    y = X["kind"].cat.codes.to_numpy() % 2 + (rng.random(90) < 0.3)
    forest = fp.Forest.from_model(boosted().fit(X, y))
    same_predictions(forest, forest.to_native(), X)


@pytest.mark.parametrize(("name", "n_classes"), CASES)
def test_the_pruned_model_is_a_proper_estimator(name, n_classes):
    table, y = mixed_table(n_classes)
    model = MODELS[name]().fit(table, y)
    pruned = fp.Forest.from_model(model).truncate(1)
    native = pruned.to_native()
    check_is_fitted(native)
    assert list(native.feature_names_in_) == list(table.columns)
    expected = model.get_params() | {"max_iter": native.n_iter_}
    assert clone(native).get_params() == native.get_params() == expected
    # String scores leave a bound method behind in a fitted model.
    assert set(vars(native)) == set(vars(model)) - {"_raw_predict"}
    assert native.n_trees_per_iteration_ == model.n_trees_per_iteration_
    assert type(native._loss) is type(model._loss)
    same_labels(native.classes_, model.classes_)
    if hasattr(model, "_label_encoder"):
        same_labels(native._label_encoder.classes_, model.classes_)
    same_predictions(pruned, native, table)
    for staged in ("predict", "predict_proba", "decision_function"):
        stages = list(getattr(native, f"staged_{staged}")(table))
        assert len(stages) == native.n_iter_
        np.testing.assert_array_equal(stages[-1], getattr(native, staged)(table))
    assert native.score(table, y) == np.mean(native.predict(table) == y)
    with pytest.raises(NotFittedError):
        clone(native).predict(table)
    clone(native).fit(table, y).predict(table)


@pytest.mark.parametrize(("name", "n_classes"), CASES)
def test_training_can_go_on_from_the_pruned_model(name, n_classes):
    table, y = mixed_table(n_classes)
    forest = fp.Forest.from_model(MODELS[name]().fit(table, y))
    depths = np.full(forest.n_trees, 2)
    depths[0] = 0
    native = forest.truncate(depths).to_native()
    kept, before = native.n_iter_, native.predict_proba(table)
    trees = list(native._predictors)
    native.set_params(warm_start=True, max_iter=kept + 2).fit(table, y)
    assert native._predictors[:kept] == trees
    assert native.n_iter_ > kept
    same(list(native.staged_predict_proba(table))[kept - 1], before)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_going_on_without_pruning_makes_the_trees_that_the_original_would_make(n_classes):
    table, y = mixed_table(n_classes)
    model = boosted(class_weight="balanced").fit(table, y)
    native = fp.Forest.from_model(model).to_native()
    for m in (model, native):
        m.set_params(warm_start=True, max_iter=6).fit(table, y)
    same(native.predict_proba(table), model.predict_proba(table))


def test_classes_that_lost_all_trees_get_the_fewest_back():
    table, y = mixed_table(3)
    forest = fp.Forest.from_model(boosted().fit(table, y))
    assert forest.tree_output.tolist() == [0, 1, 2] * 3
    pruned = forest.truncate(np.array([3, 0, 0, 3, 0, 2, 0, 0, 0]))
    native = pruned.to_native()
    grown = [[tree.nodes.size > 1 for tree in each] for each in native._predictors]
    assert grown == [[True, False, True], [True, False, False]]
    same_predictions(pruned, native, table)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_saved_forest_still_goes_back(n_classes, tmp_path):
    table, y = mixed_table(n_classes, "truth values" if n_classes == 2 else "numbers")
    forest = fp.Forest.from_model(boosted(class_weight={0: 2.0, 1: 1.0}).fit(table, y)).truncate(2)
    assert origin_from_metadata(json.loads(json.dumps(asdict(forest.origin)))) == forest.origin
    forest.save(tmp_path / "forest.npz")
    loaded = fp.Forest.load(tmp_path / "forest.npz")
    assert loaded == forest
    native = loaded.to_native()
    same_labels(native.classes_, np.unique(y))
    assert native.class_weight == {0: 2.0, 1: 1.0}
    same_predictions(forest, native, table)
    # Made constant and compacted before it was saved, it has no tree left.
    constant = forest.truncate(0).compact()
    constant.save(tmp_path / "constant.npz")
    native = fp.Forest.load(tmp_path / "constant.npz").to_native()
    same_predictions(constant, native, table)
    assert native.n_iter_ == 1


@pytest.mark.parametrize("n_classes", [2, 3])
def test_files_of_skops_and_joblib(n_classes, tmp_path):
    skops = pytest.importorskip("skops.io")
    table, y = mixed_table(n_classes)
    X = table[["size", "weight"]]
    model = boosted().fit(X, y)
    forest = fp.Forest.from_model(model)
    skops.dump(model, tmp_path / "model.skops")
    if "_loss.CyHalfMultinomialLoss" in skops.get_untrusted_types(file=tmp_path / "model.skops"):
        pytest.skip("older versions name this loss by a module that is not scikit-learn's own")
    assert fp.Forest.from_file(tmp_path / "model.skops") == forest
    native = forest.truncate(1).to_native()
    skops.dump(native, tmp_path / "small.skops")
    joblib.dump(native, tmp_path / "small.joblib")
    for name in ("small.skops", "small.joblib"):
        small = fp.Forest.from_file(tmp_path / name, trust=name.endswith("joblib"))
        same(small.predict(X), forest.truncate(1).predict(X))
    predicts_alone(native, X, tmp_path)


# What the origin says, and what is refused


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_origin_tells_what_the_sums_are(n_classes):
    table, y = mixed_table(n_classes)
    origin = fp.Forest.from_model(boosted().fit(table, y)).origin
    assert origin.link == ("logit" if n_classes == 2 else "softmax")
    assert (origin.objective, origin.response) == ("log_loss", "class")
    assert origin.classes == tuple(np.unique(y).tolist())
    assert origin.class_weight == ()
    assert not origin.averages


@pytest.mark.parametrize(
    ("weight", "expected"),
    [("balanced", "balanced"), ({0: 2, 1: 0.5}, (2.0, 0.5)), ({1: 3.0}, (1.0, 3.0))],
)
def test_weights_go_by_the_number_of_the_class(weight, expected):
    """scikit-learn encodes labels before it weights them here."""
    table, y = mixed_table(2, "numbers")
    try:
        model = boosted(class_weight=weight).fit(table, y)
    except ValueError:
        pytest.skip("this version has labels in their place")
    forest = fp.Forest.from_model(model)
    assert forest.origin.class_weight == expected
    assert forest.to_native().class_weight == weight


def test_weights_weight_the_classes_that_the_origin_says():
    table, y = mixed_table(2, "numbers")  # labels -3 and 7
    X = table[["size"]]
    weighted = boosted(class_weight={0: 2.0, 1: 1.0}).fit(X, y)
    weight = fp.Forest.from_model(weighted).origin.class_weight
    by_hand = boosted().fit(X, y, sample_weight=np.where(y == -3, *weight))
    same(weighted.predict_proba(X), by_hand.predict_proba(X))


def test_constraints_are_about_the_second_class():
    table, y = mixed_table(2)
    model = boosted(monotonic_cst={"size": 1, "weight": -1}).fit(table, y)
    assert fp.Forest.from_model(model).origin.monotone == (1, 0, -1, 0)


def test_a_single_class_is_refused():
    X = np.arange(20.0)[:, np.newaxis]
    try:
        model = boosted().fit(X, ["only"] * 20)
    except ValueError:
        pytest.skip("this version takes no single class")
    with pytest.raises(fp.UnsupportedModelError, match="two classes or more"):
        fp.Forest.from_model(model)


class Stubborn(HistGradientBoostingClassifier):
    def predict(self, X):
        return super().predict(X)[::-1]


def test_subclasses_and_unfitted_models_are_refused():
    table, y = mixed_table(2)
    with pytest.raises(fp.UnsupportedModelError, match="subclass of HistGradientBoostingClass"):
        fp.Forest.from_model(Stubborn(max_iter=2).fit(table, y))
    with pytest.raises(NotFittedError):
        fp.Forest.from_model(HistGradientBoostingClassifier())


def test_forests_that_do_not_fit_their_classes_are_not_written():
    table, y = mixed_table(3)
    forest = fp.Forest.from_model(boosted().fit(table, y))
    two = replace(forest.origin, classes=("a", "b"), classes_dtype="<U1")
    with pytest.raises(fp.UnsupportedModelError, match="3 outputs and 2 classes"):
        replace(forest, origin=two).to_native()
    joint = replace(
        forest, value=np.repeat(forest.value, 3, axis=1), tree_output=np.empty(0, np.int32)
    )
    with pytest.raises(fp.UnsupportedModelError, match="add to one class each"):
        joint.to_native()
