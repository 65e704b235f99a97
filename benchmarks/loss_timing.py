"""How long a path takes in another loss than squared error, for models of the same shape.

    python benchmarks/loss_timing.py [--rows 15000] [--repeats 3]

A classifier and a regressor with the same settings are fitted to the same labels, as classes and
as numbers, and a path of 100 alphas is made of each on the same rows, in turns, on one core. A
model for three classes, trees for each class or vector leaves, is there beside them. Times are
processor seconds, the best of some repeats; the ratio is to the regressor's.
"""

import argparse
import time

import numpy as np
import xgboost
from rich.console import Console
from side_by_side import table
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

import forestprune as fp

ALPHAS = 100


def pairs():
    """Yield a name, a regressor and a classifier of the same settings."""
    settings = {"n_estimators": 100, "max_depth": 6, "n_jobs": 2}
    yield "XGBoost", xgboost.XGBRegressor(**settings), xgboost.XGBClassifier(**settings)
    settings = {"n_estimators": 100, "max_depth": 5, "random_state": 0}
    yield (
        "boosting",
        GradientBoostingRegressor(**settings),
        GradientBoostingClassifier(**settings),
    )
    settings = {"n_estimators": 100, "max_depth": 15, "max_features": "sqrt", "random_state": 0}
    yield (
        "random forest",
        RandomForestRegressor(n_jobs=2, **settings),
        RandomForestClassifier(n_jobs=2, **settings),
    )


def rows_of(n_rows, classes):
    return make_classification(
        n_rows, 20, n_informative=10, n_classes=classes, flip_y=0.1, random_state=0
    )


def timed(model, X, y):
    """Return processor seconds for a path, the nodes of its model, and how many points it has."""
    begun = time.process_time()
    path = fp.prune_path(model, X, y, n_alphas=ALPHAS, n_jobs=1)
    return time.process_time() - begun, fp.Forest.from_model(model).n_nodes, len(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=15_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    X, y = rows_of(options.rows, 2)
    X3, y3 = rows_of(options.rows, 3)
    shown = table(
        f"A path in other losses than squared error, {options.rows:,} rows, one core",
        *("model", "loss", "nodes", "points", "seconds", "ratio"),
    )
    for name, regressor, classifier in pairs():
        three = type(classifier)(**classifier.get_params())
        cases = {
            "squared error": (regressor.fit(X, y.astype(float)), X, y.astype(float)),
            "two classes": (classifier.fit(X, y), X, y),
            "three classes": (three.fit(X3, y3), X3, y3),
        }
        best = dict.fromkeys(cases, (np.inf, 0, 0))
        for _ in range(options.repeats):
            for kind, case in cases.items():
                best[kind] = min(best[kind], timed(*case))
        for kind, (seconds, nodes, points) in best.items():
            ratio = seconds / best["squared error"][0]
            shown.add_row(name, kind, f"{nodes:,}", str(points), f"{seconds:.1f}", f"{ratio:.1f}")
    Console().print(shown)


if __name__ == "__main__":
    main()
