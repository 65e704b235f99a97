"""Make trained tree ensembles small."""

import importlib
from typing import TYPE_CHECKING, Any

from forestprune._version import __version__

if TYPE_CHECKING:
    from forestprune import baselines
    from forestprune.api import polish, prune, prune_path
    from forestprune.datasets import load_wine_quality
    from forestprune.estimators import (
        ForestPruneClassifier,
        ForestPruneClassifierCV,
        ForestPruneRegressor,
        ForestPruneRegressorCV,
    )
    from forestprune.exceptions import ForestPruneError, InvalidForestError, UnsupportedModelError
    from forestprune.forest.forest import Forest
    from forestprune.forest.inputs import InputSpec
    from forestprune.forest.origin import Origin
    from forestprune.options import Options
    from forestprune.rows.differences import depth_difference
    from forestprune.rows.encoding import Encoding, encode
    from forestprune.select.path import PruningPath
    from forestprune.select.pruned import PrunedForest
    from forestprune.show.plotting import plot_depths, plot_forest, plot_importance, plot_path
    from forestprune.show.report import write_report
    from forestprune.tables.row_files import RowFiles, open_rows

__all__ = [
    "Encoding",
    "Forest",
    "ForestPruneClassifier",
    "ForestPruneClassifierCV",
    "ForestPruneError",
    "ForestPruneRegressor",
    "ForestPruneRegressorCV",
    "InputSpec",
    "InvalidForestError",
    "Options",
    "Origin",
    "PrunedForest",
    "PruningPath",
    "RowFiles",
    "UnsupportedModelError",
    "__version__",
    "baselines",
    "depth_difference",
    "encode",
    "load_wine_quality",
    "open_rows",
    "plot_depths",
    "plot_forest",
    "plot_importance",
    "plot_path",
    "polish",
    "prune",
    "prune_path",
    "write_report",
]

# No module may have the name of what it holds: once imported, it would stand in its place.
_MODULES = {
    "Encoding": "rows.encoding",
    "Forest": "forest.forest",
    "ForestPruneClassifier": "estimators",
    "ForestPruneClassifierCV": "estimators",
    "ForestPruneError": "exceptions",
    "ForestPruneRegressor": "estimators",
    "ForestPruneRegressorCV": "estimators",
    "InputSpec": "forest.inputs",
    "InvalidForestError": "exceptions",
    "Options": "options",
    "Origin": "forest.origin",
    "PrunedForest": "select.pruned",
    "PruningPath": "select.path",
    "RowFiles": "tables.row_files",
    "UnsupportedModelError": "exceptions",
    "depth_difference": "rows.differences",
    "encode": "rows.encoding",
    "load_wine_quality": "datasets",
    "open_rows": "tables.row_files",
    "plot_depths": "show.plotting",
    "plot_forest": "show.plotting",
    "plot_importance": "show.plotting",
    "plot_path": "show.plotting",
    "prune": "api",
    "polish": "api",
    "prune_path": "api",
    "write_report": "show.report",
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
