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
        others = {"y": y, "sample_weight": sample_weight}
        others = {name: given for name, given in others.items() if given is not None}
        for name, given in others.items():
            _require_collection(name, given)
        if all(hasattr(each, "map_partitions") for each in (X, *others.values())):
            parts = _parts_of_frames(X, others)
        else:
            features = _parts_of(X)
            divided = {name: _parts_of(given) for name, given in others.items()}
            for name, each in divided.items():
                _require_divided_alike(name, len(each), len(features))
            nothing = [None] * len(features)
            columns = (divided.get(name, nothing) for name in ("y", "sample_weight"))
            parts = list(zip(features, *columns, strict=True))
        names = [f"partition {number}" for number in range(len(parts))]
        return cls(parts, names, labelled=y is not None)

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


def _require_collection(name: str, given: Any) -> None:
    from dask.base import is_dask_collection

    if not is_dask_collection(given) or not hasattr(given, "to_delayed"):
        raise OptionError(
            f"{{{name}}} must be a collection of Dask too, divided like {{X}}, got "
            f"{type(given).__name__}."
        )


def _require_divided_alike(name: str, count: int, expected: int) -> None:
    if count != expected:
        raise OptionError(
            f"{{{name}}} must be divided like {{X}}, which has {expected} partitions; got {count}. "
            "Repartition or rechunk one like the other."
        )


def _parts_of(given: Any) -> list[Any]:
    """Return the partitions of a collection, none of them computed."""
    if hasattr(given, "map_partitions"):
        # As they are said to be: what reads few columns would otherwise read files together.
        return list(given.to_delayed(optimize_graph=False))
    if given.ndim == 2 and len(given.chunks[1]) > 1:
        given = given.rechunk({1: -1})
    return list(given.to_delayed().ravel())


def _parts_of_frames(X: Any, others: dict[str, Any]) -> list[Any]:
    """Return the partitions of frames that are divided alike, as tasks that yield X, y, weights.

    They are put together first: each by itself, Dask might divide them otherwise than it says.
    """
    from dask.delayed import delayed

    columns: dict[str, Any] = {}
    counts = {"y": 0, "sample_weight": 0}
    for name, given in others.items():
        _require_divided_alike(name, given.npartitions, X.npartitions)
        series = [given[each] for each in given.columns] if given.ndim == 2 else [given]
        columns |= {f"forestprune {name} {i}": each for i, each in enumerate(series)}
        counts[name] = len(series)
    apart = delayed(_apart, pure=False)
    whole = X.assign(**columns) if columns else X
    return [apart(part, **counts) for part in whole.to_delayed()]


def _apart(frame: Any, y: int, sample_weight: int) -> tuple[Any, Any, Any]:
    """Return the features of a partition, its target and its weights, which stand last."""
    features = frame.shape[1] - y - sample_weight
    target = frame.iloc[:, features : features + y].to_numpy() if y else None
    weight = frame.iloc[:, -1].to_numpy() if sample_weight else None
    if target is not None and y == 1:
        target = target[:, 0]
    return frame.iloc[:, :features], target, weight


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
