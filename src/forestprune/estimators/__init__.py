"""scikit-learn meta-estimators: fit a forest, or take a fitted one, and prune it."""

from forestprune.estimators.classifiers import ForestPruneClassifier, ForestPruneClassifierCV
from forestprune.estimators.regressors import ForestPruneRegressor, ForestPruneRegressorCV

__all__ = [
    "ForestPruneClassifier",
    "ForestPruneClassifierCV",
    "ForestPruneRegressor",
    "ForestPruneRegressorCV",
]
