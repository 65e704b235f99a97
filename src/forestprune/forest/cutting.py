"""Smaller forests made of larger ones: some nodes kept, trees that are only a root dropped."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestprune import kernels
from forestprune.forest.category_sets import drop_unused_sets
from forestprune.forest.checks import seal
from forestprune.kernels import faults

if TYPE_CHECKING:
    from forestprune.forest.forest import Forest

_NODE_ARRAYS = ("left", "feature", "threshold", "missing_left", "value", "cover")

_MASK_RULES = {
    faults.ROOT_DROPPED: "mask must keep every root, but drops {node}. To remove a tree, keep "
    "only its root, then call compact().",
    faults.SIBLINGS_DIFFER: "mask must keep both children of a node or none, but keeps one "
    "child of {node}.",
    faults.PARENT_DROPPED: "mask must keep a node only with all its ancestors, but drops "
    "{node} and keeps its children.",
}


def mask_of_depths(forest: "Forest", depths: ArrayLike) -> NDArray[np.bool_]:
    """Return which nodes are no deeper than `depths`, one depth or one for each tree."""
    wanted = np.asarray(depths)
    if wanted.size == 0:  # an empty list has no integer type of its own
        wanted = wanted.astype(np.int64)
    if wanted.dtype.kind not in "iu" or wanted.shape not in ((), (forest.n_trees,)):
        raise ValueError(
            f"depths must be one whole number, or one for each of the {forest.n_trees} trees; "
            f"got an array of type {wanted.dtype} and shape {wanted.shape}."
        )
    if (wanted < 0).any():
        raise ValueError(f"depths must not be negative, got {wanted.min()}.")
    mask = np.zeros(forest.n_nodes, dtype=np.bool_)
    for depth, start, bounds in zip(
        np.broadcast_to(wanted, forest.n_trees), forest.offsets[:-1], forest.layers, strict=True
    ):
        mask[start : start + bounds[min(int(depth) + 1, bounds.size - 1)]] = True
    return mask


def keep(forest: "Forest", mask: ArrayLike) -> "Forest":
    """Return the forest with the nodes where `mask` is true."""
    mask = np.asarray(mask)
    if mask.dtype != np.bool_ or mask.shape != (forest.n_nodes,):
        raise ValueError(
            f"mask must be of type bool and shape ({forest.n_nodes},), "
            f"got type {mask.dtype} and shape {mask.shape}."
        )
    n_kept = int(np.count_nonzero(mask))
    kept = np.empty(n_kept, np.int64)
    left = np.empty(n_kept, np.int32)
    offsets = np.empty_like(forest.offsets)
    fault, node = kernels.keep_nodes(forest.offsets, forest.left, mask, offsets, kept, left)
    if fault in _MASK_RULES:
        raise ValueError(_MASK_RULES[fault].format(node=forest.locate(node)))
    state = take_nodes(forest, kept)
    state |= {"offsets": offsets, "left": left}
    at_leaf = {"feature": -1, "threshold": 0.0, "missing_left": False, "category_set": -1}
    for name, nothing in at_leaf.items():
        if state[name].size:
            state[name][left < 0] = nothing
    if forest.category_set.size:
        state |= drop_unused_sets(state["category_set"], forest.set_offsets, forest.set_words)
    return _with(forest, state)


def compact(forest: "Forest") -> "Forest":
    """Return the forest without trees that are only a root."""
    sizes = np.diff(forest.offsets)
    trees = sizes > 1
    state = take_nodes(forest, np.repeat(trees, sizes))
    state["offsets"] = np.concatenate([[0], np.cumsum(sizes[trees])])
    state["scale"] = forest.scale[trees]
    state["base"] = forest.base + sum_of_roots(forest, ~trees)
    state["tree_extras"] = {name: array[trees] for name, array in forest.tree_extras.items()}
    if forest.tree_output.size:
        state["tree_output"] = forest.tree_output[trees]
        if not trees.any():  # without trees there is nothing to say which output they add to
            state["value"] = np.empty((0, forest.n_outputs))
    return _with(forest, state)


def take_trees(forest: "Forest", trees: NDArray[np.int64], output: int | None) -> "Forest":
    """Return some trees, rising, as a forest; if each adds to one output, to that one alone."""
    chosen = np.zeros(forest.n_trees, np.bool_)
    chosen[trees] = True
    sizes = np.diff(forest.offsets)
    state = take_nodes(forest, np.repeat(chosen, sizes))
    state["offsets"] = np.concatenate([[0], np.cumsum(sizes[trees])])
    state["scale"] = forest.scale[trees]
    state["tree_extras"] = {name: array[trees] for name, array in forest.tree_extras.items()}
    if output is not None:
        state["base"], state["tree_output"] = forest.base[[output]], np.empty(0, np.int32)
    if forest.category_set.size:
        state |= drop_unused_sets(state["category_set"], forest.set_offsets, forest.set_words)
    return _with(forest, state)


def with_roots_in_base(forest: "Forest") -> "Forest":
    """Return the same predictor with roots that add nothing: what they added joins the constant."""
    everything = np.ones(forest.n_trees, np.bool_)
    roots = forest.value[forest.offsets[:-1]]
    return replace(
        forest,
        base=forest.base + sum_of_roots(forest, everything),
        value=forest.value - roots[forest.tree_of_node],
    )


def sum_of_roots(forest: "Forest", trees: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return what the roots of some trees add to each output."""
    roots = forest.value[forest.offsets[:-1]][trees]
    if not forest.tree_output.size:
        return forest.scale[trees] @ roots
    total = np.zeros(forest.n_outputs)
    np.add.at(total, forest.tree_output[trees], forest.scale[trees] * roots[:, 0])
    return total


def take_nodes(forest: "Forest", nodes: NDArray[Any]) -> dict[str, Any]:
    """Return copies of the arrays that have one entry a node, for some nodes."""
    state: dict[str, Any] = {name: getattr(forest, name)[nodes] for name in _NODE_ARRAYS}
    sets = forest.category_set
    state["category_set"] = sets[nodes] if sets.size else sets.copy()
    state["node_extras"] = {name: array[nodes] for name, array in forest.node_extras.items()}
    return state


def _with(forest: "Forest", state: dict[str, Any]) -> "Forest":
    """Return a copy with fresh arrays in place of some; they are frozen, not copied again."""
    for entry in state.values():
        for array in entry.values() if isinstance(entry, dict) else [entry]:
            seal(array)
    return replace(forest, **state)
