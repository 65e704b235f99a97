"""What is minimised: the objective, for one forest and one set of rows."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestprune.forest.checks import seal
from forestprune.forest.cutting import sum_of_roots
from forestprune.kernels.records import Trees
from forestprune.loss import Loss, SquaredError
from forestprune.loss.targets import is_constant
from forestprune.rows.encoding import Encoding, checked_weights
from forestprune.rows.trees import read_trees
from forestprune.solve.correction import Correction

LAST_DIGITS = 1e-14
"""What squares of residuals are uncertain by, relative to those of the intercept alone."""

LEAST_LOG = 3e-5
"""By how much logs of means, or log-odds, must differ so that the target counts as no constant."""


@dataclass(frozen=True, eq=False)
class Problem:
    """The objective that every rule minimises, over what is kept of trees and what that adds.

    With b the intercept, f_i what is kept of tree i, without its root, times its scale and its
    weight beta_i, and V the loss of the best constant,

        minimise  sum over rows of loss(y, b + sum of f_i(x)) / V
                  + (alpha / K) * cost of what is kept
                  + c * shrinkage * sum over leaves of (value - original value)^2 / (2 V)     refit
                  + alpha2 * sum of beta_i^2 * || tree i uncut ||^2 / (2 V)           joint="ridge"
                  + alpha2 * number of trees kept                                    joint="subset"

    where c is the mean Hessian at the best constant, so that shrinkage counts rows whatever the
    loss. Squared error is taken by half, so that 2 V is m var(y) and c is 1. Divided by V, and with
    each tree measured against itself, alpha and alpha2 have no unit and do not depend on the
    forest's scale. The intercept holds the roots: ``b = base + sum of scale_i * value of root i``,
    so with everything kept the model is the original, and with nothing it is the constant b.

    Attributes
    ----------
    encoding : Encoding
    target : float64 array of shape (n_outputs, m)
    sample_weight : float64 array of shape (m,), or None
        Weight of each row; None if each weighs 1.
    intercept : float64 array of shape (n_outputs,)
        b.
    variation : float
        Twice the loss of the best constant: for squared error ``m * var(y)``, summed over the
        outputs. The weight of all rows if that is 0 but for rounding.
    residual : float64 array of shape (n_outputs, m)
        The negative gradient of the loss at the intercept alone, for squared error ``y - b``,
        times the weight of each row.
    loss : Loss
    curvature : float
        c.
    n_jobs : int or None
        Threads; None takes every core.
    correction : Correction or None
        What makes the rows stand for others too.
    """

    encoding: Encoding
    target: NDArray[np.float64]
    sample_weight: NDArray[np.float64] | None
    intercept: NDArray[np.float64]
    variation: float
    residual: NDArray[np.float64]
    loss: Loss
    n_jobs: int | None = None
    curvature: float = 1.0
    correction: Correction | None = None

    @cached_property
    def row_weight(self) -> NDArray[np.float64]:
        """Weight of each row as kernels read it: empty if each weighs 1."""
        weights = self.sample_weight
        return seal(np.empty(0)) if weights is None else weights

    @cached_property
    def node_weights(self) -> NDArray[np.float64]:
        """Weight of the rows that pass each node."""
        weights = self.sample_weight
        rows = np.ones(self.encoding.n_rows) if weights is None else weights
        return seal(self.encoding.node_sums(rows, self.n_jobs))

    @cached_property
    def trees(self) -> Trees:
        """The trees as kernels read them."""
        return self._weighted(read_trees(self.encoding.forest, self.node_weights))

    def _weighted(self, trees: Trees) -> Trees:
        """Return trees with the weights of the rows that pass their nodes."""
        own, correction = self.node_weights, self.correction
        if correction is None:
            return trees._replace(weight=own)
        weight = seal(own + correction.weight)
        return trees._replace(weight=weight, own=own, excess=correction.excess)

    @cached_property
    def _unexplained_by_none(self) -> float:
        return self.unexplained(self.residual)

    def unexplained(self, residual: NDArray[np.float64]) -> float:
        """Return the mean squared error over that of the best constant: 1 minus R squared.

        Of residuals times row weights. For other losses only :meth:`unexplained_by` will do.
        """
        return SquaredError().squares(residual, self.sample_weight) / self.variation

    def unexplained_by(self, raw: NDArray[np.float64]) -> float:
        """Return the mean loss of raw predictions over that of the best constant."""
        if not self.loss.quadratic:
            return 2.0 * self.loss.value(self.target, raw, self.sample_weight) / self.variation
        residual = self.target - raw
        if self.sample_weight is not None:
            residual *= self.sample_weight
        return self.unexplained(residual)

    def reweighted(
        self, sample_weight: NDArray[np.float64], residual: NDArray[np.float64]
    ) -> "Problem":
        """Return the problem with other weights of rows, and the residual that goes with them."""
        other = replace(self, sample_weight=seal(sample_weight), residual=seal(residual))
        # What does not depend on them is not worked out again.
        vars(other)["trees"] = other._weighted(self.trees)
        return other

    def corrected(self, correction: Correction) -> "Problem":
        """Return the problem with rows that stand for others too."""
        other = replace(self, correction=correction)
        vars(other)["node_weights"] = self.node_weights
        vars(other)["trees"] = other._weighted(self.trees)
        return other

    def objective(
        self,
        loss: float,
        alpha: float,
        costs: NDArray[np.float64],
        *,
        value_penalty: float = 0.0,
        weight_penalty: float = 0.0,
    ) -> float:
        """Return the objective: everybody who needs it calls this.

        Parameters
        ----------
        loss : float
            As :meth:`unexplained` gives it.
        alpha : float
        costs : float64 array
            Of what is kept, over K.
        value_penalty : float
            The penalty of leaf values, times `variation`.
        weight_penalty : float
            That of the trees' weights.
        """
        penalty = alpha * float(costs.sum()) + value_penalty / self.variation
        return loss + (penalty + weight_penalty)

    def min_gain(self, tolerance: float) -> float:
        """Return the smallest gain that counts, as a sum of squares.

        Where targets hardly vary beside what they are, gains are rounding before they get so small.
        """
        return max(tolerance, LAST_DIGITS * self._unexplained_by_none) * self.variation


def pose(
    encoding: Encoding,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
    loss: Loss | None = None,
) -> Problem:
    """Return the problem of pruning the forest of `encoding` for the targets `y`.

    Parameters
    ----------
    encoding : Encoding
    y : array-like of shape (m,), or (m, n_outputs)
    sample_weight : array-like of shape (m,), or None
        Weight of each row, not negative.
    n_jobs : int or None
        Threads; None takes every core.
    loss : Loss or None
        None is squared error.
    """
    forest, loss = encoding.forest, loss or SquaredError()
    weights = None if sample_weight is None else checked_weights(sample_weight, encoding.n_rows)
    target = checked_target(y, encoding.n_rows, forest.n_outputs)
    loss.check_target(target)
    loss = loss.prepared(target, weights)
    intercept = forest.base + sum_of_roots(forest, np.ones(forest.n_trees, np.bool_))
    mean = loss.best_constant(target, weights)[:, np.newaxis]
    variation = 2.0 * loss.value(target, mean, weights)
    curvature = loss.curvature(target, weights)
    # Targets that differ by no more than rounding are constant; errors are then taken as they are.
    rows = encoding.n_rows if weights is None else float(weights.sum())
    size = max(float(np.abs(mean).max()), float(np.abs(intercept).max()))
    least = (1e-15 * size) ** 2 if loss.link == "identity" else LEAST_LOG**2
    constant = not loss.quadratic and is_constant(target, weights)
    if constant or variation <= rows * curvature * least:
        variation = float(rows)
    residual = -loss.gradient(target, intercept[:, np.newaxis])
    if weights is not None:
        residual *= weights
    return Problem(
        encoding=encoding,
        target=seal(target),
        sample_weight=weights,
        intercept=intercept,
        variation=variation,
        residual=seal(residual),
        loss=loss,
        n_jobs=n_jobs,
        curvature=curvature,
    )


def checked_target(y: ArrayLike, rows: int, outputs: int) -> NDArray[np.float64]:
    """Return `y` as an array of shape (n_outputs, m)."""
    _require_numbers(np.asarray(y))
    target = np.array(y, dtype=np.float64)
    if target.ndim == 1:
        target = target[:, np.newaxis]
    if target.shape != (rows, outputs):
        shape = f"({rows},)" if outputs == 1 else f"({rows}, {outputs})"
        raise ValueError(
            f"y must have shape {shape}: one row for each row of X and one column for each output "
            f"of the model. Got {np.shape(y)}."
        )
    if not np.isfinite(target).all():
        raise ValueError("y must be finite, but has NaN or infinities. Drop or fill those rows.")
    return np.ascontiguousarray(target.T)


def _require_numbers(y: NDArray[Any]) -> None:
    """Refuse what numpy would make numbers of, such as strings and dates."""
    entries: list[Any] = y.ravel()[:1].tolist() if y.dtype.kind in "USmMc" else []
    if y.dtype.kind == "O":
        entries = [entry for entry in y.ravel().tolist() if isinstance(entry, str | bytes)]
    if entries:
        raise ValueError(
            f"y must hold numbers, as this model predicts them, got {entries[0]!r}. Labels of "
            "classes are for classifiers; numbers that were read as text must be converted."
        )
