"""The trade-off between size and error: pruned forests for falling alphas, and choosing one."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestprune.exceptions import OptionError
from forestprune.interop.source import Source
from forestprune.select.budget import Budget
from forestprune.select.choice import choose_point
from forestprune.select.path_file import read_path, write_path
from forestprune.select.pruned import PrunedForest
from forestprune.select.routed import RoutedRows
from forestprune.select.validation import Validation, validate
from forestprune.solve.point import Point


@dataclass(frozen=True, eq=False, repr=False)
class PruningPath:
    """Pruned forests for falling alphas, from a constant on.

    ``path[i]`` is the i-th of them, ``len(path)`` their number.

    Attributes
    ----------
    source : Source
        The model that was pruned.
    points : tuple of Point
        The pruned forests, as numbers about its trees.
    validation : Validation or None
        How they do on validation rows, if there were some.
    """

    source: Source
    points: tuple[Point, ...]
    validation: Validation | None = None
    _bytes: dict[int, int] = field(default_factory=dict)

    @property
    def alphas(self) -> NDArray[np.float64]:
        """The alphas, falling."""
        return self._column("alpha")

    @property
    def objectives(self) -> NDArray[np.float64]:
        """Objective of each point, at its alpha."""
        return self._column("objective")

    @property
    def losses(self) -> NDArray[np.float64]:
        """Mean squared error over var(y) of each point, on the rows it was pruned with."""
        return self._column("loss")

    @property
    def depths(self) -> NDArray[np.int64]:
        """How deep each tree is, one row an alpha; 0 if it is gone."""
        return np.array([point.depths for point in self.points], dtype=np.int64)

    @property
    def weights(self) -> NDArray[np.float64]:
        """How each tree is weighted, one row an alpha; 0 if it is gone."""
        return np.array([point.weights for point in self.points])

    @property
    def intercepts(self) -> NDArray[np.float64]:
        """Intercept, one row an alpha."""
        return np.array([point.intercept for point in self.points])

    @property
    def n_trees(self) -> NDArray[np.int64]:
        """Number of trees left at each alpha."""
        return np.array([point.n_trees for point in self.points], dtype=np.int64)

    @cached_property
    def n_nodes(self) -> NDArray[np.int64]:
        """Number of nodes at each alpha, roots and leaves included."""
        return np.array([point.n_nodes for point in self.points], dtype=np.int64)

    @property
    def max_depths(self) -> NDArray[np.int64]:
        """Depth of the deepest tree at each alpha."""
        return np.array([point.max_depth for point in self.points], dtype=np.int64)

    def n_bytes(self, index: int) -> int:
        """Return the size of the file of one point: see `PrunedForest.n_bytes`."""
        if index not in self._bytes:
            self._bytes[index] = self[index].n_bytes
        return self._bytes[index]

    def keeps_to(self, budget: Budget, point: Point) -> bool:
        """Tell whether a point, of this path or not, keeps to a budget."""
        if not budget.allows(point):
            return False
        limit = budget.max_bytes
        return limit is None or PrunedForest.of(self.source, point).n_bytes <= limit

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: int) -> PrunedForest:
        return PrunedForest.of(self.source, self.points[operator.index(index)])

    def __iter__(self) -> Iterator[PrunedForest]:
        return (self[index] for index in range(len(self)))

    def score(
        self, X: Any, y: ArrayLike | None = None, *, sample_weight: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Return R squared of every point on the rows of `X`.

        Without `y`, what the original says is taken for it.

        Rows are sent down the trees once for the whole path; from one point to the next only trees
        that differ are gone through.
        """
        return self.validate(X, y, sample_weight=sample_weight).scores

    def validate(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> Validation:
        """Return the scores of every point and of the full model on the rows of `X`.

        Without `y`, what the original says is taken for it.
        """
        rows = RoutedRows.of(self.source, X, y, sample_weight, n_jobs)
        return validate(rows, self.points)

    def select(
        self,
        *,
        max_nodes: int | None = None,
        max_trees: int | None = None,
        max_depth: int | None = None,
        max_bytes: int | None = None,
        tolerance: float | None = None,
        one_standard_error: bool = False,
        X: Any = None,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> PrunedForest:
        """Return the best point within a budget, or the smallest one that is good enough.

        Parameters
        ----------
        max_nodes, max_trees, max_depth : int or None
            What the model may have: nodes (roots and leaves included), trees, depth.
        max_bytes : int or None
            Size of the exported model's file: see `PrunedForest.n_bytes`.
        tolerance : float or None
            Take the smallest model whose R squared on validation rows is at most this much below
            that of the full model: the paper's phi.
        one_standard_error : bool
            Take the smallest model that is at most one standard error worse, on validation rows,
            than the best.
        X, y, sample_weight
            Validation rows, `y` as for :meth:`score`. By default those that the path was made
            with. Without any, the best within a budget is the one with the least error on the rows
            it was pruned with.

        Raises
        ------
        ValueError
            If no point is within the budget, or good enough.
        """
        budget = Budget(
            max_nodes=max_nodes, max_trees=max_trees, max_depth=max_depth, max_bytes=max_bytes
        )
        validation = self.validation
        if X is not None or y is not None or sample_weight is not None:
            if X is None:
                raise OptionError("{X} must be given with {y} and {sample_weight}.")
            validation = self.validate(X, y, sample_weight=sample_weight)
        return self[self.choose(budget, tolerance, one_standard_error, validation)]

    def choose(
        self,
        budget: Budget,
        tolerance: float | None,
        one_standard_error: bool,
        validation: Validation | None,
    ) -> int:
        """Return the index of the point that :meth:`select` takes."""
        return choose_point(
            self.points, self.n_bytes, validation, budget, tolerance, one_standard_error
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write this path and the forest it is about to `path`, as an npz archive without pickle.

        The file appears under its name only when it is complete.
        """
        write_path(path, self.source, self.points, self.validation)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PruningPath:
        """Read a path that :meth:`save` wrote. Reading runs no code from the file."""
        return cls(*read_path(path))

    def __repr__(self) -> str:
        if not self.points:
            return "PruningPath(no points)"
        return (
            f"PruningPath({len(self)} points, {self.n_nodes[0]:,} to {self.n_nodes[-1]:,} nodes, "
            f"alpha {self.alphas[0]:.3g} to {self.alphas[-1]:.3g})"
        )

    def _column(self, name: str) -> NDArray[np.float64]:
        return np.array([getattr(point, name) for point in self.points], dtype=np.float64)
