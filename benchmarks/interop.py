"""Models of four libraries, in and out: how long that takes, and what the small one saves.

    python benchmarks/interop.py [--rows 20000] [--trees 500] [--nodes 1000]

Each model is fitted to generated data with ten columns, on one core. Reading and writing are
compared with the library's own pickling and unpickling of the model; the model pruned to a budget
of nodes with the full one: its pickle, its time to predict all rows, its test error. The
second of two prunings is timed: the first may have to compile.
"""

import argparse
import pickle
from functools import partial

import numpy as np
from catboost import CatBoostRegressor
from lightgbm import LGBMRegressor
from rich.console import Console
from side_by_side import best_times, seconds, table
from sklearn.datasets import make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from xgboost import XGBRegressor

import forestprune as fp


def models(trees):
    return [
        XGBRegressor(n_estimators=trees, learning_rate=0.05, n_jobs=1),
        LGBMRegressor(n_estimators=trees, learning_rate=0.05, n_jobs=1, verbose=-1),
        CatBoostRegressor(
            iterations=trees, thread_count=1, allow_writing_files=False, logging_level="Silent"
        ),
        HistGradientBoostingRegressor(max_iter=trees, learning_rate=0.05, early_stopping=False),
        RandomForestRegressor(trees, n_jobs=1, random_state=0),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--nodes", type=int, default=1000)
    options = parser.parse_args()
    X, y = make_friedman1(options.rows, n_features=10, noise=1.0, random_state=0)
    X_test, y_test = make_friedman1(options.rows, n_features=10, noise=1.0, random_state=1)
    result = table(
        f"{options.rows:,} rows x {options.trees} trees, pruned to {options.nodes:,} nodes",
        *("model", "nodes", "read, s", "/ pickle + unpickle", "prune, s", "write, ms"),
        *("file, kB", "full / small", "predict, ms", "full / small", "test error, small / full"),
    )
    for model in models(options.trees):
        model.fit(X, y)
        forest = fp.Forest.from_model(model)
        prune = partial(fp.prune, model, X, y, max_nodes=options.nodes)
        prune()
        pruning, small = seconds(prune, repeats=1)
        native = small.to_native()
        sizes = [len(pickle.dumps(m)) for m in (model, native)]
        errors = [np.mean((m.predict(X_test) - y_test) ** 2) for m in (model, native)]
        best = best_times(
            {
                "own": partial(lambda m: pickle.loads(pickle.dumps(m)), model),
                "read": partial(fp.Forest.from_model, model),
                "write": small.to_native,
                "full": partial(model.predict, X_test),
                "small": partial(native.predict, X_test),
            },
            repeats=5,
        )
        result.add_row(
            type(model).__name__,
            f"{forest.n_nodes:,}",
            f"{best['read']:.2f}",
            f"{best['read'] / best['own']:.1f}",
            f"{pruning:.1f}",
            f"{1e3 * best['write']:.0f}",
            f"{sizes[1] / 1e3:.0f}",
            f"{sizes[0] / sizes[1]:.0f}",
            f"{1e3 * best['small']:.1f}",
            f"{best['full'] / best['small']:.1f}",
            f"{errors[1] / errors[0]:.3f}",
        )
    Console(width=150).print(result)


if __name__ == "__main__":
    main()
