"""Where every row ends up in every tree: all that the solver ever needs of X."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestprune import kernels
from forestprune.exceptions import OptionError
from forestprune.forest.checks import frozen_array, seal
from forestprune.forest.forest import Forest
from forestprune.forest.inputs import FloatMatrix, read_only_view
from forestprune.system.threads import run_in_threads, split_range, thread_count


@dataclass(frozen=True, eq=False, repr=False)
class Encoding:
    """The rows of a data set as a forest sees them.

    Attributes
    ----------
    forest : Forest
    codes : unsigned int array of shape (n_trees, m)
        ``codes[i, x]`` is the rank, among the leaves of tree i in level order, of the leaf that
        row x reaches. uint8 up to 256 leaves, uint16 up to 65,536, else uint32.
    """

    forest: Forest
    codes: NDArray[Any]

    def __post_init__(self) -> None:
        # Kernels use codes as indices.
        leaves = leaf_counts(self.forest)
        codes = frozen_array("codes", self.codes, np.asarray(self.codes).dtype, 2)
        if (
            codes.dtype.kind != "u"
            or len(codes) != leaves.size
            or (codes.size and (codes.max(axis=1) >= leaves).any())
        ):
            raise ValueError(
                "codes must be unsigned, with a row for each tree and every code below its number "
                f"of leaves; got type {codes.dtype} and shape {codes.shape} for "
                f"{leaves.size} trees. encode() makes them."
            )
        object.__setattr__(self, "codes", codes)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.codes.shape[1])

    def take(self, rows: NDArray[np.int64]) -> Encoding:
        """Return some of the rows."""
        return Encoding(self.forest, seal(self.codes[:, rows]))

    def node_sums(self, amounts: ArrayLike, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Return the total of `amounts`, one a row, over the rows that pass each node."""
        amounts = read_only_view(np.ascontiguousarray(amounts, dtype=np.float64))
        if amounts.shape != (self.n_rows,):
            raise ValueError(
                f"There must be one amount for each of the {self.n_rows} rows, "
                f"got shape {amounts.shape}."
            )
        sums = np.empty(self.forest.n_nodes)
        ranges = split_range(self.forest.n_trees, 4 * thread_count(n_jobs))
        self._add_up([(amounts, first, last, sums) for first, last in ranges], n_jobs)
        return sums

    def output_sums(
        self, amounts: NDArray[np.float64], n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """Return the totals of amounts[o], of what trees that add to output o are to tell.

        Of trees that add to all outputs, shape (n_outputs, n_nodes); of trees that add to one each,
        shape (1, n_nodes).
        """
        if not self.forest.tree_output.size:
            return np.array([self.node_sums(each, n_jobs) for each in amounts])
        sums, amounts = np.empty(self.forest.n_nodes), read_only_view(np.ascontiguousarray(amounts))
        outputs = self.forest.tree_output.tolist()
        self._add_up([(amounts[o], i, i + 1, sums) for i, o in enumerate(outputs)], n_jobs)
        return sums[np.newaxis]

    def _add_up(self, tasks: list[tuple[Any, ...]], n_jobs: int | None) -> None:
        """Add up amounts over the rows, for some ranges of trees."""
        offsets, left = self.forest.offsets, self.forest.left
        calls = [(self.codes, by, *trees, offsets, left, sums) for by, *trees, sums in tasks]
        run_in_threads(kernels.add_up_rows, calls, n_jobs, "adding up rows")

    def __repr__(self) -> str:
        return (
            f"Encoding({self.n_rows:,} rows x {self.forest.n_trees:,} trees, "
            f"{self.codes.dtype}, {self.codes.nbytes:,} bytes)"
        )


def encode(forest: Forest, X: Any, *, n_jobs: int | None = None) -> Encoding:
    """Route every row of `X` down every tree of `forest`.

    Parameters
    ----------
    forest : Forest
    X : array-like of shape (m, n_features)
        numpy, pandas or polars. Compared with thresholds exactly as the source library does.
    n_jobs : int or None
        Threads; None takes every core.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> import forestprune as fp
    >>> wine = fp.load_wine_quality()
    >>> model = RandomForestRegressor(5, max_depth=3, random_state=0).fit(wine.data, wine.target)
    >>> fp.encode(fp.Forest.from_model(model), wine.data)
    Encoding(6,497 rows x 5 trees, uint8, 32,485 bytes)
    """
    if not isinstance(forest, Forest):
        raise TypeError(
            f"A Forest is required, got {type(forest).__name__}. Make one of a fitted model with "
            "Forest.from_model(model)."
        )
    return encode_matrix(forest, forest.input.matrix(X), n_jobs)


def encode_matrix(forest: Forest, matrix: FloatMatrix, n_jobs: int | None = None) -> Encoding:
    """Route rows that `InputSpec.matrix` has checked down every tree."""
    rows = len(matrix)
    codes = np.empty((forest.n_trees, rows), dtype=code_dtype(forest))
    # A few tasks a thread even out trees of different size.
    threads = thread_count(n_jobs)
    pieces = forest.row_pieces(rows, at_least=1 if forest.n_trees >= threads else threads)
    tasks = [
        (matrix, first, last, start, stop, forest.splits, codes)
        for first, last in split_range(forest.n_trees, -(-8 * threads // len(pieces)))
        for start, stop in pieces
    ]
    run_in_threads(kernels.encode_trees, tasks, n_jobs, "routing rows")
    return Encoding(forest, seal(codes))


def code_dtype(forest: Forest) -> np.dtype[Any]:
    """Return the smallest type that can tell the leaves of each tree apart."""
    return np.min_scalar_type(int(leaf_counts(forest).max(initial=1)) - 1)


def leaf_counts(forest: Forest) -> NDArray[np.int64]:
    """Return how many leaves each tree has."""
    return (np.diff(forest.offsets) + 1) // 2


def checked_weights(sample_weight: ArrayLike, rows: int) -> NDArray[np.float64]:
    """Return weights of rows that can be used as such, or say what is wrong with them."""
    weights = frozen_array("sample_weight", np.asarray(sample_weight, dtype=np.float64), "f8", 1)
    if weights.shape != (rows,):
        raise OptionError(
            f"{{sample_weight}} must have one entry for each of the {rows} rows of X, "
            f"got shape {weights.shape}."
        )
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise OptionError(
            "{sample_weight} must be finite, not negative, and positive for at least one row."
        )
    return weights
