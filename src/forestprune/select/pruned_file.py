"""Pruned models in files: the small forest and what is known of it, as arrays that run no code."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from forestprune.exceptions import InvalidForestError
from forestprune.forest.checks import seal
from forestprune.forest.forest import Forest
from forestprune.options import Format
from forestprune.select.path import PruningPath
from forestprune.select.path_file import known_ending, points_of, write_path
from forestprune.select.pruned import ForestSize, PrunedForest
from forestprune.select.validation import ValidationScore
from forestprune.system.files import read_archive, write_archive

_OF_LIBRARIES = {f".{name}" for name in get_args(Format)} - {".npz"}
"""How names of files end that hold a model of a library."""

_NUMBERS = ("alpha", "objective", "loss")
_WRONG = (KeyError, IndexError, TypeError, AttributeError, ValueError, OverflowError)
"""What reading some other archive, or a damaged one, may end in."""


def write_pruned(
    path: str | os.PathLike[str], small: PrunedForest, *, with_path: bool = False
) -> None:
    """Write a pruned model to an npz archive, with the path it was chosen from if asked to."""
    if small.source is not None:
        raise TypeError(
            "A pruned pipeline cannot be saved like this, because its other steps can only be "
            "pickled. Save to_native() with joblib, or prune the pipeline's last step with rows "
            "that are transformed already."
        )
    ending = Path(path).suffix.lower()
    if ending in _OF_LIBRARIES:
        raise ValueError(
            f"{Path(path).name} would look like a library's own model, but save() writes what this "
            "package knows of a pruned one: choose a name that ends in .npz, or save to_native() "
            "with its library."
        )
    if with_path:
        if small.path is None:
            raise ValueError(
                "with_path=True needs the path that this model was chosen from, but it was loaded "
                "or copied without it. Leave with_path out, or save what prune() returns."
            )
        found = small.path
        write_path(path, found.source, found.points, found.validation, small.index)
        return
    forest, about = small.forest.pack()
    arrays = {f"forest/{name}": array for name, array in forest.items()}
    arrays |= {"depths": small.depths, "weights": small.weights}
    metadata = {
        "forest": about,
        "pruned": {name: float(getattr(small, name)) for name in _NUMBERS},
        "n_iter": int(small.n_iter),
        "report": small.report,
        "ending": small.ending,
        "full": list(small.full),
        "validation": None if small.validation is None else asdict(small.validation),
    }
    write_archive(path, arrays, metadata)


def read_pruned(path: str | os.PathLike[str]) -> PrunedForest:
    """Read what :func:`write_pruned` wrote, all of it checked."""
    arrays, metadata = read_archive(path)
    if "pruned" not in metadata:
        return _point_taken(path, arrays, metadata)
    try:
        return _pruned(arrays, metadata)
    except _WRONG as error:
        raise InvalidForestError(
            f"{os.fspath(path)} does not hold a pruned model, or not all of one ({error})."
        ) from error


def _point_taken(
    path: str | os.PathLike[str], arrays: dict[str, NDArray[Any]], metadata: dict[str, Any]
) -> PrunedForest:
    """Return the point of a path that was taken."""
    index = metadata.get("index")
    if index is None:
        is_path = "reports" in metadata
        what = "a whole path: read it with PruningPath.load" if is_path else "no pruned model"
        raise InvalidForestError(
            f"{os.fspath(path)} must be written by PrunedForest.save, but it holds {what}."
        )
    found = PruningPath(*points_of(path, arrays, metadata))
    if type(index) is not int or not 0 <= index < len(found):
        raise InvalidForestError(
            f"{os.fspath(path)} does not hold a pruned model: there is no point {index!r}."
        )
    return found[index]


def _pruned(arrays: dict[str, NDArray[Any]], metadata: dict[str, Any]) -> PrunedForest:
    prefix = "forest/"
    own = {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}
    forest = Forest.unpack(own, metadata["forest"])
    depths, weights = arrays["depths"], arrays["weights"]
    if depths.ndim != 1 or depths.dtype.kind not in "iu" or weights.dtype != np.float64:
        raise ValueError("depths must be whole numbers, and weights numbers")
    if depths.shape != weights.shape or not np.isfinite(weights).all():
        raise ValueError("there must be one depth and one finite weight for each tree")
    if not np.array_equal(weights != 0.0, depths > 0):
        raise ValueError("trees that are kept must have a weight, and no others")
    if not np.array_equal(depths[depths > 0], forest.depths):
        raise ValueError("the trees that are kept do not have their depths")
    full = ForestSize(*(_whole(count, "the size of the full model") for count in metadata["full"]))
    if full.n_trees != depths.size or full.n_nodes < forest.n_nodes:
        raise ValueError("the full model must have as many trees as there are depths")
    report = metadata["report"]
    if not isinstance(report, dict):
        raise TypeError("the report must have names")
    numbers: dict[str, Any] = {name: _finite(metadata["pruned"][name], name) for name in _NUMBERS}
    small = PrunedForest(
        forest=forest,
        depths=seal(depths.astype(np.int64)),
        weights=seal(weights),
        **numbers,
        n_iter=_whole(metadata["n_iter"], "n_iter"),
        report=report,
        ending=known_ending(metadata["ending"]),
        validation=_validation(metadata["validation"]),
        full=full,
    )
    _ = small.certificate  # refuses one that is not such
    return small


def _validation(known: dict[str, Any] | None) -> ValidationScore | None:
    if known is None:
        return None
    numbers = ("score", "full_score", "standard_error", "shortfall_error")
    checked: dict[str, Any] = {name: _finite(known[name], name) for name in numbers}
    checked |= {
        group: {str(name): _finite(known[group][name], name) for name in known[group]}
        for group in ("metrics", "full_metrics")
    }
    if checked["metrics"].keys() != checked["full_metrics"].keys():
        raise ValueError("validation must have the same figures of both models")
    if not isinstance(known["name"], str):
        raise TypeError("what validation rows were scored by must have a name")
    n_rows = _whole(known["n_rows"], "n_rows")
    return ValidationScore(**checked, n_rows=n_rows, name=known["name"])


def _finite(number: Any, name: str) -> float:
    if type(number) not in (int, float) or not np.isfinite(number):
        raise ValueError(f"{name} must be a finite number")
    return float(number)


def _whole(number: Any, name: str) -> int:
    if type(number) is not int or number < 0:
        raise ValueError(f"{name} must be a whole number, not negative")
    return number
