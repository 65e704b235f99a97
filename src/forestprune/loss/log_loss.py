"""Log-loss, of one class against the others and of several classes at once."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, expit, logit

from forestprune.loss.loss import Loss, by_row, for_all_rows
from forestprune.loss.targets import check_probabilities, refuse

LEAST_CURVATURE = 1e-4
"""What the Hessian is at least: probabilities nearer to 0 or 1 than that hardly curve the loss."""

NEAREST_TO_CERTAIN = 1e-12
"""How near to 0 and 1 a probability may be that is turned into a raw prediction."""

_ROUNDING = 1e-6
"""How far from 1 the probabilities of all classes may add up to, as float32 has it."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class BinaryLogLoss(Loss):
    """Log-loss of one class against the rest, for each output by itself.

    Targets are 0 and 1, or probabilities: then the loss is the divergence of Kullback and Leibler,
    which is 0 if the probability is met.

    Attributes
    ----------
    sigmoid : float
        By which raw predictions are multiplied to get log-odds.
    """

    sigmoid: float = 1.0

    link = "logit"

    def __post_init__(self) -> None:
        if not self.sigmoid > 0.0:
            raise ValueError(f"sigmoid must be above 0, got {self.sigmoid!r}.")

    def values(self, target: Floats, raw: Floats) -> Floats:
        """Return the log-loss of each row, less what is lost if the target itself is predicted."""
        odds = raw * self.sigmoid
        # Large numbers cancel here, before small ones are added.
        losses = np.maximum(odds, 0.0) - target * odds
        np.abs(odds, out=odds)
        np.negative(odds, out=odds)
        np.exp(odds, out=odds)
        np.log1p(odds, out=odds)
        losses += odds
        soft = target - target * target
        if soft.any():
            losses -= entr(target)
            losses -= entr(1.0 - target)
            np.maximum(losses, 0.0, out=losses)
        return by_row(losses)

    def gradient(self, target: Floats, raw: Floats) -> Floats:
        """Return what the probability is too high by, times `sigmoid`."""
        gradient: Floats = self.response(raw) - target
        if self.sigmoid != 1.0:
            gradient *= self.sigmoid
        return gradient

    def hessian(self, target: Floats, raw: Floats) -> Floats:
        """Return ``p * (1 - p)``, but no less than 1e-4, times the square of `sigmoid`."""
        hessian = self.response(raw)
        hessian -= hessian * hessian
        np.maximum(hessian, LEAST_CURVATURE, out=hessian)
        if self.sigmoid != 1.0:
            hessian *= self.sigmoid**2
        return for_all_rows(hessian, target)

    def response(self, raw: Floats) -> Floats:
        """Return probabilities."""
        probability: Floats = expit(raw if self.sigmoid == 1.0 else raw * self.sigmoid)
        return probability

    def raw_of(self, prediction: Floats) -> Floats:
        """Return log-odds over `sigmoid`, of probabilities that are not quite 0 or 1."""
        inside = np.clip(prediction, NEAREST_TO_CERTAIN, 1.0 - NEAREST_TO_CERTAIN)
        raw: Floats = logit(inside) / self.sigmoid
        return raw

    def best_constant(self, target: Floats, weight: Floats | None) -> Floats:
        """Return the raw prediction of the mean."""
        return self.raw_of(np.average(target, axis=1, weights=weight))

    def check_target(self, target: Floats) -> None:
        """Refuse targets that are no probabilities."""
        check_probabilities(target, "log-loss")


@dataclass(frozen=True)
class SoftmaxLogLoss(Loss):
    """Log-loss of several classes at once.

    Raw predictions are logs of probabilities but for a constant that they share.
    Targets have one row a class, and add up to 1: 1 for the class, or probabilities. Of those the
    loss is the divergence of Kullback and Leibler, which is 0 if they are met.
    """

    link = "softmax"

    def values(self, target: Floats, raw: Floats) -> Floats:
        """Return the log-loss of each row, less what is lost if the target itself is predicted."""
        below = raw - raw.max(axis=0)
        # Targets add up to 1, so that what is taken off all raw predictions does not matter.
        losses: Floats = -np.einsum("kx,kx->x", target, np.broadcast_to(below, target.shape))
        np.exp(below, out=below)
        losses += np.log(below.sum(axis=0))
        soft = target - target * target
        if soft.any():
            losses -= entr(target).sum(axis=0)
            np.maximum(losses, 0.0, out=losses)
        return losses

    def gradient(self, target: Floats, raw: Floats) -> Floats:
        """Return what probabilities are too high by."""
        gradient: Floats = self.response(raw) - target
        return gradient

    def hessian(self, target: Floats, raw: Floats) -> Floats:
        """Return ``2 p (1 - p)``, but no less than 1e-4.

        Second derivatives are ``diag(p) - p p'``. The difference has ``p (1 - p)`` on the diagonal,
        and beside it in each row numbers that add up to as much: so it has no negative eigenvalue.
        """
        hessian = self.response(raw)
        hessian -= hessian * hessian
        hessian *= 2.0
        np.maximum(hessian, LEAST_CURVATURE, out=hessian)
        return for_all_rows(hessian, target)

    def row_hessian(self, target: Floats, raw: Floats) -> Floats:
        """Return the largest p or the largest ``2 p (1 - p)``: both are bounds, and one is less."""
        likeliest: Floats = self.response(raw).max(axis=0)
        # The likeliest class has the largest 2 p (1 - p) too, unless none has more than half: and
        # then the largest p is less.
        hessian = np.minimum(likeliest, 2.0 * (likeliest - likeliest * likeliest))
        np.maximum(hessian, LEAST_CURVATURE, out=hessian)
        return for_all_rows(hessian, target[0])

    def response(self, raw: Floats) -> Floats:
        """Return the probabilities of all classes."""
        probability: Floats = raw - raw.max(axis=0)
        np.exp(probability, out=probability)
        probability /= probability.sum(axis=0)
        return probability

    def raw_of(self, prediction: Floats) -> Floats:
        """Return logs of probabilities that are not quite 0."""
        raw: Floats = np.log(np.maximum(prediction, NEAREST_TO_CERTAIN))
        return raw

    def best_constant(self, target: Floats, weight: Floats | None) -> Floats:
        """Return the raw predictions of the shares of classes."""
        return self.raw_of(np.average(target, axis=1, weights=weight))

    def check_target(self, target: Floats) -> None:
        """Refuse targets that are no probabilities, or do not add up to 1."""
        check_probabilities(target, "log-loss")
        total = target.sum(axis=0, keepdims=True)
        refuse(
            np.abs(total - 1.0) > _ROUNDING,
            total,
            "probabilities of all classes that add up to 1 for log-loss",
        )
