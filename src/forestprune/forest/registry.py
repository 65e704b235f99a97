"""Which module reads and writes the models of which library.

Modules are named by strings and imported when a model of that library turns up. A module has

- `from_model(model) -> Forest` and `to_native(forest, origin) -> model`,
- if the library has model files of its own, `load(path) -> model`, `save(model, path)`, and
  `FILES`, the endings of what it saves,
- if trees with new splits can be written, `split_limits(forest) -> SplitLimits`, which they may
  have, and `new_node_extras(forest, tree) -> mapping of str to array`, what goes into the forest's
  `node_extras` for the nodes of a NewTree, both of :mod:`forestprune.forest.new_splits`; what
  remains unknown is 0; and if it does not take every threshold, `as_compared(thresholds) ->
  thresholds`, those that it compares with instead,
- if the library has containers of its own for rows, `table_of(container) -> table`: rows as an
  array, a data frame or a sparse matrix; None for any other object of the library.
"""

import importlib
import os
from types import ModuleType
from typing import Any

from forestprune.exceptions import UnsupportedModelError

_MODULES: dict[str, str] = {
    "catboost": "forestprune.interop.catboost",
    "lightgbm": "forestprune.interop.lightgbm",
    "sklearn": "forestprune.interop.sklearn",
    "xgboost": "forestprune.interop.xgboost",
}


def register(library: str, module: str) -> None:
    """Let `module`, a dotted name, handle models of classes from the top-level package `library`.

    The module is imported on first use; what it must have is said above.
    """
    _MODULES[library] = module


def importer_for(model: object) -> ModuleType:
    """Return the module that reads `model`, judged by where its class, or a base of it, lives."""
    module = _module_of(model)
    if module is not None:
        return module
    if callable(getattr(model, "to_native", None)):
        raise UnsupportedModelError(
            f"A model of one of these libraries is required: {_known()}. Got a "
            f"{type(model).__qualname__}: give what its to_native() returns."
        )
    raise UnsupportedModelError(
        f"A fitted tree ensemble of one of these libraries is required: {_known()}. "
        f"Got an object of type {type(model).__module__}.{type(model).__qualname__}. "
        "Other libraries can be added with forestprune.forest.register()."
    )


def inside(model: Any) -> Any:
    """Return the model in what `xgboost.dask.train` returns; any other as it is."""
    return model["booster"] if isinstance(model, dict) and "booster" in model else model


def exporter_for(library: str) -> ModuleType:
    """Return the module that writes models of `library`."""
    if library not in _MODULES:
        raise UnsupportedModelError(
            f"This forest came from {library!r}, which is not among the registered libraries "
            f"({_known()}). Register its module with forestprune.forest.register() first."
        )
    try:
        return importlib.import_module(_MODULES[library])
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
        raise ModuleNotFoundError(
            f"Models of {library} need {library}, which is not installed: pip install {library}",
            name=library,
        ) from error


def load_model(path: str | os.PathLike[str], *, trust: bool = False) -> Any:
    """Return the model in a file, as an object of the library that wrote it.

    Files that can run code when they are loaded are refused without `trust`.
    """
    return _model_files().load(path, trust=trust)


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model, or a forest, to a file in the format that its ending names.

    The file appears under its name only when it is complete.
    """
    _model_files().save(model, path)


def file_endings(library: str) -> tuple[str, ...]:
    """Return the endings of the files to which models of `library` can be saved."""
    endings: tuple[str, ...] = _model_files().endings_for(library)
    return endings


def table_of(X: Any) -> Any:
    """Return the rows in a registered library's own container, or `X` itself if it is not one."""
    module = _module_of(X)
    if module is None or not hasattr(module, "table_of"):
        return X
    table = module.table_of(X)
    return X if table is None else table


def codes_of_hashes(X: Any, hashed: Any) -> Any:
    """Return a table with codes in place of categories that are known by their hashes only.

    CatBoost alone has such models, and alone can tell the hash of a category.
    """
    return exporter_for("catboost").codes_of_hashes(X, hashed)


def library_of(thing: object) -> str | None:
    """Return the registered library that the class of `thing`, or a base of it, comes from."""
    for base in type(thing).__mro__:
        library = base.__module__.partition(".")[0]
        if library in _MODULES:
            return library
    return None


def _model_files() -> ModuleType:
    return importlib.import_module("forestprune.interop.model_files")


def _module_of(thing: object) -> ModuleType | None:
    library = library_of(thing)
    return None if library is None else importlib.import_module(_MODULES[library])


def _known() -> str:
    return ", ".join(sorted(_MODULES))
