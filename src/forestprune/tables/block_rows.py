"""Rows of files by the block, in place of those that a command holds in memory."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from forestprune.blocks.blocks import Blocks
from forestprune.blocks.lots import lots
from forestprune.interop.source import Source
from forestprune.select.sampling import as_seen_by
from forestprune.tables.optional import import_pandas
from forestprune.tables.row_files import RowFiles, open_rows
from forestprune.tables.rows import SOME, Rows, Shares

HELD_OUT_ROWS = 100_000
"""Rows at most that are held out of those that come by the block: these are kept."""


@dataclass
class BlockRows:
    """Rows to prune with that come by the block; see :class:`forestprune.tables.rows.Rows`.

    They bring target and weights along, so `y` and `weight` are None.
    """

    files: RowFiles
    X: Blocks
    y: None = None
    weight: None = None

    def __post_init__(self) -> None:
        self._size = self.files.count()

    def __len__(self) -> int:
        return self._size

    def hand_over(self) -> Blocks:
        """Return the rows, of which nothing is kept anyhow."""
        return self.X

    def some(self) -> Rows:
        """Return some rows from the beginning."""
        block = next(block for block in self.files.blocks() if len(block))
        weight = None if block.weight is None else block.weight[:SOME]
        return Rows(block.X[:SOME], None if block.y is None else block.y[:SOME], weight)


def read_by_block(
    source: Source,
    data: Path,
    validation: Path | None,
    shares: Shares | None,
    *,
    dask: bool,
    **columns: Any,
) -> tuple[BlockRows, Rows | None]:
    """Return rows to prune with, and rows that are held out, if any.

    `columns` is what :func:`open_rows` takes.
    """
    files, others = as_seen_by(source, open_rows(data, **columns)), None
    if validation is not None:
        others = as_seen_by(source, open_rows(validation, **columns))
    elif shares is not None:
        files, others = files.divided(shares.held_out, shares.seed)
    rows = BlockRows(files, files.on_dask() if dask else files)
    return rows, None if others is None else _kept(others)


def _kept(files: RowFiles) -> Rows:
    """Return rows of files, as many as are kept at most, drawn by chance."""
    share = HELD_OUT_ROWS / max(files.count(), 1)
    parts, targets, weights = [], [], []
    for block in files.blocks():
        here = np.arange(len(block))
        if share < 1.0:
            here = here[lots(block.first + here, 2) < share]
        parts.append(block.X.iloc[here])
        if block.y is not None:
            targets.append(block.y[here])
        if block.weight is not None:
            weights.append(block.weight[here])
    return Rows(
        files.marked(import_pandas().concat(parts, ignore_index=True)),
        np.concatenate(targets) if targets else None,
        np.concatenate(weights) if weights else None,
    )
