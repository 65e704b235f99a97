"""A first look: fit a forest to the bundled data, cut it to a few depths, show what that costs."""

import io

import joblib
import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import train_test_split

from forestprune.datasets import load_wine_quality
from forestprune.forest import Forest

DEPTHS = (20, 14, 10, 8, 6, 4, 2, 0)


def main(n_trees: int = 100) -> None:
    """Print the table."""
    console = Console()
    wine = load_wine_quality()
    X, X_test, y, y_test = train_test_split(wine.data, wine.target, random_state=0)
    console.print(f"Fitting a random forest of {n_trees} trees to {len(X):,} wines ...")
    model = RandomForestRegressor(n_trees, max_features=1 / 3, n_jobs=-1, random_state=0).fit(X, y)
    forest = Forest.from_model(model)

    table = Table(title="Wine quality: the same forest, every tree cut at one depth")
    for heading in ("", "trees", "nodes", "file, kB", "training MSE", "test MSE"):
        table.add_column(heading, justify="right")

    def add(name: str, native: RandomForestRegressor) -> None:
        table.add_row(
            name,
            f"{len(native.estimators_):,}",
            f"{sum(tree.tree_.node_count for tree in native.estimators_):,}",
            f"{_file_size(native) / 1000:,.1f}",
            f"{_error(native, X, y):.4f}",
            f"{_error(native, X_test, y_test):.4f}",
        )

    add("full forest", model)
    for depth in DEPTHS:
        # What a user would deploy: the scikit-learn model, not our own arrays.
        add(f"depth {depth}", forest.truncate(depth).to_native())
    console.print(table)
    console.print(
        "Every row is a RandomForestRegressor that predicts without forestprune installed. "
        "Cutting all trees alike is the crudest way to prune: the baseline for choosing what to "
        "cut by what it does to the error."
    )


def _error(model: RandomForestRegressor, X: object, y: object) -> float:
    return float(np.mean((model.predict(X) - y) ** 2))


def _file_size(model: RandomForestRegressor) -> int:
    file = io.BytesIO()
    joblib.dump(model, file)
    return file.tell()


if __name__ == "__main__":
    main()
