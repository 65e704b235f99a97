"""New values for all leaves of what is kept, fitted together."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from forestprune.forest.build import average_of_leaves
from forestprune.forest.checks import seal
from forestprune.forest.constraints import Boxes, node_boxes
from forestprune.forest.forest import Forest
from forestprune.polishing.leaf_fit import Correction, LeafFit, Leaves
from forestprune.solve.levels import leaf_origins, level_boxes
from forestprune.solve.point import Point, kept_leaves, kept_mask
from forestprune.solve.problem import Problem


def refit_leaves(problem: Problem, point: Point, shrinkage: float) -> Point:
    """Fit the values of all leaves at once, each drawn to its value in the unpruned forest.

    Penalises ``shrinkage * sum of (value - original value)^2 / (m var(y))``, so in rows: with as
    many rows as `shrinkage`, a leaf goes half of the way. The objective is still that of `point`.
    """
    origin = leaf_origins(problem, point)
    begun = origin if point.values is None else point.values
    boxes = boxes_around(problem, point, begun)
    return fit_leaves(problem, replace(point, values=begun), shrinkage, origin, boxes)


def boxes_around(problem: Problem, point: Point, value: NDArray[np.float64]) -> Boxes | None:
    """Return between what the leaves of a point may add if they add some values now."""
    forest, constrained = problem.encoding.forest, problem.trees.low.size
    if not constrained:
        return None
    if point.levels is not None:
        return level_boxes(forest, point, value)
    return leaf_boxes(forest, point.splits(forest), value)


def fit_leaves(
    problem: Problem,
    point: Point,
    shrinkage: float,
    origin: NDArray[np.float64],
    boxes: Boxes | None,
    constant: NDArray[np.float64] | None = None,
    correction: Correction | None = None,
) -> Point:
    """Fit the values of all leaves of a point that has such, each drawn to its `origin`.

    They stay within `boxes`, if there are any. The `constant` is what the point's intercept has
    beyond that of the problem, None for nothing; with a `correction` rows stand for others too.
    """
    forest, row_weight = problem.encoding.forest, problem.row_weight
    leaves = Leaves.of(problem.encoding.codes, problem.trees, point.splits(forest), point.levels)
    value = np.array(point.values)
    constant = np.zeros(forest.n_outputs) if constant is None else constant.copy()
    residual = problem.residual.copy()
    rise = np.repeat(constant[:, np.newaxis], residual.shape[1], axis=1)
    leaves.add_to(value, rise)
    residual -= rise * row_weight if row_weight.size else rise
    about = (constant, boxes, correction)
    LeafFit(leaves, row_weight, residual, value, origin, shrinkage, *about).solve()
    return replace(
        point,
        values=seal(value),
        weights=seal((point.depths > 0).astype(np.float64)),
        intercept=seal(problem.intercept + constant),
        loss=problem.unexplained(residual),
        report={},
    )


def leaf_boxes(
    forest: Forest, splits: NDArray[np.bool_], value: NDArray[np.float64]
) -> Boxes | None:
    """Return between what the leaves of what is kept may add, given what they add now.

    From bounds between present values, which keep the constraints, rather than between those of
    the original, which others may have outgrown. None if there are no constraints.
    """
    mask = kept_mask(forest, splits)
    added = np.zeros_like(forest.value)
    added[kept_leaves(forest, splits)] = value.T
    kept = replace(forest.keep(mask), value=added[mask], scale=np.ones(forest.n_trees))
    boxes = node_boxes(average_of_leaves(kept))
    if boxes is None:
        return None
    is_leaf = (kept.left < 0) & (kept.node_depths > 0)
    low, high = (np.ascontiguousarray(bound[is_leaf].T) for bound in boxes)
    return low, high
