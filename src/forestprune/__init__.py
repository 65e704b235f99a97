"""Make trained tree ensembles small."""

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
    "prune",
    "prune_path",
]
