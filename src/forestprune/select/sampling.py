"""A sample of rows by the block, and what all of them add up to.

Which rows are in it depends on their numbers alone, so that it is the same however they are divided
into blocks.
"""

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from forestprune import kernels
from forestprune.blocks.blocks import Block, Blocks
from forestprune.blocks.lots import lots
from forestprune.exceptions import OptionError
from forestprune.forest.checks import seal
from forestprune.forest.classes import class_numbers, row_weights
from forestprune.forest.forest import Forest
from forestprune.forest.inputs import FloatMatrix, read_only_view
from forestprune.interop.source import Source
from forestprune.rows.encoding import Encoding, encode_matrix
from forestprune.rows.trees import first_leaves
from forestprune.select.routed import RoutedRows, check_comparable
from forestprune.solve.problem import checked_target

Floats = NDArray[np.float64]
AnyBlocks = TypeVar("AnyBlocks", bound=Blocks)

LEAST_SHARE = 1e-6
"""Of the rows of a tree: leaves with less count as if they had so many."""


class Chances:
    """How likely rows are drawn, by the leaves they end in: twice as likely, half the weight.

    A row that few share a leaf with, in many trees, must not be missing: nothing else would tell
    these trees that they answer to the same rows. How much of what trees may add depends on one row
    is at most the sum over trees of 1 over the rows in its leaf. The chance goes by that as much as
    by being a row at all. How many rows are in a leaf is taken from training.
    """

    def __init__(self, forest: Forest) -> None:
        first = first_leaves(forest.offsets)
        leaves = np.flatnonzero(forest.left < 0)
        root = np.repeat(forest.cover[forest.offsets[:-1]], np.diff(first))
        cover = forest.cover[leaves]
        known = (cover > 0.0) & np.isfinite(cover) & (root > 0.0)
        share = np.divide(cover, root, out=np.ones(leaves.size), where=known)
        scarce = 1.0 / np.maximum(share, LEAST_SHARE)
        self._table = np.ascontiguousarray(scarce[:, np.newaxis] / max(leaves.size, 1))
        self._first = first

    def of(self, encoding: Encoding) -> Floats:
        """Return the chance of each row, about 1 on average."""
        found, trees = np.zeros((1, encoding.n_rows)), np.arange(encoding.forest.n_trees)
        nothing, output = np.zeros_like(self._table), np.empty(0, encoding.forest.tree_output.dtype)
        kernels.replace_columns(
            encoding.codes, trees, self._first, seal(output), nothing, self._table, found
        )
        return np.asarray(0.5 + 0.5 * found[0])


def drawn(numbers: NDArray[np.int64], chances: Floats, size: int) -> NDArray[np.int64]:
    """Return which rows are drawn, as places; `size` at most."""
    if numbers.size <= size:
        return np.arange(numbers.size)
    return np.argpartition(lots(numbers) / chances, size)[:size]


def weights_of(numbers: NDArray[np.int64], chances: Floats) -> Floats:
    """Return for how many rows each of those stands that were drawn, all alike scaled."""
    # Rows were drawn if their lot was below this times their chance.
    limit = float((lots(numbers) / chances).max(initial=0.0))
    return np.asarray(1.0 / np.minimum(limit * chances, 1.0))


@dataclass(frozen=True, eq=False)
class Survey:
    """What one pass over rows tells of them, and those of them that were drawn.

    Attributes
    ----------
    size : int
        How many rows are drawn at most.
    n_rows : int
    class_counts : int64 array
        How many rows each class has; of one entry if y is no class.
    class_weights : float64 array
        What they weigh together.
    numbers : int64 array
        The numbers of the rows that were drawn.
    chances : float64 array
        How likely that was.
    matrix, y, weight
        Themselves; y and weight None if there are none.
    """

    size: int
    n_rows: int
    class_counts: NDArray[np.int64]
    class_weights: Floats
    numbers: NDArray[np.int64]
    chances: Floats
    matrix: FloatMatrix
    y: NDArray[Any] | None
    weight: Floats | None

    def __add__(self, other: "Survey") -> "Survey":
        both = replace(
            self,
            n_rows=self.n_rows + other.n_rows,
            class_counts=self.class_counts + other.class_counts,
            class_weights=self.class_weights + other.class_weights,
            numbers=np.concatenate([self.numbers, other.numbers]),
            chances=np.concatenate([self.chances, other.chances]),
            matrix=np.concatenate([self.matrix, other.matrix]),
            y=_joined(self.y, other.y),
            weight=_joined(self.weight, other.weight),
        )
        if both.numbers.size <= self.size:
            return both
        return both._take(drawn(both.numbers, both.chances, self.size))

    def _take(self, some: NDArray[np.int64]) -> "Survey":
        return replace(
            self,
            numbers=self.numbers[some],
            chances=self.chances[some],
            matrix=self.matrix[some],
            y=None if self.y is None else self.y[some],
            weight=None if self.weight is None else self.weight[some],
        )

    def routed(
        self,
        source: Source,
        n_jobs: int | None,
        *,
        stand_for_all: bool,
        keep_matrix: bool = False,
    ) -> RoutedRows:
        """Return the rows that were drawn; if they `stand_for_all`, with weights as all have."""
        found = self._take(np.argsort(self.numbers))
        if self.weight is not None and not self.class_weights.any():
            raise OptionError("{sample_weight} must be positive for at least one row.")
        rows = RoutedRows.of_matrix(
            source,
            read_only_view(found.matrix),
            found.y,
            found.weight,
            n_jobs,
            keep_matrix=keep_matrix,
            class_counts=self.class_counts,
        )
        if self.n_rows == self.numbers.size or not stand_for_all:
            return rows
        times = weights_of(found.numbers, found.chances)
        return stands_for_all(rows, times, self._total_weight(source))

    def _total_weight(self, source: Source) -> float:
        """Return what all rows weigh in the loss."""
        origin = source.original.origin
        if origin is None or self.class_weights.size == 1:
            return float(self.class_weights.sum())
        by_class = row_weights(origin, np.arange(self.class_weights.size), self.class_counts)
        return float((self.class_weights * (1.0 if by_class is None else by_class)).sum())


def stands_for_all(rows: RoutedRows, times: Floats, total_weight: float) -> RoutedRows:
    """Return rows that stand for some `times` themselves, with the weight that all rows have."""
    weight = times if rows.sample_weight is None else times * rows.sample_weight
    return replace(rows, sample_weight=seal(weight * (total_weight / weight.sum())))


def _joined(first: NDArray[Any] | None, second: NDArray[Any] | None) -> NDArray[Any] | None:
    if (first is None) != (second is None):
        raise ValueError("Either all blocks have weights of rows or none has.")
    return None if first is None or second is None else np.concatenate([first, second])


@dataclass(frozen=True)
class Surveying:
    """Makes a survey of a block: checks its target and weights, and draws from its rows."""

    source: Source
    size: int
    labelled: bool
    chances: Chances | None
    n_jobs: int | None

    def __call__(self, block: Block) -> Survey:
        """Return what a block tells."""
        n_rows, origin = len(block), self.source.original.origin
        weight = None if block.weight is None else _weights(block.weight, n_rows)
        each = np.ones(n_rows) if weight is None else weight
        y, counts, weights = None, np.array([n_rows]), np.array([each.sum()])
        if self.labelled:
            y = np.asarray(block.y)
            if origin is not None and origin.classes:
                numbers = class_numbers(origin, y, n_rows)
                y = y.reshape(n_rows)
                counts = np.bincount(numbers, minlength=len(origin.classes))
                weights = np.bincount(numbers, each, minlength=len(origin.classes))
            else:
                target = checked_target(y, n_rows, self.source.forest.n_outputs)
                check_comparable(self.source, labelled=True).check_target(target)
                y = target.T
        numbers, chances = block.first + np.arange(n_rows), np.ones(n_rows)
        matrix = self.source.forest.input.matrix(self.source.transform(block.X))
        if self.chances is not None:
            chances = self.chances.of(encode_matrix(self.source.forest, matrix, self.n_jobs))
        some = drawn(numbers, chances, self.size)
        return Survey(
            size=self.size,
            n_rows=n_rows,
            class_counts=counts.astype(np.int64),
            class_weights=weights,
            numbers=numbers[some],
            chances=chances[some],
            matrix=matrix[some],
            y=None if y is None else y[some],
            weight=None if weight is None else weight[some],
        )


def _weights(given: Any, n_rows: int) -> Floats:
    """Return weights of the rows of a block, or say what is wrong with them."""
    weight = np.array(given, dtype=np.float64).reshape(-1)
    if weight.size != n_rows:
        raise OptionError(
            f"{{sample_weight}} must have one entry for each of {n_rows} rows, got {weight.size}."
        )
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise OptionError("{sample_weight} must be finite and not negative.")
    return weight


def as_seen_by(source: Source, blocks: AnyBlocks) -> AnyBlocks:
    """Return rows by the block with the columns that a model takes, if they can be told by name."""
    spec, pipeline = source.forest.input, source.pipeline
    names = spec.feature_names
    if pipeline is not None and len(pipeline.steps) > 1:
        names = getattr(pipeline, "feature_names_in_", None)
        return blocks.with_features(None if names is None else [str(name) for name in names])
    return blocks.with_features(names, underscores=spec.underscores)


def survey(
    source: Source,
    blocks: Blocks,
    size: int,
    description: str,
    n_jobs: int | None,
    *,
    by_leaves: bool = True,
) -> Survey:
    """Go through all rows once; return what they are, and `size` of them at most.

    Rows are drawn with chances that go by their leaves, or else all with the same.
    """
    check_comparable(source, labelled=blocks.labelled)
    chances = Chances(source.forest) if by_leaves else None
    threads = 1 if blocks.parallel else n_jobs
    surveying = Surveying(source, size, blocks.labelled, chances, threads)
    return blocks.add_up(surveying, description)
