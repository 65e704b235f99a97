"""What monotone constraints of a model ask of the values in its trees."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from forestprune import kernels
from forestprune.exceptions import OptionError, escaped
from forestprune.forest.frames import listed

if TYPE_CHECKING:
    from forestprune.forest.forest import Forest

Boxes = tuple[NDArray[np.float64], NDArray[np.float64]]


def node_boxes(forest: "Forest") -> Boxes | None:
    """Return between what the value of each node must be; None if there is no constraint.

    Both arrays have the shape of `forest.value`. As long as values are within, every pruning of the
    forest, with any weights that are not negative, keeps the constraints.
    """
    monotone = forest.monotone
    if not monotone.size:
        return None
    is_split = forest.left >= 0
    if forest.category_set.size:  # categories have no order that could be kept
        is_split = is_split & (forest.category_set < 0)
    direction = np.zeros(forest.n_nodes, np.int8)
    direction[is_split] = monotone[forest.feature[is_split]]
    direction[forest.scale[forest.tree_of_node] < 0.0] *= -1
    low, high = np.empty_like(forest.value), np.empty_like(forest.value)
    kernels.bound_nodes(forest.offsets, forest.left, direction, forest.value, low, high)
    return low, high


def within_boxes(forest: "Forest") -> "Forest":
    """Return the forest with values that keep its constraints whatever of it is pruned.

    Most libraries see to that when they train. The finer methods of LightGBM do not: there leaves
    are compared only with those that they could be mistaken for, so that means of leaves may break
    what the leaves themselves keep.
    """
    boxes = node_boxes(forest)
    if boxes is None:
        return forest
    value = np.clip(forest.value, *boxes)
    return forest if np.array_equal(value, forest.value) else replace(forest, value=value)


def monotone_features(forest: "Forest") -> dict[str, list[str]]:
    """Return the features with which predictions never fall ("rising"), or rise ("falling")."""
    names = forest.column_names
    found = {
        word: [names[column] for column in np.flatnonzero(forest.monotone == sign)]
        for word, sign in (("rising", 1), ("falling", -1))
    }
    return {word: features for word, features in found.items() if features}


def require_no_constraint(forest: "Forest", what: str, instead: str) -> None:
    """Refuse what might break a monotone constraint of the model."""
    if forest.monotone.size:
        features = [name for names in monotone_features(forest).values() for name in names]
        raise OptionError(
            f"This model is monotone in {escaped(listed(features))}, which {what} could break: it "
            f"may give trees negative weights. {instead}"
        )


def kept_by_trees(forest: "Forest", *, least: int) -> tuple[int, ...]:
    """Return the constraints that every tree keeps, as `Origin.monotone` has them.

    For libraries whose files do not say what a model was trained with: a feature counts if it is
    split on `least` times or more, and each time one side is above the other, the same one.
    """
    n_features, value = forest.n_features, forest.scaled_value
    starts = forest.offsets[forest.tree_of_node]
    lowest, highest = value.copy(), value.copy()
    left = forest.left + starts
    splits = np.flatnonzero(forest.left >= 0)
    depths = forest.node_depths[splits]
    for depth in range(int(depths.max(initial=-1)), -1, -1):
        layer = splits[depths == depth]
        lowest[layer] = np.minimum(lowest[left[layer]], lowest[left[layer] + 1])
        highest[layer] = np.maximum(highest[left[layer]], highest[left[layer] + 1])
    if forest.category_set.size:
        splits = splits[forest.category_set[splits] < 0]
    a, b = left[splits], left[splits] + 1
    feature = forest.feature[splits]
    rises = (highest[a] <= lowest[b]).all(axis=1)
    falls = (lowest[a] >= highest[b]).all(axis=1)
    often = np.bincount(feature, minlength=n_features) >= least
    signs = np.zeros(n_features, np.int64)
    for sign, holds in ((1, rises), (-1, falls)):
        broken = np.bincount(feature[~holds], minlength=n_features)
        signs[often & (broken == 0) & (signs == 0)] = sign
    return tuple(signs.tolist()) if signs.any() else ()
