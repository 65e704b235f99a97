"""Section 4.1: how small bagged forests become at little loss, and what others do at that size.

For each phi, the smallest model of every method whose validation error is at most phi above the
full forest's ("chosen by" phi); then, for every method, the best model by validation rows that has
no more nodes than the paper's method kept ("chosen by" budget).
"""

import numpy as np
import pandas as pd
import sets
from protocols import forest, run_folds, split
from systems import COMPARED, METHODS, Task, best_subset, candidates, constant, curve, described
from units import Settings

PHIS = (0.01, 0.025, 0.05)
QUICK_ROWS = 400
TIME_LIMIT = 2.0
"""Seconds for each best-subset problem, beside what the heuristic takes that it starts from."""

ALPHAS = np.logspace(1.5, -2, 50)


def run(settings: Settings) -> pd.DataFrame:
    """Run every data set, fold and protocol that is not there yet."""
    return run_folds(settings, "bagging", one_fold, QUICK_ROWS)


def one_fold(folder, most_rows, data, fold, protocol):
    """Return a row for each method and phi."""
    table = sets.load(folder, data).first(most_rows)
    parts = split(table, fold, protocol, "bagging")
    model = forest(parts, fold)
    common = parts.errors(model)
    task = Task.of(model, parts, protocol, ALPHAS)
    found = {m: candidates(m, task) for m in METHODS}
    rows = [
        common | {"method": method} | point
        for method in COMPARED
        for point in curve(found[method], parts)
    ]
    for phi in PHIS:
        at = common | {"phi": phi}
        paper = found["layer + ridge"]
        chosen = paper.within(common["full_val"] + phi, alone=protocol == "paper")
        budget = int(paper.nodes[chosen])
        for method, mine in found.items():
            own = chosen if mine is paper else mine.within(common["full_val"] + phi)
            rows.append(at | {"by": "phi", "method": method} | described(mine, own))
            best = chosen if mine is paper else mine.best(budget)
            row = at | {"by": "budget", "method": method}
            rows.append(row | (constant(parts) if best is None else described(mine, best)))
        rows.append(
            at | {"by": "budget", "method": "best subset"} | best_subset(task, budget, TIME_LIMIT)
        )
    return rows
