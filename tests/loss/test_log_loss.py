"""Log-loss of two classes and of several, and the Brier score, against scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn._loss import HalfBinomialLoss, HalfMultinomialLoss
from sklearn.metrics import brier_score_loss, d2_log_loss_score, log_loss

from forestprune.loss import BinaryLogLoss, BrierScore, SoftmaxLogLoss, SquaredError


@st.composite
def labelled(draw, n_classes):
    """Draw the classes of rows, each of which is there, raw predictions and weights."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = draw(st.integers(n_classes, 15))
    classes = rng.permutation(np.arange(rows) % n_classes)
    raw = 3.0 * rng.normal(size=(n_classes if n_classes > 2 else 1, rows))
    return classes, raw, draw(st.none() | st.just(rng.integers(1, 4, rows).astype(float)))


def one_hot(classes, n_classes):
    return np.eye(n_classes)[:, classes]


@given(labelled(2), st.sampled_from((1.0, 0.4, 3.0)))
def test_two_classes_as_scikit_learn_has_them(drawn, sigmoid):
    classes, raw, weight = drawn
    loss, target = BinaryLogLoss(sigmoid), classes[np.newaxis].astype(float)
    probability = loss.response(raw)
    expected = log_loss(classes, probability[0], normalize=False, sample_weight=weight)
    assert loss.value(target, raw, weight) == pytest.approx(expected)
    constant = loss.best_constant(target, weight)[:, np.newaxis]
    score = loss.score(loss.value(target, raw, weight), loss.value(target, constant, weight))
    both = np.column_stack((1.0 - probability[0], probability[0]))
    assert score == pytest.approx(d2_log_loss_score(classes, both, sample_weight=weight))
    twin = HalfBinomialLoss()
    odds = np.ascontiguousarray(raw[0] * sigmoid)
    gradient, hessian = twin.gradient_hessian(target[0], odds)
    np.testing.assert_allclose(loss.gradient(target, raw)[0], gradient * sigmoid, atol=1e-15)
    np.testing.assert_allclose(
        loss.hessian(target, raw)[0], np.maximum(hessian, 1e-4) * sigmoid**2, rtol=1e-9
    )
    # Where the class is nearly certain, the twin subtracts large numbers from each other.
    own, other = loss.values(target, raw), twin.loss(target[0], odds)
    np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-14)


@given(st.integers(2, 5).flatmap(lambda n: st.tuples(st.just(n), labelled(max(n, 3)))))
def test_several_classes_as_scikit_learn_has_them(drawn):
    classes, raw, weight = drawn[1]
    n_classes, loss = len(raw), SoftmaxLogLoss()
    target = one_hot(classes, n_classes)
    probability = loss.response(raw)
    np.testing.assert_allclose(probability.sum(axis=0), 1.0)
    expected = log_loss(classes, probability.T, normalize=False, sample_weight=weight)
    assert loss.value(target, raw, weight) == pytest.approx(expected)
    constant = loss.best_constant(target, weight)[:, np.newaxis]
    score = loss.score(loss.value(target, raw, weight), loss.value(target, constant, weight))
    assert score == pytest.approx(
        d2_log_loss_score(classes, probability.T, sample_weight=weight), abs=1e-12
    )
    twin = HalfMultinomialLoss(n_classes=n_classes)
    gradient, hessian = twin.gradient_hessian(classes.astype(float), np.ascontiguousarray(raw.T))
    np.testing.assert_allclose(loss.gradient(target, raw), gradient.T, atol=1e-14)
    np.testing.assert_allclose(
        loss.hessian(target, raw), np.maximum(2.0 * hessian.T, 1e-4), rtol=1e-9
    )


@given(labelled(2))
def test_two_classes_are_two_of_several(drawn):
    classes, raw, _ = drawn
    binary, softmax = BinaryLogLoss(), SoftmaxLogLoss()
    target, both = classes[np.newaxis].astype(float), one_hot(classes, 2)
    of_both = np.vstack((np.zeros_like(raw), raw))
    np.testing.assert_allclose(binary.values(target, raw), softmax.values(both, of_both))
    np.testing.assert_allclose(
        binary.gradient(target, raw)[0], softmax.gradient(both, of_both)[1], atol=1e-14
    )
    # What is added to all classes changes nothing.
    np.testing.assert_allclose(
        softmax.values(both, of_both), softmax.values(both, of_both + 700.0), atol=1e-11
    )


@given(labelled(3))
def test_one_class_against_all_others_adds_up(drawn):
    classes, raw, _ = drawn
    loss, target = BinaryLogLoss(), one_hot(classes, 3)
    each = [loss.values(target[k : k + 1], raw[k : k + 1]) for k in range(3)]
    np.testing.assert_allclose(loss.values(target, raw), np.sum(each, axis=0))


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=8), st.floats(-30.0, 30.0))
def test_probabilities_as_targets_are_mixtures_of_classes(probabilities, raw):
    # Divergence: what a mixture of both classes loses, less what it loses in any case.
    loss = BinaryLogLoss()
    target, raw = np.array([probabilities]), np.full((1, len(probabilities)), raw)
    mixed = target[0] * loss.values(np.ones_like(target), raw)
    mixed += (1.0 - target[0]) * loss.values(np.zeros_like(target), raw)
    inside = np.clip(target[0], 1e-300, 1.0)
    outside = np.clip(1.0 - target[0], 1e-300, 1.0)
    at_best = -(target[0] * np.log(inside) + (1.0 - target[0]) * np.log(outside))
    np.testing.assert_allclose(loss.values(target, raw), mixed - at_best, atol=1e-12)


def test_a_single_class_has_a_finite_best_constant():
    zeros = np.zeros((1, 4))
    for target in (zeros, 1.0 - zeros):
        (raw,) = BinaryLogLoss(2.0).best_constant(target, None)
        assert abs(raw) == pytest.approx(np.log(1e12) / 2.0, rel=1e-4)
    (there, missing) = SoftmaxLogLoss().best_constant(one_hot(np.zeros(4, int), 2), None)
    assert there - missing == pytest.approx(np.log(1e12))


def test_losses_that_are_nearly_nothing_keep_their_digits():
    target, raw = np.ones((1, 1)), np.array([[60.0]])
    assert BinaryLogLoss().values(target, raw)[0] == pytest.approx(np.exp(-60.0))


def test_probabilities_of_float32_add_up_to_one():
    rng = np.random.default_rng(0)
    odds = rng.random((7, 50)).astype(np.float32)
    SoftmaxLogLoss().check_target((odds / odds.sum(axis=0)).astype(float))


@pytest.mark.parametrize("sigmoid", [0.0, -1.0, np.nan])
def test_a_sigmoid_that_says_nothing_is_refused(sigmoid):
    with pytest.raises(ValueError, match="sigmoid must be above 0"):
        BinaryLogLoss(sigmoid)


@given(labelled(2))
def test_the_brier_score_is_squared_error(drawn):
    classes, raw, weight = drawn
    target, probability = classes[np.newaxis].astype(float), 1.0 / (1.0 + np.exp(-raw))
    loss = BrierScore()
    assert isinstance(loss, SquaredError)
    total = classes.size if weight is None else weight.sum()
    expected = brier_score_loss(classes, probability[0], sample_weight=weight)
    assert 2.0 * loss.value(target, probability, weight) == pytest.approx(total * expected)
    assert loss.value(target, probability, weight) == SquaredError().value(
        target, probability, weight
    )
