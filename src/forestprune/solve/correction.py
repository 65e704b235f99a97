"""What makes a sample of rows stand for all rows.

Sums over all rows at every node, taken at one model, tell by how much those over the sample are
wrong there. That difference is held fixed while trees are chosen: so at that model the sample has
the gradient of all rows, and further on its own curvature decides. Within a tree the weights of all
rows count as well, where they are more than the sample's: nodes that few rows of the sample pass,
or none, are then refitted by how many rows they really have.

With S_v the residual and N_v the weight summed over all rows in node v, s_v and n_v those over
the sample, and f_l what the tree adds in the unpruned leaf l at that model, all sums of tree and
residual together are corrected by

    S_v - s_v + sum over leaves l of v of (N_l - n_l) f_l,

and those of the sample's weights by max(0, N_v - n_v). Where n_v is the larger one it stays, lest
trees that share rows answer to each other for ever; then what the tree adds to v on average draws
its value by as many rows as are too many.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestprune import kernels
from forestprune.forest.checks import seal
from forestprune.forest.forest import Forest

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Correction:
    """What is added to the sums over rows that are there.

    Attributes
    ----------
    weight : float64 array of shape (n_nodes,)
        To the weight of the rows that pass each node; never negative.
    excess : float64 array of shape (n_outputs, n_nodes)
        To the sums of tree and residual together.
    """

    weight: Floats
    excess: Floats

    @classmethod
    def of(cls, forest: Forest, total: "Sums", own: "Sums", added: Floats) -> "Correction":
        """Return how sums over a sample become those over all rows.

        Parameters
        ----------
        forest : Forest
        total, own : Sums
            Over all rows and over the sample, at the same model.
        added : float64 array of shape (n_outputs, n_leaves)
            What trees add in each of their unpruned leaves at that model.
        """
        leaves = np.flatnonzero(forest.left < 0)
        more = total.weight - own.weight
        moved, mean = np.zeros_like(total.residual), np.zeros_like(total.residual)
        moved[:, leaves] = more[leaves] * added
        mean[:, leaves] = total.weight[leaves] * added
        for sums in (moved, mean):
            kernels.add_up_children(forest.left, forest.offsets, sums)
        np.divide(mean, total.weight, out=mean, where=total.weight > 0.0)
        excess = total.residual - own.residual + moved + np.maximum(-more, 0.0) * mean
        return cls(seal(np.maximum(more, 0.0)), seal(excess))


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over rows at every node of a forest, at one model.

    Attributes
    ----------
    weight : float64 array of shape (n_nodes,)
        Of the rows: for other losses than squared error, of their Hessians.
    residual : float64 array of shape (n_outputs, n_nodes)
        The negative gradient of the loss.
    """

    weight: Floats
    residual: Floats
