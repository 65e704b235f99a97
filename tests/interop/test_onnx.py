"""Pruned models go through skl2onnx as the originals do."""

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeRegressor

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
