"""What a loss must offer."""

from abc import ABC, abstractmethod
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Loss(ABC):
    """A loss of raw predictions, which are what the trees of a model add up to.

    Targets and raw predictions have shape (n_outputs, m); raw predictions that are the same for
    all rows may have shape (n_outputs, 1). Weights of rows have shape (m,), or are None if each
    weighs 1. What comes back has shape (n_outputs, m) or (m,), and is nobody else's.

    A loss that needs to know the scale of its target is given it by :meth:`prepared`, once; else it
    takes the scale anew from the targets of each call.

    Attributes
    ----------
    link : str
        Which link raw predictions go through to become what the model predicts, by the names that
        `Origin.link` has.
    quadratic : bool
        Whether the Hessian is 1 everywhere, so that one expansion is the loss itself.
    """

    link: ClassVar[str]
    quadratic: ClassVar[bool] = False

    @abstractmethod
    def values(self, target: Floats, raw: Floats) -> Floats:
        """Return the loss of each row, outputs added up: 0 where nothing could be better."""

    def value(self, target: Floats, raw: Floats, weight: Floats | None) -> float:
        """Return the loss, summed over rows and outputs."""
        values = self.values(target, raw)
        if weight is not None:
            values = values * weight
        return float(values.sum())

    @abstractmethod
    def gradient(self, target: Floats, raw: Floats) -> Floats:
        """Return the derivative of the loss of each row by its raw prediction."""

    def tangent(self, target: Floats, raw: Floats, at: Floats) -> tuple[Floats, Floats]:
        """Return a line that is nowhere above the loss and, if it can be, touches it at `raw`.

        Its slope by each raw prediction, (n_outputs, m), and its height at the raw predictions
        `at`, (m,). With the slope u, that is ``u at - conjugate(u)``: all losses here are convex,
        so at every slope that they take somewhere they have a conjugate.
        """
        slope = self.gradient(target, raw)
        return slope, self.values(target, raw) + by_row(slope * (at - raw))

    @abstractmethod
    def hessian(self, target: Floats, raw: Floats) -> Floats:
        """Return the second derivative of the loss of each row, or more: always positive.

        Of a loss whose outputs depend on each other, a diagonal matrix that is nowhere below the
        matrix of second derivatives. Of a loss with kinks, what makes the expansion touch the loss
        where it is, and lie above it everywhere else. Where there is next to no curvature, a floor
        that keeps steps finite.
        """

    def row_hessian(self, target: Floats, raw: Floats) -> Floats:
        """Return one number a row that bounds the Hessian in all directions.

        It is for trees that add to all outputs at once.
        """
        hessian = self.hessian(target, raw)
        most: Floats = hessian[0] if len(hessian) == 1 else hessian.max(axis=0)
        return most

    @abstractmethod
    def response(self, raw: Floats) -> Floats:
        """Return predictions in units of the target: the inverse of the link."""

    @abstractmethod
    def raw_of(self, prediction: Floats) -> Floats:
        """Return the raw predictions of predictions: the link, clipped to what is finite."""

    @abstractmethod
    def best_constant(self, target: Floats, weight: Floats | None) -> Floats:
        """Return the raw prediction with the least loss that is the same for all rows.

        It has shape (n_outputs,), and is finite even if the least loss is at infinity.
        """

    @abstractmethod
    def check_target(self, target: Floats) -> None:
        """Refuse targets that the loss is not defined for; that they are finite is known."""

    def prepared(self, target: Floats, weight: Floats | None) -> Self:  # noqa: ARG002
        """Return the loss with all settled that depends on the scale of the target."""
        return self

    def curvature(self, target: Floats, weight: Floats | None) -> float:
        """Return the mean Hessian at the best constant.

        Rows times this number are what Hessians add up to, whatever the loss and its unit.
        """
        constant = self.best_constant(target, weight)[:, np.newaxis]
        hessian = self.hessian(target, constant)
        return float(np.average(hessian, axis=1, weights=weight).mean())

    def score(self, loss: float, of_constant: float) -> float:
        """Return the share of the loss that is explained: D squared.

        As scikit-learn has it: a target that a constant meets scores 1 if it is met, else 0.
        """
        return 1.0 - loss / of_constant if of_constant else float(loss == 0.0)


class IdentityLink(Loss):
    """A loss of predictions that are the raw predictions themselves."""

    link = "identity"

    def response(self, raw: Floats) -> Floats:
        """Return a copy: the raw prediction is in units of the target."""
        return raw.copy()

    def raw_of(self, prediction: Floats) -> Floats:
        """Return a copy: the prediction is the raw one."""
        return prediction.copy()


def by_row(losses: Floats) -> Floats:
    """Return losses of shape (n_outputs, m) added up over the outputs."""
    added: Floats = losses[0] if len(losses) == 1 else losses.sum(axis=0)
    return added


def for_all_rows(numbers: Floats, target: Floats) -> Floats:
    """Return `numbers`, repeated for each row if they are given once for all."""
    if numbers.shape == target.shape:
        return numbers
    return np.broadcast_to(numbers, target.shape).copy()
