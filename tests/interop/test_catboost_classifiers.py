"""CatBoost's classifiers, of any number of classes: the library's own answers are the truth."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from effort import examples
from exported import predicts_alone
from hypothesis import given, settings
from hypothesis import strategies as st
from monotone import turns
from sklearn.base import clone

import forestprune as fp
from forestprune.forest import response
from forestprune.forest.classes import class_numbers, row_weights

catboost = pytest.importorskip("catboost")

from catboost import CatBoost, CatBoostClassifier, CatBoostRegressor, Pool  # noqa: E402

QUIET = {
    "iterations": 5,
    "depth": 3,
    "learning_rate": 0.3,
    "thread_count": 1,
    "allow_writing_files": False,
    "logging_level": "Silent",
}
KINDS = {
    "symmetric": {},
    "depthwise": {"grow_policy": "Depthwise"},
    "lossguide": {"grow_policy": "Lossguide", "max_leaves": 6},
}
LOSSES = {"MultiClass": "softmax", "MultiClassOneVsAll": "logit", "Logloss": "logit"}
LABELS = {
    "text": ["no", "yes", "perhaps", "ask again"],
    "whole numbers": [7, -3, 0, 12],
    "numbers": [0.5, 0.7, 3.0, -1.25],  # one of which single precision cannot hold
    "truth values": [True, False],
}

rng = np.random.default_rng(0)
X = rng.normal(size=(240, 4))
SIGNAL = X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=240)
X[::9, 3] = np.nan
TRAIN, VALID = slice(0, 160), slice(160, 240)


def labels(kind, n_classes, signal=SIGNAL):
    """Return labels that depend on the signal, about as many of each."""
    return np.array(LABELS[kind][:n_classes])[
        np.argsort(np.argsort(signal)) * n_classes // len(signal)
    ]


THREE = labels("text", 3)


def classifier(kind="symmetric", loss="MultiClass", y=THREE, **params):
    model = CatBoostClassifier(loss_function=loss, **{**QUIET, **KINDS[kind], **params})
    return model.fit(X[TRAIN], y[TRAIN])


def raw(model, rows=X):
    return model.predict(rows, prediction_type="RawFormulaVal", thread_count=1)


def same(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


def agree(native, small, rows=X):
    """Assert that a classifier and a forest, or what was pruned, say the same of some rows."""
    forest = getattr(small, "forest", small)
    same(raw(native, rows), forest.predict(rows))
    chances = native.predict_proba(rows)
    np.testing.assert_allclose(
        chances, response.probabilities(forest.origin, forest.predict(rows)), atol=1e-6
    )
    # Where two classes are as likely but for rounding, either may be taken.
    sure = np.diff(np.sort(chances, axis=1)[:, -2:])[:, 0] > 1e-9
    told = native.predict(rows).ravel()
    found = response.predicted(forest.origin, forest.predict(rows))
    assert found.dtype == told.dtype
    np.testing.assert_array_equal(found[sure], told[sure])
    if forest.origin.link == "softmax" or forest.n_outputs == 1:
        np.testing.assert_allclose(chances.sum(axis=1), 1.0, atol=1e-9)


def document(model, folder):
    model.save_model(str(folder / "written.json"), format="json")
    return json.loads((folder / "written.json").read_text())


@st.composite
def fitted(draw):
    """Draw labels and weights, and fit a model of any kind to them."""
    loss, kind = draw(st.sampled_from(list(LOSSES))), draw(st.sampled_from(list(LABELS)))
    most = 2 if loss == "Logloss" or kind == "truth values" else 4
    n_classes = draw(st.integers(2, most))
    seed = draw(st.integers(0, 2**32 - 1))
    y = labels(kind, n_classes, SIGNAL + np.random.default_rng(seed).normal(size=SIGNAL.size))
    params = draw(
        st.sampled_from(
            [
                {},
                {"class_weights": [1.0, 2.5, 0.5, 4.0][:n_classes]},
                {"auto_class_weights": "Balanced"},
                {"auto_class_weights": "SqrtBalanced"},
            ]
        )
    )
    grown = draw(st.sampled_from(list(KINDS)))
    depth = draw(st.integers(1, 4))
    return classifier(grown, loss, y, depth=depth, random_seed=seed % 100, **params), y, params


def descendant(forest, seed):
    """Return what pruning may leave: rooted subtrees with other values, and another constant."""
    shifts = np.random.default_rng(seed)
    mask = np.zeros(forest.n_nodes, bool)
    mask[forest.offsets[:-1]] = True
    starts = np.repeat(forest.offsets[:-1], np.diff(forest.offsets))
    for v in np.flatnonzero(forest.left >= 0):
        a = starts[v] + forest.left[v]
        mask[a : a + 2] = mask[v] and shifts.random() < 0.8
    kept = forest.keep(mask)
    value = kept.value + shifts.normal(size=kept.value.shape)
    return replace(kept, value=value, base=shifts.normal(size=forest.n_outputs))


@settings(max_examples=examples(24))
@given(drawn=fitted(), seed=st.integers(0, 1000))
def test_in_and_out_predict_what_the_library_does(drawn, seed):
    model, y, params = drawn
    before = pickle.dumps(model)
    forest = fp.Forest.from_model(model)
    origin = forest.origin
    assert pickle.dumps(model) == before
    loss = model.get_param("loss_function")
    assert (origin.link, origin.objective, origin.response) == (LOSSES[loss], "log_loss", "class")
    assert forest.n_outputs == (1 if loss == "Logloss" else len(model.classes_))
    assert forest.n_trees == model.tree_count_
    np.testing.assert_array_equal(origin.classes, model.classes_)
    known = model.classes_[class_numbers(origin, y, len(y))]
    np.testing.assert_array_equal(known, np.float32(y) if y.dtype.kind == "f" else y)
    if "class_weights" in params:
        assert origin.class_weight == tuple(params["class_weights"])
    agree(model, forest)
    native = forest.to_native()
    assert type(native) is CatBoostClassifier
    assert native.get_params() == model.get_params()
    assert native.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(native.classes_, model.classes_)
    agree(native, forest)
    again = fp.Forest.from_model(native)
    assert again.origin.class_weight == origin.class_weight
    if forest.depths.all():
        for name in ("left", "feature", "threshold", "missing_left"):
            np.testing.assert_array_equal(getattr(again, name), getattr(forest, name))
        same(again.cover, forest.cover)
    for small in (
        forest.truncate(1),
        forest.truncate(np.arange(forest.n_trees) % 3).compact(),
        forest.truncate(0),
        forest.truncate(0).compact(),
        descendant(forest, seed),
    ):
        agree(small.to_native(), small)
        same(fp.Forest.from_model(small.to_native()).predict(X), small.predict(X))


@pytest.mark.parametrize("kind", KINDS)
def test_splits_get_their_values_from_their_leaves(kind, tmp_path):
    model = classifier(kind)
    forest = fp.Forest.from_model(model)
    leaves, roots = forest.left < 0, forest.offsets[:-1]
    same(np.sort(forest.value[leaves].ravel()), np.sort(model.get_leaf_values()))
    text = document(model, tmp_path)
    covers = [tree["leaf_weights"] for tree in text.get("oblivious_trees", ())]
    if covers:
        same(np.sort(forest.cover[leaves]), np.sort(np.ravel(covers)))
    weighted = forest.cover[:, np.newaxis] * forest.value * leaves[:, np.newaxis]
    same(np.add.reduceat(weighted, roots) / forest.cover[roots, np.newaxis], forest.value[roots])


def explained(y, chances, of, weights):
    """Return the log-loss over that of the shares of classes."""
    shares = np.average(of, axis=0, weights=weights)
    losses = -np.log((of * chances).sum(axis=1)), -np.log(of @ shares)
    return np.average(losses[0], weights=weights) / np.average(losses[1], weights=weights)


WAYS = {
    "default": {},
    "subtree": {"rule": "subtree"},
    "layer": {"rule": "layer"},
    "as they were": {"refit": False},
    "subtree, as they were": {"rule": "subtree", "refit": False},
    "shrunk": {"shrinkage": [1.0, 10.0]},
    "ridge": {"polish": "ridge"},
    "leaf": {"polish": "leaf"},
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("kind", "loss", "way"),
    [
        *(("symmetric", "MultiClass", way) for way in WAYS),
        *(("symmetric", "MultiClassOneVsAll", way) for way in ("default", "layer", "ridge")),
        *(("depthwise", "MultiClass", way) for way in ("default", "shrunk")),
        *(("depthwise", "MultiClassOneVsAll", way) for way in ("default", "as they were")),
        *(("lossguide", "MultiClass", way) for way in ("default", "leaf")),
        ("lossguide", "MultiClassOneVsAll", "layer"),
    ],
)
def test_pruned_classifiers_are_small_ones_of_the_same_class(kind, loss, way, tmp_path):
    model = classifier(kind, loss, iterations=15, class_weights=[1.0, 3.0, 2.0])
    before = pickle.dumps(model)
    validation = {"X_val": X[VALID], "y_val": THREE[VALID]}
    small = fp.prune(
        *(model, X[TRAIN], THREE[TRAIN]),
        **validation,
        **WAYS[way],
        max_nodes=60,
        n_alphas=15,
        n_jobs=1,
    )
    assert pickle.dumps(model) == before
    assert 3 <= small.n_nodes <= 60
    assert small.validation.metrics.keys() >= {"accuracy", "balanced_accuracy", "log_loss"}
    native = small.to_native()
    agree(native, small)
    np.testing.assert_array_equal(small.classes_, model.classes_)
    assert small.loss < 0.95
    whole = kind == "symmetric" and WAYS[way].get("rule") != "subtree"
    assert ("oblivious_trees" in document(native, tmp_path)) == whole
    # The loss is that of the rows as the model weighted them.
    one_hot = (THREE[TRAIN, np.newaxis] == model.classes_).astype(float)
    weights = one_hot @ [1.0, 3.0, 2.0]
    if loss == "MultiClass":
        chances = native.predict_proba(X[TRAIN])
        expected = explained(THREE[TRAIN], chances, one_hot, weights)
        assert small.loss == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", ["MultiClass", "MultiClassOneVsAll"])
def test_the_pruned_classifier_is_a_proper_one(kind, loss, tmp_path):
    model = classifier(kind, loss, iterations=20, random_seed=5)
    small = fp.prune(model, X, THREE, max_nodes=40, n_alphas=15, n_jobs=1)
    native = small.to_native()
    assert vars(native).keys() == vars(model).keys()
    assert native.get_params() == model.get_params()
    assert native.get_all_params() == model.get_all_params()
    assert native.tree_count_ == small.n_trees < 20
    np.testing.assert_allclose(native.feature_importances_.sum(), 100.0)
    rows = Pool(X)
    shap = native.get_feature_importance(rows, type="ShapValues", thread_count=1)
    same(shap.sum(axis=2), small.decision_function(X))
    same(native.predict_proba(rows), small.predict_proba(X))
    for form in ("cbm", "json"):
        sizes = []
        for name, each in (("large", model), ("small", native)):
            path = tmp_path / f"{name}.{form}"
            each.save_model(str(path), format=form)
            sizes.append(path.stat().st_size)
            again = CatBoostClassifier().load_model(str(path), format=form)
            same(again.predict_proba(X), each.predict_proba(X))
            np.testing.assert_array_equal(again.predict(X), each.predict(X))
        assert sizes[1] < 0.7 * sizes[0]
    restored = pickle.loads(pickle.dumps(native))
    agree(restored, small)
    assert restored.get_params() == model.get_params()
    small.save(tmp_path / "small.npz")
    loaded = fp.PrunedForest.load(tmp_path / "small.npz")
    np.testing.assert_array_equal(loaded.predict(X), small.predict(X))
    agree(loaded.to_native(), small)
    fresh = clone(native)
    assert not fresh.is_fitted()
    same(fresh.fit(X[TRAIN], THREE[TRAIN]).predict_proba(X), model.predict_proba(X))


def test_it_predicts_where_the_package_is_not_installed(tmp_path):
    native = fp.Forest.from_model(classifier()).truncate(2).to_native()
    predicts_alone(native, X, tmp_path)


@pytest.mark.parametrize("loss", ["MultiClass", "MultiClassOneVsAll"])
@pytest.mark.parametrize("kind", ["text", "whole numbers"])
def test_symmetric_classifiers_become_onnx(kind, loss, tmp_path):
    y = labels(kind, 3)
    model = classifier(loss=loss, y=y, iterations=15)
    small = fp.prune(model, X, y, max_nodes=80, n_alphas=15, n_jobs=1)
    native = small.to_native()
    runtime = pytest.importorskip("onnxruntime")
    rows = np.nan_to_num(X).astype(np.float32)
    native.save_model(str(tmp_path / "model.onnx"), format="onnx")
    session = runtime.InferenceSession(tmp_path / "model.onnx")
    told, chances = session.run(None, {session.get_inputs()[0].name: rows})
    np.testing.assert_array_equal(told, small.predict(rows))
    if loss == "MultiClass":  # of the other one, CatBoost writes the probabilities of this one
        table = pd.DataFrame(chances)[small.classes_.tolist()].to_numpy()
        np.testing.assert_allclose(table, small.predict_proba(rows), atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["symmetric", "depthwise"])
def test_training_goes_on_from_the_pruned_model(kind, loss):
    y = labels("text", 2) if loss == "Logloss" else THREE
    small = fp.prune(classifier(kind, loss, y, iterations=15), X, y, max_nodes=60, n_jobs=1)
    native = small.to_native()
    how = {"loss_function": loss, **QUIET, **KINDS[kind]}
    longer = CatBoostClassifier(**how).fit(X, y, init_model=native)
    assert longer.tree_count_ == small.n_trees + 5
    begun = longer.predict(X, ntree_end=small.n_trees, prediction_type="RawFormulaVal")
    same(begun, small.decision_function(X))
    one_hot = (y[:, np.newaxis] == native.classes_).astype(float)
    errors = [((model.predict_proba(X) - one_hot) ** 2).sum() for model in (native, longer)]
    assert errors[1] < errors[0]


def test_one_against_all_is_not_made_to_add_up():
    small = fp.prune(classifier(loss="MultiClassOneVsAll"), X, THREE, max_nodes=20, n_jobs=1)
    chances = small.predict_proba(X)
    assert np.abs(chances.sum(axis=1) - 1.0).max() > 0.01
    same(chances, small.to_native().predict_proba(X))


# Labels, weights, files


def test_labels_are_compared_as_the_library_rounds_them():
    y = labels("numbers", 3)
    model = classifier(y=y)
    assert model.classes_[1] != 0.7
    assert model.classes_[1] == np.float32(0.7)
    small = fp.prune(model, X, y, max_nodes=30, n_jobs=1)
    assert set(small.predict(X)) <= set(model.classes_)
    numbers = class_numbers(small.forest.origin, y, len(y))
    np.testing.assert_array_equal(numbers, np.searchsorted([0.5, 0.7, 3.0], y))
    for wrong in (0.71, 0.7000001, "0.7", None, np.nan, 1e300):
        with pytest.raises(ValueError, match="y must hold labels of the model"):
            fp.prune(model, X, np.array([wrong, *y[1:]], dtype=object), max_nodes=30)
    whole = classifier(y=np.array([1, 2**24 + 1, 2**24 + 3])[np.arange(240) % 3])
    told = class_numbers(fp.Forest.from_model(whole).origin, [2**24 + 3, 1, 2**24 + 1], 3)
    np.testing.assert_array_equal(told, [2, 0, 1])


def test_classes_keep_the_order_that_they_were_given():
    model = classifier(class_names=["yes", "perhaps", "no"])
    assert model.classes_.tolist() == ["yes", "perhaps", "no"]
    small = fp.prune(model, X, THREE, max_nodes=30, n_jobs=1)
    assert small.classes_.tolist() == ["yes", "perhaps", "no"]
    agree(small.to_native(), small)
    one_hot = (THREE[:, np.newaxis] == model.classes_).astype(float)
    assert explained(THREE, small.predict_proba(X), one_hot, np.ones(240)) < 1


WEIGHTS = {
    "list": ({"class_weights": [1.0, 2.5, 4.0]}, (1.0, 2.5, 4.0)),
    "by label": (
        # In the order of which CatBoost has the classes.
        {"class_weights": {"yes": 2.0, "no": 1.0, "perhaps": 5.0}},
        (2.0, 1.0, 5.0),
    ),
    "by label, other order": (
        {
            "class_weights": {"yes": 2.0, "no": 1.0, "perhaps": 5.0},
            "class_names": ["perhaps", "yes", "no"],
        },
        (5.0, 2.0, 1.0),
    ),
    "balanced": ({"auto_class_weights": "Balanced"}, "balanced"),
    "by the root": ({"auto_class_weights": "SqrtBalanced"}, "sqrt_balanced"),
    "none": ({"auto_class_weights": "None"}, ()),
    "all the same": ({"class_weights": [1, 1, 1]}, ()),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_of_classes_are_told_and_kept(name, tmp_path):
    params, expected = WEIGHTS[name]
    y = np.where(np.arange(240) % 3, THREE, "no")  # not as many of each
    model = classifier(y=y, **params)
    origin = fp.Forest.from_model(model).origin
    assert origin.class_weight == expected
    native = fp.Forest.from_model(model).truncate(2).to_native()
    assert fp.Forest.from_model(native).origin.class_weight == expected
    model.save_model(str(tmp_path / "model.cbm"))
    assert fp.Forest.from_file(tmp_path / "model.cbm").origin.class_weight == expected
    if isinstance(expected, str):  # but for a factor, what CatBoost says itself
        used = json.loads(dict(model.get_metadata())["params"])["data_processing_options"]
        by_class = row_weights(origin, class_numbers(origin, y[TRAIN], 160))
        for label, weight in zip(model.classes_, used["class_weights"], strict=True):
            ratio = by_class[y[TRAIN] == label] / weight
            same(ratio, np.full(ratio.size, ratio[0]))
            assert ratio[0] == pytest.approx(by_class.min(), rel=1e-6)


def test_a_weight_of_the_second_class():
    model = classifier(loss="Logloss", y=labels("text", 2), scale_pos_weight=3.0)
    assert fp.Forest.from_model(model).origin.class_weight == (1.0, 3.0)


@pytest.mark.parametrize("suffix", ["cbm", "json"])
def test_files_know_their_labels(suffix, tmp_path):
    model = classifier(iterations=15, class_weights=[1.0, 2.0, 3.0])
    path = tmp_path / f"model.{suffix}"
    model.save_model(str(path), format=suffix)
    small = fp.prune(path, X, THREE, max_nodes=40, n_jobs=1)
    native = small.to_native()
    assert type(native) is CatBoost
    np.testing.assert_array_equal(small.classes_, model.classes_)
    assert small.forest.origin.class_weight == (1.0, 2.0, 3.0)
    same(native.predict(X), small.predict(X))
    same(native.predict(X), small.decision_function(X))
    same(native.predict(X, prediction_type="Probability"), small.predict_proba(X))
    told = np.ravel(native.predict(X, prediction_type="Class"))
    np.testing.assert_array_equal(told, small.classes_[small.predict_proba(X).argmax(axis=1)])
    # The file that a plain model writes is one of a classifier.
    native.save_model(str(tmp_path / "small"), format=suffix)
    again = CatBoostClassifier().load_model(str(tmp_path / "small"), format=suffix)
    same(again.predict_proba(X), small.predict_proba(X))


def test_regressors_that_load_classifiers_predict_what_their_trees_add_up_to(tmp_path):
    classifier().save_model(str(tmp_path / "model"))
    loaded = CatBoostRegressor().load_model(str(tmp_path / "model"))
    small = fp.prune(loaded, X, THREE, max_nodes=30, n_jobs=1)
    same(small.to_native().predict(X), small.predict(X))


@pytest.mark.parametrize("loss", LOSSES)
def test_sums_of_classifiers(loss):
    y = labels("text", 2) if loss == "Logloss" else THREE
    parts = [
        classifier("symmetric", loss, y, random_seed=seed, auto_class_weights="Balanced")
        for seed in (0, 1)
    ]
    total = catboost.sum_models(parts, weights=[0.5, 2.0])
    forest = fp.Forest.from_model(total)
    assert forest.origin.link == LOSSES[loss]
    assert forest.origin.classes == tuple(parts[0].classes_)
    assert forest.origin.class_weight == "balanced"
    same(forest.predict(X), total.predict(X))
    native = fp.prune(total, X, y, max_nodes=60, n_jobs=1).to_native()
    np.testing.assert_array_equal(native.classes_, total.classes_)
    mixed = catboost.sum_models([parts[0], classifier("symmetric", loss, y)])
    assert fp.Forest.from_model(mixed).origin.class_weight == ()


def test_scale_and_bias_that_were_set():
    model = classifier("depthwise")
    model.set_scale_and_bias(2.5, [1.0, -1.0, 0.5])
    forest = fp.Forest.from_model(model)
    same(forest.base, [1.0, -1.0, 0.5])
    agree(model, forest)
    agree(forest.to_native(), forest)
    assert forest.to_native().get_scale_and_bias() == (1.0, [1.0, -1.0, 0.5])


def test_few_categories_and_several_classes():
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"]).assign(
        kind=np.array(["a", "b", "c"])[np.arange(240) % 3]
    )
    y = np.where(frame["kind"] == "b", "yes", THREE)
    how = {**QUIET, "one_hot_max_size": 10, "cat_features": ["kind"]}
    model = CatBoostClassifier(**how).fit(frame, y)
    small = fp.prune(model, frame, y, max_nodes=40, n_jobs=1)
    assert small.forest.category_set.max() >= 0
    native = small.to_native()
    same(native.predict_proba(frame), small.predict_proba(frame))
    np.testing.assert_array_equal(native.predict(frame).ravel(), small.predict(frame))


def test_several_targets(tmp_path):
    targets = np.column_stack([SIGNAL, X[:, 0], X[:, 0] - X[:, 1]])
    for grown in KINDS:
        how = {"loss_function": "MultiRMSE", **QUIET, **KINDS[grown], "iterations": 15}
        model = CatBoostRegressor(**how).fit(X, targets)
        small = fp.prune(model, X, targets, max_nodes=80, n_alphas=15, n_jobs=1)
        native = small.to_native()
        same(native.predict(X), small.predict(X))
        spread = ((targets - targets.mean(axis=0)) ** 2).sum()
        assert small.loss == pytest.approx(((targets - native.predict(X)) ** 2).sum() / spread)
        native.save_model(str(tmp_path / "model"))
        same(CatBoostRegressor().load_model(str(tmp_path / "model")).predict(X), small.predict(X))


def test_constraints_that_the_library_does_not_keep_are_no_promise():
    targets = np.column_stack([SIGNAL, -X[:, 0]])
    how = {**QUIET, "monotone_constraints": [1, 0, 0, 0]}
    several = CatBoostRegressor(loss_function="MultiRMSE", **how).fit(X, targets)
    assert turns(lambda rows: several.predict(rows)[:, 1], X, [1], rng=np.random.default_rng(0))[0]
    forest = fp.Forest.from_model(several)
    assert not forest.monotone.size
    assert forest.to_native().get_params() == several.get_params()
    one = CatBoostRegressor(**how).fit(X, SIGNAL)
    assert fp.Forest.from_model(one).monotone.tolist() == [1, 0, 0, 0]


# What is refused


def test_several_labels_a_row_are_refused(tmp_path):
    several = np.column_stack([SIGNAL > 0, X[:, 0] > 0]).astype(int)
    model = CatBoostClassifier(loss_function="MultiLogloss", **QUIET).fit(X, several)
    with pytest.raises(fp.UnsupportedModelError, match=r"one label.*MultiLogloss, gives 2"):
        fp.Forest.from_model(model)
    # The way out that the message shows.
    model.save_model(str(tmp_path / "model.cbm"))
    small = fp.prune(tmp_path / "model.cbm", X, several, max_nodes=30, n_jobs=1)
    chances = small.to_native().predict(X, prediction_type="Probability")
    same(response.through_link(small.forest.origin, small.predict(X)), chances)


def test_a_single_class_is_refused(tmp_path):
    how = {**QUIET, "allow_const_label": True, "loss_function": "Logloss"}
    model = CatBoostClassifier(**how).fit(X, np.zeros(240))
    with pytest.raises(fp.UnsupportedModelError, match=r"two of them or more; this one saw 0\.0"):
        fp.Forest.from_model(model)
    CatBoostRegressor(**QUIET).fit(X, SIGNAL).save_model(str(tmp_path / "model"))
    loaded = CatBoostClassifier().load_model(str(tmp_path / "model"))
    with pytest.raises(fp.UnsupportedModelError, match="this one saw none"):
        fp.Forest.from_model(loaded)


@pytest.mark.parametrize(
    "params", [{"class_names": ["no", "yes", "perhaps", "never"]}, {"classes_count": 4}]
)
def test_classes_that_no_row_has_are_refused(params):
    y = THREE if "class_names" in params else np.arange(240) % 3
    with pytest.raises(fp.UnsupportedModelError, match=r"was told of 4, .* and has 3 outputs"):
        fp.Forest.from_model(classifier(y=y, **params))


def test_catboost_has_no_constraints_for_several_classes():
    with pytest.raises(catboost.CatBoostError, match="unsupported for multiclass"):
        classifier(monotone_constraints=[1, 0, 0, 0])


def test_trees_of_one_output_each_are_not_written():
    forest = fp.Forest.from_model(classifier())
    one_each = replace(forest, value=forest.value[:, :1], tree_output=np.arange(forest.n_trees) % 3)
    with pytest.raises(fp.UnsupportedModelError, match="every tree adds to all outputs"):
        one_each.to_native()
