"""Telling rows by the block from rows that are all there."""

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from forestprune.blocks.blocks import Block, Blocks, LocalBlocks
from forestprune.exceptions import OptionError


def blocks_of(
    X: Any, y: Any, sample_weight: Any, names: tuple[str, str] = ("X", "y")
) -> Blocks | None:
    """Return rows by the block if `X` gives them; None if all rows are there.

    `names` are what the arguments are called.
    """
    if _is_dask(X):
        from forestprune.blocks.dask_blocks import DaskBlocks

        return DaskBlocks.of(X, y, sample_weight)
    found = X if isinstance(X, Blocks) else Batches(X) if _gives_batches(X) else None
    if found is None:
        return None
    if y is not None or sample_weight is not None:
        other = names[1] if y is not None else "sample_weight"
        raise OptionError(
            f"{{{names[0]}}} gives rows by the block, which bring their target and weights along: "
            f"leave {{{other}}} out."
        )
    return found


def _is_dask(X: Any) -> bool:
    """Tell whether `X` is a collection of Dask, without importing it."""
    if "dask" not in sys.modules:
        return False
    from dask.base import is_dask_collection

    return bool(is_dask_collection(X))


def _gives_batches(X: Any) -> bool:
    """Tell whether something yields batches (X, y), or (X, y, weights)."""
    if isinstance(X, list | tuple):
        return bool(X) and all(_is_batch(each) for each in X)
    tabular = ("__array__", "__dataframe__", "__arrow_c_stream__", "shape", "columns", "iloc")
    if isinstance(X, str | bytes | dict) or any(hasattr(X, name) for name in tabular):
        return False
    return (hasattr(X, "__iter__") and not hasattr(X, "__len__")) or _is_loader(X)


def _is_loader(X: Any) -> bool:
    """Tell whether something of known length has batches in it: its first entry is one."""
    if not hasattr(X, "__iter__") or isinstance(X, Iterator):
        return False
    try:
        first = next(iter(X), None)
    except Exception:
        return False
    return _is_batch(first)


def _is_batch(entry: Any) -> bool:
    """Tell whether an entry is a table and what goes with it."""
    return (
        isinstance(entry, tuple)
        and 2 <= len(entry) <= 3
        and len(getattr(entry[0], "shape", ())) == 2
    )


class Batches(LocalBlocks):
    """Batches that something yields, as often as it is gone through."""

    def __init__(self, batches: Any) -> None:
        if isinstance(batches, Iterator):
            raise TypeError(
                "Rows by the block are gone through several times, but "
                f"{type(batches).__name__} can be gone through once. Give something that begins "
                "anew each time: a list of batches (X, y), or an object whose __iter__ yields them."
            )
        self._batches = batches
        first = next(iter(batches), None)
        if first is None:
            raise ValueError("There are no rows: no batch came.")
        self.labelled = _parts(first, 0)[1] is not None

    def blocks(self) -> Iterator[Block]:
        """Yield all batches."""
        first = 0
        for number, entry in enumerate(self._batches):
            X, y, weight = _parts(entry, number)
            if (y is not None) != self.labelled:
                raise ValueError(
                    f"Either all batches have a target or none has, but batch {number} differs "
                    "from the first."
                )
            block = Block(X, y, weight, f"batch {number}", first)
            first += len(block)
            yield block


def _parts(entry: Any, number: int) -> tuple[Any, Any, Any]:
    """Return X, y and weights of a batch."""
    if not isinstance(entry, tuple | list) or not 2 <= len(entry) <= 3:
        raise TypeError(
            f"Each batch must be (X, y) or (X, y, sample_weight), got {type(entry).__name__} as "
            f"batch {number}. y is None if rows have no target."
        )
    X, y, weight = (*entry, None)[:3]
    if not hasattr(X, "shape"):
        X = np.asarray(X)
    return X, y, weight
