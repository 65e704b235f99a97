"""The shape of the trees in a forest: how many, how deep, which node belongs where."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from forestprune.forest.checks import seal


class Shape:
    """What follows from where trees begin and where the children of nodes are."""

    offsets: NDArray[np.int64]
    left: NDArray[np.int32]

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return self.offsets.size - 1

    @property
    def n_nodes(self) -> int:
        """Number of nodes, roots and leaves included."""
        return self.left.size

    @property
    def tree_of_node(self) -> NDArray[np.int64]:
        """The tree that each node belongs to."""
        return np.repeat(np.arange(self.n_trees), np.diff(self.offsets))

    @property
    def right(self) -> NDArray[np.int32]:
        """Right child of each node, -1 at a leaf."""
        return np.where(self.left >= 0, self.left + 1, np.int32(-1))

    @property
    def parent(self) -> NDArray[np.int32]:
        """Parent of each node, counted from the root of the same tree; -1 at a root."""
        parent = np.full(self.n_nodes, -1, np.int32)
        splits = np.flatnonzero(self.left >= 0)
        start = self.offsets[self.tree_of_node[splits]]
        for child in (self.left[splits], self.left[splits] + 1):
            parent[start + child] = splits - start
        return parent

    @cached_property
    def layers(self) -> tuple[NDArray[np.int64], ...]:
        """For each tree, where its layers begin and end: layer k is nodes ``[k]`` to ``[k + 1]``.

        Counted from the root of the tree, like `left`.
        """
        result = []
        for start, end in pairwise(self.offsets):
            left = self.left[start:end]
            bounds = [0, 1]
            while bounds[-1] < left.size:
                # The last split of a layer has the last two nodes of the next one.
                bounds.append(int(left[bounds[-2] : bounds[-1]].max()) + 2)
            result.append(seal(np.array(bounds, dtype=np.int64)))
        return tuple(result)

    @property
    def depths(self) -> NDArray[np.int64]:
        """Depth of each tree; 0 if it is only a root."""
        return np.array([len(bounds) - 2 for bounds in self.layers], dtype=np.int64)

    @property
    def max_depth(self) -> int:
        """Depth of the deepest tree; 0 if there is none."""
        return int(self.depths.max(initial=0))

    @property
    def node_depths(self) -> NDArray[np.int64]:
        """Depth of each node; 0 at a root."""
        pieces = [np.repeat(np.arange(len(b) - 1), np.diff(b)) for b in self.layers]
        return np.concatenate([np.empty(0, np.int64), *pieces])

    def layer_sizes(self) -> NDArray[np.int64]:
        """Return the number of nodes in each layer, roots left out: (n_trees, max_depth)."""
        sizes = np.zeros((self.n_trees, self.max_depth), dtype=np.int64)
        for row, bounds in zip(sizes, self.layers, strict=True):
            row[: len(bounds) - 2] = np.diff(bounds[1:])
        return sizes

    def locate(self, node: int) -> str:
        """Name a node by its tree and its place in it, for messages."""
        tree = int(np.searchsorted(self.offsets, node, side="right")) - 1
        return f"node {node - self.offsets[tree]} of tree {tree}"
