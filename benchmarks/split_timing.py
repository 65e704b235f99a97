"""How long it takes to choose splits anew, beside pruning and beside the original's fit.

    python benchmarks/split_timing.py [--rows 20000] [--most-rows 320000] [--nodes 1000]

Generated data of 20 columns (Friedman's, the rest is noise). First, originals of each library are
fitted and pruned to as many nodes, without new splits and with, with a quarter as many rows to
validate with. Then a small LightGBM of as many nodes is polished by itself, with one shrinkage and
so without a choice, for more and more rows: time should grow as rows do. All on one thread, in
seconds of the processor: others who use the machine hardly change them. Kernels are compiled
before.
"""

import argparse
from functools import partial

import numpy as np
from boosted_timing import processor_seconds
from lightgbm import LGBMRegressor
from rich.console import Console
from side_by_side import table
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor
from xgboost import XGBRegressor

import forestprune as fp

COLUMNS, LEAVES = 20, 16
SHRINKAGE = 30.0


def rows(m, seed):
    X, y = make_friedman1(m, COLUMNS, noise=1.0, random_state=seed)
    return X.astype(np.float32), y


def originals():
    """Yield what is pruned, not fitted."""
    yield (
        "random forest, 100 trees",
        RandomForestRegressor(100, max_features=1 / 3, n_jobs=1, random_state=0),
    )
    yield "XGBoost, 500 trees of depth 6", XGBRegressor(n_estimators=500, n_jobs=1)
    yield (
        "LightGBM, 500 trees of 31 leaves",
        LGBMRegressor(n_estimators=500, n_jobs=1, verbose=-1),
    )


def beside_the_fit(m, nodes):
    """Return a table: fit, pruning, and pruning with new splits."""
    train, (X_val, y_val) = rows(m, 0), rows(m // 4, 1)
    how = {"max_nodes": nodes, "X_val": X_val, "y_val": y_val, "n_jobs": 1}
    result = table(
        f"{m:,} rows, {len(y_val):,} to validate with, {nodes:,} nodes",
        *("original", "nodes", "fit, s", "prune, s", "with new splits, s", "/ prune", "/ fit"),
        "error, new splits / without",
    )
    for name, model in originals():
        fit, _ = processor_seconds(partial(model.fit, *train), 1)
        prune, plain = processor_seconds(partial(fp.prune, model, *train, **how), 1)
        polish, new = processor_seconds(partial(fp.prune, model, *train, **how, polish="split"), 1)
        X, y = rows(10_000, 2)
        errors = [float(np.mean((each.predict(X) - y) ** 2)) for each in (new, plain)]
        cells = [name, f"{fp.Forest.from_model(model).n_nodes:,}", f"{fit:.1f}", f"{prune:.1f}"]
        cells += [f"{polish:.1f}", f"{polish / prune:.1f}", f"{polish / fit:.1f}"]
        result.add_row(*cells, f"{errors[0] / errors[1]:.3f}")
    return result


def by_rows(least, most, nodes):
    """Return a table: a small model polished by more and more rows."""
    result = table(
        f"A LightGBM of about {nodes:,} nodes, polished",
        *("rows", "fit, s", "polish, s", "us a row", "error, polished / before"),
    )
    trees = round(nodes / (2 * LEAVES - 1))
    X, y = rows(10_000, 2)
    m = least
    while m <= most:
        train = rows(m, 0)
        model = LGBMRegressor(n_estimators=trees, num_leaves=LEAVES, n_jobs=1, verbose=-1)
        fit, _ = processor_seconds(partial(model.fit, *train), 1)
        how = {"shrinkage": SHRINKAGE, "n_jobs": 1}
        polish, small = processor_seconds(partial(fp.polish, model, *train, **how), 1)
        errors = [float(np.mean((each.predict(X) - y) ** 2)) for each in (small, model)]
        cells = [f"{m:,}", f"{fit:.2f}", f"{polish:.1f}", f"{1e6 * polish / m:.0f}"]
        result.add_row(*cells, f"{errors[0] / errors[1]:.3f}")
        m *= 4
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--most-rows", type=int, default=320_000)
    parser.add_argument("--nodes", type=int, default=1_000)
    options = parser.parse_args()
    beside_the_fit(500, 60)  # compiles
    console = Console(width=130)
    console.print(beside_the_fit(options.rows, options.nodes))
    console.print(by_rows(options.rows // 4, options.most_rows, options.nodes))


if __name__ == "__main__":
    main()
