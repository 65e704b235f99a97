"""The neutral ensemble: what it is, how it is built and checked, what rows it takes."""

from forestprune.forest.build import RawTree, build_forest
from forestprune.forest.forest import Forest
from forestprune.forest.inputs import InputSpec
from forestprune.forest.origin import Origin
from forestprune.forest.registry import register

__all__ = ["Forest", "InputSpec", "Origin", "RawTree", "build_forest", "register"]
