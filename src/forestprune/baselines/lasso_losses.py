"""LASSO over whole trees in any loss, and of trees that add to one output each.

The loss is expanded around what was found last, so that each time a LASSO in squared error is to be
solved, for each output by itself, over the trees that may have a weight. A solution by which the
objective rose is looked for once more with a larger Hessian.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestprune.baselines.lasso_squares import ROUNDING, refined
from forestprune.baselines.setting import Setting
from forestprune.options import Options
from forestprune.polishing.polisher import Polisher
from forestprune.polishing.tree_equations import TreeEquations
from forestprune.rows.trees import first_leaves
from forestprune.select.routed import checked_alphas
from forestprune.solve.contributions import Predictions
from forestprune.solve.expanded import STEEPER, STEEPEST, ExpandedRule
from forestprune.solve.point import Point
from forestprune.solve.subtrees.rule import SubtreeRule
from forestprune.system.progress import track
from forestprune.system.threads import one_blas_thread

Floats = NDArray[np.float64]

ROUNDS, SETTLED = 50, 1e-7
"""How often the loss is expanded at most, and by what share the last time may lower it."""

FEW_CODES = 1_000_000
"""Threads cost more than they bring where trees times rows are fewer."""


class ExpandedLasso:
    """The weights of whole trees for falling penalties, each from those before.

    Parameters
    ----------
    setting : Setting
    alpha2 : float
        The penalty by which weights are fitted anew.
    """

    def __init__(self, setting: Setting, alpha2: float) -> None:
        self._setting, problem = setting, setting.problem
        if problem.encoding.codes.size < FEW_CODES:
            problem = replace(problem, n_jobs=1)
        options = Options(polish="ridge", alpha2=alpha2)
        self._rule = ExpandedRule(problem, options, SubtreeRule)
        self._polisher = Polisher(self._rule, options)
        self._problem = problem
        self._positive = problem.encoding.forest.monotone.size > 0
        self._predictions = Predictions(problem.encoding, problem.trees)
        self._steepness = 1.0
        self._point = self._of_none()

    def points(
        self, alphas: ArrayLike | None, n_alphas: int, eps: float, *, refit: bool
    ) -> Iterator[Point]:
        """Yield a point for each alpha: those given, or as for :func:`lasso`."""
        moments = self._moments(self._raw(self._point))
        highest = float(np.max(moments if self._positive else np.abs(moments), initial=0.0))
        highest /= self._setting.total_weight
        if alphas is not None:
            grid = checked_alphas(alphas)
        elif highest <= 0.0 or self._setting.is_constant:
            grid = np.zeros(1)
        else:
            grid = np.geomspace(highest, eps * highest, n_alphas)
        for alpha in track(grid, "weighting trees", grid.size):
            # At the first of them no tree has entered yet, whatever rounding says.
            if alpha < highest * (1.0 - ROUNDING) and not self._setting.is_constant:
                self._solve(float(alpha))
            found = self._point
            if refit and found.n_trees:
                found = self._polisher.polish(found)
            yield self._setting.point(float(alpha), found.weights, found.intercept)

    def _of_none(self) -> Point:
        """Return the best constant."""
        setting = self._setting
        loss, target = setting.problem.loss, setting.problem.target
        constant = loss.best_constant(target, setting.problem.sample_weight)
        return setting.point(0.0, np.zeros(setting.sizes.size), constant)

    def _solve(self, alpha: float) -> None:
        """Move to the best weights for a penalty."""
        price, raw = alpha * self._setting.total_weight, self._raw(self._point)
        objective = self._objective(self._point, raw, price)
        for _ in range(ROUNDS):
            found = self._step(alpha, raw)
            moved = self._raw(found)
            now = self._objective(found, moved, price)
            if now > objective * (1.0 + ROUNDING):
                if self._steepness >= STEEPEST:
                    break
                self._steepness *= STEEPER
                continue
            self._steepness = max(1.0, self._steepness / 2.0)
            gained, objective = objective - now, now
            self._point, raw = found, moved
            if gained <= SETTLED * objective:
                break

    def _step(self, alpha: float, raw: Floats) -> Point:
        """Return the best weights for the loss expanded around raw predictions."""
        setting, weights = self._setting, self._point.weights
        moments = self._moments(raw)
        steep = moments if self._positive else np.abs(moments)
        # Where the loss cannot fall by as much as a weight costs, there is none.
        active = (weights != 0.0) | (steep > alpha * setting.total_weight)
        parts = self._rule.problems_at(raw, self._steepness)
        selected, found = self._rule.apart(setting.selection(active)), []
        before = self._rule.apart(self._point)
        with one_blas_thread():
            for problem, point, last in zip(parts, selected, before, strict=True):
                equations = TreeEquations(problem)
                kept, gram, own = equations.at(point)
                beta = np.zeros(kept.size)
                if own.any():
                    gram, own = gram / setting.total_weight, own / setting.total_weight
                    start = last.weights[kept][np.newaxis]
                    grid = np.array([alpha])
                    beta = refined(gram, own, grid, start, positive=self._positive)[0]
                    beta[np.abs(beta) <= ROUNDING * np.abs(beta).max()] = 0.0
                found.append(equations.weighted(point, beta, {}))
        return self._rule.joined(found)

    def _raw(self, point: Point) -> Floats:
        self._predictions.move_to(point)
        raw: Floats = self._predictions.values + point.intercept[:, np.newaxis]
        return raw

    def _objective(self, point: Point, raw: Floats, price: float) -> float:
        """Return what is minimised, times the weight of all rows."""
        problem = self._setting.problem
        loss = problem.loss.value(problem.target, raw, problem.sample_weight)
        return loss + price * float(np.abs(point.weights).sum())

    def _moments(self, raw: Floats) -> Floats:
        """Return by how much the loss falls as the weight of each tree begins to grow."""
        problem = self._problem
        forest, encoding = problem.encoding.forest, problem.encoding
        residual = -problem.loss.gradient(problem.target, raw)
        if problem.sample_weight is not None:
            residual *= problem.sample_weight
        is_leaf = forest.left < 0
        sums = np.array([encoding.node_sums(own, problem.n_jobs)[is_leaf] for own in residual])
        if forest.tree_output.size:
            owner = forest.tree_of_node[is_leaf]
            sums = sums[forest.tree_output[owner], np.arange(owner.size)][np.newaxis]
        products = (sums * problem.trees.origin[:, is_leaf]).sum(axis=0)
        first = first_leaves(forest.offsets)[:-1]
        moments: Floats = np.add.reduceat(products, first) if first.size else np.zeros(0)
        return moments
