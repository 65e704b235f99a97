"""The rule for symmetric trees: any of their levels may be kept, so that they stay symmetric."""

import numpy as np
from numpy.typing import NDArray

from forestprune import kernels
from forestprune.forest.checks import seal
from forestprune.forest.symmetric import level_directions, require_symmetric
from forestprune.kernels.records import MOST_LEVELS, Cells, LevelCut, LevelPrice, SymmetricTrees
from forestprune.options import Options
from forestprune.rows.trees import first_leaves
from forestprune.solve.costs import level_costs
from forestprune.solve.first_alpha import first_alpha
from forestprune.solve.levels import leaf_origins, levels_of
from forestprune.solve.point import Point, pack_splits, splits_within
from forestprune.solve.problem import Problem
from forestprune.solve.rule import Order, QuadraticRule, distance
from forestprune.solve.subtrees.tuning import Tuning
from forestprune.system.threads import Crew


class ObliviousRule(QuadraticRule):
    """Any levels of a symmetric tree may be kept, with leaf values refitted or not.

    Leaves that differ in levels that are dropped become one. Exact for each tree of up to 10
    levels, or 8 if it has constraints; from a deeper one they are dropped one by one.

    Parameters
    ----------
    problem : Problem
    options : Options
        Of these: weighting, refit, shrinkage.
    tuning : Tuning

    Attributes
    ----------
    costs : float64 array of shape (n_trees, max_depth + 1)
        Cost of keeping so many levels of each tree, over K.
    """

    by_levels = True

    def __init__(
        self, problem: Problem, options: Options | None = None, tuning: Tuning | None = None
    ) -> None:
        options, self.tuning = options or Options(rule="oblivious"), tuning or Tuning()
        forest, codes = problem.encoding.forest, problem.encoding.codes
        require_symmetric(forest)
        self.problem = problem
        self.refits = options.refits
        self.shrinkage = float(options.shrinkages[0]) if self.refits else 0.0
        self.costs = level_costs(forest, options.weighting)
        self.order = np.arange(forest.n_trees)
        leaves = np.flatnonzero(forest.left < 0)
        rising, falling = level_directions(forest)
        self._trees = SymmetricTrees(
            first=first_leaves(forest.offsets),
            depth=forest.depths,
            origin=seal(np.ascontiguousarray(problem.trees.origin[:, leaves])),
            cover=seal(forest.cover[leaves]),
            weight=seal(problem.node_weights[leaves]),
            rising=rising,
            falling=falling,
        )
        size = 3 ** min(forest.max_depth, MOST_LEVELS)
        self._cells = Cells(*(np.empty(size, np.int64) for _ in Cells._fields))
        kernels.tabulate_cells(*self._cells)
        n_trees = forest.n_trees
        self._cut = LevelCut(
            residual=problem.residual.copy(),
            levels=np.zeros(n_trees, np.int64),
            cell=np.zeros(leaves.size, np.uint32),
            value=np.zeros((forest.n_outputs, leaves.size)),
            cost=np.zeros(n_trees),
            shift=np.zeros(n_trees),
            moved=np.zeros(1),
            absent_until=np.zeros(n_trees),
            absent_down_to=np.full(n_trees, np.inf),
        )
        self._crew = Crew(problem.n_jobs, codes.size > self.tuning.shared)

    @property
    def symmetric(self) -> tuple[SymmetricTrees, Cells]:
        """The trees and the cells of all choices of levels, as kernels read them."""
        return self._trees, self._cells

    @property
    def depths(self) -> NDArray[np.int64]:
        """How many levels of each tree are kept now."""
        return np.bitwise_count(self._cut.levels).astype(np.int64)

    def n_nodes(self) -> int:
        """Return how many nodes are kept now, roots of trees that are kept included."""
        depths = self.depths
        return int((2 ** (depths[depths > 0] + 1) - 1).sum())

    def is_full(self) -> bool:
        """Tell whether every level is kept, with the values of the original."""
        return not self.refits and bool(np.array_equal(self.depths, self._trees.depth))

    def alpha_range(self) -> tuple[float, float]:
        """Return the smallest alpha at which nothing enters if nothing is kept, and the lowest.

        Must be called before anything is solved.
        """
        highest = first_alpha(self._best, self.problem.variation)
        return highest, self.tuning.smallest_alpha * highest

    def price(self, alpha: float) -> LevelPrice:
        """Return what levels cost at `alpha`, as kernels read it."""
        tolerance = self.tuning.value_tolerance if self.refits else self.tuning.rounding
        return LevelPrice(
            self.costs,
            alpha * self.problem.variation,
            self.shrinkage,
            self.refits,
            self.problem.min_gain(tolerance),
        )

    def sweep(self, alpha: float, order: Order) -> tuple[int, int]:
        """Give some trees, one after another, the levels that are best given the others."""
        return self._sweep(alpha, order)

    def refine(self, alpha: float, order: Order, max_sweeps: int) -> tuple[int, int]:
        """Refit the leaves of trees that are kept; without refits, sweep over these alone."""
        kept = order[self._cut.levels[order] > 0]
        if self.refits:
            sweeps = self.tuning.value_sweeps
            kernels.refit_levels(*self._state(), self.price(alpha), kept, sweeps)
            return 0, 0
        sweeps, looks, changed = 0, 0, 1
        while changed and sweeps < max_sweeps:
            changed, looked = self._sweep(alpha, order[self._cut.levels[order] > 0])
            sweeps, looks = sweeps + 1, looks + looked
        return sweeps, looks

    def gains(self, alpha: float) -> NDArray[np.float64]:
        """Return what the best levels of each tree gain over what is kept now.

        As sums of squares, so times the problem's variation.
        """
        return self._best(alpha)[0]

    def _sweep(self, alpha: float, order: Order) -> tuple[int, int]:
        price, lazy = self.price(alpha), self.tuning.lazy
        changed, looked = kernels.sweep_levels(*self._state(), price, order, lazy)
        return int(changed), int(looked)

    def _state(self) -> tuple[object, ...]:
        problem = self.problem
        return problem.encoding.codes, problem.row_weight, self._trees, self._cells, self._cut

    def _best(self, alpha: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what the best levels of each tree gain, and what they cost."""
        gain, cost = np.zeros(self.order.size), np.zeros(self.order.size)
        codes, _, trees, cells, cut = self._state()
        arguments = (codes, trees, cells, cut, self.price(alpha), gain, cost)
        self._crew.share(kernels.gains_by_levels, self.order, *arguments)
        return gain, cost

    def point(self, alpha: float) -> Point:
        """Return what is kept now, with its objective."""
        cut, depths = self._cut, self.depths
        loss = self.problem.unexplained(cut.residual)
        value_penalty = self.shrinkage * float(cut.shift.sum())
        return Point(
            alpha=alpha,
            kept=pack_splits(splits_within(self.problem.encoding.forest, depths)),
            depths=seal(depths),
            weights=seal((depths > 0).astype(np.float64)),
            intercept=seal(np.array(self.problem.intercept)),
            loss=loss,
            objective=self.problem.objective(loss, alpha, cut.cost, value_penalty=value_penalty),
            values=seal(cut.value[:, self._places(depths)]),
            levels=seal(cut.levels.astype(np.uint32)),
        )

    def _places(self, depths: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where the values of leaves stand if so many levels of each tree are kept."""
        counts = np.where(depths > 0, 2**depths, 0)
        within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        places: NDArray[np.int64] = np.repeat(self._trees.first[:-1], counts) + within
        return places

    def priced(self, point: Point) -> float:
        """Return the objective of a point, whose loss is known."""
        origin = leaf_origins(self.problem, point)
        values = origin if point.values is None else point.values
        weights = np.repeat(point.weights, np.where(point.depths > 0, 2**point.depths, 0))
        shift = float(((values * weights - origin) ** 2).sum())
        costs = self.costs[self.order, point.depths]
        penalty = self.shrinkage * shift
        return self.problem.objective(point.loss, point.alpha, costs, value_penalty=penalty)

    @property
    def residual(self) -> NDArray[np.float64]:
        """What is kept leaves unexplained now, times the weights of rows."""
        return self._cut.residual

    def renew(self, residual: NDArray[np.float64], problem: Problem | None = None) -> None:
        """Take another residual, and other weights of rows, with what is kept as it is."""
        cut = self._cut
        if problem is None:
            cut.moved[0] += distance(cut.residual, residual, self.problem.row_weight)
        else:
            self.problem = problem
            leaves = np.flatnonzero(problem.encoding.forest.left < 0)
            self._trees = self._trees._replace(weight=seal(problem.node_weights[leaves]))
            cut.absent_down_to[:] = np.inf
        cut.residual[:] = residual

    def move_to(self, point: Point) -> None:
        """Keep what `point` keeps; without levels of its own, the first ones of each tree."""
        levels = levels_of(self.problem.encoding.forest, point).astype(np.int64)
        given = np.zeros(self._cut.value.shape if self.refits else (levels.size, 0))
        if self.refits:
            values = leaf_origins(self.problem, point) if point.values is None else point.values
            given[:, self._places(point.depths)] = values
        kernels.keep_levels(*self._state(), self.price(0.0), levels, given)
