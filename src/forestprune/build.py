"""Making a Forest of trees whose nodes come in any order."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestprune.exceptions import InvalidForestError
from forestprune.forest import Forest, Origin
from forestprune.inputs import InputSpec
from forestprune.kernels.nodes import level_order
from forestprune.validation import level_order_left


@dataclass(frozen=True, kw_only=True)
class RawTree:
    """One tree as a library stores it: node 0 is the root, the others stand in any order.

    Attributes
    ----------
    left, right : int arrays of shape (n,)
        Children; negative at a leaf. A node that no path from the root meets is left out.
    feature, threshold, missing_left, cover : arrays of shape (n,)
        As in Forest; what they hold at leaves does not matter, but for `cover`.
    value : array of shape (n, n_outputs)
    left_categories : mapping of int to sequence of int
        For each categorical split, the categories that go left.
    extras : mapping of str to array of shape (n,)
        Become the forest's `node_extras`.
    """

    left: NDArray[Any]
    right: NDArray[Any]
    feature: NDArray[Any]
    threshold: NDArray[Any]
    missing_left: NDArray[Any]
    cover: NDArray[Any]
    value: NDArray[Any]
    left_categories: Mapping[int, Sequence[int]] = field(default_factory=dict)
    extras: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def build_forest(
    trees: Iterable[RawTree],
    *,
    scale: ArrayLike,
    base: ArrayLike,
    input: InputSpec,  # noqa: A002 - the name of the attribute it becomes
    origin: Origin | None = None,
    tree_extras: Mapping[str, NDArray[Any]] | None = None,
) -> Forest:
    """Sort the nodes of each tree into level order and put the trees behind one another."""
    base = np.array(base, dtype=np.float64)
    columns: dict[str, list[NDArray[Any]]] = {
        "feature": [np.empty(0, np.int32)],
        "threshold": [np.empty(0)],
        "missing_left": [np.empty(0, np.bool_)],
        "cover": [np.empty(0)],
        "value": [np.empty((0, base.size))],
        "category_set": [np.empty(0, np.int32)],
        "is_split": [np.empty(0, np.bool_)],
    }
    extras: dict[str, list[NDArray[Any]]] = {}
    sizes: list[int] = []
    sets: list[NDArray[np.uint32]] = []
    for number, tree in enumerate(trees):
        order = _order(number, tree)
        is_split = np.asarray(tree.left)[order] >= 0
        sizes.append(order.size)
        columns["is_split"].append(is_split)
        columns["feature"].append(np.where(is_split, tree.feature[order], -1).astype(np.int32))
        columns["threshold"].append(np.where(is_split, tree.threshold[order], 0.0))
        columns["missing_left"].append(is_split & (tree.missing_left[order] != 0))
        columns["cover"].append(np.asarray(tree.cover[order], np.float64))
        columns["value"].append(np.asarray(tree.value[order], np.float64))
        columns["category_set"].append(_number_sets(tree, order, is_split, sets))
        for name, array in tree.extras.items():
            extras.setdefault(name, []).append(array[order])

    arrays = {name: _joined(columns.pop(name)) for name in list(columns)}
    node_extras = {name: _joined(extras.pop(name)) for name in list(extras)}
    offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    arrays["left"] = level_order_left(arrays.pop("is_split"), offsets)
    if not sets:
        arrays["category_set"] = np.empty(0, np.int32)
    for array in [*arrays.values(), *node_extras.values()]:
        array.flags.writeable = False
    return Forest(
        **arrays,
        offsets=offsets,
        scale=np.asarray(scale, dtype=np.float64),
        base=base,
        input=input,
        set_offsets=np.cumsum([0, *(words.size for words in sets)]),
        set_words=np.concatenate([np.empty(0, np.uint32), *sets]),
        origin=origin,
        node_extras=node_extras,
        tree_extras=tree_extras or {},
    )


def _order(number: int, tree: RawTree) -> NDArray[np.int32]:
    """Return the nodes of `tree` in level order."""
    left, right = np.asarray(tree.left), np.asarray(tree.right)
    n = left.size
    if n == 0 or right.size != n:
        raise InvalidForestError(
            f"Tree {number} must have a root and as many entries in right as in left; "
            f"got {n} in left and {right.size} in right."
        )
    bad = (left >= n) | (right >= n) | ((left < 0) != (right < 0))
    if bad.any():
        node = int(np.flatnonzero(bad)[0])
        raise InvalidForestError(
            f"A node must have two children among the {n} nodes of its tree, or none (-1); "
            f"node {node} of tree {number} has {left[node]} and {right[node]}."
        )
    order = np.empty(n, dtype=np.int32)
    met = level_order(left.astype(np.int32), right.astype(np.int32), order)
    if met < 0 or np.bincount(order[:met], minlength=n).max() > 1:
        raise InvalidForestError(
            f"Tree {number} is not a tree: a node is reached on two ways (a cycle, or a child "
            "that two parents share)."
        )
    return order[:met]


def _number_sets(
    tree: RawTree,
    order: NDArray[np.int32],
    is_split: NDArray[np.bool_],
    sets: list[NDArray[np.uint32]],
) -> NDArray[np.int32]:
    """Return the category set of each node of `order`, new sets being added to `sets`."""
    numbers = np.full(order.size, -1, np.int32)
    if not tree.left_categories:
        return numbers
    for place, node in enumerate(order):
        if is_split[place] and int(node) in tree.left_categories:
            numbers[place] = len(sets)
            sets.append(_bits(tree.left_categories[int(node)]))
    return numbers


def _bits(categories: Sequence[int]) -> NDArray[np.uint32]:
    """Return a bit set, 32 categories a word."""
    chosen = np.asarray(categories, dtype=np.int64)
    if (chosen < 0).any():
        raise InvalidForestError(f"Categories must not be negative, got {chosen.min()}.")
    words = np.zeros(chosen.max(initial=-1) // 32 + 1, np.uint32)
    np.bitwise_or.at(words, chosen // 32, np.uint32(1) << (chosen % 32).astype(np.uint32))
    return words


def _joined(pieces: list[NDArray[Any]]) -> NDArray[Any]:
    """Concatenate `pieces` and forget them, so that only one column is in memory twice."""
    joined = np.concatenate(pieces)
    pieces.clear()
    return joined
