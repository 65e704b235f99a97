"""Sums over all rows, at some models: losses, gradients and Hessians at every node."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestprune.blocks.blocks import Block
from forestprune.forest.inputs import FloatMatrix
from forestprune.interop.source import Source
from forestprune.kernels.records import Trees
from forestprune.loss import Loss
from forestprune.polishing.leaf_rounds import nodes_asked
from forestprune.select.routed import RoutedRows
from forestprune.solve.contributions import Predictions
from forestprune.solve.correction import Sums
from forestprune.solve.expanded import expansion
from forestprune.solve.point import Point

Floats = NDArray[np.float64]

BITS = 36.0
"""How many bits of the largest sum are kept: the last tell in which order rows were added up."""


@dataclass(frozen=True, eq=False)
class Measured:
    """What rows add up to.

    Attributes
    ----------
    n_rows : int
    of_constant : float
        The loss of a constant, summed over rows.
    losses : float64 array
        That of each model.
    sums : tuple of Sums
        At every node, for each model; empty if they were not asked for.
    """

    n_rows: int
    of_constant: float
    losses: Floats
    sums: tuple[Sums, ...]

    def __add__(self, other: "Measured") -> "Measured":
        return Measured(
            self.n_rows + other.n_rows,
            self.of_constant + other.of_constant,
            self.losses + other.losses,
            _added(self.sums, other.sums),
        )


def _added(mine: Sequence[Sums], theirs: Sequence[Sums]) -> tuple[Sums, ...]:
    """Return sums of sums. Models may share an array of weights, which is added up once."""
    weights: dict[int, Any] = {}
    added = []
    for one, other in zip(mine, theirs, strict=True):
        weight = weights.setdefault(id(one.weight), None)
        if weight is None:
            weight = weights[id(one.weight)] = one.weight + other.weight
        added.append(Sums(weight, one.residual + other.residual))
    return tuple(added)


def steady(sums: Sums) -> Sums:
    """Return sums without their last bits, which tell in which order rows were added up."""
    return Sums(_rounded(sums.weight), np.array([_rounded(each) for each in sums.residual]))


def _rounded(sums: Floats) -> Floats:
    largest = max(float(np.abs(sums).max(initial=0.0)), 1e-300)
    unit = np.exp2(np.ceil(np.log2(largest)) - BITS)
    return np.asarray(np.round(sums / unit) * unit)


@dataclass(frozen=True, eq=False)
class Measuring:
    """Measures models on a block of rows.

    Attributes
    ----------
    source : Source
    trees : Trees
        Of its forest, without weights.
    loss : Loss
        With all settled that depends on the scale of the target.
    constant : float64 array of shape (n_outputs,)
        The raw prediction that is the same for all rows, which models are compared with.
    points : list of Point
    class_counts : int64 array
        How many rows each class has.
    sums : bool
        Whether sums at nodes are wanted, not losses alone.
    n_jobs : int or None
    at_leaves : bool
        Whether sums are wanted only at what `nodes_asked` says of each model.
    """

    source: Source
    trees: Trees
    loss: Loss
    constant: Floats
    points: Sequence[Point]
    class_counts: NDArray[np.int64]
    sums: bool
    n_jobs: int | None
    at_leaves: bool = False

    def __call__(self, block: Block) -> Measured:
        """Return what the rows of a block add up to."""
        matrix = self.source.forest.input.matrix(self.source.transform(block.X))
        return self.of_matrix(matrix, block)

    def of_matrix(self, matrix: FloatMatrix, block: Block) -> Measured:
        """Return what the rows of a block add up to, given as `InputSpec.matrix` makes them."""
        rows = RoutedRows.of_matrix(
            self.source, matrix, block.y, None, self.n_jobs, class_counts=self.class_counts
        )
        if block.weight is not None:  # which may be 0 for a whole block
            weight = np.array(block.weight, dtype=np.float64).reshape(-1)
            by_class = rows.sample_weight
            rows = replace(rows, sample_weight=weight if by_class is None else weight * by_class)
        return self.measure(rows)

    def measure(self, rows: RoutedRows) -> Measured:
        """Return what rows that are routed add up to."""
        target, weight, loss = rows.target, rows.sample_weight, self.loss
        predictions = Predictions(rows.encoding, self.trees)
        apart = rows.source.forest.tree_output.size > 0
        losses, sums, weights = [], [], None
        for point in self.points:
            predictions.move_to(point)
            raw = predictions.values + point.intercept[:, np.newaxis]
            losses.append(loss.value(target, raw, weight))
            if not self.sums:
                continue
            hessian, residual = expansion(loss, target, raw, weight, apart=apart)
            if weights is None or not loss.quadratic:
                weights = self._weights(rows, hessian, apart=apart)
            found = Sums(weights, rows.encoding.output_sums(residual, self.n_jobs))
            if self.at_leaves:
                nodes = nodes_asked(rows.source.forest, point)
                found = Sums(found.weight[nodes], found.residual[:, nodes])
            sums.append(found)
        of_constant = loss.value(target, self.constant[:, np.newaxis], weight)
        return Measured(rows.encoding.n_rows, of_constant, np.array(losses), tuple(sums))

    def _weights(self, rows: RoutedRows, hessian: Floats | None, *, apart: bool) -> Floats:
        """Return what the rows that pass each node weigh."""
        encoding = rows.encoding
        if hessian is None:
            hessian = np.ones(encoding.n_rows)
        if apart and hessian.ndim == 2:
            return np.asarray(encoding.output_sums(hessian, self.n_jobs)[0])
        return encoding.node_sums(hessian, self.n_jobs)


@dataclass(frozen=True, eq=False)
class MeasuredEach:
    """What rows add up to for each of several measurings."""

    parts: tuple[Measured, ...]

    def __add__(self, other: "MeasuredEach") -> "MeasuredEach":
        pairs = zip(self.parts, other.parts, strict=True)
        return MeasuredEach(tuple(mine + theirs for mine, theirs in pairs))


@dataclass(frozen=True, eq=False)
class Together:
    """Measures models of several forests, which take the same rows, on a block of these."""

    each: tuple[Measuring, ...]

    def __call__(self, block: Block) -> MeasuredEach:
        """Return what the rows of a block add up to."""
        source = self.each[0].source
        matrix = source.forest.input.matrix(source.transform(block.X))
        return MeasuredEach(tuple(measuring.of_matrix(matrix, block) for measuring in self.each))
