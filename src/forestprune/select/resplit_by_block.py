"""New splits for rows by the block: some of them choose the splits, all of them the leaf values.

A pass over all rows for each tree and sweep would be hundreds of passes. So splits are chosen by
rows that are drawn, as they are where these are all there are. Values are then fitted to all rows,
those of all models that come into question in the same few passes, and what all rows do not bear
out is given up.
"""

from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from forestprune.forest.checks import seal
from forestprune.forest.forest import Forest
from forestprune.kernels.records import Trees
from forestprune.options import Options
from forestprune.polishing.leaf_rounds import LeafRounds
from forestprune.rows.encoding import encode_matrix
from forestprune.rows.trees import read_trees
from forestprune.select.all_rows import RowsByBlock
from forestprune.select.by_sample import choose_by_sample
from forestprune.select.choose import Wanted
from forestprune.select.measuring import Measured, Measuring, steady
from forestprune.select.path import PruningPath
from forestprune.select.pruned import forest_at
from forestprune.select.resplit import choose_with_new_splits
from forestprune.select.routed import RoutedRows
from forestprune.select.sampling import stands_for_all
from forestprune.select.solver import Solver
from forestprune.select.split_polish import Grown
from forestprune.solve.point import Point, kept_leaves, pack_splits
from forestprune.solve.problem import Problem

Floats = NDArray[np.float64]

SPLIT_ROWS = 100_000
"""By how many rows splits are chosen at most."""

FIT_ROWS = 50_000
"""How many of these stand for all rows where leaves are fitted, at most."""

MOST_PASSES = 5
"""How often all rows are gone through to fit leaves, at most."""


def choose_by_block(
    everything: RowsByBlock, validation_rows: RoutedRows | None, wanted: Wanted, options: Options
) -> tuple[PruningPath, int]:
    """Do what `choose_with_new_splits` does for rows by the block."""
    new_splits = NewSplits.of(everything, options)
    if new_splits.has_all:
        return choose_with_new_splits(new_splits.rows, validation_rows, wanted, options)

    def choose_plain(wanted: Wanted, plain: Options) -> tuple[PruningPath, int]:
        return choose_by_sample(everything, validation_rows, wanted, plain)

    by = (choose_plain, new_splits.settle)
    return choose_with_new_splits(new_splits.rows, validation_rows, wanted, options, *by)


class NewSplits:
    """Models whose splits some rows choose, and whose leaf values all rows do.

    Parameters
    ----------
    everything : RowsByBlock
    standing : RoutedRows
        Some rows with their matrix, which weigh as much as all.
    options : Options

    Attributes
    ----------
    rows : RoutedRows
        These rows, to choose splits by: they weigh as much as so few do.
    has_all : bool
        Whether no others are left.
    passes : int
        How often all rows were gone through.
    """

    def __init__(self, everything: RowsByBlock, standing: RoutedRows, options: Options) -> None:
        self._all, self._options = everything, options
        count = standing.encoding.n_rows
        self.has_all, self.passes = count == everything.n_rows, 0
        self.rows, weight = standing, standing.sample_weight
        if weight is not None and not self.has_all:
            self.rows = replace(standing, sample_weight=seal(weight * (count / everything.n_rows)))
        self._standing = _some(standing, FIT_ROWS)

    @classmethod
    def of(cls, everything: RowsByBlock, options: Options) -> "NewSplits":
        """Draw the rows that choose splits."""
        return cls(everything, everything.even_sample(SPLIT_ROWS), options)

    def settle(self, found: list[Point], before: Point | None) -> list[Point]:
        """Return models with new splits, their values fitted to all rows.

        Without those that have no lower objective on all rows than the model `before` has with its
        own splits, and with values that are fitted likewise.
        """
        if not found:
            return found
        tried = [self._tried(point, self._forest_of(point)) for point in found]
        rivals = {} if before is None else self._rivals(before, {each.shrinkage for each in tried})
        for _ in range(MOST_PASSES):
            going = [each for each in (*tried, *rivals.values()) if not each.done]
            if not going:
                break
            self._ask(going)
        told = [each.told(self._about(before)) for each in tried]
        if not rivals:
            return told
        return [
            point
            for point, each in zip(told, tried, strict=True)
            if each.objective < rivals[each.shrinkage].objective
        ]

    def _rivals(self, before: Point, shrinkages: set[float]) -> dict[float, "_Tried"]:
        """Return a model with its own splits, to be fitted with some shrinkages."""
        own = self._own(before)
        return {
            each: self._tried(replace(before, report=before.report | {"shrinkage": each}), own)
            for each in shrinkages
        }

    def measured(self, point: Point) -> Point:
        """Return a point with its loss on all rows."""
        each = self._tried(point, self._own(point), fits=False)
        self._ask([each])
        return replace(point, loss=each.loss)

    def _about(self, before: Point | None) -> dict[str, int]:
        earlier = 0 if before is None else int(before.report.get("passes", 0))
        sample = self.rows.encoding.n_rows
        return {
            "rows": self._all.n_rows,
            "sample_rows": sample,
            "passes": earlier + self.passes,
        }

    def _forest_of(self, point: Point) -> Forest:
        if point.forest is None:
            raise AssertionError("new splits are those of a forest of their own")
        return point.forest

    def _own(self, point: Point) -> Forest:
        """Return what a point keeps, as if its splits were chosen anew."""
        return Grown.of(self._standing.source.forest, point).compact().forest

    def _tried(self, point: Point, forest: Forest, *, fits: bool = True) -> "_Tried":
        standing, n_jobs = self._standing, self._options.n_jobs
        source = replace(standing.source, forest=forest, uncut=standing.source.original)
        encoding = encode_matrix(forest, standing.kept_matrix, n_jobs)
        rows = replace(standing, source=source, encoding=encoding)
        fits = fits and not forest.averages_distributions
        return _Tried(point, rows, rows.problem(n_jobs), fits=fits)

    def _ask(self, going: list["_Tried"]) -> None:
        """Go through all rows and tell each what they say."""
        self.passes += 1
        counts, n_jobs = self._all.class_counts, self._options.n_jobs
        measurings = [each.measuring(counts, n_jobs) for each in going]
        description = f"fitting leaves of new splits, pass {self.passes} over all rows"
        measured = self._all.measure_each(measurings, description)
        for each, found in zip(going, measured, strict=True):
            each.take(found)


def _some(rows: RoutedRows, most: int) -> RoutedRows:
    """Return some rows, evenly spread, that weigh as much as all of these."""
    if rows.encoding.n_rows <= most:
        return rows
    some = np.linspace(0, rows.encoding.n_rows - 1, most).astype(np.int64)
    return stands_for_all(rows.take(some), np.ones(most), rows.total_weight)


class _Tried:
    """A model whose values are on their way to what is best by all rows.

    Penalties are those of :class:`forestprune.polishing.split.descent.SplitDescent`: what leaves
    add is drawn to 0.

    Parameters
    ----------
    point : Point
    rows : RoutedRows
        Some rows that weigh as much as all, in the forest that the point has or would have.
    problem : Problem
        Of these.
    fits : bool
        Whether values may change. Leaves that are distributions over classes stay as they are.

    Attributes
    ----------
    shrinkage : float
        In rows.
    done : bool
    loss : float
        On all rows, over that of the best constant.
    """

    def __init__(self, point: Point, rows: RoutedRows, problem: Problem, *, fits: bool) -> None:
        self._point, self._rows, self._problem = point, rows, problem
        self.shrinkage = float(point.report.get("shrinkage", 0.0))
        self.done, self.loss, self._variation = False, np.nan, problem.variation
        self._whole = _everything(rows.source.forest)
        self._rounds: LeafRounds | None = None
        if fits and self._whole.n_trees:
            options = Options(rule="subtree", refit=True, shrinkage=self.shrinkage)
            rule = Solver(problem, options).rule
            nothing = np.zeros_like(self._values)
            self._rounds = LeafRounds(rule, self._whole, self.shrinkage, nothing)

    def measuring(self, class_counts: NDArray[np.int64], n_jobs: int | None) -> Measuring:
        """Return what is to be asked about all rows."""
        problem, rounds, source = self._problem, self._rounds, self._rows.source
        if self._rows.labelled:  # then nobody needs to know what the original says of all rows
            forest = replace(source.forest, origin=source.original.origin)
            source = replace(source, forest=forest, uncut=None)
        return Measuring(
            source=source,
            trees=self._trees,
            loss=problem.loss,
            constant=problem.loss.best_constant(problem.target, problem.sample_weight),
            points=[self._whole if rounds is None else rounds.asked],
            class_counts=class_counts,
            sums=rounds is not None,
            n_jobs=n_jobs,
            at_leaves=True,
        )

    def take(self, measured: Measured) -> None:
        """Take what all rows say."""
        loss, problem = float(measured.losses[0]), self._problem
        if measured.of_constant > 0.0:
            self._variation = 2.0 * measured.of_constant
        if self._rounds is None:
            self.loss, self.done = 2.0 * loss / self._variation, True
            return
        self._rounds.take(loss, steady(measured.sums[0]))
        self.done = self._rounds.done
        if self._rounds.best is not None:
            self.loss = self._rounds.best.loss * problem.variation / self._variation

    @property
    def objective(self) -> float:
        """What new splits are to lower, over the loss of the best constant."""
        if self._rounds is not None:
            return 2.0 * self._rounds.objective / self._variation
        penalty = self._problem.curvature * self.shrinkage * float((self._values**2).sum())
        return self.loss + penalty / self._variation

    def told(self, about: dict[str, int]) -> Point:
        """Return the point as all rows would have it."""
        point, rounds = self._point, self._rounds
        report = point.report | about
        if rounds is None or rounds.best is None:
            return replace(point, loss=self.loss, objective=self.objective, report=report)
        forest = forest_at(self._rows.source.forest, rounds.best)
        return replace(
            point,
            loss=self.loss,
            objective=self.objective,
            report=report | {"gain_left": rounds.left},
            forest=forest,
            intercept=forest.base,
        )

    @property
    def _values(self) -> Floats:
        if self._whole.values is None:
            raise AssertionError("all leaves have values")
        return self._whole.values

    @cached_property
    def _trees(self) -> Trees:
        return read_trees(self._rows.source.forest, seal(np.empty(0)))


def _everything(forest: Forest) -> Point:
    """Return a forest as a point that keeps all of it, what leaves add with that of their roots."""
    splits = np.ones((forest.n_nodes - forest.n_trees) // 2, np.bool_)
    leaves = kept_leaves(forest, splits)
    return Point(
        alpha=0.0,
        kept=pack_splits(splits),
        depths=forest.depths,
        weights=(forest.depths > 0).astype(np.float64),
        intercept=forest.base,
        loss=np.nan,
        objective=np.nan,
        values=seal(np.ascontiguousarray(forest.scaled_value[leaves].T)),
    )
