"""LightGBM's classifiers, rankers and custom objectives: its own predictions are the truth."""

import json
import pickle
import re
from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest
from exported import predicts_alone
from scipy.special import expit, softmax
from sklearn.base import clone

import forestprune as fp
from forestprune.forest.classes import row_weights
from forestprune.forest.origin import origin_from_metadata

lgb = pytest.importorskip("lightgbm")

from forestprune.interop import lightgbm as interop  # noqa: E402 - needs the library

SMALL = {
    "num_leaves": 5,
    "learning_rate": 0.3,
    "min_data_in_leaf": 3,
    "min_data_in_bin": 1,
    "num_threads": 1,
    "verbose": -1,
    "seed": 0,
}
FOREST = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.7}
KINDS = {
    "gbdt": {},
    "dart": {"boosting": "dart", "drop_rate": 0.5, "skip_drop": 0.0},
    "rf": FOREST,
    "goss": {"data_sample_strategy": "goss"},
    "no start score": {"boost_from_average": False},
}

rng = np.random.default_rng(0)
X = np.c_[rng.normal(size=(150, 2)), rng.integers(0, 6, 150)]
X[::7, 0] = np.nan
SIGNAL = np.nan_to_num(X[:, 0], nan=0.7) + (X[:, 2] % 2) + 0.3 * rng.normal(size=150)
TWO = (SIGNAL > 0.9).astype(int)
THREE = np.digitize(SIGNAL, [0.0, 1.0])
GROUPS = [50, 60, 40]


def softmax_objective(score, data):
    wanted = np.eye(3)[data.get_label().astype(int)]
    shares = softmax(score, axis=1)
    return shares - wanted, 2 * shares * (1 - shares)


def squared_objective(score, data):
    return score - data.get_label(), np.ones_like(score)


def for_estimators(y, score):
    return score - y, np.ones_like(score)


# What is trained; link, objective, classes, response.
BOOSTERS = {
    "binary": ({"objective": "binary"}, TWO, "logit", "log_loss", 2, "probability"),
    "steep": ({"objective": "binary", "sigmoid": 2.5}, TWO, "logit", "log_loss", 2, "probability"),
    "shares": (
        {"objective": "cross_entropy"},
        *(expit(SIGNAL), "logit", "cross_entropy", 0, "value"),
    ),
    "classes": (
        {"objective": "multiclass", "num_class": 3},
        *(THREE, "softmax", "log_loss", 3, "probability"),
    ),
    "two of them": (
        {"objective": "multiclass", "num_class": 2},
        *(TWO, "softmax", "log_loss", 2, "probability"),
    ),
    "one against all": (
        {"objective": "multiclassova", "num_class": 3, "sigmoid": 0.5},
        *(THREE, "logit", "log_loss", 3, "probability"),
    ),
    "ranks": ({"objective": "lambdarank"}, THREE, "identity", "unknown", 0, "raw"),
    "other ranks": ({"objective": "rank_xendcg"}, THREE, "identity", "unknown", 0, "raw"),
    "function": ({"objective": squared_objective}, SIGNAL, "identity", "unknown", 0, "raw"),
    "functions": (
        {"objective": softmax_objective, "num_class": 3},
        *(THREE, "identity", "unknown", 0, "raw"),
    ),
}


def train(name, rounds=4, init_model=None, **params):
    chosen, y, *_ = BOOSTERS[name]
    data = lgb.Dataset(X, y, group=GROUPS if "ranks" in name else None, categorical_feature=[2])
    return lgb.train(SMALL | chosen | params, data, rounds, init_model=init_model)


def classifier(**params):
    return lgb.LGBMClassifier(**({"n_estimators": 4, "n_jobs": 1, "max_bin": 40} | SMALL | params))


def raw(model, rows=X):
    """Return the prediction before any link function; of a random forest the average."""
    booster = model if isinstance(model, lgb.Booster) else model.booster_
    scores = booster.predict(rows, raw_score=True)
    averages = "\naverage_output\n" in booster.model_to_string()
    return scores / booster.current_iteration() if averages else scores


def through_link(forest, rows=X):
    """Return what the forest's raw prediction stands for."""
    score = forest.predict(rows)
    if forest.origin.link == "softmax":
        return softmax(score, axis=1)
    factor = forest.origin.objective_params.get("sigmoid", 1.0)
    return expit(factor * score) if forest.origin.link == "logit" else score


def prunings(forest):
    """Yield smaller forests: cut, without some trees, without those of a class, empty, refitted."""
    output = forest.tree_output if forest.tree_output.size else np.zeros(forest.n_trees, int)
    place = np.arange(forest.n_trees)
    yield forest.truncate(1)
    yield forest.truncate(np.where(place % 2 == 0, 2, 0))
    # Of each class another number of trees, of the first none.
    yield forest.truncate(np.where(place // forest.n_outputs < output, 3, 0)).compact()
    yield forest.truncate(0).compact()
    factors = np.linspace(-2, 2, forest.n_trees)
    constants = np.linspace(0.5, -0.5, forest.n_outputs)
    cut = forest.truncate(2)
    yield replace(cut, scale=cut.scale * factors, base=constants, value=cut.value * 0.9 + 0.01)


def same(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


# Boosters


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", BOOSTERS)
def test_in_and_out_predict_what_the_library_does(name, kind, tmp_path):
    *_, link, objective, n_classes, response = BOOSTERS[name]
    if kind == "rf" and ("function" in name):
        pytest.skip("LightGBM refuses to train it")
    model = train(name, **KINDS[kind])
    before = pickle.dumps(model)
    forest = fp.Forest.from_model(model)
    assert pickle.dumps(model) == before
    origin = forest.origin
    assert (origin.link, origin.objective, origin.response) == (link, objective, response)
    assert origin.classes == tuple(range(n_classes))
    assert origin.class_weight == ()
    assert origin.averages == (kind == "rf")
    same(forest.predict(X), raw(model))
    same(through_link(forest), model.predict(X))
    native = forest.to_native()
    assert type(native) is lgb.Booster
    same(raw(native), raw(model))
    same(native.predict(X), model.predict(X))
    if forest.depths.all():
        again = fp.Forest.from_model(native)
        for array in ("value", "threshold", "cover", "left", "set_words", "tree_output"):
            np.testing.assert_array_equal(getattr(again, array), getattr(forest, array))
    model.save_model(tmp_path / "model.txt")
    read = fp.Forest.from_file(tmp_path / "model.txt")
    same(read.predict(X), raw(model))
    assert (read.origin.link, read.origin.classes) == (link, origin.classes)


@pytest.mark.parametrize("kind", ["gbdt", "rf"])
@pytest.mark.parametrize("name", BOOSTERS)
def test_pruned_models_predict_what_the_pruned_forest_does(name, kind):
    if kind == "rf" and ("function" in name):
        pytest.skip("LightGBM refuses to train it")
    forest = fp.Forest.from_model(train(name, **KINDS[kind]))
    for pruned in prunings(forest):
        native = pruned.to_native()
        same(raw(native), pruned.predict(X))
        same(native.predict(X), through_link(pruned))
        same(fp.Forest.from_model(native).predict(X), pruned.predict(X))
        # No more leaves are added than whole rounds take.
        compact = pruned.compact()
        output = compact.tree_output if compact.tree_output.size else np.zeros(compact.n_trees, int)
        most = np.bincount(output, minlength=1).max()
        assert native.current_iteration() == max(1, most)
        assert native.num_trees() == max(1, most) * forest.n_outputs


def test_one_against_all_is_not_made_to_add_up():
    model = train("one against all")
    assert abs(model.predict(X).sum(axis=1) - 1).max() > 1e-3
    same(model.predict(X), expit(0.5 * raw(model)))


def test_constants_go_into_the_first_tree_of_each_class():
    forest = fp.Forest.from_model(train("classes"))
    assert forest.tree_output.tolist() == [0, 1, 2] * 4
    assert forest.tree_extras["shrinkage"].tolist() == [1.0] * 3 + [0.3] * 9
    # Without the first round the second takes them, but where there is nothing left of a class.
    depths = np.where(np.arange(12) < 3, 0, 9)
    depths[forest.tree_output == 1] = 0
    again = fp.Forest.from_model(forest.truncate(depths).to_native())
    assert again.n_trees == 9
    assert again.tree_extras["shrinkage"].tolist() == [1.0] * 3 + [0.3, 1.0, 0.3] * 2
    assert (again.depths[1::3] == 0).all()
    assert again.value[again.offsets[[4, 7]], 0].tolist() == [0.0, 0.0]


def test_early_stopping_counts_rounds_of_trees():
    data = lgb.Dataset(X[:100], THREE[:100])
    other = rng.permutation(THREE[100:])
    booster = lgb.train(
        SMALL | {"objective": "multiclass", "num_class": 3},
        data,
        30,
        valid_sets=[lgb.Dataset(X[100:], other, reference=data)],
        callbacks=[lgb.early_stopping(4, verbose=False)],
        keep_training_booster=True,
    )
    assert 0 < booster.best_iteration < booster.current_iteration()
    forest = fp.Forest.from_model(booster)
    assert forest.n_trees == 3 * booster.best_iteration
    same(through_link(forest), booster.predict(X))
    native = forest.to_native()
    assert native.current_iteration() == booster.best_iteration
    assert f"[num_iterations: {booster.best_iteration}]" in native.model_to_string()
    same(native.predict(X), booster.predict(X))


@pytest.mark.parametrize("name", ["binary", "classes", "one against all", "functions"])
def test_training_can_go_on_from_the_pruned_model(name):
    forest = fp.Forest.from_model(train(name))
    place = np.arange(forest.n_trees)
    native = forest.truncate(np.where(place % 4 == 0, 2, 0)).to_native()
    more = train(name, rounds=2, init_model=native)
    assert more.current_iteration() == native.current_iteration() + 2
    same(fp.Forest.from_model(more).predict(X), raw(more))


@pytest.mark.parametrize("name", ["binary", "classes", "one against all", "ranks"])
def test_the_library_can_explain_the_pruned_model(name):
    forest = fp.Forest.from_model(train(name))
    for pruned in prunings(forest):
        native = pruned.to_native()
        shap = native.predict(X, pred_contrib=True).reshape(len(X), forest.n_outputs, -1)
        same(shap.sum(axis=2).squeeze(), native.predict(X, raw_score=True))
        assert len(native.dump_model()["tree_info"]) == native.num_trees()
        assert len(native.trees_to_dataframe()) >= native.num_trees()
        leaves = native.predict(X, pred_leaf=True)
        assert leaves.reshape(len(X), -1).shape[1] == native.num_trees()


def test_a_model_without_any_tree():
    data = lgb.Dataset(X, THREE)
    booster = lgb.Booster(SMALL | {"objective": "multiclass", "num_class": 3}, data)
    forest = fp.Forest.from_model(booster)
    assert (forest.n_trees, forest.n_outputs) == (0, 3)
    same(forest.predict(X), raw(booster))
    native = replace(forest, base=[0.1, 0.2, -0.4]).to_native()
    assert native.num_trees() == 3
    same(native.predict(X[:1]), [softmax([0.1, 0.2, -0.4])])


@pytest.mark.parametrize("name", BOOSTERS)
def test_a_saved_forest_still_goes_back(name, tmp_path):
    forest = fp.Forest.from_model(train(name)).truncate(2)
    assert origin_from_metadata(json.loads(json.dumps(asdict(forest.origin)))) == forest.origin
    forest.save(tmp_path / "forest.npz")
    same(raw(fp.Forest.load(tmp_path / "forest.npz").to_native()), forest.predict(X))


def test_a_forest_with_another_number_of_outputs_is_not_written():
    forest = fp.Forest.from_model(train("classes"))
    two = fp.Forest.from_model(train("two of them"))
    with pytest.raises(fp.InvalidForestError, match=r"must have 3 outputs.*got 2"):
        replace(two, origin=forest.origin).to_native()
    with pytest.raises(fp.InvalidForestError, match=r"must have 2 outputs.*got 3"):
        replace(forest, origin=two.origin).to_native()


@pytest.mark.parametrize(
    ("pattern", "damage"),
    [
        (r"num_class=3", "num_class=1"),
        (r"num_class:3", "num_class:4"),
        (r"objective=multiclass num_class:3", "objective=binary sigmoid:1"),
        (r"num_tree_per_iteration=3", "num_tree_per_iteration=1"),
        (r"num_tree_per_iteration=3", "num_tree_per_iteration=-3"),
        (r"objective=.*", "objective="),
        (r"objective=.*", "objective"),
        (r"end of parameters", "end of parameters7"),
        (r"\nTree=11\n[\s\S]*?\n\n", "\n"),
    ],
)
def test_damaged_files_are_refused(pattern, damage, tmp_path):
    text = train("classes").model_to_string()
    damaged = re.sub(pattern, damage, text, count=1)
    assert damaged != text
    (tmp_path / "model.txt").write_text(damaged)
    with pytest.raises(fp.InvalidForestError, match=r"model\.txt is not a model that LightGBM"):
        interop.load(tmp_path / "model.txt")


# Classifiers

LABELS = {
    "numbers": np.array([3, 7]),
    "text": np.array(["bad", "good"]),
    "truth": np.array([False, True]),
    "objects": np.array(["bad", "good"], dtype=object),
    "floats": np.array([-1.0, 1.0]),
    "three numbers": np.array([2, 5, 9]),
    "three words": np.array(["high", "low", "middle"]),
}


def fitted(labels, **params):
    return classifier(**params).fit(X, labels[TWO if len(labels) == 2 else THREE])


def check_classifier(native, forest):
    """Check that a classifier predicts what the forest does."""
    shares = through_link(forest)
    if shares.ndim == 1:
        shares = np.column_stack([1 - shares, shares])
    same(raw(native), forest.predict(X))
    same(native.predict_proba(X), shares)
    predicted = native.predict(X)
    np.testing.assert_array_equal(predicted, native.classes_[np.argmax(shares, axis=1)])
    assert predicted.dtype == native.classes_.dtype


@pytest.mark.parametrize("name", LABELS)
def test_the_pruned_classifier_is_a_proper_one(name, tmp_path):
    labels = LABELS[name]
    model = fitted(labels)
    before = pickle.dumps(model)
    forest = fp.Forest.from_model(model)
    assert pickle.dumps(model) == before
    origin = forest.origin
    assert origin.classes == tuple(labels.tolist())
    assert origin.response == "class"
    assert origin.objective == "log_loss"
    assert origin.link == ("logit" if len(labels) == 2 else "softmax")
    assert forest.n_outputs == (1 if len(labels) == 2 else 3)
    check_classifier(model, forest)
    check_classifier(forest.to_native(), forest)
    for pruned in prunings(forest):
        native = pruned.to_native()
        assert type(native) is lgb.LGBMClassifier
        check_classifier(native, pruned)
        np.testing.assert_array_equal(native.classes_, model.classes_)
        assert native.classes_.dtype == model.classes_.dtype
        assert native.n_classes_ == model.n_classes_
        assert native.objective_ == model.objective_
        assert set(vars(native)) == set(vars(model))
        assert native._class_map == model._class_map
        np.testing.assert_array_equal(native._le.classes_, model._le.classes_)
        assert native.n_estimators_ == native.n_estimators
    params = {key: value for key, value in model.get_params().items() if key != "n_estimators"}
    assert native.get_params().items() >= params.items()
    check_classifier(pickle.loads(pickle.dumps(native)), pruned)
    native.booster_.save_model(tmp_path / "small.txt")
    again = lgb.Booster(model_file=tmp_path / "small.txt")
    same(raw(again), pruned.predict(X))
    y = labels[TWO if len(labels) == 2 else THREE]
    refitted = clone(native).fit(X, y)
    assert refitted.score(X, y) > 0.5
    classifier(n_estimators=2).fit(X, y, init_model=native).predict(X)
    pruned.save(tmp_path / "forest.npz")
    check_classifier(fp.Forest.load(tmp_path / "forest.npz").to_native(), pruned)


@pytest.mark.parametrize("labels", ["text", "three words"])
@pytest.mark.parametrize(
    "params",
    [
        {"boosting_type": "rf", "subsample": 0.7, "subsample_freq": 1},
        {"boosting_type": "dart", "drop_rate": 0.5},
        {"objective": "multiclassova", "num_class": 2},
        {"objective": "multiclass", "num_class": 2},
        {"objective": "cross_entropy"},
    ],
)
def test_other_kinds_of_classifiers(params, labels):
    if params.get("objective") == "cross_entropy" and labels != "text":
        pytest.skip("it is about two classes")
    model = fitted(LABELS[labels], **params)
    forest = fp.Forest.from_model(model)
    assert forest.origin.objective == "log_loss"
    check_classifier(model, forest)
    for pruned in prunings(forest):
        check_classifier(pruned.to_native(), pruned)


def test_a_classifier_of_frames_with_categories():
    frame = pd.DataFrame(
        {"size": X[:, 0], "colour": pd.Categorical.from_codes(X[:, 2].astype(int), list("abcdef"))}
    )
    frame.loc[::5, "colour"] = None
    labels = pd.Series(np.array(["low", "middle", "high"])[THREE])
    model = classifier(min_data_per_group=1, cat_smooth=0.0).fit(frame, labels)
    forest = fp.Forest.from_model(model)
    assert forest.category_set.size
    same(forest.predict(frame), model.predict(frame, raw_score=True))
    native = forest.truncate(2).to_native()
    same(native.predict(frame, raw_score=True), forest.truncate(2).predict(frame))
    assert native.predict(frame).dtype == model.predict(frame).dtype
    assert set(native.predict(frame)) <= {"low", "middle", "high"}
    np.testing.assert_array_equal(native.classes_, model.classes_)


def test_the_classifier_predicts_where_the_package_is_not_installed(tmp_path):
    rows = np.nan_to_num(X)
    native = fp.Forest.from_model(fitted(LABELS["three numbers"])).truncate(2).to_native()
    predicts_alone(native, rows, tmp_path)


# Weights of classes


@pytest.mark.parametrize(
    ("labels", "params", "expected"),
    [
        ("numbers", {"class_weight": {3: 1, 7: 5}}, (1.0, 5.0)),
        ("truth", {"class_weight": {True: 0.5, False: 2}}, (2.0, 0.5)),
        ("text", {"class_weight": {"good": 3.0}}, (1.0, 3.0)),
        ("three numbers", {"class_weight": {9: 2.0, 2: np.float64(3)}}, (3.0, 1.0, 2.0)),
        ("three words", {"class_weight": "balanced"}, "balanced"),
        ("text", {"class_weight": "balanced"}, "balanced"),
        ("text", {"is_unbalance": True}, "balanced"),
        ("text", {"scale_pos_weight": 2.5}, (1.0, 2.5)),
        (
            "numbers",
            {"scale_pos_weight": 2.0, "class_weight": {3: 4, np.int64(7): 3}},
            (4.0, 6.0),
        ),
        ("text", {"class_weight": {"bad": 1.0, "good": 1.0}}, ()),
        # Not for this objective: LightGBM pays no heed to it.
        ("three words", {"scale_pos_weight": 2.5}, ()),
    ],
)
def test_weights_of_classes_are_told_and_kept(labels, params, expected, tmp_path):
    model = fitted(LABELS[labels], **params)
    forest = fp.Forest.from_model(model)
    assert forest.origin.class_weight == expected
    forest.save(tmp_path / "forest.npz")
    native = fp.Forest.load(tmp_path / "forest.npz").to_native()
    check_classifier(native, forest)
    weight = native.get_params()["class_weight"]
    assert weight == params.get("class_weight")
    assert native._class_weight == model._class_weight
    if isinstance(weight, dict):
        assert {type(key) for key in weight} <= {int, str, bool}
        assert [type(key) is bool for key in weight] == [labels == "truth"] * len(weight)
    # Training again goes as it went.
    again = clone(native).fit(X, LABELS[labels][TWO if len(LABELS[labels]) == 2 else THREE])
    same(raw(again), raw(model))


@pytest.mark.parametrize(
    ("params", "expected"),
    [({"is_unbalance": True}, "balanced"), ({"scale_pos_weight": 3.0}, (1.0, 3.0))],
)
def test_weights_that_a_booster_tells(params, expected, tmp_path):
    model = train("binary", **params)
    assert fp.Forest.from_model(model).origin.class_weight == expected
    model.save_model(tmp_path / "model.txt")
    origin = fp.Forest.from_file(tmp_path / "model.txt").origin
    assert origin.class_weight == expected
    # Training with such weights of rows gives the same model, but for what their sum decides, and
    # for the start score, which does not know of weights by class.
    weight = row_weights(origin, TWO)
    data = lgb.Dataset(X, TWO, weight=weight, categorical_feature=[2])
    free = {"min_sum_hessian_in_leaf": 0.0, "cat_l2": 0.0, "cat_smooth": 0.0}
    free["boost_from_average"] = False
    weighted = lgb.train(SMALL | {"objective": "binary"} | free, data, 1)
    same_kind = train("binary", rounds=1, **free, **params)
    np.testing.assert_allclose(raw(weighted), raw(same_kind), rtol=1e-4, atol=1e-4)


# Rankers and functions


@pytest.mark.parametrize("objective", [None, "rank_xendcg"])
def test_rankers(objective, tmp_path):
    model = lgb.LGBMRanker(n_estimators=4, n_jobs=1, objective=objective, **SMALL)
    model.fit(X, THREE, group=GROUPS, eval_at=[1, 3])
    forest = fp.Forest.from_model(model)
    assert forest.origin.objective == "unknown"
    assert forest.origin.response == "raw"
    same(forest.predict(X), model.predict(X))
    pruned = forest.truncate(1)
    native = pruned.to_native()
    assert type(native) is lgb.LGBMRanker
    assert set(vars(native)) == set(vars(model))
    assert list(native._eval_at) == [1, 3]
    same(native.predict(X), pruned.predict(X))
    same(pickle.loads(pickle.dumps(native)).predict(X), pruned.predict(X))
    clone(native).fit(X, THREE, group=GROUPS).predict(X)
    pruned.save(tmp_path / "forest.npz")
    same(fp.Forest.load(tmp_path / "forest.npz").to_native().predict(X), pruned.predict(X))


@pytest.mark.parametrize("name", ["objective", "loss"])
@pytest.mark.filterwarnings("ignore:Found 'loss'")
def test_an_estimator_of_a_custom_objective_forgets_the_function(name):
    model = lgb.LGBMRegressor(n_estimators=4, n_jobs=1, **SMALL, **{name: for_estimators})
    model.fit(X, SIGNAL)
    forest = fp.Forest.from_model(model)
    assert forest.origin.objective == "unknown"
    same(forest.predict(X), model.predict(X))
    native = forest.truncate(2).to_native()
    assert native.get_params()[name] == native.objective_ == "custom"
    same(native.predict(X), forest.truncate(2).predict(X))
    clone(native).set_params(**{name: for_estimators}).fit(X, SIGNAL).predict(X)


def test_the_booster_of_a_classifier_with_a_custom_objective_is_read():
    model = classifier(objective=for_estimators).fit(X, TWO)
    with pytest.raises(fp.UnsupportedModelError, match="Pass its booster_"):
        fp.Forest.from_model(model)
    forest = fp.Forest.from_model(model.booster_)
    same(forest.predict(X), model.predict(X, raw_score=True))
    same(forest.truncate(1).to_native().predict(X), forest.truncate(1).predict(X))


def test_regressors_of_classes_are_read_as_their_boosters():
    model = lgb.LGBMRegressor(n_estimators=4, n_jobs=1, objective="binary", **SMALL).fit(X, TWO)
    forest = fp.Forest.from_model(model)
    assert forest.origin.response == "probability"
    assert forest.origin.classes == (0, 1)
    same(through_link(forest), model.predict(X))
    native = forest.truncate(1).to_native()
    assert type(native) is lgb.LGBMRegressor
    same(native.predict(X), through_link(forest.truncate(1)))


# Refusals


@pytest.mark.parametrize(
    ("params", "y", "message"),
    [
        ({"objective": "regression"}, TWO, "objective is one of binary.*got regression"),
        ({}, np.ones(150, int), "two classes or more.*the label 1 only"),
        ({"linear_tree": True}, THREE, "linear_tree=False"),
        ({"objective": "multiclass", "num_class": 4}, TWO, "2 labels and 4 outputs"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_classifiers_that_cannot_be_read_are_refused(params, y, message):
    model = classifier(**params).fit(np.nan_to_num(X), y)
    with pytest.raises(fp.UnsupportedModelError, match=message):
        fp.Forest.from_model(model)
