"""Pruning time beside fitting time, for models of XGBoost and LightGBM.

    python benchmarks/boosted_timing.py [--data FOLDER] [--repeats 1]

Half of the diamonds (26,970 rows, categories one-hot) train, a quarter validates; without the
folder of data sets, as many generated rows with ten columns. 500 trees of depth 8 of XGBoost, 1,000
trees of 31 leaves of LightGBM, a rate of 0.05. Fit and prunings run one after another, on one
thread, and seconds are those of the processor: others who use the machine hardly change them.
Kernels are compiled before. A second table says what bounds that: how often the codes of a tree,
one byte a row, are gone through in sweeps, for how many points, and how long that takes.
"""

import argparse
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pandas as pd
from lightgbm import LGBMRegressor
from rich.console import Console
from side_by_side import table
from sklearn.datasets import make_friedman1
from sklearn.model_selection import train_test_split
from xgboost import XGBRegressor

import forestprune as fp
from forestprune.solve.subtrees.active import ActiveSet

HERE = Path(__file__).parent
ROWS = 53_940
MODELS = (
    XGBRegressor(n_estimators=500, max_depth=8, learning_rate=0.05, n_jobs=1),
    LGBMRegressor(n_estimators=1000, num_leaves=31, learning_rate=0.05, n_jobs=1, verbose=-1),
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


def processor_seconds(call, repeats):
    """Return the least time of the processor that a call takes, and what the last one returned."""
    best = float("inf")
    for _ in range(repeats):
        begun = time.process_time()
        result = call()
        best = min(best, time.process_time() - begun)
    return best, result


@contextmanager
def looks_counted():
    """Return a dict which counts the looks at trees within this context, and the seconds."""
    counts, sweep = {"looks": 0, "seconds": 0.0}, ActiveSet.sweep

    def counting(*arguments, **options):
        begun = time.process_time()
        changed, looked = sweep(*arguments, **options)
        counts["seconds"] += time.process_time() - begun
        counts["looks"] += looked
        return changed, looked

    ActiveSet.sweep = counting
    try:
        yield counts
    finally:
        ActiveSet.sweep = sweep


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "shared" / "data")
    parser.add_argument("--repeats", type=int, default=1)
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
    limit = table(
        "what bounds `max_nodes=500` without validation rows",
        *("model", "points", "looks / trees", "MB a sweep", "ns a row", "in sweeps"),
    )
    for model in MODELS:
        some = [part[:500] for part in train]
        for how in wishes.values():
            fp.prune(model.fit(*some), *some, **how, n_jobs=1)
        fit, _ = processor_seconds(partial(model.fit, *train), options.repeats)
        for wish, how in wishes.items():
            prune = partial(fp.prune, model, *train, **how, n_jobs=1)
            pruning, small = processor_seconds(prune, options.repeats)
            cells = [type(model).__name__, f"{fp.Forest.from_model(model).n_nodes:,}", wish]
            cells += [f"{fit:.1f}", f"{pruning:.1f}", f"{pruning / fit:.1f}", f"{small.n_nodes:,}"]
            result.add_row(*cells)
            print(*cells, sep=", ", flush=True)
        with looks_counted() as counts:
            prune = partial(fp.prune, model, *train, max_nodes=500, n_jobs=1)
            pruning, small = processor_seconds(prune, 1)
        n_rows, n_trees = len(train[1]), fp.Forest.from_model(model).n_trees
        looks, seconds = counts["looks"], counts["seconds"]
        cells = [type(model).__name__, f"{len(small.path)}", f"{looks / n_trees:.0f}"]
        cells += [f"{n_rows * n_trees / 1e6:.0f}", f"{1e9 * seconds / (looks * n_rows):.2f}"]
        limit.add_row(*cells, f"{seconds / pruning:.0%}")
    for each in (result, limit):
        Console(width=130).print(each)


if __name__ == "__main__":
    main()
