"""From a problem to pruned forests: descent, local search and polish, at one alpha or many."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from forestprune.exceptions import warn_caller
from forestprune.forest.checks import seal
from forestprune.forest.forest import Forest
from forestprune.options import Options
from forestprune.polish.polisher import Polished, Polisher
from forestprune.rows.encoding import Encoding
from forestprune.solve.kept import Subtrees, layers_as_subtrees
from forestprune.solve.layers.descent import Descent, Solution
from forestprune.solve.layers.search import better_of, search_in_order, search_randomly
from forestprune.solve.problem import pose
from forestprune.solve.subtrees.descent import SubtreeDescent
from forestprune.system.progress import track


@dataclass(frozen=True, eq=False)
class Point:
    """A pruned forest, as numbers about the trees of the full one.

    Attributes
    ----------
    alpha : float
    depths : int64 array of shape (n_trees,)
        How deep what is left of each tree is; 0 if it is gone.
    weights : float64 array of shape (n_trees,)
        How each tree is weighted; 0 if it is gone.
    intercept : float64 array of shape (n_outputs,)
        What is predicted if no tree adds anything.
    objective : float
        What was minimised, at these depths, weights and intercept.
    loss : float
        Mean squared error over var(y), on the rows that the forest was pruned with.
    n_iter : int
        Sweeps over all trees that it took.
    report : dict
        What else there is to say, if there is something: by polishing, or that was chosen.
    subtrees : Subtrees or None
        The nodes that are kept and what they add, if that is not what the depths say.
    """

    alpha: float
    depths: NDArray[np.int64]
    weights: NDArray[np.float64]
    intercept: NDArray[np.float64]
    objective: float
    loss: float
    n_iter: int
    report: dict[str, Any] = field(default_factory=dict)
    subtrees: Subtrees | None = None

    def kept(self, forest: Forest) -> Subtrees:
        """Return the nodes that are kept, in any case."""
        return self.subtrees or layers_as_subtrees(forest, self.depths)


class Solver:
    """Prunes one forest for one set of rows, each time from where it was left.

    Parameters
    ----------
    encoding : Encoding
    y : array-like of shape (m,), or (m, n_outputs)
    options : Options
    max_trees : int or None
        How many trees best-subset polishing keeps.
    """

    def __init__(
        self, encoding: Encoding, y: ArrayLike, options: Options, max_trees: int | None = None
    ) -> None:
        self.options = options
        self.max_trees = max_trees
        self.problem = pose(
            encoding,
            y,
            rule=options.rule,
            weighting=options.weighting,
            refit=options.refits,
            shrinkage=float(options.shrinkages[0]),
            joint=options.joint,
            alpha2=options.alpha2,
            n_jobs=options.n_jobs,
        )
        self._descent: Descent | SubtreeDescent
        if options.rule == "layer":
            self._descent = Descent(self.problem, n_jobs=options.n_jobs)
        else:
            self._descent = SubtreeDescent(self.problem, n_jobs=options.n_jobs)
        self._polisher = None if options.polish is None else Polisher(self.problem)
        self._random = check_random_state(options.random_state)

    def grid(self, n_alphas: int) -> NDArray[np.float64]:
        """Return alphas by equal factors from where nothing is kept to where everything is.

        Must be called before anything is solved.
        """
        highest, lowest = self._descent.alpha_range()
        return np.geomspace(highest, lowest, n_alphas) if highest > 0.0 else np.zeros(1)

    def solve(self, alpha: float) -> Point:
        """Descend from the present cut, search around, polish."""
        begun = self._descent.sweeps
        return self._point(self._descend(alpha, on_path=False), self._descent.sweeps - begun)

    def solve_alone(self, alpha: float) -> Point:
        """Descend from nothing kept; if there is time to search, from everything kept as well."""
        descent = self._descent
        begun = descent.sweeps
        best = self._descend(alpha, on_path=False)
        if isinstance(descent, Descent) and self.options.local_search is True:
            descent.move_to(self.problem.depths, np.ones(best.weights.size))
            best = better_of(best, self._descend(alpha, on_path=False))
        return self._point(best, descent.sweeps - begun)

    def path(self, alphas: NDArray[np.float64], max_nodes: int | None = None) -> list[Point]:
        """Solve for falling alphas, each from the solution before; end at the full model.

        With `max_nodes`, end once a solution has more: those that follow will have more still.
        """
        descent = self._descent
        solutions: list[Solution] = []
        sweeps: list[int] = []
        for alpha in track(alphas, "pruning", alphas.size):
            begun = descent.sweeps
            solutions.append(self._descend(float(alpha), on_path=True))
            sweeps.append(descent.sweeps - begun)
            if descent.is_full() or (max_nodes is not None and descent.n_nodes() > max_nodes):
                break
        if isinstance(descent, Descent) and self.options.local_search is True:
            self._compare_neighbours(descent, solutions, sweeps)
        pairs = zip(solutions, sweeps, strict=True)
        return [self._point(*pair) for pair in track(pairs, "polishing", len(solutions))]

    def _compare_neighbours(
        self, descent: Descent, solutions: list[Solution], sweeps: list[int]
    ) -> None:
        """Go back and forth on a path again, each from its neighbour; keep what is better.

        With the trees in the order they stand in: different ways get stuck in different places.
        """
        order, descent.order = descent.order, np.arange(descent.order.size)
        last = len(solutions) - 1
        back, forth = [(i, i + 1) for i in range(last)][::-1], [(i + 1, i) for i in range(last)]
        for i, neighbour in track(back + forth, "comparing neighbours", 2 * last):
            begun = descent.sweeps
            descent.move_to(solutions[neighbour].depths, solutions[neighbour].weights)
            descent.descend(solutions[i].alpha, self.options.max_iter)
            again = descent.solution(solutions[i].alpha)
            solutions[i] = better_of(solutions[i], again)
            sweeps[i] += descent.sweeps - begun
        descent.order = order

    def deepen(self, point: Point, alphas: NDArray[np.float64]) -> list[Point]:
        """Solve for more, falling alphas with no other trees than those of `point`."""
        descent = self._descent
        self.go_to(point)
        absent = [int(tree) for tree in np.flatnonzero(point.depths == 0)]
        points = []
        for alpha in track(alphas, "deepening", alphas.size):
            begun = descent.sweeps
            descent.descend(float(alpha), self.options.max_iter, held=absent)
            points.append(self._point(descent.solution(float(alpha)), descent.sweeps - begun))
        return points

    def go_to(self, point: Point) -> None:
        """Let the next solution begin at `point`."""
        if isinstance(self._descent, SubtreeDescent):
            self._descent.move_to(point.kept(self.problem.encoding.forest))
            return
        weights = np.ones(point.weights.size)
        if self.options.joint is not None:
            weights = np.where(point.depths > 0, point.weights, weights)
        self._descent.move_to(point.depths, weights)

    def _descend(self, alpha: float, *, on_path: bool) -> Solution:
        """Descend from the present cut and search around."""
        options, descent = self.options, self._descent
        converged = descent.descend(alpha, options.max_iter)
        if not isinstance(descent, Descent):
            pass
        elif options.local_search is True:
            search_in_order(descent, alpha, options.max_iter, on_path=on_path)
        elif options.local_search:
            search_randomly(
                descent,
                alpha,
                options.max_iter,
                self._random,
                most_correlated=options.local_search == "correlated",
            )
        solution = descent.solution(alpha)
        if not converged:
            warn_caller(
                f"At alpha={alpha:.3g} trees still changed after max_iter={options.max_iter} "
                f"sweeps; the objective has come down to {solution.objective:.6g}. The solution "
                "is valid but might be improved: raise max_iter.",
                ConvergenceWarning,
            )
        return solution

    def _point(self, solution: Solution, n_iter: int) -> Point:
        depths, weights, subtrees = solution.depths, solution.weights, solution.subtrees
        loss, penalty = solution.loss, solution.objective - solution.loss
        intercept, report = self.problem.intercept, {}
        polished = self._polish(depths, subtrees)
        if polished is not None:
            depths = np.where(polished.weights != 0.0, depths, 0)
            weights, intercept = polished.weights, polished.intercept
            loss, report = polished.loss, polished.report
            subtrees = polished.subtrees or subtrees
            if subtrees is not None:
                subtrees = subtrees.without(self.problem.encoding.forest, depths == 0)
            penalty = self._penalty(depths, weights, subtrees, solution.alpha)
        return Point(
            alpha=solution.alpha,
            depths=seal(depths),
            weights=seal(np.where(depths > 0, weights, 0.0)),
            intercept=seal(np.array(intercept)),
            objective=loss + penalty,
            loss=loss,
            n_iter=n_iter,
            report=report,
            subtrees=subtrees,
        )

    def _penalty(
        self,
        depths: NDArray[np.int64],
        weights: NDArray[np.float64],
        subtrees: Subtrees | None,
        alpha: float,
    ) -> float:
        if isinstance(self._descent, SubtreeDescent) and subtrees is not None:
            return self._descent.penalty(subtrees, weights, alpha)
        return self.problem.penalty(depths, weights, alpha)

    def _polish(self, depths: NDArray[np.int64], subtrees: Subtrees | None) -> Polished | None:
        options = self.options
        if self._polisher is None:
            return None
        if options.polish == "ridge":
            return self._polisher.ridge(depths, options.alpha2, subtrees)
        if options.polish == "leaf":
            kept = subtrees or layers_as_subtrees(self.problem.encoding.forest, depths)
            return self._polisher.leaf(kept)
        return self._polisher.subset(
            depths,
            subtrees,
            max_trees=self.max_trees,
            alpha2=options.alpha2,
            solver=options.solver,
            time_limit=options.time_limit,
        )
