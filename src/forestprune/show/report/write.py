"""write_report(): a report on a pruned model, as one HTML file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from forestprune.select.path import PruningPath
from forestprune.select.pruned import PrunedForest
from forestprune.show.plotting.path import Pick, place_of
from forestprune.show.report.page import check_installed, page
from forestprune.show.report.summary import About, summarise
from forestprune.system.files import write_atomically


def write_report(
    file: str | os.PathLike[str],
    model: PrunedForest | PruningPath,
    pick: Pick | None = None,
    *,
    X: Any = None,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    title: str | None = None,
    options: Mapping[str, Any] | None = None,
    model_bytes: int | None = None,
    small_file: str | os.PathLike[str] | None = None,
) -> Path:
    """Write a report on a pruned model: one HTML file that needs nothing beside it.

    It shows the trade-off between size and error, to explore by clicking, depths and features
    before and after, the trees if there are not too many, and how to load the model.

    Parameters
    ----------
    file : str or path-like
        Where the report goes. An older one is replaced when the new one is complete.
    model : PrunedForest or PruningPath
        The model to report on: what :func:`forestprune.prune` or ``path.select(...)`` returned. Or
        a path, then `pick` says which of its points. If there were validation rows, errors are
        those on them.
    pick : PrunedForest or int, or None
        With a path: ``path.select(...)``, ``path[i]``, or the place of a point.
    X : array-like or None
        Rows to measure the time to predict with, the first 2,000 of them.
    y : array-like or None
        With `X`: what the model should predict for these rows. If they were used neither to prune
        nor to choose, theirs is the error to go by, and it comes first in the report.
    sample_weight : array-like or None
        Weights of the rows of `X`, for the error.
    title : str or None
    options : mapping or None
        What else to put on record, such as the options that the path was made with.
    model_bytes : int or None
        Size of the original's file; None takes that of a file of the same kind as the small one's.
    small_file : str or path-like, or None
        The file of the pruned model, for its size and to say how to load it. None if there is
        none yet; then the size is `n_bytes` of the pruned model.

    Returns
    -------
    pathlib.Path
        Where the report is.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> import forestprune as fp
    >>> wine = fp.load_wine_quality()
    >>> model = RandomForestRegressor(20, random_state=0).fit(wine.data, wine.target)
    >>> small = fp.prune(model, wine.data, wine.target, max_nodes=200, n_alphas=20)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fp.write_report(f"{folder}/report.html", small).name
    'report.html'
    """
    check_installed()
    path, place = _found(model, pick)
    if y is not None and X is None:
        raise ValueError("y was given without X: give the rows that it belongs to, or neither.")
    about = About(
        title=title,
        options=options or {},
        model_bytes=model_bytes,
        small_file=None if small_file is None else Path(small_file),
    )
    return write_page(file, summarise(path, place, about, X, y, sample_weight))


def _found(model: PrunedForest | PruningPath, pick: Pick | None) -> tuple[PruningPath, int]:
    """Return a path, and the place of the point to report on."""
    if isinstance(model, PrunedForest):
        if pick is not None:
            raise TypeError(
                "write_report(file, small) takes one pruned model, got two things: to pick one of "
                "a path, give the path first."
            )
        if model.path is None or model.index is None:
            raise ValueError(
                "A report compares a model with the full one and the other candidates, but this "
                "one was loaded or copied without them. Report on what prune() returned, or save "
                "it with small.save(file, with_path=True)."
            )
        return model.path, model.index
    if not isinstance(model, PruningPath):
        raise TypeError(
            f"write_report(file, small) takes a file name and then what prune() or "
            f"path.select(...) returned, got {type(model).__name__} in its place."
        )
    if pick is None:
        raise TypeError(
            "A path has many points: say which to report on, write_report(file, path.select(...))."
        )
    return model, place_of(model, pick)


def write_page(file: str | os.PathLike[str], summary: dict[str, Any]) -> Path:
    """Write a summary as a page, all of it or nothing."""
    html = page(summary)
    with write_atomically(file) as target:
        target.write(html.encode(errors="replace"))  # lone surrogates cannot be encoded
    return Path(file)
