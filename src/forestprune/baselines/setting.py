"""What all baselines begin and end with: a model, rows, and points measured on them."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestprune.exceptions import UnsupportedModelError
from forestprune.forest.checks import seal
from forestprune.forest.constraints import require_no_constraint
from forestprune.interop.source import Source
from forestprune.rows.trees import first_splits
from forestprune.select.path import PruningPath
from forestprune.select.routed import HeldOut, RoutedRows
from forestprune.select.validation import validate
from forestprune.solve.contributions import Predictions
from forestprune.solve.point import Point, kept_depths, pack_splits


class Setting:
    """A model, the rows that a baseline prunes it with, and the rows held out, if any.

    Attributes
    ----------
    source : Source
    rows : RoutedRows
    problem : Problem
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
        self.source = Source.of(model)
        self.rows = RoutedRows.of(self.source, X, y, sample_weight, n_jobs)
        if not self.rows.loss.quadratic or self.source.forest.tree_output.size:
            raise UnsupportedModelError(
                "Baselines are for squared error and trees that add to all outputs. This model has "
                "another loss, or trees for each output: use prune()."
            )
        self.problem = self.rows.problem(n_jobs)
        self._predictions = Predictions(self.problem.encoding, self.problem.trees)
        self.sizes: NDArray[np.int64] = np.diff(self.source.forest.offsets)

    def require_no_constraint(self) -> None:
        """Refuse a model whose promises would be broken if trees got weights of their own."""
        if self.source.forest.averages_distributions:
            raise UnsupportedModelError(
                "This baseline gives trees weights of their own, but the model averages "
                "distributions over classes, and its leaves must stay such. Use prune(), "
                "fewer_trees() or cost_complexity()."
            )
        require_no_constraint(
            self.source.forest, "this baseline", "Use prune(), fewer_trees() or cost_complexity()."
        )

    def is_average(self, averages: bool | None) -> bool:
        """Tell whether trees are averaged rather than summed; if None, as the forest says."""
        return self.source.original.averages if averages is None else averages

    @property
    def total_weight(self) -> float:
        """Weight of all rows."""
        weights = self.problem.sample_weight
        return float(self.problem.encoding.n_rows if weights is None else weights.sum())

    @property
    def is_constant(self) -> bool:
        """Whether all targets are equal up to rounding, so that no tree explains anything."""
        target = self.rows.target
        spread = np.ptp(target, axis=1)
        return bool((spread <= 1e-14 * np.abs(target).max(axis=1, initial=0.0)).all())

    def selection(self, trees: NDArray[np.bool_]) -> Point:
        """Return some whole trees, each with weight 1, as a point that is not measured."""
        forest = self.source.forest
        splits = np.repeat(trees, np.diff(first_splits(forest.offsets)))
        depths = np.where(trees, forest.depths, 0)
        weights = (depths > 0).astype(np.float64)
        intercept = self.problem.intercept
        return Point(0.0, pack_splits(splits), depths, weights, intercept, 0.0, 0.0)

    def point(
        self,
        alpha: float,
        weights: NDArray[np.float64],
        intercept: NDArray[np.float64],
        *,
        splits: NDArray[np.bool_] | None = None,
        report: dict[str, Any] | None = None,
    ) -> Point:
        """Return the model whose trees have these weights, measured on the rows.

        Trees are whole, or keep some `splits`; a weight of 0 leaves a tree out.
        """
        problem, forest = self.problem, self.source.forest
        stays = np.repeat(weights != 0.0, np.diff(first_splits(forest.offsets)))
        kept = stays if splits is None else splits & stays
        depths = kept_depths(forest, kept)
        point = Point(
            alpha=alpha,
            kept=pack_splits(kept),
            depths=seal(depths),
            weights=seal(np.where(depths > 0, weights, 0.0)),
            intercept=seal(np.array(intercept)),
            loss=np.nan,
            objective=np.nan,
            report=report or {},
        )
        self._predictions.move_to(point)
        fitted = self._predictions.values + (intercept - problem.intercept)[:, np.newaxis]
        if problem.sample_weight is not None:
            fitted = fitted * problem.sample_weight
        loss = problem.unexplained(problem.residual - fitted)
        return replace(point, loss=loss, objective=loss)

    def path(self, points: Iterable[Point]) -> PruningPath:
        """Return the points as a path, validated if there are rows held out."""
        path = PruningPath(self.source, tuple(points))
        if self._held_out is None:
            return path
        rows = self._held_out.routed(self.source, self._n_jobs)
        return replace(path, validation=validate(rows, path.points))
