"""Compile what most tests need, once, so that not every process of pytest does it for itself."""

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor

import forestprune as fp

WAYS = [
    {},
    {"polish": "leaf"},
    {"polish": "ridge"},
    {"rule": "layer", "polish": "ridge"},
    {"rule": "layer", "joint": "ridge"},
]


def main():
    X, y = make_friedman1(600, noise=1.0, random_state=0)
    weights = np.arange(600) % 3
    deep = RandomForestRegressor(8, random_state=0).fit(X, y)
    shallow = GradientBoostingRegressor(n_estimators=8, random_state=0).fit(X, y)
    for model in (deep, shallow):
        for way in WAYS:
            for given in ({}, {"sample_weight": weights}):
                path = fp.prune_path(model, X, y, n_alphas=4, X_val=X, y_val=y, **given, **way)
                path[-1].to_native()


if __name__ == "__main__":
    main()
