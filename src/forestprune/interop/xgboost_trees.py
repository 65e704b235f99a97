"""XGBoost's RegTree, a handful of columns with an entry a node, to arrays and back.

XGBoost sends x left if `x < t`, both float32, and at a categorical split if the category is *not*
listed, as negative or too large numbers are not. So listed categories are those that go left here,
and the children of such a split change places.

Trees of several outputs have `leaf_weights`, an entry for each leaf and output. Their leaves are
numbered, and have the number where splits have the right child.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestprune.exceptions import UnsupportedModelError
from forestprune.forest.build import RawTree
from forestprune.forest.category_sets import sets_of_nodes, unpack_categories
from forestprune.forest.forest import Forest

_FIELDS: dict[str, Any] = {
    "base_weights": np.float32,
    "categories": np.int32,
    "categories_nodes": np.int32,
    "categories_segments": np.int64,
    "categories_sizes": np.int64,
    "default_left": np.uint8,
    "leaf_weights": np.float32,
    "left_children": np.int32,
    "loss_changes": np.float32,
    "parents": np.int32,
    "right_children": np.int32,
    "split_conditions": np.float32,
    "split_indices": np.int32,
    "split_type": np.uint8,
    "sum_hessian": np.float32,
}
_CATEGORICAL = 1  # a split_type
_NO_PARENT = np.iinfo(np.int32).max
_LEAF = np.finfo(np.float32).smallest_subnormal  # where a leaf of several outputs has no condition
_LOWEST = np.finfo(np.float64).min  # below every float32 but -inf


def read_tree(tree: Mapping[str, Any]) -> RawTree:
    """Return a tree of the model's file as arrays."""
    unknown = tree.keys() - _FIELDS.keys() - {"id", "tree_param"}
    if unknown:
        raise UnsupportedModelError(
            f"The trees of this XGBoost store {', '.join(sorted(unknown))}, which this version of "
            "forestprune does not know. Use an older XGBoost."
        )
    left, condition = tree["left_children"], tree["split_conditions"]
    is_split = left >= 0
    right = np.where(is_split, tree["right_children"], -1)
    listed = is_split & (tree["split_type"] == _CATEGORICAL)
    # No number is below -inf or NaN, nor is any in a set of no categories.
    nowhere = is_split & ~listed & ~(condition > -np.inf)
    sets = _listed_categories(tree) | {int(node): [] for node in np.flatnonzero(nowhere)}
    with np.errstate(over="ignore", under="ignore"):  # beyond the largest, and around zero
        below = np.nextafter(condition, np.float32(-np.inf)).astype(np.float64)
    return RawTree(
        left=np.where(listed, right, left),
        right=np.where(listed, left, right),
        feature=tree["split_indices"],
        threshold=np.where(listed | nowhere, 0.0, np.maximum(below, _LOWEST)),
        missing_left=(tree["default_left"] != 0) != listed,
        cover=tree["sum_hessian"],
        value=_leaf_values(tree, is_split),
        left_categories=sets,
        extras={"loss_change": tree["loss_changes"]},
    )


def n_columns(tree: Mapping[str, Any]) -> int:
    """Return how many outputs each leaf of a tree adds to."""
    return max(1, int(tree["tree_param"]["size_leaf_vector"]))


def _leaf_values(tree: Mapping[str, Any], is_split: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return what each leaf adds, and 0 for splits."""
    columns = n_columns(tree)
    if columns == 1:
        return np.where(is_split, 0.0, tree["split_conditions"])[:, np.newaxis]
    value = np.zeros((is_split.size, columns))
    value[~is_split] = tree["leaf_weights"].reshape(-1, columns)[tree["right_children"][~is_split]]
    return value


def _listed_categories(tree: Mapping[str, Any]) -> dict[int, Any]:
    starts, sizes = tree["categories_segments"].tolist(), tree["categories_sizes"].tolist()
    return {
        node: tree["categories"][start : start + size]
        for node, start, size in zip(tree["categories_nodes"].tolist(), starts, sizes, strict=True)
    }


def write_tree(forest: Forest, number: int, values: NDArray[np.float64]) -> dict[str, Any]:
    """Return tree `number` of `forest` as a model's file has it, its nodes adding `values`.

    These have a column, or one for each output.
    """
    nodes = slice(forest.offsets[number], forest.offsets[number + 1])
    size, n_values = values.shape
    joint = n_values > 1
    sets = {v: unpack_categories(words) for v, words in sets_of_nodes(forest, nodes).items()}
    listed, nowhere = np.zeros((2, size), np.bool_)
    for node, categories in sets.items():
        (listed if categories else nowhere)[node] = True

    # XGBoost takes the right child to stand behind the left one, so nodes change places.
    order = np.arange(size)
    first = forest.left[nodes][listed]
    order[first], order[first + 1] = first + 1, first
    left = forest.left[nodes][order]
    is_split = left >= 0
    threshold = np.where(nowhere, -np.inf, _first_above(forest.threshold[nodes]))
    at_leaf = np.full(size, _LEAF) if joint else values[:, 0]
    condition = np.where(forest.left[nodes] >= 0, np.where(listed, 0.0, threshold), at_leaf)
    gain = forest.node_extras.get("loss_change", np.zeros(forest.n_nodes))[nodes]
    parents = np.full(size, -1 if joint else _NO_PARENT)
    for child in (left, left + 1):
        parents[child[is_split]] = np.flatnonzero(is_split)
    columns: dict[str, Any] = {
        "base_weights": values[order].ravel(),
        "default_left": (forest.missing_left[nodes] != listed)[order],
        "left_children": left,
        "loss_changes": np.where(is_split, gain[order], 0.0),
        "parents": parents,
        "right_children": np.where(is_split, left + 1, np.cumsum(~is_split) - 1 if joint else -1),
        "split_conditions": condition[order],
        "split_indices": np.maximum(forest.feature[nodes], 0)[order],
        "split_type": listed[order] * _CATEGORICAL,
        "sum_hessian": forest.cover[nodes][order],
    }
    if joint:
        columns["leaf_weights"] = values[order][~is_split].ravel()
    placed = [(node, sets[int(order[node])]) for node in np.flatnonzero(listed[order]).tolist()]
    sizes = [len(categories) for _, categories in placed]
    columns |= {
        "categories": np.concatenate([np.empty(0), *(categories for _, categories in placed)]),
        "categories_nodes": [node for node, _ in placed],
        "categories_segments": np.cumsum([0, *sizes])[: len(sizes)],
        "categories_sizes": sizes,
    }
    tree: dict[str, Any] = {
        name: np.asarray(column, dtype=_FIELDS[name]) for name, column in columns.items()
    }
    tree["id"] = number
    tree["tree_param"] = {
        "num_deleted": "0",
        "num_feature": str(forest.n_features),
        "num_nodes": str(size),
        "size_leaf_vector": str(n_values),
    }
    return tree


def _first_above(threshold: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the smallest float32 above each threshold: `x < t` then says `x <= threshold`."""
    with np.errstate(over="ignore", under="ignore"):
        rounded = threshold.astype(np.float32)
        above = np.nextafter(rounded, np.float32(np.inf))
    return np.where(rounded > threshold, rounded, above)
