"""Pruned models go through skl2onnx as the originals do."""

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import forestprune as fp

onnxruntime = pytest.importorskip("onnxruntime")
skl2onnx = pytest.importorskip("skl2onnx")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("depth", [0, 2])
@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeRegressor(),
        RandomForestRegressor(3),
        ExtraTreesRegressor(3),
        BaggingRegressor(n_estimators=3, max_features=3),
        GradientBoostingRegressor(n_estimators=3),
        GradientBoostingRegressor(n_estimators=3, init="zero"),
    ],
)
def test_onnx_predicts_the_same(model, depth):
    X, y = make_friedman1(100, n_features=6, random_state=0)
    X = X.astype(np.float32)
    native = fp.Forest.from_model(model.fit(X, y)).truncate(depth).to_native()
    graph = skl2onnx.to_onnx(native, X[:1])
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    (predicted,) = session.run(None, {session.get_inputs()[0].name: X})
    np.testing.assert_allclose(predicted.ravel(), native.predict(X), rtol=1e-4)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("depth", [0, 2])
@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(),
        RandomForestClassifier(3),
        ExtraTreesClassifier(3),
        BaggingClassifier(n_estimators=3, max_features=3),
        GradientBoostingClassifier(n_estimators=3),
        GradientBoostingClassifier(n_estimators=3, init="zero"),
    ],
)
def test_onnx_gives_the_same_probabilities(model, depth, n_classes):
    if getattr(model, "init", None) == "zero" and n_classes == 3:
        pytest.skip("skl2onnx writes the original with a zero too few, and nothing can load it")
    X, y = make_friedman1(100, n_features=6, random_state=0)
    X = X.astype(np.float32)
    y = np.array(["low", "middle", "high"])[:n_classes][
        np.argsort(np.argsort(y)) * n_classes // 100
    ]
    native = fp.Forest.from_model(model.fit(X, y)).truncate(depth).to_native()
    graph = skl2onnx.to_onnx(native, X[:1], options={"zipmap": False})
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    labels, probabilities = session.run(None, {session.get_inputs()[0].name: X})
    np.testing.assert_allclose(probabilities, native.predict_proba(X), rtol=1e-4, atol=1e-6)
    assert set(labels) <= set(native.classes_)
