"""What it takes to read, prune and export models on this machine, and what it gains."""

import importlib.util
import time
from collections.abc import Callable
from typing import Any

from sklearn.datasets import make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.metrics import mean_squared_error
from threadpoolctl import threadpool_limits

from forestprune.api import prune
from forestprune.forest.forest import Forest
from forestprune.select.pruned import file_size
from forestprune.system import progress

_NOISE = 1.0
_REPEATS = 3


def measure(n_rows: int, n_trees: int, max_nodes: int) -> list[dict[str, Any]]:
    """Return what was measured on generated data, for a model of each library."""
    rows, test = (make_friedman1(n_rows, noise=_NOISE, random_state=seed) for seed in (0, 1))
    X, y = (part[:100] for part in rows)
    few = RandomForestRegressor(3, random_state=0).fit(X, y)
    prune(few, X, y, max_nodes=9)  # compiles what all need
    models = _models(n_trees)
    return [
        _measured(model, rows, test, max_nodes)
        for model in progress.track(models, "measuring", len(models))
    ]


def _models(n_trees: int) -> list[Any]:
    """Return models of the libraries that are installed."""
    trees: dict[str, Any] = {"n_estimators": n_trees, "n_jobs": 1}
    catboost = {"iterations": n_trees, "thread_count": 1, "allow_writing_files": False}
    others = [
        ("xgboost", "XGBRegressor", trees),
        ("lightgbm", "LGBMRegressor", trees | {"verbose": -1}),
        ("catboost", "CatBoostRegressor", catboost | {"logging_level": "Silent"}),
    ]
    return [
        RandomForestRegressor(**trees, max_features=1 / 3, random_state=0),
        HistGradientBoostingRegressor(max_iter=n_trees, early_stopping=False),
        *(
            getattr(importlib.import_module(library), name)(**settings)
            for library, name, settings in others
            if importlib.util.find_spec(library) is not None
        ),
    ]


def _measured(
    model: Any, training: tuple[Any, Any], test: tuple[Any, Any], max_nodes: int
) -> dict[str, Any]:
    with threadpool_limits(1, user_api="openmp"):
        fitting, _ = _timed(lambda: model.fit(*training), 1)
        reading, forest = _timed(lambda: Forest.from_model(model), _REPEATS)
        pruning, small = _timed(lambda: prune(forest, *training, max_nodes=max_nodes), 1)
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
