"""Drawn cases as problems of the subtree rule."""

import numpy as np
from hypothesis import strategies as st

from forestprune.options import Options
from forestprune.solve.descent import Descent
from forestprune.solve.subtrees.rule import SubtreeRule
from forestprune.solve.subtrees.tuning import Tuning

shrinkages = st.sampled_from([None, 0.0, 0.5, 10.0])

SMALL_AS_LARGE = {"large": 0, "gram_rows": 0}
"""Small forests are treated as large ones are."""


def options(shrinkage, node_costs=None):
    """Return options of the rule; without a shrinkage, leaves keep their values."""
    weighting = "node" if node_costs is None else node_costs
    refit = shrinkage is not None
    return Options(refit=refit, shrinkage=shrinkage if refit else None, weighting=weighting)


def subtree_rule(problem, shrinkage, node_costs=None, **tuning):
    """Return a rule for a problem, with nothing kept."""
    return SubtreeRule(problem, options(shrinkage, node_costs), Tuning(**SMALL_AS_LARGE | tuning))


def descended(rule, alpha, max_iter=1000):
    """Let a rule descend; return it."""
    Descent(rule).descend(alpha, max_iter)
    return rule


def changes(rule, alpha):
    """Return how many trees change in a sweep over all of them."""
    return rule.sweep(alpha, np.array(rule.order))[0]
