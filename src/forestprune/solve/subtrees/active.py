"""The active nodes of trees: what might be kept, so that sweeps need not look at the rest."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from forestprune import kernels
from forestprune.forest.checks import seal
from forestprune.kernels.records import Price, Pruning, Trees
from forestprune.rows.trees import by_tree, first_leaves, first_splits
from forestprune.solve.point import kept_nodes
from forestprune.system.threads import Crew


@dataclass(frozen=True, eq=False)
class ActiveSet:
    """The upper part of each tree of a forest, as trees of their own.

    Attributes
    ----------
    trees : Trees
    codes : unsigned int array of shape (n_trees, m)
        The active leaf that each row is in.
    nodes, splits : int64 arrays
        Which nodes and splits of the forest these are.
    inside : uint32 array
        In which active leaf of its tree each leaf of the forest lies.
    own : uint32 array
        The same of the active leaves themselves: each in itself.
    """

    trees: Trees
    codes: NDArray[np.unsignedinteger]
    nodes: NDArray[np.int64]
    splits: NDArray[np.int64]
    inside: NDArray[np.uint32]
    own: NDArray[np.uint32]

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        """The active nodes' own numbers: 0, 1, 2 and so on."""
        return np.arange(self.nodes.size)

    @classmethod
    def of_all(cls, trees: Trees, codes: NDArray[np.unsignedinteger]) -> "ActiveSet":
        """Return everything as active."""
        own = _ranks(trees.offsets)
        return cls(
            trees, codes, np.arange(trees.weight.size), np.arange(trees.split.size), own, own
        )

    @classmethod
    def of(
        cls,
        trees: Trees,
        codes: NDArray[np.unsignedinteger],
        chosen: NDArray[np.bool_],
        crew: Crew,
    ) -> "ActiveSet":
        """Return the active set that consists of the chosen splits."""
        splits, counts = np.flatnonzero(chosen), by_tree(chosen, first_splits(trees.offsets))
        offsets = np.concatenate([[0], np.cumsum(2 * counts + 1)]).astype(np.int64)
        nodes = np.empty(offsets[-1], np.int64)
        split = np.empty(splits.size, np.uint32)
        leaf = np.empty(splits.size + counts.size, np.uint32)
        inside, new_codes = np.empty(trees.leaf.size, np.uint32), np.empty_like(codes)
        arguments = (codes, trees, chosen, offsets, nodes, split, leaf, inside, new_codes)
        crew.share(kernels.fill_active, np.arange(counts.size), *arguments)
        active = Trees(
            offsets=seal(offsets),
            split=seal(split),
            leaf=seal(leaf),
            origin=seal(trees.origin[:, nodes]),
            weight=seal(trees.weight[nodes]),
            low=seal(trees.low[:, nodes]) if trees.low.size else trees.low,
            high=seal(trees.high[:, nodes]) if trees.high.size else trees.high,
            own=seal(trees.own[nodes]) if trees.own.size else trees.own,
            excess=seal(trees.excess[:, nodes]) if trees.own.size else trees.excess,
        )
        return cls(active, seal(new_codes), nodes, splits, inside, _ranks(offsets))

    def sweep(
        self,
        row_weight: NDArray[np.float64],
        cut: Pruning,
        price: Price,
        order: NDArray[np.int64],
        kept: NDArray[np.bool_] | None = None,
        given: NDArray[np.float64] | None = None,
        *,
        lazy: bool,
    ) -> tuple[int, int]:
        """Update some trees; with `kept`, to these splits and `given` values.

        Returns how many changed, and how many were looked at.
        """
        here = (row_weight, self.trees, self.numbers, self.own, cut, price, order, lazy)
        kept = np.empty(0, np.bool_) if kept is None else kept
        given = np.empty((0, 0)) if given is None else given
        changed, looked = kernels.sweep_subtrees(self.codes, *here, kept, given)
        return int(changed), int(looked)

    def kept(self, cut: Pruning, n_splits: int) -> NDArray[np.bool_]:
        """Return for each of the forest's `n_splits` splits whether `cut` keeps it."""
        kept = np.zeros(n_splits, np.bool_)
        kept[self.splits[cut.kept]] = True
        return kept

    def carry(self, cut: Pruning, other: "ActiveSet") -> Pruning:
        """Return `cut`, which is about these nodes, as it is about others that hold it too."""
        here = kept_nodes(self.trees.offsets, cut.kept)
        there = np.searchsorted(other.nodes, self.nodes[here])
        value = np.zeros(other.trees.origin.shape)
        value[:, there] = cut.value[:, here]
        kept = np.zeros(other.splits.size, np.bool_)
        kept[np.searchsorted(other.splits, self.splits[cut.kept])] = True
        n_trees, n_leaves = cut.depth.size, other.trees.leaf.size
        moved = cut._replace(
            kept=kept,
            value=value,
            leaves=np.zeros(n_leaves, np.uint32),
            leaf_of=np.zeros(n_leaves, np.uint32),
            # What is known of trees that are absent holds for the active nodes they had.
            absent_down_to=np.full(n_trees, np.inf),
        )
        scratch = np.empty(int(np.diff(other.trees.offsets).max(initial=1)), np.int32)
        found = (moved.leaves, moved.n_leaves, moved.leaf_of)
        kernels.number_all_leaves(other.trees, np.arange(n_trees), kept, scratch, *found)
        return moved


def _ranks(offsets: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Return for each leaf its rank among the leaves of its tree."""
    first = first_leaves(offsets)
    ranks = np.arange(first[-1]) - np.repeat(first[:-1], np.diff(first))
    return ranks.astype(np.uint32)
