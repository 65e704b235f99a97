"""scikit-learn meta-estimators: fit a forest, or take a fitted one, and prune it."""

from forestprune.estimators.cross_validation import ForestPruneRegressorCV
from forestprune.estimators.regressor import ForestPruneRegressor

__all__ = ["ForestPruneRegressor", "ForestPruneRegressorCV"]
