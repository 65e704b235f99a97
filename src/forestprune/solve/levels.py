"""Points that keep levels of symmetric trees: which leaves become one, and what they add."""

import numpy as np
from numpy.typing import NDArray

from forestprune import kernels
from forestprune.forest.constraints import Boxes
from forestprune.forest.forest import Forest
from forestprune.forest.symmetric import level_directions
from forestprune.rows.trees import first_leaves
from forestprune.solve.point import Point, kept_leaves
from forestprune.solve.problem import Problem


def levels_of(forest: Forest, point: Point) -> NDArray[np.uint32]:
    """Return the levels that a point keeps of symmetric trees; if it does not say, the first."""
    return first_levels(forest, point.depths) if point.levels is None else point.levels


def first_levels(forest: Forest, depths: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Return the levels of symmetric trees that are cut at depths, of shape (..., n_trees)."""
    levels: NDArray[np.int64] = ((1 << depths) - 1) << (forest.depths - depths)
    return levels.astype(np.uint32)


def columns_of_leaves(forest: Forest, point: Point) -> NDArray[np.int64]:
    """Return which leaf of a point with levels each leaf of the forest is in; -1 if in none."""
    first = first_leaves(forest.offsets)
    cells = np.zeros(int(first[-1]), np.uint32)
    levels = np.array(point.levels, dtype=np.int64)
    present = np.flatnonzero(levels)
    kernels.number_level_leaves(present, first, levels, cells)
    counts = np.where(levels > 0, 1 << np.bitwise_count(levels).astype(np.int64), 0)
    column = np.repeat(np.cumsum(counts) - counts, np.diff(first)) + cells.astype(np.int64)
    return np.where(np.repeat(levels > 0, np.diff(first)), column, -1)


def leaf_origins(problem: Problem, point: Point) -> NDArray[np.float64]:
    """Return what each leaf of a point adds in the unpruned forest: shape (n_outputs, n_leaves).

    Where levels are dropped, the mean of the leaves that it was made of, weighted by cover.
    """
    forest, origin = problem.encoding.forest, problem.trees.origin
    if point.levels is None:
        return origin[:, kept_leaves(forest, point.splits(forest))]
    column = columns_of_leaves(forest, point)
    leaves = np.flatnonzero(forest.left < 0)[column >= 0]
    column = column[column >= 0]
    cover, count = np.bincount(column, forest.cover[leaves]), np.bincount(column)
    means = np.empty((origin.shape[0], count.size))
    for mean, values in zip(means, origin[:, leaves], strict=True):
        weighted = np.bincount(column, forest.cover[leaves] * values)
        plain = np.bincount(column, values) / count
        mean[:] = np.divide(weighted, cover, out=plain, where=cover > 0.0)
    return means


def level_boxes(forest: Forest, point: Point, value: NDArray[np.float64]) -> Boxes:
    """Return between what leaves may add so that constraints are kept, given what they add now.

    Two leaves that differ in one constrained level alone part halfway between their values.
    """
    low, high = np.full_like(value, -np.inf), np.full_like(value, np.inf)
    start, kept_levels = 0, levels_of(forest, point)
    rising, falling = level_directions(forest)
    for tree in np.flatnonzero(point.depths).tolist():
        levels, k = int(kept_levels[tree]), int(point.depths[tree])
        shape, mine = (-1, *(2,) * k), slice(start, start + 2**k)
        start += 2**k
        now, least, most = (array[:, mine].reshape(shape) for array in (value, low, high))
        kept = [bit for bit in range(levels.bit_length())[::-1] if levels >> bit & 1]
        for axis, bit in enumerate(kept, 1):
            way = (int(rising[tree]) >> bit & 1) - (int(falling[tree]) >> bit & 1)
            if way:
                a, b = (np.moveaxis(now, axis, 0)[side] for side in (0, 1))
                below, above = (0, 1) if way > 0 else (1, 0)
                middle = 0.5 * a + 0.5 * b
                under, over = np.moveaxis(most, axis, 0)[below], np.moveaxis(least, axis, 0)[above]
                np.minimum(under, middle, out=under)
                np.maximum(over, middle, out=over)
        low[:, mine], high[:, mine] = least.reshape(-1, 2**k), most.reshape(-1, 2**k)
    return low, high
