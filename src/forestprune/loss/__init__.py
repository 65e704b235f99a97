"""What a model is trained for: value, gradient, Hessian, link, best constant and score."""

from forestprune.loss.loss import Loss
from forestprune.loss.squared_error import SquaredError

__all__ = ["Loss", "SquaredError"]
