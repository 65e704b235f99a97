"""What holds for every loss: derivatives, best constants, links, and numbers that stay finite."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loss_cases import LOSSES, cases

from forestprune.loss import AbsoluteError, HuberLoss, QuantileLoss, SoftmaxLogLoss

BY_PARABOLAS = ("absolute error", "quantile", "Huber", "Huber by quantile")
every_loss = pytest.mark.parametrize("name", LOSSES)


def derivatives(function, raw, step):
    """Return how a function that adds up outputs changes with each of them."""
    found = np.empty_like(raw)
    for output in range(len(raw)):
        by = np.zeros((len(raw), 1))
        by[output] = step
        found[output] = (function(raw + by) - function(raw - by)) / (2.0 * step)
    return found


def smooth(loss, target, raw):
    """Return where there is no kink nearby."""
    errors = np.abs(target - raw)
    if isinstance(loss, HuberLoss):
        return np.abs(errors - loss.delta) > 1e-3
    if isinstance(loss, AbsoluteError | QuantileLoss):
        return errors > loss.eps + 1e-3
    return np.full(target.shape, True)


@every_loss
@given(st.data())
def test_gradients_are_derivatives(name, data):
    loss, target, raw, _ = data.draw(cases(name))
    found, step = loss.gradient(target, raw), 1e-5
    expected = derivatives(lambda raw: loss.values(target, raw), raw, step)
    where = smooth(loss, target, raw)
    np.testing.assert_allclose(found[where], expected[where], rtol=1e-5, atol=1e-5)


@every_loss
@given(st.data())
def test_tangents_are_nowhere_above_the_loss(name, data):
    loss, target, raw, _ = data.draw(cases(name))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    at = raw + rng.choice([0.1, 1.0, 10.0]) * rng.normal(size=raw.shape)
    slope, height = loss.tangent(target, raw, at)
    assert (height <= loss.values(target, at) * (1 + 1e-12) + 1e-9 * (1 + np.abs(height))).all()
    # It is one line: what it says elsewhere follows from its slope.
    _, elsewhere = loss.tangent(target, raw, raw)
    rise = (slope * (at - raw)).sum(axis=0)
    np.testing.assert_allclose(height, elsewhere + rise, rtol=1e-9, atol=1e-9)
    touches = smooth(loss, target, raw).all(axis=0)
    values = loss.values(target, raw)
    np.testing.assert_allclose(elsewhere[touches], values[touches], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", [name for name in LOSSES if name not in BY_PARABOLAS])
@given(st.data())
def test_hessians_are_second_derivatives(name, data):
    loss, target, raw, _ = data.draw(cases(name))
    expected = np.stack(
        [
            derivatives(lambda raw, output=output: loss.gradient(target, raw)[output], raw, 1e-5)
            for output in range(len(raw))
        ]
    )
    found = loss.hessian(target, raw)
    if isinstance(loss, SoftmaxLogLoss):
        expected *= 2.0  # as a bound
    of_themselves = np.einsum("iix->ix", expected)
    floor = found.min()
    high = of_themselves > floor * 1.01
    np.testing.assert_allclose(found[high], of_themselves[high], rtol=1e-4)
    assert (found >= of_themselves * (1.0 - 1e-4) - 1e-9).all()


@pytest.mark.parametrize("name", LOSSES)
@given(st.data())
def test_row_hessians_bound_second_derivatives_in_all_directions(name, data):
    loss, target, raw, _ = data.draw(cases(name))
    bound = loss.row_hessian(target, raw)
    assert bound.shape == target.shape[1:]
    diagonal = np.moveaxis(loss.hessian(target, raw), 1, 0)
    assert (bound <= diagonal.max(axis=1) * (1.0 + 1e-12)).all()
    if name != "softmax":
        np.testing.assert_array_equal(bound, diagonal.max(axis=1))
        return
    p = loss.response(raw).T
    second = np.apply_along_axis(np.diag, 1, p) - p[:, :, np.newaxis] * p[:, np.newaxis]
    assert (bound >= np.linalg.eigvalsh(second)[:, -1] - 1e-12).all()
    more = np.apply_along_axis(np.diag, 1, diagonal) - second
    assert (np.linalg.eigvalsh(more) >= -1e-12).all()


@pytest.mark.parametrize("name", BY_PARABOLAS)
@given(st.data())
def test_parabolas_touch_the_loss_and_lie_above_it(name, data):
    loss, target, raw, _ = data.draw(cases(name))
    target, raw = (numbers.reshape(1, -1) for numbers in (target, raw))
    gradient, hessian = loss.gradient(target, raw), loss.hessian(target, raw)
    here = loss.values(target, raw)
    where = np.full(raw.size, True) if isinstance(loss, HuberLoss) else None
    if where is None:
        where = (np.abs(target - raw) >= loss.eps)[0]
    for there in (target, 2.0 * target - raw, raw + 0.1, raw - 7.0, 100.0 + raw):
        by = there - raw
        above = (here + by * gradient + 0.5 * hessian * by**2)[0]
        rounding = 1e-12 * (1.0 + above)
        # Where residuals are small, the kink is rounded off by no more than half their size.
        rounding[~where] += 0.5 * getattr(loss, "eps", 0.0)
        assert (above >= loss.values(target, there) - rounding).all()
    if isinstance(loss, AbsoluteError):
        # The lowest point of the parabola is the target, however small the residual.
        np.testing.assert_allclose(raw - gradient / hessian, target, atol=1e-9)


@every_loss
@given(st.data())
def test_no_constant_is_better_than_the_best(name, data):
    loss, target, _, weight = data.draw(cases(name))
    best = loss.best_constant(target, weight)
    assert best.shape == target.shape[:1]
    assert np.isfinite(best).all()
    best = best[:, np.newaxis]
    least = loss.value(target, best, weight)
    # Of zeros alone the best is at infinity, and what stands in for it nearly as good.
    there = target if weight is None else target[:, weight > 0.0]
    rounding = 1e-9 if there.any(axis=1).all() else 1e-6
    for output in range(len(target)):
        for by in (-1.0, -1e-3, 1e-3, 1.0):
            other = best.copy()
            other[output] += by
            assert loss.value(target, other, weight) >= least - rounding


@every_loss
@given(st.data())
def test_rows_that_weigh_twice_are_there_twice(name, data):
    loss, target, raw, weight = data.draw(cases(name))
    weight = np.ones(target.shape[1]) if weight is None else weight
    repeated = np.repeat(np.arange(weight.size), weight.astype(int))
    more, more_raw = target[:, repeated], raw[:, repeated]
    assert loss.value(target, raw, weight) == pytest.approx(loss.value(more, more_raw, None))
    expected = (weight * loss.values(target, raw)).sum()
    assert loss.value(target, raw, weight) == pytest.approx(expected)
    np.testing.assert_allclose(
        loss.best_constant(target, weight), loss.best_constant(more, None), atol=1e-9
    )
    assert loss.curvature(target, weight) == pytest.approx(loss.curvature(more, None), rel=1e-6)
    # Which is the same as settling all that depends on the target by the rows that are there.
    given_loss = LOSSES[name][0]
    one, other = given_loss.prepared(target, weight), given_loss.prepared(more, None)
    assert vars(one) == pytest.approx(vars(other))
    assert one.prepared(2.0 * target, None) == one


@every_loss
@given(st.data())
def test_a_constant_is_as_good_as_its_repetition(name, data):
    loss, target, raw, _ = data.draw(cases(name))
    constant = raw[:, :1]
    repeated = np.repeat(constant, target.shape[1], axis=1)
    for method in (loss.values, loss.gradient, loss.hessian, loss.row_hessian):
        short, long = method(target, constant), method(target, repeated)
        np.testing.assert_allclose(short, long, rtol=1e-12, atol=1e-12)
        assert short.shape == long.shape
        assert short.flags.writeable


@every_loss
@given(st.data())
def test_targets_that_are_met_cost_nothing(name, data):
    loss, target, _, _ = data.draw(cases(name))
    met = loss.raw_of(target)
    assert loss.values(target, met) == pytest.approx(0.0, abs=1e-10)
    np.testing.assert_allclose(loss.response(met), target, rtol=1e-9, atol=1e-10)


@every_loss
@given(st.data())
def test_losses_are_not_negative_and_leave_what_they_are_given(name, data):
    loss, target, raw, weight = data.draw(cases(name))
    before = target.copy(), raw.copy()
    assert (loss.values(target, raw) >= 0.0).all()
    loss.check_target(target)
    for method in (loss.gradient, loss.hessian, loss.row_hessian):
        assert not np.shares_memory(method(target, raw), target)
        assert not np.shares_memory(method(target, raw), raw)
    for method in (loss.response, loss.raw_of):
        assert not np.shares_memory(method(raw), raw)
    loss.best_constant(target, weight)
    np.testing.assert_array_equal(target, before[0])
    np.testing.assert_array_equal(raw, before[1])


@every_loss
def test_raw_predictions_far_off_stay_finite(name):
    loss, targets = LOSSES[name]
    target = targets(np.random.default_rng(0), 1, 6)
    raw = np.tile([-800.0, -50.0, 0.0, 50.0, 790.0, 800.0], (len(target), 1))
    raw[0] *= -1.0
    for at in (raw, raw[:, :1], raw[:, -1:]):
        assert np.isfinite(loss.values(target, at)).all()
        assert np.isfinite(loss.value(target, at, np.full(6, 1e6)))
        assert np.isfinite(loss.gradient(target, at)).all()
        for hessian in (loss.hessian(target, at), loss.row_hessian(target, at)):
            assert np.isfinite(hessian).all()
            assert (hessian > 0.0).all()
        assert np.isfinite(loss.raw_of(loss.response(at))).all()
        # A model's own predictions are targets that its loss takes.
        if loss.link != "identity":
            loss.check_target(loss.response(raw))


@every_loss
def test_targets_that_do_not_vary(name):
    loss, targets = LOSSES[name]
    target = np.repeat(targets(np.random.default_rng(1), 1, 2)[:, :1], 5, axis=1)
    some = [target] if name in ("softmax", "gamma") else [target, 0.0 * target]
    if name == "softmax":
        some.append(np.repeat([[1.0], [0.0]], 5, axis=1))
    for constant in some:
        for weight in (None, np.arange(5.0)):
            settled = loss.prepared(constant, weight)
            best = settled.best_constant(constant, weight)[:, np.newaxis]
            assert np.isfinite(best).all()
            assert settled.value(constant, best, weight) == pytest.approx(0.0, abs=1e-7)
            assert 0.0 < settled.curvature(constant, weight) < np.inf
            assert np.isfinite(settled.gradient(constant, best)).all()
            assert (settled.hessian(constant, best) > 0.0).all()


@every_loss
def test_the_curvature_is_the_mean_hessian_at_the_best_constant(name):
    loss, targets = LOSSES[name]
    target, weight = targets(np.random.default_rng(2), 2, 9), np.arange(9.0)
    loss = loss.prepared(target, weight)
    best = loss.best_constant(target, weight)[:, np.newaxis]
    hessian, counts = loss.hessian(target, best), np.broadcast_to(weight, target.shape)
    if name in ("absolute error", "quantile"):
        counts = counts * (target != best)  # at a kink there is none
    assert loss.curvature(target, weight) == pytest.approx(np.average(hessian, weights=counts))
    assert loss.quadratic == (name in ("squared error", "Brier"))
    if loss.quadratic:
        assert loss.curvature(target, weight) == 1.0
    if loss.link == "log" and name != "gamma":
        # Its floor is a thousandth of that.
        assert loss.floor == pytest.approx(1e-3 * loss.curvature(target, weight))


WRONG = {
    "squared error": ([0.0, -1e141], "at most 1e\\+140"),
    "Brier": ([0.0, 1.0, 2.0], "from 0 to 1 for the Brier score; got 2 in row 2"),
    "log-loss": ([0.0, -0.5, 2.0], "from 0 to 1 for log-loss; got -0.5 in row 1"),
    "softmax": ([1.0, 1.0, 0.5], "add up to 1 for log-loss; got 0.5 in row 2"),
    "Poisson": ([0.0, 1.0, -2.0], "0 or more for the Poisson loss; got -2 in row 2"),
    "gamma": ([2.0, 0.0, -2.0], "above 0 for the gamma loss; got 0 in row 1"),
    "Tweedie": ([2.0, -1e-3], "0 or more for the Tweedie loss; got -0.001 in row 1"),
    "absolute error": ([1e141], "at most 1e\\+140"),
    "quantile": ([1e141], "at most 1e\\+140"),
    "Huber": ([1e141], "at most 1e\\+140"),
}


@pytest.mark.parametrize("name", WRONG)
def test_targets_that_a_loss_is_not_defined_for_are_refused(name):
    target, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        LOSSES[name][0].check_target(np.array([target]))


def test_the_first_wrong_target_is_named_whichever_output_it_is_of():
    target = np.zeros((2, 4))
    target[0, 3], target[1, 2] = 7.0, -3.0
    with pytest.raises(ValueError, match="got -3 in row 2"):
        LOSSES["log-loss"][0].check_target(target)
    LOSSES["log-loss"][0].check_target(np.empty((1, 0)))
