"""Paths in files: points and the forest they are about, as arrays that run no code."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from forestprune.exceptions import InvalidForestError
from forestprune.forest.checks import seal
from forestprune.forest.forest import Forest
from forestprune.forest.symmetric import is_symmetric
from forestprune.interop.source import Source
from forestprune.options import Format
from forestprune.rows.trees import by_tree, first_splits
from forestprune.select.validation import Validation
from forestprune.solve.levels import first_levels, levels_of
from forestprune.solve.point import (
    Point,
    kept_depths,
    kept_mask,
    pack_splits,
    splits_within,
    unpack_splits,
)
from forestprune.system.files import read_archive, write_archive

_NUMBERS = ("alpha", "objective", "loss", "n_iter")
_COLUMNS = (*_NUMBERS, "depths", "weights", "intercept", "kept")
"""What is stored of each point, as one array for all of them; and its values and report."""

_FOREST_OF = "forest of point "
"""With its place, the group of the arrays of a point's own forest."""


def write_path(
    path: str | os.PathLike[str],
    source: Source,
    points: Sequence[Point],
    validation: Validation | None,
    index: int | None = None,
) -> None:
    """Write a path, and the whole forest, to an npz archive; and the place of the point taken."""
    if source.pipeline is not None:
        raise TypeError(
            "The path of a pipeline cannot be saved, because its other steps can only be "
            "pickled. Save path[i].to_native() with joblib, or prune the pipeline's last step "
            "with rows that are transformed already."
        )
    forest, about = source.original.pack()
    arrays = {f"forest/{name}": array for name, array in forest.items()}
    arrays |= {name: np.array([getattr(p, name) for p in points]) for name in _COLUMNS}
    values = [point.values for point in points if point.values is not None]
    empty = np.empty((source.forest.value.shape[1], 0))
    arrays["values"] = np.concatenate([empty, *values], axis=1)
    arrays["refitted"] = np.array([point.values is not None for point in points])
    forests: dict[str, Any] = {}
    for place, point in enumerate(points):
        if point.forest is not None:
            own, forests[str(place)] = point.forest.pack()
            arrays |= {f"{_FOREST_OF}{place}/{name}": array for name, array in own.items()}
    if any(point.levels is not None for point in points):
        arrays["levels"] = np.array([levels_of(source.forest, point) for point in points])
    if validation is not None:
        numbers = (*_SCORES, "full", "n_rows")
        arrays |= {f"validation/{key}": np.array(getattr(validation, key)) for key in numbers}
        for name, column in validation.metrics.items():
            arrays[f"validation/points {name}"] = column
            arrays[f"validation/full {name}"] = np.array(validation.full_metrics[name])
    reports = [point.report for point in points]
    metadata = {
        "forest": about,
        "reports": reports,
        "forests": forests,
        "max_depth": source.max_depth,
        "ending": source.ending,
        "index": index,
        "scored_by": None if validation is None else validation.name,
    }
    write_archive(path, arrays, metadata)


def read_path(
    path: str | os.PathLike[str],
) -> tuple[Source, tuple[Point, ...], Validation | None]:
    """Read what :func:`write_path` wrote, all of it checked: kernels index without looking."""
    return points_of(path, *read_archive(path))


def points_of(
    path: str | os.PathLike[str], arrays: dict[str, NDArray[Any]], metadata: dict[str, Any]
) -> tuple[Source, tuple[Point, ...], Validation | None]:
    """Return what is in an archive that is read already, all of it checked."""
    groups: dict[str, dict[str, NDArray[Any]]] = {"": {}, "forest": {}, "validation": {}}
    for name, array in arrays.items():
        group = name.partition("/")[0] if "/" in name else ""
        groups.setdefault(group, {})[name.removeprefix(f"{group}/")] = array
    try:
        source = Source.holding(Forest.unpack(groups["forest"], metadata["forest"]))
        if metadata["max_depth"] is not None:
            source = source.cut(metadata["max_depth"])
        source = replace(source, ending=known_ending(metadata["ending"]))
        if "levels" in groups[""] and is_symmetric(source.forest):
            source = source.by_levels()
        forests = {
            int(place): Forest.unpack(groups[f"{_FOREST_OF}{place}"], about)
            for place, about in metadata.get("forests", {}).items()
        }
        points = _points(source.forest, groups[""], metadata["reports"], forests)
        scored_by = metadata.get("scored_by", "R squared")
        validation = _validation(groups["validation"], len(points), scored_by)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise InvalidForestError(
            f"{os.fspath(path)} does not hold a pruning path, or not all of one ({error})."
        ) from error
    return source, points, validation


def _points(
    forest: Forest,
    columns: dict[str, NDArray[Any]],
    reports: list[dict[str, Any]],
    forests: dict[int, Forest],
) -> tuple[Point, ...]:
    n_points = len(columns["alpha"])
    n_splits, first = (forest.n_nodes - forest.n_trees) // 2, first_splits(forest.offsets)
    widths = {
        "depths": forest.n_trees,
        "weights": forest.n_trees,
        "intercept": forest.n_outputs,
        "kept": -(-n_splits // 8),
    }
    for name in _COLUMNS:
        column = columns[name]
        shape = (n_points, widths[name]) if name in widths else (n_points,)
        kinds = {"depths": "iu", "n_iter": "iu", "kept": "u"}.get(name, "f")
        if column.shape != shape or column.dtype.kind not in kinds:
            raise ValueError(f"{name} must have shape {shape}, got {column.shape}")
        if not np.isfinite(column).all():
            raise ValueError(f"{name} must be finite")
    values, refitted = columns["values"], columns["refitted"]
    if refitted.shape != (n_points,) or refitted.dtype != np.bool_:
        raise ValueError("refitted must be true or false for each point")
    if values.ndim != 2 or values.dtype.kind != "f" or not np.isfinite(values).all():
        raise ValueError("values must be finite")
    if len(reports) != n_points or not all(isinstance(report, dict) for report in reports):
        raise ValueError("there must be one report for each point")
    levels = columns.get("levels")
    if levels is not None:
        _check_levels(forest, levels, columns["depths"], refitted)
    if (columns["alpha"] < 0).any():
        raise ValueError("no alpha may be negative")
    points, used = [], 0
    for i in range(n_points):
        kept, depths = columns["kept"][i].astype(np.uint8, casting="safe"), columns["depths"][i]
        splits = unpack_splits(kept, forest)
        forest.keep(kept_mask(forest, splits))  # refuses splits whose parents are not kept
        own = forests.get(i)
        if own is not None:
            _check_own_forest(forest, own, splits, depths)
        elif not np.array_equal(kept_depths(forest, splits), depths):
            raise ValueError("the splits that are kept do not have the depths of the trees")
        if levels is not None and not np.array_equal(splits, splits_within(forest, depths)):
            raise ValueError("trees of which levels are kept must be cut at depths")
        counts = by_tree(splits, first)
        n_leaves = int((counts + (counts > 0)).sum()) if refitted[i] else 0
        numbers = {name: columns[name][i].item() for name in _NUMBERS}
        mine = seal(np.array(values[:, used : used + n_leaves], dtype=np.float64))
        if mine.shape != (forest.value.shape[1], n_leaves):
            raise ValueError("there must be one value for each leaf and output")
        used += n_leaves
        points.append(
            Point(
                **numbers,
                kept=pack_splits(splits),
                depths=seal(depths.astype(np.int64)),
                weights=seal(columns["weights"][i].astype(np.float64)),
                intercept=seal(columns["intercept"][i].astype(np.float64)),
                values=mine if refitted[i] else None,
                report=reports[i],
                levels=None if levels is None else seal(levels[i].copy()),
                forest=own,
            )
        )
    if not np.array_equal(columns["weights"] != 0.0, columns["depths"] > 0):
        raise ValueError("trees that are kept must have a weight, and no others")
    if used != values.shape[1]:
        raise ValueError("there must be as many values as points have leaves")
    return tuple(points)


def _check_own_forest(
    forest: Forest, own: Forest, splits: NDArray[np.bool_], depths: NDArray[Any]
) -> None:
    """Refuse a point's own forest that is not one of the model's kind, or has other depths."""
    if splits.any() or not np.array_equal(own.depths, depths[depths > 0]):
        raise ValueError("a point with a forest of its own must have its depths, and keep nothing")
    shape = (own.n_features, own.n_outputs, own.value.shape[1])
    if own.n_trees and shape != (forest.n_features, forest.n_outputs, forest.value.shape[1]):
        raise ValueError("a point's own forest must have the columns and outputs of the model")


def known_ending(ending: Any) -> str:
    """Return the ending that an archive names for the model's own file, if there is such a one."""
    if ending not in [f".{name}" for name in get_args(Format)]:
        raise ValueError("the ending of the model's file must be a known one")
    return str(ending)


def _check_levels(
    forest: Forest, levels: NDArray[Any], depths: NDArray[Any], refitted: NDArray[np.bool_]
) -> None:
    """Refuse levels that trees do not have, or that are not as many as trees are deep."""
    if not is_symmetric(forest):
        raise ValueError("levels are kept of symmetric trees only")
    if levels.shape != depths.shape or levels.dtype != np.uint32:
        raise ValueError(f"levels must have shape {depths.shape}, got {levels.shape}")
    if (levels.astype(np.int64) >> forest.depths).any():
        raise ValueError("levels must be those of the trees")
    if not np.array_equal(np.bitwise_count(levels), depths):
        raise ValueError("there must be as many levels as trees are deep")
    if not np.array_equal(levels[~refitted], first_levels(forest, depths[~refitted])):
        raise ValueError("where leaves have no values, the first levels must be kept")


_SCORES = ("scores", "standard_errors", "shortfall_errors")


def _validation(
    arrays: dict[str, NDArray[Any]], n_points: int, scored_by: Any
) -> Validation | None:
    if not arrays:
        return None
    for name in ("rmse", "mae"):  # as older versions called them
        if name in arrays:
            arrays[f"points {name}"] = arrays.pop(name)
            arrays[f"full {name}"] = arrays.pop(f"full_{name}")
    metrics = [name.removeprefix("points ") for name in arrays if name.startswith("points ")]
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(_SCORES, (n_points,))
    shapes |= {f"points {name}": (n_points,) for name in metrics}
    shapes |= dict.fromkeys(["full", *(f"full {name}" for name in metrics)], ())
    if not isinstance(scored_by, str):
        raise TypeError("what validation rows were scored by must have a name")
    for name, shape in shapes.items():
        array = arrays[name]
        if array.shape != shape or array.dtype != np.float64 or not np.isfinite(array).all():
            raise ValueError(f"validation must have finite {name}, of shape {shape}")
    n_rows = arrays["n_rows"]
    if n_rows.shape != () or n_rows.dtype.kind not in "iu" or n_rows < 0:
        raise ValueError("the number of validation rows must be a whole number")
    known: dict[str, Any] = {name: arrays[name] for name in _SCORES}
    return Validation(
        **known,
        full=float(arrays["full"]),
        n_rows=int(n_rows),
        metrics={name: arrays[f"points {name}"] for name in metrics},
        full_metrics={name: float(arrays[f"full {name}"]) for name in metrics},
        name=scored_by,
    )
