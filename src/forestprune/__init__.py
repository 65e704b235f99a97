"""Make trained tree ensembles small."""

import importlib
from typing import TYPE_CHECKING, Any

from forestprune._version import __version__

if TYPE_CHECKING:
    from forestprune import baselines
    from forestprune.api import prune, prune_path
    from forestprune.datasets import load_wine_quality
    from forestprune.differences import depth_difference
    from forestprune.encoding import Encoding, encode
    from forestprune.estimators import ForestPruneRegressor, ForestPruneRegressorCV
    from forestprune.exceptions import ForestPruneError, InvalidForestError, UnsupportedModelError
    from forestprune.forest import Forest, Origin
    from forestprune.inputs import InputSpec
    from forestprune.options import Options
    from forestprune.path import PruningPath
    from forestprune.plotting import plot_depths, plot_forest, plot_importance, plot_path
    from forestprune.pruned import PrunedForest
    from forestprune.report import write_report

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
    "write_report",
]

# No module may have the name of what it holds: once imported, it would stand in its place.
_MODULES = {
    "Encoding": "encoding",
    "Forest": "forest",
    "ForestPruneError": "exceptions",
    "ForestPruneRegressor": "estimators",
    "ForestPruneRegressorCV": "estimators",
    "InputSpec": "inputs",
    "InvalidForestError": "exceptions",
    "Options": "options",
    "Origin": "forest",
    "PrunedForest": "pruned",
    "PruningPath": "path",
    "UnsupportedModelError": "exceptions",
    "depth_difference": "differences",
    "encode": "encoding",
    "load_wine_quality": "datasets",
    "plot_depths": "plotting",
    "plot_forest": "plotting",
    "plot_importance": "plotting",
    "plot_path": "plotting",
    "prune": "api",
    "prune_path": "api",
    "write_report": "report",
}
"""Where each name is found when it is first asked for: scikit-learn alone takes a second."""

if not TYPE_CHECKING:  # else any name would do for a type checker

    def __getattr__(name: str) -> Any:
        if name == "baselines":
            return importlib.import_module("forestprune.baselines")
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = getattr(importlib.import_module(f"forestprune.{_MODULES[name]}"), name)
        return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
