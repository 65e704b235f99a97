"""How long models take to predict, as somebody who deploys them would call them."""

import time
from collections.abc import Callable
from typing import Any

from forestprune.source import is_a

ROWS = 2_000
"""Rows to predict at once; more say nothing new."""

TRIES, SECONDS = 10, 1.0
"""How often to try at most, and for how long."""


def first_rows(X: Any) -> Any:
    """Return as many rows of `X` as are timed. A library's own container is taken as it is."""
    return X[:ROWS] if hasattr(X, "__getitem__") else X


def n_rows(X: Any) -> int:
    """Return how many rows there are."""
    for count in ("num_row", "num_data"):  # of DMatrix, Dataset and Pool
        if hasattr(X, count):
            return int(getattr(X, count)())
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def prediction_time(model: Any, rows: Any) -> float:
    """Return the shortest of some times to predict, in seconds."""
    predict = _predictor(model, rows)
    shortest, begun = float("inf"), time.perf_counter()
    for _ in range(TRIES):
        start = time.perf_counter()
        predict()
        end = time.perf_counter()
        shortest = min(shortest, end - start)
        if end - begun > SECONDS:
            break
    return shortest


def _predictor(model: Any, rows: Any) -> Callable[[], Any]:
    if is_a(model, "xgboost", "Booster") and not is_a(rows, "xgboost", "DMatrix"):
        # Takes nothing else; making one is part of predicting.
        from xgboost import DMatrix

        about = {"feature_names": model.feature_names, "feature_types": model.feature_types}
        return lambda: model.predict(DMatrix(rows, enable_categorical=True, **about))
    return lambda: model.predict(rows)
