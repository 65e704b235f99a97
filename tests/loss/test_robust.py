"""Absolute error, pinball and Huber's loss, against scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loss_cases import cases
from sklearn._loss import HuberLoss as TwinOfHuber
from sklearn.metrics import (
    d2_absolute_error_score,
    d2_pinball_score,
    mean_absolute_error,
    mean_pinball_loss,
)

from forestprune.loss import AbsoluteError, HuberLoss, QuantileLoss, SquaredError
from forestprune.loss.quantile import quantiles


@given(cases("absolute error"))
def test_absolute_error_is_that_of_scikit_learn(drawn):
    loss, target, raw, weight = drawn
    rows = target.shape[1] if weight is None else weight.sum()
    errors = mean_absolute_error(target.T, raw.T, sample_weight=weight, multioutput="raw_values")
    assert loss.value(target, raw, weight) == pytest.approx(rows * errors.sum())


@given(cases("quantile"))
def test_pinball_loss_is_that_of_scikit_learn(drawn):
    loss, target, raw, weight = drawn
    rows = target.shape[1] if weight is None else weight.sum()
    errors = mean_pinball_loss(
        target.T, raw.T, sample_weight=weight, alpha=0.2, multioutput="raw_values"
    )
    assert loss.value(target, raw, weight) == pytest.approx(rows * errors.sum())


@given(cases("quantile"), st.sampled_from((0.1, 0.25, 0.5, 0.9)))
def test_scores_are_d_squared(drawn, level):
    _, target, raw, weight = drawn
    target, raw = target[:1], raw[:1]
    # Without weights some versions interpolate between rows, which is no better than one of them.
    weight = np.ones(target.shape[1]) if weight is None else weight
    known = {"y_true": target[0], "y_pred": raw[0], "sample_weight": weight}
    for loss, expected in (
        (QuantileLoss(level), d2_pinball_score(**known, alpha=level)),
        (AbsoluteError(), d2_absolute_error_score(**known)),
    ):
        constant = loss.best_constant(target, weight)[:, np.newaxis]
        losses = [loss.value(target, at, weight) for at in (raw, constant)]
        if losses[1] > 1e-6:
            assert loss.score(*losses) == pytest.approx(expected)


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 0.99))
def test_quantiles_of_weighted_rows(seed, level):
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(2, 9)).round(1)
    weight = rng.integers(0, 4, 9).astype(float) + (np.arange(9) == 0)
    repeated = np.repeat(numbers, weight.astype(int), axis=1)
    found = quantiles(numbers, level, weight)
    np.testing.assert_allclose(found, quantiles(repeated, level, None))
    for row, quantile in zip(repeated, found, strict=True):
        assert (row < quantile - 1e-12).mean() <= level + 1e-12
        assert (row <= quantile + 1e-12).mean() >= level - 1e-12
    np.testing.assert_allclose(quantiles(numbers, 0.5, None), np.median(numbers, axis=1))
    np.testing.assert_allclose(quantiles(numbers[:, :8], 0.5, None), np.median(numbers[:, :8], 1))


@given(cases("Huber"))
def test_hubers_loss_is_that_of_scikit_learn(drawn):
    loss, target, raw, _ = drawn
    twin = TwinOfHuber(delta=4.0)
    for row, at in zip(target, raw, strict=True):
        expected = twin.loss(row.copy(), at.copy())
        np.testing.assert_allclose(loss.values(row[np.newaxis], at[np.newaxis]), expected)
        expected = twin.gradient(row.copy(), at.copy())
        np.testing.assert_allclose(loss.gradient(row[np.newaxis], at[np.newaxis])[0], expected)


@given(cases("Huber"), st.sampled_from((1e-6, 0.3, 5.0, 1e6)))
def test_gradients_of_hubers_loss_balance_at_the_best_constant(drawn, delta):
    _, target, _, weight = drawn
    loss = HuberLoss(delta)
    target = target + 1e6
    best = loss.best_constant(target, weight)[:, np.newaxis]
    gradients = loss.gradient(target, best) * (1.0 if weight is None else weight)
    # Of rounding, as far as the size of targets leaves digits.
    assert np.abs(gradients.sum(axis=1)).max() <= 1e-8 * target.shape[1]
    if delta == 1e6:
        mean = SquaredError().best_constant(target, weight)
        np.testing.assert_allclose(best[:, 0], mean, rtol=1e-12)


@given(cases("Huber by quantile"))
def test_without_a_delta_it_is_a_quantile_of_distances(drawn):
    _, target, raw, weight = drawn
    loss = HuberLoss(level=0.7).prepared(target, weight)
    distances = np.abs(target - quantiles(target, 0.5, weight)[:, np.newaxis])
    expected = quantiles(distances, 0.7, weight).mean()
    assert loss.delta == (pytest.approx(expected) if expected else loss.delta)
    assert loss.delta > 0.0
    # Not prepared, the rows at hand settle it.
    assert HuberLoss(level=0.7).value(target, raw, None) == pytest.approx(
        HuberLoss(level=0.7).prepared(target, None).value(target, raw, None)
    )


def test_targets_that_are_nearly_all_the_same_have_a_scale():
    target = np.zeros((1, 100))
    target[0, :3] = 60.0
    assert HuberLoss().prepared(target, None).delta == pytest.approx(1.8)
    assert AbsoluteError().prepared(target, None).eps == pytest.approx(0.018)
    assert QuantileLoss(0.3).prepared(target, None).eps == pytest.approx(0.018)
    assert HuberLoss().prepared(0.0 * target, None).delta == 1.0


@pytest.mark.parametrize("loss", [AbsoluteError(), QuantileLoss(0.8)])
def test_steps_to_the_lowest_point_of_all_parabolas_end_at_the_best_constant(loss):
    rng = np.random.default_rng(0)
    target = rng.gamma(1.0, size=(1, 300))
    loss = loss.prepared(target, None)
    constant, before = target.mean(axis=1, keepdims=True), np.inf
    for _ in range(60):
        now = loss.value(target, constant, None)
        assert now <= before + 300 * loss.eps  # but for the rounded kink it only falls
        before = now
        slope = loss.gradient(target, constant).sum()
        constant = constant - slope / loss.hessian(target, constant).sum()
    best = loss.best_constant(target, None)[:, np.newaxis]
    assert loss.value(target, constant, None) <= 1.001 * loss.value(target, best, None)


@pytest.mark.parametrize("loss", [AbsoluteError(), QuantileLoss(0.5)])
@pytest.mark.parametrize("each", [None, 2.0])
def test_rows_that_the_best_constant_meets_do_not_count_in_the_curvature(loss, each):
    # Amounts of which more than half are 0: shrinkage is to count rows as it does of the others.
    amounts = np.concatenate([np.zeros(60), np.arange(1.0, 41.0)])[np.newaxis]
    weight = None if each is None else np.full(100, each)
    settled = loss.prepared(amounts, weight)
    assert settled.best_constant(amounts, weight) == 0.0
    expected = settled.hessian(amounts[:, 60:], np.zeros((1, 1))).mean()
    assert settled.curvature(amounts, weight) == pytest.approx(expected)
    assert settled.hessian(amounts, np.zeros((1, 1))).mean() > 5.0 * expected


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, np.nan])
def test_levels_that_are_none_are_refused(level):
    for loss in (QuantileLoss, lambda level: HuberLoss(level=level)):
        with pytest.raises(ValueError, match="level must be between 0 and 1"):
            loss(level)


@pytest.mark.parametrize("delta", [0.0, -1.0, np.nan])
def test_a_delta_that_is_not_above_0_is_refused(delta):
    with pytest.raises(ValueError, match="delta must be above 0"):
        HuberLoss(delta)
