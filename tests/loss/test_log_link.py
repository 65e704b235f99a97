"""Poisson, gamma and Tweedie losses, against scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loss_cases import cases
from sklearn._loss import HalfGammaLoss, HalfPoissonLoss, HalfTweedieLoss
from sklearn.metrics import (
    d2_tweedie_score,
    mean_gamma_deviance,
    mean_poisson_deviance,
    mean_tweedie_deviance,
)

from forestprune.loss import GammaLoss, PoissonLoss, TweedieLoss

POWERS = {"Poisson": 1.0, "gamma": 2.0, "Tweedie": 1.3}
DEVIANCES = {
    "Poisson": mean_poisson_deviance,
    "gamma": mean_gamma_deviance,
    "Tweedie": lambda *args, **kwargs: mean_tweedie_deviance(*args, **kwargs, power=1.3),
}
TWINS = {
    "Poisson": HalfPoissonLoss(),
    "gamma": HalfGammaLoss(),
    "Tweedie": HalfTweedieLoss(power=1.3),
}


def first_output(drawn):
    loss, target, raw, weight = drawn
    return loss, target[:1], raw[:1], weight


@pytest.mark.parametrize("name", POWERS)
@given(st.data())
def test_values_are_half_of_deviances(name, data):
    loss, target, raw, weight = first_output(data.draw(cases(name)))
    mean, rows = loss.response(raw), target.shape[1] if weight is None else weight.sum()
    expected = 0.5 * rows * DEVIANCES[name](target[0], mean[0], sample_weight=weight)
    assert loss.value(target, raw, weight) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("name", POWERS)
@given(st.data())
def test_the_score_is_d_squared(name, data):
    loss, target, raw, weight = first_output(data.draw(cases(name)))
    constant = loss.best_constant(target, weight)[:, np.newaxis]
    losses = [loss.value(target, at, weight) for at in (raw, constant)]
    # Where a constant meets all targets but for rounding, there is nothing to explain.
    if losses[1] > 1e-6:
        expected = d2_tweedie_score(
            target[0], loss.response(raw)[0], sample_weight=weight, power=POWERS[name]
        )
        assert loss.score(*losses) == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("name", POWERS)
@given(st.data())
def test_derivatives_are_those_of_boosting(name, data):
    loss, target, raw, _ = first_output(data.draw(cases(name)))
    given_raw = np.ascontiguousarray(raw[0])
    gradient, hessian = TWINS[name].gradient_hessian(target[0].copy(), given_raw)
    np.testing.assert_allclose(loss.gradient(target, raw)[0], gradient, rtol=1e-9, atol=1e-11)
    floor = 1e-3 if name == "gamma" else loss.floor
    expected = np.maximum(hessian, floor)
    np.testing.assert_allclose(loss.hessian(target, raw)[0], expected, rtol=1e-9)


@given(st.integers(0, 2**32 - 1))
def test_tweedie_lies_between_poisson_and_gamma(seed):
    rng = np.random.default_rng(seed)
    target, raw = rng.gamma(2.0, size=(1, 6)) + 0.1, rng.normal(size=(1, 6))
    for loss, power in ((PoissonLoss(), 1.0 + 1e-7), (GammaLoss(), 2.0 - 1e-7)):
        near = TweedieLoss(power)
        for one, other in ((near.gradient, loss.gradient), (near.hessian, loss.hessian)):
            np.testing.assert_allclose(one(target, raw), other(target, raw), atol=1e-4)


@pytest.mark.parametrize("loss", [PoissonLoss(), TweedieLoss()])
def test_zeros_alone_have_a_finite_best_constant(loss):
    (raw,) = loss.best_constant(np.zeros((1, 3)), None)
    assert raw == pytest.approx(np.log(1e-12))


@pytest.mark.parametrize("loss", [PoissonLoss(), TweedieLoss(), GammaLoss()])
@pytest.mark.parametrize("unit", [1e-20, 1e20])
def test_the_unit_of_the_target_does_not_matter(loss, unit):
    rng = np.random.default_rng(0)
    target, weight = rng.gamma(2.0, size=(1, 30)), rng.random(30)
    other = target * unit
    (raw,), (other_raw,) = (loss.best_constant(given, weight) for given in (target, other))
    assert other_raw - raw == pytest.approx(np.log(unit))
    one, two = loss.prepared(target, weight), loss.prepared(other, weight)
    ratio = two.curvature(other, weight) / one.curvature(target, weight)
    far = np.full(target.shape, raw - 3.0)
    np.testing.assert_allclose(
        two.hessian(other, far + np.log(unit)), ratio * one.hessian(target, far), rtol=1e-9
    )


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0, 3.0, np.nan])
def test_powers_of_other_losses_are_refused(power):
    with pytest.raises(ValueError, match="power must be between 1 and 2"):
        TweedieLoss(power)
