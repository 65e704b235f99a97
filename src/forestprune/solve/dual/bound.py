"""A lower bound of the objective: mixtures of prunings descend, and tangents bound them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestprune.kernels.records import MOST_CONSTRAINED, MOST_LEVELS
from forestprune.options import Options
from forestprune.solve.dual.mixtures import Mixtures
from forestprune.solve.expanded import STEEPER, ExpandedRule, expansion, of_output
from forestprune.solve.point import Point
from forestprune.solve.problem import Problem
from forestprune.solve.rule import QuadraticRule, Rule

Floats = NDArray[np.float64]

ROUNDS, SWEEPS = 60, 6
"""Rounds at most, and sweeps over all trees in each; after it the bound is worked out."""

ENOUGH, WORTH = 2e-5, 0.05
"""The bound is high enough if what it could still rise by is less than this share of it, or than
this share of the gap."""

SLOW, PATIENCE = 0.02, 10
"""If so many rounds together close less than this share of the gap, more are not worth it."""


@dataclass(eq=False)
class Group:
    """Trees that add to the same outputs, and their mixtures."""

    mixtures: Mixtures
    outputs: slice
    splits: NDArray[np.int64]  # where their splits stand among all


class Dual:
    """The dual of what a rule minimises at one alpha, from a point on.

    Parameters
    ----------
    rule : Rule
    point : Point
        At its alpha; mixtures begin as it prunes trees.
    trace : bool
        Whether to follow how much of each split is kept.

    Attributes
    ----------
    best : float
        The highest bound so far.
    upper : float
        The objective of the mixtures, which no bound can be above.
    """

    def __init__(self, rule: Rule, point: Point, *, trace: bool = False) -> None:
        self.problem: Problem = rule.problem
        self.groups = [
            Group(Mixtures(own, at, trace=trace), outputs, splits)
            for own, at, outputs, splits in _parts_of(rule, point)
        ]
        self._apart = self.problem.encoding.forest.tree_output.size > 0
        self._steepness = 1.0
        self.best, self.upper = -np.inf, np.inf
        self._raw = self._predicted()
        self._expand()
        self.look()

    def _predicted(self) -> Floats:
        """Return the raw predictions of the mixtures."""
        problem = self.problem
        raw = np.repeat(problem.intercept[:, np.newaxis], problem.encoding.n_rows, axis=1)
        for group in self.groups:
            raw[group.outputs] += group.mixtures.predictions()
        return raw

    def _expand(self) -> None:
        """Expand the loss around the mixtures."""
        problem = self.problem
        weight, residual = expansion(
            problem.loss,
            problem.target,
            self._raw,
            problem.sample_weight,
            apart=self._apart,
            times=self._steepness,
        )
        for group in self.groups:
            group.mixtures.expand(of_output(weight, group.outputs), residual[group.outputs])

    def limit(self, said: NDArray[np.int8]) -> None:
        """Allow some prunings only, see `Mixtures.limit`, and begin to bound anew."""
        for group in self.groups:
            group.mixtures.limit(said[group.splits])
        self.best, self.upper = -np.inf, np.inf
        self._raw = self._predicted()
        self._expand()
        self.look()

    def kept(self) -> Floats:
        """Return how much of each split mixtures keep, if that is traced."""
        kept = np.zeros(sum(group.splits.size for group in self.groups))
        for group in self.groups:
            kept[group.splits] = group.mixtures.kept()
        return kept

    def look(self) -> None:
        """Work out the objective of the mixtures, and the bound by the tangent there."""
        problem, before = self.problem, self.upper
        self._raw = self._predicted()
        penalty = sum(group.mixtures.penalty() for group in self.groups)
        self.upper = problem.unexplained_by(self._raw) + penalty / problem.variation
        self.best = max(self.best, self._bound())
        if not problem.loss.quadratic:
            if self.upper > before:
                self._steepness *= STEEPER
            self._expand()

    def _bound(self) -> float:
        problem = self.problem
        at = problem.intercept[:, np.newaxis]
        slope, height = problem.loss.tangent(problem.target, self._raw, at)
        weight = problem.sample_weight
        residual = np.negative(slope, out=slope)
        if weight is not None:
            residual *= weight
            height = height * weight
        lowest = sum(group.mixtures.lowest(residual[group.outputs]) for group in self.groups)
        return float(2.0 * height.sum() + lowest) / problem.variation

    def sweep(self, sweeps: int, enough: float) -> None:
        """Let mixtures descend. What promises less than `enough` of the objective is left alone."""
        n_trees = self.problem.encoding.forest.n_trees
        least = enough * abs(self.upper) * self.problem.variation / max(n_trees, 1)
        for group in self.groups:
            for number in range(sweeps):
                group.mixtures.sweep(least, again=number > 0)

    def raise_bound(self, objective: float, rounds: int = ROUNDS) -> float:
        """Raise the bound on what is at most `objective`, as far as that is worth it."""
        gap, since = objective - self.best, 0
        for _ in range(rounds):
            open_gap = max(ENOUGH * abs(objective), WORTH * (objective - self.best))
            if self.upper - self.best <= open_gap or since >= PATIENCE:
                break
            self.sweep(SWEEPS, 0.1 * ENOUGH)
            self.look()
            since += 1
            if objective - self.best < (1.0 - SLOW) * gap:
                gap, since = objective - self.best, 0
        return self.best


def _parts_of(
    rule: Rule, point: Point
) -> Iterator[tuple[QuadraticRule, Point, slice, NDArray[np.int64]]]:
    """Yield the rule, the point and the splits of the trees that add to the same outputs."""
    if isinstance(rule, ExpandedRule):
        for part, own in zip(rule.parts, rule.apart(point), strict=True):
            yield part.rule, own, part.outputs, part.splits
    elif isinstance(rule, QuadraticRule):
        splits = np.arange(rule.problem.trees.split.size)
        yield rule, point, slice(0, rule.problem.intercept.size), splits


def hindrance(rule: Rule, options: Options) -> str | None:
    """Return why there is no bound for what a rule minimises; None if there is."""
    forest = rule.problem.encoding.forest
    if options.joint is not None:
        return "weights of trees were chosen along with their depths, which is not convex"
    most = MOST_CONSTRAINED if forest.monotone.size and not options.refits else MOST_LEVELS
    if rule.by_levels and forest.max_depth > most:
        return f"trees of more than {most} levels have too many choices of levels to try all"
    bounded = options.shrinkages[0] > 0.0 or forest.averages_distributions
    if options.refits and not bounded:
        return "without shrinkage nothing keeps the values of leaves from growing in the dual"
    return None
