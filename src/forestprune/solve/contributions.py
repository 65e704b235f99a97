"""What pruned trees add, leaf by leaf and row by row, for one point after another."""

import numpy as np
from numpy.typing import NDArray

from forestprune import kernels
from forestprune.kernels.records import Trees
from forestprune.rows.encoding import Encoding
from forestprune.rows.trees import by_tree, first_leaves, first_splits
from forestprune.solve.point import Point, unpack_splits


class Contributions:
    """What each tree adds in each of its leaves, for one point at a time.

    Begins with nothing kept. Moving on to another point touches only the trees that differ.

    Parameters
    ----------
    encoding : Encoding
    trees : Trees
        Of its forest; weights of nodes are not needed.
    """

    def __init__(self, encoding: Encoding, trees: Trees) -> None:
        forest = encoding.forest
        self._codes, self._forest, self._trees = encoding.codes, forest, trees
        self._first_split = first_splits(forest.offsets)
        self._first_leaf = first_leaves(forest.offsets)
        self._owner = np.repeat(np.arange(forest.n_trees), np.diff(self._first_leaf))
        self._table = np.zeros((self._owner.size, forest.value.shape[1]))
        self._splits = np.zeros(trees.split.size, np.bool_)
        self._levels = np.zeros(forest.n_trees, np.int64)
        self._weights = np.zeros(forest.n_trees)
        self._values: NDArray[np.float64] | None = None
        self._scratch = np.empty(int(np.diff(forest.offsets).max(initial=1)), np.int32)
        self._leaves = np.zeros(trees.leaf.size, np.uint32)
        self._n_leaves = np.zeros(forest.n_trees, np.int64)
        self._leaf_of = np.zeros(trees.leaf.size, np.uint32)

    @property
    def table(self) -> NDArray[np.float64]:
        """What trees add in each of their unpruned leaves: shape (n_leaves, columns of values)."""
        return self._table

    def move_to(self, point: Point, *, weighted: bool = True) -> NDArray[np.int64]:
        """Prune and weight the trees as `point` does; return those that changed.

        If not `weighted`, each tree that is kept counts once.
        """
        weights = point.weights if weighted else (point.depths > 0).astype(np.float64)
        return self._change(point, weights, self._table)

    def columns(
        self, start: int, stop: int, trees: NDArray[np.int64], output: int
    ) -> NDArray[np.float64]:
        """Return what each of some trees adds to the rows start..stop: one column a tree."""
        columns = np.empty((stop - start, trees.size))
        kernels.fill_columns(
            self._codes, start, stop, trees, self._first_leaf, self._table, output, columns
        )
        return columns

    def means(self, trees: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what each of some trees adds to a row on average: shape (trees, n_outputs)."""
        read = self._trees
        means = np.empty((trees.size, self._table.shape[1]))
        for mean, tree in zip(means, trees, strict=True):
            leaves = slice(self._first_leaf[tree], self._first_leaf[tree + 1])
            weights = read.weight[read.offsets[tree] + read.leaf[leaves]]
            mean[:] = np.average(self._table[leaves], axis=0, weights=weights)
        return means

    def _change(
        self, point: Point, weights: NDArray[np.float64], table: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """Write what trees that differ from now on add into `table`; return these trees."""
        splits = unpack_splits(point.kept, self._forest)
        counts = by_tree(splits, self._first_split)
        n_leaves = np.where(counts > 0, counts + 1, 0)
        differ = by_tree(splits != self._splits, self._first_split) > 0
        levels = np.zeros(counts.size, np.int64)
        if point.levels is not None:
            levels = point.levels.astype(np.int64)
        differ |= levels != self._levels
        differ |= (weights != self._weights) & (counts > 0)
        differ |= self._other_values(point.values, n_leaves, differ)
        trees = np.flatnonzero(differ)
        found = (self._leaves, self._n_leaves, self._leaf_of)
        kernels.number_all_leaves(self._trees, trees, splits, self._scratch, *found)
        moved = trees[levels[trees] > 0]
        kernels.number_level_leaves(moved, self._first_leaf, levels, self._leaf_of)
        self._splits, self._levels = splits, levels
        self._weights, self._values = weights.copy(), point.values
        rows = np.flatnonzero(np.repeat(differ, np.diff(self._first_leaf)))
        owner, leaf = self._owner[rows], self._leaf_of[rows]
        present = n_leaves[owner] > 0
        if point.values is None:
            node = self._trees.offsets[owner] + self._leaves[self._first_leaf[owner] + leaf]
            value = self._trees.origin[:, node]
        else:
            column = (np.cumsum(n_leaves) - n_leaves)[owner] + leaf
            value = np.zeros((table.shape[1], rows.size))
            value[:, present] = point.values[:, column[present]]
        table[rows] = np.where(present, weights[owner] * value, 0.0).T
        return trees

    def _other_values(
        self,
        values: NDArray[np.float64] | None,
        n_leaves: NDArray[np.int64],
        differ: NDArray[np.bool_],
    ) -> NDArray[np.bool_]:
        """Tell for each tree that keeps the same splits as before whether its values differ."""
        before = self._values
        if values is None or before is None:
            return (n_leaves > 0) & ((values is None) != (before is None))
        mine = values[:, np.repeat(~differ, n_leaves)]
        theirs = before[:, np.repeat(~differ, self._n_leaves)]
        first = np.concatenate([[0], np.cumsum(np.where(differ, 0, n_leaves))])
        return by_tree((mine != theirs).any(axis=0), first) > 0


class Predictions(Contributions):
    """What all trees together add to each row, for one point at a time.

    Attributes
    ----------
    values : float64 array of shape (n_outputs, m)
        The predictions, without the intercept.
    """

    def __init__(self, encoding: Encoding, trees: Trees) -> None:
        super().__init__(encoding, trees)
        self.values = np.zeros((encoding.forest.n_outputs, encoding.n_rows))
        self._next = np.zeros_like(self._table)

    def move_to(self, point: Point, *, weighted: bool = True) -> NDArray[np.int64]:
        """Prune and weight the trees: rows are gone through only for trees that differ."""
        weights = point.weights if weighted else (point.depths > 0).astype(np.float64)
        trees = self._change(point, weights, self._next)
        kernels.replace_columns(
            self._codes,
            trees,
            self._first_leaf,
            self._forest.tree_output,
            self._table,
            self._next,
            self.values,
        )
        return trees


def predict_codes(encoding: Encoding) -> NDArray[np.float64]:
    """Return what the whole forest predicts for rows that are routed: shape (n_outputs, m)."""
    forest = encoding.forest
    first = first_leaves(forest.offsets)
    leaves = np.flatnonzero(forest.left < 0)
    scale = np.repeat(forest.scale, np.diff(first))
    table = np.ascontiguousarray(scale[:, np.newaxis] * forest.value[leaves])
    out = np.repeat(forest.base[:, np.newaxis], encoding.n_rows, axis=1)
    trees = np.arange(forest.n_trees)
    before, output = np.zeros_like(table), forest.tree_output
    kernels.replace_columns(encoding.codes, trees, first, output, before, table, out)
    return out
