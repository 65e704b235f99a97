"""The paper's rule: a tree is cut at a depth, alone or with a weight of its own."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from forestprune import kernels
from forestprune.forest.checks import seal
from forestprune.kernels.records import Cut, LayerPrice
from forestprune.options import Options
from forestprune.rows.trees import first_splits
from forestprune.solve.costs import layer_costs
from forestprune.solve.descent import Descent
from forestprune.solve.layers.layers import measured_layers
from forestprune.solve.layers.search import search_in_order, search_randomly
from forestprune.solve.layers.tuning import Tuning
from forestprune.solve.point import Point, pack_splits
from forestprune.solve.problem import Problem
from forestprune.solve.rule import Order, QuadraticRule, distance
from forestprune.system.threads import run_in_threads, split_range, thread_count

NEXT_TO_NOTHING = 1e-10
"""A cut whose square is a smaller share of its tree's largest one is not given a weight."""


class LayerRule(QuadraticRule):
    """Trees are cut at depths; sections 3.1 to 3.4 of the paper.

    Parameters
    ----------
    problem : Problem
    options : Options
        Of these: weighting, joint, alpha2, local_search, random_state.
    tuning : Tuning

    Attributes
    ----------
    costs : float64 array of shape (n_trees, max_depth + 1)
        Cost of a tree that is cut at each depth, over K.
    """

    def __init__(
        self, problem: Problem, options: Options | None = None, tuning: Tuning | None = None
    ) -> None:
        forest = problem.encoding.forest
        self.options = options or Options(rule="layer")
        self.tuning = tuning or Tuning()
        self.searches = self.options.local_search is True
        self.costs = layer_costs(forest, self.options.weighting)
        self.full_depths = forest.depths
        self._random: Any = check_random_state(self.options.random_state)
        self._split_depths = forest.node_depths[forest.left >= 0]
        self._n_splits = np.diff(first_splits(forest.offsets))
        sizes = forest.layer_sizes()
        none = np.zeros(forest.n_trees, np.int64)
        self._up_to = np.column_stack([none, 1 + np.cumsum(sizes, axis=1)])
        self._begin(problem)
        self.look_at(np.arange(forest.n_trees))
        self.order = self._tree_order()

    def _begin(self, problem: Problem) -> None:
        """Measure layers by the weights of a problem's rows; keep nothing."""
        self.problem = problem
        self._price: tuple[float, LayerPrice] | None = None
        self.layers = measured_layers(problem, self.tuning)
        n_trees, directions = self.layers.share.shape[:2]
        self._cut = Cut(
            residual=problem.residual.copy(),
            depth=np.zeros(n_trees, np.int64),
            weight=np.ones(n_trees),
            own=np.zeros_like(self.costs),
            correlation=np.zeros_like(self.costs),
            moved=np.zeros(2),
            drift=np.zeros(directions),
            moved_then=np.zeros((n_trees, 2)),
            drift_then=np.zeros((n_trees, directions)),
        )

    def _tree_order(self) -> Order:
        """Return the trees in the order in which they are to be tried.

        Boosted trees come in the order they were grown in, the averaged ones by their training
        error, the best one first, as in section 3.1 of the paper.
        """
        forest = self.problem.encoding.forest
        n_trees = forest.n_trees
        if not forest.averages:
            return np.arange(n_trees)
        # Alone, a tree of an average counts n_trees times as much as in it.
        last = np.arange(n_trees), self.full_depths
        error = n_trees * self.layers.square[last] - 2.0 * self._cut.correlation[last]
        return np.argsort(error, kind="stable")

    @property
    def depths(self) -> NDArray[np.int64]:
        """Where each tree is cut now."""
        return self._cut.depth

    @property
    def weights(self) -> NDArray[np.float64]:
        """How each tree is weighted now; 1 if it is not kept."""
        return np.where(self._cut.depth > 0, self._cut.weight, 1.0)

    def n_nodes(self) -> int:
        """Return how many nodes are kept now, roots of trees that are kept included."""
        return int(self._up_to[np.arange(self.depths.size), self.depths].sum())

    def is_full(self) -> bool:
        """Tell whether all trees are uncut, and their weights are not free."""
        return self.options.joint is None and bool(np.all(self.depths == self.full_depths))

    def price(self, alpha: float) -> LayerPrice:
        """Return what depths cost at `alpha`, as kernels read it."""
        if self._price is None or self._price[0] != alpha:
            self._price = alpha, self._price_at(alpha)
        return self._price[1]

    def _price_at(self, alpha: float) -> LayerPrice:
        problem, options = self.problem, self.options
        penalty = alpha * problem.variation * self.costs
        if options.joint == "subset":
            penalty[:, 1:] += options.alpha2 * problem.variation
        if options.joint is not None:
            # A cut that adds next to nothing beside the rest of its tree would take a weight so
            # large that all else drowned in its rounding.
            square = self.layers.square
            least = NEXT_TO_NOTHING * square.max(axis=1, keepdims=True, initial=0.0)
            penalty[:, 1:][(square <= least)[:, 1:]] = np.inf
        tuning = self.tuning
        tolerance = tuning.rounding if options.joint is None else tuning.weight_tolerance
        min_gain = problem.min_gain(tolerance)
        signed = not problem.encoding.forest.monotone.size
        free = options.joint is not None
        return LayerPrice(seal(penalty), seal(self._ridge()), free, signed, min_gain)

    def _ridge(self) -> NDArray[np.float64]:
        """Return what the square of each tree's weight costs, times the variation."""
        if self.options.joint != "ridge":
            return np.zeros(len(self.costs))
        full: NDArray[np.float64] = self.layers.square[np.arange(len(self.costs)), self.full_depths]
        return self.options.alpha2 * full

    def look_at(self, trees: Order) -> None:
        """Renew what is known of some trees."""
        # A thread is started in the time it takes to go through some thousand rows.
        n_jobs, encoding = self.problem.n_jobs, self.problem.encoding
        enough = trees.size * encoding.n_rows > 1_000_000
        pieces = 4 * thread_count(n_jobs) if enough else 1
        tasks = [
            (encoding.codes, self.layers, self._cut, trees[first:last])
            for first, last in split_range(trees.size, pieces)
        ]
        run_in_threads(kernels.look_at_trees, tasks, n_jobs, "looking at trees")

    def choices(self, alpha: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return each tree's part of the objective at each depth, the others as they are.

        Going by what is known of the trees; :meth:`look_at` renews it. Depths that a tree does not
        have are infinitely bad. The second array has the weights that go with them.
        """
        objective, weights = np.empty_like(self.costs), np.empty_like(self.costs)
        kernels.price_choices(self.layers, self._cut, self.price(alpha), objective, weights)
        return objective / self.problem.variation, weights

    def correlations(self) -> NDArray[np.float64]:
        """Return the correlation of each tree, uncut, with the residual without it.

        Going by what is known of the trees; 0 for a tree that is constant.
        """
        last = np.arange(self.depths.size), self.full_depths
        length = np.sqrt(self.layers.square[last])
        some = length > 0
        return np.divide(
            np.abs(self._cut.correlation[last]), length, out=np.zeros(some.size), where=some
        )

    def begin(self, alpha: float, order: Order) -> None:
        """Move to where the descent ends on the sketch, unless that is worse than here."""
        cut = self._cut
        if not cut.drift.size:
            return
        changing = ("depth", "weight", "drift", "drift_then")
        guess = cut._replace(**{name: getattr(cut, name).copy() for name in changing})
        kernels.guess_layers(self.layers, guess, self.price(alpha), order, self.tuning.guesses)
        moved = np.count_nonzero((guess.depth != cut.depth) | (guess.weight != cut.weight))
        if not moved:
            return
        before, saved = self.objective(alpha), self.save()
        self.cut_at(guess.depth, guess.weight)
        if self.objective(alpha) >= before:
            self.restore(saved)
        elif 2 * moved > order.size:
            # Too much has moved for any tree to be passed over: look at all, which threads share.
            self.look_at(order)

    def sweep(self, alpha: float, order: Order) -> tuple[int, int]:
        """Give some trees, one after another, the depth that is best given the others."""
        changed, looked = kernels.sweep_layers(
            self.problem.encoding.codes,
            self.problem.row_weight,
            self.layers,
            self._cut,
            self.price(alpha),
            order,
            self.tuning.lazy,
        )
        return int(changed), int(looked)

    def objective(self, alpha: float) -> float:
        """Return the objective of what is kept now."""
        loss = self.problem.unexplained(self._cut.residual)
        return self._objective(loss, self._cut.depth, self.weights, alpha)

    def _objective(
        self,
        loss: float,
        depths: NDArray[np.int64],
        weights: NDArray[np.float64],
        alpha: float,
    ) -> float:
        weight_penalty = 0.0
        if self.options.joint == "ridge":
            kept = np.where(depths > 0, weights, 0.0)
            weight_penalty = float(self._ridge() @ kept**2) / self.problem.variation
        elif self.options.joint == "subset":
            weight_penalty = self.options.alpha2 * np.count_nonzero(depths)
        costs = self.costs[np.arange(len(self.costs)), depths]
        return self.problem.objective(loss, alpha, costs, weight_penalty=weight_penalty)

    def priced(self, point: Point) -> float:
        """Return the objective of a point, whose loss is known."""
        return self._objective(point.loss, point.depths, point.weights, point.alpha)

    def point(self, alpha: float) -> Point:
        """Return what is kept now, with its objective."""
        depths = self._cut.depth.copy()
        loss = self.problem.unexplained(self._cut.residual)
        return Point(
            alpha=alpha,
            kept=pack_splits(self._split_depths < np.repeat(depths, self._n_splits)),
            depths=seal(depths),
            weights=seal(np.where(depths > 0, self._cut.weight, 0.0)),
            intercept=seal(np.array(self.problem.intercept)),
            loss=loss,
            objective=self._objective(loss, depths, self._cut.weight, alpha),
        )

    @property
    def residual(self) -> NDArray[np.float64]:
        """What is kept leaves unexplained now, times the weights of rows."""
        return self._cut.residual

    def renew(self, residual: NDArray[np.float64], problem: Problem | None = None) -> None:
        """Take another residual, and other weights of rows, with what is kept as it is."""
        if problem is None:
            # How it has moved is not known to the sketch: all of it counts as the rest.
            self._cut.moved[:] += distance(self._cut.residual, residual, self.problem.row_weight)
        else:
            depths, weights, order = self._cut.depth, self._cut.weight, self.order
            self._begin(problem)
            self.order = order
            self.cut_at(depths, weights)
        self._cut.residual[:] = residual
        if problem is not None:
            self.look_at(np.arange(self.order.size))

    def move_to(self, point: Point) -> None:
        """Cut the trees as `point` does; weights that are not free stay 1."""
        free = self.options.joint is not None
        self.cut_at(point.depths, np.where(free & (point.depths > 0), point.weights, 1.0))

    def cut_at(self, depths: NDArray[np.int64], weights: NDArray[np.float64]) -> None:
        """Cut the trees at `depths` and weight them."""
        problem = self.problem
        # Copies, which can be written to: for kernels, arrays that cannot are of another type.
        choice = depths.copy(), weights.copy()
        kernels.cut_trees(
            problem.encoding.codes, problem.row_weight, self.layers, self._cut, *choice
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

    def search(self, descent: Descent, alpha: float, max_iter: int, *, on_path: bool) -> None:
        """Look for something better around a solution that no single tree can improve."""
        if self.options.local_search is True:
            search_in_order(self, descent, alpha, max_iter, on_path=on_path)
        elif self.options.local_search:
            search_randomly(self, descent, alpha, max_iter, self._random)

    def alpha_range(self) -> tuple[float, float]:
        """Return the alphas between which a path goes from nothing kept to everything.

        The first is the smallest alpha at which no tree enters if none is there: a choice enters
        when what it gains exceeds ``alpha * cost / K``, so that is the greatest gain over cost. The
        last is where, coming from the full model, the first tree would give up a layer, trees that
        never want theirs left aside; both in closed form. Must be called before anything is solved.
        """
        costs = self.costs
        objective, _ = self.choices(0.0)
        some = np.isfinite(objective) & (costs > 0.0)
        highest = float((-objective[some] / costs[some]).max(initial=0.0))
        if highest <= 0.0:
            return 0.0, 0.0
        lowest = self.tuning.smallest_alpha * highest
        if self.options.joint is None:
            begun = self.save()
            self.cut_at(self.full_depths, np.ones(self.full_depths.size))
            self.look_at(np.arange(self.full_depths.size))
            objective, _ = self.choices(0.0)
            full = np.arange(self.full_depths.size), self.full_depths
            saved = costs[full][:, np.newaxis] - costs
            some = np.isfinite(objective) & (saved > 0.0)
            lost = objective - objective[full][:, np.newaxis]
            gives_up = np.divide(lost, saved, out=np.full_like(lost, np.inf), where=some).min(
                axis=1
            )
            wanted = gives_up[(gives_up > 0.0) & np.isfinite(gives_up)]
            # A little less, since at that very alpha keeping the layer and giving it up are equal.
            lowest = float(np.clip(0.99 * wanted.min(initial=highest), lowest, highest))
            self.restore(begun)
        return highest, lowest
