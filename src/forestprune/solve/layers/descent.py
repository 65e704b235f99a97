"""Block coordinate descent: sweeps over the trees until none of them changes any more."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestprune import kernels
from forestprune.forest.checks import seal
from forestprune.kernels.cuts import Cut, Price
from forestprune.solve.kept import Subtrees
from forestprune.solve.problem import Problem
from forestprune.system.threads import run_in_threads, split_range, thread_count

SMALLEST_ALPHA = 1e-6
"""Where a grid of alphas ends at the latest, relative to where it begins."""

GUESSES = 100
"""Sweeps over the sketch at most; they are guesses, so it need not have converged."""


@dataclass(frozen=True, eq=False)
class Solution:
    """How deep each tree is and how it is weighted, and the objective of that at one alpha.

    `subtrees` has the nodes that are kept, if they are not just all down to these depths.
    """

    alpha: float
    depths: NDArray[np.int64]
    weights: NDArray[np.float64]
    objective: float
    loss: float
    subtrees: Subtrees | None = None


class Descent:
    """The present cut of each tree of a problem, and the way down from it.

    Begins with nothing kept. Each sweep gives every tree, one after another, the cut that is best
    given the others; the objective never rises, and after a sweep without a change no single tree
    can improve it.

    Parameters
    ----------
    problem : Problem
    lazy : bool
        Pass over trees that certainly would not change. The result is the same, bit for bit.
    n_jobs : int or None
        Threads where trees are looked at independently; None takes every core.

    Attributes
    ----------
    order : int array of shape (n_trees,)
        The order in which a sweep meets the trees: see :func:`tree_order`.
    sweeps, looks : int
        Sweeps made so far, and how often the rows of a tree were gone through.
    """

    def __init__(self, problem: Problem, *, lazy: bool = True, n_jobs: int | None = None) -> None:
        n_trees, directions = problem.steps.share.shape[:2]
        self.problem = problem
        self.lazy = lazy
        self.n_jobs = n_jobs
        self.sweeps = 0
        self.looks = 0
        weights = problem.encoding.sample_weight
        self._row_weight = seal(np.empty(0)) if weights is None else weights
        self._cut = Cut(
            residual=problem.residual.copy(),
            depth=np.zeros(n_trees, np.int64),
            weight=np.ones(n_trees),
            own=np.zeros_like(problem.costs),
            correlation=np.zeros_like(problem.costs),
            moved=np.zeros(2),
            drift=np.zeros(directions),
            moved_then=np.zeros((n_trees, 2)),
            drift_then=np.zeros((n_trees, directions)),
        )
        sizes = problem.encoding.forest.layer_sizes()
        self._up_to = np.column_stack([np.zeros(n_trees, np.int64), 1 + np.cumsum(sizes, axis=1)])
        self.look_at(np.arange(n_trees))
        self.order = tree_order(problem, self._cut.correlation)

    @property
    def depths(self) -> NDArray[np.int64]:
        """Where each tree is cut now."""
        return self._cut.depth

    @property
    def weights(self) -> NDArray[np.float64]:
        """How each tree is weighted now; 1 if it is not kept."""
        return np.where(self._cut.depth > 0, self._cut.weight, 1.0)

    def look_at(self, trees: NDArray[np.int64]) -> None:
        """Renew what is known of some trees."""
        # A thread is started in the time it takes to go through some thousand rows.
        enough = trees.size * self.problem.encoding.n_rows > 1_000_000
        pieces = 4 * thread_count(self.n_jobs) if enough else 1
        tasks = [
            (self.problem.encoding.codes, self.problem.steps, self._cut, trees[first:last])
            for first, last in split_range(trees.size, pieces)
        ]
        run_in_threads(kernels.look_at_trees, tasks, self.n_jobs, "looking at trees")
        self.looks += trees.size

    def choices(self, alpha: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what each tree's part of the objective is at each depth, the others as they are.

        Going by what is known of the trees; :meth:`look_at` renews it. Depths that a tree does not
        have are infinitely bad. The second array has the weights that go with them.
        """
        worth = np.empty_like(self.problem.costs)
        weights = np.empty_like(self.problem.costs)
        kernels.price_choices(
            self.problem.steps, self._cut, self.problem.price(alpha), worth, weights
        )
        return worth / self.problem.variation, weights

    def correlations(self) -> NDArray[np.float64]:
        """Return the correlation of each tree, uncut, with the residual without it.

        Going by what is known of the trees; 0 for a tree that is constant.
        """
        last = np.arange(self.depths.size), self.problem.depths
        length = np.sqrt(self.problem.steps.square[last])
        some = length > 0
        return np.divide(
            np.abs(self._cut.correlation[last]), length, out=np.zeros(some.size), where=some
        )

    def descend(
        self, alpha: float, max_iter: int, *, held: Sequence[int] = (), guess: bool = True
    ) -> bool:
        """Sweep until no tree changes.

        Parameters
        ----------
        alpha : float
        max_iter : int
            Sweeps at most.
        held : sequence of int
            Trees that must not change.
        guess : bool
            Begin where the sketch, if there is one, says that the descent will end.

        Returns
        -------
        bool
            Whether a sweep without a change was reached.
        """
        problem, cut = self.problem, self._cut
        price = problem.price(alpha)
        order = self.order[~np.isin(self.order, held)] if held else self.order
        if guess and cut.drift.size:
            self._guess(alpha, price, order)
        codes, steps = problem.encoding.codes, problem.steps
        for _ in range(max_iter):
            changed, looked = kernels.sweep_layers(
                codes, self._row_weight, steps, cut, price, order, self.lazy
            )
            self.sweeps += 1
            self.looks += looked
            if not changed:
                return True
        return False

    def solution(self, alpha: float) -> Solution:
        """Return the present cut with its objective."""
        cut, weights = self._cut, self.weights
        loss = self.problem.loss(cut.residual)
        objective = loss + self.problem.penalty(cut.depth, weights, alpha)
        return Solution(alpha, cut.depth.copy(), weights, objective, loss)

    def n_nodes(self) -> int:
        """Return how many nodes are kept now, roots of trees that are kept included."""
        return int(self._up_to[np.arange(self.depths.size), self.depths].sum())

    def is_full(self) -> bool:
        """Tell whether all trees are uncut, and their weights are not free."""
        return self.problem.joint is None and bool(np.all(self.depths == self.problem.depths))

    def alpha_range(self) -> tuple[float, float]:
        """Return the alphas between which a path goes from nothing kept to everything.

        The first is the smallest alpha at which no tree enters if none is there: a choice enters
        when what it gains exceeds ``alpha * cost / K``, so that is the greatest gain over cost. The
        last is where, coming from the full model, the first tree would give up a layer, trees that
        never want theirs left aside; both in closed form. Must be called before anything is solved.
        """
        problem, costs = self.problem, self.problem.costs
        worth, _ = self.choices(0.0)
        some = np.isfinite(worth) & (costs > 0.0)
        highest = float((-worth[some] / costs[some]).max(initial=0.0))
        if highest <= 0.0:
            return 0.0, 0.0
        lowest = SMALLEST_ALPHA * highest
        if problem.joint is None:
            begun = self.save()
            self.move_to(problem.depths, np.ones(problem.depths.size))
            self.look_at(np.arange(problem.depths.size))
            worth, _ = self.choices(0.0)
            full = np.arange(problem.depths.size), problem.depths
            saved = costs[full][:, np.newaxis] - costs
            some = np.isfinite(worth) & (saved > 0.0)
            lost = worth - worth[full][:, np.newaxis]
            gives_up = np.divide(lost, saved, out=np.full_like(lost, np.inf), where=some).min(
                axis=1
            )
            wanted = gives_up[(gives_up > 0.0) & np.isfinite(gives_up)]
            # A little less, since at that very alpha keeping the layer and giving it up are equal.
            lowest = float(np.clip(0.99 * wanted.min(initial=highest), lowest, highest))
            self.restore(begun)
        return highest, lowest

    def move_to(self, depths: NDArray[np.int64], weights: NDArray[np.float64]) -> None:
        """Cut the trees at `depths` and weight them."""
        problem = self.problem
        # Copies, which can be written to: for kernels, arrays that cannot are of another type.
        choice = depths.copy(), weights.copy()
        kernels.cut_trees(
            problem.encoding.codes, self._row_weight, problem.steps, self._cut, *choice
        )

    def save(self) -> Cut:
        """Return a copy of the present cut, for :meth:`restore`."""
        return self._cut._replace(
            **{name: array.copy() for name, array in self._cut._asdict().items()}
        )

    def restore(self, saved: Cut) -> None:
        """Go back to a saved cut."""
        for array, copy in zip(self._cut, saved, strict=True):
            array[...] = copy

    def _guess(self, alpha: float, price: Price, order: NDArray[np.int64]) -> None:
        """Move to where the descent ends on the sketch, unless that is worse than here."""
        cut = self._cut
        changing = ("depth", "weight", "drift", "drift_then")
        guess = cut._replace(**{name: getattr(cut, name).copy() for name in changing})
        kernels.guess_layers(self.problem.steps, guess, price, order, GUESSES)
        moved = np.count_nonzero((guess.depth != cut.depth) | (guess.weight != cut.weight))
        if not moved:
            return
        before, saved = self.solution(alpha).objective, self.save()
        self.move_to(guess.depth, guess.weight)
        if self.solution(alpha).objective >= before:
            self.restore(saved)
        elif 2 * moved > order.size:
            # Too much has moved for any tree to be passed over: look at all, which threads share.
            self.look_at(order)


def tree_order(problem: Problem, correlations: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the trees in the order in which they are to be tried.

    Boosted trees come in the order they were grown in, the averaged ones by their training error,
    the best one first, as in section 3.1 of the paper. `correlations` must be those of the problem
    with nothing kept.
    """
    forest = problem.encoding.forest
    n_trees = forest.n_trees
    if not forest.averages:
        return np.arange(n_trees)
    # Alone, a tree of an average counts n_trees times as much as in it.
    last = np.arange(n_trees), problem.depths
    error = n_trees * problem.steps.square[last] - 2.0 * correlations[last]
    return np.argsort(error, kind="stable")
