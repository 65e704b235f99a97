"""Rows that are routed down a model's trees, once for all that is done with them."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestprune.blocks.blocks import Blocks
from forestprune.blocks.given import blocks_of
from forestprune.exceptions import OptionError
from forestprune.forest.classes import Label, class_numbers, labels_of, row_weights
from forestprune.forest.inputs import FloatMatrix
from forestprune.forest.origin import Origin
from forestprune.interop.source import Source
from forestprune.loss import Loss, SquaredError, loss_for
from forestprune.rows.encoding import Encoding, checked_weights, encode_matrix
from forestprune.solve.contributions import predict_codes
from forestprune.solve.problem import Problem, checked_target, pose


@dataclass(frozen=True, eq=False)
class RoutedRows:
    """Rows as the trees of a model see them, with what predictions should be.

    Attributes
    ----------
    source : Source
    encoding : Encoding
    target : float64 array of shape (n_outputs, m)
        y, or what the original model says. Of classes 1 for that of the row, 0 for others; of two
        there is one output, about the second.
    sample_weight : float64 array of shape (m,), or None
        Weights in the loss: those given, times that of the row's class if the model was trained
        with such.
    original : float64 array of shape (n_outputs, m), or None
        What the original model predicts, if the source is not just that; else its codes tell.
    labelled : bool
        Whether `target` is y.
    loss : Loss
        What predictions are judged by.
    plain_weight : float64 array of shape (m,), or None
        The weights given.
    numbers : int64 array of shape (m,), or None
        The number of each row's class, if y is one.
    matrix : float array of shape (m, n_features), or None
        The rows themselves, if they were to be kept.
    """

    source: Source
    encoding: Encoding
    target: NDArray[np.float64]
    sample_weight: NDArray[np.float64] | None = None
    original: NDArray[np.float64] | None = None
    labelled: bool = True
    loss: Loss = field(default_factory=SquaredError)
    plain_weight: NDArray[np.float64] | None = None
    numbers: NDArray[np.int64] | None = None
    matrix: FloatMatrix | None = None

    @classmethod
    def of(
        cls,
        source: Source,
        X: Any,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None = None,
        n_jobs: int | None = None,
        *,
        keep_matrix: bool = False,
    ) -> "RoutedRows":
        """Send the rows of `X`, which the pipeline of a source takes, down its trees.

        New splits are chosen by the rows themselves: then the matrix of them is to be kept.
        """
        check_comparable(source, labelled=y is not None)
        rows = source.forest.input.matrix(source.transform(X))
        del X
        return cls.of_matrix(source, rows, y, sample_weight, n_jobs, keep_matrix=keep_matrix)

    @classmethod
    def of_matrix(
        cls,
        source: Source,
        rows: FloatMatrix,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None = None,
        n_jobs: int | None = None,
        *,
        keep_matrix: bool = False,
        class_counts: NDArray[np.int64] | None = None,
    ) -> "RoutedRows":
        """Send rows that `InputSpec.matrix` has checked down the trees of a source.

        `class_counts` are how many rows of each class there are, if these are not all of them.
        """
        origin = source.original.origin
        loss = check_comparable(source, labelled=y is not None)
        encoding = encode_matrix(source.forest, rows, n_jobs)
        n_rows, outputs, original = encoding.n_rows, source.forest.n_outputs, None
        weights = None if sample_weight is None else checked_weights(sample_weight, n_rows)
        plain_weight, numbers = weights, None
        if source.uncut is not None:
            predicted = source.original.predict_matrix(rows, n_jobs)
            original = np.ascontiguousarray(predicted.T)
        if y is None:
            target = loss.response(predict_codes(encoding) if original is None else original)
        elif origin is not None and origin.classes:
            numbers = class_numbers(origin, y, n_rows)
            weights = _times(weights, row_weights(origin, numbers, class_counts))
            target = _one_hot(numbers, outputs)
        else:
            target = checked_target(y, n_rows, outputs)
        loss.check_target(target)
        labelled = y is not None
        return cls(
            source,
            encoding,
            target,
            weights,
            original,
            labelled,
            loss,
            plain_weight,
            numbers,
            rows if keep_matrix else None,
        )

    @property
    def kept_matrix(self) -> FloatMatrix:
        """The rows themselves."""
        if self.matrix is None:
            raise ValueError("These rows were routed without keeping them; keep_matrix keeps them.")
        return self.matrix

    @property
    def origin(self) -> Origin | None:
        """What is known of the original model."""
        return self.source.original.origin

    @property
    def is_classes(self) -> bool:
        """Whether the model tells classes apart."""
        return self.origin is not None and bool(self.origin.classes)

    @property
    def labels(self) -> NDArray[Any]:
        """What was given as y: labels of classes, or numbers."""
        if self.numbers is not None and self.origin is not None:
            return labels_of(self.origin)[self.numbers]
        return self.target[0] if len(self.target) == 1 else self.target.T

    @cached_property
    def full(self) -> NDArray[np.float64]:
        """What the original model predicts: shape (n_outputs, m)."""
        return predict_codes(self.encoding) if self.original is None else self.original

    def take(self, rows: NDArray[np.int64]) -> "RoutedRows":
        """Return some of the rows."""
        return replace(
            self,
            encoding=self.encoding.take(rows),
            target=self.target[:, rows],
            sample_weight=None if self.sample_weight is None else self.sample_weight[rows],
            original=None if self.original is None else self.original[:, rows],
            plain_weight=None if self.plain_weight is None else self.plain_weight[rows],
            numbers=None if self.numbers is None else self.numbers[rows],
            matrix=None if self.matrix is None else self.matrix[rows],
        )

    @property
    def total_weight(self) -> float:
        """What all rows weigh in the loss."""
        weight = self.sample_weight
        return float(self.encoding.n_rows if weight is None else weight.sum())

    @property
    def classes_there(self) -> NDArray[np.int64]:
        """The numbers of the classes that have rows, if y is classes; other weights than 0."""
        if self.numbers is None:
            return np.empty(0, np.int64)
        weight = self.plain_weight
        return np.unique(self.numbers if weight is None else self.numbers[weight > 0.0])

    @property
    def only_class(self) -> Label | None:
        """The label that all rows have, if they do."""
        if self.origin is None or self.classes_there.size != 1:
            return None
        return self.origin.classes[int(self.classes_there[0])]

    def problem(self, n_jobs: int | None) -> Problem:
        """Return the problem of pruning with these rows."""
        if self.only_class is not None:
            raise ValueError(
                f"y must hold labels of two classes or more, got {self.only_class!r} only, which a "
                "constant tells as well as any model. Give rows of other classes too."
            )
        return pose(
            self.encoding,
            self.target.T,
            sample_weight=self.sample_weight,
            n_jobs=n_jobs,
            loss=self.loss,
        )


VALIDATION_ROWS = 100_000
"""Validation rows at most that are taken of those that come by the block."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows to choose by, not routed yet."""

    X: Any
    y: ArrayLike | None
    sample_weight: ArrayLike | None

    @classmethod
    def of(
        cls,
        X_val: Any,
        y_val: ArrayLike | None,
        sample_weight_val: ArrayLike | None,
        *,
        labelled: bool,
    ) -> "HeldOut | None":
        """Return validation rows, if they are given; refuse half of them.

        If the other rows are not `labelled`, these need not be.
        """
        if X_val is None and y_val is None and sample_weight_val is None:
            return None
        blocks = blocks_of(X_val, y_val, sample_weight_val, ("X_val", "y_val"))
        if X_val is None or (
            (y_val is None if blocks is None else not blocks.labelled) and labelled
        ):
            raise OptionError("{X_val} and {y_val} must be given together.")
        if blocks is not None:
            return cls(blocks, None, None)
        return cls(X_val, y_val, sample_weight_val)

    def routed(
        self, source: Source, n_jobs: int | None, *, keep_matrix: bool = False
    ) -> RoutedRows:
        """Send these rows down the trees of a model; of rows by the block, a sample."""
        try:
            if isinstance(self.X, Blocks):
                from forestprune.select.sampling import as_seen_by, survey

                found = survey(
                    source,
                    as_seen_by(source, self.X),
                    VALIDATION_ROWS,
                    "drawing validation rows",
                    n_jobs,
                    by_leaves=False,
                )
                return found.routed(source, n_jobs, stand_for_all=False, keep_matrix=keep_matrix)
            return RoutedRows.of(
                source, self.X, self.y, self.sample_weight, n_jobs, keep_matrix=keep_matrix
            )
        except (TypeError, ValueError) as error:
            error.add_note("X and y are those of validation here: X_val and y_val.")
            raise


def _one_hot(numbers: NDArray[np.int64], outputs: int) -> NDArray[np.float64]:
    """Return 1 for the class of each row and 0 for others, (n_outputs, m); see `RoutedRows`."""
    if outputs == 1:
        return np.asarray(numbers == 1, dtype=np.float64)[np.newaxis]
    return np.asarray(np.arange(outputs)[:, np.newaxis] == numbers, dtype=np.float64)


def _times(
    weights: NDArray[np.float64] | None, others: NDArray[np.float64] | None
) -> NDArray[np.float64] | None:
    """Return the product of weights of rows, of which None means 1."""
    if weights is None or others is None:
        return others if weights is None else weights
    product: NDArray[np.float64] = weights * others
    return product


def check_comparable(source: Source, *, labelled: bool) -> Loss:
    """Return the loss that a model is pruned for; refuse a target that it says nothing about."""
    origin = source.original.origin
    loss = loss_for(origin, labelled=labelled)
    if loss is None:
        raise ValueError(_incomparable(origin))
    return loss


def _incomparable(origin: Origin | None) -> str:
    """Return why a model is pruned without y only."""
    name, known = "model" if origin is None else origin.model_class, ""
    if origin is not None and origin.objective != "unknown":
        known = f" ({origin.objective.replace('_', ' ')}; its trees add up to {origin.predicts})"
    return (
        f"Pruning does not know the loss that this {name} was trained for{known}, so y cannot tell "
        "how good its predictions are. Leave y out: then it is pruned towards what it says itself."
    )


def checked_alphas(alphas: ArrayLike) -> NDArray[np.float64]:
    """Return alphas that a user gave, falling, each once."""
    given = np.asarray(alphas, dtype=np.float64)
    if given.ndim != 1 or not given.size or not np.isfinite(given).all() or (given < 0).any():
        raise OptionError(
            f"{{alphas}} must be a list of finite numbers, none negative; got {alphas!r}."
        )
    return np.unique(given)[::-1]
