"""Predictions and the range of the target: what docs/limits.md says of it."""

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

import forestprune as fp

X, y = make_friedman1(400, random_state=0)
ANYWHERE = np.random.default_rng(1).normal(0.5, 2.0, (2000, X.shape[1]))


@pytest.mark.parametrize("nodes", [20, 200])
@pytest.mark.parametrize("options", [{"refit": False}, {"rule": "layer"}])
@pytest.mark.parametrize("original", [RandomForestRegressor, ExtraTreesRegressor])
def test_an_average_of_original_values_stays_within_it(original, options, nodes):
    model = original(15, random_state=0).fit(X, y)
    small = fp.prune(model, X, y, max_nodes=nodes, **options)
    predicted = small.to_native().predict(ANYWHERE)
    assert y.min() - 1e-9 <= predicted.min()
    assert predicted.max() <= y.max() + 1e-9


def test_refitted_values_can_leave_it():
    rows = np.arange(8.0)[:, np.newaxis] % [2, 4, 8] // [1, 2, 4]  # all corners of a cube
    both = np.where(rows.sum(axis=1) >= 2, 1.0, 0.0)  # what no sum of three stumps can be
    model = RandomForestRegressor(50, max_depth=1, max_features=1, random_state=0).fit(rows, both)
    assert ((model.predict(rows) >= 0.0) & (model.predict(rows) <= 1.0)).all()
    small = fp.prune(model, rows, both, max_trees=3, shrinkage=0.0)
    assert small.predict(rows).max() > 1.05
    assert small.predict(rows).min() < -0.05
