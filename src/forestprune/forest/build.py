"""Making a Forest of trees whose nodes come in any order."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestprune import kernels
from forestprune.exceptions import InvalidForestError
from forestprune.forest.category_sets import join_sets, pack_categories
from forestprune.forest.checks import seal
from forestprune.forest.forest import Forest
from forestprune.forest.inputs import InputSpec
from forestprune.forest.origin import Origin
from forestprune.system.progress import track


@dataclass(frozen=True, kw_only=True)
class RawTree:
    """One tree as a library stores it: node 0 is the root, the others come in any order.

    All arrays have an entry a node and hold what those of :class:`Forest` do; at leaves only
    `value` and `cover` matter. Nodes that cannot be reached from the root are left out.

    Attributes
    ----------
    left, right : int arrays
        Children; negative at a leaf.
    left_categories : mapping of int to sequence of int
        For each categorical split, the categories that go left.
    extras : mapping of str to array
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
    n_nodes: int,
    scale: ArrayLike,
    base: ArrayLike,
    input: InputSpec,  # noqa: A002 - the name of the attribute it becomes
    origin: Origin | None = None,
    tree_output: ArrayLike = (),
    tree_extras: Mapping[str, NDArray[Any]] | None = None,
) -> Forest:
    """Sort the nodes of each tree into level order and make a Forest of the trees.

    `n_nodes` is the number of nodes of all trees, or more. The trees may come from a generator, so
    that large models are not in memory a third time.
    """
    base = np.array(base, dtype=np.float64)
    output: NDArray[Any] = np.asarray(tree_output, dtype=np.int64)
    columns: dict[str, NDArray[Any]] = {
        "left": np.empty(n_nodes, np.int32),
        "feature": np.empty(n_nodes, np.int32),
        "threshold": np.empty(n_nodes),
        "missing_left": np.empty(n_nodes, np.bool_),
        "cover": np.empty(n_nodes),
        "value": np.empty((n_nodes, 1 if output.size else base.size)),
    }
    extras: dict[str, NDArray[Any]] = {}
    offsets = [0]
    sets: dict[int, NDArray[np.uint32]] = {}  # node: the categories that go left
    n_trees = np.size(scale)
    for number, tree in enumerate(track(trees, "reading trees", n_trees)):
        order = _order(number, tree)
        nodes = slice(offsets[-1], offsets[-1] + order.size)
        if nodes.stop > n_nodes:
            raise ValueError(f"n_nodes must cover all trees; {n_nodes} end in tree {number}.")
        is_split = tree.left[order] >= 0
        columns["left"][nodes] = np.where(is_split, 2 * np.cumsum(is_split) - 1, -1)
        feature = np.clip(tree.feature[order], -1, np.iinfo(np.int32).max)
        columns["feature"][nodes] = np.where(is_split, feature, -1)
        columns["threshold"][nodes] = np.where(is_split, tree.threshold[order], 0.0)
        columns["missing_left"][nodes] = is_split & (tree.missing_left[order] != 0)
        columns["cover"][nodes] = tree.cover[order]
        columns["value"][nodes] = tree.value[order]
        for name, array in tree.extras.items():
            extras.setdefault(name, np.empty(n_nodes, array.dtype))[nodes] = array[order]
        if tree.left_categories:
            for place in np.flatnonzero(is_split):
                if int(order[place]) in tree.left_categories:
                    categories = tree.left_categories[int(order[place])]
                    sets[nodes.start + int(place)] = pack_categories(categories)
        offsets.append(nodes.stop)

    for group in (columns, extras):
        for name, array in group.items():
            group[name] = seal(array)[: offsets[-1]]
    return Forest(
        **columns,
        **join_sets(sets, offsets[-1]),
        offsets=np.array(offsets),
        scale=np.asarray(scale, dtype=np.float64),
        base=base,
        tree_output=output,
        input=input,
        origin=origin,
        node_extras=extras,
        tree_extras=tree_extras or {},
    )


def average_of_leaves(forest: Forest) -> Forest:
    """Return `forest` with each split's value the mean of its leaves, weighted by cover."""
    value = forest.value.copy()
    for a, b in pairwise(forest.offsets):
        kernels.average_up(forest.left[a:b], forest.cover[a:b], value[a:b])
    return replace(forest, value=value)


def with_a_tree(forest: Forest, unknown: Mapping[str, Any] | None = None) -> Forest:
    """Return `forest` compacted; if that leaves no tree, with a root that adds nothing.

    It is the root of the first tree there was, with what is known of it. If there was none, what
    further columns hold is taken from `unknown`, by their name, or is 0.
    """
    compact = forest.compact()
    if compact.n_trees:
        return compact
    state: dict[str, Any] = {
        "offsets": np.array([0, 1]),
        "left": np.array([-1]),
        "feature": np.array([-1]),
        "threshold": np.zeros(1),
        "missing_left": np.zeros(1, np.bool_),
        "value": np.zeros((1, forest.n_outputs)),
        "scale": np.ones(1),
        "cover": forest.cover[:1] if forest.n_trees else np.ones(1),
    }
    for group in ("node_extras", "tree_extras"):
        state[group] = {
            name: array[:1]
            if forest.n_trees
            else np.full((1, *array.shape[1:]), (unknown or {}).get(name, 0))
            for name, array in getattr(forest, group).items()
        }
    return replace(compact, **state)


def _order(number: int, tree: RawTree) -> NDArray[np.int32]:
    """Return the nodes of `tree` in level order."""
    left, right = (np.where(child < 0, -1, child) for child in (tree.left, tree.right))
    n = left.size
    columns = (tree.feature, tree.threshold, tree.missing_left, tree.cover, tree.value)
    lengths = {len(column) for column in (right, *columns, *tree.extras.values())}
    if n == 0 or lengths != {n}:
        raise InvalidForestError(
            f"Tree {number} must have a root, and as many entries in every column as in left; "
            f"got {n} in left and {sorted(lengths)} in the others."
        )
    bad = (left >= n) | (right >= n) | ((left < 0) != (right < 0))
    if bad.any():
        node = int(np.flatnonzero(bad)[0])
        raise InvalidForestError(
            f"A node must have two children among the {n} nodes of its tree, or none (-1); "
            f"node {node} of tree {number} has {left[node]} and {right[node]}."
        )
    order = np.empty(n, dtype=np.int32)
    met = kernels.level_order(left.astype(np.int32), right.astype(np.int32), order)
    if met < 0 or np.bincount(order[:met], minlength=n).max() > 1:
        raise InvalidForestError(
            f"Tree {number} is not a tree: a node is reached on two ways (a cycle, or a child "
            "that two parents share)."
        )
    return order[:met]
