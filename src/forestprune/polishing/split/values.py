"""What leaves best add, and what that is worth."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestprune import kernels
from forestprune.polishing.split.rows import Asked
from forestprune.polishing.split.tree import BinnedTree

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Distributions:
    """What it takes for leaves to be distributions over classes, in an average of trees.

    With what a leaf adds, times the number of trees, plus `centre`, see `kernels/distributions.py`.
    """

    centre: Floats
    n_trees: int
    may_be_certain: bool

    def nearest(self, value: Floats, weight: Floats) -> Floats:
        """Return what comes next to some values, (n_outputs, n_leaves), and leaves distributions.

        Unless leaves may be certain, one more row of unknown class counts beside theirs.
        """
        far = np.ones(weight.size) if self.may_be_certain else weight / (weight + 1.0)
        found = np.divide(value, far, out=np.zeros_like(value), where=far > 0.0)
        kernels.project_leaves(found, self.centre, self.n_trees)
        return found * far


@dataclass(frozen=True, eq=False)
class LeafValues:
    """How leaves get their values.

    Attributes
    ----------
    shrinkage : float
        To 0, as a weight of rows.
    distributions : Distributions or None
        What leaves must be; None if they may add anything.
    """

    shrinkage: float
    distributions: Distributions | None = None

    def settle(self, tree: BinnedTree, leaf: NDArray[np.int32], asked: Asked) -> float:
        """Give the leaves of a tree their best values; return by how much the loss falls by them.

        ``leaf[x]`` is the leaf that row x is in. Half the penalty of values counts as loss.
        """
        leaves, n_nodes = tree.leaves, tree.left.size
        weight: Floats = np.bincount(leaf, asked.weight, minlength=n_nodes)[leaves].astype(float)
        sums: Floats = np.stack(
            [
                np.bincount(leaf, each, minlength=n_nodes)[leaves].astype(float)
                for each in asked.sums
            ]
        )
        heavier = weight + self.shrinkage
        value: Floats = np.divide(sums, heavier, out=np.zeros_like(sums), where=heavier > 0.0)
        if tree.bounded:
            value = np.clip(value, tree.low[:, leaves], tree.high[:, leaves])
        if self.distributions is not None:
            value = self.distributions.nearest(value, weight)
        tree.value[:] = 0.0
        tree.value[:, leaves] = value
        return float((value * (sums - 0.5 * heavier * value)).sum())

    def best(self, total: Floats) -> Floats:
        """Return the best values of a leaf without bounds, for what its rows ask for in sum."""
        heavier = total[-1] + self.shrinkage
        return total[:-1] / heavier if heavier > 0.0 else np.zeros(total.size - 1)

    def penalty(self, tree: BinnedTree) -> float:
        """Return half the penalty of the values of a tree."""
        return 0.5 * self.shrinkage * float((tree.value[:, tree.leaves] ** 2).sum())
