"""A tree whose splits may change."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestprune.kernels.records import MOST_BINS

Floats = NDArray[np.float64]
Ends = tuple[Floats, Floats]

UNBOUNDED: Ends = (np.empty(0), np.empty(0))
"""Between what a leaf may add to each output, if that is anything."""

_BY_OUTPUT = ("value", "low", "high")


@dataclass(eq=False)
class BinnedTree:
    """A tree that asks for bins. Children stand behind their parent, the right one behind the left.

    Attributes
    ----------
    left, feature : int32 arrays of shape (n_nodes,)
        As a Forest has them: -1 at a leaf.
    border : int32 array of shape (n_nodes,)
        Which border of its column a split has: -1 of a set of categories, and at a leaf; -2 if no
        new split can ask for that, or for what comes near.
    goes_left : bool array of shape (n_nodes, MOST_BINS)
        Which bins go left.
    node : int64 array of shape (n_nodes,)
        The node of the forest whose split this is; -1 if the split is new.
    exact : bool array of shape (n_nodes,)
        Whether bins say exactly what the split asks; of those of a forest some come near only.
    gain : float64 array of shape (n_nodes,)
        What a new split gained when it was chosen.
    value : float64 array of shape (n_outputs, n_nodes)
        What leaves add.
    low, high : float64 arrays of shape (n_outputs, n_nodes)
        Between what leaves may add; (n_outputs, 0) if that is anything.
    """

    left: NDArray[np.int32]
    feature: NDArray[np.int32]
    border: NDArray[np.int32]
    goes_left: NDArray[np.bool_]
    node: NDArray[np.int64]
    exact: NDArray[np.bool_]
    gain: Floats
    value: Floats
    low: Floats
    high: Floats

    @classmethod
    def blank(cls, n_nodes: int, outputs: int, *, bounded: bool) -> "BinnedTree":
        """Return so many leaves that add nothing, to be made a tree of."""
        ends = n_nodes if bounded else 0
        return cls(
            left=np.full(n_nodes, -1, np.int32),
            feature=np.full(n_nodes, -1, np.int32),
            border=np.full(n_nodes, -1, np.int32),
            goes_left=np.zeros((n_nodes, MOST_BINS), np.bool_),
            node=np.full(n_nodes, -1, np.int64),
            exact=np.ones(n_nodes, np.bool_),
            gain=np.zeros(n_nodes),
            value=np.zeros((outputs, n_nodes)),
            low=np.full((outputs, ends), -np.inf),
            high=np.full((outputs, ends), np.inf),
        )

    def copy(self) -> "BinnedTree":
        """Return a tree that may change while this one stays."""
        return BinnedTree(**{name: array.copy() for name, array in vars(self).items()})

    def first(self, n_nodes: int) -> "BinnedTree":
        """Return the tree that its first nodes are."""
        return BinnedTree(
            **{
                name: array[:, :n_nodes].copy() if name in _BY_OUTPUT else array[:n_nodes].copy()
                for name, array in vars(self).items()
            }
        )

    def ask(self, node: int, column: int, border: int, goes_left: NDArray[np.bool_]) -> None:
        """Let a node have a new split."""
        self.feature[node], self.border[node], self.node[node] = column, border, -1
        self.goes_left[node], self.exact[node] = goes_left, True

    def keep_to_bins(self, node: int) -> None:
        """Let a split be a new one, as bins have it, unless that is what it asks already."""
        if not self.exact[node]:
            self.node[node], self.exact[node] = -1, True

    @property
    def bounded(self) -> bool:
        """Whether leaves may add only what is within bounds."""
        return bool(self.low.shape[1])

    def ends(self, node: int) -> Ends:
        """Return between what a node may add."""
        if not self.bounded:
            return UNBOUNDED
        return self.low[:, node].copy(), self.high[:, node].copy()

    @property
    def leaves(self) -> NDArray[np.int64]:
        """The leaves, in the order of nodes."""
        return np.flatnonzero(self.left < 0)

    @property
    def n_leaves(self) -> int:
        """How many leaves there are."""
        return (self.left.size + 1) // 2
