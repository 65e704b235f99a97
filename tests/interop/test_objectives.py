"""Link and objective are those that the library's model was trained with; so is what averages."""

import numpy as np
import pytest
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.metrics import mean_poisson_deviance
from sklearn.tree import DecisionTreeRegressor

import forestprune as fp
from forestprune.solve.layers.rule import LayerRule
from forestprune.solve.problem import pose

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 3))
Y = np.exp(X[:, 0] + 0.1 * rng.normal(size=80))
SHARES = Y / (1 + Y)
LABELS = (Y > 1).astype(float)
QUIET = {"thread_count": 1, "verbose": 0, "allow_writing_files": False, "iterations": 3}


def scikit_learn(cls, **params):
    return lambda: cls(**params, random_state=0).fit(X, Y)


def xgboost(objective, y=Y, **params):
    def train():
        xgb = pytest.importorskip("xgboost")
        settings = {"objective": objective, "nthread": 1, **params}
        return xgb.train(settings, xgb.DMatrix(X, y), 3)

    return train


def lightgbm(objective, y=Y, **params):
    def train():
        lgb = pytest.importorskip("lightgbm")
        settings = {"objective": objective, "num_threads": 1, "verbose": -1, **params}
        return lgb.train(settings, lgb.Dataset(X, y), 3)

    return train


def catboost(loss, y=Y):
    def train():
        library = pytest.importorskip("catboost")
        return library.CatBoost({"loss_function": loss, **QUIET}).fit(X, y)

    return train


# How it is trained; link, objective, its parameters; whether the raw sum is compared with y.
CASES = {
    "tree": (scikit_learn(DecisionTreeRegressor), "identity", "squared_error", {}, True),
    "friedman": (
        scikit_learn(RandomForestRegressor, n_estimators=3, criterion="friedman_mse"),
        *("identity", "squared_error", {}, True),
    ),
    "forest of medians": (
        scikit_learn(ExtraTreesRegressor, n_estimators=3, criterion="absolute_error"),
        *("identity", "absolute_error", {}, True),
    ),
    "forest of counts": (
        scikit_learn(RandomForestRegressor, n_estimators=3, criterion="poisson"),
        *("identity", "poisson", {}, True),
    ),
    "bagging": (
        scikit_learn(
            BaggingRegressor,
            estimator=DecisionTreeRegressor(criterion="absolute_error"),
            n_estimators=3,
        ),
        *("identity", "absolute_error", {}, True),
    ),
    **{
        f"boosting {loss}": (
            scikit_learn(GradientBoostingRegressor, n_estimators=3, loss=loss, alpha=0.5),
            *("identity", loss, {"level": 0.5} if loss == "quantile" else {}, loss != "quantile"),
        )
        for loss in ("squared_error", "absolute_error", "huber", "quantile")
    },
    **{
        f"histograms {loss}": (
            scikit_learn(HistGradientBoostingRegressor, max_iter=3, loss=loss, quantile=0.5),
            link,
            loss,
            {"level": 0.5} if loss == "quantile" else {},
            loss in ("squared_error", "absolute_error"),
        )
        for loss, link in {
            "squared_error": "identity",
            "absolute_error": "identity",
            "quantile": "identity",
            "gamma": "log",
            "poisson": "log",
        }.items()
    },
    "xgb": (xgboost("reg:squarederror"), "identity", "squared_error", {}, True),
    "xgb log": (xgboost("reg:squaredlogerror"), "identity", "squared_log_error", {}, True),
    "xgb huber": (xgboost("reg:pseudohubererror"), "identity", "pseudo_huber", {}, True),
    "xgb median": (xgboost("reg:absoluteerror"), "identity", "absolute_error", {}, True),
    "xgb quantile": (
        xgboost("reg:quantileerror", quantile_alpha=0.5),
        *("identity", "quantile", {"level": 0.5}, False),
    ),
    "xgb hinge": (xgboost("binary:hinge", LABELS), "logit", "hinge", {}, False),
    "xgb shares": (xgboost("reg:logistic", SHARES), "logit", "cross_entropy", {}, False),
    "xgb binary": (xgboost("binary:logistic", LABELS), "logit", "log_loss", {}, False),
    "xgb raw": (xgboost("binary:logitraw", LABELS), "logit", "log_loss", {}, False),
    "xgb poisson": (xgboost("count:poisson"), "log", "poisson", {}, False),
    "xgb gamma": (xgboost("reg:gamma"), "log", "gamma", {}, False),
    "xgb tweedie": (
        xgboost("reg:tweedie", tweedie_variance_power=1.25),
        *("log", "tweedie", {"power": 1.25}, False),
    ),
    "lgb": (lightgbm("regression"), "identity", "squared_error", {}, True),
    "lgb sqrt": (
        lightgbm("regression", reg_sqrt=True),
        *("signed_sqrt", "squared_error", {}, False),
    ),
    "lgb median": (lightgbm("regression_l1"), "identity", "absolute_error", {}, True),
    "lgb huber": (lightgbm("huber"), "identity", "huber", {"delta": 0.9}, True),
    "lgb fair": (lightgbm("fair"), "identity", "fair", {}, True),
    "lgb mape": (lightgbm("mape"), "identity", "absolute_percentage_error", {}, True),
    "lgb quantile": (
        lightgbm("quantile", alpha=0.5),
        *("identity", "quantile", {"level": 0.5}, False),
    ),
    "lgb poisson": (lightgbm("poisson"), "log", "poisson", {}, False),
    "lgb gamma": (lightgbm("gamma"), "log", "gamma", {}, False),
    "lgb tweedie": (
        lightgbm("tweedie", tweedie_variance_power=1.25),
        *("log", "tweedie", {"power": 1.25}, False),
    ),
    "lgb binary": (
        lightgbm("binary", LABELS, sigmoid=2.5),
        *("logit", "log_loss", {"sigmoid": 2.5}, False),
    ),
    "lgb shares": (lightgbm("cross_entropy", SHARES), "logit", "cross_entropy", {}, False),
    "cat": (catboost("RMSE"), "identity", "squared_error", {}, True),
    "cat median": (catboost("MAE"), "identity", "absolute_error", {}, True),
    "cat mape": (catboost("MAPE"), "identity", "absolute_percentage_error", {}, True),
    "cat huber": (catboost("Huber:delta=1"), "identity", "huber", {"delta": 1.0}, True),
    "cat cosh": (catboost("LogCosh"), "identity", "log_cosh", {}, True),
    "cat lq": (catboost("Lq:q=3"), "identity", "lq", {}, True),
    "cat half": (catboost("Quantile"), "identity", "absolute_error", {}, True),
    "cat quantile": (
        catboost("Quantile:alpha=0.25"),
        *("identity", "quantile", {"level": 0.25}, False),
    ),
    "cat half expectile": (
        catboost("Expectile:alpha=0.5"),
        *("identity", "squared_error", {}, True),
    ),
    "cat expectile": (
        catboost("Expectile:alpha=0.25"),
        *("identity", "expectile", {"level": 0.25}, False),
    ),
    "cat log quantile": (
        catboost("LogLinQuantile:alpha=0.5"),
        *("log", "quantile", {"level": 0.5}, False),
    ),
    "cat poisson": (catboost("Poisson"), "log", "poisson", {}, False),
    "cat tweedie": (
        catboost("Tweedie:variance_power=1.25"),
        *("log", "tweedie", {"power": 1.25}, False),
    ),
    "cat binary": (catboost("Logloss", LABELS), "logit", "log_loss", {}, False),
    "cat shares": (catboost("CrossEntropy", SHARES), "logit", "cross_entropy", {}, False),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::FutureWarning")  # friedman_mse will go
def test_what_a_model_says_of_its_training(name, tmp_path):
    train, link, objective, params, comparable = CASES[name]
    forest = fp.Forest.from_model(train())
    origin = forest.origin
    assert (origin.link, origin.objective) == (link, objective)
    assert origin.objective_params == pytest.approx(params)
    assert forest.adds_up_to_y is comparable
    assert (origin.predicts == "y") is comparable
    forest.save(tmp_path / "forest.npz")
    assert fp.Forest.load(tmp_path / "forest.npz").origin == origin
    again = fp.Forest.from_model(forest.truncate(2).to_native()).origin
    assert (again.link, again.objective) == (link, objective)
    assert again.objective_params == pytest.approx(params)


@pytest.mark.parametrize(
    ("name", "y", "message"),
    [
        ("histograms poisson", -Y, "y must be 0 or more for the Poisson loss; got -"),
        ("xgb gamma", Y - Y.min(), "y must be above 0 for the gamma loss; got 0 in row"),
        ("lgb tweedie", -Y, "y must be 0 or more for the Tweedie loss; got -"),
        ("xgb shares", Y, "y must be from 0 to 1 for log-loss; got"),
        ("lgb poisson", np.full(80, np.nan), "y must be finite"),
        ("xgb hinge", LABELS, r"does not know the loss .* \(hinge; .* Leave y out"),
        ("lgb sqrt", Y, r"\(squared error; its trees add up to the signed square root of y\)"),
        ("cat expectile", Y, r"\(expectile; its trees .* Leave y out"),
    ],
)
def test_a_target_that_the_loss_is_not_for_is_refused(name, y, message):
    model, good = CASES[name][0](), SHARES if "shares" in name else Y
    with pytest.raises(ValueError, match=message):
        fp.prune(model, X, y, max_nodes=10)
    if "Leave" in message or "sqrt" in name:
        assert fp.prune(model, X, max_nodes=10).n_nodes <= 10
        return
    with pytest.raises(ValueError, match=message) as caught:
        fp.prune(model, X, good, max_nodes=10, X_val=X, y_val=y)
    assert "X_val and y_val" in caught.value.__notes__[0]


def test_training_goes_on_in_the_same_loss():
    xgb, lgb = pytest.importorskip("xgboost"), pytest.importorskip("lightgbm")
    own = {"n_estimators": 12, "n_jobs": 1}
    models = [
        xgb.XGBRegressor(objective="count:poisson", max_depth=3, **own),
        lgb.LGBMRegressor(objective="poisson", verbose=-1, min_child_samples=5, **own),
        HistGradientBoostingRegressor(loss="poisson", max_iter=12, warm_start=True),
    ]
    for model in models:
        small = fp.prune(model.fit(X, Y), X, Y, max_nodes=30, n_alphas=6)
        native, more = small.to_native(), model.get_params() | {"n_estimators": 10}
        before = mean_poisson_deviance(Y, native.predict(X))
        if isinstance(model, xgb.XGBModel):
            longer = xgb.XGBRegressor(**more).fit(X, Y, xgb_model=native)
        elif isinstance(model, lgb.LGBMModel):
            longer = lgb.LGBMRegressor(**more).fit(X, Y, init_model=native)
        else:
            longer = native.set_params(max_iter=native.n_iter_ + 10).fit(X, Y)
        assert fp.Forest.from_model(longer).n_trees == small.n_trees + 10
        assert mean_poisson_deviance(Y, longer.predict(X)) < before


LIBRARIES = ["tree", "forest of medians", "bagging", "boosting huber", "histograms gamma"]
LIBRARIES += ["xgb", "xgb binary", "xgb gamma", "lgb", "lgb tweedie", "cat", "cat poisson"]


@pytest.mark.parametrize("name", LIBRARIES)
def test_numpy_may_be_told_to_raise_whatever_happens(name, monkeypatch):
    # Thresholds next to zero, too small for a float32 of full precision.
    X = np.where(globals()["X"] > 1.5, 0.0, 1e-39 * globals()["X"])
    monkeypatch.setitem(globals(), "X", X)
    model = CASES[name][0]()
    with np.errstate(all="raise"):
        forest = fp.Forest.from_model(model)
        small = forest.truncate(2)
        native = small.to_native()
        predicted = small.predict(X)
        again = fp.Forest.from_model(native).predict(X)
    np.testing.assert_allclose(again, predicted, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("rule", ["layer", "subtree"])
def test_an_xgboost_model_is_pruned_where_numpy_raises(rule):
    model = CASES["xgb"][0]()
    with np.errstate(all="raise"):
        small = fp.prune(model, X, Y, max_nodes=10, rule=rule)
    assert small.n_nodes <= 10


def random_forests():
    """Yield models that average their trees, and models that add them up."""
    xgb = pytest.importorskip("xgboost")
    lgb = pytest.importorskip("lightgbm")
    bagged = {"bagging_freq": 1, "bagging_fraction": 0.6, "n_jobs": 1, "verbose": -1}
    yield RandomForestRegressor(9, max_depth=3, random_state=0), True
    yield xgb.XGBRFRegressor(n_estimators=9, max_depth=3, subsample=0.6, n_jobs=1), True
    yield lgb.LGBMRegressor(boosting_type="rf", n_estimators=9, **bagged), True
    yield GradientBoostingRegressor(n_estimators=9, learning_rate=1 / 9, init="zero"), False
    yield xgb.XGBRegressor(n_estimators=9, max_depth=3, n_jobs=1), False


def test_the_layer_rule_meets_averaged_trees_by_their_error():
    for model, averages in random_forests():
        forest = fp.Forest.from_model(model.fit(X, Y))
        assert forest.averages is averages
        order = LayerRule(pose(fp.encode(forest, X), Y)).order
        if not averages:
            assert list(order) == list(range(9))
            continue
        constant = forest.truncate(0).predict(X)
        alone = [forest.truncate([9 * (i == k) for k in range(9)]).predict(X) for i in range(9)]
        errors = [np.sum((Y - constant - 9 * (p - constant)) ** 2) for p in alone]
        assert list(order) == list(np.argsort(errors))
