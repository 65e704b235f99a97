"""scikit-learn's classifiers in and out: the library's own probabilities are the truth."""

import io
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
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier, export_text
from sklearn.utils.validation import check_is_fitted
from strategies import probing_rows, training_sets

import forestprune as fp
from forestprune.forest.origin import origin_from_metadata
from forestprune.interop import sklearn_params
from forestprune.interop.sklearn_classes import in_rounds, shares_of

TREES = {
    "tree": lambda seed: DecisionTreeClassifier(random_state=seed),
    "tree, entropy": lambda seed: DecisionTreeClassifier(
        criterion="entropy", max_depth=3, class_weight="balanced", random_state=seed
    ),
    "extra tree": lambda seed: ExtraTreeClassifier(random_state=seed),
}
ENSEMBLES = {
    "random forest": lambda seed: RandomForestClassifier(3, max_depth=4, random_state=seed),
    "random forest, weighted": lambda seed: RandomForestClassifier(
        3, class_weight="balanced_subsample", max_leaf_nodes=6, random_state=seed
    ),
    "extra trees": lambda seed: ExtraTreesClassifier(3, criterion="log_loss", random_state=seed),
    "bagging": lambda seed: BaggingClassifier(n_estimators=3, random_state=seed),
    "bagging, features": lambda seed: BaggingClassifier(
        ExtraTreeClassifier(max_depth=4),
        n_estimators=4,
        max_samples=6,
        max_features=2,
        bootstrap_features=True,
        random_state=seed,
    ),
}
BOOSTED = {
    "boosting": lambda seed: GradientBoostingClassifier(n_estimators=3, random_state=seed),
    "boosting, from zero": lambda seed: GradientBoostingClassifier(
        n_estimators=3, init="zero", subsample=0.6, learning_rate=0.3, random_state=seed
    ),
    "boosting, own constant": lambda seed: GradientBoostingClassifier(
        n_estimators=2, init=DummyClassifier(strategy="uniform"), random_state=seed
    ),
    "boosting, most frequent": lambda seed: GradientBoostingClassifier(
        n_estimators=2, init=DummyClassifier(strategy="most_frequent"), random_state=seed
    ),
    "boosting, rate 0": lambda seed: GradientBoostingClassifier(
        n_estimators=2, learning_rate=0.0, random_state=seed
    ),
}
MODELS = TREES | ENSEMBLES | BOOSTED
EXPONENTIAL = {
    "boosting, exponential": lambda seed: GradientBoostingClassifier(
        n_estimators=3, loss="exponential", random_state=seed
    )
}
LABELS = {
    "strings": np.array(["no", "yes", "perhaps"]),
    "objects": np.array(["no", "yes", "perhaps"], dtype=object),
    "numbers": np.array([7, -3, 12]),
    "small numbers": np.array([0, 1, 2], dtype=np.int8),
    "whole floats": np.array([1.0, 2.0, 5.0]),
    "truth values": np.array([False, True]),
}


def make(name, seed=0):
    return (MODELS | EXPONENTIAL)[name](seed)


def takes_missing(name):
    return name not in BOOSTED | EXPONENTIAL


@st.composite
def fitted(draw, name):
    """Draw a training set and fit the classifier called `name` to it."""
    X, y, weight = draw(training_sets(missing=takes_missing(name)))
    n_classes = 2 if name in EXPONENTIAL else draw(st.sampled_from([2, 3]))
    kinds = [kind for kind, labels in LABELS.items() if len(labels) >= n_classes]
    labels = LABELS[draw(st.sampled_from(kinds))]
    X = np.tile(X, (3, 1))[: max(6, len(X))]  # rows enough for each class
    weight = None if weight is None else np.resize(weight, len(X))
    # Each class comes with weight, so the first rows are one of each.
    numbers = np.floor(np.resize(np.abs(y) * 3, len(X))).astype(int) % n_classes
    numbers[:n_classes] = np.arange(n_classes)
    return make(name, draw(st.integers(0, 99))).fit(X, labels[numbers], sample_weight=weight), X


def raw_of(model, X):
    """Return what the forest should say: the raw sums, or for averages probabilities."""
    if isinstance(model, GradientBoostingClassifier):
        return model.decision_function(X)
    shares = model.predict_proba(X)
    return shares[:, 1] if shares.shape[1] == 2 else shares


def probabilities(forest, raw):
    """Return the probabilities that the origin of a forest promises for raw predictions."""
    origin = forest.origin
    if origin.link == "softmax":
        return softmax(raw, axis=1)
    if origin.link == "logit":
        raw = expit(raw * origin.objective_params.get("sigmoid", 1.0))
    return raw if raw.ndim == 2 else np.column_stack([1.0 - raw, raw])


def same(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def same_predictions(forest, native, rows):
    """Assert that a model says what a forest does, by every method that it has."""
    raw = forest.predict(rows)
    expected = probabilities(forest, raw)
    same(raw_of(native, rows), raw)
    same(native.predict_proba(rows), expected)
    top = np.sort(expected, axis=1)
    decided = top[:, -1] - top[:, -2] > 1e-9  # a tie may be broken by the last bit
    labels = native.classes_[expected.argmax(axis=1)]
    np.testing.assert_array_equal(native.predict(rows)[decided], labels[decided])


def same_labels(a, b):
    assert a.dtype == b.dtype
    assert a.tolist() == b.tolist()


def trees_of(model):
    return np.ravel(getattr(model, "estimators_", [model]))


@pytest.mark.parametrize("name", MODELS | EXPONENTIAL)
@settings(max_examples=examples(10))
@given(data=st.data())
def test_in_and_out_predict_what_the_library_does(name, data):
    model, X = data.draw(fitted(name))
    before = joblib.hash(model)
    forest = fp.Forest.from_model(model)
    native = forest.to_native()
    rows = probing_rows(forest, X)
    if takes_missing(name):
        rows[:: len(rows) // 3 + 1, 0] = np.nan
    same(forest.predict(rows), raw_of(model, rows))
    same(probabilities(forest, forest.predict(rows)), model.predict_proba(rows))
    assert joblib.hash(model) == before
    assert type(native) is type(model)
    same_predictions(forest, native, rows)
    same_labels(native.classes_, model.classes_)
    # Of a start at which scikit-learn clips probabilities, a rest goes to the first trees.
    if forest.depths.all() and name != "boosting, most frequent":
        # Shares of weighted rows do not quite add up to 1 in scikit-learn; those written do.
        bits = 0.0 if name in BOOSTED | EXPONENTIAL else 1e-14
        again = fp.Forest.from_model(native)
        np.testing.assert_allclose(again.value, forest.value, rtol=bits, atol=0.0)


@pytest.mark.parametrize("name", MODELS | EXPONENTIAL)
@settings(max_examples=examples(10))
@given(data=st.data())
def test_pruned_models_predict_what_the_pruned_forest_does(name, data):
    model, X = data.draw(fitted(name))
    forest = fp.Forest.from_model(model)
    depths = data.draw(
        st.just(0) | st.lists(st.integers(0, 3), min_size=forest.n_trees, max_size=forest.n_trees)
    )
    pruned = forest.truncate(np.array(depths, dtype=int))
    if name in BOOSTED and model.learning_rate > 0:
        # Sums may be any numbers, also such as are no log of a probability.
        rng = np.random.default_rng(data.draw(st.integers(0, 99)))
        pruned = replace(
            pruned,
            value=pruned.value + rng.normal(size=pruned.value.shape),
            scale=rng.normal(size=pruned.n_trees),
            base=rng.normal(size=pruned.n_outputs) * data.draw(st.sampled_from([1.0, 50.0])),
        )
    compact = pruned.compact()
    rows = probing_rows(forest, X)
    for each in (pruned, compact):
        native = each.to_native()
        if name == "boosting, rate 0":  # there no tree says anything
            same(native.predict_proba(rows), model.predict_proba(rows))
        else:
            same_predictions(each, native, rows)
            same(fp.Forest.from_model(native).predict(rows), each.predict(rows))
    grown = [tree for tree in trees_of(native) if tree.tree_.node_count > 1]
    assert len(grown) == compact.n_trees
    assert sum(tree.tree_.node_count for tree in grown) == compact.n_nodes
    by_class = np.bincount(compact.tree_output, minlength=1) if compact.tree_output.size else [0]
    n_rounds = max([1, *by_class]) if pruned.tree_output.size else max(1, compact.n_trees)
    per_round = compact.n_outputs if name in BOOSTED else 1
    assert len(trees_of(native)) == n_rounds * per_round
    same_labels(native.classes_, model.classes_)


def table(n_classes=3, labels="strings", seed=0, rows=90):
    """Return a data frame and labels of so many classes."""
    X, y = make_classification(
        rows,
        n_features=5,
        n_informative=4,
        n_redundant=0,
        n_classes=n_classes,
        n_clusters_per_class=1,
        flip_y=0.2,
        random_state=seed,
    )
    frame = pd.DataFrame(X.astype(np.float32), columns=[f"x{i}" for i in range(5)])
    return frame, LABELS[labels][:n_classes][y]


CASES = [(name, n) for name in MODELS for n in (2, 3)] + [(name, 2) for name in EXPONENTIAL]


@pytest.mark.parametrize(("name", "n_classes"), CASES)
def test_the_pruned_model_is_a_proper_estimator(name, n_classes, tmp_path):
    X, y = table(n_classes)
    model = make(name).fit(X, y)
    forest = fp.Forest.from_model(model)
    pruned = forest.truncate(2)
    native = pruned.to_native()

    check_is_fitted(native)
    assert list(native.feature_names_in_) == list(X.columns)
    assert native.n_features_in_ == 5
    expected = model.get_params(deep=False)
    if name not in TREES:
        expected["n_estimators"] = len(native.estimators_)
        assert getattr(native, "n_estimators_", native.n_estimators) == native.n_estimators
    for param, value in clone(native).get_params(deep=False).items():
        assert repr(value) == repr(expected[param])
    assert set(vars(native)) == set(vars(model))
    for attribute in ("n_classes_", "n_outputs_", "n_trees_per_iteration_", "max_features_"):
        if hasattr(model, attribute):
            assert getattr(native, attribute) == getattr(model, attribute)
            assert type(getattr(native, attribute)) is type(getattr(model, attribute))
    same_labels(native.classes_, model.classes_)
    if hasattr(model, "estimator_"):
        assert repr(native.estimator_) == repr(model.estimator_)
    old, new = trees_of(model)[0], trees_of(native)[0]
    assert set(vars(old)) == set(vars(new))
    if hasattr(old, "classes_") and "features" not in name:
        same_labels(new.classes_, old.classes_)
        assert new.n_classes_ == old.n_classes_
        assert type(new.n_classes_) is type(old.n_classes_)
    assert new.tree_.value.shape[1:] == (1, n_classes if name not in BOOSTED | EXPONENTIAL else 1)

    same_predictions(pruned, native, X)
    with np.errstate(divide="ignore"):
        same(native.predict_log_proba(X), np.log(native.predict_proba(X)))
    assert native.score(X, y) == np.mean(native.predict(X) == y)
    if "bagging" not in name and name != "boosting, rate 0":
        np.testing.assert_allclose(native.feature_importances_.sum(), 1.0)
    if name in BOOSTED | EXPONENTIAL:
        for staged in ("predict", "predict_proba", "decision_function"):
            last = list(getattr(native, f"staged_{staged}")(X))[-1]
            expected = np.reshape(getattr(native, staged)(X), last.shape)
            np.testing.assert_array_equal(last, expected)

    same_predictions(pruned, pickle.loads(pickle.dumps(native)), X)
    file = io.BytesIO()
    joblib.dump(native, file)
    file.seek(0)
    np.testing.assert_array_equal(joblib.load(file).predict(X), native.predict(X))
    with pytest.raises(NotFittedError):
        clone(native).predict(X.to_numpy())
    clone(native).fit(X, y).predict(X)


@pytest.mark.parametrize(("name", "n_classes"), CASES)
def test_a_saved_forest_still_goes_back(name, n_classes, tmp_path):
    X, y = table(n_classes, "truth values" if n_classes == 2 else "numbers")
    forest = fp.Forest.from_model(make(name).fit(X, y)).truncate(2)
    assert origin_from_metadata(json.loads(json.dumps(asdict(forest.origin)))) == forest.origin
    forest.save(tmp_path / "forest.npz")
    loaded = fp.Forest.load(tmp_path / "forest.npz")
    assert loaded == forest
    same_labels(loaded.to_native().classes_, np.unique(y))
    same_predictions(forest, loaded.to_native(), X)
    # Made constant and compacted before it was saved, it has no tree left.
    constant = forest.truncate(0).compact()
    constant.save(tmp_path / "constant.npz")
    native = fp.Forest.load(tmp_path / "constant.npz").to_native()
    same_predictions(constant, native, X)
    assert len(trees_of(native)) == (3 if name in BOOSTED and n_classes == 3 else 1)
    assert len(np.unique(native.predict(X))) == 1


@pytest.mark.parametrize("name", ["tree", "random forest", "bagging, features", "boosting"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_skops_files_hold_them(name, n_classes, tmp_path):
    skops = pytest.importorskip("skops.io")
    X, y = table(n_classes)
    model = make(name).fit(X, y)
    skops.dump(model, tmp_path / "model.skops")
    if "_loss.CyHalfMultinomialLoss" in skops.get_untrusted_types(file=tmp_path / "model.skops"):
        pytest.skip("older versions name this loss by a module that is not scikit-learn's own")
    forest = fp.Forest.from_file(tmp_path / "model.skops")
    assert forest == fp.Forest.from_model(model)
    skops.dump(forest.truncate(2).to_native(), tmp_path / "small.skops")
    small = fp.Forest.from_file(tmp_path / "small.skops")
    same(small.predict(X), forest.truncate(2).predict(X))


@pytest.mark.parametrize(("name", "n_classes"), [case for case in CASES if case[0] not in TREES])
def test_training_can_go_on_from_the_pruned_model(name, n_classes):
    X, y = table(n_classes)
    forest = fp.Forest.from_model(make(name).fit(X, y))
    depths = np.full(forest.n_trees, 2)
    depths[0] = 0
    native = forest.truncate(depths).to_native()
    kept = len(native.estimators_)
    trees = trees_of(native).tolist()
    native.set_params(warm_start=True, n_estimators=kept + 2)
    if "weighted" in name:
        with pytest.warns(UserWarning, match="class_weight presets"):
            native.fit(X, y)
    else:
        native.fit(X, y)
    assert trees_of(native)[: len(trees)].tolist() == trees
    assert len(native.estimators_) == kept + 2
    native.predict_proba(X)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_trees_keep_their_statistics_and_shares(n_classes):
    X, y = table(n_classes)
    model = RandomForestClassifier(2, random_state=0).fit(X, y)
    native = fp.Forest.from_model(model).truncate(3).to_native()
    for old, new in zip(model.estimators_, native.estimators_, strict=True):
        assert new.random_state == old.random_state
        pairs = [(0, 0)]
        while pairs:
            a, b = pairs.pop()
            for name in ("impurity", "n_node_samples", "weighted_n_node_samples"):
                assert getattr(new.tree_, name)[b] == getattr(old.tree_, name)[a]
            same(new.tree_.value[b], old.tree_.value[a])
            assert abs(new.tree_.value[b].sum() - 1.0) < 1e-15
            if new.tree_.children_left[b] >= 0:
                for side in ("children_left", "children_right"):
                    pairs.append((getattr(old.tree_, side)[a], getattr(new.tree_, side)[b]))
        splits = [line for line in export_text(old, max_depth=2).splitlines() if "<=" in line]
        assert [line for line in export_text(new).splitlines() if "<=" in line] == splits


def test_classes_that_lost_all_trees_get_the_fewest_back():
    X, y = table(3)
    forest = fp.Forest.from_model(make("boosting").fit(X, y))
    assert forest.tree_output.tolist() == [0, 1, 2] * 3
    depths = np.array([3, 0, 0, 3, 0, 2, 0, 0, 0])
    pruned = forest.truncate(depths)
    native = pruned.to_native()
    counts = [[tree.tree_.node_count for tree in each] for each in native.estimators_]
    assert [[count > 1 for count in each] for each in counts] == [
        [True, False, True],
        [True, False, False],
    ]
    same_predictions(pruned, native, X)
    assert np.isfinite(native.feature_importances_).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_bags_that_lack_classes(n_classes):
    """A tree may know only the classes in its bag; the forest and what is written know all."""
    X, y = table(n_classes, rows=40)
    model = BaggingClassifier(n_estimators=3, random_state=0).fit(X, y)
    rows, numbers = X.to_numpy(), np.unique(y, return_inverse=True)[1]
    for place, chosen in enumerate((numbers == 1, numbers != 1)):
        model.estimators_[place].fit(rows[chosen], numbers[chosen])
    assert [len(tree.classes_) for tree in model.estimators_] == [1, n_classes - 1, n_classes]
    forest = fp.Forest.from_model(model)
    same(forest.predict(X), raw_of(model, X))
    native = forest.to_native()
    same(native.predict_proba(X), model.predict_proba(X))
    assert all(tree.classes_.tolist() == list(range(n_classes)) for tree in native.estimators_)


# What the origin says


@pytest.mark.parametrize(("name", "n_classes"), CASES)
def test_the_origin_tells_what_the_sums_are(name, n_classes):
    X, y = table(n_classes)
    forest = fp.Forest.from_model(make(name).fit(X, y))
    origin = forest.origin
    assert origin.classes == tuple(np.unique(y).tolist())
    assert origin.classes_dtype == np.unique(y).dtype.str
    assert origin.response == "class"
    assert forest.n_outputs == (1 if n_classes == 2 else 3)
    assert origin.averages is (name not in BOOSTED | EXPONENTIAL)
    if name in EXPONENTIAL:
        # Half the log-odds, trained for a loss that goes by no name here.
        assert (origin.link, origin.objective) == ("logit", "unknown")
        assert origin.objective_params == {"sigmoid": 2.0}
    elif name in BOOSTED:
        assert origin.link == ("logit" if n_classes == 2 else "softmax")
        assert origin.objective == "log_loss"
    else:
        assert (origin.link, origin.objective) == ("identity", "brier")


@pytest.mark.parametrize(
    ("model", "labels", "expected"),
    [
        (RandomForestClassifier(2), "strings", ()),
        (RandomForestClassifier(2, class_weight="balanced"), "strings", "balanced"),
        (RandomForestClassifier(2, class_weight="balanced_subsample"), "strings", "balanced"),
        (ExtraTreesClassifier(2, class_weight={"yes": 3, "no": 1}), "strings", (1.0, 3.0)),
        (RandomForestClassifier(2, class_weight={-3: 2.5}), "numbers", (2.5, 1.0)),
        (RandomForestClassifier(2, class_weight={np.int64(7): 4}), "numbers", (1.0, 4.0)),
        (
            DecisionTreeClassifier(class_weight={True: 2, False: 0.5}),
            "truth values",
            (0.5, 2.0),
        ),
        (DecisionTreeClassifier(class_weight="balanced"), "numbers", "balanced"),
        # Within bags, classes have numbers.
        (
            BaggingClassifier(DecisionTreeClassifier(class_weight={0: 2, 1: 5}), n_estimators=2),
            "strings",
            (2.0, 5.0),
        ),
        (
            BaggingClassifier(ExtraTreeClassifier(class_weight="balanced"), n_estimators=2),
            "strings",
            "balanced",
        ),
        (BaggingClassifier(n_estimators=2), "strings", ()),
        (GradientBoostingClassifier(n_estimators=2), "strings", ()),
    ],
)
def test_weights_of_classes_are_read_and_written(model, labels, expected, tmp_path):
    X, y = table(2, labels)
    forest = fp.Forest.from_model(model.fit(X, y))
    assert forest.origin.class_weight == expected
    forest.save(tmp_path / "forest.npz")
    native = fp.Forest.load(tmp_path / "forest.npz").to_native()
    for old, new in zip((model, *trees_of(model)), (native, *trees_of(native)), strict=True):
        for inside in (old, getattr(old, "estimator", None)):
            weight = getattr(inside, "class_weight", None)
            twin = new if inside is old else getattr(new, "estimator", None)
            assert getattr(twin, "class_weight", None) == weight
    same(native.predict_proba(X), model.predict_proba(X))
    clone(native).fit(X, y)


def test_labels_may_have_any_name():
    """A parameter by label is not mistaken for an estimator, or for pairs."""
    X, _ = table(2)
    y = np.array(["estimator", "pairs"])[(X["x0"] > 0).astype(int)]
    weight = {"estimator": 1.5, "pairs": 2.0}
    model = RandomForestClassifier(2, class_weight=weight, random_state=0).fit(X, y)
    native = fp.Forest.from_model(model).to_native()
    assert native.class_weight == weight
    same(native.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    "param", [{0: 1.5, 1: 2}, {False: 1.0, True: 3.0}, {np.int64(3): np.float32(0.5)}, {1.5: 2}]
)
def test_dictionaries_by_label_are_plain_data(param):
    stored = json.loads(json.dumps(sklearn_params.encoded("class_weight", param)))
    found = sklearn_params.decoded({"class_weight": stored})["class_weight"]
    assert found == param
    assert [type(key) for key in found] == [type(np.asarray(key).item()) for key in param]


@pytest.mark.parametrize(
    "make_model",
    [
        lambda signs: DecisionTreeClassifier(max_depth=4, monotonic_cst=signs),
        lambda signs: RandomForestClassifier(4, max_depth=4, monotonic_cst=signs),
        lambda signs: BaggingClassifier(
            DecisionTreeClassifier(max_depth=4, monotonic_cst=signs), n_estimators=4
        ),
    ],
)
def test_constraints_are_about_the_second_class(make_model):
    X, _ = table(2, rows=200)
    rises = X["x0"] - X["x2"] + np.random.default_rng(0).normal(size=len(X)) > 0
    y = np.where(rises, "yes", "no")
    signs = [1, 0, -1, 0, 0]
    forest = fp.Forest.from_model(make_model(signs).set_params(random_state=0).fit(X, y))
    assert forest.origin.monotone == (1, 0, -1, 0, 0)
    for small in (forest, forest.truncate(2)):
        for column, sign in (("x0", 1), ("x2", -1)):
            rows = pd.concat([X.assign(**{column: x}) for x in np.linspace(-4, 4, 9)])
            steps = np.diff(small.predict(rows.astype(np.float32)).reshape(9, len(X)), axis=0)
            assert (sign * steps >= -1e-12).all()
            assert abs(steps).max() > 0


# Leaves must be distributions


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", ["tree", "random forest", "bagging, features"])
def test_what_rounding_took_from_leaves_is_given_back(name, n_classes):
    X, y = table(n_classes)
    forest = fp.Forest.from_model(make(name).fit(X, y))
    rng = np.random.default_rng(0)
    shaken = replace(forest, value=forest.value + 1e-11 * rng.normal(size=forest.value.shape))
    assert shaken.value.min() < 0
    native = shaken.to_native()
    for tree in trees_of(native):
        assert tree.tree_.value.min() >= 0
        np.testing.assert_allclose(tree.tree_.value.sum(axis=2), 1.0, rtol=0, atol=1e-15)
    expected = make(name).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(native.predict_proba(X), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", ["tree", "random forest", "bagging"])
def test_leaves_that_are_no_distribution_are_refused(name, n_classes):
    X, y = table(n_classes)
    forest = fp.Forest.from_model(make(name).fit(X, y))
    for changes in (
        {"value": forest.value + 1e-6},
        {"value": forest.value * 1.5 - 0.2},
        {"scale": forest.scale * 1.1},
        {"base": forest.base + 0.01},
    ):
        with pytest.raises(fp.UnsupportedModelError, match="must hold a probability for each"):
            replace(forest, **changes).to_native()


def test_scales_and_constants_that_add_up_to_distributions_are_written():
    X, y = table(3)
    forest = fp.Forest.from_model(make("random forest").fit(X, y))
    scale = np.array([0.3, 0.2, 0.1])
    moved = replace(forest, scale=scale, base=np.array([0.1, 0.2, 0.1]))
    # In equal parts, 0.3 would be 0.9 of a tree and the constant 0.4: too much for its leaves.
    with pytest.raises(fp.UnsupportedModelError):
        moved.to_native()
    even = replace(forest, scale=np.full(3, 0.2), base=np.array([0.1, 0.2, 0.1]))
    same_predictions(even, even.to_native(), X)


def test_splits_need_not_be_distributions():
    X, y = table(3)
    forest = fp.Forest.from_model(make("random forest").fit(X, y))
    value = forest.value.copy()
    value[forest.left >= 0] -= 2.0
    odd = replace(forest, value=value)
    same_predictions(odd, odd.to_native(), X)
    shares = shares_of(np.array([[-1.0, -1.0, -1.0]]), np.array([False]), "Tree")
    assert shares.tolist() == [[0.0, 0.0, 0.0]]


@pytest.mark.parametrize("value", [[-6e-17], [1.0 + 3e-16], [0.5, 0.5 + 6e-17, -6e-17]])
def test_no_rounding_is_less_than_impossible_or_more_than_sure(value):
    # Which the log-loss of scikit-learn refuses.
    shares = shares_of(np.array([value]), np.array([True]), "Tree")
    assert shares.min() >= 0.0
    assert shares.max() <= 1.0


def test_trees_come_in_rounds_of_one_for_each_output():
    assert in_rounds("abcd", [0, 2, 0, 0], 3, lambda: "-") == [
        ["a", "-", "b"],
        ["c", "-", "-"],
        ["d", "-", "-"],
    ]
    assert in_rounds("ab", [0, 0], 1, lambda: "-") == [["a"], ["b"]]
    assert in_rounds("", [], 2, lambda: "-") == [["-", "-"]]


# What is refused


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (AdaBoostClassifier(n_estimators=2), "got AdaBoostClassifier. Its trees vote"),
        (VotingClassifier([("a", DecisionTreeClassifier())]), "Pass one of its estimators_"),
        (OneVsRestClassifier(DecisionTreeClassifier()), "Pass one of its estimators_"),
        (
            CalibratedClassifierCV(RandomForestClassifier(2), cv=2),
            r"calibrated_classifiers_\[0\].estimator",
        ),
        (FixedThresholdClassifier(RandomForestClassifier(2)), "Pass its estimator_"),
        (LogisticRegression(), "required, got LogisticRegression"),
        (BaggingClassifier(LogisticRegression(), n_estimators=2), "got LogisticRegression"),
        (
            GradientBoostingClassifier(n_estimators=2, init=LogisticRegression()),
            "starts from a constant.*LogisticRegression",
        ),
        (
            GradientBoostingClassifier(n_estimators=2, init=DummyClassifier(strategy="stratified")),
            "starts from a constant.*stratified",
        ),
    ],
)
def test_what_cannot_be_read_is_refused(model, message):
    X, y = table(2)
    with pytest.raises(fp.UnsupportedModelError, match=message):
        fp.Forest.from_model(model.fit(X, y))


def test_the_estimator_inside_a_calibrated_one_can_be_read():
    X, y = table(3)
    model = CalibratedClassifierCV(RandomForestClassifier(2, max_depth=2), cv=2).fit(X, y)
    inside = model.calibrated_classifiers_[0].estimator
    same(fp.Forest.from_model(inside).predict(X), inside.predict_proba(X))


def test_labels_averaged_as_numbers_are_refused():
    X, y = table(2, "small numbers")
    model = BaggingRegressor(DecisionTreeClassifier(), n_estimators=2).fit(X, y)
    with pytest.raises(fp.UnsupportedModelError, match=r"BaggingRegressor is read if.*Regressor"):
        fp.Forest.from_model(model)


@pytest.mark.parametrize("name", ["tree", "random forest", "extra trees"])
def test_several_targets_are_refused(name):
    X, y = table(2)
    model = make(name).set_params(class_weight=None).fit(X, np.column_stack([y, y]))
    with pytest.raises(fp.UnsupportedModelError, match="one target; this one has 2"):
        fp.Forest.from_model(model)


@pytest.mark.parametrize("name", TREES | ENSEMBLES)
def test_a_single_class_is_refused(name):
    X, _ = table(2)
    model = make(name).fit(X, ["only"] * len(X))
    with pytest.raises(fp.UnsupportedModelError, match=r"two classes or more.*'only' only"):
        fp.Forest.from_model(model)


def test_labels_that_are_dates_are_refused():
    X, y = table(2)
    days = np.where(y == "no", np.datetime64("2020-01-01"), np.datetime64("2021-01-01"))
    try:
        model = DecisionTreeClassifier().fit(X, days)
    except (TypeError, ValueError):
        pytest.skip("this version takes no dates")
    with pytest.raises(fp.UnsupportedModelError, match="labels are strings, numbers or truth"):
        fp.Forest.from_model(model)


class Stubborn(RandomForestClassifier):
    def predict_proba(self, X):
        return super().predict_proba(X) ** 2


def test_a_subclass_may_predict_differently_and_is_refused():
    with pytest.raises(fp.UnsupportedModelError, match="subclass of RandomForestClassifier"):
        fp.Forest.from_model(Stubborn(2).fit(*table(2)))


@pytest.mark.parametrize("name", MODELS)
def test_an_unfitted_model_is_refused(name):
    with pytest.raises(NotFittedError):
        fp.Forest.from_model(make(name))


def test_forests_that_do_not_fit_their_classes_are_not_written():
    X, y = table(3)
    for name in ("tree", "random forest", "boosting"):
        forest = fp.Forest.from_model(make(name).fit(X, y))
        two = replace(forest.origin, classes=("a", "b"), classes_dtype="<U1")
        with pytest.raises(fp.UnsupportedModelError, match="3 outputs and 2 classes"):
            replace(forest, origin=two).to_native()
        none = replace(forest.origin, classes=(), classes_dtype="", class_weight=())
        with pytest.raises(fp.UnsupportedModelError, match="3 outputs and 0 classes"):
            replace(forest, origin=none).to_native()
    joint = replace(
        forest, value=np.repeat(forest.value, 3, axis=1), tree_output=np.empty(0, np.int32)
    )
    with pytest.raises(fp.UnsupportedModelError, match="add to one class each"):
        joint.to_native()
    average = fp.Forest.from_model(make("random forest").fit(X, y))
    with pytest.raises(fp.UnsupportedModelError, match="every tree adds to all outputs"):
        replace(
            average, value=average.value[:, :1], tree_output=np.zeros(average.n_trees, np.int32)
        ).to_native()


def test_exports_share_nothing_with_the_forest():
    X, y = table(3)
    forest = fp.Forest.from_model(make("boosting").fit(X, y))
    native = forest.to_native()
    native.classes_[0] = "x"
    native.estimators_[0, 0].tree_.value[:] = 0
    native.init_.class_prior_[:] = 0
    again = forest.to_native()
    assert again.classes_.tolist() == ["no", "perhaps", "yes"]
    same_predictions(forest, again, X)


def test_the_model_predicts_where_the_package_is_not_installed(tmp_path):
    X, y = table(3)
    native = fp.Forest.from_model(make("boosting").fit(X, y)).truncate(2).to_native()
    predicts_alone(native, X, tmp_path)


def test_inputs_are_accepted_as_the_library_accepts_them():
    X, y = table(2)
    missing = X.copy()
    missing.iloc[0, 0] = np.nan
    for name in MODELS:
        model = make(name).fit(X, y)
        forest = fp.Forest.from_model(model)
        try:
            expected = raw_of(model, missing)
        except ValueError:
            with pytest.raises(ValueError, match="NaN"):
                forest.predict(missing)
        else:
            same(forest.predict(missing), expected)
