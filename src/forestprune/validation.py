"""What makes arrays a forest.

Kernels index without bounds checks, so nothing that fails here may reach them: every Forest is
checked when it is made, also one that was read from a file.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from forestprune.exceptions import InvalidForestError

if TYPE_CHECKING:
    from forestprune.forest import Forest


def frozen_array(name: str, array: ArrayLike, dtype: DTypeLike, ndim: int) -> NDArray[Any]:
    """Return `array` in `dtype`, contiguous and read-only; copied unless it was read-only."""
    given = np.asarray(array)
    if given.ndim != ndim:
        raise InvalidForestError(f"{name} must have {ndim} dimension(s), got shape {given.shape}.")
    dtype = np.dtype(dtype)
    if dtype.hasobject:
        raise InvalidForestError(f"{name} must hold numbers, got type {dtype}.")
    if given.size and not np.can_cast(given.dtype, dtype, "same_kind"):
        raise InvalidForestError(f"{name} must be of type {dtype}, got {given.dtype}.")
    result = np.array(given, dtype=dtype, order="C", copy=True if given.flags.writeable else None)
    if dtype.kind in "iu" and given.dtype.kind in "iu" and not np.array_equal(result, given):
        raise InvalidForestError(f"{name} holds numbers too large for {dtype}.")
    result.flags.writeable = False
    return result


def level_order_left(is_split: NDArray[np.bool_], offsets: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the left children of trees in level order, which the kind of each node determines.

    The k-th split of a tree, counted from 0, has its children at 2k + 1 and 2k + 2.
    """
    splits_before = np.concatenate([[0], np.cumsum(is_split)])
    rank = splits_before[:-1] - np.repeat(splits_before[offsets[:-1]], np.diff(offsets))
    return np.where(is_split, 2 * rank + 1, -1).astype(np.int32)


def check_forest(forest: "Forest") -> None:
    """Raise InvalidForestError unless the arrays of `forest` fit together."""
    _check_offsets(forest)
    _check_shapes(forest)
    _check_structure(forest)
    _check_splits(forest)
    _check_numbers(forest)


def _check_offsets(forest: "Forest") -> None:
    offsets = forest.offsets
    if offsets.size == 0 or offsets[0] != 0 or (np.diff(offsets) < 1).any():
        raise InvalidForestError(
            "offsets must start at 0 and rise by at least one node a tree, "
            f"got {np.array2string(offsets, threshold=8)}."
        )
    if offsets[-1] != forest.left.size:
        raise InvalidForestError(
            f"offsets end at {offsets[-1]}, but there are {forest.left.size} nodes in left."
        )


def _check_shapes(forest: "Forest") -> None:
    nodes, trees, outputs = forest.n_nodes, forest.n_trees, forest.n_outputs
    required: dict[str, tuple[NDArray[Any], int, str]] = {
        "feature": (forest.feature, nodes, "node"),
        "threshold": (forest.threshold, nodes, "node"),
        "missing_left": (forest.missing_left, nodes, "node"),
        "value": (forest.value, nodes, "node"),
        "cover": (forest.cover, nodes, "node"),
        "scale": (forest.scale, trees, "tree"),
        "base": (forest.base, outputs, "output"),
    }
    if forest.category_set.size:
        required["category_set"] = (forest.category_set, nodes, "node")
    for name, array in forest.node_extras.items():
        required[f"node_extras[{name!r}]"] = (array, nodes, "node")
    for name, array in forest.tree_extras.items():
        required[f"tree_extras[{name!r}]"] = (array, trees, "tree")
    for name, (array, length, unit) in required.items():
        if len(array) != length:
            raise InvalidForestError(
                f"{name} must have one entry a {unit}, that is {length}, got {len(array)}."
            )
    if outputs < 1:
        raise InvalidForestError("base must have at least one output, got none.")
    names = forest.input.feature_names
    if names is not None and len(names) != forest.n_features:
        raise InvalidForestError(
            f"There are {forest.n_features} features, but {len(names)} feature names."
        )


def _check_structure(forest: "Forest") -> None:
    left = forest.left
    sizes = np.diff(forest.offsets)
    local = np.arange(left.size) - np.repeat(forest.offsets[:-1], sizes)
    is_split = left >= 0
    beyond = is_split & (left + 1 >= np.repeat(sizes, sizes))
    if beyond.any() or (left < -1).any():
        where = forest._locate(beyond | (left < -1))
        raise InvalidForestError(
            f"left must be -1 at a leaf, else a node of the same tree with another behind it; "
            f"{where} has left = {left[beyond | (left < -1)][0]}."
        )
    backward = is_split & (left <= local)
    if backward.any():
        raise InvalidForestError(
            f"Children must come after their parent (else there is a cycle); "
            f"{forest._locate(backward)} has left = {left[backward][0]}."
        )
    wrong = left != level_order_left(is_split, forest.offsets)
    if wrong.any():
        raise InvalidForestError(
            "The nodes of a tree must stand in level order, siblings side by side; "
            f"{forest._locate(wrong)} breaks it. forestprune.build.build_forest sorts them."
        )
    splits = np.add.reduceat(is_split, forest.offsets[:-1]) if forest.n_trees else is_split
    orphans = 2 * splits + 1 != sizes
    if orphans.any():
        tree = int(np.flatnonzero(orphans)[0])
        raise InvalidForestError(
            f"Every node but the root must be a child: tree {tree} has {sizes[tree]} nodes, "
            f"but {splits[tree]} splits, which make {2 * splits[tree] + 1}."
        )


def _check_splits(forest: "Forest") -> None:
    is_split = forest.left >= 0
    feature = forest.feature
    bad = np.where(is_split, (feature < 0) | (feature >= forest.n_features), feature != -1)
    if bad.any():
        raise InvalidForestError(
            f"feature must be -1 at a leaf, else 0 to {forest.n_features - 1}; "
            f"{forest._locate(bad)} has {feature[bad][0]}."
        )
    sets, offsets = forest.category_set, forest.set_offsets
    if offsets.size == 0 or offsets[0] != 0 or (np.diff(offsets) < 0).any():
        raise InvalidForestError("set_offsets must start at 0 and never fall.")
    if offsets[-1] != forest.set_words.size:
        raise InvalidForestError(
            f"set_offsets end at {offsets[-1]}, but set_words has {forest.set_words.size} entries."
        )
    bad = (sets < -1) | (sets >= offsets.size - 1)
    if sets.size:
        bad |= ~is_split & (sets != -1)
    if bad.any():
        raise InvalidForestError(
            "category_set must be -1 at a leaf or a numeric split, else one of the "
            f"{offsets.size - 1} sets; {forest._locate(bad)} has {sets[bad][0]}."
        )


def _check_numbers(forest: "Forest") -> None:
    for name in ("threshold", "value", "cover"):
        array: NDArray[np.float64] = getattr(forest, name)
        bad = ~np.isfinite(array)
        if name == "cover":
            bad |= array < 0
        if bad.any():
            must = "finite and not negative" if name == "cover" else "finite"
            where = forest._locate(bad if bad.ndim == 1 else bad.any(axis=1))
            raise InvalidForestError(f"{name} must be {must}; {where} has {array[bad][0]}.")
    for name in ("scale", "base"):
        array = getattr(forest, name)
        if not np.isfinite(array).all():
            raise InvalidForestError(f"{name} must be finite, got {array}.")
