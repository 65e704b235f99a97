"""Trees of a forest to trees that may change, and back."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from forestprune import kernels
from forestprune.forest.category_sets import unpack_categories
from forestprune.forest.constraints import node_boxes
from forestprune.forest.forest import Forest
from forestprune.forest.new_splits import NewTree, SplitLimits, new_splits
from forestprune.kernels.records import MOST_BINS, NUMERIC, ONE_RIGHT
from forestprune.polishing.split.tree import BinnedTree
from forestprune.rows.bins import Bins

Floats = NDArray[np.float64]


def binned_trees(forest: Forest, bins: Bins) -> list[BinnedTree]:
    """Return the trees of a forest, their splits moved to the nearest borders of bins.

    Their values are what nodes add to the prediction.
    """
    value, boxes = forest.scaled_value, node_boxes(forest)
    scale = forest.scale[forest.tree_of_node, np.newaxis]
    low = high = np.empty((0, 0))
    if boxes is not None:
        with np.errstate(invalid="ignore"):  # a scale of 0 leaves nothing of what has no end
            low, high = (np.nan_to_num(scale * box, nan=0.0, posinf=np.inf) for box in boxes)
        low, high = np.minimum(low, high), np.maximum(low, high)
    trees = []
    for first, last in zip(forest.offsets[:-1].tolist(), forest.offsets[1:].tolist(), strict=True):
        nodes = slice(first, last)
        tree = BinnedTree.blank(last - first, value.shape[1], bounded=boxes is not None)
        tree.left[:], tree.feature[:] = forest.left[nodes], forest.feature[nodes]
        tree.value[:] = value[nodes].T
        if boxes is not None:
            tree.low[:], tree.high[:] = low[nodes].T, high[nodes].T
        for v in np.flatnonzero(tree.left >= 0).tolist():
            tree.border[v], tree.goes_left[v], tree.exact[v] = _question(forest, first + v, bins)
            tree.node[v] = first + v
        trees.append(tree)
    return trees


def _question(forest: Forest, node: int, bins: Bins) -> tuple[int, NDArray[np.bool_], bool]:
    """Return what a node of a forest asks of bins, as far as these can tell.

    That is the border, which bins go left, and whether this is exactly what it asks.
    """
    column = int(forest.feature[node])
    borders, absent = bins.borders[column], bins.count(column) - 1
    kind = bins.columns.kind[column]
    goes_left = np.zeros(MOST_BINS, np.bool_)
    categories = _left_categories(forest, node)
    if (categories is None) != (kind == NUMERIC):
        return -2, goes_left, False
    if categories is not None:
        goes_left[: borders.size] = np.isin(borders, categories)
        # The last bin is of many categories; where one is asked for, of all but that one.
        goes_left[absent] = kind == ONE_RIGHT
        if kind == ONE_RIGHT:
            exact = np.count_nonzero(~goes_left[:absent]) == 1
            return -1 if exact else -2, goes_left, exact
        known = bool(np.isin(categories, borders).all())
        return -1, goes_left, known and not forest.missing_left[node]
    if not borders.size:  # a column that has one number or none, which other forests leave alone
        return -2, goes_left, False
    threshold = forest.threshold[node]
    place = min(int(np.searchsorted(borders, threshold)), borders.size - 1)
    if place > 0 and threshold - borders[place - 1] < borders[place] - threshold:
        place -= 1
    goes_left[: place + 1] = True
    if bins.columns.missing[column] > -2:
        goes_left[absent] = forest.missing_left[node]
    return place, goes_left, bool(borders[place] == threshold)


def _left_categories(forest: Forest, node: int) -> tuple[int, ...] | None:
    """Return the categories that go left at a node; None if it asks for a number."""
    if not forest.category_set.size or forest.category_set[node] < 0:
        return None
    number = int(forest.category_set[node])
    first, last = forest.set_offsets[number : number + 2]
    return unpack_categories(forest.set_words[first:last])


def new_tree(
    forest: Forest,
    number: int,
    bins: Bins,
    limits: SplitLimits,
    tree: BinnedTree,
    leaf: NDArray[np.int32],
    cover: Floats,
) -> NewTree:
    """Return a tree as tree `number` of a forest takes it.

    ``leaf[x]`` is the leaf that row x is in, and cover[x] what it counts there. Splits that are the
    forest's own stay as they are, whatever bins there are.
    """
    order = np.empty(tree.left.size, np.int32)
    right = np.where(tree.left >= 0, tree.left + 1, np.int32(-1))
    kernels.level_order(tree.left, right, order)
    place = np.argsort(order).astype(np.int32)
    n_nodes, is_split = order.size, tree.left[order] >= 0
    left = np.where(is_split, place[tree.left[order]], np.int32(-1))
    rows = np.bincount(place[leaf], minlength=n_nodes)
    weight = np.bincount(place[leaf], cover, minlength=n_nodes).astype(np.float64)
    for v in np.flatnonzero(is_split)[::-1].tolist():
        for counts in (rows, weight):
            counts[v] = counts[left[v]] + counts[left[v] + 1]
    scale = forest.scale[number]
    value = np.ascontiguousarray(tree.value[:, order].T) / (scale if scale else 1.0)
    kernels.average_up(left, weight, value)
    threshold, missing_left = np.zeros(n_nodes), np.zeros(n_nodes, np.bool_)
    sets: dict[int, Sequence[int]] = {}
    for v in np.flatnonzero(is_split).tolist():
        old = int(order[v])
        column, node = int(tree.feature[old]), int(tree.node[old])
        categories = _left_categories(forest, node) if node >= 0 else None
        if node >= 0:
            threshold[v] = forest.threshold[node]
            missing_left[v] = forest.missing_left[node] and limits.missing[column] > -2
            if categories is not None:
                sets[v] = categories
        elif tree.border[old] < 0:
            sets[v] = _new_set(bins, limits, column, tree.goes_left[old])
        else:
            threshold[v] = bins.borders[column][tree.border[old]]
            if bins.columns.missing[column] > -2:
                missing_left[v] = tree.goes_left[old, bins.count(column) - 1]
    own = np.maximum(tree.node[order], 0)
    before = new_splits(forest)
    return NewTree(
        left=left,
        feature=np.where(is_split, tree.feature[order], np.int32(-1)),
        threshold=threshold,
        missing_left=missing_left,
        value=value,
        cover=weight,
        gain=np.where(is_split, tree.gain[order], 0.0),
        rows=rows,
        left_categories=sets,
        is_new=is_split & ((tree.node[order] < 0) | before[own]),
    )


def _new_set(
    bins: Bins, limits: SplitLimits, column: int, goes_left: NDArray[np.bool_]
) -> list[int]:
    """Return the categories that go left at a new split."""
    known = bins.borders[column].astype(np.int64)
    chosen = goes_left[: known.size]
    if not limits.one_category:
        found: list[int] = known[chosen].tolist()
        return found
    everything = np.arange(limits.max_category[column])
    others: list[int] = np.setdiff1d(everything, known[~chosen]).tolist()
    return others
