"""Models of ONNX and treelite say what the models say, on and beside thresholds."""

import sys

import numpy as np
import pytest
from deployed import LIBRARIES, X, Y, forest_of, models_of, probes
from hand_made import built, leaf, split
from sklearn.ensemble import RandomForestClassifier

import forestprune as fp
from forestprune.deploy.onnx_model import to_onnx
from forestprune.deploy.treelite_model import to_treelite
from forestprune.exceptions import UnsupportedModelError
from forestprune.forest import response


def cases(library):
    """Yield forests, whole ones and constants of them, rows, and what they predict."""
    if library != "sklearn":
        pytest.importorskip(library)
    for model, fitted_to in models_of(library):
        whole = forest_of(model)
        given = probes(whole, fitted_to)
        matrix = whole.input.matrix(given)
        # Where numbers are names of categories, their codes are taken.
        rows = matrix if whole.input.numbers == "values" else given.astype(whole.input.dtype)
        for forest in (whole, whole.truncate(0)):
            raw = forest.predict(given)
            if forest.origin.classes:
                yield forest, rows, response.probabilities(forest.origin, raw), model, given
            else:
                yield forest, rows, response.predicted(forest.origin, raw), model, given


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("library", LIBRARIES)
def test_onnx_says_the_same(library):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    for forest, rows, expected, model, given in cases(library):
        session = runtime.InferenceSession(to_onnx(forest).SerializeToString())
        found = session.run(None, {"X": rows})
        shape = (len(rows), expected.size // len(rows))
        np.testing.assert_allclose(found[-1], expected.reshape(shape), rtol=1e-5, atol=1e-6)
        if forest.origin.classes and forest.n_trees and forest.max_depth:
            best = np.sort(expected, axis=1)
            clear = best[:, -1] - best[:, -2] > 1e-5
            assert clear.any()
            labels = np.asarray(model.predict(given)).ravel()
            assert (found[0] == labels)[clear].all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("library", LIBRARIES)
def test_treelite_says_the_same(library):
    treelite = pytest.importorskip("treelite")
    refused = 0
    for forest, rows, expected, _, _ in cases(library):
        if forest.input.zero_is_missing or forest.input.missing_number is not None:
            with pytest.raises(UnsupportedModelError, match="as missing, but in treelite only NaN"):
                to_treelite(forest)
            refused += 1
            continue
        found = treelite.gtil.predict(to_treelite(forest), rows).reshape(len(rows), -1)
        if forest.origin.classes and forest.n_outputs == 1:
            expected = expected[:, 1:]
        expected = expected.reshape(found.shape)
        # The softmax of treelite is in single precision.
        single = forest.input.dtype == "float32" or forest.origin.link == "softmax"
        digits = 1e-5 if single else 1e-13
        np.testing.assert_allclose(found, expected, rtol=digits, atol=digits)
    assert refused == {"xgboost": 2, "lightgbm": 2}.get(library, 0)


@pytest.mark.parametrize("labels", [[3, 7], [1.0, 2.0], [False, True], ["no", "ja"], [2, 5, 9]])
def test_onnx_has_the_labels(labels):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    y = np.array(labels)[np.digitize(Y, np.quantile(Y, [0.3, 0.7][: len(labels) - 1]))]
    model = RandomForestClassifier(3, max_depth=4, random_state=0).fit(X, y)
    small = fp.prune(model, X, y, max_nodes=15)
    session = runtime.InferenceSession(small.to_onnx().SerializeToString())
    found = session.run(["label"], {"X": X.astype(np.float32)})[0]
    assert set(found.tolist()) <= set(labels)
    assert (found == small.predict(X)).mean() > 0.99


@pytest.mark.parametrize(("library", "write"), [("onnx", to_onnx), ("treelite", to_treelite)])
def test_what_is_not_installed_is_named(library, write, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ModuleNotFoundError, match=rf"pip install forestprune\[{library}\]"):
        write(built([]))


def test_what_onnx_cannot_hold_is_refused():
    pytest.importorskip("onnx")
    assert to_onnx(built([split(0, 0.0, leaf(1.0), leaf(2.0))])).graph.name == "forest"
    with pytest.raises(UnsupportedModelError, match="takes no columns"):
        to_onnx(built([], n_features=0))
