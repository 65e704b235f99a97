"""From a problem to points: descent, search and polish, at one alpha or along a path."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from forestprune.exceptions import OptionError, named, warn_caller
from forestprune.forest.forest import Forest
from forestprune.forest.symmetric import gains_by_symmetry
from forestprune.options import Options
from forestprune.polishing.polisher import Polisher
from forestprune.select.ending import LEAST, Falling
from forestprune.select.references import Reference, next_to
from forestprune.solve.contributions import predict_codes
from forestprune.solve.descent import Descent
from forestprune.solve.dual.certificate import Certificate
from forestprune.solve.exact import BranchAndBound, small_rule
from forestprune.solve.expanded import ExpandedRule
from forestprune.solve.layers.rule import LayerRule
from forestprune.solve.oblivious import ObliviousRule
from forestprune.solve.point import Point, pack_splits
from forestprune.solve.problem import Problem
from forestprune.solve.rule import Rule
from forestprune.solve.subtrees.rule import SubtreeRule
from forestprune.system.progress import track

RULES: dict[str, type[SubtreeRule] | type[ObliviousRule] | type[LayerRule]] = {
    "subtree": SubtreeRule,
    "oblivious": ObliviousRule,
    "layer": LayerRule,
}


def rule_for(
    forest: Forest, options: Options
) -> type[SubtreeRule] | type[ObliviousRule] | type[LayerRule]:
    """Return the rule that options ask for, or that suits a forest if they leave it open."""
    suits = "oblivious" if options.rule is None and gains_by_symmetry(forest) else "subtree"
    return RULES[options.rule or suits]


MIN_GAIN = 1e-10
"""A solution is better than another if its objective is lower by more than this."""

HALVINGS = 8
"""How often the gap between the last alpha within a budget and the next is halved."""


class Solver:
    """Prunes one forest for one set of rows, each time from where it was left.

    Parameters
    ----------
    problem : Problem
    options : Options
        With one shrinkage, or the first counts.
    max_trees : int or None
        How many trees best-subset polishing keeps.
    about : dict
        What there is to say of each point.
    warn : function or None
        Is told if a descent does not end; None warns who called the package.
    """

    def __init__(
        self,
        problem: Problem,
        options: Options,
        max_trees: int | None = None,
        about: dict[str, Any] | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        self.problem = problem
        self.options = options
        self.rule = make_rule(problem, options)
        self._descent = Descent(self.rule)
        self._polisher = Polisher(self.rule, options, max_trees)
        self._about = about or {}
        self._warn = warn or partial(warn_caller, category=ConvergenceWarning)
        self._references: Sequence[Reference] = ()
        self._reference: Reference | None = None

    def correct_by(self, references: Sequence[Reference]) -> None:
        """From now on let rows stand for others too: at each alpha by the reference next to it."""
        self._references = references

    def _correct(self, alpha: float) -> None:
        """Take the correction that is known next to an alpha."""
        nearest = next_to(alpha, self._references)
        if nearest is None or nearest is self._reference:
            return
        now, self._reference = self.rule.point(alpha), nearest
        self.rule.move_to(nearest.point)
        self.rule.correct(nearest.sums)
        self.rule.move_to(now)

    def grid(self, n_alphas: int) -> NDArray[np.float64]:
        """Return alphas by equal factors from where nothing is kept to where everything is.

        Must be called before anything is solved.
        """
        highest, lowest = self.rule.alpha_range()
        return np.geomspace(highest, lowest, n_alphas) if highest > 0.0 else np.zeros(1)

    def solve(self, alpha: float, *, held: Sequence[int] = ()) -> Point:
        """Descend from what is kept now, but for trees that are held; search around, polish."""
        return self._finished(self._descend(alpha, on_path=False, held=held))

    def solve_alone(self, alpha: float, n_alphas: int) -> Point:
        """Solve for one alpha; must be called before anything is solved.

        A rule that searches descends from nothing kept, and from everything. Others go down a path
        of `n_alphas` as far as `alpha`, so that the solution is what that path has there; if
        nothing costs anything, they descend from nothing.
        """
        if self.rule.searches:
            best = self._descend(alpha, on_path=False)
            self.rule.move_to(everything(self.problem))
            best = _better_of(best, self._descend(alpha, on_path=False))
        else:
            if alpha > 0.0:
                grid, least = self.grid(n_alphas), max(alpha * (1.0 + 1e-9), LEAST)
                above = takewhile(lambda other: other > least, Falling(grid))
                for each in track(above, "pruning", grid.size):
                    self._descend(each, on_path=True)
            best = self._descend(alpha, on_path=True)
        return self._finished(replace(best, n_iter=self._descent.sweeps))

    def solve_exactly(self, alpha: float, n_alphas: int) -> Point:
        """Solve for one alpha by branch and bound, from what :meth:`solve_alone` finds."""
        options = self.options
        rule = small_rule(self.rule, options)
        begun, found = perf_counter(), self.solve_alone(alpha, n_alphas)
        search = BranchAndBound(rule, found, options.max_iter, options.time_limit)
        proved = search.solve()
        certificate = Certificate.of(
            proved.point.objective,
            proved.bound,
            perf_counter() - begun,
            timed_out=proved.timed_out,
        )
        report = found.report | {"certificate": certificate.to_dict()}
        return replace(proved.point, report=report)

    def path(
        self,
        alphas: NDArray[np.float64] | Falling,
        ends: Callable[[Point], bool] | None = None,
    ) -> list[Point]:
        """Solve for falling alphas, each from the solution before.

        Until the full model is reached, or `ends` says of a point that it is the last. Of rules
        that search, `ends` sees points before neighbours are compared, and before polishing.
        """
        points: list[Point] = []
        for alpha in track(alphas, "pruning", len(alphas), power=2.0):
            point = self._descend(float(alpha), on_path=True)
            points.append(point if self.rule.searches else self._finished(point))
            # Which is to see every point, the full model too.
            ended = ends is not None and ends(points[-1])
            if ended or self.rule.is_full():
                break
        if not self.rule.searches:
            return points
        self._compare_neighbours(points)
        return [self._finished(p) for p in track(points, "polishing", len(points))]

    def _compare_neighbours(self, points: list[Point]) -> None:
        """Go back and forth on a path again, each from its neighbour; keep what is better.

        With the trees in the order they stand in: different ways get stuck in different places.
        """
        rule, descent = self.rule, self._descent
        order, rule.order = rule.order, np.arange(rule.order.size)
        last = len(points) - 1
        back, forth = [(i, i + 1) for i in range(last)][::-1], [(i + 1, i) for i in range(last)]
        for i, neighbour in track(back + forth, "comparing neighbours", 2 * last):
            begun = descent.sweeps
            rule.move_to(points[neighbour])
            descent.descend(points[i].alpha, self.options.max_iter)
            n_iter = points[i].n_iter + descent.sweeps - begun
            best = _better_of(points[i], rule.point(points[i].alpha))
            points[i] = replace(best, n_iter=n_iter)
        rule.order = order

    def deepen(self, point: Point, alphas: NDArray[np.float64]) -> list[Point]:
        """Solve for more, falling alphas with no other trees than those of `point`."""
        rule, descent, points = self.rule, self._descent, []
        rule.move_to(point)
        absent = [int(tree) for tree in np.flatnonzero(point.depths == 0)]
        for alpha in track(alphas, "deepening", alphas.size):
            begun = descent.sweeps
            self._correct(float(alpha))
            descent.descend(float(alpha), self.options.max_iter, held=absent)
            found = replace(rule.point(float(alpha)), n_iter=descent.sweeps - begun)
            points.append(self._finished(found))
        return points

    def refine(self, within: Point, beyond: Point, fits: Callable[[Point], bool]) -> list[Point]:
        """Return points between two, of which one fits into a budget and the next does not.

        First coming from the smaller one, then from the larger.
        """
        found: list[Point] = []
        for _ in track(range(HALVINGS), "refining", HALVINGS):
            self.rule.move_to(within)
            point = self.solve(float(np.sqrt(within.alpha * beyond.alpha)))
            found.append(point)
            if fits(point):
                within = point
            else:
                beyond = point
        self.rule.move_to(beyond)
        for factor in track(np.geomspace(1.0, 2.0, HALVINGS + 1)[1:], "refining", HALVINGS):
            found.append(self.solve(factor * beyond.alpha))
            if fits(found[-1]):
                break
        return found

    def full(self) -> Point:
        """Return the full model as a point, with its loss and objective."""
        problem, full = self.problem, everything(self.problem)
        full = replace(full, loss=problem.unexplained_by(predict_codes(problem.encoding)))
        return replace(full, objective=self.rule.priced(full))

    def _finished(self, point: Point) -> Point:
        """Return a point polished, with what there is to say of it."""
        polished = self._polisher.polish(point)
        return replace(polished, report=polished.report | self._about) if self._about else polished

    def _descend(self, alpha: float, *, on_path: bool, held: Sequence[int] = ()) -> Point:
        """Descend from what is kept now and search around."""
        rule, descent, max_iter = self.rule, self._descent, self.options.max_iter
        self._correct(alpha)
        begun = descent.sweeps
        converged = descent.descend(alpha, max_iter, held=held)
        rule.search(descent, alpha, max_iter, on_path=on_path)
        point = replace(rule.point(alpha), n_iter=descent.sweeps - begun)
        if not converged:
            self._warn(
                f"At alpha={alpha:.3g} trees still changed after {named('max_iter', max_iter)} "
                f"sweeps; the objective has come down to {point.objective:.6g}. The solution is "
                "valid but might be improved: raise {max_iter}."
            )
        return point


def make_rule(problem: Problem, options: Options) -> Rule:
    """Return the rule for a problem: of squared error as it is, of other losses by expansions."""
    forest = problem.encoding.forest
    kind = rule_for(forest, options)
    if problem.loss.quadratic and not forest.tree_output.size:
        return kind(problem, options)
    if options.joint is not None:
        raise OptionError(
            f"{named('joint', repr(options.joint))} is for squared error and trees that add to all "
            "outputs. This model has another loss, or trees for each output: use "
            "{polish='ridge'}, which reweights trees that are pruned."
        )
    return ExpandedRule(problem, options, kind)


def everything(problem: Problem) -> Point:
    """Return the full model as a point, its loss left open."""
    forest = problem.encoding.forest
    splits = np.ones((forest.n_nodes - forest.n_trees) // 2, np.bool_)
    weights = (forest.depths > 0).astype(np.float64)
    return Point(0.0, pack_splits(splits), forest.depths, weights, problem.intercept, 0.0, 0.0)


def _better_of(incumbent: Point, other: Point) -> Point:
    """Return the other point if it is better, not just by rounding."""
    return other if other.objective < incumbent.objective - MIN_GAIN else incumbent
