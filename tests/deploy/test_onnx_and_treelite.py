"""Models of ONNX and treelite say what the models say, on and beside thresholds."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from deployed import LIBRARIES, X, Y, forest_of, models_of, probes
from effort import examples
from hand_made import built, leaf, split
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from strategies import forests, rows

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
        probed = probes(whole, fitted_to)
        matrix = whole.input.matrix(probed)
        # Where numbers are names of categories, their codes are taken.
        taken = matrix if whole.input.numbers == "values" else probed.astype(whole.input.dtype)
        for forest in (whole, whole.truncate(0)):
            raw = forest.predict(probed)
            if forest.origin.classes:
                yield forest, taken, response.probabilities(forest.origin, raw), model, probed
            else:
                yield forest, taken, response.predicted(forest.origin, raw), model, probed


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("library", LIBRARIES)
def test_onnx_says_the_same(library):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    for forest, taken, expected, model, probed in cases(library):
        session = runtime.InferenceSession(to_onnx(forest).SerializeToString())
        found = session.run(None, {"X": taken})
        shape = (len(taken), expected.size // len(taken))
        np.testing.assert_allclose(found[-1], expected.reshape(shape), rtol=1e-5, atol=1e-6)
        if forest.origin.classes and forest.n_trees and forest.max_depth:
            best = np.sort(expected, axis=1)
            clear = best[:, -1] - best[:, -2] > 1e-5
            assert clear.any()
            labels = np.asarray(model.predict(probed)).ravel()
            assert (found[0] == labels)[clear].all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("library", LIBRARIES)
def test_treelite_says_the_same(library):
    treelite = pytest.importorskip("treelite")
    refused = 0
    for forest, taken, expected, _, _ in cases(library):
        if forest.input.zero_is_missing or forest.input.missing_number is not None:
            with pytest.raises(UnsupportedModelError, match="as missing, but in treelite only NaN"):
                to_treelite(forest)
            refused += 1
            continue
        found = treelite.gtil.predict(to_treelite(forest), taken).reshape(len(taken), -1)
        if forest.origin.classes and forest.n_outputs == 1:
            expected = expected[:, 1:]
        expected = expected.reshape(found.shape)
        # The softmax of treelite is in single precision.
        single = forest.input.dtype == "float32" or forest.origin.link == "softmax"
        digits = 1e-5 if single else 1e-13
        np.testing.assert_allclose(found, expected, rtol=digits, atol=digits)
    assert refused == {"xgboost": 2, "lightgbm": 2}.get(library, 0)


@settings(max_examples=examples(60))
@given(
    forests(max_outputs=3),
    rows(),
    st.sampled_from([{}, {"zero_is_missing": (0,)}, {"missing_number": 0.5}]),
)
def test_any_forest_says_the_same(drawn, given_rows, missing):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    treelite = pytest.importorskip("treelite")
    forest = replace(drawn[1], input=replace(drawn[1].input, **missing))
    with np.errstate(over="ignore"):
        taken = given_rows.astype(forest.input.dtype)
    raw = forest.predict_matrix(forest.input.matrix(taken))
    session = runtime.InferenceSession(to_onnx(forest).SerializeToString())
    (found,) = session.run(None, {"X": taken})
    scale = 1.0 + np.abs(forest.base).max() + np.abs(forest.scaled_value).sum()
    np.testing.assert_allclose(found, raw, atol=1e-6 * scale)
    if not missing:
        found = treelite.gtil.predict(to_treelite(forest), taken)
        np.testing.assert_allclose(found.reshape(raw.shape), raw, atol=1e-6 * scale)


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
