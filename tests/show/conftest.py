"""Rows and a path that reports are written about."""

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor

import forestprune as fp


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4))
    y = X[:, 0] + 3 * (X[:, 1] > 0) * X[:, 2] + 0.3 * rng.normal(size=500)
    return X[:300], y[:300], X[300:400], y[300:400], X[400:], y[400:]


@pytest.fixture(scope="module")
def path(data):
    X, y, X_val, y_val, *_ = data
    model = GradientBoostingRegressor(n_estimators=30, random_state=0).fit(X, y)
    return fp.prune_path(model, X, y, n_alphas=25, X_val=X_val, y_val=y_val)
