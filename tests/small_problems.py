"""Drawn cases as problems of the subtree rule."""

from forestprune.solve.subtrees.descent import SubtreeDescent
from hypothesis import strategies as st

from forestprune import encode
from forestprune.solve import problem

shrinkages = st.sampled_from([None, 0.0, 0.5, 10.0])


def pose(case, shrinkage, node_costs=None):
    """Return a case as a problem; without a shrinkage, leaves keep their values."""
    return problem.pose(
        encode(case.forest, case.X, sample_weight=case.weights),
        case.y,
        rule="subtree",
        weighting="node" if node_costs is None else node_costs,
        refit=shrinkage is not None,
        shrinkage=shrinkage or 0.0,
    )


def begun(case, shrinkage, alpha, begin):
    """Return a descent that keeps what is best at alpha `begin`, on whole trees, and a price."""
    descent = SubtreeDescent(pose(case, shrinkage))
    descent.descend(begin, 3)
    descent._move_to_trunks(descent._whole)
    return descent, descent._price(alpha)
