"""Squared error, against numerical derivatives and scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import mean_squared_error, r2_score

from forestprune.loss import SquaredError

LOSS = SquaredError()


@st.composite
def predictions(draw):
    """Draw targets, raw predictions and weights of rows."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    outputs, rows = draw(st.integers(1, 3)), draw(st.integers(2, 12))
    target, raw = 10.0 * rng.normal(size=(2, outputs, rows))
    weight = draw(st.none() | st.just(rng.integers(0, 3, rows).astype(float)))
    if weight is not None and not weight.any():
        weight[0] = 1.0
    return target, raw, weight


@given(predictions())
def test_the_value_is_that_of_scikit_learn(drawn):
    target, raw, weight = drawn
    rows = target.shape[1] if weight is None else weight.sum()
    errors = mean_squared_error(target.T, raw.T, sample_weight=weight, multioutput="raw_values")
    assert LOSS.value(target, raw, weight) == pytest.approx(0.5 * rows * errors.sum())


@given(predictions())
def test_gradient_and_hessian_are_derivatives(drawn):
    target, raw, _ = drawn
    step = 1e-3

    def of_rows(raw):
        each = [
            LOSS.value(t, r, None)
            for t, r in zip(target.reshape(-1, 1, 1), raw.reshape(-1, 1, 1), strict=True)
        ]
        return np.reshape(each, target.shape)

    up, here, down = of_rows(raw + step), of_rows(raw), of_rows(raw - step)
    np.testing.assert_allclose(LOSS.gradient(target, raw), (up - down) / (2 * step), atol=1e-6)
    assert (LOSS.hessian(target, raw) == 1.0).all()
    assert LOSS.quadratic
    np.testing.assert_allclose((up - 2 * here + down) / step**2, 1.0, atol=1e-4)


@given(predictions())
def test_no_constant_is_better_than_the_best(drawn):
    target, _, weight = drawn
    best = LOSS.best_constant(target, weight)[:, np.newaxis]
    least = LOSS.value(target, best, weight)
    for by in (-1.0, -1e-3, 1e-3, 1.0):
        assert LOSS.value(target, best + by, weight) > least


@given(predictions())
def test_the_score_is_r_squared(drawn):
    target, raw, weight = drawn
    best = LOSS.best_constant(target, weight)[:, np.newaxis]
    losses = (LOSS.value(target, given, weight) for given in (raw, best))
    expected = (
        r2_score(target.T, raw.T, sample_weight=weight, multioutput="variance_weighted")
        if weight is None or np.count_nonzero(weight) > 1
        else None
    )
    if expected is not None:
        assert LOSS.score(*losses) == pytest.approx(expected)
    assert LOSS.score(0.0, 0.0) == 1.0
    assert LOSS.score(0.1, 0.0) == 0.0


@given(predictions())
def test_squares_are_twice_the_loss(drawn):
    target, raw, weight = drawn
    residual = (target - raw) * (1.0 if weight is None else weight)
    assert LOSS.squares(residual, weight) == pytest.approx(2.0 * LOSS.value(target, raw, weight))


def test_targets_beyond_all_squares_are_refused():
    LOSS.check_target(np.array([[1e139]]))
    with pytest.raises(ValueError, match="at most 1e\\+140"):
        LOSS.check_target(np.array([[1e141]]))
