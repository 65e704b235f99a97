"""What keeping nodes or layers costs, over the cost of everything: the option weighting."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from forestprune.exceptions import OptionError
from forestprune.forest.checks import seal
from forestprune.forest.forest import Forest
from forestprune.options import Weighting

TREE_COST = 32
"""What a symmetric tree costs besides its nodes, in nodes.

CatBoost takes about as long for a small one as for a large one, and with few larger trees errors
are as low as with many small ones (`benchmarks/symmetric.py`).
"""


def split_costs(forest: Forest, weighting: Weighting) -> NDArray[np.float64]:
    """Return what the two children of each split cost together, over K, the cost of all nodes.

    Parameters
    ----------
    forest : Forest
    weighting : "node" or array-like of shape (n_nodes,)
        Each node costs the same, or what the array says, roots nothing.
    """
    if isinstance(weighting, str):
        splits = (forest.n_nodes - forest.n_trees) // 2
        return seal(np.full(splits, 1.0 / max(splits, 1)))
    given = np.array(weighting, dtype=np.float64)
    if given.shape != (forest.n_nodes,):
        raise OptionError(
            f"For {{rule='subtree'}}, an array of {{weighting}} must have shape "
            f"({forest.n_nodes},), one cost a node; got {given.shape}. Costs of layers need "
            "{rule='layer'}."
        )
    _check(given)
    given[forest.offsets[:-1]] = 0.0
    starts = np.repeat(forest.offsets[:-1], np.diff(forest.offsets))
    left = (starts + forest.left)[forest.left >= 0]
    pairs: NDArray[np.float64] = given[left] + given[left + 1]
    return seal(pairs / (given.sum() or 1.0))


def layer_costs(forest: Forest, weighting: Weighting) -> NDArray[np.float64]:
    """Return what each tree costs if it is cut at each depth, over K: (n_trees, max_depth + 1).

    Parameters
    ----------
    forest : Forest
    weighting : "node", "depth" or array-like
        What keeping a layer costs: its nodes, or 1; or costs of your own, not negative, of shape
        (n_trees, max_depth), one a layer, or (n_nodes,), one a node. Roots cost nothing. K is the
        cost of everything; for "depth", n_trees times the greatest depth.
    """
    sizes = forest.layer_sizes()
    if isinstance(weighting, str):
        layers = (sizes if weighting == "node" else sizes > 0).astype(np.float64)
        total = layers.sum() if weighting == "node" else layers.size
    else:
        layers = _custom_layers(forest, np.asarray(weighting, dtype=np.float64), sizes.shape)
        layers = np.where(sizes > 0, layers, 0.0)
        total = layers.sum()
    costs = np.zeros((sizes.shape[0], sizes.shape[1] + 1))
    # A forest whose layers all cost nothing has nothing to divide by either.
    np.cumsum(layers / (total or 1.0), axis=1, out=costs[:, 1:])
    return seal(costs)


def level_costs(forest: Forest, weighting: Weighting) -> NDArray[np.float64]:
    """Return what so many levels of each symmetric tree cost, over K: (n_trees, max_depth + 1).

    Parameters
    ----------
    forest : Forest
    weighting : "node", "depth" or array-like of shape (n_trees, max_depth)
        What :func:`layer_costs` says of trees cut at depths, since levels that are kept come first;
        for "node", and TREE_COST for each tree.
    """
    shape = (forest.n_trees, forest.max_depth)
    if not isinstance(weighting, str) and np.shape(weighting) != shape:
        raise OptionError(
            f"For {{rule='oblivious'}}, an array of {{weighting}} must have shape {shape}, for "
            "each tree the costs of a first level, of a second and so on; got "
            f"{np.shape(weighting)}. Costs of single nodes need {{rule='subtree'}}."
        )
    if isinstance(weighting, str) and weighting == "node":
        weighting = forest.layer_sizes()
        weighting[:, :1] += TREE_COST
    return layer_costs(forest, weighting)


def cut_weighting(forest: Forest, weighting: Weighting, depth: int) -> Weighting:
    """Return what is left of costs made for `forest` once it is cut at `depth`."""
    given = np.asarray(weighting)
    if given.shape == (forest.n_trees, forest.max_depth):
        return given[:, :depth]
    return given[forest.node_depths <= depth] if given.shape == (forest.n_nodes,) else weighting


def _custom_layers(
    forest: Forest, given: NDArray[np.float64], shape: tuple[int, ...]
) -> NDArray[np.float64]:
    if given.shape not in (shape, (forest.n_nodes,)):
        raise OptionError(
            f"An array of {{weighting}} must have shape {shape} (trees, layers below the root) or "
            f"({forest.n_nodes},), one cost a node; got {given.shape}."
        )
    _check(given)
    if given.shape == shape:
        return given
    layers = np.zeros(shape)
    for row, start, bounds in zip(layers, forest.offsets[:-1], forest.layers, strict=True):
        row[: bounds.size - 2] = [
            given[start + a : start + b].sum() for a, b in pairwise(bounds[1:])
        ]
    return layers


def _check(costs: NDArray[np.float64]) -> None:
    if not np.isfinite(costs).all() or (costs < 0).any():
        raise OptionError("The costs of {weighting} must be finite and not negative.")
