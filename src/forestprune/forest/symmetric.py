"""Symmetric trees: those that ask the same in all nodes of a level.

What such a tree computes does not depend on the order of its levels. Levels are named by bits, the
last one lowest, as in the number of a leaf.
"""

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from forestprune import kernels
from forestprune.exceptions import OptionError
from forestprune.forest.build import average_of_leaves
from forestprune.forest.cutting import take_nodes

if TYPE_CHECKING:
    from forestprune.forest.forest import Forest

Levels = NDArray[np.uint32]


def is_symmetric(forest: "Forest") -> bool:
    """Tell whether every tree is symmetric."""
    depths, sizes = forest.depths, np.diff(forest.offsets)
    if (sizes != 2 ** (depths + 1) - 1).any():
        return False
    is_split = forest.left >= 0
    nodes = np.flatnonzero(is_split)
    first = _first_of_level(forest)[is_split]
    columns: list[NDArray[Any]] = [forest.feature, forest.threshold, forest.missing_left]
    if forest.category_set.size:
        columns.append(_set_numbers(forest))
    return all(np.array_equal(column[nodes], column[first]) for column in columns)


def require_symmetric(forest: "Forest") -> None:
    """Refuse a forest of which whole levels cannot be dropped."""
    if not is_symmetric(forest):
        raise OptionError(
            "{rule='oblivious'} keeps whole levels, which needs symmetric trees, as CatBoost grows "
            "them by default: all nodes of a level ask the same. This model has others. Use "
            "{rule='subtree'}."
        )


def gains_by_symmetry(forest: "Forest") -> bool:
    """Tell whether the library does more with this forest as long as its trees are symmetric.

    CatBoost predicts faster with such models, writes them as ONNX and trains on from them.
    """
    origin = forest.origin
    if origin is None or origin.library != "catboost" or not origin.state.get("symmetric"):
        return False
    return is_symmetric(forest)


def level_directions(forest: "Forest") -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return, for each tree, the levels whose right side must not be below the left, or above."""
    rising, falling = np.zeros(forest.n_trees, np.int64), np.zeros(forest.n_trees, np.int64)
    signs = forest.monotone
    if signs.size:
        for tree, depth in enumerate(forest.depths.tolist()):
            first = forest.offsets[tree] + 2 ** np.arange(depth) - 1
            sign = signs[forest.feature[first]] * np.sign(forest.scale[tree])
            if forest.category_set.size:  # categories have no order that could be kept
                sign = np.where(forest.category_set[first] >= 0, 0, sign)
            bits = 1 << np.arange(depth)[::-1]
            rising[tree], falling[tree] = bits[sign > 0].sum(), bits[sign < 0].sum()
    return rising, falling


def within_levels(forest: "Forest") -> "Forest":
    """Return a symmetric forest with values of leaves that keep its constraints.

    They do so as CatBoost leaves them; where trees were cut, means of leaves need not.
    """
    rising, falling = level_directions(forest)
    if not (rising | falling).any():
        return forest
    is_leaf = forest.left < 0
    first = np.concatenate([[0], np.cumsum((np.diff(forest.offsets) + 1) // 2)])
    leaf_value = np.ascontiguousarray(forest.value[is_leaf].T)
    # Values are not scaled yet, and a negative scale has turned the directions round.
    turned = forest.scale < 0.0
    up, down = np.where(turned, falling, rising), np.where(turned, rising, falling)
    kernels.settle_leaves(first, up, down, forest.cover[is_leaf], leaf_value)
    if np.array_equal(leaf_value.T, forest.value[is_leaf]):
        return forest
    value = forest.value.copy()
    value[is_leaf] = leaf_value.T
    return replace(forest, value=value)


def with_levels_first(forest: "Forest", levels: Levels) -> "Forest":
    """Return a symmetric forest whose trees ask at some levels before all others.

    Otherwise levels stay in their order. The value of a node becomes the mean of its leaves; that
    of a root stays what it is.
    """
    nodes = np.arange(forest.n_nodes)
    for start, depth, chosen in zip(
        forest.offsets[:-1].tolist(), forest.depths.tolist(), levels.tolist(), strict=True
    ):
        # Bits from the first level on: chosen ones, then the others.
        bits = sorted(range(depth), key=lambda bit: (not chosen >> bit & 1, -bit))
        if bits == list(range(depth)[::-1]):
            continue
        leaf, place = np.zeros(1, np.int64), start
        for level, bit in enumerate(bits):
            nodes[place : place + 2**level] = start + 2 ** (depth - 1 - bit) - 1
            place += 2**level
            leaf = (leaf[:, np.newaxis] + np.array([0, 1 << bit])).ravel()
        nodes[place : place + leaf.size] = place + leaf
    state = take_nodes(forest, nodes)
    state["left"] = forest.left
    is_leaf = forest.left < 0
    cover, value = forest.cover.copy(), forest.value.copy()
    cover[is_leaf], value[is_leaf] = state["cover"][is_leaf], state["value"][is_leaf]
    left = forest.left + forest.offsets[forest.tree_of_node]
    depths = forest.node_depths
    for depth in range(forest.max_depth - 1, 0, -1):  # the cover of a root is what it was
        layer = np.flatnonzero(~is_leaf & (depths == depth))
        cover[layer] = cover[left[layer]] + cover[left[layer] + 1]
    ordered = average_of_leaves(replace(forest, **state | {"cover": cover, "value": value}))
    value, roots = ordered.value.copy(), forest.offsets[:-1]
    value[roots] = forest.value[roots]
    return replace(ordered, value=value)


def _first_of_level(forest: "Forest") -> NDArray[np.int64]:
    """Return, for each node, the first node of its level; trees must be full."""
    return forest.offsets[forest.tree_of_node] + 2**forest.node_depths - 1


def _set_numbers(forest: "Forest") -> NDArray[np.int64]:
    """Return numbers of the sets of categories that are equal where sets are; -1 for none."""
    bounds = forest.set_offsets
    words = [forest.set_words[a:b].tobytes() for a, b in pairwise(bounds)]
    known: dict[bytes, int] = {}
    same = np.array([known.setdefault(each, len(known)) for each in words] + [-1])
    return same[forest.category_set]
