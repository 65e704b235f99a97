"""What a model is trained for: value, gradient, Hessian, link, best constant and score."""

from forestprune.loss.absolute_error import AbsoluteError
from forestprune.loss.brier import BrierScore
from forestprune.loss.choose import loss_for
from forestprune.loss.gamma import GammaLoss
from forestprune.loss.huber import HuberLoss
from forestprune.loss.log_loss import BinaryLogLoss, SoftmaxLogLoss
from forestprune.loss.loss import Loss
from forestprune.loss.metrics import Measured, Yardstick
from forestprune.loss.poisson import PoissonLoss
from forestprune.loss.quantile import QuantileLoss
from forestprune.loss.squared_error import SquaredError
from forestprune.loss.tweedie import TweedieLoss

__all__ = [
    "AbsoluteError",
    "BinaryLogLoss",
    "BrierScore",
    "GammaLoss",
    "HuberLoss",
    "Loss",
    "Measured",
    "PoissonLoss",
    "QuantileLoss",
    "SoftmaxLogLoss",
    "SquaredError",
    "TweedieLoss",
    "Yardstick",
    "loss_for",
]
