"""Rows in collections of Dask: each partition is a block, and stays where it is.

A pass is one task for each partition and a tree of sums. What the tasks need is sent to all workers
once; only sums and rows that are drawn come back.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Any

from forestprune.blocks.blocks import Block, Blocks, Found, named
from forestprune.exceptions import OptionError
from forestprune.system import progress

TOGETHER = 8
"""How many sums are added up by one task."""


class DaskBlocks(Blocks):
    """Rows that tasks of Dask yield, gone through by its scheduler; the active client is used.

    Parameters
    ----------
    parts : list
        For each partition X, y and weights as a tuple, in which some may be tasks, or a task that
        yields such a tuple.
    names : list of str
        What partitions are called.
    labelled : bool
    """

    parallel = True

    def __init__(self, parts: Sequence[Any], names: Sequence[str], *, labelled: bool) -> None:
        self.labelled = labelled
        self._parts, self._names = parts, names
        self._first: list[int] | None = None

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any) -> "DaskBlocks":
        """Return the partitions of a dask DataFrame or Array, and of others divided like it."""
        features = _parts_of(X, "X", None)
        count = len(features)
        others = [
            [None] * count if given is None else _parts_of(given, name, count)
            for name, given in (("y", y), ("sample_weight", sample_weight))
        ]
        names = [f"partition {number}" for number in range(count)]
        return cls(list(zip(features, *others, strict=True)), names, labelled=y is not None)

    def add_up(
        self,
        function: Callable[[Block], Found],
        description: str,
        n_rows: int | None = None,  # noqa: ARG002 - the scheduler does not tell how far it is
    ) -> Found:
        """Go through all partitions, and return the sum of what `function` makes of each."""
        from dask.delayed import delayed

        with progress.bar(description, None):
            if self._first is None:
                lengths = _computed([delayed(_length)(part) for part in self._parts])
                self._first = [sum(lengths[:i]) for i in range(len(lengths))]
                if not sum(lengths):
                    raise ValueError("There are no rows: every partition is empty.")
            shared = _for_all_workers(function)
            task = delayed(_of_partition, pure=False)
            rows = zip(self._parts, self._names, self._first, strict=True)
            sums = [task(shared, part, name, first) for part, name, first in rows]
            add = delayed(_added, pure=False)
            while len(sums) > 1:
                sums = [add(sums[i : i + TOGETHER]) for i in range(0, len(sums), TOGETHER)]
            (total,) = _computed(sums)
        if isinstance(total, _Failure):
            raise total.error
        found: Found = total
        return found


class _Failure:
    """What went wrong with a partition. As an error, Dask would show it with all its own frames."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def _length(rows: tuple[Any, Any, Any]) -> int:
    return int(rows[0].shape[0])


def _of_partition(
    function: Callable[[Block], Any], rows: tuple[Any, Any, Any], where: str, first: int
) -> Any:
    """Return what a function makes of a partition; None if it is empty."""
    X, y, weight = rows
    if not len(X):
        return None
    try:
        with progress.hidden():
            return named(function, Block(X, y, weight, where, first))
    except (TypeError, ValueError) as error:
        return _Failure(error)


def _added(sums: list[Any]) -> Any:
    """Return the sum of what partitions gave, or the first error."""
    found = [each for each in sums if each is not None]
    failed = [each for each in found if isinstance(each, _Failure)]
    if failed:
        return failed[0]
    total = None
    for each in found:
        total = each if total is None else total + each
    return total


def _parts_of(given: Any, name: str, count: int | None) -> list[Any]:
    """Return the partitions of a collection, none of them computed."""
    from dask.base import is_dask_collection

    if not is_dask_collection(given) or not hasattr(given, "to_delayed"):
        raise OptionError(
            f"{{{name}}} must be a collection of Dask too, divided like {{X}}, got "
            f"{type(given).__name__}."
        )
    if getattr(given, "ndim", 1) == 2 and hasattr(given, "rechunk") and len(given.chunks[1]) > 1:
        given = given.rechunk({1: -1})
    parts = given.to_delayed()
    parts = list(parts.ravel()) if hasattr(parts, "ravel") else list(parts)
    if count is not None and len(parts) != count:
        raise OptionError(
            f"{{{name}}} must be divided like {{X}}, which has {count} partitions; got "
            f"{len(parts)}. Repartition or rechunk one like the other."
        )
    return parts


def _client() -> Any:
    """Return the active client, if there is one."""
    if "distributed" not in sys.modules:
        return None
    from distributed import get_client

    try:
        return get_client()
    except ValueError:
        return None


def _for_all_workers(function: Any) -> Any:
    """Return what stands for a function in tasks, sent to all workers if there are such."""
    client = _client()
    if client is None:
        return function
    return client.scatter(function, broadcast=True, hash=False)


def _computed(tasks: list[Any]) -> list[Any]:
    """Return what tasks give, by the active client or else in this process."""
    client = _client()
    if client is not None:
        return list(client.gather(client.compute(tasks)))
    import dask

    compute: Any = dask.compute  # type: ignore[attr-defined]
    return list(compute(*tasks))
