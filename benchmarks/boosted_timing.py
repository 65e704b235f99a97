"""Pruning time beside fitting time, for models of XGBoost and LightGBM.

    python benchmarks/boosted_timing.py [--data FOLDER] [--repeats 3]

Half of the diamonds (26,970 rows, categories one-hot) train, a quarter validates; without the
folder of data sets, as many generated rows with ten columns. Models are fitted on two cores, a
rate of 0.05: 500 trees of depth 8 of XGBoost, 1,000 trees of 31 leaves of LightGBM. Fit and
prunings take turns, the shortest times count; kernels are compiled before.
"""

import argparse
from functools import partial
from pathlib import Path

import pandas as pd
from lightgbm import LGBMRegressor
from rich.console import Console
from side_by_side import best_times, table
from sklearn.datasets import make_friedman1
from sklearn.model_selection import train_test_split
from xgboost import XGBRegressor

import forestprune as fp

HERE = Path(__file__).parent
ROWS = 53_940
MODELS = (
    XGBRegressor(n_estimators=500, max_depth=8, learning_rate=0.05, n_jobs=2),
    LGBMRegressor(n_estimators=1000, num_leaves=31, learning_rate=0.05, n_jobs=2, verbose=-1),
)


def rows(folder):
    """Return the name of the data, rows to train with and rows to validate with."""
    file = folder / "diamonds.csv.gz"
    if file.exists():
        frame = pd.read_csv(file)
        y = frame.pop("target").to_numpy(dtype=float)
        name, X = "diamonds", pd.get_dummies(frame).to_numpy(dtype=float)
    else:
        name, (X, y) = "generated", make_friedman1(ROWS, noise=1.0, random_state=0)
    X, X_rest, y, y_rest = train_test_split(X, y, train_size=0.5, random_state=0)
    X_val, _, y_val, _ = train_test_split(X_rest, y_rest, train_size=0.5, random_state=0)
    return name, (X, y), {"X_val": X_val, "y_val": y_val}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "shared" / "data")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    name, train, validation = rows(options.data)
    wishes = {
        "max_nodes=500": {"max_nodes": 500},
        "max_nodes=500, validated": {"max_nodes": 500, **validation},
        "tolerance=0.01": {"tolerance": 0.01, **validation},
    }
    result = table(
        f"{name}: {len(train[1]):,} rows to fit and prune with, "
        f"{len(validation['y_val']):,} to validate with",
        *("model", "nodes", "wish", "fit, s", "prune, s", "prune / fit", "nodes left"),
    )
    for model in MODELS:
        model.fit(*train)
        prunings = {wish: partial(fp.prune, model, *train, **how) for wish, how in wishes.items()}
        left = {wish: prune().n_nodes for wish, prune in prunings.items()}
        best = best_times({"fit": partial(model.fit, *train), **prunings}, options.repeats)
        for wish in wishes:
            result.add_row(
                type(model).__name__,
                f"{fp.Forest.from_model(model).n_nodes:,}",
                wish,
                f"{best['fit']:.1f}",
                f"{best[wish]:.1f}",
                f"{best[wish] / best['fit']:.1f}",
                f"{left[wish]:,}",
            )
    Console(width=130).print(result)


if __name__ == "__main__":
    main()
