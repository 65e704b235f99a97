"""Make trained tree ensembles small."""

import importlib
from typing import TYPE_CHECKING, Any

from forestprune import baselines
from forestprune._version import __version__
from forestprune.api import prune, prune_path
from forestprune.datasets import load_wine_quality
from forestprune.depth_difference import depth_difference
from forestprune.encoding import Encoding, encode
from forestprune.estimators import ForestPruneRegressor, ForestPruneRegressorCV
from forestprune.exceptions import ForestPruneError, InvalidForestError, UnsupportedModelError
from forestprune.forest import Forest, Origin
from forestprune.inputs import InputSpec
from forestprune.options import Options
from forestprune.path import PruningPath
from forestprune.pruned import PrunedForest

if TYPE_CHECKING:
    from forestprune.plotting import plot_depths, plot_forest, plot_importance, plot_path

__all__ = [
    "Encoding",
    "Forest",
    "ForestPruneError",
    "ForestPruneRegressor",
    "ForestPruneRegressorCV",
    "InputSpec",
    "InvalidForestError",
    "Options",
    "Origin",
    "PrunedForest",
    "PruningPath",
    "UnsupportedModelError",
    "__version__",
    "baselines",
    "depth_difference",
    "encode",
    "load_wine_quality",
    "plot_depths",
    "plot_forest",
    "plot_importance",
    "plot_path",
    "prune",
    "prune_path",
]


def __getattr__(name: str) -> Any:
    # Only who draws waits for what drawing needs.
    if not name.startswith("plot_") or name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(importlib.import_module("forestprune.plotting"), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
