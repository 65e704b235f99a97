"""How benchmarks time things and show what they found."""

import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from rich.table import Table

Result = TypeVar("Result")


def seconds(call: Callable[[], Result], repeats: int = 3) -> tuple[float, Result]:
    """Return the shortest time of some calls, and what the last one returned."""
    best = float("inf")
    for _ in range(repeats):
        begun = time.perf_counter()
        result = call()
        best = min(best, time.perf_counter() - begun)
    return best, result


def best_times(calls: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Return the shortest time of each call, in seconds, over `repeats` rounds of all of them.

    In turns, so that a slow minute of the machine hits all of them.
    """
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(repeats):
        for name, call in calls.items():
            begun = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - begun)
    return best


def table(title: str, *headings: str) -> Table:
    result = Table(title=title, title_justify="left")
    for i, heading in enumerate(headings):
        result.add_column(heading, justify="left" if i == 0 else "right")
    return result
