"""From a call to all models that were looked at, and the one to take."""

from typing import Any

from numpy.typing import ArrayLike

from forestprune.options import Options
from forestprune.select.choose import Wanted, choose_routed, open_model
from forestprune.select.path import PruningPath
from forestprune.select.resplit import choose_with_new_splits
from forestprune.select.routed import HeldOut, RoutedRows


def choose(
    model: Any,
    X: Any,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
    wanted: Wanted,
    held_out: HeldOut | None,
    options: Options,
) -> tuple[PruningPath, int]:
    """Return all points that were looked at, as a path, and the place of the one to take."""
    wanted.check(options, None if held_out is None else "X_val")
    source, options = open_model(model, X, options, wanted.max_depth, wanted.format)
    splits = options.polish == "split"
    rows = RoutedRows.of(source, X, y, sample_weight, options.n_jobs, keep_matrix=splits)
    del X  # which the caller may have handed over: only the leaves that rows end in count now
    validation_rows = None
    if held_out is not None:
        validation_rows = held_out.routed(source, options.n_jobs, keep_matrix=splits)
    ways = choose_with_new_splits if splits else choose_routed
    return ways(rows, validation_rows, wanted, options)
