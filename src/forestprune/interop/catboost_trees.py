"""The trees in CatBoost's JSON format, to arrays and back. A row goes right if x > border."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestprune.exceptions import UnsupportedModelError
from forestprune.forest.build import RawTree
from forestprune.forest.category_sets import unpack_categories
from forestprune.forest.forest import Forest
from forestprune.forest.new_splits import LEFT, NEVER, RIGHT, NewTree, SplitLimits, limits_of_rows

_LARGEST = np.finfo(np.float32).max

_MOST_LEFT = 65534
"""Nodes that CatBoost can hold to the left of a split: it counts with 16 bits to the right child.

Beyond, it does not complain, but crashes.
"""


def read_trees(document: Mapping[str, Any]) -> Iterator[RawTree]:
    """Yield the trees of a model, be they symmetric or not."""
    questions = _Questions(document["features_info"])
    outputs = len(document["scale_and_bias"][1])
    for tree in document.get("oblivious_trees") or ():
        yield _read_symmetric(tree, outputs, questions)
    for root in document.get("trees") or ():
        yield _read_nested(root, outputs, questions)


class _Questions:
    """What splits ask: the column and border of each, where NaN goes, and which category it is.

    A row goes right if its category is the one that a split asks for. Categories have codes: the
    places of their hashes in the list of the feature, and one more for all others.
    """

    def __init__(self, info: Mapping[str, Any]) -> None:
        self._floats = {each["feature_index"]: each for each in info.get("float_features") or ()}
        self._categorical = {
            each["feature_index"]: each for each in info.get("categorical_features") or ()
        }
        self._others: dict[tuple[int, int], tuple[int, ...]] = {}

    def of(self, splits: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return columns, borders, and where NaN goes, of splits; anything for an empty one."""
        asked = []
        for split in splits:
            if "float_feature_index" in split:
                feature = self._floats[split["float_feature_index"]]
                left = _nan_goes_left(feature)
                asked.append((feature["flat_feature_index"], split["border"], left))
            elif split:
                feature = self._categorical[split["cat_feature_index"]]
                asked.append((feature["flat_feature_index"], 0.0, False))
            else:
                asked.append((0, 0.0, False))
        feature, threshold, missing_left = zip(*asked, strict=True)
        return {
            "feature": np.array(feature),
            "threshold": np.array(threshold, dtype=np.float64),
            "missing_left": np.array(missing_left),
        }

    def left_categories(self, splits: Sequence[Mapping[str, Any]]) -> dict[int, tuple[int, ...]]:
        """Return the codes that go left at those of some splits that ask for a category."""
        return {
            place: self._all_but(split["cat_feature_index"], split["value"])
            for place, split in enumerate(splits)
            if "cat_feature_index" in split
        }

    def _all_but(self, feature: int, value: int) -> tuple[int, ...]:
        if (feature, value) not in self._others:
            known = self._categorical[feature]["values"]
            mine = known.index(value)
            others = tuple(code for code in range(len(known) + 1) if code != mine)
            self._others[feature, value] = others
        return self._others[feature, value]


def split_limits(forest: Forest) -> SplitLimits:
    """Return which new splits a model of CatBoost can have.

    Where NaN goes is fixed for each feature, and splits on categories ask for one of those that the
    model has asked for before: it knows no others. Features that the model does not list, because
    training has dropped them, are unusable.
    """
    limits = limits_of_rows(forest)
    state: Mapping[str, Any] = {} if forest.origin is None else forest.origin.state
    missing, usable = limits.missing.copy(), np.zeros(forest.n_features, np.bool_)
    for feature in state["features"]:
        column = feature["flat_feature_index"]
        missing[column], usable[column] = LEFT if _nan_goes_left(feature) else RIGHT, True
    for feature in state.get("categorical", []):
        column = feature["flat_feature_index"]
        usable[column] = limits.max_category[column] > 1  # there is one besides any other
    missing[limits.categorical] = NEVER
    return replace(limits, missing=missing, usable=usable, one_category=True)


def new_node_extras(_forest: Forest, _tree: NewTree) -> dict[str, NDArray[Any]]:
    """Return what CatBoost keeps of the nodes of a new tree: nothing."""
    return {}


def as_compared(threshold: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return thresholds as borders: the largest float32 that is not above each, and finite."""
    within = np.clip(threshold, -_LARGEST, _LARGEST)
    with np.errstate(under="ignore"):
        rounded = within.astype(np.float32)
    above = rounded > within
    rounded[above] = np.nextafter(rounded[above], np.float32(-np.inf))
    return rounded.astype(np.float64)


def write_trees(
    forest: Forest,
    features: list[dict[str, Any]],
    categorical: list[dict[str, Any]],
    *,
    symmetric: bool,
) -> dict[str, Any]:
    """Return the parts of a model that have to do with its trees.

    `features` are those of the model, without borders, and `categorical` the others, without
    hashes. The trees are written as symmetric ones if that is asked for and all of them are.
    """
    is_split = forest.left >= 0
    asks_category = np.zeros(forest.n_nodes, np.bool_)
    if forest.category_set.size:
        asks_category = forest.category_set >= 0
    numeric = is_split & ~asks_category
    _check_splits(forest, features, numeric)
    # A split is known by its number in the list of all borders, feature by feature; then hashes.
    asked = np.stack([forest.feature[numeric], forest.threshold[numeric] + 0.0], axis=1)
    borders, numbers = np.unique(asked, axis=0, return_inverse=True)
    split = np.full(forest.n_nodes, -1)
    split[numeric] = numbers.ravel()
    nodes = np.flatnonzero(asks_category)
    hashes = _hashes_asked(forest, nodes, {each["flat_feature_index"] for each in categorical})
    values = [
        sorted({hashes[v] for v in nodes.tolist() if forest.feature[v] == column})
        for column in (each["flat_feature_index"] for each in categorical)
    ]
    places: dict[tuple[int, int], int] = {}
    for each, mine in zip(categorical, values, strict=True):
        for hashed in mine:
            places[each["flat_feature_index"], hashed] = len(borders) + len(places)
    for v in nodes.tolist():
        split[v] = places[int(forest.feature[v]), hashes[v]]
    trees = _write_symmetric(forest, split) if symmetric else None
    if trees is None:
        document: dict[str, Any] = {"trees": _write_nested(forest, split)}
    else:
        document = {"oblivious_trees": trees}
    document["features_info"] = {"float_features": _with_borders(features, borders)}
    if categorical:
        document["features_info"]["categorical_features"] = [
            each | {"values": mine} for each, mine in zip(categorical, values, strict=True)
        ]
    return document


def _hashes_asked(forest: Forest, nodes: NDArray[np.int64], columns: set[int]) -> dict[int, int]:
    """Return the hash of the one category that each of some splits sends right."""
    hashed, found = forest.input.hashed or (), {}
    bounds = forest.set_offsets
    for v in nodes.tolist():
        s = forest.category_set[v]
        known = hashed[forest.feature[v]] if forest.feature[v] in columns else None
        left = unpack_categories(forest.set_words[bounds[s] : bounds[s + 1]])
        right = set(range(len(known or ()) + 1)) - set(left)
        if known is None or len(right) != 1 or max(right) == len(known):
            raise UnsupportedModelError(
                "Splits on categories must ask for one category that the CatBoost model knew; "
                f"{forest.locate(v)} asks for others."
            )
        found[v] = known[right.pop()]
    return found


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


def _read_symmetric(tree: Mapping[str, Any], outputs: int, questions: _Questions) -> RawTree:
    """Expand a tree that asks the same in all nodes of a layer."""
    splits = tree["splits"] or []
    depth = len(splits)
    value, cover = (
        _turn_bits(np.array(tree[name], dtype=np.float64).reshape(-1, columns))
        for name, columns in (("leaf_values", outputs), ("leaf_weights", 1))
    )
    cover = cover[:, 0]
    covers = [cover]
    for _ in splits:
        covers.insert(0, covers[0].reshape(-1, 2).sum(axis=1))
    inside = 2**depth - 1
    node = np.arange(2 * inside + 1)
    left = np.where(node < inside, 2 * node + 1, -1)
    # What its layer asks, for each node; the last layer, of leaves, asks nothing.
    layer = np.repeat(np.arange(depth + 1), 2 ** np.arange(depth + 1))
    asked = questions.of([*splits, {}])
    sets = questions.left_categories(splits)
    return RawTree(
        left=left,
        right=left + (left >= 0),
        **{name: column[layer] for name, column in asked.items()},
        left_categories={v: sets[k] for v, k in enumerate(layer.tolist()) if k in sets},
        cover=np.concatenate(covers),
        value=np.concatenate([np.zeros((inside, outputs)), value]),
    )


def _turn_bits(leaves: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bring a symmetric tree's leaves from CatBoost's order to that from left to right, or back.

    The root decides on the lowest bit of a leaf's place in the one, on the highest in the other.
    Leaves may have one number each, or several: shape (n_leaves, ...).
    """
    depth = len(leaves).bit_length() - 1
    by_level = leaves.reshape((2,) * depth + leaves.shape[1:])
    levels = tuple(range(depth))
    turned = by_level.transpose(levels[::-1] + tuple(range(depth, by_level.ndim)))
    return turned.reshape(leaves.shape)


def _read_nested(root: dict[str, Any], outputs: int, questions: _Questions) -> RawTree:
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
    splits = [node.get("split", {}) for node in nodes]
    value = np.zeros((len(nodes), outputs))
    leaves = [node["value"] for node in nodes if "split" not in node]
    value[~is_split] = np.array(leaves, dtype=np.float64).reshape(-1, outputs)
    return RawTree(
        left=left,
        right=left + is_split,
        **questions.of(splits),
        left_categories=questions.left_categories(splits),
        cover=cover,
        value=value,
    )


def _check_splits(
    forest: Forest, features: list[dict[str, Any]], is_split: NDArray[np.bool_]
) -> None:
    """Raise UnsupportedModelError if the model could not have such splits."""
    nan_left = np.full(forest.n_features, -1)
    for feature in features:
        nan_left[feature["flat_feature_index"]] = _nan_goes_left(feature)
    strange = nan_left[forest.feature[is_split]] != forest.missing_left[is_split]
    strange_sets = forest.category_set.size and forest.input.hashed is None
    if strange_sets or strange.any():
        raise UnsupportedModelError(
            "Splits must be on the numeric features of the CatBoost model that the forest was read "
            "from, and send NaN the way that is fixed for each feature; this forest has others."
        )


def _write_symmetric(forest: Forest, split: NDArray[np.int64]) -> list[dict[str, Any]] | None:
    """Return the trees as symmetric ones, or None if one of them is not."""
    trees, value = [], forest.scaled_value
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
                "leaf_values": _turn_bits(value[leaves]).ravel().tolist(),
                "leaf_weights": _turn_bits(forest.cover[leaves]).tolist(),
            }
        )
    return trees


def _write_nested(forest: Forest, split: NDArray[np.int64]) -> list[dict[str, Any]]:
    value = forest.scaled_value
    numbers = value[:, 0] if forest.n_outputs == 1 else value
    nodes: list[dict[str, Any]] = [
        {"value": v, "weight": w}
        for v, w in zip(numbers.tolist(), forest.cover.tolist(), strict=True)
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
