"""The default rule: of each tree any subtree that contains its root may be kept."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from forestprune import kernels
from forestprune.forest.checks import seal
from forestprune.forest.forest import Forest
from forestprune.kernels.records import Price
from forestprune.options import Options
from forestprune.rows.trees import first_leaves
from forestprune.solve.correction import Correction, Sums
from forestprune.solve.costs import split_costs
from forestprune.solve.descent import Descent
from forestprune.solve.first_alpha import first_alpha
from forestprune.solve.point import Point, kept_leaves, pack_splits
from forestprune.solve.problem import Problem
from forestprune.solve.rule import Order, QuadraticRule, distance
from forestprune.solve.subtrees.active import ActiveSet
from forestprune.solve.subtrees.gram import Gram
from forestprune.solve.subtrees.pruning import nothing_pruned
from forestprune.solve.subtrees.screening import Screening
from forestprune.solve.subtrees.tuning import Tuning
from forestprune.system.threads import Crew


class SubtreeRule(QuadraticRule):
    """Any subtree that contains the root may be kept, with leaf values refitted or not.

    Sweeps go through the active nodes of the trees: in deep trees those that are kept, or would be
    if nodes cost a fraction of what they do. Once sweeps find nothing better among these, the whole
    trees are asked, first by a screening bound.

    Parameters
    ----------
    problem : Problem
    options : Options
        Of these: weighting, refit, shrinkage.
    tuning : Tuning

    Attributes
    ----------
    costs : float64 array of shape (n_splits,)
        Cost of keeping the two children of each split, over K.
    """

    def __init__(
        self, problem: Problem, options: Options | None = None, tuning: Tuning | None = None
    ) -> None:
        options, tuning = options or Options(), tuning or Tuning()
        forest, codes, trees = problem.encoding.forest, problem.encoding.codes, problem.trees
        self.problem, self.tuning = problem, tuning
        self.refits = options.refits
        self.shrinkage = float(options.shrinkages[0]) if self.refits else 0.0
        self.costs = split_costs(forest, options.weighting)
        self.order = np.arange(forest.n_trees)
        self._crew = Crew(problem.n_jobs, codes.size + trees.weight.size > tuning.shared)
        self._active = self._whole = ActiveSet.of_all(trees, codes)
        self._active_costs = self.costs
        self._active_down_to = np.inf  # the alpha that the active nodes were chosen for
        self._just_chosen = True
        self._screening: Screening | None = None
        rows = float(trees.weight[trees.offsets[:-1]].max(initial=0.0))
        self._rows_per_cost = rows * float(self.costs.sum()) / max(self.costs.size, 1)
        self._deep = tuning.is_deep(trees.weight.size, codes.size)
        self.gram = Gram(tuning.gram_leaves, trees.weight.size)
        self._cut = nothing_pruned(trees, codes, problem.residual.copy(), refits=self.refits)
        # Original values are distributions, or what absent trees leave to them, as they are.
        distributions = self.refits and forest.averages_distributions
        self._centre = seal(np.array(problem.intercept if distributions else []))
        self._most_trees = int(distributions)
        self._full_at = np.inf  # the alpha at which one more tree did not pay

    @staticmethod
    def prepare(forest: Forest, n_rows: int, n_jobs: int | None) -> None:
        """Let another process compile for a forest, in a new installation."""
        from forestprune.solve.subtrees.ahead import compile_ahead

        compile_ahead(forest, n_rows, n_jobs, Tuning())

    @property
    def depths(self) -> NDArray[np.int64]:
        """How deep the kept part of each tree is now."""
        return self._cut.depth

    def n_nodes(self) -> int:
        """Return how many nodes are kept now, roots of trees that are kept included."""
        return int(2 * self._cut.kept.sum() + np.count_nonzero(self._cut.depth))

    def is_full(self) -> bool:
        """Tell whether every split is kept, with the values of the original."""
        return self._cut.kept.sum() == self.costs.size and not self.refits

    def alpha_range(self) -> tuple[float, float]:
        """Return the smallest alpha at which nothing enters if nothing is kept, and the lowest.

        Must be called before anything is solved.
        """
        highest = first_alpha(
            lambda alpha: self._best_prunings(self.price(alpha), 1.0, self.order)[:2],
            self.problem.variation,
        )
        return highest, self.tuning.smallest_alpha * highest

    def price(self, alpha: float) -> Price:
        """Return what prunings cost at `alpha`, as kernels read it."""
        tolerance = self.tuning.value_tolerance if self.refits else self.tuning.rounding
        return Price(
            self.costs,
            alpha * self.problem.variation,
            self.shrinkage,
            self.refits,
            self.problem.min_gain(tolerance),
            self._centre,
            self._most_trees,
        )

    def begin(self, alpha: float, order: Order) -> None:  # noqa: ARG002
        """Choose active nodes, unless those of a higher alpha still serve."""
        self._just_chosen = alpha < self._active_down_to
        if self._just_chosen:
            self._choose_active(alpha, self._eligible(self.order))

    def sweep(self, alpha: float, order: Order) -> tuple[int, int]:
        """Give some trees, one after another, the subtree that is best given the others."""
        return self._sweep(self._active_price(alpha), order)

    def refine(self, alpha: float, order: Order, max_sweeps: int) -> tuple[int, int]:
        """Refit the leaves of trees that are kept; without refits, sweep over these alone."""
        self._just_chosen = False
        price, tuning = self._active_price(alpha), self.tuning
        if self.refits:
            active, cut = self._active, self._cut
            kept, row_weight = order[self.depths[order] > 0], self.problem.row_weight
            few = cut.n_leaves[kept].sum() <= tuning.gram_leaves and not self._most_trees
            if few and active.codes.size >= tuning.gram_rows:
                self.gram.refit(row_weight, active, cut, price, kept, tuning.value_sweeps)
            else:
                sweeps = tuning.value_sweeps
                kernels.refit_values(row_weight, active.trees, cut, price, kept, sweeps)
            return 0, 0
        sweeps, looks, changed = 0, 0, 1
        while changed and sweeps < max_sweeps:
            changed, looked = self._sweep(price, order[self.depths[order] > 0])
            sweeps, looks = sweeps + 1, looks + looked
        return sweeps, looks

    def holds(self, alpha: float, order: Order) -> bool:
        """Tell whether trees could not gain by what is not active either; else choose anew."""
        # Nothing has changed since active nodes were chosen, or they still hold.
        if self._just_chosen or self._nothing_gains(alpha, order):
            return True
        self._choose_active(alpha, self._eligible(self.order))
        self._just_chosen = True
        return False

    def _sweep(
        self,
        price: Price,
        order: Order,
        kept: NDArray[np.bool_] | None = None,
        given: NDArray[np.float64] | None = None,
    ) -> tuple[int, int]:
        row_weight, lazy = self.problem.row_weight, self.tuning.lazy
        return self._active.sweep(row_weight, self._cut, price, order, kept, given, lazy=lazy)

    def _active_price(self, alpha: float) -> Price:
        return self.price(alpha)._replace(cost=self._active_costs)

    def _choose_active(self, alpha: float, some: Order) -> None:
        """Let sweeps look at what of some trees might be kept at this alpha, or a little lower."""
        if not self._deep:
            return
        whole, ahead = self._whole, self.tuning.ahead
        _, _, chosen = self._best_prunings(self.price(alpha), ahead, some)
        self._move_to_active(ActiveSet.of(whole.trees, whole.codes, chosen, self._crew))
        self._active_down_to = ahead * alpha

    def _eligible(self, order: Order) -> Order:
        """Return which of some trees may be kept: of averages that are full, those that are."""
        kept = self.depths > 0
        full = self._most_trees and np.count_nonzero(kept) >= self._most_trees
        return order[kept[order]] if full else order

    def _move_to_active(self, active: ActiveSet) -> None:
        if active is not self._active:
            self._cut = self._active.carry(self._cut, active)
            self._active = active
            self._active_costs = seal(self.costs[active.splits])

    def _best_prunings(
        self, price: Price, discount: float, some: Order, *, stretches: bool = True
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
        """Return what the best prunings of some whole trees gain and cost, and their splits."""
        active, whole, cut = self._active, self._whole, self._cut
        gain, cost = np.zeros(self.order.size), np.zeros(self.order.size)
        chosen = np.zeros(self.costs.size, np.bool_)
        here = (cut, active.trees, active.nodes, active.inside, active.kept(cut, self.costs.size))
        arguments = (
            whole.codes,
            whole.trees,
            price,
            discount,
            stretches,
            *here,
            gain,
            cost,
            chosen,
        )
        self._crew.share(kernels.best_prunings, some, *arguments)
        return gain, cost, chosen

    def _nothing_gains(self, alpha: float, order: Order) -> bool:
        """Tell whether some whole trees, not their active nodes only, could not gain."""
        if self._active is self._whole:
            return True
        price, most = self.price(alpha), np.full(self.order.size, np.inf)
        # As many rows as have n / (n + shrinkage) of their squares worth a split.
        square = self.problem.unexplained(self._cut.residual) * self.problem.variation
        share = price.alpha * self._rows_per_cost / square if square > 0.0 else 0.0
        rows = 0.5 * (share + np.sqrt(share * (share + 4.0 * price.shrinkage)))
        if rows >= self.tuning.screened_rows and self.problem.correction is None:
            most = self.gains_at_most(alpha, rows)
        # What may gain by that bound is looked at closely.
        order = self._eligible(order)
        some = order[most[order] > price.min_gain]
        return bool((self.gains(alpha, some)[some] <= price.min_gain).all())

    def gains(self, alpha: float, some: Order) -> NDArray[np.float64]:
        """Return what the best prunings of some whole trees gain over what is kept now.

        As sums of squares, so times the problem's variation. Intervals of trees that are kept are
        taken as they are: how they are stretched best depends on which nodes are looked at, so
        that sweeps could not be held to it.
        """
        return self._best_prunings(self.price(alpha), 1.0, some, stretches=False)[0]

    def tree_gains(self, alpha: float) -> NDArray[np.float64]:
        """Return by how much each tree alone could lower the objective: see :meth:`gains`."""
        gains: NDArray[np.float64] = self.gains(alpha, self._eligible(self.order))
        return gains / self.problem.variation

    def gains_at_most(self, alpha: float, rows: float) -> NDArray[np.float64]:
        """Return a bound on these gains, by trees without nodes below those of so many rows."""
        if self._screening is None:
            self._screening = Screening(self._whole, self.costs, self._crew)
        # A little fewer rows than that serve for lower alphas too.
        if not 0.65 <= rows / self._screening.rows <= 4.0:
            self._screening.cut(0.7 * rows)
        gain, row_weight = np.empty(self.order.size), self.problem.row_weight
        self._screening.gains_at_most(self.price(alpha), row_weight, self._cut, self._active, gain)
        return gain

    @property
    def active_nodes(self) -> int:
        """How many nodes sweeps look at now."""
        return self._active.nodes.size

    @property
    def stretch(self) -> NDArray[np.float64]:
        """By what the intervals of each tree's values are stretched and moved now.

        Shape (n_trees, n_outputs, 2), see `kernels/constraints.py`.
        """
        return self._cut.stretch

    def point(self, alpha: float) -> Point:
        """Return what is kept now, with its objective."""
        cut, active = self._cut, self._active
        loss = self.problem.unexplained(cut.residual)
        value_penalty = self.shrinkage * float(cut.shift.sum()) + self._unsaid()
        return Point(
            alpha=alpha,
            kept=pack_splits(active.kept(cut, self.costs.size)),
            depths=seal(cut.depth.copy()),
            weights=seal((cut.depth > 0).astype(np.float64)),
            intercept=seal(np.array(self.problem.intercept)),
            loss=loss,
            objective=self.problem.objective(loss, alpha, cut.cost, value_penalty=value_penalty),
            values=seal(cut.value[:, self._leaves()]) if self.refits else None,
        )

    @property
    def residual(self) -> NDArray[np.float64]:
        """What is kept leaves unexplained now, times the weights of rows."""
        return self._cut.residual

    def renew(self, residual: NDArray[np.float64], problem: Problem | None = None) -> None:
        """Take another residual, and other weights of rows, with what is kept as it is."""
        cut = self._cut
        if problem is None:
            # Trees that are passed over have been looked at with what it was.
            cut.moved[0] += distance(cut.residual, residual, self.problem.row_weight)
            cut.residual[:] = residual
            return
        self.problem, trees, active = problem, problem.trees, self._active
        cut.residual[:] = residual
        cut.absent_down_to[:] = np.inf
        whole = ActiveSet.of_all(trees, problem.encoding.codes)
        if active is self._whole:
            self._active = whole
        else:
            weight = seal(trees.weight[active.nodes])
            own = seal(trees.own[active.nodes]) if trees.own.size else trees.own
            self._active = replace(active, trees=active.trees._replace(weight=weight, own=own))
        self._whole, self._screening = whole, None
        self.gram = Gram(self.tuning.gram_leaves, trees.weight.size)

    def _unsaid(self) -> float:
        """Return what a correction adds to the objective of what is kept, times the variation."""
        trees, leaves = self._active.trees, self._leaves()
        if not trees.own.size:
            return 0.0
        value, more = self._cut.value[:, leaves], (trees.weight - trees.own)[leaves]
        return float((value * (more * value - 2.0 * trees.excess[:, leaves])).sum())

    def correct(self, total: Sums) -> None:
        """Let rows stand for others too; `total` are sums over all, at what is kept now."""
        self._move_to_active(self._whole)
        self._active_down_to = np.inf
        problem, forest, cut = self.problem, self.problem.encoding.forest, self._cut
        residual = [problem.encoding.node_sums(each, problem.n_jobs) for each in cut.residual]
        own = Sums(problem.node_weights, np.array(residual))
        correction = Correction.of(forest, total, own, self._added())
        self.renew(cut.residual.copy(), problem.corrected(correction))

    def _added(self) -> NDArray[np.float64]:
        """Return what trees add in each of their unpruned leaves now, if all nodes are active."""
        cut, forest = self._cut, self.problem.encoding.forest
        first = first_leaves(forest.offsets)
        owner = np.repeat(self.order, np.diff(first))
        node = forest.offsets[owner] + cut.leaves[first[owner] + cut.leaf_of]
        added: NDArray[np.float64] = np.where(cut.depth[owner] > 0, cut.value[:, node], 0.0)
        return added

    def _leaves(self) -> NDArray[np.int64]:
        """Return the active nodes that are leaves now, rising."""
        cut, offsets = self._cut, self._active.trees.offsets
        owner = np.repeat(self.order, cut.n_leaves)
        starts = np.cumsum(cut.n_leaves) - cut.n_leaves
        within = np.arange(owner.size) - np.repeat(starts, cut.n_leaves)
        nodes: NDArray[np.int64] = (
            offsets[owner] + cut.leaves[first_leaves(offsets)[owner] + within]
        )
        return nodes

    def priced(self, point: Point) -> float:
        """Return the objective of a point, whose loss is known."""
        forest, trees = self.problem.encoding.forest, self.problem.trees
        splits = point.splits(forest)
        leaves = kept_leaves(forest, splits)
        owner = np.searchsorted(forest.offsets, leaves, side="right") - 1
        origin = trees.origin[:, leaves]
        values = origin if point.values is None else point.values
        shift = float(((values * point.weights[owner] - origin) ** 2).sum())
        return self.problem.objective(
            point.loss, point.alpha, self.costs[splits], value_penalty=self.shrinkage * shift
        )

    def move_to(self, point: Point) -> None:
        """Keep what `point` keeps."""
        forest, trees = self.problem.encoding.forest, self.problem.trees
        self._move_to_active(self._whole)
        self._active_down_to = np.inf
        given, splits = np.array(trees.origin), point.splits(forest)
        if self.refits and point.values is not None:
            given[:, kept_leaves(forest, splits)] = point.values
        # Copies, which can be written to: for kernels, arrays that cannot are of another type.
        self._keep(splits.copy(), given)
        if self._most_trees:
            self._most_trees = max(self._room(point), point.n_trees, 1)
            self._full_at = np.inf

    def _room(self, point: Point) -> int:
        """Return how many trees may be kept for leaves that add as much as those of a point."""
        if point.values is None or not point.values.size:
            return 1
        forest, trees = self.problem.encoding.forest, self.problem.trees
        weight = trees.weight[kept_leaves(forest, point.splits(forest))]
        far = 1.0 if trees.low.size else weight / (weight + 1.0)
        centre, below = self._centre[:, np.newaxis], np.maximum(-point.values, 1e-300)
        room = float((far * centre / below).min())
        if centre.size == 1:
            above = np.maximum(point.values, 1e-300)
            room = min(room, float((far * (1.0 - centre) / above).min()))
        return int(min(room * (1.0 + 1e-9), self.order.size))

    def search(self, descent: Descent, alpha: float, max_iter: int, *, on_path: bool) -> None:  # noqa: ARG002
        """Allow one more tree after another, where leaves must be distributions, while that pays.

        Each tree of an average may add the less, the more there are. So all must give up something
        for one more, which no single tree would.
        """
        trees = self.order.size
        while self._most_trees and np.count_nonzero(self.depths) == self._most_trees < trees:
            if alpha > self.tuning.again * self._full_at:
                break
            begun, n = self.point(alpha).objective, self._most_trees
            active, down_to = self._active, self._active_down_to
            kept, value = self._cut.kept.copy(), self._cut.value.copy()
            self._keep(kept, value * (n / (n + 1.0)))
            self._most_trees = n + 1
            absent = np.flatnonzero(self.depths == 0)
            gain = self._best_prunings(self.price(alpha), 1.0, absent)[0]
            best = absent[[np.argmax(gain[absent])]]
            self._choose_active(alpha, np.append(np.flatnonzero(self.depths > 0), best))
            self._sweep(self._active_price(alpha), best)
            descent.descend(alpha, max_iter)
            if self.point(alpha).objective >= begun - self.tuning.value_tolerance:
                self._keep(np.zeros_like(self._cut.kept), self._cut.value)
                self._move_to_active(active)
                self._active_down_to = down_to
                self._keep(kept, value)
                self._most_trees, self._full_at = n, alpha
                break

    def _keep(self, kept: NDArray[np.bool_], value: NDArray[np.float64]) -> None:
        """Keep some active splits, active nodes having these values as leaves."""
        self._sweep(self._active_price(0.0), self.order, kept, value)
