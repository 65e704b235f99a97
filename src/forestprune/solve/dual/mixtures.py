"""Mixtures of prunings of some trees, and the lowest pruning of each under a tangent."""

import numpy as np
from numpy.typing import NDArray

from forestprune import kernels
from forestprune.forest.checks import seal
from forestprune.kernels.records import MUST, MUST_NOT, Mixture, Prunings
from forestprune.rows.encoding import Encoding
from forestprune.rows.trees import first_leaves, first_splits, splits_and_leaves
from forestprune.solve.contributions import Contributions
from forestprune.solve.layers.rule import LayerRule
from forestprune.solve.point import Point, kept_depths, kept_leaves, pack_splits
from forestprune.solve.problem import Problem
from forestprune.solve.rule import QuadraticRule
from forestprune.solve.subtrees.rule import SubtreeRule
from forestprune.system.threads import Crew

Floats = NDArray[np.float64]

MOST, LEAST, MOST_NUMBERS = 12, 4, 1 << 26
"""Prunings of a mixture, and how many numbers all of them may take where trees are large."""


class Mixtures:
    """A mixture of prunings for each tree of a quadratic problem; they begin as a point has them.

    Parameters
    ----------
    rule : SubtreeRule or LayerRule
    alpha : float
        In units of its own problem.
    point : Point
        What is kept of its trees.
    trace : bool
        Whether to follow how much of each split is kept.
    """

    def __init__(
        self, rule: QuadraticRule, alpha: float, point: Point, *, trace: bool = False
    ) -> None:
        problem = rule.problem
        self._problem, self.rule, self._trace = problem, rule, trace
        self._encoding: Encoding = problem.encoding
        self.prunings = prunings_of(rule, alpha)
        self._crew = Crew(problem.n_jobs, self._encoding.codes.size > 1_000_000)
        self._order = np.arange(self._encoding.forest.n_trees)
        self._begin(point)

    def _begin(self, point: Point) -> None:
        forest, prunings = self._encoding.forest, self.prunings
        outputs, leaves = prunings.origin.shape[0], prunings.leaf.size
        most = int(np.clip(MOST_NUMBERS // max(outputs * leaves, 1), LEAST, MOST))
        adds = np.zeros((most, outputs, leaves))
        share, penalty = np.zeros((forest.n_trees, most)), np.zeros((forest.n_trees, most))
        share[:, 0] = 1.0
        table = Contributions(self._encoding, self._problem.trees)
        table.move_to(point)
        adds[0] = table.table.T
        penalty[:, 0] = penalties(self.rule, prunings, point)
        first = first_splits(forest.offsets)
        kept = np.zeros((most if self._trace else 0, prunings.split.size if self._trace else 0))
        if self._trace:
            kept[0] = point.splits(forest)
        residual = np.empty((outputs, self._encoding.n_rows))
        square = np.zeros((forest.n_trees, most, most))
        self.mixture = Mixture(residual, adds, share, penalty, square, kept, first)
        self._promise = np.zeros(forest.n_trees)

    def means(self) -> Floats:
        """Return what each mixture adds in each leaf of its unpruned tree."""
        mixture, first = self.mixture, first_leaves(self._encoding.forest.offsets)
        share = np.repeat(mixture.share, np.diff(first), axis=0)
        means: Floats = np.einsum("kol,lk->ol", mixture.adds, share)
        return means

    def kept(self) -> Floats:
        """Return how much of each split is kept, if that is followed."""
        mixture = self.mixture
        share = np.repeat(mixture.share, np.diff(mixture.first), axis=0)
        kept: Floats = np.einsum("ks,sk->s", mixture.kept, share)
        return kept

    def predictions(self) -> Floats:
        """Return what all mixtures together add to each row: (n_outputs, m)."""
        forest = self._encoding.forest
        table = np.ascontiguousarray(self.means().T)
        out = np.zeros(self.mixture.residual.shape)
        before, output = np.zeros_like(table), seal(np.empty(0, np.int32))
        first = first_leaves(forest.offsets)
        arguments = (self._encoding.codes, self._order, first, output, before, table, out)
        kernels.replace_columns(*arguments)
        return out

    def penalty(self) -> float:
        """Return what all mixtures cost, times the variation."""
        share = self.mixture.share
        return float((share * np.where(share > 0.0, self.mixture.penalty, 0.0)).sum())

    def expand(self, weight: Floats | None, residual: Floats) -> None:
        """Take the loss as squares of rows with these weights, around this residual."""
        rows = np.ones(self._encoding.n_rows) if weight is None else weight
        sums = self._encoding.node_sums(rows, self._problem.n_jobs)
        leaves = np.flatnonzero(self._encoding.forest.left < 0)
        self._row_weight = seal(np.empty(0) if weight is None else np.array(weight))
        self.prunings = self.prunings._replace(leaf_weight=seal(sums[leaves]))
        self.mixture.residual[:] = residual
        kernels.measure_mixtures(self.prunings, self.mixture)

    @property
    def residual(self) -> Floats:
        """What mixtures leave unexplained, times the rows' weights."""
        return self.mixture.residual

    @property
    def row_weight(self) -> Floats:
        """What rows weigh; empty if each weighs 1."""
        return self._row_weight

    def limit(self, said: NDArray[np.int8]) -> None:
        """From now on allow only prunings that keep some splits and do without others.

        Mixtures lose what is not allowed; if nothing is left, they keep as little as may be.
        `said` has MUST or MUST_NOT for these splits, 0 for all others. It needs a `trace`.
        """
        self.prunings = self.prunings._replace(said=seal(said.copy()))
        mixture, forest = self.mixture, self._encoding.forest
        kept, share, penalty = mixture.kept, mixture.share, mixture.penalty
        wrong = ((said == MUST) & (kept < 1.0)) | ((said == MUST_NOT) & (kept > 0.0))
        owner = np.repeat(self._order, np.diff(mixture.first))
        refused = np.array([np.bincount(owner, line, share.shape[0]) > 0.0 for line in wrong]).T
        share[refused], penalty[refused] = 0.0, np.inf
        total = share.sum(axis=1, keepdims=True)
        np.divide(share, total, out=share, where=total > 0.0)
        splits = said == MUST
        point = Point(
            alpha=0.0,
            kept=pack_splits(splits),
            depths=kept_depths(forest, splits),
            weights=np.ones(forest.n_trees),
            intercept=self._problem.intercept,
            loss=np.nan,
            objective=np.nan,
        )
        table = Contributions(self._encoding, self._problem.trees)
        table.move_to(point)
        costs = penalties(self.rule, self.prunings, point)
        first = first_leaves(forest.offsets)
        for tree in np.flatnonzero(total[:, 0] <= 0.0):
            leaves = slice(first[tree], first[tree + 1])
            mixture.adds[0, :, leaves] = table.table[leaves].T
            share[tree, 0], penalty[tree, 0] = 1.0, costs[tree]
            kept[0, owner == tree] = splits[owner == tree]
        kernels.measure_mixtures(self.prunings, mixture)

    def sweep(self, enough: float, *, again: bool = False) -> None:
        """Let all mixtures descend, or `again` those that promised more than `enough`."""
        order = np.flatnonzero(self._promise > enough) if again else self._order
        kernels.sweep_mixtures(
            self._encoding.codes,
            self._row_weight,
            self.prunings,
            self.mixture,
            order,
            enough,
            self._promise,
        )

    def lowest(self, residual: Floats) -> float:
        """Return the objective of the lowest prunings under a tangent, times the variation."""
        least = np.zeros(self._order.size)
        arguments = (self._encoding.codes, self.prunings, residual, least)
        self._crew.share(kernels.lowest_prunings, self._order, *arguments)
        return float(least.sum())


def prunings_of(rule: QuadraticRule, alpha: float) -> Prunings:
    """Return which prunings a rule allows and what they cost at an alpha, for kernels."""
    problem: Problem = rule.problem
    forest, trees = problem.encoding.forest, problem.trees
    split, leaf = splits_and_leaves(forest)
    price = alpha * problem.variation
    outputs = trees.origin.shape[0]
    cost, layer_cost = np.zeros(split.size), np.zeros((forest.n_trees, 0))
    refit, shrinkage = False, 0.0
    if isinstance(rule, SubtreeRule):
        cost, refit, shrinkage = price * rule.costs, rule.refits, rule.shrinkage
    elif isinstance(rule, LayerRule):
        layer_cost = price * rule.costs
    least, most = np.full(outputs, -np.inf), np.full(outputs, np.inf)
    if refit and forest.averages_distributions:
        # In an average leaves go from the intercept towards a class, at most all the way.
        least, most = -problem.intercept, 1.0 - problem.intercept
    return Prunings(
        offsets=forest.offsets,
        split=split,
        leaf=leaf,
        depth=seal(forest.node_depths.astype(np.int64)),
        origin=trees.origin,
        leaf_weight=seal(np.zeros(leaf.size)),
        cost=seal(cost),
        layer_cost=seal(layer_cost),
        shrinkage=shrinkage,
        refit=refit,
        least=seal(np.ascontiguousarray(least)),
        most=seal(np.ascontiguousarray(most)),
        said=seal(np.empty(0, np.int8)),
    )


def penalties(rule: QuadraticRule, prunings: Prunings, point: Point) -> Floats:
    """Return what each tree costs at a point, its new values included, times the variation."""
    forest = rule.problem.encoding.forest
    trees = np.arange(forest.n_trees)
    if isinstance(rule, LayerRule):
        of_layers: Floats = prunings.layer_cost[trees, point.depths]
        return of_layers
    splits = point.splits(forest)
    owner = np.repeat(trees, np.diff(first_splits(forest.offsets)))
    found = np.zeros(forest.n_trees)
    np.add.at(found, owner, prunings.cost * splits)
    if prunings.refit and point.values is not None:
        leaves = kept_leaves(forest, splits)
        shift = ((point.values - prunings.origin[:, leaves]) ** 2).sum(axis=0)
        of = np.searchsorted(forest.offsets, leaves, side="right") - 1
        np.add.at(found, of, prunings.shrinkage * shift)
    return found
