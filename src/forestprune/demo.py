"""A first look: models fitted to bundled data, pruned to a few sizes, and a report."""

import importlib.util
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba.core import event
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.metrics import log_loss, r2_score, roc_auc_score
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

FEW = (100, 12)
"""Nodes that a classifier may have; one of the least is printed in words."""

ENOUGH_TREES = 75
"""Trees of a forest large enough to compile all that larger ones need."""

Figure = Callable[[Any, Any], float]
"""From the target and what a model predicts, labels or probabilities, to how good that is."""


class _Division(NamedTuple):
    """Rows to fit and prune with, rows to choose by, and rows that nothing else has seen."""

    X: Any
    y: Any
    X_val: Any
    y_val: Any
    X_test: Any
    y_test: Any

    @classmethod
    def of(cls, data: Any, target: Any) -> "_Division":
        X, X_test, y, y_test = train_test_split(data, target, random_state=0)
        X_fit, X_val, y_fit, y_val = train_test_split(X, y, random_state=0)
        return cls(X_fit, y_fit, X_val, y_val, X_test, y_test)

    def pruned(self, model: Any, **options: Any) -> PruningPath:
        validation = {"X_val": self.X_val, "y_val": self.y_val}
        return prune_path(model, self.X, self.y, **validation, **options)


def main(n_trees: int = 100, folder: Path = FOLDER) -> None:
    """Print a table for each model, and write the report and its main figure into `folder`."""
    # Paths, and what libraries say, may look like markup.
    console = Console(markup=False, emoji=False, highlight=False)
    # The report shows the names of columns, which only data frames have.
    as_frame = importlib.util.find_spec("pandas") is not None
    wine, tumours = load_wine_quality(as_frame=as_frame), load_breast_cancer(as_frame=as_frame)
    wines = _Division.of(wine.data, wine.target)
    cells = _Division.of(tumours.data, tumours.target_names[tumours.target])
    compiling = _compile(min(n_trees, ENOUGH_TREES), wines, cells)
    if compiling > 1.0:
        console.print(f"Compiling, once for each installation, took {compiling:.0f} s.")
    for name, model in _models(n_trees).items():
        path = _path(console, name, model, wines, "wines")
        picks = _picks(path)
        console.print(_table(name, model, picks, wines, {"test R²": r2_score}))
    console.print(
        "Every row is a model of scikit-learn that predicts without forestprune installed. Picks "
        "were made on validation rows; the test rows were used for these tables only. A random "
        "forest half memorises noisy data such as these, which takes many nodes; boosting does not."
    )
    _show_classifier(console, n_trees, cells)
    pick, files = next(iter(picks.values())), file_size(model)
    for line in _written(folder, path, pick, files, wines.X_test, wines.y_test):
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


def _classifier(n_trees: int) -> Any:
    return GradientBoostingClassifier(n_estimators=n_trees, subsample=0.5, random_state=0)


def _compile(n_trees: int, wines: _Division, cells: _Division) -> float:
    """Compile what pruning such models needs; return the seconds that the compiler took.

    A few alphas lead from nothing to almost everything, as a whole path does.
    """
    seconds = [0.0]  # if all is compiled already, no time is reported
    cases = [(model, wines) for model in _models(n_trees).values()]
    cases.append((_classifier(n_trees), cells))
    with progress.bar("getting ready", None), event.install_timer("numba:compile", seconds.append):
        for model, rows in cases:
            path = rows.pruned(model.fit(rows.X, rows.y), n_alphas=5)
            small = path.select(max_nodes=BUDGETS[0])
            small.predict(rows.X)
            small.to_native()
    return seconds[-1]


def _path(console: Console, name: str, model: Any, rows: _Division, what: str) -> PruningPath:
    """Fit and prune a model, and print how long that takes."""
    console.print(f"{name}: fitting to {len(rows.X):,} {what} ...")
    begun = time.perf_counter()
    model.fit(rows.X, rows.y)
    fitted = time.perf_counter()
    path = rows.pruned(model)
    done = time.perf_counter()
    console.print(
        f"{len(path)} pruned models, refitted and validated, in {done - fitted:.1f} s; fitting "
        f"took {fitted - begun:.1f} s."
    )
    return path


def _show_classifier(console: Console, n_trees: int, rows: _Division) -> None:
    """Prune a classifier, and print what that costs and how the smallest one reads."""
    model = _classifier(n_trees)
    path = _path(console, "Boosted classifier", model, rows, "tumours")
    picks = {"1 standard error": path.select(one_standard_error=True)}
    picks |= {f"max {budget} nodes": path.select(max_nodes=budget) for budget in FEW}
    figures: dict[str, Figure] = {
        "accuracy": lambda y, sure: float(np.mean(y == model.classes_[sure.argmax(axis=1)])),
        "log-loss": log_loss,
        "AUC": lambda y, sure: float(roc_auc_score(y == model.classes_[1], sure[:, 1])),
    }
    console.print(_table("Boosted classifier", model, picks, rows, figures))
    console.print("The figures are those on test rows. What the last model says:\n")
    console.print(picks[f"max {FEW[-1]} nodes"].to_text(digits=3), "\n", soft_wrap=True)


def _picks(path: PruningPath) -> dict[str, PrunedForest]:
    picks = {}
    try:
        picks[f"R² within {TOLERANCE}"] = path.select(tolerance=TOLERANCE)
    except ValueError:  # no pruned model is that good
        picks["best"] = path.select(max_nodes=path.source.forest.n_nodes)
    picks["1 standard error"] = path.select(one_standard_error=True)
    budgets = {f"max {budget:,} nodes": path.select(max_nodes=budget) for budget in BUDGETS}
    return picks | budgets


def _table(
    name: str,
    model: Any,
    picks: dict[str, PrunedForest],
    rows: _Division,
    figures: Mapping[str, Figure],
) -> Table:
    """Return a table of the full model and some pruned ones, with figures on the test rows."""
    table = Table(title=f"{name}, pruned", title_justify="left")
    shown = ["", "nodes", "trees", "depth", "file, kB", *figures, "predict ms"]
    if len(figures) > 1:
        shown = [
            each for each in shown if each not in ("depth", "predict ms")
        ]  # for narrow terminals
    for heading in shown:
        table.add_column(heading, justify="right" if heading else "left")
    # What a user would deploy: scikit-learn's models, not our own arrays.
    natives = {"full model": model} | {key: pick.to_native() for key, pick in picks.items()}
    for native in natives.values():
        if hasattr(native, "n_jobs"):
            native.set_params(n_jobs=1)  # on one core, as the others
    seconds = prediction_times(natives, rows.X_test)
    for key, native in natives.items():
        trees = [tree.tree_ for tree in np.ravel(native.estimators_)]
        predicted = getattr(native, "predict_proba", native.predict)(rows.X_test)
        cells = {
            "": key,
            "nodes": f"{sum(tree.node_count for tree in trees):,}",
            "trees": f"{len(trees):,}",
            "depth": f"{max((tree.max_depth for tree in trees), default=0)}",
            "file, kB": f"{file_size(native) / 1000:,.1f}",
            "predict ms": f"{1000 * seconds[key]:.1f}",
            **{name: f"{figure(rows.y_test, predicted):.4f}" for name, figure in figures.items()},
        }
        table.add_row(*(cells[name] for name in shown))
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
