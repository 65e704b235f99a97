"""Compile what most tests need, once, so that not every process of pytest does it for itself."""

import sys

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor

import forestprune as fp
from forestprune.solve.subtrees import descent

MODELS = {
    "deep": RandomForestRegressor(8, random_state=0),
    "shallow": GradientBoostingRegressor(n_estimators=8, max_depth=4, random_state=0),
    "two": RandomForestRegressor(8, max_depth=6, random_state=0),
}
WAYS = [
    {},
    {"polish": "leaf"},
    {"polish": "ridge"},
    {"rule": "layer", "polish": "ridge"},
    {"rule": "layer", "joint": "ridge"},
]


def main(names):
    X, y = make_friedman1(600, noise=1.0, random_state=0)
    # Small forests are treated as large ones too, as some tests do.
    for large in (descent.LARGE, 0):
        descent.LARGE = descent.MANY_ROWS = large
        for name in names:
            target = np.column_stack([y, X[:, 0]]) if name == "two" else y
            model = MODELS[name].fit(X, target)
            for way in WAYS:
                path = fp.prune_path(model, X, target, n_alphas=6, X_val=X, y_val=target, **way)
                path[-1].to_native()


if __name__ == "__main__":
    main(sys.argv[1:] or MODELS)
