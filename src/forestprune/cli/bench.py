"""`forestprune bench`: what pruning takes and gains on this machine, side by side."""

import importlib.util
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forestprune.cli.output import Output
from forestprune.cli.parameters import Json, Quiet

if TYPE_CHECKING:
    from rich.table import Table

_NOISE = 1.0
_REPEATS = 3

_COLUMNS = {
    "model": "",
    "nodes": "nodes",
    "fit_seconds": "fit, s",
    "read": "read",
    "prune": "prune",
    "export": "export",
    "file_ratio": "file",
    "predict_ratio": "predict",
    "error_ratio": "error",
}
"""What is shown of a model; ratios but for the first three."""


def bench(
    rows: Annotated[
        int, typer.Option(min=100, metavar="N", help="Rows of the generated data.")
    ] = 4000,
    trees: Annotated[int, typer.Option(min=1, metavar="N", help="Trees of each model.")] = 100,
    nodes: Annotated[
        int, typer.Option(min=3, metavar="N", help="What models are pruned to.")
    ] = 500,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure on generated data what it takes to read, prune and export models, and what it gains.

    Models of each library that is installed, all on one core but for the pruning.
    """
    output = Output(as_json=json, quiet=quiet)
    with output.working():
        import os

        output.note(
            f"{rows:,} rows, {trees} trees, pruned to {nodes:,} nodes; {os.cpu_count()} cores. The "
            "first run after an installation compiles: the second counts."
        )
        measured = _measure(rows, trees, nodes)
        document = {"rows": rows, "trees": trees, "max_nodes": nodes, "models": measured}
        shown = [
            _table(measured),
            "read, prune, export: time over that of the fit. file, predict, error: the full "
            "model's size, time and test error over the small one's; above 1 the small "
            "one is better.",
        ]
    output.result(document, *shown)


def _measure(n_rows: int, n_trees: int, max_nodes: int) -> list[dict[str, Any]]:
    """Return a line of the table for each library."""
    from sklearn.datasets import make_friedman1
    from sklearn.ensemble import RandomForestRegressor

    from forestprune import api
    from forestprune.system import progress

    X, y = make_friedman1(n_rows, noise=_NOISE, random_state=0)
    X_test, y_test = make_friedman1(n_rows, noise=_NOISE, random_state=1)
    few = RandomForestRegressor(3, random_state=0).fit(X[:100], y[:100])
    api.prune(few, X[:100], y[:100], max_nodes=9)  # compiles what all need
    models = _models(n_trees)
    return [
        _measured(make(), (X, y), (X_test, y_test), max_nodes)
        for make in progress.track(models, "measuring", len(models))
    ]


def _models(n_trees: int) -> list[Callable[[], Any]]:
    """Return makers of models, of the libraries that are there."""
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

    def xgboost() -> Any:
        from xgboost import XGBRegressor

        return XGBRegressor(n_estimators=n_trees, n_jobs=1)

    def lightgbm() -> Any:
        from lightgbm import LGBMRegressor

        return LGBMRegressor(n_estimators=n_trees, n_jobs=1, verbose=-1)

    def catboost() -> Any:
        from catboost import CatBoostRegressor

        return CatBoostRegressor(
            iterations=n_trees, thread_count=1, allow_writing_files=False, logging_level="Silent"
        )

    others = [
        make
        for make in (xgboost, lightgbm, catboost)
        if importlib.util.find_spec(make.__name__) is not None
    ]
    return [
        lambda: RandomForestRegressor(n_trees, max_features=1 / 3, n_jobs=1, random_state=0),
        lambda: HistGradientBoostingRegressor(max_iter=n_trees, early_stopping=False),
        *others,
    ]


def _measured(
    model: Any, training: tuple[Any, Any], test: tuple[Any, Any], max_nodes: int
) -> dict[str, Any]:
    from sklearn.metrics import mean_squared_error
    from threadpoolctl import threadpool_limits

    from forestprune import api
    from forestprune.forest.forest import Forest
    from forestprune.select.pruned import file_size

    with threadpool_limits(1, user_api="openmp"):
        fitting, _ = _timed(lambda: model.fit(*training), 1)
        reading, forest = _timed(lambda: Forest.from_model(model), _REPEATS)
        pruning, small = _timed(lambda: api.prune(forest, *training, max_nodes=max_nodes), 1)
        exporting, native = _timed(small.to_native, _REPEATS)
        full_time, full = _timed(lambda: model.predict(test[0]), _REPEATS)
        small_time, pruned = _timed(lambda: native.predict(test[0]), _REPEATS)
    full_error, small_error = (mean_squared_error(test[1], p) for p in (full, pruned))
    return {
        "model": type(model).__name__,
        "nodes": forest.n_nodes,
        "fit_seconds": fitting,
        "read": reading / fitting,
        "prune": pruning / fitting,
        "export": exporting / fitting,
        "nodes_ratio": forest.n_nodes / max(1, small.n_nodes),
        "file_ratio": file_size(model) / file_size(native),
        "predict_ratio": full_time / small_time,
        "error_ratio": float(full_error / small_error),
    }


def _timed(call: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Return the shortest of some times that a call takes, and what it returns."""
    best, returned = float("inf"), None
    for _ in range(repeats):
        begun = time.perf_counter()
        returned = call()
        best = min(best, time.perf_counter() - begun)
    return best, returned


def _table(lines: list[dict[str, Any]]) -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in _COLUMNS.values():
        table.add_column(heading, justify="right" if heading else "left", no_wrap=not heading)
    for line in lines:
        shown = line | {"model": line["model"].removesuffix("Regressor")}
        table.add_row(*(_cell(shown[name]) for name in _COLUMNS))
    return table


def _cell(entry: Any) -> str:
    if isinstance(entry, float):
        return f"{entry:.2g}" if entry < 1 else f"{entry:,.2f}" if entry < 100 else f"{entry:,.0f}"
    return entry if isinstance(entry, str) else f"{entry:,}"
