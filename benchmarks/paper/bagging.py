"""Section 4.1: how small bagged forests become at little loss, and what others do at that size.

For each phi, the smallest model of every method whose validation error is at most phi above the
full forest's ("chosen by" phi); then, for every method, the best model by validation rows that has
no more nodes than the paper's method kept ("chosen by" budget).
"""

import time
from functools import partial

import numpy as np
import pandas as pd
import sets
from protocols import PROTOCOLS, forest, split
from systems import COMPETITORS, OURS, Candidates, Task, best_subset, candidates
from units import Settings, run_units

import forestprune as fp

PHIS = (0.01, 0.025, 0.05)
ALPHAS = np.logspace(1.5, -2, 50)
TIME_LIMIT = 2.0
"""Seconds for each best-subset problem."""


def run(settings: Settings) -> pd.DataFrame:
    """Run every data set, fold and protocol that is not there yet."""
    names, folds = sets.names(settings.data), range(sets.FOLDS)
    if settings.quick:
        names, folds = names[:2], range(1)
    units = [
        {"data": name, "fold": fold, "protocol": protocol}
        for name in names
        for fold in folds
        for protocol in PROTOCOLS
    ]
    work = partial(one_fold, settings.data)
    return run_units(settings.results / "bagging.csv", units, work, settings.jobs)


def one_fold(folder, data, fold, protocol):
    """Return a row for each method and phi."""
    table = sets.load(folder, data)
    parts = split(table, fold, protocol, "bagging")
    model = forest(parts, fold)
    full = fp.Forest.from_model(model)
    errors = [
        float(np.mean((model.predict(X) - y) ** 2))
        for X, y in ((parts.X_val, parts.y_val), (parts.X_test, parts.y_test))
    ]
    common = {"full_nodes": full.n_nodes, "full_val": errors[0], "full_test": errors[1]}
    methods = ("layer + ridge", *OURS, *(m for m in COMPETITORS if m != "best subset"))
    task = Task(full, parts, protocol, ALPHAS)
    found = {m: candidates(m, task) for m in methods}
    rows = []
    for phi in PHIS:
        at = common | {"phi": phi}
        paper = found["layer + ridge"]
        chosen = paper.within(errors[0] + phi, alone=protocol == "paper")
        budget = int(paper.nodes[chosen])
        for method, mine in found.items():
            own = chosen if mine is paper else mine.within(errors[0] + phi)
            rows.append(at | {"by": "phi", "method": method} | _described(mine, own))
            best = chosen if mine is paper else mine.best(budget)
            described = _constant(parts) if best is None else _described(mine, best)
            rows.append(at | {"by": "budget", "method": method} | described)
        rows.append(at | {"by": "budget", "method": "best subset"} | _best_subset(task, budget))
    return rows


def _described(mine: Candidates, at: int):
    depths = mine.depths[at][mine.depths[at] > 0]
    counts = np.bincount(depths) if depths.size else np.zeros(0, int)
    return {
        "nodes": int(mine.nodes[at]),
        "trees": int(mine.trees[at]),
        "val": float(mine.val[at]),
        "test": float(mine.test[at]),
        "depths": " ".join(f"{depth}:{n}" for depth, n in enumerate(counts) if n),
        "seconds": mine.seconds,
    }


def _constant(parts):
    """Describe what is left if no model is small enough."""
    return {"nodes": 0, "trees": 0, "test": parts.constant_error}


def _best_subset(task, budget):
    begun, parts = time.perf_counter(), task.parts
    small = best_subset(task, budget, TIME_LIMIT)
    if small is None:
        return _constant(parts)
    return {
        "nodes": small.n_nodes,
        "trees": small.n_trees,
        "val": float(np.mean((small.predict(parts.X_val) - parts.y_val) ** 2)),
        "test": float(np.mean((small.predict(parts.X_test) - parts.y_test) ** 2)),
        "seconds": time.perf_counter() - begun,
        "status": small.report["status"],
        "gap": small.report["gap"],
    }
