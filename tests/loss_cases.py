"""Targets, raw predictions and weights of rows, as they suit each loss."""

import numpy as np
from hypothesis import strategies as st

from forestprune.loss import (
    AbsoluteError,
    BinaryLogLoss,
    BrierScore,
    GammaLoss,
    HuberLoss,
    PoissonLoss,
    QuantileLoss,
    SoftmaxLogLoss,
    SquaredError,
    TweedieLoss,
)


def probabilities(rng, outputs, rows):
    """Return zeros and ones, or what is between them."""
    numbers = rng.random((outputs, rows))
    return numbers if rng.random() < 0.5 else numbers.round()


def shares(rng, outputs, rows):
    """Return for each row the probabilities of two classes or more, or one class that is sure."""
    odds = rng.gamma(1.0, size=(outputs + 1, rows))
    if rng.random() < 0.5:
        return (odds == odds.max(axis=0)).astype(float)
    return odds / odds.sum(axis=0)


def counts(rng, outputs, rows):
    return rng.poisson(3.0, (outputs, rows)).astype(float)


def amounts(rng, outputs, rows):
    return rng.gamma(2.0, 5.0, (outputs, rows)) + 1e-3


def sums(rng, outputs, rows):
    """Return amounts, many of which are 0."""
    return amounts(rng, outputs, rows) * (rng.random((outputs, rows)) < 0.6)


def numbers(rng, outputs, rows):
    """Return numbers with ties among them, or without."""
    drawn = 10.0 * rng.normal(size=(outputs, rows))
    return drawn.round(-1) if rng.random() < 0.5 else drawn


LOSSES = {
    "squared error": (SquaredError(), numbers),
    "Brier": (BrierScore(), probabilities),
    "log-loss": (BinaryLogLoss(), probabilities),
    "log-loss, scaled": (BinaryLogLoss(0.3), probabilities),
    "softmax": (SoftmaxLogLoss(), shares),
    "Poisson": (PoissonLoss(), counts),
    "gamma": (GammaLoss(), amounts),
    "Tweedie": (TweedieLoss(1.3), sums),
    "absolute error": (AbsoluteError(), numbers),
    "quantile": (QuantileLoss(0.2), numbers),
    "Huber": (HuberLoss(4.0), numbers),
    "Huber by quantile": (HuberLoss(level=0.7), numbers),
}


@st.composite
def cases(draw, name):
    """Draw a prepared loss, targets, raw predictions and weights of rows."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    loss, targets = LOSSES[name]
    target = targets(rng, draw(st.integers(1, 3)), draw(st.integers(2, 12)))
    outputs, rows = target.shape
    size = 10.0 if loss.link == "identity" else 2.0
    raw = size * rng.normal(size=(outputs, rows))
    weight = draw(st.none() | st.just(rng.integers(0, 3, rows).astype(float)))
    if weight is not None and not weight.any():
        weight[0] = 1.0
    return loss.prepared(target, weight), target, raw, weight
