"""Which nodes a pruned forest keeps, if that is not a matter of whole layers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestprune.forest.checks import seal
from forestprune.forest.forest import Forest
from forestprune.kernels.cuts import Trees
from forestprune.solve.layers.steps import splits_and_leaves


@dataclass(frozen=True, eq=False)
class Subtrees:
    """The part of each tree that is kept: always two siblings or none, and with them their parent.

    Attributes
    ----------
    nodes : int64 array of shape (n_kept,)
        Numbers of the nodes kept, in the forest that was pruned, rising. Roots are left out.
    adds : float64 array of shape (n_outputs, n_kept), or None
        What each of these nodes adds to the prediction if rows end there, its tree's root adding
        nothing. None means what it adds in the unpruned forest.
    """

    nodes: NDArray[np.int64]
    adds: NDArray[np.float64] | None = None

    def splits(self, trees: Trees) -> NDArray[np.bool_]:
        """Return for each split of the forest whether it is kept."""
        kept = np.zeros(trees.split.size, np.bool_)
        owner = np.searchsorted(trees.offsets, self.nodes, side="right") - 1
        child = self.nodes - trees.offsets[owner]
        kept[(trees.offsets[owner] - owner) // 2 + (child - 1) // 2] = True
        return kept

    def values(self, trees: Trees) -> NDArray[np.float64]:
        """Return what each node that is kept adds: shape (n_outputs, n_kept)."""
        return seal(trees.origin[:, self.nodes]) if self.adds is None else self.adds

    def mask(self, forest: Forest) -> NDArray[np.bool_]:
        """Return for each node of the forest whether it is kept; roots always are."""
        mask = np.zeros(forest.n_nodes, np.bool_)
        mask[forest.offsets[:-1]] = True
        mask[self.nodes] = True
        return mask

    def differ(self, other: "Subtrees | None", forest: Forest) -> NDArray[np.bool_]:
        """Return for each tree whether its part differs from the other's, in nodes or values."""
        if other is None or (self.adds is None) != (other.adds is None):
            return np.ones(forest.n_trees, np.bool_)
        mine = np.searchsorted(self.nodes, forest.offsets)
        theirs = np.searchsorted(other.nodes, forest.offsets)
        differ: NDArray[np.bool_] = np.diff(mine) != np.diff(theirs)
        for tree in np.flatnonzero(~differ & (np.diff(mine) > 0)):
            a, b = slice(*mine[tree : tree + 2]), slice(*theirs[tree : tree + 2])
            same = np.array_equal(self.nodes[a], other.nodes[b])
            if same and self.adds is not None and other.adds is not None:
                same = np.array_equal(self.adds[:, a], other.adds[:, b])
            differ[tree] = not same
        return differ

    def without(self, forest: Forest, gone: NDArray[np.bool_]) -> "Subtrees":
        """Return these without the trees that are gone."""
        owner = np.searchsorted(forest.offsets, self.nodes, side="right") - 1
        stays = ~gone[owner]
        if stays.all():
            return self
        return Subtrees(self.nodes[stays], None if self.adds is None else self.adds[:, stays])

    def depths(self, forest: Forest) -> NDArray[np.int64]:
        """Return how deep each tree is, 0 if nothing of it is kept."""
        depths = np.zeros(forest.n_trees, np.int64)
        owner = np.searchsorted(forest.offsets, self.nodes, side="right") - 1
        np.maximum.at(depths, owner, forest.node_depths[self.nodes])
        return depths


def kept_nodes(trees: Trees, kept: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the children of the splits that are kept, as numbers of nodes, rising."""
    splits = np.flatnonzero(kept)
    first = (trees.offsets - np.arange(trees.offsets.size)) // 2
    owner = np.searchsorted(first, splits, side="right") - 1
    left = trees.offsets[owner] + 2 * (splits - first[owner]) + 1
    return np.column_stack([left, left + 1]).ravel()


def layers_as_subtrees(forest: Forest, depths: NDArray[np.int64]) -> Subtrees:
    """Return the nodes that trees keep if they are cut at `depths`."""
    sizes = np.diff(forest.offsets)
    level = forest.node_depths
    return Subtrees(np.flatnonzero((level > 0) & (level <= np.repeat(depths, sizes))))


def read_trees(forest: Forest, weight: NDArray[np.float64]) -> Trees:
    """Return the trees of a forest as the kernels that choose subtrees read them.

    `weight` is that of the rows that pass each node.
    """
    sizes = np.diff(forest.offsets)
    origin = np.array(forest.value.T, order="C")
    for tree, (a, b) in enumerate(pairwise(forest.offsets)):
        origin[:, a:b] -= forest.value[a][:, np.newaxis]
        origin[:, a:b] *= forest.scale[tree]
    split, leaf = splits_and_leaves(forest)
    return Trees(
        offsets=forest.offsets,
        split=split,
        leaf=leaf,
        first_leaf=seal(np.concatenate([[0], np.cumsum((sizes + 1) // 2)]).astype(np.int64)),
        origin=seal(origin),
        weight=weight,
    )


def pack(subtrees: Sequence[Subtrees | None]) -> dict[str, NDArray[Any]]:
    """Return some subtrees as arrays with names; the inverse of :func:`unpack`."""
    known = [s for s in subtrees if s is not None]
    if not known:
        return {}
    arrays = {
        "counts": np.array([-1 if s is None else s.nodes.size for s in subtrees], np.int64),
        "nodes": np.concatenate([s.nodes for s in known]),
        "refitted": np.array([s is not None and s.adds is not None for s in subtrees]),
    }
    adds = [s.adds for s in known if s.adds is not None]
    if adds:
        arrays["adds"] = np.concatenate(adds, axis=1)
    return {f"subtrees/{name}": array for name, array in arrays.items()}


def unpack(
    forest: Forest, n_points: int, arrays: Mapping[str, NDArray[Any]]
) -> list[Subtrees | None]:
    """Return what :func:`pack` packed, without the prefix of the names; checked."""
    if not arrays:
        return [None] * n_points
    counts, nodes, refitted = arrays["counts"], arrays["nodes"], arrays["refitted"]
    adds = arrays.get("adds", np.empty((forest.n_outputs, 0)))
    if counts.shape != (n_points,) or refitted.shape != (n_points,):
        raise ValueError("there must be as many subtrees as points")
    sizes = np.maximum(counts, 0)
    if nodes.shape != (sizes.sum(),) or adds.shape != (forest.n_outputs, sizes[refitted].sum()):
        raise ValueError("subtrees must have as many nodes and values as they say")
    if not np.isfinite(adds).all():
        raise ValueError("the values of subtrees must be finite")
    nodes = nodes.astype(np.int64, casting="safe")
    if nodes.size and (nodes.min() < 0 or nodes.max() >= forest.n_nodes):
        raise ValueError("subtrees must consist of nodes of the forest")
    unpacked: list[Subtrees | None] = []
    a = b = 0
    for count, is_refitted in zip(counts, refitted, strict=True):
        if count < 0:
            unpacked.append(None)
            continue
        mine, values = nodes[a : a + count], None
        if is_refitted:
            values = seal(np.array(adds[:, b : b + count], dtype=np.float64))
            b += count
        a += count
        if (np.diff(mine) <= 0).any() or np.isin(mine, forest.offsets[:-1]).any():
            raise ValueError("the nodes of subtrees must rise, roots left out")
        subtrees = Subtrees(seal(mine.copy()), values)
        forest.keep(subtrees.mask(forest))  # refuses parts that do not hang together
        unpacked.append(subtrees)
    return unpacked
