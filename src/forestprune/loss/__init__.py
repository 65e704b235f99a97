"""What a model is trained for: value, gradient, Hessian, link, best constant and score."""

from forestprune.loss.loss import Loss
from forestprune.loss.metrics import Measured, Yardstick
from forestprune.loss.squared_error import SquaredError

__all__ = ["Loss", "Measured", "SquaredError", "Yardstick"]
