"""Compile what most tests need, once, so that not every process of pytest does it for itself."""

import sys

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from small_problems import descended, subtree_rule

import forestprune as fp
from forestprune.solve.problem import pose

MODELS = {
    "deep": RandomForestRegressor(8, random_state=0),
    "shallow": GradientBoostingRegressor(n_estimators=8, max_depth=4, random_state=0),
    "two": RandomForestRegressor(8, max_depth=6, random_state=0),
}
WAYS = [
    {},
    {"polish": "leaf"},
    {"certify": True},
    {"refit": False, "certify": True},
    {"polish": "ridge"},
    {"rule": "layer", "polish": "ridge"},
    {"rule": "layer", "joint": "ridge"},
    {"rule": "layer", "certify": True},
]


def main(names):
    X, y = make_friedman1(600, noise=1.0, random_state=0)
    for name in names:
        target = np.column_stack([y, X[:, 0]]) if name == "two" else y
        model = MODELS[name].fit(X, target)
        for way in WAYS:
            path = fp.prune_path(model, X, target, n_alphas=6, X_val=X, y_val=target, **way)
            path[-1].to_native()
        if name == "shallow":  # stumps are symmetric
            stumps = fp.Forest.from_model(model).truncate(1)
            fp.prune_path(stumps, X, y, n_alphas=6, rule="oblivious", certify=True)
        # Small forests are treated as large ones too, as some tests do.
        problem = pose(fp.encode(fp.Forest.from_model(model), X), target)
        descended(subtree_rule(problem, 10.0, deep=0.0, screened_rows=1e-9), 0.1)


if __name__ == "__main__":
    main(sys.argv[1:] or MODELS)
