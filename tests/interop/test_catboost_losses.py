"""Every loss function of CatBoost: what its models predict, and what they are pruned for."""

import json
import pickle

import numpy as np
import pytest
from sklearn.datasets import make_friedman1

import forestprune as fp

catboost = pytest.importorskip("catboost")

from catboost import (  # noqa: E402
    CatBoost,
    CatBoostClassifier,
    CatBoostRanker,
    CatBoostRegressor,
    Pool,
)

VERSION = tuple(int(part) for part in catboost.__version__.split(".")[:3])
QUIET = {
    "iterations": 6,
    "depth": 3,
    "learning_rate": 0.3,
    "thread_count": 1,
    "allow_writing_files": False,
    "logging_level": "Silent",
}
SCORE = "a score of its own"
COUNT = "the log of the mean of y"
# What the raw prediction is, in words; whether there is a loss that y is judged by; the target.
LOSSES = {
    "RMSE": ("y", True, "y"),
    "MAE": ("y", True, "y"),
    "MAPE": ("y", True, "y"),
    "RMSPE": ("y", True, "y"),
    "Huber:delta=1.0": ("y", True, "y"),
    "LogCosh": ("y", True, "y"),
    "Lq:q=1.5": ("y", True, "y"),
    "Quantile": ("y", True, "y"),
    "Quantile:alpha=0.9": ("the 0.9 quantile of y", True, "y"),
    "MultiQuantile:alpha=0.1,0.5,0.9": ("a quantile of y", False, "y"),
    "Expectile:alpha=0.7": ("the 0.7 expectile of y", False, "y"),
    "Expectile:alpha=0.5": ("y", True, "y"),
    "LogLinQuantile": ("the log of the 0.5 quantile of y", False, "y"),
    "Poisson": (COUNT, True, "y"),
    "Tweedie:variance_power=1.5": (COUNT, True, "y"),
    "Cox": (COUNT, False, "y"),
    "SurvivalAft": (COUNT, False, "range"),
    "MultiRMSE": ("y", True, "two"),
    "MultiRMSEWithMissingValues": ("y", True, "two"),
    "RMSEWithUncertainty": (SCORE, False, "y"),
    "GroupQuantile": (SCORE, False, "y"),
    "QueryRMSE": (SCORE, False, "y"),
    "QuerySoftMax": (SCORE, False, "labels"),
    "YetiRank": (SCORE, False, "labels"),
    "YetiRankPairwise": (SCORE, False, "labels"),
    "PairLogit": (SCORE, False, "labels"),
    "PairLogitPairwise": (SCORE, False, "labels"),
    "LambdaMart": (SCORE, False, "labels"),
    "StochasticFilter": (SCORE, False, "labels"),
    "StochasticRank:metric=NDCG": (SCORE, False, "labels"),
    "Logloss": ("the log-odds of y", True, "labels"),
    "Focal:focal_alpha=0.4;focal_gamma=2.0": ("the log-odds of y", False, "labels"),
    "CrossEntropy": ("the log-odds of y", True, "shares"),
    "MultiLogloss": ("the log-odds of y", True, "two labels"),
    "MultiCrossEntropy": ("the log-odds of y", True, "two shares"),
}
if VERSION < (1, 2, 9):
    del LOSSES["RMSPE"]  # unknown to older versions
OF_REGRESSORS = [
    loss
    for loss, (_, _, target) in LOSSES.items()
    if target in ("y", "two", "range") and loss not in ("GroupQuantile", "QueryRMSE")
]
OF_GROUPS = {loss for loss, (what, _, _) in LOSSES.items() if what == SCORE} - {
    "RMSEWithUncertainty"
}

X, Y = make_friedman1(200, n_features=6, random_state=0)
LABELS = (np.median(Y) < Y).astype(int)
GROUPS = np.repeat(np.arange(20), 10)
TARGETS = {
    "y": Y,
    "two": np.column_stack([Y, X[:, 0] * Y]),
    "range": np.column_stack([Y, Y + 1]),
    "labels": LABELS,
    "shares": Y / Y.max(),
    "two labels": np.column_stack([LABELS, X[:, 1] > 0.5]).astype(int),
    "two shares": np.column_stack([Y / Y.max(), X[:, 1]]),
}


def same(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


def fitted(cls, loss, **params):
    """Return a model of a class that is fitted for a loss, and its target."""
    y = TARGETS[LOSSES[loss][2]]
    settings = {"loss_function": loss, **QUIET, **params}
    model = cls(settings) if cls is CatBoost else cls(**settings)
    return model.fit(Pool(X, y, group_id=GROUPS if loss in OF_GROUPS else None)), y


def check(model, y, words, *, judged):
    """Assert that a model comes in and goes out, and is pruned with y or without."""
    before = pickle.dumps(model)
    forest = fp.Forest.from_model(model)
    assert pickle.dumps(model) == before
    assert forest.origin.predicts == words
    assert forest.adds_up_to_y is (words == "y")
    raw = CatBoost.predict(model, X, prediction_type="RawFormulaVal")
    same(forest.predict(X), raw)
    same(CatBoost.predict(forest.to_native(), X, prediction_type="RawFormulaVal"), raw)
    smalls = [fp.prune(model, X, max_nodes=30, n_alphas=12, n_jobs=1)]
    if judged:
        smalls.append(fp.prune(model, X, y, max_nodes=30, n_alphas=12, n_jobs=1))
        assert smalls[1].loss < 1.0
    else:
        known = "" if forest.origin.objective == "unknown" else rf".*add up to {words}\)"
        with pytest.raises(ValueError, match=rf"does not know the loss{known}.*Leave y out"):
            fp.prune(model, X, y, max_nodes=30)
    for small in smalls:
        native = small.to_native()
        assert type(native) is type(model)
        assert small.n_nodes <= 30
        assert native.get_params() == model.get_params()
        np.testing.assert_equal(native.classes_, model.classes_)
        same(native.predict(X), small.predict(X))
        again = fp.Forest.from_model(pickle.loads(pickle.dumps(native)))
        assert (again.origin.link, again.origin.objective) == (
            forest.origin.link,
            forest.origin.objective,
        )
        same(again.predict(X), small.decision_function(X))
    # Without y it is pruned towards what it says itself.
    away = smalls[0].decision_function(X) - raw
    assert np.mean(away**2) < 0.9 * np.mean((raw - raw.mean(axis=0)) ** 2)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("loss", LOSSES)
def test_plain_models(loss):
    words, judged, _ = LOSSES[loss]
    model, y = fitted(CatBoost, loss)
    check(model, y, words, judged=judged)


@pytest.mark.parametrize("loss", [loss for loss in OF_REGRESSORS if loss != "RMSEWithUncertainty"])
def test_regressors(loss):
    words, judged, _ = LOSSES[loss]
    model, y = fitted(CatBoostRegressor, loss)
    check(model, y, words, judged=judged)
    through = np.exp if loss.startswith(("Poisson", "Tweedie")) else np.array
    same(model.predict(X), through(model.predict(X, prediction_type="RawFormulaVal")))


@pytest.mark.filterwarnings("ignore:Regression loss .* ignores")
@pytest.mark.parametrize("loss", ["YetiRank", "QueryRMSE", "RMSE"])
def test_rankers(loss):
    words, judged, _ = LOSSES[loss]
    model, y = fitted(CatBoostRanker, loss)
    check(model, y, words, judged=judged)


def test_a_regressor_of_means_and_variances_is_refused(tmp_path):
    model, _ = fitted(CatBoostRegressor, "RMSEWithUncertainty")
    with pytest.raises(fp.UnsupportedModelError, match=r"a mean and a variance.*plain CatBoost"):
        fp.Forest.from_model(model)
    # The way out that the message shows.
    model.save_model(str(tmp_path / "model.cbm"))
    forest = fp.Forest.from_file(tmp_path / "model.cbm")
    same(forest.predict(X), model.predict(X, prediction_type="RawFormulaVal"))


@pytest.mark.parametrize(
    ("loss", "target", "link", "objective", "params"),
    [
        ("Huber:delta=1.5", "y", "identity", "huber", {"delta": 1.5}),
        ("MultiQuantile:alpha=0.2,0.9", "y", "identity", "quantile", {}),
        ("MultiRMSE", "two", "identity", "squared_error", {}),
        ("Cox", "y", "log", "unknown", {}),
        ("Focal:focal_alpha=0.4;focal_gamma=2.0", "labels", "logit", "unknown", {}),
        ("MultiLogloss", "two labels", "logit", "cross_entropy", {}),
    ],
)
def test_what_a_model_says_of_its_loss(loss, target, link, objective, params):
    model = CatBoost({"loss_function": loss, **QUIET}).fit(X, TARGETS[target])
    origin = fp.Forest.from_model(model).origin
    assert (origin.link, origin.objective) == (link, objective)
    assert origin.objective_params == pytest.approx(params)


@pytest.mark.parametrize("loss", ["Logloss", "CrossEntropy"])
def test_plain_models_with_a_binary_loss(loss):
    model = CatBoost({"loss_function": loss, **QUIET}).fit(X, LABELS)
    forest = fp.Forest.from_model(model)
    # Of the cross entropy, targets may be shares as well.
    assert forest.origin.classes == ((0, 1) if loss == "Logloss" else ())
    native = forest.to_native()
    assert type(native) is CatBoost
    np.testing.assert_array_equal(native.classes_, model.classes_)
    for kind in ("Probability", "Class", "LogProbability"):
        same(native.predict(X, prediction_type=kind), model.predict(X, prediction_type=kind))


def test_a_model_that_does_not_say_its_loss(tmp_path):
    model, _ = fitted(CatBoostRegressor, "RMSE")
    path = tmp_path / "model.json"
    model.save_model(str(path), format="json")
    text = json.loads(path.read_text())
    del text["model_info"]
    path.write_text(json.dumps(text))
    silent = CatBoost().load_model(str(path), format="json")
    check(silent, Y, SCORE, judged=False)


# Losses and metrics of one's own


class SquaredError:
    def calc_ders_range(self, approxes, targets, weights):
        return [(targets[i] - approxes[i], -1.0) for i in range(len(targets))]


class SquaredErrorOfAll:
    def calc_ders_multi(self, approx, target, weight):
        wanted = np.eye(len(approx))[int(target)]
        return (wanted - np.array(approx)).tolist(), (-np.eye(len(approx))).tolist()


class Nothing:
    def is_max_optimal(self):
        return False

    def get_final_error(self, error, weight):
        return error

    def evaluate(self, approxes, target, weight):
        return 0.0, 1.0


OF_ONES_OWN = {
    "regressor": (CatBoostRegressor, SquaredError, Nothing, Y, ("identity", "raw", ())),
    "plain": (CatBoost, SquaredError, Nothing, Y, ("identity", "raw", ())),
    "two": (CatBoostClassifier, SquaredError, "Logloss", LABELS, ("logit", "class", (0, 1))),
    "three": (
        *(CatBoostClassifier, SquaredErrorOfAll, "MultiClass"),
        *(np.arange(200) % 3, ("softmax", "class", (0, 1, 2))),
    ),
}


@pytest.mark.filterwarnings("ignore:Failed to optimize method", "ignore:Can't optimize method")
@pytest.mark.parametrize("name", OF_ONES_OWN)
def test_a_loss_of_ones_own_is_forgotten_as_files_do(name, tmp_path):
    cls, loss, metric, y, expected = OF_ONES_OWN[name]
    metric = metric if isinstance(metric, str) else metric()
    params = {"loss_function": loss(), "eval_metric": metric, **QUIET}
    model = (cls(params) if cls is CatBoost else cls(**params)).fit(X, y)
    model.save_model(str(tmp_path / "model"))
    loaded = cls().load_model(str(tmp_path / "model"))
    for each in (model, loaded):
        forest = fp.Forest.from_model(each)
        origin = forest.origin
        assert origin.objective == "unknown"
        assert (origin.link, origin.response, origin.classes) == expected
        with pytest.raises(ValueError, match=r"does not know the loss .*Leave y out"):
            fp.prune(each, X, y, max_nodes=20)
        small = fp.prune(each, X, max_nodes=20, n_alphas=10, n_jobs=1)
        native = small.to_native()
        for param in ("loss_function", "eval_metric"):
            assert native.get_param(param) == loaded.get_param(param)
        same(np.ravel(native.predict(X)), np.ravel(small.predict(X)))
        if cls is CatBoostClassifier:
            same(native.predict_proba(X), small.predict_proba(X))
        forest.save(tmp_path / "forest.npz")
        same(fp.Forest.load(tmp_path / "forest.npz").to_native().predict(X), each.predict(X))


def test_other_parameters_that_are_no_plain_values_are_refused(tmp_path):
    model = CatBoostRegressor(train_dir=tmp_path, **QUIET).fit(X, Y)
    with pytest.raises(fp.UnsupportedModelError, match="train_dir must be a plain value"):
        fp.Forest.from_model(model)
