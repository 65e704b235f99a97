"""What all baselines begin and end with: a model, rows, and points measured on them."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestprune.forest.checks import seal
from forestprune.select.opening import HeldOut, Opened, validated
from forestprune.select.path import PruningPath
from forestprune.select.solver import Point
from forestprune.solve.contributions import Predictions
from forestprune.solve.kept import Subtrees
from forestprune.solve.problem import pose


class Setting:
    """A model, the rows that a baseline prunes it with, and the rows held out, if any.

    Attributes
    ----------
    source : Source
    encoding : Encoding
    target : array-like of shape (m,), or (m, n_outputs)
    problem : Problem
        For its residual, the steps of the trees, and the loss.
    sizes : int64 array of shape (n_trees,)
        Number of nodes of each tree.
    """

    def __init__(
        self,
        model: Any,
        X: Any,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        n_jobs: int | None,
        *,
        X_val: Any = None,
        y_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
    ) -> None:
        self._held_out = HeldOut.of(X_val, y_val, sample_weight_val, labelled=y is not None)
        self._n_jobs = n_jobs
        opened = Opened.of(model, X, y, sample_weight, n_jobs)
        self.source, self.encoding, self.target = opened.source, opened.encoding, opened.target
        # Nothing is descended here, so the sketch that rule="layer" computes is not needed.
        self.problem = pose(self.encoding, self.target, rule="subtree", n_jobs=n_jobs)
        self._predictions = Predictions(self.encoding, self.problem.steps)
        self.sizes: NDArray[np.int64] = np.diff(self.source.forest.offsets)

    def is_average(self, averages: bool | None) -> bool:
        """Tell whether trees are averaged rather than summed; if None, as the library says."""
        origin = self.source.original.origin
        return origin is not None and origin.averages if averages is None else averages

    @property
    def total_weight(self) -> float:
        """Weight of all rows."""
        weights = self.encoding.sample_weight
        return float(self.encoding.n_rows if weights is None else weights.sum())

    @property
    def is_constant(self) -> bool:
        """Whether all targets are equal up to rounding, so that no tree explains anything."""
        target = np.asarray(self.target, dtype=np.float64)
        spread = np.ptp(target, axis=0)
        return bool((spread <= 1e-14 * np.abs(target).max(axis=0, initial=0.0)).all())

    def point(
        self,
        alpha: float,
        weights: NDArray[np.float64],
        intercept: NDArray[np.float64],
        *,
        subtrees: Subtrees | None = None,
        report: dict[str, Any] | None = None,
    ) -> Point:
        """Return the model whose trees have these weights, measured on the rows.

        Trees are whole, or pruned to `subtrees`; a weight of 0 leaves a tree out.
        """
        problem = self.problem
        whole = problem.depths if subtrees is None else subtrees.depths(self.source.forest)
        depths = np.where(weights != 0.0, whole, 0)
        weights = np.where(depths > 0, weights, 0.0)
        self._predictions.move_to(depths, weights, subtrees)
        fitted = self._predictions.values + (intercept - problem.intercept)[:, np.newaxis]
        if self.encoding.sample_weight is not None:
            fitted = fitted * self.encoding.sample_weight
        loss = problem.loss(problem.residual - fitted)
        return Point(
            alpha=alpha,
            depths=seal(depths),
            weights=seal(weights),
            intercept=seal(np.array(intercept)),
            objective=loss,
            loss=loss,
            n_iter=0,
            report=report or {},
            subtrees=subtrees,
        )

    def path(self, points: Iterable[Point]) -> PruningPath:
        """Return the points as a path, validated if there are rows held out."""
        return validated(PruningPath(self.source, tuple(points)), self._held_out, self._n_jobs)
