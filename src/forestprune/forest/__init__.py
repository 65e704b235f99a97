"""The neutral ensemble: what it is, how it is built and checked, what rows it takes."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forestprune.forest.build import RawTree, build_forest
    from forestprune.forest.forest import Forest
    from forestprune.forest.inputs import InputSpec
    from forestprune.forest.origin import Origin
    from forestprune.forest.registry import register

__all__ = ["Forest", "InputSpec", "Origin", "RawTree", "build_forest", "register"]

_FILES = {
    "Forest": "forest",
    "InputSpec": "inputs",
    "Origin": "origin",
    "RawTree": "build",
    "build_forest": "build",
    "register": "registry",
}

if not TYPE_CHECKING:  # only what is asked for is imported: scikit-learn takes a while

    def __getattr__(name: str) -> Any:
        if name not in _FILES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.{_FILES[name]}"), name)
