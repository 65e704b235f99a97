"""New values for all leaves by all rows, of which only a sample is there.

In each round all rows tell the loss and its gradient at some values. With these the sample is
corrected: at those values it has the gradient of all rows, and further on its own curvature. What
is best by that is asked about next, and the better the sample stands for all rows, the nearer it
is to what is best by all of them.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from forestprune.forest.constraints import Boxes
from forestprune.forest.forest import Forest
from forestprune.polishing.leaf import boxes_around, fit_leaves
from forestprune.polishing.leaf_fit import Correction
from forestprune.solve.contributions import Predictions
from forestprune.solve.correction import Sums
from forestprune.solve.expanded import STEEPER, ExpandedRule, expansion
from forestprune.solve.point import Point, kept_leaves
from forestprune.solve.problem import Problem
from forestprune.solve.rule import Rule

Floats = NDArray[np.float64]

ENOUGH = 1e-6
"""Rounds end once the corrected sample sees no more than this share of the objective to gain."""

EXPANSIONS, STEEPEST = 20, 4.0**4
"""How often a loss is expanded anew on the sample, and how much steeper than it is, at most."""

BORNE_OUT, SHORTEST = 0.2, 2.0**-4
"""Steps become shorter where less than this share of what they promise is gained, down to what part
of whole ones."""

LEAST = 0.7
"""Leaves weigh this share of what they do in all rows, at least: with much less, values would go so
far beyond the best ones that they never came to rest. With more than is needed they go slowly."""


def nodes_asked(forest: Forest, point: Point) -> NDArray[np.int64]:
    """Return at which nodes sums are needed to fit a point: its leaves, and then all roots."""
    leaves = kept_leaves(forest, point.splits(forest))
    return np.concatenate([leaves, forest.offsets[:-1]])


@dataclass(frozen=True, eq=False)
class _LeafSums:
    """Sums over rows in each leaf, as values of leaves stand in points, and over all rows."""

    weight: Floats
    residual: Floats
    total_weight: Floats
    total: Floats

    @classmethod
    def of(cls, forest: Forest, sums: Sums) -> "_LeafSums":
        """Return what is known at `nodes_asked`."""
        leaves, roots = sums.weight.size - forest.n_trees, np.zeros(forest.n_outputs, np.int64)
        if forest.tree_output.size:
            outputs, first = np.unique(forest.tree_output, return_index=True)
            roots[outputs] = first
        row = np.zeros(forest.n_outputs, np.int64)
        if not forest.tree_output.size:
            row = np.arange(forest.n_outputs)
        weight, residual = sums.weight, sums.residual
        return cls(
            weight[np.newaxis, :leaves],
            residual[:, :leaves],
            weight[leaves + roots],
            residual[row, leaves + roots],
        )


class LeafRounds:
    """Fits the leaves of one point, round by round.

    Parameters
    ----------
    rule : Rule
        Of the problem of the sample, whose rows have the weight of all.
    point : Point
        Which leaves there are, and what they add before.
    shrinkage : float
        In rows.
    origin : float64 array of shape (n_outputs, n_leaves)
        What values are drawn to.

    Attributes
    ----------
    asked : Point
        What all rows are to be asked about next; at first the point itself.
    best : Point or None
        The best of those asked about, with the loss that all rows gave it.
    objective : float
        The loss of that, summed over all rows, with half the penalty of values.
    left : float
        What the corrected sample sees to gain yet, as a share of that.
    done : bool
        Whether that is too little to go on.
    """

    def __init__(self, rule: Rule, point: Point, shrinkage: float, origin: Floats) -> None:
        self._rule, self._problem = rule, rule.problem
        self._shrinkage = self._problem.curvature * shrinkage
        self._origin = origin
        begun = replace(
            point,
            values=origin if point.values is None else point.values,
            weights=(point.depths > 0).astype(np.float64),
        )
        problems = self._problems_at(begun, 1.0)
        own = self._apart(begun, begun.values, begun.intercept)
        self._boxes: list[Boxes | None] = [
            boxes_around(problem, each, _values(each))
            for problem, each in zip(problems, own, strict=True)
        ]
        self._whole_step, self._reach = begun, 1.0
        self.best: Point | None = None
        self.objective = self.left = np.inf
        self.done = False
        self.asked = begun

    def take(self, loss: float, sums: Sums) -> None:
        """Take what all rows say of the point they were asked about.

        That is its loss, summed over them, and sums at `nodes_asked`.
        """
        objective = loss + self._penalty(self.asked)
        gained, expected = self.objective - objective, self.left * abs(self.objective)
        if self.best is not None and gained < BORNE_OUT * expected:
            self._reach *= 0.5
        if gained > 0.0:
            self.best = replace(self.asked, loss=2.0 * loss / self._problem.variation)
            self.objective = objective
            found, fall = self._solved(self.best, self._correction(self.best, sums))
            self._whole_step, self.left = found, fall / max(abs(objective), 1e-300)
        self.done = self.left <= ENOUGH or self._reach < SHORTEST
        self.asked = self._ahead()

    def objective_of(self, point: Point) -> float:
        """Return the objective of a point with the same leaves, whose loss on all rows is known."""
        values = self._origin if point.values is None else point.values
        loss = 0.5 * point.loss * self._problem.variation
        return loss + self._penalty(replace(point, values=values))

    def _ahead(self) -> Point:
        """Return how far to go from the best point to what is best by the corrected sample."""
        begin, end, reach = self.best, self._whole_step, self._reach
        if begin is None:
            raise AssertionError("nothing was asked about")
        return replace(
            end,
            values=(1.0 - reach) * _values(begin) + reach * _values(end),
            intercept=(1.0 - reach) * begin.intercept + reach * end.intercept,
        )

    # On the sample

    def _solved(self, begun: Point, correction: list[Correction]) -> tuple[Point, float]:
        """Return what is best by the sample, and by how much better than where it begins."""
        best, first = begun, self._value(begun, correction)
        least, steepness = first, 1.0
        for _ in range(EXPANSIONS):
            found = self._expanded(best, correction, steepness)
            value = self._value(found, correction)
            gained = least - value
            if gained > 0.0:
                best, least = found, value
            elif steepness >= STEEPEST:
                break
            else:
                steepness *= STEEPER
            exact = self._problem.loss.quadratic
            if exact or 0.0 <= gained <= 0.1 * ENOUGH * abs(least):
                break
        return best, first - least

    def _expanded(self, point: Point, correction: list[Correction], steepness: float) -> Point:
        """Return what is best by the sample if the loss is expanded around a point."""
        problems = self._problems_at(point, steepness)
        own = self._apart(point, point.values, point.intercept)
        origins = self._apart(point, self._origin, point.intercept)
        found = []
        for i, (problem, each) in enumerate(zip(problems, own, strict=True)):
            constant = each.intercept - problem.intercept
            about = (_values(origins[i]), self._boxes[i], constant, correction[i])
            found.append(fit_leaves(problem, each, self._shrinkage, *about))
        joined = self._rule.joined(found) if isinstance(self._rule, ExpandedRule) else found[0]
        return replace(
            point, values=joined.values, intercept=joined.intercept, weights=joined.weights
        )

    def _problems_at(self, point: Point, steepness: float) -> list[Problem]:
        """Return the problems of squared error around a point, one for each part of its trees."""
        if isinstance(self._rule, ExpandedRule):
            return self._rule.problems_at(self._raw(point), steepness)
        return [self._problem]

    def _apart(self, point: Point, values: Floats | None, intercept: Floats) -> list[Point]:
        """Return points with some values of leaves and of the constant, one for each part."""
        whole = replace(point, values=values, intercept=intercept)
        return self._rule.apart(whole) if isinstance(self._rule, ExpandedRule) else [whole]

    def _raw(self, point: Point) -> Floats:
        """Return what a point predicts for the sample."""
        predictions = Predictions(self._problem.encoding, self._problem.trees)
        predictions.move_to(point)
        raw: Floats = predictions.values + point.intercept[:, np.newaxis]
        return raw

    def _correction(self, point: Point, total: Sums) -> list[Correction]:
        """Return what makes the sample stand for all rows, given sums over these at a point."""
        problem, forest = self._problem, self._problem.encoding.forest
        apart = forest.tree_output.size > 0
        weight, residual = expansion(
            problem.loss, problem.target, self._raw(point), problem.sample_weight, apart=apart
        )
        encoding, n_jobs, nodes = problem.encoding, problem.n_jobs, nodes_asked(forest, point)
        weight = np.ones(encoding.n_rows) if weight is None else weight
        if weight.ndim == 2:
            weights = encoding.output_sums(weight, n_jobs)[0]
        else:
            weights = encoding.node_sums(weight, n_jobs)
        sums = Sums(weights[nodes], encoding.output_sums(residual, n_jobs)[:, nodes])
        mine, all_rows = _LeafSums.of(forest, sums), _LeafSums.of(forest, total)
        more = np.maximum(LEAST * all_rows.weight - mine.weight, 0.0)
        heavier = np.maximum(LEAST * all_rows.total_weight - mine.total_weight, 0.0)
        excess = all_rows.residual - mine.residual, all_rows.total - mine.total
        away = point.intercept - problem.intercept
        parts = zip(
            self._apart(point, *excess),
            self._apart(point, more, heavier),
            self._apart(point, point.values, away),
            strict=True,
        )
        return [
            Correction(_columns(added), _columns(weight)[0], _columns(at))
            for added, weight, at in parts
        ]

    # What is minimised

    def _penalty(self, point: Point) -> float:
        """Return half the penalty of values."""
        return 0.5 * self._shrinkage * float(((_values(point) - self._origin) ** 2).sum())

    def _value(self, point: Point, correction: list[Correction]) -> float:
        """Return the loss of a point on the sample, with its penalty, and what corrects it."""
        problem = self._problem
        value = problem.loss.value(problem.target, self._raw(point), problem.sample_weight)
        value += self._penalty(point)
        parts = self._apart(point, point.values, point.intercept - problem.intercept)
        for own, each in zip(parts, correction, strict=True):
            value += 0.5 * each.value(_columns(own))
        return float(value)


def _values(point: Point) -> Floats:
    """Return what the leaves of a point add."""
    if point.values is None:
        raise AssertionError("points that are fitted have values")
    return point.values


def _columns(part: Point) -> Floats:
    """Return the values of leaves, and behind them that of the constant, as columns."""
    values = _values(part)
    columns: Floats = np.column_stack([values, part.intercept[: len(values)]])
    return columns
