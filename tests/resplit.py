"""A model whose splits pay to be chosen anew, and rows for it."""

import numpy as np
from new_trees import stump
from sklearn.ensemble import RandomForestRegressor

import forestprune as fp
from forestprune.forest.new_splits import with_new_trees

_RNG = np.random.default_rng(0)
_X = _RNG.normal(size=(700, 5))
_Y = np.sin(2 * _X[:, 0]) + _X[:, 1] * _X[:, 2] + 0.3 * _RNG.normal(size=700)

X, X_VAL, X_TEST = _X[:400], _X[400:550], _X[550:]
Y, Y_VAL, Y_TEST = _Y[:400], _Y[400:550], _Y[550:]
HELD_OUT = {"X_val": X_VAL, "y_val": Y_VAL}

FOREST = RandomForestRegressor(10, max_depth=5, random_state=0, n_jobs=1).fit(X, Y)


def polished(**options):
    """Return a small model with new splits."""
    return fp.prune(FOREST, X, Y, polish="split", n_jobs=1, **{"max_nodes": 30} | options)


def partly_new():
    """Return a forest of two trees of one split each, of which that of the second is new."""
    forest = fp.Forest.from_model(
        RandomForestRegressor(2, max_depth=1, random_state=0, n_jobs=1).fit(X, Y)
    )
    return with_new_trees(forest, {1: stump(3, 0.25)}, base=forest.base, original=forest)
