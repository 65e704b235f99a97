"""What every rule yields: which splits of a forest are kept, and what their leaves add."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from forestprune.forest.checks import seal
from forestprune.rows.trees import by_tree, first_splits

if TYPE_CHECKING:
    from forestprune.forest.forest import Forest


@dataclass(frozen=True, eq=False)
class Point:
    """A pruned forest, as numbers about the trees of the full one.

    Attributes
    ----------
    alpha : float
    kept : uint8 array
        Which splits of the forest are kept, as bits: see :func:`pack_splits`.
    depths : int64 array of shape (n_trees,)
        How deep what is left of each tree is; 0 if it is gone.
    weights : float64 array of shape (n_trees,)
        How each tree is weighted; 0 if it is gone.
    intercept : float64 array of shape (n_outputs,)
        What is predicted if no tree adds anything.
    loss : float
        Mean squared error over var(y), on the rows that the forest was pruned with.
    objective : float
        What was minimised, at what is kept.
    values : float64 array of shape (n_outputs, n_leaves), or None
        What each leaf of what is kept adds, in the order of nodes; None means what its node adds
        in the unpruned forest, where roots add nothing.
    n_iter : int
        Sweeps over all trees that it took.
    report : dict
        What else there is to say, if there is something: by polishing, or that was chosen.
    levels : uint32 array of shape (n_trees,), or None
        Of symmetric trees, which levels are kept, as bits, the last level lowest. All that is said
        of nodes is then about trees that ask at these levels first: see `forest/symmetric.py`.
        None if trees are pruned from below.
    forest : Forest or None
        The pruned forest itself, if its splits are not all those of the full one: then nothing is
        `kept`, and there are no `values`.
    """

    alpha: float
    kept: NDArray[np.uint8]
    depths: NDArray[np.int64]
    weights: NDArray[np.float64]
    intercept: NDArray[np.float64]
    loss: float
    objective: float
    values: NDArray[np.float64] | None = None
    n_iter: int = 0
    report: dict[str, Any] = field(default_factory=dict)
    levels: NDArray[np.uint32] | None = None
    forest: "Forest | None" = None

    @cached_property
    def n_nodes(self) -> int:
        """Number of nodes, roots and leaves included."""
        if self.forest is not None:
            return self.forest.n_nodes
        return 2 * int(np.bitwise_count(self.kept).sum()) + self.n_trees

    @property
    def n_trees(self) -> int:
        """Number of trees left."""
        return int(np.count_nonzero(self.depths))

    @property
    def max_depth(self) -> int:
        """Depth of the deepest tree left."""
        return int(self.depths.max(initial=0))

    def splits(self, forest: "Forest") -> NDArray[np.bool_]:
        """Return for each split of the forest whether it is kept."""
        return unpack_splits(self.kept, forest)


def pack_splits(splits: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Return which splits are kept as bits, eight a byte."""
    return seal(np.packbits(splits))


def unpack_splits(bits: NDArray[np.uint8], forest: "Forest") -> NDArray[np.bool_]:
    """Return what :func:`pack_splits` packed."""
    return np.unpackbits(bits, count=(forest.n_nodes - forest.n_trees) // 2).view(np.bool_)


def kept_nodes(offsets: NDArray[np.int64], splits: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the children of the splits that are kept, as numbers of nodes, rising."""
    chosen, first = np.flatnonzero(splits), first_splits(offsets)
    owner = np.searchsorted(first, chosen, side="right") - 1
    left = offsets[owner] + 2 * (chosen - first[owner]) + 1
    return np.column_stack([left, left + 1]).ravel()


def kept_leaves(forest: "Forest", splits: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the nodes that are leaves if some splits are kept, rising; lone roots are none."""
    is_leaf = np.zeros(forest.n_nodes, np.bool_)
    is_leaf[kept_nodes(forest.offsets, splits)] = True
    is_leaf[np.flatnonzero(forest.left >= 0)[splits]] = False
    return np.flatnonzero(is_leaf)


def kept_mask(forest: "Forest", splits: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return for each node of the forest whether it is kept; roots always are."""
    mask = np.zeros(forest.n_nodes, np.bool_)
    mask[forest.offsets[:-1]] = True
    mask[kept_nodes(forest.offsets, splits)] = True
    return mask


def splits_within(forest: "Forest", depths: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which splits trees keep if they are cut at `depths`."""
    is_split = forest.left >= 0
    limits = np.repeat(depths, np.diff(first_splits(forest.offsets)))
    within: NDArray[np.bool_] = forest.node_depths[is_split] < limits
    return within


def kept_depths(forest: "Forest", splits: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return how deep each tree is if some splits are kept; 0 if none of its are."""
    depths = np.zeros(forest.n_trees, np.int64)
    nodes = np.flatnonzero(forest.left >= 0)[splits]
    owner = np.searchsorted(forest.offsets, nodes, side="right") - 1
    np.maximum.at(depths, owner, forest.node_depths[nodes] + 1)
    return depths


def without_trees(
    forest: "Forest",
    splits: NDArray[np.bool_],
    values: NDArray[np.float64] | None,
    gone: NDArray[np.bool_],
) -> tuple[NDArray[np.bool_], NDArray[np.float64] | None]:
    """Return the splits kept and their leaf values without the trees that are gone."""
    first = first_splits(forest.offsets)
    counts = by_tree(splits, first)
    if not counts[gone].any():
        return splits, values
    if values is not None:
        leaves = np.where(counts > 0, counts + 1, 0)
        values = seal(values[:, np.repeat(~gone, leaves)])
    return splits & np.repeat(~gone, np.diff(first)), values
