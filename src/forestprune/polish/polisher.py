"""Polishing as the options say."""

from dataclasses import replace

from forestprune.options import Options
from forestprune.polish.leaf import refit_leaves
from forestprune.polish.ridge import ridge_weights
from forestprune.polish.subset_weights import subset_weights
from forestprune.polish.tree_equations import TreeEquations
from forestprune.solve.point import Point
from forestprune.solve.rule import Rule


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
        weighs = options.polish in ("ridge", "subset")
        self._equations = TreeEquations(rule.problem) if weighs else None
        self._shrinkage = rule.problem.curvature * float(options.shrinkages[0])

    def polish(self, point: Point) -> Point:
        """Return the point with other weights or leaf values, if it is to be polished."""
        options = self._options
        if self._equations is None:
            if options.polish != "leaf":
                return point
            polished = refit_leaves(self._rule.problem, point, self._shrinkage)
        elif options.polish == "ridge":
            polished = ridge_weights(self._equations, point, options.alpha2)
        else:
            polished = subset_weights(self._equations, point, options, self._max_trees)
        return replace(polished, objective=self._rule.priced(polished))
