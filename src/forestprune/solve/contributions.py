"""What cut trees add, leaf by leaf and row by row, for one cut after another."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from forestprune import kernels
from forestprune.kernels.cuts import Steps, Trees
from forestprune.rows.encoding import Encoding
from forestprune.solve.kept import Subtrees, read_trees


class Tables:
    """What each tree adds in each of its leaves, for one cut of the trees at a time.

    Begins with nothing kept. Moving on to another cut touches only the trees that differ.
    """

    def __init__(self, encoding: Encoding, steps: Steps) -> None:
        forest = encoding.forest
        leaves = (np.diff(forest.offsets) + 1) // 2
        self._codes = encoding.codes
        self._forest = forest
        self._steps = steps
        self._subtrees: Subtrees | None = None
        self._first_leaf = np.concatenate([[0], np.cumsum(leaves)])
        self._table = np.zeros((int(leaves.sum()), forest.n_outputs))
        self._depths = np.zeros(forest.n_trees, np.int64)
        self._weights = np.ones(forest.n_trees)

    def move_to(
        self,
        depths: NDArray[np.int64],
        weights: NDArray[np.float64],
        subtrees: Subtrees | None = None,
    ) -> NDArray[np.int64]:
        """Cut and weight the trees anew; return those that changed.

        `subtrees` has the nodes that are kept, if they are not just all down to `depths`.
        """
        return self._change(depths, weights, subtrees, self._table)

    def columns(
        self, start: int, stop: int, trees: NDArray[np.int64], output: int
    ) -> NDArray[np.float64]:
        """Return what each of some trees adds to the rows start..stop: one column a tree."""
        columns = np.empty((stop - start, trees.size))
        kernels.fill_columns(
            self._codes, start, stop, trees, self._first_leaf, self._table, output, columns
        )
        return columns

    def means(
        self, trees: NDArray[np.int64], node_weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return what each of some trees adds to a row on average: shape (trees, n_outputs)."""
        steps = self._steps
        means = np.empty((trees.size, self._table.shape[1]))
        for mean, tree in zip(means, trees, strict=True):
            leaves = slice(self._first_leaf[tree], self._first_leaf[tree + 1])
            weights = node_weights[steps.offsets[tree] + steps.leaf[leaves]]
            mean[:] = np.average(self._table[leaves], axis=0, weights=weights)
        return means

    def _change(
        self,
        depths: NDArray[np.int64],
        weights: NDArray[np.float64],
        subtrees: Subtrees | None,
        table: NDArray[np.float64],
    ) -> NDArray[np.int64]:
        """Write what trees that differ from now on add into `table`; return these trees."""
        differ = (depths != self._depths) | (weights != self._weights)
        if subtrees is not None:
            differ |= subtrees.differ(self._subtrees, self._forest)
        elif self._subtrees is not None:
            differ[:] = True
        trees = np.flatnonzero(differ & ((depths > 0) | (self._depths > 0)))
        self._depths, self._weights, self._subtrees = depths.copy(), weights.copy(), subtrees
        if subtrees is None:
            kernels.fill_tables(
                self._steps, trees, self._depths, self._weights, self._first_leaf, table
            )
            return trees
        shapes = self._trees
        kernels.fill_subtree_tables(
            shapes,
            trees,
            subtrees.nodes,
            subtrees.values(shapes),
            self._weights,
            self._first_leaf,
            table,
        )
        return trees

    @cached_property
    def _trees(self) -> Trees:
        return read_trees(self._forest, self._steps.weight)


class Predictions(Tables):
    """What all trees together add to each row, for one cut of the trees at a time.

    Attributes
    ----------
    values : float64 array of shape (n_outputs, m)
        The predictions, without the intercept.
    """

    def __init__(self, encoding: Encoding, steps: Steps) -> None:
        super().__init__(encoding, steps)
        self.values = np.zeros((encoding.forest.n_outputs, encoding.n_rows))
        self._next = np.zeros_like(self._table)

    def move_to(
        self,
        depths: NDArray[np.int64],
        weights: NDArray[np.float64],
        subtrees: Subtrees | None = None,
    ) -> NDArray[np.int64]:
        """Cut and weight the trees anew: rows are gone through only for trees that differ."""
        trees = self._change(depths, weights, subtrees, self._next)
        kernels.replace_columns(
            self._codes, trees, self._first_leaf, self._table, self._next, self.values
        )
        return trees
