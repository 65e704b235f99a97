"""From a call to all models that were looked at, and the one to take."""

from typing import Any

from numpy.typing import ArrayLike

from forestprune.blocks.blocks import Blocks
from forestprune.options import Options
from forestprune.select.all_rows import RowsByBlock, RowsInMemory
from forestprune.select.by_sample import LARGE_ROWS, choose_by_sample, require_suited, suits
from forestprune.select.certify import BY_SAMPLE, certified, without_bound
from forestprune.select.choose import Wanted, choose_routed, open_model
from forestprune.select.path import PruningPath
from forestprune.select.resplit import choose_with_new_splits
from forestprune.select.resplit_by_block import choose_by_block
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
    splits, n_jobs = options.polish == "split", options.n_jobs
    if isinstance(X, Blocks):
        require_suited(source, options)
        by = choose_by_block if splits else choose_by_sample
        by_block = RowsByBlock(source, X, n_jobs)
        path, taken = by(by_block, _routed(held_out, source, options), wanted, options)
        return (without_bound(path, BY_SAMPLE, taken) if options.certify else path), taken
    rows = RoutedRows.of(source, X, y, sample_weight, n_jobs, keep_matrix=splits)
    del X  # which the caller may have handed over: only the leaves that rows end in count now
    validation_rows = _routed(held_out, source, options)
    if rows.encoding.n_rows >= LARGE_ROWS and suits(source, options):
        path, taken = choose_by_sample(RowsInMemory(rows), validation_rows, wanted, options)
        return (without_bound(path, BY_SAMPLE, taken) if options.certify else path), taken
    ways = choose_with_new_splits if splits else choose_routed
    path, taken = ways(rows, validation_rows, wanted, options)
    return (certified(path, rows, options, taken) if options.certify else path), taken


def _routed(held_out: HeldOut | None, source: Any, options: Options) -> RoutedRows | None:
    if held_out is None:
        return None
    return held_out.routed(source, options.n_jobs, keep_matrix=options.polish == "split")
