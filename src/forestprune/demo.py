"""A first look: a forest fitted to the bundled data, pruned to a few budgets."""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import train_test_split

from forestprune.api import prune_path
from forestprune.datasets import load_wine_quality
from forestprune.pruned import PrunedForest, file_size

BUDGETS = (50_000, 20_000, 5_000, 2_000, 500, 100)


def main(n_trees: int = 100) -> None:
    """Print the table."""
    console = Console()
    wine = load_wine_quality()
    X, X_test, y, y_test = train_test_split(wine.data, wine.target, random_state=0)
    # Rows that neither the forest nor the pruning has seen choose the point of the path.
    X_fit, X_val, y_fit, y_val = train_test_split(X, y, random_state=0)
    console.print(f"Fitting a random forest of {n_trees} trees to {len(X_fit):,} wines ...")
    begun = time.perf_counter()
    model = RandomForestRegressor(n_trees, max_features=1 / 3, n_jobs=-1, random_state=0)
    model.fit(X_fit, y_fit)
    fitted = time.perf_counter()
    path = prune_path(model, X_fit, y_fit, X_val=X_val, y_val=y_val)
    done = time.perf_counter()
    console.print(
        f"{len(path)} pruned forests, refitted and validated, in {done - fitted:.1f} s (the first "
        f"time with compiling); fitting took {fitted - begun:.1f} s."
    )

    table = Table(title="Wine quality: one forest, pruned to budgets", title_justify="left")
    for heading in ("", "nodes", "trees", "depth", "file, kB", "test R²", "predict ms"):
        table.add_column(heading, justify="left" if not heading else "right")

    def add(name: str, native: RandomForestRegressor) -> None:
        trees = [tree.tree_ for tree in native.estimators_]
        table.add_row(
            name,
            f"{sum(tree.node_count for tree in trees):,}",
            f"{len(trees):,}",
            f"{max(tree.max_depth for tree in trees)}",
            f"{file_size(native) / 1000:,.1f}",
            f"{native.score(X_test, y_test):.4f}",
            f"{1000 * _prediction_time(native, X_test):.1f}",
        )

    def add_pick(name: str, pick: PrunedForest) -> None:
        # What a user would deploy: the scikit-learn model, not our own arrays.
        add(name, pick.to_native())

    add("full forest", model)
    add_pick("best validated", path.select(max_nodes=path.source.forest.n_nodes))
    add_pick("1 standard error", path.select(one_standard_error=True))
    for budget in BUDGETS:
        add_pick(f"{budget:,} nodes", path.select(max_nodes=budget))
    console.print(table)
    console.print(
        "Every row is a RandomForestRegressor that predicts without forestprune installed. The "
        "picks were made on validation rows; the test rows were used for this table only."
    )


def _prediction_time(model: Any, X: NDArray[np.float64]) -> float:
    """Return the shortest of some times to predict all rows on one core, in seconds."""
    model.set_params(n_jobs=1)
    times = []
    for _ in range(5):
        begun = time.perf_counter()
        model.predict(X)
        times.append(time.perf_counter() - begun)
    return min(times)


if __name__ == "__main__":
    main()
