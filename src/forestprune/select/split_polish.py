"""Pruned models whose splits are chosen anew, and the choice between these and the others.

A model of so many nodes is best made of a larger one: that is polished, pruned down to the size
that is wanted, and polished again, so that leaves go to the trees that make most of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from forestprune.forest.cutting import with_roots_in_base
from forestprune.forest.forest import Forest
from forestprune.forest.new_splits import split_limits
from forestprune.options import Options
from forestprune.polishing.split.descent import SplitDescent, SplitRows
from forestprune.polishing.split.memory import require_memory
from forestprune.rows.bins import Bins, make_bins, most_bins
from forestprune.rows.encoding import encode_matrix
from forestprune.select.budget import Budget
from forestprune.select.pruned import forest_at
from forestprune.select.routed import RoutedRows
from forestprune.select.solver import Solver
from forestprune.solve.point import Point, pack_splits

Floats = NDArray[np.float64]

FIRST_SHRINKAGES, FACTOR = (150.0, 30.0), 5.0
"""Shrinkages of leaf values to 0 that are tried, in rows, and by how much one more goes further."""

SWEEPS, FIRST_SWEEPS = 8, 4
"""Sweeps at most: over a model of the size that is wanted, and over a larger one before."""

WIDER, MOST_WIDER, LEAST_WIDER = 4, 3_000, 30.0
"""By how many times a model is larger before it is pruned to its size, by how many nodes at most,
and how strongly its leaf values are shrunk at least: it has more of them."""

FEWEST = 3
"""Nodes of a model with a split."""

N_ALPHAS = 30
"""How fine paths are on which a model is pruned between two polishings."""

TIGHTER = 0.9
"""Nodes of a model over those of the one before, on the way to one that is allowed."""


@dataclass(frozen=True, eq=False)
class Grown:
    """A forest on its way: its trees, and which trees of the original they were.

    Attributes
    ----------
    forest : Forest
    trees : int64 array of shape (forest.n_trees,)
    """

    forest: Forest
    trees: NDArray[np.int64]

    @classmethod
    def of(cls, original: Forest, point: Point) -> "Grown":
        """Return what a point leaves of a forest."""
        forest = forest_at(original, point)
        if point.forest is None and point.values is None:
            # As trees are where values are refitted: what leaves add is drawn to that of roots.
            forest = with_roots_in_base(forest)
        return cls(forest, np.flatnonzero(point.depths))

    def compact(self) -> "Grown":
        """Return it without trees that are only a root."""
        return Grown(self.forest.compact(), self.trees[np.diff(self.forest.offsets) > 1])


class SplitPolisher:
    """Chooses the splits of pruned models anew, by the rows they were pruned with.

    Parameters
    ----------
    rows : RoutedRows
        With their matrix.
    options : Options
    max_depth : int or None

    Attributes
    ----------
    options, plain : Options
        As given, and without polishing.
    """

    def __init__(self, rows: RoutedRows, options: Options, max_depth: int | None) -> None:
        self._rows, self._max_depth = rows, max_depth
        self.options, self.plain = options, options.plain
        self._bins: Bins | None = None
        self._split_rows: SplitRows | None = None
        self._variation = rows.problem(options.n_jobs).variation

    def polished(
        self,
        begun: Grown,
        like: Point,
        shrinkage: float,
        sweeps: int = SWEEPS,
        *,
        values_only: bool = False,
    ) -> tuple[Grown, Point]:
        """Return a model with its splits chosen anew, or values only; beside `like` on a path."""
        descent = self._descent(begun.forest, shrinkage, values_only=values_only)
        descent.descend(sweeps)
        grown = Grown(descent.forest(), begun.trees).compact()
        loss = 2.0 * descent.loss() / self._variation
        objective = 2.0 * descent.objective() / self._variation
        return grown, self._point(grown, like, loss, objective, descent.sweeps, shrinkage)

    def narrowed(self, grown: Grown, n_nodes: int, shrinkage: float) -> Grown:
        """Return a model pruned to so many nodes, its splits as they are."""
        budget = Budget(max_nodes=max(n_nodes, FEWEST))
        if budget.max_nodes is None or grown.forest.n_nodes <= budget.max_nodes:
            return grown
        source = replace(self._rows.source, forest=grown.forest, uncut=None, pipeline=None)
        rows = replace(
            self._rows,
            source=source,
            encoding=encode_matrix(grown.forest, self._rows.kept_matrix, self.options.n_jobs),
        )
        # Whichever rule and options there are for the original, its nodes are gone.
        options = Options(
            rule="subtree",
            refit=True,
            shrinkage=shrinkage,
            max_iter=self.plain.max_iter,
            n_jobs=self.plain.n_jobs,
        )
        solver = Solver(rows.problem(options.n_jobs), options)
        points = solver.path(solver.grid(N_ALPHAS), lambda point: not budget.allows(point))
        within = [point for point in points if budget.allows(point)]
        if len(within) < len(points):
            within += [
                point
                for point in solver.refine(within[-1], points[len(within)], budget.allows)
                if budget.allows(point)
            ]
        best = min(within, key=lambda point: point.loss)
        narrow = Grown.of(grown.forest, best)
        return Grown(narrow.forest, grown.trees[narrow.trees])

    def _descent(self, forest: Forest, shrinkage: float, *, values_only: bool) -> SplitDescent:
        """Return the descent over the splits of a forest."""
        rows, options = self._rows, self.options
        matrix = rows.kept_matrix
        original = rows.source.original
        limits = split_limits(forest, give_up_symmetry=True, original=original)
        require_memory(forest, len(matrix), most_bins(forest, limits))
        if self._bins is None or self._split_rows is None:
            self._bins = make_bins(forest, matrix, limits)
            bins = self._bins.of(matrix, options.n_jobs)
            self._split_rows = SplitRows(bins, rows.target, rows.sample_weight)
        return SplitDescent(
            forest,
            encode_matrix(forest, matrix, options.n_jobs),
            self._split_rows,
            self._bins,
            limits,
            rows.loss,
            shrinkage=shrinkage,
            max_depth=self._max_depth,
            original=original,
            values_only=values_only,
            n_jobs=options.n_jobs,
        )

    def _point(
        self,
        grown: Grown,
        like: Point,
        loss: float,
        objective: float,
        sweeps: int,
        shrinkage: float,
    ) -> Point:
        original = self._rows.source.forest
        depths = np.zeros(original.n_trees, np.int64)
        depths[grown.trees] = grown.forest.depths
        nothing = np.zeros((original.n_nodes - original.n_trees) // 2, np.bool_)
        return Point(
            alpha=like.alpha,
            kept=pack_splits(nothing),
            depths=depths,
            weights=(depths > 0).astype(np.float64),
            intercept=grown.forest.base,
            loss=loss,
            objective=objective,
            n_iter=sweeps,
            report={"polish": "split", "shrinkage": shrinkage},
            forest=grown.forest,
        )

    # What to make of points

    def beside(
        self, point: Point, wider: Point | None, score: Callable[[Point], float] | None
    ) -> list[Point]:
        """Return what a model becomes: as it is, and made of a `wider` one if there is one.

        For each shrinkage that is given, or several that `score` leads to; a wider one for the best
        of these. Without a score, for the first. None has more nodes than `point`.
        """
        begun = Grown.of(self._rows.source.forest, point)
        given = self._shrinkages if score is not None else self._shrinkages[:1]
        found = [self.polished(begun, point, shrinkage)[1] for shrinkage in given]
        if score is not None and self.options.shrinkage is None:
            more, less = FIRST_SHRINKAGES
            rises = score(found[0]) >= score(found[1])
            further = more * FACTOR if rises else less / FACTOR
            found.append(self.polished(begun, point, further)[1])
        if wider is not None:
            best = found[0] if score is None else max(found, key=score)
            found.append(self._made_of(wider, point, best.report["shrinkage"]))
        return found

    def refitted(self, point: Point, like: Sequence[Point]) -> list[Point]:
        """Return a model with its own splits, its values fitted anew as those of other models."""
        begun = Grown.of(self._rows.source.forest, point)
        shrinkages = sorted({float(each.report["shrinkage"]) for each in like})
        return [self.polished(begun, point, s, values_only=True)[1] for s in shrinkages]

    def _made_of(self, wider: Point, point: Point, shrinkage: float) -> Point:
        """Return a model of the size of `point`, made of a wider one."""
        begun, firm = Grown.of(self._rows.source.forest, wider), max(shrinkage, LEAST_WIDER)
        grown = self.polished(begun, point, firm, FIRST_SWEEPS)[0]
        narrow = self.narrowed(grown, point.n_nodes, shrinkage)
        return self.polished(narrow, point, shrinkage)[1]

    def smaller(
        self, polished: Point, will_do: Callable[[Point], bool], step: float
    ) -> list[Point]:
        """Return ever smaller models, each by `step`, the last of which will not do."""
        original, shrinkage = self._rows.source.forest, polished.report["shrinkage"]
        grown, n_nodes, found = Grown.of(original, polished), int(step * polished.n_nodes), []
        while n_nodes >= FEWEST:
            narrow = self.narrowed(grown, n_nodes, shrinkage)
            grown, each = self.polished(narrow, polished, shrinkage)
            if not each.n_nodes:
                break
            found.append(each)
            if not will_do(each):
                break
            n_nodes = int(step * each.n_nodes)
        return found

    def within(self, polished: Point, allowed: Callable[[Point], bool]) -> Point | None:
        """Return a model if it is allowed, or a smaller one made of it; None if none is.

        One of as many nodes may take more bytes than the model that it was made of.
        """
        original, each = self._rows.source.forest, polished
        while not allowed(each):
            n_nodes = int(TIGHTER * each.n_nodes)
            if n_nodes < FEWEST:
                return None
            shrinkage = each.report["shrinkage"]
            narrow = self.narrowed(Grown.of(original, each), n_nodes, shrinkage)
            each = self.polished(narrow, each, shrinkage)[1]
        return each

    @property
    def _shrinkages(self) -> Sequence[float]:
        given = self.options.shrinkage
        return FIRST_SHRINKAGES if given is None else self.options.shrinkages


def wider_size(n_nodes: int) -> int:
    """Return how many nodes the model has of which one of `n_nodes` is best made."""
    return min(WIDER * n_nodes, n_nodes + MOST_WIDER)
