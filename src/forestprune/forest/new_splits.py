"""Trees with splits of their own in place of a forest's, and which splits these may be.

Which ones a library can write is for its module to say: see `split_limits` and `new_node_extras` in
:mod:`forestprune.forest.registry`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestprune.exceptions import InvalidForestError, UnsupportedModelError
from forestprune.forest import registry
from forestprune.forest.category_sets import join_sets, pack_categories, sets_of_nodes
from forestprune.forest.symmetric import gains_by_symmetry

if TYPE_CHECKING:
    from forestprune.forest.forest import Forest

RIGHT, LEFT, EITHER, NEVER = 0, 1, -1, -2
"""Where NaN may go at a new split; the last where NaN cannot occur."""

MANY_CATEGORIES = 2**24
"""Where the number of codes is not known they are below this: float32 can tell them apart."""

NEW_SPLIT = "new_split"
"""The column of `Forest.node_extras` that tells which splits are new."""

_NODE_ARRAYS = ("left", "feature", "threshold", "missing_left", "value", "cover")


@dataclass(frozen=True)
class SplitLimits:
    """Which splits, other than its own, the library of a forest can write.

    Attributes
    ----------
    missing : int8 array of shape (n_features,)
        Where NaN goes at a split on the column: 1 if it must go left, 0 if right, -1 if either will
        do; -2 if NaN cannot occur, `missing_left` is False then.
    categorical : bool array of shape (n_features,)
        Columns of categories: new splits on them are sets of codes, on all others thresholds.
    usable : bool array of shape (n_features,)
        False for columns that no new split may be on.
    max_category : int64 array of shape (n_features,)
        Codes must be below this; 0 for columns of numbers.
    one_category : bool
        Whether at a categorical split exactly one category, not the last code, goes right, and all
        other codes go left. So it is with CatBoost, where the last code stands for any other.
    columns : bool array of shape (n_trees, n_features), or None
        The columns that each tree may use; None if all trees may use all.
    interactions : tuple of tuples of int
        Groups of columns: all that are split on between root and leaf must be in one of them. Every
        usable column is in one. Empty if there is no such constraint.
    most_columns : int
        How many different columns may meet between root and leaf; 0 for any number.
    """

    missing: NDArray[np.int8]
    categorical: NDArray[np.bool_]
    usable: NDArray[np.bool_]
    max_category: NDArray[np.int64]
    one_category: bool = False
    columns: NDArray[np.bool_] | None = None
    interactions: tuple[tuple[int, ...], ...] = ()
    most_columns: int = 0


@dataclass(frozen=True, kw_only=True)
class NewTree:
    """A tree with splits of its own, its nodes in level order and siblings side by side.

    All arrays have an entry a node and hold what those of :class:`Forest` do.

    Attributes
    ----------
    value : float64 array of shape (n_nodes, columns of `Forest.value`)
        Of every node, and divided by the scale of the tree.
    gain : float64 array of shape (n_nodes,)
        By how much each split lowers the loss; 0 at leaves.
    rows : int64 array of shape (n_nodes,)
        How many rows pass each node.
    left_categories : mapping of int to sequence of int
        For each categorical split, the categories that go left.
    is_new : bool array of shape (n_nodes,), or None
        Which splits are not those that the model had before; None if none is.
    """

    left: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    missing_left: NDArray[np.bool_]
    value: NDArray[np.float64]
    cover: NDArray[np.float64]
    gain: NDArray[np.float64]
    rows: NDArray[np.int64]
    left_categories: Mapping[int, Sequence[int]] = field(default_factory=dict)
    is_new: NDArray[np.bool_] | None = None

    @property
    def new_splits(self) -> NDArray[np.bool_]:
        """Which nodes have splits that the model did not have."""
        is_split = np.asarray(self.left) >= 0
        return is_split if self.is_new is None else is_split & self.is_new


def new_splits(forest: "Forest") -> NDArray[np.bool_]:
    """Tell for each node of a forest whether its split is one that the original did not have."""
    known = forest.node_extras.get(NEW_SPLIT)
    if known is None:
        return np.zeros(forest.n_nodes, np.bool_)
    # A node that has lost its children in pruning has no split.
    return known.astype(np.bool_) & (forest.left >= 0)


def split_limits(
    forest: "Forest", *, give_up_symmetry: bool = False, original: "Forest | None" = None
) -> SplitLimits:
    """Return which new splits the library of `forest` can write.

    Of what a model tells by its splits alone, such as which columns hold categories, a pruned
    forest may know less than the `original`.
    """
    if not give_up_symmetry and gains_by_symmetry(forest):
        raise UnsupportedModelError(
            "New splits would not be the same for all nodes of a level, as they are in CatBoost's "
            "symmetric trees; this model has such trees. Prune it with rule='subtree' first, which "
            "gives up symmetry, or keep its own splits."
        )
    limits = _limits(forest)
    if original is None:
        return limits
    return replace(_limits(original), columns=limits.columns)


def _limits(forest: "Forest") -> SplitLimits:
    """Return which new splits the library can write, as far as `forest` knows."""
    if forest.origin is None:
        return limits_of_rows(forest)
    module = registry.exporter_for(forest.origin.library)
    if not hasattr(module, "split_limits"):
        raise UnsupportedModelError(
            f"Which new splits a model of {forest.origin.library!r} may have is not known: its "
            "module, registered with forestprune.forest.register(), has no function split_limits."
        )
    limits: SplitLimits = module.split_limits(forest)
    return limits


def as_compared(forest: "Forest", threshold: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what the library of `forest` makes of thresholds that are given it."""
    module = None if forest.origin is None else registry.exporter_for(forest.origin.library)
    if module is None or not hasattr(module, "as_compared"):
        return threshold
    compared: NDArray[np.float64] = module.as_compared(threshold)
    return compared


def limits_of_rows(forest: "Forest") -> SplitLimits:
    """Return what the rows that `forest` takes, and its constraints, say of new splits."""
    spec = forest.input
    n = spec.n_features
    missing = np.full(n, NEVER if spec.ensure_all_finite is True else EITHER, np.int8)
    max_category = np.zeros(n, np.int64)
    max_category[_columns_of_sets(forest)] = MANY_CATEGORIES
    for column, known in spec.known_categories.items():
        # What a data frame marks as categorical may be split by thresholds on its codes.
        if max_category[column] or not spec.marked_categories:
            max_category[column] = len(known) or MANY_CATEGORIES
    groups: Any = () if forest.origin is None else forest.origin.interactions
    pairwise = groups == "pairwise"
    return SplitLimits(
        missing=missing,
        categorical=max_category > 0,
        usable=np.ones(n, np.bool_),
        max_category=max_category,
        interactions=() if pairwise else groups,
        most_columns=2 if pairwise else 0,
    )


def _columns_of_sets(forest: "Forest") -> NDArray[np.int64]:
    """Return the columns that are split by sets of categories, and never by a threshold."""
    if not forest.category_set.size:
        return np.empty(0, np.int64)
    by_set = forest.category_set >= 0
    return np.setdiff1d(
        forest.feature[by_set], forest.feature[(forest.left >= 0) & ~by_set]
    ).astype(np.int64)


def with_new_trees(
    forest: "Forest",
    trees: Mapping[int, NewTree],
    *,
    base: ArrayLike,
    original: "Forest | None" = None,
) -> "Forest":
    """Return `forest` with other trees in place of some, by their numbers, and another constant.

    All else stays as it is: scales, the outputs that trees add to, rows, origin. What a library
    keeps of a split besides may depend on what is known of others, of which the `original` forest
    may have more: see :mod:`forestprune.interop.sklearn_hist`.
    """
    _check(forest, trees, original)
    bounds = forest.offsets.tolist()
    pieces: dict[str, list[NDArray[Any]]] = {name: [] for name in _NODE_ARRAYS}
    forest = replace(forest, node_extras={**forest.node_extras, NEW_SPLIT: new_splits(forest)})
    extras: dict[str, list[NDArray[Any]]] = {name: [] for name in forest.node_extras}
    sets: dict[int, NDArray[np.uint32]] = {}
    offsets = [0]
    for number in range(forest.n_trees):
        nodes, tree = slice(bounds[number], bounds[number + 1]), trees.get(number)
        if tree is None:
            for name, of_nodes in pieces.items():
                of_nodes.append(getattr(forest, name)[nodes])
            for name, of_nodes in extras.items():
                of_nodes.append(forest.node_extras[name][nodes])
            found = sets_of_nodes(forest, nodes) if forest.category_set.size else {}
        else:
            tree, known = _as_written(forest if original is None else original, tree)
            known = {**known, NEW_SPLIT: tree.new_splits}
            for name, of_nodes in pieces.items():
                of_nodes.append(getattr(tree, name))
            for name, of_nodes in extras.items():
                like = forest.node_extras[name]
                nothing = np.zeros((len(tree.left), *like.shape[1:]))
                of_nodes.append(np.asarray(known.get(name, nothing)).astype(like.dtype))
            found = {v: pack_categories(left) for v, left in tree.left_categories.items()}
        sets |= {offsets[-1] + v: words for v, words in found.items()}
        offsets.append(offsets[-1] + len(pieces["left"][-1]))
    state: dict[str, Any] = {
        name: np.concatenate([getattr(forest, name)[:0], *arrays])
        for name, arrays in pieces.items()
    }
    state["node_extras"] = {
        name: np.concatenate([forest.node_extras[name][:0], *arrays])
        for name, arrays in extras.items()
    }
    state |= join_sets(sets, offsets[-1])
    state |= {"offsets": np.array(offsets), "base": np.array(base, dtype=np.float64)}
    return replace(forest, **state)


def _as_written(forest: "Forest", tree: NewTree) -> tuple[NewTree, Mapping[str, NDArray[Any]]]:
    """Return a tree as the library has it, and what it keeps of the nodes, as far as is known."""
    is_split = tree.left >= 0
    by_threshold = is_split.copy()
    by_threshold[list(tree.left_categories)] = False
    module = None if forest.origin is None else registry.exporter_for(forest.origin.library)
    threshold = np.where(by_threshold, tree.threshold, 0.0)
    threshold[by_threshold] = as_compared(forest, threshold[by_threshold])
    tree = replace(
        tree,
        feature=np.where(is_split, tree.feature, -1),
        threshold=threshold,
        missing_left=is_split & tree.missing_left,
    )
    return tree, {} if module is None else module.new_node_extras(forest, tree)


# What is asked of new trees


def _check(forest: "Forest", trees: Mapping[int, NewTree], original: "Forest | None") -> None:
    """Raise InvalidForestError if the library of `forest` cannot write one of the splits."""
    limits = split_limits(forest, give_up_symmetry=True, original=original)
    for number, tree in trees.items():
        if not 0 <= number < forest.n_trees:
            raise InvalidForestError(
                f"New trees must stand in place of trees 0 to {forest.n_trees - 1}, got {number}."
            )
        for node in np.flatnonzero(tree.new_splits).tolist():
            fault = _fault(limits, number, tree, node)
            if fault:
                raise InvalidForestError(
                    f"A model of this kind cannot have the new split at node {node} of tree "
                    f"{number}: {fault}. See split_limits(forest)."
                )
        if limits.interactions or limits.most_columns:
            _check_ways(limits, number, tree)


def _fault(limits: SplitLimits, number: int, tree: NewTree, node: int) -> str:
    """Return what is wrong with a split, in words; nothing if it can be written."""
    column = int(tree.feature[node])
    if not 0 <= column < limits.usable.size:
        return f"there is no column {column}"
    if not limits.usable[column]:
        return f"column {column} is not usable"
    if limits.columns is not None and not limits.columns[number, column]:
        return f"its tree does not know column {column}"
    goes = bool(tree.missing_left[node])
    if limits.missing[column] != EITHER and goes != (limits.missing[column] == LEFT):
        return f"missing_left must be {not goes} on column {column}"
    if (node in tree.left_categories) != bool(limits.categorical[column]):
        kind = "sets of categories" if limits.categorical[column] else "thresholds"
        return f"splits on column {column} must be {kind}"
    if limits.categorical[column]:
        left = set(tree.left_categories[node])
        most = int(limits.max_category[column])
        if left and not 0 <= min(left) <= max(left) < most:
            return f"the categories of column {column} are below {most}"
        if limits.one_category and (len(left) != most - 1 or most - 1 not in left):
            return f"exactly one category of column {column}, not the last, must go right"
    return ""


def _check_ways(limits: SplitLimits, number: int, tree: NewTree) -> None:
    """Raise InvalidForestError if columns meet between root and leaf that must not."""
    above: dict[int, frozenset[int]] = {0: frozenset()}
    groups = [frozenset(group) for group in limits.interactions]
    for node, left in enumerate(np.asarray(tree.left).tolist()):
        if left < 0 or node not in above:
            continue
        met = above[node] | {int(tree.feature[node])}
        too_many = limits.most_columns and len(met) > limits.most_columns
        if too_many or (groups and not any(met <= group for group in groups)):
            raise InvalidForestError(
                f"The interaction constraints of this model do not let columns {sorted(met)} meet "
                f"between root and leaf, as at node {node} of new tree {number}."
            )
        above[left] = above[left + 1] = met
