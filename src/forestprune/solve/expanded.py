"""Losses other than squared error: expanded around what is kept, again and again.

With gradient g and Hessian h of the loss at the present raw prediction, a change of it by d changes
the loss by about ``g d + h d^2 / 2``. That is squared error, of rows that weigh h with the residual
-g / h, which is what rules solve. Once they find nothing better, gradient and Hessian are
renewed, until the true objective falls no further. A solution by which it rose is given up, and
looked for once more with a larger Hessian.

Where each tree adds to one output, the expansion of each output is a problem of its own, and trees
of different outputs need not know each other until it is renewed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from forestprune.forest.checks import seal
from forestprune.forest.cutting import take_trees
from forestprune.loss import Loss, SquaredError
from forestprune.options import Options
from forestprune.rows.encoding import Encoding
from forestprune.rows.trees import by_tree, first_splits
from forestprune.solve.correction import Sums
from forestprune.solve.descent import Descent
from forestprune.solve.point import Point, pack_splits
from forestprune.solve.problem import Problem
from forestprune.solve.rule import Order, QuadraticRule, Rule

if TYPE_CHECKING:
    from forestprune.forest.forest import Forest

Floats = NDArray[np.float64]

SETTLED = 1e-5
"""Expansions are renewed until the objective falls by no more than this share of itself."""

STALE_MEAN, STALE_MOST = 0.1, 2.0
"""Hessians are renewed if they differ by this share on average, or one has grown by this factor.
Until then gradients alone are: what is known of trees by the weights of rows can stay."""

STEEPER, STEEPEST = 4.0, 4.0**8
"""By what Hessians are multiplied if the objective rose, and up to how often."""

ROUNDING = 1e-12
"""By what the objective may rise."""


@dataclass(eq=False)
class Part:
    """The trees that add to the same outputs, and the rule that prunes them.

    Attributes
    ----------
    rule : QuadraticRule
        With rows that weigh what the Hessian says.
    trees : int64 array
        Which trees of the forest these are, rising.
    outputs : slice
        What they add to.
    splits : int64 array
        Where their splits stand among all splits.
    share : float
        Their part of the cost of everything: in their own problem alpha is less by that.
    then : float64 array of shape (outputs, m)
        The residual when raw predictions were last worked out.
    """

    rule: QuadraticRule
    trees: Order
    outputs: slice
    splits: NDArray[np.int64]
    share: float
    then: Floats

    @property
    def weight(self) -> Floats:
        """What rows weigh in its problem."""
        return self.rule.problem.row_weight


class ExpandedRule(Rule):
    """A rule for any loss, and for trees that add to one output each.

    Parameters
    ----------
    problem : Problem
    options : Options
    kind : type of Rule
        The rule for squared error.
    """

    def __init__(self, problem: Problem, options: Options, kind: Any) -> None:
        forest = problem.encoding.forest
        self.problem = problem
        self.by_levels = kind.by_levels
        self._raw = np.repeat(problem.intercept[:, np.newaxis], problem.encoding.n_rows, axis=1)
        self._steepness = 1.0
        if options.refits:
            options = replace(options, shrinkage=problem.curvature * options.shrinkages[0])
        weight, residual = self._expansion(self._raw)
        self._parts: list[Part] = []
        for trees, outputs in _groups(forest):
            own = options
            if not isinstance(options.weighting, str):
                own = replace(options, weighting=_own_costs(forest, options.weighting, trees))
            part = _own_problem(problem, trees, outputs, weight, residual)
            rule = kind(part, own)
            splits = _splits_of(forest, trees)
            share = _share(forest, options.weighting, trees)
            self._parts.append(Part(rule, trees, outputs, splits, share, part.residual))
        self.order = np.concatenate(
            [np.empty(0, np.int64), *(part.trees[part.rule.order] for part in self._parts)]
        )
        self.searches = any(part.rule.searches for part in self._parts)
        self._begun = self.point(0.0)

    @property
    def parts(self) -> Sequence[Part]:
        """The trees of each group of outputs, and the rule that prunes them."""
        return tuple(self._parts)

    # What is kept

    @property
    def depths(self) -> NDArray[np.int64]:
        """How deep what is kept of each tree is now; 0 if nothing is."""
        depths = np.zeros(self.order.size, np.int64)
        for part in self._parts:
            depths[part.trees] = part.rule.depths
        return depths

    def n_nodes(self) -> int:
        """Return how many nodes are kept now, roots of trees that are kept included."""
        return sum(part.rule.n_nodes() for part in self._parts)

    def is_full(self) -> bool:
        """Tell whether the model is the original now."""
        return all(part.rule.is_full() for part in self._parts)

    def alpha_range(self) -> tuple[float, float]:
        """Return the smallest alpha at which nothing is kept, and the last one of use."""
        ranges = [
            (highest / part.share, lowest / part.share)
            for part in self._parts
            for highest, lowest in [part.rule.alpha_range()]
            if highest > 0.0
        ]
        if not ranges:
            return 0.0, 0.0
        return max(highest for highest, _ in ranges), min(lowest for _, lowest in ranges)

    # The descent

    def begin(self, alpha: float, order: Order) -> None:
        """Prepare for sweeps over some trees at an alpha."""
        if self._steepness > 1.0 and alpha != self._begun.alpha:
            # What was too steep to gain from at the last alpha hides what this one lets in.
            self._steepness = 1.0
            self._renew(weights=True)
        for part, some in self._own(order):
            part.rule.begin(part.share * alpha, some)
        self._begun = self.point(alpha)

    def sweep(self, alpha: float, order: Order) -> tuple[int, int]:
        """Update some trees, each to its best pruning given the others."""
        found = [part.rule.sweep(part.share * alpha, some) for part, some in self._own(order)]
        return sum(changed for changed, _ in found), sum(looked for _, looked in found)

    def refine(self, alpha: float, order: Order, max_sweeps: int) -> tuple[int, int]:
        """Improve trees that are kept, once some have changed."""
        found = [
            part.rule.refine(part.share * alpha, some, max_sweeps)
            for part, some in self._own(order)
        ]
        return max(sweeps for sweeps, _ in found), sum(looked for _, looked in found)

    def holds(self, alpha: float, order: Order) -> bool:
        """Tell whether no tree can improve what the expansion says, nor a new expansion that."""
        held = [part.rule.holds(part.share * alpha, some) for part, some in self._own(order)]
        if not all(held):
            return False
        return self.problem.loss.quadratic or self._settled(alpha)

    def _settled(self, alpha: float) -> bool:
        """Renew the expansion; tell whether what was found by the last one gained too little."""
        found, begun = self.point(alpha), self._begun
        gained = begun.objective - found.objective
        if gained < -ROUNDING * (1.0 + abs(begun.objective)):
            self.move_to(begun)
            if self._steepness >= STEEPEST:
                return True
            self._steepness *= STEEPER
            self._renew(weights=True)
            return False
        self._steepness = max(1.0, self._steepness / 2.0)
        self._renew()
        self._begun = found
        return gained <= SETTLED * abs(begun.objective)

    def search(self, descent: Descent, alpha: float, max_iter: int, *, on_path: bool) -> None:
        """Look for something better around a solution that no single tree can improve."""
        if not any(part.rule.searches for part in self._parts):
            return
        begun = self.point(alpha)
        for part in self._parts:
            own = Descent(part.rule)
            part.rule.search(own, part.share * alpha, max_iter, on_path=on_path)
            descent.sweeps += own.sweeps
            descent.looks += own.looks
        if self.point(alpha).objective > begun.objective:
            self.move_to(begun)
        self._renew()

    # Expansions

    def _follow(self) -> None:
        """Bring raw predictions up to what is kept now."""
        for part in self._parts:
            fallen = part.then - part.rule.residual
            if part.weight.size:
                np.divide(fallen, part.weight, out=fallen, where=part.weight > 0.0)
            self._raw[part.outputs] += fallen
            part.then = part.rule.residual.copy()

    def _expansion(
        self, raw: Floats, steepness: float | None = None
    ) -> tuple[Floats | None, Floats]:
        """Return what rows weigh, for all outputs or for each, and the residual at raw predictions.

        None if each row weighs 1.
        """
        problem, apart = self.problem, self.problem.encoding.forest.tree_output.size > 0
        steepness = self._steepness if steepness is None else steepness
        return expansion(
            problem.loss, problem.target, raw, problem.sample_weight, apart=apart, times=steepness
        )

    def _renew(self, *, weights: bool = False) -> None:
        """Expand the loss around what is kept now; if not asked to, keep Hessians that will do."""
        self._follow()
        weight, residual = self._expansion(self._raw)
        for part in self._parts:
            own, problem = residual[part.outputs], part.rule.problem
            rows = of_output(weight, part.outputs)
            if rows is None or not (weights or _stale(rows, part.weight)):
                part.rule.renew(own)
            else:
                away = self._raw[part.outputs] - problem.intercept[:, np.newaxis]
                part.rule.renew(own, problem.reweighted(rows.copy(), own + rows * away))
            part.then = own.copy()

    def correct(self, total: Sums) -> None:
        """Let rows stand for others too; `total` are sums over all, at what is kept now."""
        offsets = self.problem.encoding.forest.offsets
        self._steepness = 1.0
        self._renew(weights=True)
        for part in self._parts:
            nodes = _ranges(offsets, part.trees)
            part.rule.correct(Sums(total.weight[nodes], total.residual[:, nodes]))

    def tree_gains(self, alpha: float) -> NDArray[np.float64]:
        """Return by how much each tree alone could lower the expansion, with its penalties."""
        gains = np.zeros(self.order.size)
        for part in self._parts:
            gains[part.trees] = part.rule.tree_gains(part.share * alpha)
        return gains

    # Points

    def point(self, alpha: float) -> Point:
        """Return what is kept now, with its objective."""
        self._follow()
        points = [part.rule.point(part.share * alpha) for part in self._parts]
        loss = self.problem.unexplained_by(self._raw)
        penalty = sum(point.objective - point.loss for point in points)
        return replace(self.joined(points), alpha=alpha, loss=loss, objective=loss + penalty)

    def joined(self, points: Sequence[Point]) -> Point:
        """Return what points keep, one for each part, as one point; its loss is left open."""
        forest = self.problem.encoding.forest
        splits = np.zeros((forest.n_nodes - forest.n_trees) // 2, np.bool_)
        depths, weights = np.zeros(forest.n_trees, np.int64), np.zeros(forest.n_trees)
        levels = np.zeros(forest.n_trees, np.uint32) if self.by_levels else None
        intercept = np.array(self.problem.intercept)
        for part, point in zip(self._parts, points, strict=True):
            splits[part.splits] = point.splits(part.rule.problem.encoding.forest)
            depths[part.trees], weights[part.trees] = point.depths, point.weights
            if levels is not None and point.levels is not None:
                levels[part.trees] = point.levels
            intercept[part.outputs] = point.intercept
        values = None
        if all(point.values is not None for point in points):
            columns = self._columns(splits)
            values = np.empty((forest.value.shape[1], columns[-1]))
            for part, point in zip(self._parts, points, strict=True):
                values[:, _ranges(columns, part.trees)] = point.values
        return Point(
            alpha=0.0,
            kept=pack_splits(splits),
            depths=seal(depths),
            weights=seal(weights),
            intercept=seal(intercept),
            loss=np.nan,
            objective=np.nan,
            values=None if values is None else seal(values),
            levels=None if levels is None else seal(levels),
        )

    def priced(self, point: Point) -> float:
        """Return the objective of a point, whose loss is known."""
        alone = self.apart(replace(point, loss=0.0))
        penalties = (part.rule.priced(own) for part, own in zip(self._parts, alone, strict=True))
        return point.loss + sum(penalties)

    def move_to(self, point: Point) -> None:
        """Keep what `point` keeps."""
        for part, own in zip(self._parts, self.apart(point), strict=True):
            part.rule.move_to(own)
        self._renew()

    def apart(self, point: Point) -> list[Point]:
        """Return what a point keeps of the trees of each part."""
        splits, values = point.splits(self.problem.encoding.forest), point.values
        columns = self._columns(splits)
        return [
            replace(
                point,
                alpha=part.share * point.alpha,
                kept=pack_splits(splits[part.splits]),
                depths=point.depths[part.trees],
                weights=point.weights[part.trees],
                intercept=point.intercept[part.outputs],
                values=None if values is None else values[:, _ranges(columns, part.trees)],
                levels=None if point.levels is None else point.levels[part.trees],
            )
            for part in self._parts
        ]

    def problems_at(self, raw: Floats, steepness: float) -> list[Problem]:
        """Return the problem of each part if the loss is expanded around raw predictions."""
        weight, residual = self._expansion(raw, steepness)
        found = []
        for part in self._parts:
            problem, own = part.rule.problem, residual[part.outputs]
            rows = of_output(weight, part.outputs)
            away = raw[part.outputs] - problem.intercept[:, np.newaxis]
            if rows is None:
                found.append(replace(problem, residual=seal(own + away)))
            else:
                found.append(problem.reweighted(rows.copy(), own + rows * away))
        return found

    def _columns(self, splits: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return where the leaves of each tree begin among those of what is kept."""
        counts = by_tree(splits, first_splits(self.problem.encoding.forest.offsets))
        return np.concatenate([[0], np.cumsum(counts + (counts > 0))])

    def _own(self, order: Order) -> Iterator[tuple[Part, Order]]:
        """Yield each part, and which of its trees are among some, in their order."""
        for part in self._parts:
            some = order[np.isin(order, part.trees)] if len(self._parts) > 1 else order
            yield part, np.searchsorted(part.trees, some)


def expansion(
    loss: Loss,
    target: Floats,
    raw: Floats,
    rows: Floats | None,
    *,
    apart: bool,
    times: float = 1.0,
) -> tuple[Floats | None, Floats]:
    """Return what rows weigh if a loss is expanded around raw predictions, and their residual.

    Parameters
    ----------
    loss : Loss
    target, raw : float64 arrays of shape (n_outputs, m)
    rows : float64 array of shape (m,), or None
        What rows weigh in the loss.
    apart : bool
        Whether trees add to one output each, so that rows weigh something for each of them.
    times : float
        By what Hessians are multiplied.

    Returns
    -------
    (float64 array of shape (m,) or (n_outputs, m), or None), float64 array of shape (n_outputs, m)
        None if each row weighs 1.
    """
    residual = -loss.gradient(target, raw)
    if rows is not None:
        residual *= rows
    if loss.quadratic:
        return rows, residual
    hessian = loss.hessian if apart else loss.row_hessian
    weight = times * hessian(target, raw)
    return weight if rows is None else weight * rows, residual


def _groups(forest: "Forest") -> list[tuple[Order, slice]]:
    """Return which trees add to the same outputs, and to which."""
    if not forest.tree_output.size:
        return [(np.arange(forest.n_trees), slice(0, forest.n_outputs))]
    groups = [
        (np.flatnonzero(forest.tree_output == output), slice(output, output + 1))
        for output in range(forest.n_outputs)
    ]
    return [(trees, outputs) for trees, outputs in groups if trees.size]


def _own_problem(
    problem: Problem,
    trees: Order,
    outputs: slice,
    weight: Floats | None,
    residual: Floats,
) -> Problem:
    """Return the expansion around the intercept, for some trees and what they add to."""
    encoding = problem.encoding
    if trees.size < encoding.forest.n_trees or encoding.forest.tree_output.size:
        some = take_trees(encoding.forest, trees, outputs.start)
        encoding = Encoding(some, seal(encoding.codes[trees]))
    own = of_output(weight, outputs)
    return Problem(
        encoding=encoding,
        target=problem.target[outputs],
        sample_weight=None if own is None else seal(np.array(own)),
        intercept=problem.intercept[outputs],
        variation=problem.variation,
        residual=seal(np.array(residual[outputs])),
        loss=SquaredError(),
        n_jobs=problem.n_jobs,
    )


def of_output(weight: Floats | None, outputs: slice) -> Floats | None:
    """Return what rows weigh for some outputs, given that for all of them or for each."""
    return weight if weight is None or weight.ndim == 1 else weight[outputs.start]


def _stale(new: Floats, old: Floats) -> bool:
    """Tell whether Hessians have changed too much to go on with the old ones."""
    if bool((new > STALE_MOST * old).any()):
        return True
    return float(np.abs(new - old).sum()) > STALE_MEAN * float(old.sum())


def _splits_of(forest: "Forest", trees: Order) -> NDArray[np.int64]:
    """Return where the splits of some trees stand among all splits."""
    return _ranges(first_splits(forest.offsets), trees)


def _ranges(first: NDArray[np.int64], some: Order) -> NDArray[np.int64]:
    """Return the places first[i]..first[i + 1] for each of some i, one after another."""
    counts = first[some + 1] - first[some]
    starts = np.cumsum(counts) - counts
    places: NDArray[np.int64] = np.arange(counts.sum()) + np.repeat(first[some] - starts, counts)
    return places


def _own_costs(forest: "Forest", weighting: Any, trees: Order) -> Floats:
    """Return costs of one's own for some trees; shapes that do not fit are refused elsewhere."""
    given = np.asarray(weighting, dtype=np.float64)
    if given.shape == (forest.n_nodes,):
        return given[_ranges(forest.offsets, trees)]
    if given.shape == (forest.n_trees, forest.max_depth):
        return given[trees][:, : int(forest.depths[trees].max(initial=0))]
    return given


def _share(forest: "Forest", weighting: Any, trees: Order) -> float:
    """Return what part of the cost of everything some trees have."""
    if isinstance(weighting, str):
        depths = forest.depths[trees]
        if weighting == "depth":
            total = forest.n_trees * forest.max_depth
            return trees.size * int(depths.max(initial=0)) / total if total else 1.0
        sizes = np.diff(forest.offsets) - 1
        return float(sizes[trees].sum() / (sizes.sum() or 1)) or 1.0
    given = np.array(weighting, dtype=np.float64)
    if given.shape == (forest.n_nodes,):
        given[forest.offsets[:-1]] = 0.0  # roots cost nothing
    return float(_own_costs(forest, given, trees).sum() / (given.sum() or 1.0)) or 1.0
