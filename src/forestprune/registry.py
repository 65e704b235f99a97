"""Which module reads and writes the models of which library.

Modules are named by strings and loaded when a model of that library turns up: nothing is imported
unasked, and this table can stand above everything that uses it. A module listed here has

- `from_model(model) -> Forest`, and
- `to_native(forest, origin) -> model`, for forests whose origin names its library.
"""

import importlib
from types import ModuleType

from forestprune.exceptions import UnsupportedModelError

_MODULES: dict[str, str] = {
    "sklearn": "forestprune.interop.sklearn",
}


def register(library: str, module: str) -> None:
    """Let `module` handle models whose class comes from the top-level package `library`.

    Parameters
    ----------
    library : str
        Name of the package that defines the model classes, such as "xgboost".
    module : str
        Dotted name of the module with `from_model` and `to_native`. It is imported on first use.
    """
    _MODULES[library] = module


def importer_for(model: object) -> ModuleType:
    """Return the module that reads `model`, judged by where its class, or a base of it, lives."""
    for base in type(model).__mro__:
        library = base.__module__.partition(".")[0]
        if library in _MODULES:
            return importlib.import_module(_MODULES[library])
    raise UnsupportedModelError(
        f"A fitted tree ensemble of one of these libraries is required: {_known()}. "
        f"Got an object of type {type(model).__module__}.{type(model).__qualname__}. "
        "Other libraries can be added with forestprune.registry.register()."
    )


def exporter_for(library: str) -> ModuleType:
    """Return the module that writes models of `library`."""
    if library not in _MODULES:
        raise UnsupportedModelError(
            f"This forest came from {library!r}, which is not among the registered libraries "
            f"({_known()}). Register its module with forestprune.registry.register() first."
        )
    return importlib.import_module(_MODULES[library])


def _known() -> str:
    return ", ".join(sorted(_MODULES))
