"""The trade-off between size and error: pruned forests for falling alphas, and choosing one."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestprune.exceptions import OptionError
from forestprune.interop.source import Source
from forestprune.select.budget import Budget
from forestprune.select.choice import choose_point
from forestprune.select.ending import may_pay
from forestprune.select.figures import column_name
from forestprune.select.path_file import read_path, write_path
from forestprune.select.pruned import PrunedForest, count_new_splits
from forestprune.select.routed import RoutedRows
from forestprune.select.scoring import Scoring, check_scoring
from forestprune.select.validation import Validation, validate
from forestprune.solve.point import Point

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class PruningPath:
    """Pruned forests for falling alphas, from a constant on.

    ``path[i]`` is the i-th of them, ``path[i:j]`` a path of some of them, ``len(path)`` their
    number. With several shrinkages the points of all are there, by alpha. With ``polish="split"``
    models with new splits stand beside those that are only pruned, at the same alpha.

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

    @classmethod
    def joined(
        cls, source: Source, points: Sequence[Point], parts: Sequence[Validation]
    ) -> PruningPath:
        """Return a path of points in any order, with what is known of them part after part.

        What new splits make of a point comes before it, so that the full model stays the last.
        """
        plain = [point.forest is None for point in points]
        order = np.lexsort((plain, [-point.alpha for point in points]))
        validation = Validation.joined(parts).take(order) if parts else None
        return cls(source, tuple(points[i] for i in order), validation)

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
        """Loss of each point over that of the best constant, on the rows it was pruned with."""
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

    @cached_property
    def n_new_splits(self) -> NDArray[np.int64]:
        """Number of splits that the model does not have, at each alpha: see ``polish="split"``."""
        forest = self.source.forest
        return np.array([count_new_splits(forest, point) for point in self.points], dtype=np.int64)

    @property
    def max_depths(self) -> NDArray[np.int64]:
        """Depth of the deepest tree at each alpha."""
        return np.array([point.max_depth for point in self.points], dtype=np.int64)

    def n_bytes(self, index: int) -> int:
        """Return the size of the file of one point: see `PrunedForest.n_bytes`."""
        if index not in self._bytes:
            self._bytes[index] = self[index].n_bytes
        return self._bytes[index]

    def __len__(self) -> int:
        return len(self.points)

    @overload
    def __getitem__(self, index: int) -> PrunedForest: ...
    @overload
    def __getitem__(self, index: slice) -> PruningPath: ...
    def __getitem__(self, index: int | slice) -> PrunedForest | PruningPath:
        if isinstance(index, slice):
            validation = None if self.validation is None else self.validation.take(index)
            return PruningPath(self.source, self.points[index], validation)
        place = operator.index(index)
        if not -len(self) <= place < len(self):
            raise IndexError(f"The path has {len(self)} points, so there is no path[{place}].")
        return PrunedForest.of(self.source, self.points[place], self, place % len(self))

    def __iter__(self) -> Iterator[PrunedForest]:
        return (self[index] for index in range(len(self)))

    def score(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        scoring: Scoring = None,
    ) -> NDArray[np.float64]:
        """Return the score of every point on the rows of `X`.

        That is the share of the loss explained, R squared for squared error, or what `scoring`
        says: see :class:`forestprune.Options`. Without `y`, what the original says is taken for it.

        Rows are sent down the trees once for the whole path; from one point to the next only trees
        that differ are gone through.
        """
        return self.validate(X, y, sample_weight=sample_weight, scoring=scoring).scores

    def validate(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        scoring: Scoring = None,
        n_jobs: int | None = None,
    ) -> Validation:
        """Return the scores of every point and of the full model on the rows of `X`.

        See :meth:`score`.
        """
        check_scoring(scoring)
        return validate(self.routed(X, y, sample_weight, n_jobs), self.points, scoring)

    def routed(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> RoutedRows:
        """Return rows as every point can be scored on them."""
        own = any(point.forest is not None for point in self.points)
        return RoutedRows.of(self.source, X, y, sample_weight, n_jobs, keep_matrix=own)

    def select(
        self,
        *,
        max_nodes: int | None = None,
        max_trees: int | None = None,
        max_depth: int | None = None,
        max_bytes: int | None = None,
        format: str | None = None,  # noqa: A002
        tolerance: float | None = None,
        confidence: float | None = None,
        one_standard_error: bool = False,
        scoring: Scoring = None,
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
        format : str or None
            The ending of that file, such as "json"; None takes that which the path was made for.
        tolerance : float or None
            Take the smallest model whose score on validation rows is at most this much below that
            of the full model: the paper's phi. The score is the share of the loss explained, R
            squared for squared error, or what `scoring` says.
        confidence : float or None
            How sure validation rows must make that `tolerance` is kept to, such as 0.95: see
            :class:`forestprune.Options`. None takes the loss as measured.
        one_standard_error : bool
            Take the smallest model that is at most one standard error worse, on validation rows,
            than the best.
        scoring : str, callable or None
            What the rows of `X` choose by: see :class:`forestprune.Options`. Without them, models
            were scored when the path was made.
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
            validation = self.validate(X, y, sample_weight=sample_weight, scoring=scoring)
        elif scoring is not None:
            raise OptionError(
                "{scoring} needs the validation rows again: give {X} and {y} to select(), or "
                "{scoring} when the path is made."
            )
        path = self
        if format is not None or validation is not self.validation:
            path = PruningPath(self.source.written_as(format), self.points, validation)
        return path[path.choose(budget, tolerance, one_standard_error, path.validation, confidence)]

    def choose(
        self,
        budget: Budget,
        tolerance: float | None,
        one_standard_error: bool,
        validation: Validation | None,
        confidence: float | None = None,
    ) -> int:
        """Return the index of the point that :meth:`select` takes."""
        return choose_point(
            self.points, self.n_bytes, validation, budget, tolerance, one_standard_error, confidence
        )

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return numbers about the points, one array for each: see :meth:`to_frame`."""
        columns: dict[str, NDArray[Any]] = {"alpha": self.alphas}
        shrinkages = [point.report.get("shrinkage") for point in self.points]
        if any(shrinkage is not None for shrinkage in shrinkages):
            columns["shrinkage"] = np.array(shrinkages, dtype=np.float64)
        columns |= {
            "nodes": self.n_nodes,
            "trees": self.n_trees,
            "max_depth": self.max_depths,
        }
        if self.n_new_splits.any():
            columns["new_splits"] = self.n_new_splits
        columns |= {
            "loss": self.losses,
            "objective": self.objectives,
        }
        if any("certificate" in point.report for point in self.points):
            for name in ("bound", "gap"):
                known = [point.report.get("certificate", {}).get(name) for point in self.points]
                columns[name] = np.array(known, dtype=np.float64)
        validation = self.validation
        if validation is not None:
            columns[column_name(validation.name)] = validation.scores
            columns["standard_error"] = validation.standard_errors
            columns |= {n: column for n, column in validation.metrics.items() if n not in columns}
        return columns

    def to_frame(self) -> pd.DataFrame:
        """Return a table with a row for each point, as a pandas DataFrame.

        Its columns: `alpha`; `shrinkage`, if there are several to choose from; `nodes`, `trees`
        and `max_depth`; `new_splits`, if splits of some points were chosen anew; `loss`, that of
        the model over that of the best constant on the rows to prune with, and `objective`; with
        ``certify=True`` `bound` and `gap`. With validation rows the score on them, as `r_squared`,
        `d_squared` or by the name of `scoring`, and its `standard_error`; with a target `rmse` and
        `mae`, in its units, or for classes `log_loss`, `accuracy`, `balanced_accuracy` and
        `roc_auc`.

        Examples
        --------
        >>> from sklearn.ensemble import RandomForestRegressor
        >>> import forestprune as fp
        >>> wine = fp.load_wine_quality()
        >>> model = RandomForestRegressor(20, random_state=0).fit(wine.data, wine.target)
        >>> path = fp.prune_path(model, wine.data, wine.target, n_alphas=20)
        >>> list(path.to_frame().columns)
        ['alpha', 'nodes', 'trees', 'max_depth', 'loss', 'objective']
        """
        try:
            import pandas as pd
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "to_frame() needs pandas, which is not installed: pip install pandas", name="pandas"
            ) from error
        return pd.DataFrame(self.columns())

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
        new = int(np.count_nonzero(self.n_new_splits))
        told = f", {new:,} with new splits" if new else ""
        return (
            f"PruningPath({len(self)} points, {self.n_nodes[0]:,} to {self.n_nodes[-1]:,} nodes, "
            f"alpha {self.alphas[0]:.3g} to {self.alphas[-1]:.3g}{told})"
        )

    def _column(self, name: str) -> NDArray[np.float64]:
        return np.array([getattr(point, name) for point in self.points], dtype=np.float64)


def keeps_to(source: Source, budget: Budget, point: Point) -> bool:
    """Tell whether what a point leaves of a model keeps to a budget."""
    if not budget.allows(point):
        return False
    limit = budget.max_bytes
    return limit is None or PrunedForest.of(source, point).n_bytes <= limit


def breaks_off(path: PruningPath) -> bool:
    """Tell whether models between the last pruned one and the full one, which ends it, are missing.

    A path that serves a budget or a tolerance ends where that is reached. Nothing should be drawn
    or concluded between there and the full model, as if there were no others. But if a pruned model
    is as good as that on validation rows, nothing better need be missing.
    """
    pruned = [point for point in path.points if point.forest is None]
    if len(pruned) < 2 or pruned[-1] is not path.points[-1]:
        return False
    before, full = pruned[-2:]
    if full.alpha > 0.0 or full.values is not None or not may_pay(before):
        return False
    if full.n_nodes <= 2 * before.n_nodes:
        return False  # then little room is left between them
    scores = None if path.validation is None else path.validation.scores
    return bool(scores is None or scores[:-1].max() < scores[-1])
