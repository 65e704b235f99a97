"""How long models take to predict, called as in deployment."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from forestprune.interop.source import is_a

ROWS = 2_000
"""Rows to predict at once; more say nothing new."""

MIN_TURNS, MAX_TURNS, SECONDS = 3, 10, 2.0
"""How often to predict, and after how many seconds to stop between the two."""


def first_rows(X: Any) -> Any:
    """Return as many rows of `X` as are timed. A library's own container is taken as it is."""
    return X[:ROWS] if hasattr(X, "__getitem__") else X


def n_rows(X: Any) -> int:
    """Return how many rows there are."""
    for count in ("num_row", "num_data"):  # of DMatrix, Dataset and Pool
        if hasattr(X, count):
            return int(getattr(X, count)())
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def prediction_times(models: Mapping[str, Any], rows: Any) -> dict[str, float]:
    """Return the shortest time in seconds that each model takes to predict.

    They take turns, and the first turn does not count.
    """
    predictors = {name: _predictor(model, rows) for name, model in models.items()}
    for predict in predictors.values():
        predict()
    shortest, begun = dict.fromkeys(models, float("inf")), time.perf_counter()
    for turn in range(MAX_TURNS):
        if turn >= MIN_TURNS and time.perf_counter() - begun > SECONDS:
            break
        for name, predict in predictors.items():
            start = time.perf_counter()
            predict()
            shortest[name] = min(shortest[name], time.perf_counter() - start)
    return shortest


def _predictor(model: Any, rows: Any) -> Callable[[], Any]:
    if is_a(model, "xgboost", "Booster") and not is_a(rows, "xgboost", "DMatrix"):
        # A Booster takes nothing else; making one is part of predicting.
        from xgboost import DMatrix

        about = {"feature_names": model.feature_names, "feature_types": model.feature_types}
        return lambda: model.predict(DMatrix(rows, enable_categorical=True, **about))
    return lambda: model.predict(rows)
