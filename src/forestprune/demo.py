"""A first look: two models fitted to the bundled data, pruned to a few sizes, and a report."""

import importlib.util
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numba.core import event
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.model_selection import train_test_split

from forestprune.api import prune_path
from forestprune.datasets import load_wine_quality
from forestprune.select.path import PruningPath
from forestprune.select.pruned import PrunedForest, file_size
from forestprune.show.report.page import check_installed
from forestprune.show.report.timing import prediction_times
from forestprune.show.report.write import write_report
from forestprune.system import progress
from forestprune.system.files import write_atomically

FOLDER = Path("forestprune-demo")
"""Where the report goes by default."""

BUDGETS, TOLERANCE = (2_000, 500, 100), 0.01

ENOUGH_TREES = 75
"""Trees of a forest large enough to compile all that larger ones need."""


def main(n_trees: int = 100, folder: Path = FOLDER) -> None:
    """Print a table for each model, and write the report and its main figure into `folder`."""
    # Paths, and what libraries say, may look like markup.
    console = Console(markup=False, emoji=False, highlight=False)
    # The report shows the names of columns, which only data frames have.
    wine = load_wine_quality(as_frame=importlib.util.find_spec("pandas") is not None)
    X, X_test, y, y_test = train_test_split(wine.data, wine.target, random_state=0)
    # Rows that neither the model nor the pruning has seen choose the point of the path.
    X_fit, X_val, y_fit, y_val = train_test_split(X, y, random_state=0)
    compiling = _compile(min(n_trees, ENOUGH_TREES), X_fit, y_fit, X_val, y_val)
    if compiling > 1.0:
        console.print(f"Compiling, once for each installation, took {compiling:.0f} s.")
    for name, model in _models(n_trees).items():
        console.print(f"{name}: fitting to {len(X_fit):,} wines ...")
        begun = time.perf_counter()
        model.fit(X_fit, y_fit)
        fitted = time.perf_counter()
        path = prune_path(model, X_fit, y_fit, X_val=X_val, y_val=y_val)
        done = time.perf_counter()
        console.print(
            f"{len(path)} pruned models, refitted and validated, in {done - fitted:.1f} s; fitting "
            f"took {fitted - begun:.1f} s."
        )
        picks = _picks(path)
        console.print(_table(name, model, picks, X_test, y_test))
    console.print(
        "Every row is a model of scikit-learn that predicts without forestprune installed. Picks "
        "were made on validation rows; the test rows were used for these tables only. A random "
        "forest half memorises noisy data such as these, which takes many nodes; boosting does not."
    )
    pick = next(iter(picks.values()))
    for line in _written(folder, path, pick, file_size(model), X_test, y_test):
        console.print(line, soft_wrap=True)


def _models(n_trees: int) -> Mapping[str, Any]:
    return {
        "Random forest": RandomForestRegressor(
            n_trees, max_features=1 / 3, n_jobs=-1, random_state=0
        ),
        "Boosting": GradientBoostingRegressor(
            n_estimators=5 * n_trees // 2, max_depth=5, subsample=0.25, random_state=0
        ),
    }


def _compile(n_trees: int, X: Any, y: Any, X_val: Any, y_val: Any) -> float:
    """Compile what pruning such models needs; return the seconds that the compiler took.

    A few alphas lead from nothing to almost everything, as a whole path does.
    """
    seconds = [0.0]  # if all is compiled already, no time is reported
    with progress.bar("getting ready", None), event.install_timer("numba:compile", seconds.append):
        for model in _models(n_trees).values():
            path = prune_path(model.fit(X, y), X, y, n_alphas=5, X_val=X_val, y_val=y_val)
            small = path.select(max_nodes=BUDGETS[0])
            small.predict(X)
            small.to_native()
    return seconds[-1]


def _picks(path: PruningPath) -> dict[str, PrunedForest]:
    picks = {}
    try:
        picks[f"R² within {TOLERANCE}"] = path.select(tolerance=TOLERANCE)
    except ValueError:  # no pruned model is that good
        picks["best"] = path.select(max_nodes=path.source.forest.n_nodes)
    picks["1 standard error"] = path.select(one_standard_error=True)
    budgets = {f"max {budget:,} nodes": path.select(max_nodes=budget) for budget in BUDGETS}
    return picks | budgets


def _table(name: str, model: Any, picks: dict[str, PrunedForest], X: Any, y: Any) -> Table:
    table = Table(title=f"{name}, pruned", title_justify="left")
    for heading in ("", "nodes", "trees", "depth", "file, kB", "test R²", "predict ms"):
        table.add_column(heading, justify="right" if heading else "left")
    # What a user would deploy: scikit-learn's models, not our own arrays.
    natives = {"full model": model} | {key: pick.to_native() for key, pick in picks.items()}
    for native in natives.values():
        if hasattr(native, "n_jobs"):
            native.set_params(n_jobs=1)  # on one core, as the others
    seconds = prediction_times(natives, X)
    for key, native in natives.items():
        trees = [tree.tree_ for tree in np.ravel(native.estimators_)]
        table.add_row(
            key,
            f"{sum(tree.node_count for tree in trees):,}",
            f"{len(trees):,}",
            f"{max((tree.max_depth for tree in trees), default=0)}",
            f"{file_size(native) / 1000:,.1f}",
            f"{native.score(X, y):.4f}",
            f"{1000 * seconds[key]:.1f}",
        )
    return table


def _written(
    folder: Path, path: PruningPath, pick: PrunedForest, n_bytes: int, X: Any, y: Any
) -> Iterator[str]:
    """Write the main figure and the report, and say where they are or why they are not there."""
    try:
        figure = _save_figure(folder / "path.png", path, pick)
        yield f"Figure of the boosting model's error against its size: {figure}"
    except ImportError as error:
        yield f"There is no figure: {error}"
    try:
        check_installed()  # before there is an empty folder
        folder.mkdir(parents=True, exist_ok=True)
        report = write_report(
            folder / "report.html", path, pick, X=X, y=y, title="Wine quality", model_bytes=n_bytes
        )
        yield f"Report on the pruned boosting model: {report}"
    except ImportError as error:
        yield f"There is no report: {error}"


def _save_figure(file: Path, path: PruningPath, pick: PrunedForest) -> Path:
    from forestprune.show.plotting import plot_path

    figure: Any = plot_path(path, picks={"in the report": pick}).figure
    file.parent.mkdir(parents=True, exist_ok=True)
    with write_atomically(file) as target:
        figure.savefig(target, dpi=150, format="png")
    return file


if __name__ == "__main__":
    main()
