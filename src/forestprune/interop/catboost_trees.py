"""The trees in CatBoost's JSON format, to arrays and back. A row goes right if x > border."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestprune.exceptions import UnsupportedModelError
from forestprune.forest.build import RawTree
from forestprune.forest.forest import Forest

_MOST_LEFT = 65534
"""Nodes that CatBoost can hold to the left of a split: it counts with 16 bits to the right child.

Beyond, it does not complain, but crashes.
"""


def read_trees(document: Mapping[str, Any]) -> Iterator[RawTree]:
    """Yield the trees of a model, be they symmetric or not."""
    features = document["features_info"]["float_features"]
    columns = np.zeros(1 + max(feature["feature_index"] for feature in features), np.int64)
    nan_left = np.zeros(columns.size, np.bool_)
    for feature in features:
        columns[feature["feature_index"]] = feature["flat_feature_index"]
        nan_left[feature["feature_index"]] = _nan_goes_left(feature)
    for tree in document.get("oblivious_trees") or ():
        yield _read_symmetric(tree, columns, nan_left)
    for root in document.get("trees") or ():
        yield _read_nested(root, columns, nan_left)


def write_trees(
    forest: Forest, features: list[dict[str, Any]], *, symmetric: bool
) -> dict[str, Any]:
    """Return the parts of a model that have to do with its trees.

    `features` are those of the model, without borders. The trees are written as symmetric ones if
    that is asked for and all of them are.
    """
    _check_splits(forest, features)
    is_split = forest.left >= 0
    # A split is known by its number in the list of all borders, feature by feature.
    asked = np.stack([forest.feature[is_split], forest.threshold[is_split] + 0.0], axis=1)
    borders, numbers = np.unique(asked, axis=0, return_inverse=True)
    split = np.full(forest.n_nodes, -1)
    split[is_split] = numbers.ravel()
    value = forest.scaled_value[:, 0]
    trees = _write_symmetric(forest, split, value) if symmetric else None
    if trees is None:
        document: dict[str, Any] = {"trees": _write_nested(forest, split, value)}
    else:
        document = {"oblivious_trees": trees}
    document["features_info"] = {"float_features": _with_borders(features, borders)}
    return document


def _with_borders(
    features: list[dict[str, Any]], borders: NDArray[np.float64]
) -> list[dict[str, Any]]:
    """Give each feature its own; `borders` holds pairs of column and border, in order."""
    columns = [feature["flat_feature_index"] for feature in features]
    first, last = (np.searchsorted(borders[:, 0], columns, side) for side in ("left", "right"))
    return [
        feature | {"borders": borders[a:b, 1].tolist()}
        for feature, a, b in zip(features, first, last, strict=True)
    ]


def _nan_goes_left(feature: Mapping[str, Any]) -> bool:
    # "AsIs" compares NaN with the border, which is false as it is for "AsFalse".
    return bool(feature["nan_value_treatment"] != "AsTrue")


def _read_symmetric(
    tree: Mapping[str, Any], columns: NDArray[np.int64], nan_left: NDArray[np.bool_]
) -> RawTree:
    """Expand a tree that asks the same in all nodes of a layer."""
    splits = tree["splits"] or []
    depth = len(splits)
    value, cover = (
        _turn_bits(np.array(tree[name], dtype=np.float64))
        for name in ("leaf_values", "leaf_weights")
    )
    covers = [cover]
    for _ in splits:
        covers.insert(0, covers[0].reshape(-1, 2).sum(axis=1))
    inside = 2**depth - 1
    node = np.arange(2 * inside + 1)
    left = np.where(node < inside, 2 * node + 1, -1)
    # What its layer asks, for each node; the last layer, of leaves, asks nothing.
    layer = np.repeat(np.arange(depth + 1), 2 ** np.arange(depth + 1))
    feature = np.array([split["float_feature_index"] for split in splits] + [0])[layer]
    return RawTree(
        left=left,
        right=left + (left >= 0),
        feature=columns[feature],
        threshold=np.array([split["border"] for split in splits] + [0.0])[layer],
        missing_left=nan_left[feature],
        cover=np.concatenate(covers),
        value=np.concatenate([np.zeros(inside), value])[:, np.newaxis],
    )


def _turn_bits(leaves: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bring a symmetric tree's leaves from CatBoost's order to that from left to right, or back.

    The root decides on the lowest bit of a leaf's place in the one, on the highest in the other.
    """
    depth = leaves.size.bit_length() - 1
    return leaves.reshape((2,) * depth).T.ravel()


def _read_nested(
    root: dict[str, Any], columns: NDArray[np.int64], nan_left: NDArray[np.bool_]
) -> RawTree:
    nodes: list[dict[str, Any]] = []
    layer, bounds = [root], [0]
    while layer:
        nodes += layer
        bounds.append(len(nodes))
        layer = [node[side] for node in layer if "split" in node for side in ("left", "right")]
    is_split = np.array(["split" in node for node in nodes])
    left = np.where(is_split, 2 * np.cumsum(is_split) - 1, -1)
    cover = np.array([node.get("weight", 0.0) for node in nodes], dtype=np.float64)
    for start, end in reversed(list(pairwise(bounds))):
        parents = start + np.flatnonzero(is_split[start:end])
        cover[parents] = cover[left[parents]] + cover[left[parents] + 1]
    nothing = {"float_feature_index": 0, "border": 0.0}
    splits = [node.get("split", nothing) for node in nodes]
    feature = np.array([split["float_feature_index"] for split in splits])
    value = np.array([node.get("value", 0.0) for node in nodes], dtype=np.float64)
    return RawTree(
        left=left,
        right=left + is_split,
        feature=columns[feature],
        threshold=np.array([split["border"] for split in splits]),
        missing_left=nan_left[feature],
        cover=cover,
        value=value[:, np.newaxis],
    )


def _check_splits(forest: Forest, features: list[dict[str, Any]]) -> None:
    """Raise UnsupportedModelError if the model could not have such splits."""
    nan_left = np.full(forest.n_features, -1)
    for feature in features:
        nan_left[feature["flat_feature_index"]] = _nan_goes_left(feature)
    is_split = forest.left >= 0
    strange = nan_left[forest.feature[is_split]] != forest.missing_left[is_split]
    if forest.category_set.size or strange.any():
        raise UnsupportedModelError(
            "Splits must be on the numeric features of the CatBoost model that the forest was read "
            "from, and send NaN the way that is fixed for each feature; this forest has others."
        )


def _write_symmetric(
    forest: Forest, split: NDArray[np.int64], value: NDArray[np.float64]
) -> list[dict[str, Any]] | None:
    """Return the trees as symmetric ones, or None if one of them is not."""
    trees = []
    for start, end, depth in zip(
        forest.offsets[:-1].tolist(), forest.offsets[1:].tolist(), forest.depths, strict=True
    ):
        if end - start != 2 ** (depth + 1) - 1:
            return None
        widths = 2 ** np.arange(depth)
        asked = split[start + widths - 1]  # by the first node of each layer
        leaves = slice(start + 2**depth - 1, end)
        if (split[start : leaves.start] != np.repeat(asked, widths)).any():
            return None
        trees.append(
            {
                "splits": [{"split_index": number} for number in asked.tolist()],
                "leaf_values": _turn_bits(value[leaves]).tolist(),
                "leaf_weights": _turn_bits(forest.cover[leaves]).tolist(),
            }
        )
    return trees


def _write_nested(
    forest: Forest, split: NDArray[np.int64], value: NDArray[np.float64]
) -> list[dict[str, Any]]:
    nodes: list[dict[str, Any]] = [
        {"value": v, "weight": w}
        for v, w in zip(value.tolist(), forest.cover.tolist(), strict=True)
    ]
    sizes = [1] * forest.n_nodes
    left = (forest.left + forest.offsets[forest.tree_of_node]).tolist()
    for v in np.flatnonzero(forest.left >= 0)[::-1].tolist():
        a, b = left[v], left[v] + 1
        if sizes[a] > _MOST_LEFT:
            raise UnsupportedModelError(
                f"CatBoost's non-symmetric trees hold at most {_MOST_LEFT} nodes to the left of a "
                f"split; {forest.locate(v)} has {sizes[a]}. Prune it further."
            )
        sizes[v] = 1 + sizes[a] + sizes[b]
        nodes[v] = {"split": {"split_index": int(split[v])}, "left": nodes[a], "right": nodes[b]}
    return [nodes[root] for root in forest.offsets[:-1].tolist()]
