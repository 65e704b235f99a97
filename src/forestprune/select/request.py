"""From a call to all models that were looked at, and the one to take."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from forestprune.blocks.blocks import Blocks
from forestprune.interop.source import Source
from forestprune.options import Options
from forestprune.select.all_rows import AllRows, RowsByBlock, RowsInMemory
from forestprune.select.by_sample import LARGE_ROWS, SAMPLE_ROWS, BySample, require_suited, suits
from forestprune.select.choose import Wanted, choose_routed, open_model
from forestprune.select.path import PruningPath
from forestprune.select.resplit import choose_with_new_splits
from forestprune.select.routed import HeldOut, RoutedRows
from forestprune.select.sampling import Chances, drawn, stands_for_all, survey, weights_of


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
    rows, everything = rows_of(source, X, y, sample_weight, options)
    del X  # which the caller may have handed over: only the leaves that rows end in count now
    validation_rows = None
    if held_out is not None:
        validation_rows = held_out.routed(source, options.n_jobs, keep_matrix=splits)
    if everything is not None:
        return BySample(rows, everything, validation_rows, options).choose(wanted)
    ways = choose_with_new_splits if splits else choose_routed
    return ways(rows, validation_rows, wanted, options)


def rows_of(
    source: Source, X: Any, y: ArrayLike | None, sample_weight: ArrayLike | None, options: Options
) -> tuple[RoutedRows, AllRows | None]:
    """Return the rows to prune with, and if they are a sample, all of them."""
    n_jobs = options.n_jobs
    if isinstance(X, Blocks):
        require_suited(source, options)
        found = survey(source, X, SAMPLE_ROWS, "drawing a sample", n_jobs)
        rows = found.routed(source, n_jobs, stand_for_all=True)
        if found.n_rows <= SAMPLE_ROWS:
            return rows, None
        return rows, RowsByBlock(X, found.n_rows, found.class_counts)
    rows = RoutedRows.of(source, X, y, sample_weight, n_jobs, keep_matrix=options.polish == "split")
    n_rows = rows.encoding.n_rows
    if n_rows < LARGE_ROWS or not suits(source, options):
        return rows, None
    numbers, chances = np.arange(n_rows), Chances(source.forest).of(rows.encoding)
    some = np.sort(drawn(numbers, chances, SAMPLE_ROWS))
    times = weights_of(some, chances[some])
    return stands_for_all(rows.take(some), times, rows.total_weight), RowsInMemory(rows)
