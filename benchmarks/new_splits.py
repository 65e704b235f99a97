"""Models with new splits beside those with their own, for the benchmarks of size against error."""

import time
from functools import partial

import numpy as np

import forestprune as fp

SPLIT = "-split"
"""What the kind of original ends in if it is pruned with and without new splits."""

BUDGETS = (50, 100, 500, 1000, 5000)
WITH, WITHOUT = "with new splits", "its own splits"


def with_and_without(split, model, figures, predict, budgets=BUDGETS):
    """Return rows of (method, budget, nodes, *figures), two for each budget.

    Both are of one call with `polish="split"`: what it returns, and of the models with splits of
    the original that it looked at, the one that is best on validation rows. `figures` is given a
    function of rows: what `predict` makes of them and a model.
    """
    rows = []
    for budget in budgets:
        begun = time.perf_counter()
        small = fp.prune(
            model,
            split.X,
            split.y,
            X_val=split.X_val,
            y_val=split.y_val,
            max_nodes=budget,
            polish="split",
            n_jobs=1,
        )
        taken = time.perf_counter() - begun
        path = small.path
        scores = [
            score if point.forest is None and point.n_nodes <= budget else -np.inf
            for point, score in zip(path.points, path.validation.scores, strict=True)
        ]
        own = path[int(np.argmax(scores))]
        rows += [(WITH, budget, small.n_nodes, *figures(partial(predict, small)))]
        rows += [(WITHOUT, budget, own.n_nodes, *figures(partial(predict, own)))]
        print(f"    {budget:,} nodes: {taken:.1f} s", flush=True)
    return rows
