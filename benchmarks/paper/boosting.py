"""Section 4.2: how small boosted ensembles become, at their best and within budgets of nodes.

For every method: its best model by the rows to choose by ("chosen by" best), and its best within a
budget of nodes, where the last budget is what the best model of the paper's method has. The authors
take the largest model within a budget instead, and choose and score the best model on the same
rows; their protocol does so here, for all methods.
"""

import numpy as np
import pandas as pd
import sets
from protocols import boosting, run_folds, split
from systems import COMPARED, METHODS, Task, best_subset, candidates, constant, curve, described
from units import Settings

BUDGETS = (50, 100, 1000, 5000)
QUICK_ROWS = 400
TIME_LIMIT = 1.0
"""Seconds for each best-subset problem, beside what the heuristic takes that it starts from."""

ALPHAS = np.logspace(2.5, -6, 100)
AUTHORS = ("layer + ridge", "fewer trees", "LASSO")
"""Methods of which the authors have whole paths."""

PICTURED = ("kin8nm", "puma32H", "wine_quality", "abalone")
"""Data sets whose whole paths are kept, for the figure."""


def run(settings: Settings) -> pd.DataFrame:
    """Run every data set, fold and protocol that is not there yet."""
    return run_folds(settings, "boosting", one_fold, QUICK_ROWS)


def one_fold(folder, most_rows, data, fold, protocol):
    """Return a row for each method and budget; of pictured sets, also for each point of a path."""
    table = sets.load(folder, data).first(most_rows)
    parts = split(table, fold, protocol, "boosting")
    model = boosting(parts, fold)
    common = parts.errors(model)
    task = Task.of(model, parts, protocol, ALPHAS)
    as_paper = protocol == "paper"
    rows, budgets = [], list(BUDGETS)
    for method in METHODS:
        mine = candidates(method, task)
        best = mine.best()
        row = common | {"method": method, "by": "best"}
        row |= constant(parts) if best is None else described(mine, best)
        if as_paper and best is not None:
            row |= {"test": row["val"], "full_test": row["full_val"]}
        rows.append(row)
        if method == "layer + ridge":
            budgets.append(row["nodes"])
        for i, budget in enumerate(budgets):
            name = "of best" if i == len(BUDGETS) else str(budget)
            at = mine.best(budget, largest=as_paper)
            row = common | {"method": method, "by": name}
            rows.append(row | (constant(parts) if at is None else described(mine, at)))
        if method in COMPARED:
            rows += [common | {"method": method} | point for point in curve(mine, parts)]
        if data in PICTURED and method in AUTHORS:
            columns = (mine.nodes.tolist(), mine.trees.tolist(), mine.test.tolist())
            for nodes, trees, test in zip(*columns, strict=True):
                point = {"nodes": nodes, "trees": trees, "test": test}
                rows.append(common | {"method": method, "by": "path"} | point)
    for i, budget in enumerate(budgets):
        name = "of best" if i == len(BUDGETS) else str(budget)
        row = common | {"method": "best subset", "by": name}
        rows.append(row | best_subset(task, budget, TIME_LIMIT))
    return rows
