"""Fitting all leaves of an average at once if each must stay a distribution over classes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestprune import kernels
from forestprune.polishing.leaf_fit import Leaves

Floats = NDArray[np.float64]


@dataclass(eq=False)
class DistributionFit:
    """What the leaves of an average of trees add, on its way to the best.

    With r what they leave unexplained, these minimise

        sum of weight * r^2  +  shrinkage * sum of value^2

    over the values for which ``n * value + centre`` is a distribution in each leaf, n being the
    number of trees: an entry for each class, none negative, that sum to 1. Of two classes there is
    one output, from 0 to 1.

    Attributes
    ----------
    leaves : Leaves
        Of trees that all add to all outputs.
    row_weight : float64 array of shape (m,), or empty if all weigh 1
    residual : float64 array of shape (n_outputs, m)
        r now, times the rows' weights; changed in place.
    value : float64 array of shape (n_outputs, n_columns)
        The values now, which must be allowed; changed in place.
    shrinkage : float
    centre : float64 array of shape (n_outputs,)
        A distribution: what is predicted if no tree adds anything.
    """

    leaves: Leaves
    row_weight: Floats
    residual: Floats
    value: Floats
    shrinkage: float
    centre: Floats

    def iterate(self, most: int, enough: float) -> None:
        """Take projected gradient steps with momentum, `most` of them at most.

        They end when the last few gain less than `enough` times what is minimised. The step of a
        leaf is that of the sum over its rows: as each row is in one leaf of each of n trees, n
        times that bounds the curvature in all directions.
        """
        n_trees = self.leaves.present.size
        if not n_trees:
            return
        curvature = n_trees * self.leaves.weight + self.shrinkage
        step = np.divide(1.0, curvature, out=np.zeros_like(curvature), where=curvature > 0.0)
        ahead, ahead_residual = self.value.copy(), self.residual.copy()
        objective, momentum, checked = self._objective(), 1.0, np.inf
        for number in range(most):
            slope = self.leaves.sums(ahead_residual) - self.shrinkage * ahead
            value = ahead + step * slope
            kernels.project_leaves(value, self.centre, float(n_trees))
            moved = value - self.value
            rise = np.zeros_like(self.residual)
            self.leaves.add_to(moved, rise)
            residual = self.residual - (rise * self.row_weight if self.row_weight.size else rise)
            found = self._objective_at(value, residual)
            if found > objective:
                if momentum == 1.0:
                    break  # without momentum a step cannot rise but by rounding
                momentum, ahead, ahead_residual = 1.0, self.value.copy(), self.residual.copy()
                continue
            later = 0.5 + np.sqrt(0.25 + momentum**2)
            carry = (momentum - 1.0) / later
            ahead = value + carry * moved
            ahead_residual = residual + carry * (residual - self.residual)
            momentum, objective = later, found
            self.value[:], self.residual[:] = value, residual
            if number % 10 == 9:
                if checked - objective <= enough * objective:
                    break
                checked = objective

    def _objective(self) -> float:
        return self._objective_at(self.value, self.residual)

    def _objective_at(self, value: Floats, residual: Floats) -> float:
        """Return what is minimised."""
        squares = residual**2
        if self.row_weight.size:
            weight = self.row_weight
            squares = np.divide(squares, weight, out=np.zeros_like(squares), where=weight > 0.0)
        return float(squares.sum()) + self.shrinkage * float((value**2).sum())
