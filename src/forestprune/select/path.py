"""The trade-off between size and error: pruned forests for falling alphas, and choosing one."""

import operator
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestprune.exceptions import InvalidForestError, OutOfReachError
from forestprune.forest.forest import Forest
from forestprune.interop.source import Source
from forestprune.options import require_count, require_number
from forestprune.select.pruned import PrunedForest
from forestprune.select.scoring import Validation, validate
from forestprune.select.solver import Point
from forestprune.solve.kept import pack, unpack
from forestprune.system.files import read_archive, write_archive

_COLUMNS = ("alpha", "depths", "weights", "intercept", "objective", "loss", "n_iter")
"""What is stored of each point, as one array for all of them; and its report."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What a pruned forest may take. None means as much as it likes."""

    max_nodes: int | None = None
    max_trees: int | None = None
    max_depth: int | None = None
    max_bytes: int | None = None

    def __post_init__(self) -> None:
        require_count("max_nodes", self.max_nodes, 3, ", a root and two leaves")
        require_count("max_trees", self.max_trees, 1)
        require_count("max_depth", self.max_depth, 1)
        require_count("max_bytes", self.max_bytes, 1)

    def __bool__(self) -> bool:
        return any(limit is not None for limit in asdict(self).values())

    def limits(self) -> list[tuple[str, int]]:
        """Return what is limited, by the name of its attribute; bytes left out."""
        given = {
            "n_nodes": self.max_nodes,
            "n_trees": self.max_trees,
            "max_depths": self.max_depth,
        }
        return [(name, limit) for name, limit in given.items() if limit is not None]

    def allows(self, small: PrunedForest) -> bool:
        """Tell whether a pruned forest, as it is, keeps to the budget."""
        return (
            (self.max_nodes is None or small.n_nodes <= self.max_nodes)
            and (self.max_trees is None or small.n_trees <= self.max_trees)
            and (self.max_depth is None or small.max_depth <= self.max_depth)
            and (self.max_bytes is None or small.n_bytes <= self.max_bytes)
        )

    def __str__(self) -> str:
        given = {name: limit for name, limit in asdict(self).items() if limit is not None}
        return ", ".join(f"{name}={limit}" for name, limit in given.items())


def check_quality(tolerance: float | None, one_standard_error: bool) -> None:
    """Refuse what cannot be chosen by."""
    if tolerance is not None:
        require_number("tolerance", tolerance)
    if not isinstance(one_standard_error, (bool, np.bool_)):
        raise ValueError(f"one_standard_error must be True or False, got {one_standard_error!r}.")
    if tolerance is not None and one_standard_error:
        raise ValueError("tolerance and one_standard_error exclude each other; give one.")


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
        return np.array([np.count_nonzero(p.depths) for p in self.points], dtype=np.int64)

    @cached_property
    def n_nodes(self) -> NDArray[np.int64]:
        """Number of nodes at each alpha, roots and leaves included."""
        sizes = self.source.forest.layer_sizes()
        up_to = np.zeros((sizes.shape[0], sizes.shape[1] + 1), np.int64)
        np.cumsum(sizes, axis=1, out=up_to[:, 1:])
        trees = np.arange(len(sizes))
        counts = [
            int(up_to[trees, point.depths].sum())
            if point.subtrees is None
            else point.subtrees.nodes.size
            for point in self.points
        ]
        return np.array(counts, dtype=np.int64) + self.n_trees

    @property
    def max_depths(self) -> NDArray[np.int64]:
        """Depth of the deepest tree at each alpha."""
        return np.array([point.depths.max(initial=0) for point in self.points], dtype=np.int64)

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
        return validate(self.source, self.points, X, y, sample_weight, n_jobs)

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
        if X is not None or y is not None:
            if X is None:
                raise ValueError("X and y must be given together, got y alone.")
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
        if not budget and validation is None and tolerance is None and not one_standard_error:
            raise ValueError(
                "Say what to select by: max_nodes, max_trees, max_depth, max_bytes, tolerance or "
                "one_standard_error; or give validation rows to take the best."
            )
        check_quality(tolerance, one_standard_error)
        if validation is None and (tolerance is not None or one_standard_error):
            raise ValueError(
                "tolerance and one_standard_error need validation rows: give X and y to select(), "
                "or X_val and y_val when the path is made."
            )
        losses = self.losses if validation is None else 1.0 - validation.scores
        allowed = np.ones(len(self), dtype=np.bool_)
        for name, limit in budget.limits():
            allowed &= getattr(self, name) <= limit
        highest = 1.0 - losses[allowed].min(initial=np.inf)
        if validation is not None and tolerance is not None:
            # The full model at the end of a path is the same but for rounding.
            least = validation.full - tolerance - 1e-9 * (1.0 + abs(validation.full))
            allowed &= validation.scores >= least
        elif validation is not None and one_standard_error and allowed.any():
            within = np.flatnonzero(allowed)
            best = within[np.argmax(validation.scores[within])]
            least = validation.scores[best] - validation.standard_errors[best]
            allowed &= validation.scores >= least
        if validation is not None and tolerance is not None and not allowed.any():
            raise OutOfReachError(
                f"No point of the path{f' within {budget}' if budget else ''} comes within "
                f"tolerance={tolerance} of the full model's validation R squared, "
                f"{validation.full:.4g}; the best has {highest:.4g}. Give a larger tolerance"
                f"{', or allow more' if budget else ''}."
            )
        smallest_first = tolerance is not None or one_standard_error
        keys = (losses, self.n_nodes) if smallest_first else (self.n_nodes, losses)
        ranked = np.lexsort(keys)
        return self._first_within(budget, ranked[allowed[ranked]], smallest_first)

    def _first_within(self, budget: Budget, ranked: NDArray[np.int64], by_quality: bool) -> int:
        """Return the first of some points whose model, when it is made, keeps to the budget."""
        if budget.max_bytes is not None and ranked.size:
            ranked = ranked[self.n_nodes[ranked] <= self._nodes_within(budget, ranked)]
        for index in ranked:
            if budget.allows(self[int(index)]):
                return int(index)
        least = self[int(np.argmin(self.n_nodes))]
        and_else = " and to what else was asked" if by_quality else ""
        raise OutOfReachError(
            f"No point of the path keeps to {budget}{and_else}. The smallest has "
            f"{least.n_nodes} nodes in {least.n_trees} trees and takes {least.n_bytes} bytes."
        )

    def _nodes_within(self, budget: Budget, candidates: NDArray[np.int64]) -> int:
        """Return how many nodes a model may have so that its file keeps to the budget.

        Found by halving, since a file can only be measured by writing it.
        """
        by_size = candidates[np.argsort(self.n_nodes[candidates], kind="stable")]
        fitting, size = -1, by_size.size
        while fitting + 1 < size:
            middle = (fitting + 1 + size) // 2
            if budget.allows(self[int(by_size[middle])]):
                fitting = middle
            else:
                size = middle
        return -1 if fitting < 0 else int(self.n_nodes[by_size[fitting]])

    # In and out

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write this path and the forest it is about to `path`, as an npz archive without pickle.

        The file appears under its name only when it is complete.
        """
        if self.source.pipeline is not None:
            raise TypeError(
                "The path of a pipeline cannot be saved, because its other steps can only be "
                "pickled. Save path[i].to_native() with joblib, or prune the pipeline's last step "
                "with rows that are transformed already."
            )
        forest, metadata = self.source.forest.pack()
        arrays = {f"forest/{name}": array for name, array in forest.items()}
        arrays |= {name: np.array([getattr(p, name) for p in self.points]) for name in _COLUMNS}
        if self.validation is not None:
            arrays |= {f"validation/{key}": np.array(v) for key, v in vars(self.validation).items()}
        arrays |= pack([point.subtrees for point in self.points])
        reports = [point.report for point in self.points]
        metadata = {"forest": metadata, "reports": reports, "subtrees": "subtrees/nodes" in arrays}
        write_archive(path, arrays, metadata)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "PruningPath":
        """Read a path that :meth:`save` wrote. Reading runs no code from the file."""
        arrays, metadata = read_archive(path)
        kinds = ("", "forest", "validation", "subtrees")
        groups: dict[str, dict[str, NDArray[Any]]] = {kind: {} for kind in kinds}
        for name, array in arrays.items():
            group = name.partition("/")[0] if "/" in name else ""
            groups.setdefault(group, {})[name.removeprefix(f"{group}/")] = array
        try:
            forest = Forest.unpack(groups["forest"], metadata["forest"])
            columns = [groups[""][name] for name in _COLUMNS]
            _check_columns(forest, dict(zip(_COLUMNS, columns, strict=True)))
            if bool(groups["subtrees"]) != metadata["subtrees"]:
                raise ValueError("the nodes that are kept are missing")
            subtrees = unpack(forest, len(columns[0]), groups["subtrees"])
            for depths, kept in zip(groups[""]["depths"], subtrees, strict=True):
                if kept is not None and not np.array_equal(kept.depths(forest), depths):
                    raise ValueError("the nodes that are kept do not have the depths of the trees")
            points = tuple(
                Point(
                    float(alpha), depths, weights, intercept, float(o), float(loss), int(n), info, s
                )
                for alpha, depths, weights, intercept, o, loss, n, info, s in zip(
                    *columns, metadata["reports"], subtrees, strict=True
                )
            )
            held_out = groups["validation"]
            validation = None
            if held_out:
                validation = Validation(
                    held_out["scores"], held_out["standard_errors"], float(held_out["full"])
                )
                if {a.shape for a in (validation.scores, validation.standard_errors)} != {
                    (len(points),)
                }:
                    raise ValueError("there must be one validation score for each point")
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise InvalidForestError(
                f"{os.fspath(path)} does not hold a pruning path, or not all of one ({error})."
            ) from error
        return cls(Source(forest), points, validation)

    def __repr__(self) -> str:
        if not self.points:
            return "PruningPath(no points)"
        return (
            f"PruningPath({len(self)} points, {self.n_nodes[0]:,} to {self.n_nodes[-1]:,} nodes, "
            f"alpha {self.alphas[0]:.3g} to {self.alphas[-1]:.3g})"
        )

    def _column(self, name: str) -> NDArray[np.float64]:
        return np.array([getattr(point, name) for point in self.points], dtype=np.float64)


def _check_columns(forest: Forest, columns: dict[str, NDArray[Any]]) -> None:
    """Refuse columns that do not fit the forest: kernels index by depths without looking."""
    n = len(columns["alpha"])
    widths = {"depths": forest.n_trees, "weights": forest.n_trees, "intercept": forest.n_outputs}
    shapes = {name: (n, widths[name]) if name in widths else (n,) for name in _COLUMNS}
    for name, column in columns.items():
        kinds = "iu" if name in ("depths", "n_iter") else "f"
        if column.shape != shapes[name] or column.dtype.kind not in kinds:
            raise ValueError(
                f"{name} must have shape {shapes[name]}, got {column.shape} of {column.dtype}"
            )
        if not np.isfinite(column).all():
            raise ValueError(f"{name} must be finite")
    depths = columns["depths"]
    if (depths < 0).any() or (depths > forest.depths).any():
        raise ValueError("depths must not be negative or greater than those of the trees")
