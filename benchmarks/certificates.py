"""How far from the best possible are pruned models? Gaps and seconds on twelve data sets.

    python benchmarks/certificates.py [--data FOLDER] [--sets houses ...]

A random forest of 100 trees and a LightGBM model of 200 are pruned to 500 nodes with the first
4,000 rows, in three ways: as the paper cuts trees, any subtrees with the original values of leaves,
and any subtrees with new values, which is the default. Then `certify=True` bounds what is left to
gain. A gap is (objective - bound) / objective, in per cent. Seconds are those of the same call
without a certificate, and of the certificate. Models of 10 trees of depth 3 are also solved
exactly, for the alpha at which half of their nodes are kept. Writes results/certificates.md.
"""

import argparse
import time
import warnings
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
from frontier import HERE
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor

import forestprune as fp

SETS = (
    *("abalone", "bike_sharing_hour", "california", "cpu_small", "diamonds", "house_16H"),
    *("houses", "kin8nm", "pol", "puma32H", "stock", "wine_quality"),
)
ROWS, NODES = 4000, 500
WAYS = {
    "layers": {"rule": "layer"},
    "subtrees, original values": {"rule": "subtree", "refit": False},
    "subtrees, new values": {"rule": "subtree"},
}
LIMIT = 5.0


def originals(seed=0):
    yield (
        "random forest",
        RandomForestRegressor(100, min_samples_leaf=3, n_jobs=2, random_state=seed),
    )
    yield (
        "LightGBM",
        lightgbm.LGBMRegressor(n_estimators=200, n_jobs=2, random_state=seed, verbose=-1),
    )


def rows_of(folder, name):
    table = pd.read_csv(folder / f"{name}.csv.gz").sample(frac=1.0, random_state=0)[:ROWS]
    table = pd.get_dummies(table, dtype=float)
    return table.drop(columns="target").to_numpy(float), table["target"].to_numpy(float)


def certified(folder, sets):
    """Yield a line for each data set, original and way."""
    for name in sets:
        X, y = rows_of(folder, name)
        for kind, model in originals():
            model.fit(X, y)
            for way, options in WAYS.items():
                begun = time.perf_counter()
                small = fp.prune(model, X, y, max_nodes=NODES, certify=True, **options)
                seconds = time.perf_counter() - begun - small.certificate.seconds
                found = (100.0 * small.gap, seconds, small.certificate.seconds)
                yield name, kind, way, small.n_nodes, *found
        print(name, flush=True)


def proved(folder, sets):
    """Yield a line for each data set and way: what is left of a gap if models are small."""
    small_models = (
        RandomForestRegressor(10, max_depth=3, random_state=0),
        GradientBoostingRegressor(n_estimators=10, max_depth=3, random_state=0),
    )
    for name in sets:
        X, y = rows_of(folder, name)
        for kind, model in zip(("random forest", "boosting"), small_models, strict=True):
            model.fit(X, y)
            for way, options in WAYS.items():
                path = fp.prune_path(model, X, y, n_alphas=30, certify=True, **options)
                half = int(np.argmin(np.abs(path.n_nodes - path.source.forest.n_nodes / 2)))
                before, asked = path[half], {"solver": "exact", "time_limit": LIMIT}
                best = fp.prune(model, X, y, alpha=before.alpha, **asked, **options)
                above = round(100.0 * (before.objective / best.objective - 1.0), 4)
                left = round(100.0 * best.gap, 4)
                found = (100.0 * before.gap, above, left, best.certificate.seconds)
                yield name, kind, way, *found
        print(name, "exactly", flush=True)


def in_table(found):
    columns = ["set", "original", "way", "nodes", "gap", "pruning", "certificate"]
    table = pd.DataFrame(found, columns=columns)
    lines = [
        "| data | original | " + " | ".join(WAYS) + " |",
        "|---|---|" + "---|" * len(WAYS),
    ]
    for (name, kind), group in table.groupby(["set", "original"], sort=False):
        cells = [
            f"{line.gap:.2g} %, {line.pruning:.1f} + {line.certificate:.1f} s"
            for line in group.itertuples()
        ]
        lines.append(f"| {name} | {kind} | {' | '.join(cells)} |")
    for kind, group in table.groupby("original", sort=False):
        of_ways = group.groupby("way", sort=False)
        cells = [
            f"{own.gap.median():.2g} %, at most {own.gap.max():.2g} %; "
            f"{(own.certificate / own.pruning).median():.2f} of the time"
            for _, own in of_ways
        ]
        lines.append(f"| **all, median** | {kind} | {' | '.join(cells)} |")
    return lines


def in_exact_table(found):
    columns = ["set", "original", "way", "gap", "above", "left", "seconds"]
    table = pd.DataFrame(found, columns=columns)
    lines = [
        "| original | | gap by `certify` | above the best that was found | proved optimal "
        "| gap left, at most | seconds, median |",
        "|---|---|---|---|---|---|---|",
    ]
    for (kind, way), own in table.groupby(["original", "way"], sort=False):
        optimal = (own["left"] <= 1e-4).sum()
        lines.append(
            f"| {kind} | {way} | {own['gap'].median():.2g} % | {own['above'].median():.2g} %, at "
            f"most {own['above'].max():.2g} % | {optimal} of {len(own)} | {own['left'].max():.2g} %"
            f" | {own['seconds'].median():.2g} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data")
    parser.add_argument("--sets", nargs="+", default=SETS)
    options = parser.parse_args()
    if not options.data.exists():
        raise SystemExit(f"{options.data} does not exist: say where the data sets are with --data.")
    warnings.simplefilter("ignore")
    X, y = rows_of(options.data, options.sets[0])  # so that kernels are compiled by then
    for way in WAYS.values():
        fp.prune(RandomForestRegressor(3).fit(X, y), X, y, max_nodes=50, certify=True, **way)
    lines = [
        "# How far from the best possible",
        "",
        "By `python benchmarks/certificates.py`; its first lines say how. The gap that is proved, "
        "and the seconds that pruning and the certificate took on two cores.",
        "",
        *in_table(list(certified(options.data, options.sets))),
        "",
        'Models of 10 trees of depth 3, solved exactly with `solver="exact"` and '
        f"`time_limit={LIMIT:g}`; medians over the data sets:",
        "",
        *in_exact_table(list(proved(options.data, options.sets))),
    ]
    (HERE / "results" / "certificates.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
