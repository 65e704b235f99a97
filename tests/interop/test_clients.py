"""Programs that read the libraries' models take pruned ones as they take the originals.

shap's TreeExplainer refuses scikit-learn's boosting of several classes, pruned or not, so that is
left out. scikit-learn's models go to ONNX by skl2onnx, see test_onnx.py.
"""

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

import forestprune as fp


def xgboost_model(target):
    xgboost = pytest.importorskip("xgboost")
    options = {"n_estimators": 8, "max_depth": 3, "n_jobs": 1}
    if target == "counts":
        return xgboost.XGBRegressor(objective="count:poisson", **options)
    return xgboost.XGBClassifier(**options)


def lightgbm_model(target):
    lightgbm = pytest.importorskip("lightgbm")
    options = {"n_estimators": 8, "num_leaves": 6, "n_jobs": 1, "verbose": -1}
    if target == "counts":
        return lightgbm.LGBMRegressor(objective="poisson", **options)
    return lightgbm.LGBMClassifier(**options)


def forest_model(target):
    if target == "counts":
        return RandomForestRegressor(8, criterion="poisson", max_depth=4, random_state=0)
    return RandomForestClassifier(8, max_depth=4, random_state=0)


def extra_trees_model(target):
    return ExtraTreesClassifier(8, max_depth=4, random_state=0)


def boosting_model(target):
    return GradientBoostingClassifier(n_estimators=8, random_state=0)


def hist_model(target):
    if target == "counts":
        return HistGradientBoostingRegressor(loss="poisson", max_iter=8, max_leaf_nodes=6)
    return HistGradientBoostingClassifier(max_iter=8, max_leaf_nodes=6)


def rows(target):
    """Return rows with two classes, three classes or counts."""
    X, y = make_friedman1(300, n_features=6, random_state=0)
    X = X.astype(np.float32)
    if target == "counts":
        return X, np.random.default_rng(0).poisson(y / 5)
    n_classes = {"two": 2, "three": 3}[target]
    return X, np.argsort(np.argsort(y)) * n_classes // len(y)


def pruned(model, X, y):
    """Return a model of the same class with a part of the nodes, but not a constant."""
    small = fp.prune(model.fit(X, y), X, y, max_nodes=60)
    assert 0 < small.n_nodes < fp.Forest.from_model(model).n_nodes
    return small.to_native()


def raw(native, X):
    """Return what trees add up to, as the library itself says."""
    library = type(native).__module__.split(".")[0]
    if library == "xgboost":
        return native.predict(X, output_margin=True)
    if library == "lightgbm":
        return native.predict(X, raw_score=True)
    if hasattr(native, "decision_function"):
        return native.decision_function(X)
    if hasattr(native, "predict_proba"):
        return native.predict_proba(X)
    predicted = native.predict(X)
    return np.log(predicted) if getattr(native, "loss", None) == "poisson" else predicted


# shap says of LightGBM's models of two classes what its older versions returned.
@pytest.mark.filterwarnings("ignore:LightGBM binary classifier with TreeExplainer:UserWarning")
@pytest.mark.parametrize(
    ("make", "target"),
    [
        *((xgboost_model, target) for target in ("two", "three", "counts")),
        *((lightgbm_model, target) for target in ("two", "three", "counts")),
        *((forest_model, target) for target in ("two", "three", "counts")),
        *((extra_trees_model, target) for target in ("two", "three")),
        (boosting_model, "two"),
        *((hist_model, target) for target in ("two", "three", "counts")),
    ],
)
def test_shap_values_add_up_to_raw_predictions(make, target):
    shap = pytest.importorskip("shap")
    X, y = rows(target)
    native = pruned(make(target), X, y)
    explainer = shap.TreeExplainer(native)
    values = np.asarray(explainer.shap_values(X))
    assert np.ptp(values, axis=0).any()
    total = values.sum(axis=1) + np.asarray(explainer.expected_value)
    np.testing.assert_allclose(total, raw(native, X), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("target", ["two", "three", "counts"])
@pytest.mark.parametrize("make", [xgboost_model, lightgbm_model])
def test_onnxmltools_converts_pruned_models(make, target):
    onnxruntime = pytest.importorskip("onnxruntime")
    onnxmltools = pytest.importorskip("onnxmltools")
    from onnxmltools.convert.common.data_types import FloatTensorType

    X, y = rows(target)
    native = pruned(make(target), X, y)
    columns = [("X", FloatTensorType([None, X.shape[1]]))]
    if make is xgboost_model:
        graph = onnxmltools.convert_xgboost(native, initial_types=columns)
    else:
        graph = onnxmltools.convert_lightgbm(native, initial_types=columns, zipmap=False)
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    predicted = session.run(None, {"X": X})
    if target == "counts":
        np.testing.assert_allclose(predicted[0].ravel(), native.predict(X), rtol=1e-5)
        return
    labels, probabilities = predicted
    np.testing.assert_array_equal(labels, native.predict(X))
    np.testing.assert_allclose(probabilities, native.predict_proba(X), rtol=1e-5, atol=1e-6)
