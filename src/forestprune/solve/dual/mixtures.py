"""Mixtures of prunings of some trees, and the lowest pruning of each under a tangent."""

import numpy as np
from numpy.typing import NDArray

from forestprune import kernels
from forestprune.forest.checks import seal
from forestprune.kernels.records import MUST, MUST_NOT, Mixture
from forestprune.rows.trees import first_leaves, first_splits
from forestprune.solve.contributions import Contributions
from forestprune.solve.dual.choices import choices_of
from forestprune.solve.point import Point, kept_depths, pack_splits
from forestprune.solve.rule import QuadraticRule
from forestprune.system.threads import Crew

Floats = NDArray[np.float64]

MOST, LEAST, MOST_NUMBERS = 12, 4, 1 << 24
"""Prunings of a mixture, and how many numbers all of them may take where trees are large."""


class Mixtures:
    """A mixture of prunings for each tree of a quadratic problem; they begin as a point has them.

    Parameters
    ----------
    rule : QuadraticRule
    point : Point
        What is kept of its trees, at an alpha in units of its own problem.
    trace : bool
        Whether to follow how much of each split is kept.
    """

    def __init__(self, rule: QuadraticRule, point: Point, *, trace: bool = False) -> None:
        problem, forest = rule.problem, rule.problem.encoding.forest
        self._problem, self._encoding = problem, problem.encoding
        self._choices = choices_of(rule, point.alpha)
        self._crew = Crew(problem.n_jobs, self._encoding.codes.size > 1_000_000)
        self._order = np.arange(forest.n_trees)
        self._promise = np.zeros(forest.n_trees)
        self._row_weight = problem.row_weight
        outputs, leaves = problem.trees.origin.shape[0], problem.trees.leaf.size
        most = int(np.clip(MOST_NUMBERS // max(outputs * leaves, 1), LEAST, MOST))
        first = first_splits(forest.offsets)
        shape = (forest.n_trees, most)
        self._mixture = Mixture(
            residual=np.empty((outputs, self._encoding.n_rows)),
            adds=np.zeros((most, outputs, leaves)),
            share=np.zeros(shape),
            penalty=np.zeros(shape),
            square=np.zeros((*shape, most)),
            kept=np.zeros((most, int(first[-1])) if trace else (0, 0)),
            first=first,
        )
        self._set(point, self._order)

    def _set(self, point: Point, some: NDArray[np.int64]) -> None:
        """Let the mixtures of some trees be what a point has of them."""
        mixture, forest = self._mixture, self._encoding.forest
        table = Contributions(self._encoding, self._problem.trees)
        table.move_to(point)
        costs, splits = self._choices.penalties(point), point.splits(forest)
        first = first_leaves(forest.offsets)
        mixture.share[some], mixture.share[some, 0] = 0.0, 1.0
        mixture.penalty[some, 0] = costs[some]
        for tree in some:
            leaves = slice(first[tree], first[tree + 1])
            mixture.adds[0, :, leaves] = table.table[leaves].T
            if mixture.kept.size:
                own = slice(mixture.first[tree], mixture.first[tree + 1])
                mixture.kept[0, own] = splits[own]

    def means(self) -> Floats:
        """Return what each mixture adds in each leaf of its unpruned tree."""
        mixture, first = self._mixture, first_leaves(self._encoding.forest.offsets)
        share = np.repeat(mixture.share, np.diff(first), axis=0)
        means: Floats = np.einsum("kol,lk->ol", mixture.adds, share)
        return means

    def kept(self) -> Floats:
        """Return how much of each split is kept, if that is followed."""
        mixture = self._mixture
        share = np.repeat(mixture.share, np.diff(mixture.first), axis=0)
        kept: Floats = np.einsum("ks,sk->s", mixture.kept, share)
        return kept

    def predictions(self) -> Floats:
        """Return what all mixtures together add to each row: (n_outputs, m)."""
        forest = self._encoding.forest
        table = np.ascontiguousarray(self.means().T)
        out = np.zeros(self._mixture.residual.shape)
        before, output = np.zeros_like(table), seal(np.empty(0, np.int32))
        first = first_leaves(forest.offsets)
        arguments = (self._encoding.codes, self._order, first, output, before, table, out)
        kernels.replace_columns(*arguments)
        return out

    def penalty(self) -> float:
        """Return what all mixtures cost, times the variation."""
        share = self._mixture.share
        return float((share * np.where(share > 0.0, self._mixture.penalty, 0.0)).sum())

    def expand(self, weight: Floats | None, residual: Floats) -> None:
        """Take the loss as squares of rows with these weights, around this residual."""
        rows = np.ones(self._encoding.n_rows) if weight is None else weight
        sums = self._encoding.node_sums(rows, self._problem.n_jobs)
        leaves = np.flatnonzero(self._encoding.forest.left < 0)
        self._row_weight = seal(np.empty(0) if weight is None else np.array(weight))
        weights, offsets = seal(sums[leaves]), self._encoding.forest.offsets
        self._choices.weigh(weights)
        self._mixture.residual[:] = residual
        kernels.measure_mixtures(offsets, weights, self._mixture)

    def limit(self, said: NDArray[np.int8]) -> None:
        """From now on allow only prunings that keep some splits and do without others.

        Mixtures lose what is not allowed; if nothing is left, they keep as little as may be.
        `said` has MUST or MUST_NOT for these splits, 0 for all others. It needs a `trace`.
        """
        self._choices.limit(said)
        mixture, splits = self._mixture, said == MUST
        wrong = (splits & (mixture.kept < 1.0)) | ((said == MUST_NOT) & (mixture.kept > 0.0))
        owner = np.repeat(self._order, np.diff(mixture.first))
        share, n_trees = mixture.share, self._order.size
        refused = np.array([np.bincount(owner, line, n_trees) > 0.0 for line in wrong]).T
        share[refused], mixture.penalty[refused] = 0.0, np.inf
        total = share.sum(axis=1, keepdims=True)
        np.divide(share, total, out=share, where=total > 0.0)
        point = Point(
            alpha=0.0,
            kept=pack_splits(splits),
            depths=kept_depths(self._encoding.forest, splits),
            weights=np.ones(n_trees),
            intercept=self._problem.intercept,
            loss=np.nan,
            objective=np.nan,
        )
        self._set(point, np.flatnonzero(total[:, 0] <= 0.0))

    def sweep(self, enough: float, *, again: bool = False) -> None:
        """Let all mixtures descend, or `again` those that promised more than `enough`."""
        order = np.flatnonzero(self._promise > enough) if again else self._order
        self._choices.sweep(self._row_weight, self._mixture, order, enough, self._promise)

    def lowest(self, residual: Floats) -> float:
        """Return the objective of the lowest prunings under a tangent, times the variation."""
        least = np.zeros(self._order.size)
        self._choices.lowest(self._crew, self._order, residual, least)
        return float(least.sum())
