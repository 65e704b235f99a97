"""Block coordinate descent for the `subtree` rule: sweeps over the trees until none changes."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestprune import kernels
from forestprune.forest.checks import seal
from forestprune.kernels.cuts import Overlaps, Pruning, SplitPrice
from forestprune.solve.kept import Subtrees, kept_nodes, read_trees
from forestprune.solve.layers.descent import Solution
from forestprune.solve.leaf_fit import Leaves
from forestprune.solve.problem import Problem
from forestprune.solve.subtrees.trunks import Coarse, Trunks
from forestprune.system.threads import Crew, split_range

SMALLEST_ALPHA = 1e-5
"""Where a grid of alphas ends, relative to where it begins."""

VALUE_SWEEPS = 25
"""Sweeps at most that refit values only, between two that may change the shape of trees."""

AHEAD = 0.1
"""How far alpha may fall until trunks are chosen anew."""

DEEP = 0.2
"""Nodes a tree, relative to rows, from which on trunks pay: a node takes longer than a row."""

LARGE = 100_000
"""Nodes of all trees from which on trunks pay: in a new installation they have to be compiled."""

FEWEST_ROWS = 15.0
"""Coarse trees pay if they leave out what is below nodes of so many rows, or more."""

FEW_LEAVES = 1024
"""Leaves kept up to which values are refitted by overlaps."""

MANY_ROWS = 100_000
"""Rows times trees from which on overlaps pay: in a new installation they have to be compiled."""

SHARED = 50_000
"""Rows and nodes, all trees together, from which on going through them is shared by threads."""


class SubtreeDescent:
    """Which part of each tree of a problem is kept now, and the way down from it.

    Begins with nothing kept. Each sweep gives every tree, one after another, the part and the
    values that are best given the others; the objective never rises, and after a sweep without a
    change no single tree can improve it, by more than the problem's tolerance.

    Parameters
    ----------
    problem : Problem
    lazy : bool
        Pass over trees that certainly would not change. The result is the same, bit for bit.
    n_jobs : int or None
        Threads; None takes every core. The result is the same, bit for bit.

    Attributes
    ----------
    sweeps, looks : int
        Sweeps made so far, and how often the rows of a tree were gone through in them.
    """

    def __init__(self, problem: Problem, *, lazy: bool = True, n_jobs: int | None = None) -> None:
        self.problem = problem
        self.lazy = lazy
        self._crew = Crew(n_jobs)
        self.sweeps = 0
        self.looks = 0
        self.trees = read_trees(problem.encoding.forest, problem.encoding.node_weights)
        weights = problem.encoding.sample_weight
        self._row_weight = seal(np.empty(0)) if weights is None else weights
        n_trees, outputs = problem.encoding.forest.n_trees, problem.encoding.forest.n_outputs
        self.order = np.arange(n_trees)
        codes = problem.encoding.codes
        self._trunks = self._whole = Trunks.whole(self.trees, codes)
        self._costs = problem.split_costs
        self._serve_to = np.inf  # the alpha down to which the trunks were chosen
        self._coarse: Coarse | None = None
        rows = float(self.trees.weight[self.trees.offsets[:-1]].max(initial=0.0))
        self._rows_per_cost = rows * float(self._costs.sum()) / max(self._costs.size, 1)
        self._deep = self.trees.weight.size > max(LARGE, DEEP * codes.size)
        self._overlaps = Overlaps(
            weight=np.zeros((FEW_LEAVES, FEW_LEAVES)),
            node=np.full(FEW_LEAVES, -1),
            slot_of=np.zeros(self.trees.weight.size, np.int32),
        )
        self._cut = Pruning(
            residual=problem.residual.copy(),
            value=np.zeros((outputs, self.trees.weight.size)),
            ends=np.zeros(self.trees.leaf.size, np.uint32),
            n_ends=np.zeros(n_trees, np.int64),
            end=np.zeros(self.trees.leaf.size, np.uint32),
            # Pages that no tree writes to are never there; zeros_like would write to all.
            column=np.zeros(codes.shape if problem.refit else (n_trees, 0), codes.dtype),
            kept=np.zeros(self.trees.split.size, np.bool_),
            depth=np.zeros(n_trees, np.int64),
            cost=np.zeros(n_trees),
            off=np.zeros(n_trees),
            moved=np.zeros(1),
            moved_then=np.zeros(n_trees),
            slack=np.full(n_trees, -1.0),
            lowest_alpha=np.full(n_trees, np.inf),
        )

    @property
    def depths(self) -> NDArray[np.int64]:
        """How deep the kept part of each tree is now."""
        return self._cut.depth

    def n_nodes(self) -> int:
        """Return how many nodes are kept now, roots of trees that are kept included."""
        return int(2 * self._cut.kept.sum() + np.count_nonzero(self._cut.depth))

    def is_full(self) -> bool:
        """Tell whether every split is kept, with the values of the original."""
        return self._cut.kept.sum() == self.trees.split.size and not self.problem.refit

    def alpha_range(self) -> tuple[float, float]:
        """Return the smallest alpha at which nothing enters if nothing is kept, and the lowest.

        A pruning that gains g and costs c enters below alpha = g / c; the greatest such ratio over
        all prunings is found by Dinkelbach's method: the best pruning at one alpha shows a higher
        one, until nothing is better than nothing. Must be called before anything is solved.
        """
        worth, cost = np.zeros(self.order.size), np.zeros(self.order.size)
        codes, alpha = self.problem.encoding.codes, 0.0
        for _ in range(100):  # a few are enough; rounding must not go on for ever
            price = self._price(alpha)
            self._share(kernels.best_subtrees, codes, self.trees, self._cut, price, worth, cost)
            gain = alpha * cost - worth / self.problem.variation
            ratio = np.divide(gain, cost, out=np.zeros_like(gain), where=cost > 0.0)
            highest = float(ratio.max(initial=0.0))
            if highest <= alpha * (1.0 + 1e-12):
                break
            alpha = highest
        return alpha, SMALLEST_ALPHA * alpha

    def descend(self, alpha: float, max_iter: int, *, held: Sequence[int] = ()) -> bool:
        """Sweep until no tree changes.

        Parameters
        ----------
        alpha : float
        max_iter : int
            Sweeps at most.
        held : sequence of int
            Trees that must not change.

        Returns
        -------
        bool
            Whether a sweep without a change was reached.
        """
        just_chosen = alpha < self._serve_to
        if just_chosen:
            self._choose_trunks(alpha)
        price = self._price(alpha)
        order = self.order[~np.isin(self.order, held)] if held else self.order
        last = self.sweeps + max_iter
        while self.sweeps < last:
            if not self._sweep(price, order):
                # Nothing has changed since they were chosen, or they still hold.
                if just_chosen or self._trunks_hold(alpha, order):
                    return True
                self._choose_trunks(alpha)
                price = self._price(alpha)
                just_chosen = True
                continue
            just_chosen = False
            # Trees that are kept answer to each other's changes before all are asked again.
            if self.problem.refit:
                self._refit(price, order[self.depths[order] > 0])
                continue
            while self.sweeps < last and self._sweep(price, order[self.depths[order] > 0]):
                pass
        return False

    def _sweep(self, price: SplitPrice, order: NDArray[np.int64]) -> int:
        """Update some trees; return how many changed."""
        changed, looked = kernels.sweep_subtrees(
            self._trunks.codes,
            self._row_weight,
            self._trunks.trees,
            self._cut,
            price,
            order,
            self.lazy,
        )
        self.sweeps += 1
        self.looks += looked
        return int(changed)

    def _refit(self, price: SplitPrice, order: NDArray[np.int64]) -> None:
        """Refit the values of some trees that are kept, in the shape they have."""
        trunks, cut = self._trunks, self._cut
        weight, trees, overlaps = self._row_weight, trunks.trees, self._overlaps
        if cut.n_ends[order].sum() > FEW_LEAVES or trunks.codes.size < MANY_ROWS:
            kernels.refit_values(weight, trees, cut, price, order, VALUE_SWEEPS)
            return
        fresh, slot = np.empty(FEW_LEAVES, np.bool_), np.empty(trees.leaf.size, np.int32)
        size = kernels.assign_slots(trees, trunks.nodes, cut, order, overlaps, slot, fresh)
        kernels.count_overlaps(weight, trees, cut, order, overlaps, slot, fresh)
        kernels.refit_by_overlaps(
            weight, trees, cut, price, order, overlaps, slot, size, VALUE_SWEEPS
        )

    def _choose_trunks(self, alpha: float) -> None:
        """Let sweeps look at what might be kept at this alpha, or one that is a little lower."""
        if not self._deep:
            return
        now, whole, cut = self._trunks, self._whole, self._cut
        price = self.problem.split_price(alpha)
        kept = now.kept(cut, whole.splits.size)
        some = np.empty(whole.splits.size, np.bool_)
        arguments = (price, cut, now.trees, now.inside, kept, AHEAD, some)
        self._share(kernels.choose_trunks, whole.codes, whole.trees, *arguments)
        self._move_to_trunks(Trunks.of(whole.trees, whole.codes, some, self._share))
        self._serve_to = AHEAD * alpha

    def _move_to_trunks(self, trunks: Trunks) -> None:
        if trunks is not self._trunks:
            self._cut = self._trunks.carry(self._cut, trunks)
            self._trunks = trunks
            self._costs = self.problem.split_costs[trunks.splits]

    def _trunks_hold(self, alpha: float, order: NDArray[np.int64]) -> bool:
        """Tell whether some trees could not gain by what their trunks leave out either."""
        now, whole, cut = self._trunks, self._whole, self._cut
        if now is whole:
            return True
        price, gain = self.problem.split_price(alpha), np.full(self.order.size, np.inf)
        coarse = self._coarse_at(price)
        if coarse is not None:
            trunks, square = coarse.trunks, np.empty(cut.residual.shape[1])
            kernels.square_rows(self._row_weight, cut.residual, square)
            cheaper = price._replace(cost=coarse.split_costs)
            bounds = (cheaper, coarse.spread, coarse.cost)
            known = (cut, now.trees, now.nodes, coarse.place, gain)
            self._share(kernels.gains_at_most, trunks.codes, square, trunks.trees, *bounds, *known)
        # What may gain by that bound is looked at closely.
        some = order[gain[order] > price.least]
        arguments = (whole.codes, whole.trees, price, cut, now.trees, now.nodes, now.inside, gain)
        pieces = split_range(some.size, self._pieces())
        self._crew.run(
            kernels.gains_of_whole, [(some[first:last], *arguments) for first, last in pieces]
        )
        return bool((gain[order] <= price.least).all())

    def _coarse_at(self, price: SplitPrice) -> Coarse | None:
        """Return coarse trees that leave out what hardly gains its cost, if that is much."""
        square = self.problem.loss(self._cut.residual) * self.problem.variation
        # As many rows as have n / (n + shrinkage) of their squares worth a split.
        worth = price.alpha * self._rows_per_cost / square if square > 0.0 else 0.0
        rows = 0.5 * (worth + np.sqrt(worth * (worth + 4.0 * price.shrinkage)))
        if rows < FEWEST_ROWS:
            return None
        if self._coarse is None:
            self._coarse = Coarse(self._whole, self.problem.split_costs, self._share)
        # A little fewer than that serve for lower alphas too.
        if not 0.65 <= rows / self._coarse.rows <= 4.0:
            self._coarse.cut(0.7 * rows)
        return self._coarse

    def _share(self, kernel: Callable[..., None], *arguments: Any) -> None:
        """Call a kernel that goes through trees by their numbers, some in each thread."""
        pieces = split_range(self.order.size, self._pieces())
        self._crew.run(kernel, [(first, last, *arguments) for first, last in pieces])

    def _pieces(self) -> int:
        """Return into how many pieces to cut what is done for all trees."""
        size = self._whole.codes.size + self._whole.nodes.size
        # Some more pieces than threads: trees differ, and so do cores.
        return 4 * self._crew.size if self._crew.size > 1 and size > SHARED else 1

    def solution(self, alpha: float) -> Solution:
        """Return what is kept now, with its objective."""
        cut = self._cut
        trees = self._trunks.trees
        nodes, adds = kept_nodes(trees, cut.kept), None
        if self.problem.refit:
            adds = cut.value[:, nodes]
            kernels.average_adds(trees, nodes, adds)
            seal(adds)
        nodes = self._trunks.nodes[nodes]
        loss = self.problem.loss(cut.residual)
        return Solution(
            alpha=alpha,
            depths=cut.depth.copy(),
            weights=np.ones(cut.depth.size),
            objective=loss + self.problem.subtree_penalty(cut.cost, cut.off, alpha),
            loss=loss,
            subtrees=Subtrees(seal(nodes), adds),
        )

    def move_to(self, subtrees: Subtrees) -> None:
        """Keep what `subtrees` says."""
        self._move_to_trunks(self._whole)
        self._serve_to = np.inf
        cut, price = self._cut, self._price(0.0)
        adds = np.array(self.trees.origin)
        if self.problem.refit:
            adds[:, subtrees.nodes] = subtrees.values(self.trees)
        kernels.set_subtrees(
            self.problem.encoding.codes,
            self._row_weight,
            self.trees,
            cut,
            price,
            subtrees.splits(self.trees),
            adds,
        )

    def penalty(self, subtrees: Subtrees, weights: NDArray[np.float64], alpha: float) -> float:
        """Return what is added to the loss for keeping `subtrees`, each tree weighted."""
        kept = subtrees.splits(self.trees)
        leaves = Leaves.of(self.problem.encoding.codes, self.trees, kept)
        place = np.searchsorted(subtrees.nodes, leaves.node)
        value = subtrees.values(self.trees)[:, place] * weights[leaves.tree]
        off = (value - self.trees.origin[:, leaves.node]) ** 2
        return self.problem.subtree_penalty(self.problem.split_costs[kept], off, alpha)

    def _price(self, alpha: float) -> SplitPrice:
        return self.problem.split_price(alpha)._replace(cost=self._costs)
