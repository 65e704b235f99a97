"""Polishing rows by the block, beside polishing all of them in memory.

    python benchmarks/block_polish.py --data FOLDER [--sets diamonds nycflights13 electricity]

LightGBM with 200 trees (100 for classes) is fitted to 70 % of the rows of a data set, in FOLDER as
`NAME.csv.gz`, and pruned to 300 nodes with 15 % of them for validation; the rest are test rows. By
the block, the sample that is pruned with is lowered to a tenth of the rows, and what chooses new
splits to a quarter, as if there were ten and four times as many. For each way: nodes, the loss on
the rows to prune with and on test rows, both over that of the best constant, passes over all rows
after the samples were drawn. For leaves also how far the objective of one pruned model is above
that of all rows at once, whose equations are solved directly, however many pairs of leaves there
are; in memory conjugate gradients take over earlier, and how far these stay behind is told too.
"""

import argparse
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd

import forestprune as fp
from forestprune.interop.source import Source
from forestprune.options import Options
from forestprune.polishing import leaf_fit
from forestprune.select import by_sample, request, resplit_by_block
from forestprune.select.all_rows import RowsInMemory
from forestprune.select.by_sample import BySample
from forestprune.select.leaf_polish import MOST_PASSES
from forestprune.select.routed import RoutedRows
from forestprune.select.solver import Solver

MAX_NODES, BATCH, SHRINKAGE = 300, 20_000, 100.0
SETS = ("diamonds", "nycflights13", "electricity")


def load(folder, name):
    """Return rows to prune with, to validate and to test, in an order drawn once."""
    frame = pd.read_csv(folder / f"{name}.csv.gz").dropna(subset=["target"])
    y = frame.pop("target").to_numpy()
    for column in frame:
        if not pd.api.types.is_numeric_dtype(frame[column]):
            frame[column] = frame[column].astype("category").cat.codes
    order = np.random.default_rng(0).permutation(len(y))
    X, y = frame.to_numpy(float)[order], y[order]
    cuts = [0, int(0.7 * len(y)), int(0.85 * len(y)), len(y)]
    return [(X[a:b], y[a:b]) for a, b in pairwise(cuts)]


def fitted(X, y):
    about = {"random_state": 0, "n_jobs": 1, "verbose": -1}
    if np.unique(y).size > 20:
        return lightgbm.LGBMRegressor(n_estimators=200, **about).fit(X, y)
    return lightgbm.LGBMClassifier(n_estimators=100, **about).fit(X, y)


def batches(X, y):
    return [(X[i : i + BATCH], y[i : i + BATCH]) for i in range(0, len(y), BATCH)]


def lower(n_rows):
    """Let samples be as small beside the rows as they are of many more."""
    by_sample.SAMPLE_ROWS, resplit_by_block.SPLIT_ROWS = n_rows // 10, n_rows // 4
    request.LARGE_ROWS = n_rows + 1  # in memory all rows are gone through


def measured(name, polish, model, rows, held_out, test):
    found = []
    for way in ("in memory", "by the block"):
        given = rows if way == "in memory" else (batches(*rows),)
        small = fp.prune(
            model, *given, max_nodes=MAX_NODES, polish=polish, X_val=held_out[0], y_val=held_out[1]
        )
        path = small.path[small.index : small.index + 1]
        point = small.path.points[small.index]
        row = {"data": name, "rows": len(rows[1]), "polish": polish or "none", "way": way}
        row |= {"nodes": small.n_nodes, "loss": float(1.0 - path.score(*rows)[0])}
        row |= {"test loss": float(1.0 - path.score(*test)[0]), "new splits": small.n_new_splits}
        found.append(row | {"passes": point.report.get("passes", "")})
        print(found[-1], flush=True)
    return found


def beside(model, rows):
    """Return by what share objectives of one point are above what all rows at once lead to.

    Of leaves that are polished in memory, and of those by the block pass by pass.
    """
    routed = RoutedRows.of(Source.of(model), *rows)
    problem = routed.problem(None)
    solver = Solver(problem, Options(shrinkage=SHRINKAGE))
    point = solver.path(solver.grid(60), lambda each: each.n_nodes > MAX_NODES)[-1]
    polishing = Solver(problem, Options(shrinkage=SHRINKAGE, polish="leaf"))
    in_memory, usual = polishing._polisher.polish(point), leaf_fit.DIRECT_WORK
    leaf_fit.DIRECT_WORK = np.inf
    best = polishing._polisher.polish(point)
    leaf_fit.DIRECT_WORK = usual
    everything = RowsInMemory(routed)
    sample = everything.sample(by_sample.SAMPLE_ROWS)
    engine = BySample(sample, everything, None, Options(shrinkage=SHRINKAGE))
    same = {"curvature": problem.curvature, "variation": problem.variation}
    engine._problem = replace(engine._problem, **same)
    rounds = engine.leaf_rounds(point, SHRINKAGE)
    least, above = rounds.objective_of(best), [rounds.objective_of(in_memory)]
    while not rounds.done and engine.passes < MOST_PASSES:
        engine.fit([rounds], 1)
        above.append(rounds.objective)
    return [each / least - 1.0 for each in above]


def report(found, distances):
    lines = [
        "# Polishing rows by the block",
        "",
        "By `python benchmarks/block_polish.py`, whose first lines say how.",
        "",
        "| data | rows | polish | way | nodes | new splits | loss | test loss | passes |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['data']} | {row['rows']:,} | {row['polish']} | {row['way']} | {row['nodes']} | "
        f"{row['new splits']} | {row['loss']:.4f} | {row['test loss']:.4f} | {row['passes']} |"
        for row in found
    ]
    lines += [
        "",
        "One pruned model with its leaves polished: by what share the objective is above that of "
        "all rows at once. The first pass is about the model as it was.",
        "",
        "| data | in memory | by the block, after each pass |",
        "|---|---|---|",
        *(
            f"| {name} | {above[0]:.1e} | {', '.join(f'{x:.1e}' for x in above[1:])} |"
            for name, above in distances
        ),
    ]
    return "\n".join(lines) + "\n"


def main(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args(arguments)
    found, distances = [], []
    for name in options.sets:
        rows, held_out, test = load(options.data, name)
        model = fitted(*rows)
        lower(len(rows[1]))
        distances.append((name, beside(model, rows)))
        print(distances[-1], flush=True)
        for polish in (None, "leaf", "split"):
            found += measured(name, polish, model, rows, held_out, test)
    (options.out / "block_polish.md").write_text(report(found, distances))


if __name__ == "__main__":
    main(sys.argv[1:])
