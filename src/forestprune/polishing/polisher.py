"""Polishing as the options say."""

from dataclasses import replace

import numpy as np

from forestprune.exceptions import OptionError
from forestprune.options import Options
from forestprune.polishing.leaf import refit_leaves
from forestprune.polishing.ridge import ridge_weights
from forestprune.polishing.subset_weights import subset_weights
from forestprune.polishing.tree_equations import TreeEquations
from forestprune.solve.contributions import Predictions
from forestprune.solve.expanded import STEEPER, ExpandedRule
from forestprune.solve.point import Point
from forestprune.solve.problem import Problem
from forestprune.solve.rule import Rule

ROUNDS, ENOUGH = 10, 1e-6
"""How often a loss is expanded anew at most, and what the last time may gain."""


class Polisher:
    """Polishes one point after another of the problem of a rule.

    Parameters
    ----------
    rule : Rule
    options : Options
        Of these: polish, alpha2, solver, time_limit, shrinkage.
    max_trees : int or None
        How many trees ``polish="subset"`` keeps.
    """

    def __init__(self, rule: Rule, options: Options, max_trees: int | None = None) -> None:
        self._rule, self._options, self._max_trees = rule, options, max_trees
        self._weighs = options.polish in ("ridge", "subset")
        self._shrinkage = rule.problem.curvature * float(options.shrinkages[0])
        self._equations: TreeEquations | None = None
        forest = rule.problem.encoding.forest
        if options.polish == "subset" and forest.tree_output.size:
            raise OptionError(
                "{polish='subset'} keeps the best trees of a model in which every tree adds to all "
                f"outputs; here each adds to one of {forest.n_outputs}. Use {{polish='ridge'}}."
            )
        if self._weighs and not isinstance(rule, ExpandedRule):
            self._equations = TreeEquations(rule.problem)

    def polish(self, point: Point) -> Point:
        """Return the point with other weights or leaf values, if it is to be polished."""
        if self._options.polish is None:
            return point
        if isinstance(self._rule, ExpandedRule):
            return self._expanded(self._rule, point)
        polished = self._polished(self._rule.problem, self._equations, point)
        return replace(polished, objective=self._rule.priced(polished))

    def _polished(self, problem: Problem, equations: TreeEquations | None, point: Point) -> Point:
        """Return a point polished for squared error."""
        options = self._options
        if not self._weighs:
            return refit_leaves(problem, point, self._shrinkage)
        equations = equations or TreeEquations(problem)
        if options.polish == "ridge":
            return ridge_weights(equations, point, options.alpha2)
        return subset_weights(equations, point, options, self._max_trees)

    def _expanded(self, rule: ExpandedRule, point: Point) -> Point:
        """Return a point polished for any loss, which is expanded around what was found last."""
        problem = rule.problem
        predictions = Predictions(problem.encoding, problem.trees)
        predictions.move_to(point)
        raw, best, steepness = predictions.values + point.intercept[:, np.newaxis], point, 1.0
        for _ in range(ROUNDS):
            # Always of the trees as they were pruned: what has no weight may come back.
            parts = zip(rule.problems_at(raw, steepness), rule.apart(point), strict=True)
            found = [self._polished(part, None, own) for part, own in parts]
            polished = replace(rule.joined(found), alpha=point.alpha, report=found[0].report)
            predictions.move_to(polished)
            at = predictions.values + polished.intercept[:, np.newaxis]
            polished = replace(polished, loss=problem.unexplained_by(at), n_iter=point.n_iter)
            gained = best.loss - polished.loss
            if best is point or gained > 0.0:
                best, raw = polished, at
            else:
                steepness *= STEEPER
            if 0.0 <= gained <= ENOUGH:
                break
        return replace(best, objective=rule.priced(best))
