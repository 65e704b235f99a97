"""What all baselines begin and end with: a model, rows, and points measured on them."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestprune.forest.checks import seal
from forestprune.forest.constraints import require_no_constraint
from forestprune.forest.forest import Forest
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
    roots : float64 array of shape (n_trees, n_outputs)
        What the root of each tree adds.
    rounds : int64 array of shape (n_trees,)
        The round of each tree. A round has one tree, or one for each output if trees add to one.
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
        self.problem = self.rows.problem(n_jobs)
        self._predictions = Predictions(self.problem.encoding, self.problem.trees)
        forest = self.source.forest
        self.sizes: NDArray[np.int64] = np.diff(forest.offsets)
        self.roots = _roots(forest)
        self.rounds = _rounds(forest)

    def require_no_constraint(self) -> None:
        """Refuse a model whose constraints would be broken by trees with negative weights."""
        require_no_constraint(
            self.source.forest,
            "this baseline",
            "Use prune(), fewer_trees(), cost_complexity() or global_refinement().",
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
        values: NDArray[np.float64] | None = None,
        report: dict[str, Any] | None = None,
    ) -> Point:
        """Return the model whose trees have these weights, measured on the rows.

        Trees are whole, or keep some `splits`; a weight of 0 leaves a tree out. Their leaves add
        what they did, or `values`.
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
            values=None if values is None else seal(values),
            report=report or {},
        )
        self._predictions.move_to(point)
        if not problem.loss.quadratic:
            loss = problem.unexplained_by(self._predictions.values + intercept[:, np.newaxis])
            return replace(point, loss=loss, objective=loss)
        fitted = self._predictions.values + (intercept - problem.intercept)[:, np.newaxis]
        if problem.sample_weight is not None:
            fitted = fitted * problem.sample_weight
        loss = problem.unexplained(problem.residual - fitted)
        return replace(point, loss=loss, objective=loss)

    def alike(self, trees: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the weights that some trees of an average have in an average of their own."""
        share = self.sizes.size / max(int(np.count_nonzero(trees)), 1)
        return np.where(trees, share, 0.0)

    def average(
        self, alpha: float, weights: NDArray[np.float64], report: dict[str, Any] | None = None
    ) -> Point:
        """Return an average of distributions in which trees have these weights, not negative.

        What they lack to the weights that all trees have goes to the shares of the classes.
        """
        problem = self.problem
        shares = problem.loss.best_constant(problem.target, problem.sample_weight)
        left = max(1.0 - weights.sum() / self.sizes.size, 0.0)
        intercept = left * shares + weights @ self.roots
        return self.point(alpha, weights, intercept, report=report)

    def path(self, points: Iterable[Point]) -> PruningPath:
        """Return the points as a path, validated if there are rows held out."""
        path = PruningPath(self.source, tuple(points))
        if self._held_out is None:
            return path
        rows = self._held_out.routed(self.source, self._n_jobs)
        return replace(path, validation=validate(rows, path.points))


def _roots(forest: Forest) -> NDArray[np.float64]:
    """Return what the root of each tree adds to each output."""
    value: NDArray[np.float64] = forest.scale[:, np.newaxis] * forest.value[forest.offsets[:-1]]
    if not forest.tree_output.size:
        return value
    roots = np.zeros((forest.n_trees, forest.n_outputs))
    roots[np.arange(forest.n_trees), forest.tree_output] = value[:, 0]
    return roots


def _rounds(forest: Forest) -> NDArray[np.int64]:
    """Return the round of each tree: how many trees before it add to the same output."""
    rounds = np.arange(forest.n_trees)
    for output in range(forest.n_outputs if forest.tree_output.size else 0):
        own = forest.tree_output == output
        rounds[own] = np.arange(np.count_nonzero(own))
    return rounds
