"""XGBoost's models of classes, of several outputs, of unknown loss: the library is the truth."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax
from sklearn.base import clone
from threadpoolctl import threadpool_limits

import forestprune as fp

xgb = pytest.importorskip("xgboost")

from forestprune.interop import (  # noqa: E402
    model_files,
    ubjson,
    xgboost_model,
    xgboost_objective,
)

VERSION = tuple(int(part) for part in xgb.__version__.split(".")[:2])
STORES_VECTORS = VERSION >= (3, 2)
ONE_BASE_SCORE_EACH = VERSION >= (3, 1)

rng = np.random.default_rng(0)
X = rng.normal(size=(90, 3)).astype(np.float32)
X[rng.random(X.shape) < 0.1] = np.nan
KNOWN = np.nan_to_num(X)
TWO = (KNOWN[:, 0] + 0.5 * rng.normal(size=90) > 0.4).astype(int)
THREE = np.digitize(KNOWN[:, 0] + KNOWN[:, 1] + 0.3 * rng.normal(size=90), [-0.8, 0.6])
TARGETS = np.column_stack([KNOWN[:, 0], KNOWN[:, 1] * KNOWN[:, 0]])
GROUPS = np.repeat(np.arange(9), 10)
VECTORS = {"multi_strategy": "multi_output_tree"}
SIZE = {"n_estimators": 3, "max_depth": 3, "n_jobs": 1, "min_child_weight": 0}


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    with threadpool_limits(1):
        yield


def estimator(cls, y, **params):
    return lambda: cls(**SIZE | params).fit(X, y)


def classifier(y, **params):
    return estimator(xgb.XGBClassifier, y, **params)


def booster(objective, y, qid=None, **params):
    def train():
        data = xgb.DMatrix(X, y, qid=qid, nthread=1)
        if objective == "survival:aft":
            data.set_float_info("label_lower_bound", np.exp(KNOWN[:, 0]))
            data.set_float_info("label_upper_bound", np.exp(KNOWN[:, 0]) + 1)
        return xgb.train({"objective": objective, "nthread": 1, "max_depth": 3} | params, data, 3)

    return train


def squares(y, raw):
    """Squared error, as a function in place of the name of an objective."""
    if np.ndim(raw) == 2:
        y = np.eye(raw.shape[1])[y.astype(int)]
    return raw - y, np.ones_like(raw)


FORESTS = {"n_estimators": 4}
# How it is fitted; link, objective and response; labels.
CLASSIFIERS = {
    "two": (classifier(TWO), "logit", "log_loss", "class", (0, 1)),
    "truth values": (classifier(TWO == 1), "logit", "log_loss", "class", (0, 1)),
    "weighted": (
        classifier(TWO, scale_pos_weight=3.0, base_score=0.3),
        *("logit", "log_loss", "class", (0, 1)),
    ),
    "two, shares": (
        classifier(TWO, objective="reg:logistic"),
        *("logit", "log_loss", "class", (0, 1)),
    ),
    "two, hinge": (classifier(TWO, objective="binary:hinge"), "logit", "hinge", "class", (0, 1)),
    "two, dart": (
        classifier(TWO, booster="dart", rate_drop=0.5),
        *("logit", "log_loss", "class", (0, 1)),
    ),
    "two, function": (
        classifier(TWO, objective=squares),
        *("logit", "unknown", "class", (0, 1)),
    ),
    "two of several": (
        classifier(TWO, objective="multi:softmax", num_class=2),
        *("softmax", "log_loss", "class", (0, 1)),
    ),
    "three": (classifier(THREE), "softmax", "log_loss", "class", (0, 1, 2)),
    "three, floats": (
        classifier(THREE.astype(float), base_score=0.25),
        *("softmax", "log_loss", "class", (0, 1, 2)),
    ),
    "three, softmax": (
        classifier(THREE, objective="multi:softmax"),
        *("softmax", "log_loss", "class", (0, 1, 2)),
    ),
    "three, dart": (
        classifier(THREE, booster="dart", rate_drop=0.5),
        *("softmax", "log_loss", "class", (0, 1, 2)),
    ),
    "three, parallel": (
        classifier(THREE, num_parallel_tree=2, subsample=0.6),
        *("softmax", "log_loss", "class", (0, 1, 2)),
    ),
    "three, function": (
        classifier(THREE, objective=squares),
        *("softmax", "unknown", "class", (0, 1, 2)),
    ),
    "forest of two": (
        estimator(xgb.XGBRFClassifier, TWO, **FORESTS),
        *("logit", "log_loss", "class", (0, 1)),
    ),
    "forest of three": (
        estimator(xgb.XGBRFClassifier, THREE, **FORESTS),
        *("softmax", "log_loss", "class", (0, 1, 2)),
    ),
}
OF_CLASSES = {
    "binary": (
        booster("binary:logistic", TWO, scale_pos_weight=2),
        *("logit", "log_loss", "probability", (0, 1)),
    ),
    "binary, raw": (booster("binary:logitraw", TWO), "logit", "log_loss", "raw", (0, 1)),
    "hinge": (booster("binary:hinge", TWO), "logit", "hinge", "class", (0.0, 1.0)),
    "softprob": (
        booster("multi:softprob", THREE, num_class=3),
        *("softmax", "log_loss", "probability", (0, 1, 2)),
    ),
    "softprob of two": (
        booster("multi:softprob", TWO, num_class=2),
        *("softmax", "log_loss", "probability", (0, 1)),
    ),
    "softmax": (
        booster("multi:softmax", THREE, num_class=3, num_parallel_tree=2, subsample=0.5),
        *("softmax", "log_loss", "class", (0.0, 1.0, 2.0)),
    ),
    "regressor of probabilities": (
        estimator(xgb.XGBRegressor, TWO, objective="binary:logistic"),
        *("logit", "log_loss", "probability", (0, 1)),
    ),
}
SEVERAL_OUTPUTS = {
    "targets": (
        estimator(xgb.XGBRegressor, TARGETS),
        *("identity", "squared_error", "value", ()),
    ),
    "targets, parallel": (
        estimator(xgb.XGBRegressor, TARGETS, num_parallel_tree=2, subsample=0.6),
        *("identity", "squared_error", "value", ()),
    ),
    "targets, forest": (
        estimator(xgb.XGBRFRegressor, TARGETS, **FORESTS),
        *("identity", "squared_error", "value", ()),
    ),
    "targets, gamma": (
        estimator(xgb.XGBRegressor, np.exp(TARGETS), objective="reg:gamma"),
        *("log", "gamma", "value", ()),
    ),
    "quantiles": (
        booster("reg:quantileerror", KNOWN[:, 0], quantile_alpha=[0.2, 0.5, 0.8]),
        *("identity", "quantile", "value", ()),
    ),
}
RANKED = {
    name: (booster(name, TWO, qid=GROUPS), "identity", "unknown", "raw", ())
    for name in ("rank:pairwise", "rank:ndcg", "rank:map")
}
UNKNOWN = RANKED | {
    "ranker": (
        lambda: xgb.XGBRanker(**SIZE).fit(X, THREE, qid=GROUPS),
        *("identity", "unknown", "raw", ()),
    ),
    "cox": (booster("survival:cox", np.exp(KNOWN[:, 0])), "log", "unknown", "value", ()),
    "aft": (booster("survival:aft", None), "log", "unknown", "value", ()),
    "function": (
        estimator(xgb.XGBRegressor, KNOWN[:, 0], objective=squares),
        *("identity", "unknown", "raw", ()),
    ),
}
WITH_VECTORS = {
    "three, vectors": (
        classifier(THREE, **VECTORS),
        *("softmax", "log_loss", "class", (0, 1, 2)),
    ),
    "forest of three, vectors": (
        estimator(xgb.XGBRFClassifier, THREE, **FORESTS | VECTORS),
        *("softmax", "log_loss", "class", (0, 1, 2)),
    ),
    "softmax, vectors": (
        booster("multi:softmax", THREE, num_class=3, **VECTORS),
        *("softmax", "log_loss", "class", (0.0, 1.0, 2.0)),
    ),
    "targets, vectors": (
        estimator(xgb.XGBRegressor, TARGETS, num_parallel_tree=2, subsample=0.6, **VECTORS),
        *("identity", "squared_error", "value", ()),
    ),
}
CASES = CLASSIFIERS | OF_CLASSES | SEVERAL_OUTPUTS | UNKNOWN
CASES |= WITH_VECTORS if STORES_VECTORS else {}
BY_OUTPUT = [
    *("two of several", "three", "three, softmax", "three, dart", "three, parallel"),
    *("forest of three", "softprob", "softmax", *SEVERAL_OUTPUTS),
]


@pytest.fixture(scope="module")
def models():
    """Return a function that fits the model of a name, once."""
    fitted = {}

    def fit(name):
        if name not in fitted:
            fitted[name] = CASES[name][0]()
        return fitted[name]

    return fit


def booster_of(model):
    return model if isinstance(model, xgb.Booster) else model.get_booster()


def predict(model, rows, **options):
    """Return what the model predicts; raw predictions with ``output_margin=True``."""
    if isinstance(model, xgb.Booster):
        return model.predict(xgb.DMatrix(rows, nthread=1), **options)
    return model.predict(rows, **options)


def raw(model, rows):
    return predict(model, rows, output_margin=True)


def same(a, b):
    """Compare sums in float32."""
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6 * (1 + np.abs(b).max()))


def says(forest, rows=X):
    """Return what the library would predict, by the forest's raw prediction and its origin."""
    origin, predicted = forest.origin, forest.predict(rows)
    if origin.response == "raw":
        return predicted
    if origin.response == "class" and origin.link == "logit":
        return np.array(origin.classes)[(predicted > 0).astype(int)]
    if origin.response == "class":
        return np.array(origin.classes)[np.argmax(predicted, axis=1)]
    through = {"identity": np.array, "log": np.exp, "logit": expit}
    return through.get(origin.link, lambda sums: softmax(sums, axis=1))(predicted)


def body_of(model):
    return xgboost_model.body_of(ubjson.loads(booster_of(model).save_raw("ubj")))


def fingerprint(model):
    inside = booster_of(model)
    return inside.save_raw("json"), inside.save_config(), str(getattr(model, "get_params", int)())


def prunings(forest):
    """Yield what pruning may leave of a forest: fewer and shorter trees, none of some outputs."""
    depths = np.arange(forest.n_trees) * 7 % 4
    yield "stumps", forest.truncate(1)
    yield "some", forest.truncate(depths)
    yield "compact", forest.truncate(depths).compact()
    yield "first", forest.truncate((np.arange(forest.n_trees) == 0) * 2)
    yield "last", forest.truncate((np.arange(forest.n_trees) == forest.n_trees - 1) * 2).compact()
    yield "none", forest.truncate(0)
    yield "nothing", forest.truncate(0).compact()
    shifts = np.random.default_rng(1)
    yield (
        "refitted",
        replace(
            forest.truncate(2),
            value=forest.truncate(2).value + shifts.normal(size=forest.truncate(2).value.shape),
            base=forest.base + shifts.normal(size=forest.n_outputs),
            scale=forest.scale * shifts.normal(size=forest.n_trees),
        ),
    )


# In and out


@pytest.mark.parametrize("name", CASES)
def test_what_is_read_predicts_what_the_library_does(name, models):
    model = models(name)
    before = fingerprint(model)
    forest = fp.Forest.from_model(model)
    assert fingerprint(model) == before
    margin = raw(model, X)
    assert forest.predict(X).shape == margin.shape
    same(forest.predict(X), margin)
    origin, (_, link, objective, response, classes) = forest.origin, CASES[name]
    assert (origin.link, origin.objective, origin.response) == (link, objective, response)
    assert origin.classes == classes
    assert list(map(type, origin.classes)) == list(map(type, classes))
    same(says(forest), predict(model, X))
    if isinstance(model, xgb.XGBClassifier) and "hinge" not in name:
        chances = expit(forest.predict(X)) if link == "logit" else None
        chances = softmax(forest.predict(X), axis=1) if chances is None else chances
        own = model.predict_proba(X)
        same(chances, own[:, 1] if link == "logit" else own)


@pytest.mark.parametrize("name", CASES)
def test_what_is_written_is_what_was_read(name, models, tmp_path):
    model = models(name)
    forest = fp.Forest.from_model(model)
    native = forest.to_native()
    assert type(native) is type(model)
    same(raw(native, X), raw(model, X))
    same(predict(native, X), predict(model, X))
    before, after = body_of(model), body_of(native)
    for field in ("tree_info", "iteration_indptr", "gbtree_model_param"):
        np.testing.assert_equal(after[field], before[field])
    again = fp.Forest.from_model(native)
    if "function" not in name:
        assert again.origin == forest.origin
    np.testing.assert_array_equal(again.tree_output, forest.tree_output)
    if "dart" not in name and forest.depths.all():
        for array in ("offsets", "left", "feature", "threshold", "missing_left", "cover"):
            np.testing.assert_array_equal(getattr(again, array), getattr(forest, array))
    forest.truncate(1).save(tmp_path / "forest.npz")
    loaded = fp.Forest.load(tmp_path / "forest.npz")
    assert loaded == forest.truncate(1)
    same(raw(loaded.to_native(), X), forest.truncate(1).predict(X))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CASES)
def test_pruned_models_predict_what_the_pruned_forest_does(name, models, tmp_path):
    forest = fp.Forest.from_model(models(name))
    for kind, small in prunings(forest):
        native = small.to_native()
        expected = small.predict(X)
        same(raw(native, X), expected)
        same(predict(native, X), says(small))
        again = fp.Forest.from_model(native)
        same(again.predict(X), expected)
        same(raw(pickle.loads(pickle.dumps(native)), X), expected)
        if kind not in ("some", "nothing"):
            continue
        for suffix in ("json", "ubj"):
            path = tmp_path / f"model.{suffix}"
            native.save_model(path)
            same(raw(model_files.load(path), X), expected)
            if isinstance(native, xgb.Booster):
                continue
            reloaded = type(native)()
            reloaded.load_model(path)
            same(predict(reloaded, X), predict(native, X))
        if isinstance(native, xgb.Booster):
            continue
        native.set_params(n_jobs=1)  # hands all parameters to the library again
        same(raw(native, X), expected)
        assert clone(native).get_params().keys() == native.get_params().keys()


@pytest.mark.parametrize("name", BY_OUTPUT)
def test_rounds_are_filled_up_with_as_few_roots_as_can_be(name, models):
    forest = fp.Forest.from_model(models(name))
    for _, small in prunings(forest):
        native, compact = small.to_native(), small.compact()
        body = body_of(native)
        counts = np.bincount(compact.tree_output, minlength=compact.n_outputs)
        assert len(body["trees"]) == compact.n_outputs * max(1, counts.max())
        sizes = [tree["left_children"].size for tree in body["trees"]]
        assert sum(sizes) - compact.n_nodes == len(sizes) - compact.n_trees
        per_round = int(body["gbtree_model_param"]["num_parallel_tree"])
        rounds = len(sizes) // (per_round * compact.n_outputs)
        one_round = np.repeat(np.arange(compact.n_outputs), per_round)
        np.testing.assert_array_equal(body["tree_info"], np.tile(one_round, rounds))
        assert booster_of(native).num_boosted_rounds() == rounds
        assert np.diff(body["iteration_indptr"]).tolist() == [one_round.size] * rounds
        if "forest" in name:
            assert (rounds, native.n_estimators) == (1, per_round)
        elif not isinstance(native, xgb.Booster):
            assert native.n_estimators == rounds


def test_rounds_of_several_trees_stay_whole_or_fall_apart(models):
    forest = fp.Forest.from_model(models("three, parallel"))
    whole = np.repeat([1, 1, 1, 0, 1, 1, 1, 0, 1], 2)
    native = forest.truncate(whole).to_native()
    assert (native.n_estimators, native.num_parallel_tree) == (3, 2)
    whole[0] = 0
    native = forest.truncate(whole).to_native()
    assert (native.n_estimators, native.num_parallel_tree) == (6, 1)


@pytest.mark.parametrize("name", ["three", "three, floats", "targets", "rank:ndcg", "two, hinge"])
def test_constants_are_where_the_library_keeps_them(name, models):
    small = fp.Forest.from_model(models(name)).truncate(0).compact()
    native = small.to_native()
    trees = body_of(native)["trees"]
    left_over = np.array([tree["split_conditions"][0] for tree in trees])
    if ONE_BASE_SCORE_EACH or small.n_outputs == 1:
        assert np.abs(left_over).max() < 1e-6
    if name == "three, floats":
        own = small.base if ONE_BASE_SCORE_EACH else 0.25
        np.testing.assert_allclose(native.base_score, own, rtol=1e-6)


# What estimators keep


def test_early_stopping_counts_rounds():
    model = xgb.XGBClassifier(
        n_estimators=60, learning_rate=1.0, early_stopping_rounds=3, n_jobs=1, max_depth=3
    )
    model.fit(X[:50], THREE[:50], eval_set=[(X[50:], THREE[50:])], verbose=False)
    rounds = model.get_booster().num_boosted_rounds()
    assert model.best_iteration + 1 < rounds
    forest = fp.Forest.from_model(model)
    assert forest.n_trees == 3 * (model.best_iteration + 1)
    same(forest.predict(X), raw(model, X))
    small = forest.truncate(np.arange(forest.n_trees) % 4)
    native = small.to_native()
    assert native.best_iteration + 1 == native.n_estimators
    same(raw(native, X), small.predict(X))
    same(predict(native, X), says(small))
    assert fp.Forest.from_model(model.get_booster()).n_trees == 3 * rounds


@pytest.mark.parametrize("name", ["two", "three", "three, softmax", "forest of three"])
def test_a_written_classifier_is_one(name, models):
    model = models(name)
    native = fp.Forest.from_model(model).truncate(2).to_native()
    assert native.n_classes_ == model.n_classes_
    np.testing.assert_array_equal(native.classes_, model.classes_)
    assert native.classes_.dtype == model.classes_.dtype
    assert native.predict(X).dtype == model.predict(X).dtype
    assert native.objective == model.objective
    assert native.apply(X).shape == (len(X), len(body_of(native)["trees"]))
    assert 0.0 <= native.score(X, model.predict(X)) <= 1.0
    unfitted = clone(native)
    assert not hasattr(unfitted, "_Booster")
    y = TWO if len(model.classes_) == 2 else THREE
    same(unfitted.fit(X, y).predict_proba(X), clone(model).fit(X, y).predict_proba(X))


def test_labels_are_whole_numbers(models):
    origin = fp.Forest.from_model(models("truth values")).origin
    assert np.dtype(origin.classes_dtype) == np.int64
    assert np.dtype(fp.Forest.from_model(models("softmax")).origin.classes_dtype) == np.float32


def test_weights_of_the_second_class(models):
    for name, weight in {"weighted": (1.0, 3.0), "binary": (1.0, 2.0), "two": ()}.items():
        forest = fp.Forest.from_model(models(name))
        assert forest.origin.class_weight == weight
        assert fp.Forest.from_model(forest.to_native()).origin.class_weight == weight


def test_a_function_in_place_of_an_objective_becomes_the_default(models):
    for name, default in {
        "function": "reg:squarederror",
        "two, function": "binary:logistic",
    }.items():
        native = fp.Forest.from_model(models(name)).to_native()
        assert native.objective == default
        assert fp.Forest.from_model(native).origin.objective != "unknown"


@pytest.mark.parametrize(
    "name", ["two", "three", "three, parallel", "forest of three", "softprob", "targets", "ranker"]
)
def test_training_goes_on_from_a_pruned_model(name, models):
    model = models(name)
    forest = fp.Forest.from_model(model)
    small = forest.truncate(np.arange(forest.n_trees) % 3)
    for native in (small.to_native(), forest.truncate(0).to_native()):
        start = booster_of(native).num_boosted_rounds()
        if isinstance(model, xgb.Booster):
            params = {"objective": "multi:softprob", "num_class": 3, "nthread": 1}
            more = xgb.train(params, xgb.DMatrix(X, THREE), 2, xgb_model=native)
        else:
            y = {"two": TWO, "targets": TARGETS}.get(name, THREE)
            by = {"qid": GROUPS} if name == "ranker" else {}
            more = clone(model).fit(X, y, xgb_model=native, **by)
        assert booster_of(more).num_boosted_rounds() > start
        same(fp.Forest.from_model(more).predict(X), raw(more, X))


@pytest.mark.skipif(not STORES_VECTORS, reason="older versions do not store vectors")
@pytest.mark.parametrize("name", ["three, vectors", "targets, vectors"])
def test_training_goes_on_with_vectors(name, models):
    model = models(name)
    forest = fp.Forest.from_model(model)
    for small in (forest.truncate(2), forest.truncate(0)):
        native = small.to_native()
        more = clone(model).fit(X, THREE if "three" in name else TARGETS, xgb_model=native)
        assert body_of(more)["trees"][-1]["leaf_weights"].size > 0
        same(fp.Forest.from_model(more).predict(X), raw(more, X))
        assert booster_of(native).get_dump()


@pytest.mark.parametrize("name", ["two", "three", "three, parallel", "forest of three", "targets"])
def test_contributions_of_features_add_up(name, models):
    forest = fp.Forest.from_model(models(name))
    data = xgb.DMatrix(X, nthread=1)
    for _, small in prunings(forest):
        inside = small.to_native().get_booster()
        for approximate in (False, True):
            shares = inside.predict(data, pred_contribs=True, approx_contribs=approximate)
            np.testing.assert_allclose(shares.sum(axis=-1), small.predict(X), rtol=1e-4, atol=1e-4)
        assert set(inside.get_score(importance_type="gain")) <= {"f0", "f1", "f2"}


def test_constraints_hold_for_every_class(tmp_path):
    signs = (1, 0, -1)
    model = classifier(THREE, monotone_constraints=signs, n_estimators=9)()
    forest = fp.Forest.from_model(model)
    assert forest.origin.monotone == signs
    assert fp.Forest.from_model(forest.truncate(2).to_native()).origin.monotone == signs
    xgb.train(
        {
            "objective": "multi:softprob",
            "num_class": 3,
            "monotone_constraints": signs,
            "nthread": 1,
        },
        xgb.DMatrix(X, THREE),
        9,
    ).save_model(tmp_path / "model.json")
    assert fp.Forest.from_file(tmp_path / "model.json").origin.monotone[::2] == signs[::2]


@pytest.mark.parametrize("booster_kind", ["gbtree", "dart"])
def test_categories(booster_kind):
    colours = pd.Categorical.from_codes(rng.integers(0, 6, 90), categories=list("edcbaf"))
    frame = pd.DataFrame(X, columns=["x", "y", "z"]).assign(colour=colours)
    labels = (colours.codes + THREE) % 3
    model = xgb.XGBClassifier(
        **SIZE, enable_categorical=True, max_cat_to_onehot=1, booster=booster_kind
    ).fit(frame, labels)
    forest = fp.Forest.from_model(model)
    assert forest.category_set.size
    same(forest.predict(frame), raw(model, frame))
    for _, small in prunings(forest):
        native = small.to_native()
        same(raw(native, frame), small.predict(frame))
        np.testing.assert_array_equal(native.predict(frame), says(small, frame))


@pytest.mark.parametrize("kind", ["multi:softprob", "rank:ndcg", "survival:cox"])
def test_a_model_without_trees(kind):
    params = {"objective": kind, "nthread": 1} | ({"num_class": 3} if "multi" in kind else {})
    data = xgb.DMatrix(X, THREE + 1.0 * (kind == "survival:cox"), nthread=1)
    if kind == "rank:ndcg":
        data.set_group([len(X)])
    constant = xgb.train(params, data, 0)
    forest = fp.Forest.from_model(constant)
    assert forest.n_trees == 0
    same(forest.predict(X), raw(constant, X))
    same(raw(forest.to_native(), X), raw(constant, X))


# What is refused


def test_several_labels_a_row_are_refused():
    labels = np.column_stack([TWO, 1 - TWO])
    for train in (classifier(labels), booster("binary:logistic", labels)):
        with pytest.raises(fp.UnsupportedModelError, match="one label are read; this one gives 2"):
            fp.Forest.from_model(train())
    model = classifier(TWO, objective="multi:softprob", num_class=2)()
    with pytest.raises(fp.UnsupportedModelError, match="one label are read; this one gives 2"):
        fp.Forest.from_model(model)


@pytest.mark.filterwarnings("ignore")
def test_a_single_class_is_refused():
    for train in (
        classifier(np.zeros(90, int), base_score=0.5),
        booster("multi:softprob", np.zeros(90), num_class=1),
    ):
        with pytest.raises(fp.UnsupportedModelError, match="two of them or more"):
            fp.Forest.from_model(train())


@pytest.mark.parametrize("objective", ["binary:logitraw", "reg:squarederror", "count:poisson"])
def test_classifiers_of_what_is_no_probability_are_refused(objective):
    model = classifier(TWO, objective=objective)()
    with pytest.raises(fp.UnsupportedModelError, match=rf"got {objective}, .* get_booster\(\)"):
        fp.Forest.from_model(model)
    inside = model.get_booster()
    same(fp.Forest.from_model(inside).predict(X), raw(inside, X))


def test_an_objective_of_the_future_is_refused(models):
    document = ubjson.loads(models("softprob").save_raw("ubj"))
    learner = document["learner"] | {"objective": {"name": "multi:new"}}
    with pytest.raises(fp.UnsupportedModelError, match="This one has multi:new"):
        xgboost_objective.objective_of(learner)


def test_linear_models_are_refused():
    with pytest.raises(fp.UnsupportedModelError, match="this one is gblinear"):
        fp.Forest.from_model(xgb.XGBClassifier(booster="gblinear", n_jobs=1).fit(KNOWN, THREE))


def test_trees_of_both_kinds_are_refused():
    data = xgb.DMatrix(X, TARGETS, nthread=1)
    first = xgb.train({"nthread": 1}, data, 1)
    both = xgb.train({"nthread": 1} | VECTORS, data, 1, xgb_model=first)
    with pytest.raises(fp.UnsupportedModelError, match="some have 1 at each leaf and some 2"):
        fp.Forest.from_model(both)


@pytest.mark.skipif(STORES_VECTORS, reason="they are read")
def test_vectors_of_older_versions_are_refused():
    for train, *_ in WITH_VECTORS.values():
        with pytest.raises(fp.UnsupportedModelError, match=r"are read from XGBoost 3\.2 on"):
            fp.Forest.from_model(train())


def test_forests_of_other_outputs_are_refused(models):
    forest = fp.Forest.from_model(models("three"))
    joint = {"value": np.tile(forest.value, 3), "tree_output": np.empty(0, np.int32)}
    with pytest.raises(fp.UnsupportedModelError, match="every tree adds to all of them"):
        replace(forest, **joint).to_native()
    with pytest.raises(fp.UnsupportedModelError, match="as it had, 3; this forest has 4"):
        replace(forest, base=np.zeros(4)).to_native()
    one = fp.Forest.from_model(models("two")).origin
    with pytest.raises(fp.UnsupportedModelError, match="tree adds to one of 3 outputs"):
        replace(forest, origin=one).to_native()


def test_extras_are_not_needed(models):
    forest = fp.Forest.from_model(models("three, parallel"))
    native = replace(forest, node_extras={}, tree_extras={}).to_native()
    same(raw(native, X), forest.predict(X))
    assert native.num_parallel_tree == 1
    config = json.loads(native.get_booster().save_config())["learner"]
    assert config["learner_model_param"]["num_class"] == "3"
