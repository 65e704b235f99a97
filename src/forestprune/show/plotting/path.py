"""Error against size along a path."""

import operator
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from forestprune.select.budget import Budget
from forestprune.select.figures import error_name, error_of, errors_of
from forestprune.select.path import PruningPath, breaks_off
from forestprune.select.pruned import PrunedForest
from forestprune.show.plotting import look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Pick = PrunedForest | int

MARKERS, COLOURS = "os^vPX", (look.RED, look.GOLD, look.INK)
"""Of picks, in turn."""


def plot_path(
    path: PruningPath | PrunedForest,
    ax: "Axes | None" = None,
    *,
    picks: Mapping[str, Pick] | Sequence[Pick] | None = None,
) -> "Axes":
    """Draw error against number of nodes, for all points of a path.

    If the path was validated (``prune_path(..., X_val=, y_val=)``, or ``path_`` of
    :class:`forestprune.ForestPruneRegressorCV`), the error is 1 - R squared on rows held out, or 1
    less D squared or what `scoring` asked for, which the axis says; of scores such as
    "neg_log_loss" it is what they are minus of. There is a band of one standard error, and the full
    model's own error is marked. Otherwise it is the
    error on the rows that the forest was pruned with, which says little about others; the axis
    says which. With several shrinkages the line joins the points that no smaller one beats, and
    the others are dots; triangles are models with new splits (``polish="split"``), where there are
    some. A constant has no nodes, hence no place on the logarithmic axis: its error
    is told below the axis, and a pick that is a constant is drawn as a line across.

    Parameters
    ----------
    path : PruningPath or PrunedForest
        Of a pruned model, the path that it was chosen from is drawn. That may break off where what
        was asked for was reached: then no line leads from there to the full model.
    ax : matplotlib Axes or None
        Where to draw; None makes a figure.
    picks : mapping of str to pick, sequence of picks, or None
        Points to mark, with their labels: pruned forests from ``path.select(...)`` or
        ``path[i]``, or their places in the path. None marks, if there is validation, the best
        point and the smallest one within one standard error of it. If a pruned model is given,
        None marks that one.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> import forestprune as fp
    >>> wine = fp.load_wine_quality()
    >>> model = RandomForestRegressor(20, random_state=0).fit(wine.data, wine.target)
    >>> path = fp.prune_path(model, wine.data, wine.target, n_alphas=20)
    >>> fp.plot_path(path, picks={"500 nodes": path.select(max_nodes=500)}).get_xscale()
    'log'
    """
    from forestprune.show.report.tradeoff import frontier  # reports import this module

    path, picks = _drawn(path, picks)
    if not len(path):
        raise ValueError("The path has no points, so there is nothing to draw.")
    ax = look.open_axes(ax, 7.2, 4.4)
    validation = path.validation
    nodes = path.n_nodes
    errors = path.losses if validation is None else errors_of(validation.name, validation.scores)
    by_size = np.lexsort((errors, nodes))
    by_size = by_size[nodes[by_size] > 0]
    if len({point.report.get("shrinkage") for point in path.points}) > 1:
        # A line through all of them would go up and down: it joins those that no smaller one beats.
        ax.plot(
            nodes[by_size], errors[by_size], color=look.GREY, marker="o", ms=2, ls="", alpha=0.5
        )
        by_size = by_size[frontier(nodes, errors)[by_size]]
    if breaks_off(path):
        # A line to the full model would pass over better models that are not here.
        by_size = by_size[by_size != len(path) - 1]
    x, y = nodes[by_size], errors[by_size]
    ax.plot(x, y, color=look.BLUE, lw=1.6, marker="o", ms=2.5)
    new = (path.n_new_splits > 0) & (nodes > 0)
    if new.any():
        of_new: dict[str, Any] = {"color": look.VIOLET, "marker": "^", "ms": 6, "ls": ""}
        ax.plot(nodes[new], errors[new], label="with new splits", zorder=2.5, **of_new)
    ax.set_xscale("log")
    n_full = path.source.original.n_nodes
    label = f"full model, {look.count(n_full, 'node')}"
    full: dict[str, Any] = {"color": look.GREY, "label": label}
    dotted: dict[str, Any] = {"lw": 1, "ls": (0, (2, 2))}
    if validation is None:
        if n_full:
            ax.axvline(n_full, **full, **dotted)
        ax.set_ylabel("training error: loss / loss of the best constant")
        title = "Training error against size"
    else:
        band = validation.standard_errors[by_size]
        pale: dict[str, Any] = {"color": look.PALE_BLUE, "alpha": 0.7, "lw": 0}
        ax.fill_between(x, y - band, y + band, label="one standard error", **pale)
        of_full = error_of(validation.name, validation.full)
        ax.axhline(of_full, color=look.GREY, **dotted)
        if n_full:
            ax.plot([n_full], [of_full], marker="D", ms=7, ls="", **full)
        ax.set_ylabel(f"validation error: {error_name(validation.name)}")
        title = "Validation error against size"
    style: dict[str, Any] = {"ms": 9, "mec": "white", "mew": 1.2, "ls": "", "zorder": 3}
    places = _places(path, picks)
    for (name, index), marker, colour in zip(places, cycle(MARKERS), cycle(COLOURS), strict=False):
        if not nodes[index]:
            ax.axhline(errors[index], color=colour, lw=1, label=f"{name}, a constant")
            continue
        style |= {"label": f"{name}, {look.count(int(nodes[index]), 'node')}"}
        ax.plot([nodes[index]], [errors[index]], color=colour, marker=marker, **style)
    ax.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    constants = errors[nodes == 0]
    told = f" (a constant has none; its error is {constants[0]:.3g})" if constants.size else ""
    ax.set_xlabel(f"nodes{told}")
    look.frame(ax, title)
    look.legend(ax)
    return ax


def _drawn(
    model: PruningPath | PrunedForest, picks: Mapping[str, Pick] | Sequence[Pick] | None
) -> tuple[PruningPath, Mapping[str, Pick] | Sequence[Pick] | None]:
    """Return the path to draw, and what to mark."""
    if isinstance(model, PruningPath):
        return model, picks
    if not isinstance(model, PrunedForest):
        raise TypeError(
            f"A PruningPath or a PrunedForest is required, got {type(model).__name__}. Give what "
            "prune_path() or prune() returned."
        )
    if model.path is None or model.index is None:
        raise ValueError(
            "This model was loaded or copied without the path that it was chosen from. Draw what "
            "prune() returned, or save it with small.save(file, with_path=True)."
        )
    return model.path, {"this model": model.index} if picks is None else picks


def _places(
    path: PruningPath, picks: Mapping[str, Pick] | Sequence[Pick] | None
) -> list[tuple[str, int]]:
    """Return the names of picks and their places in the path."""
    if picks is None:
        if path.validation is None:
            return []
        best = path.choose(Budget(), None, False, path.validation)
        smallest = path.choose(Budget(), None, True, path.validation)
        named = [("best", best), ("smallest within one standard error", smallest)]
        # The full model says nothing about larger ones than those that were looked for.
        return [] if breaks_off(path) and best == len(path) - 1 else named
    if isinstance(picks, Mapping):
        return [(name, place_of(path, pick)) for name, pick in picks.items()]
    return [(f"pick {number}", place_of(path, pick)) for number, pick in enumerate(picks, 1)]


def place_of(path: PruningPath, pick: Pick) -> int:
    """Return the place of a pick in a path."""
    if not isinstance(pick, PrunedForest):
        return range(len(path))[operator.index(pick)]
    if pick.path is path and pick.index is not None:
        return pick.index
    same = [
        index
        for index, point in enumerate(path.points)
        if point.alpha == pick.alpha
        and point.objective == pick.objective
        and np.array_equal(point.depths, pick.depths)
    ]
    if not same:
        raise ValueError(
            f"{pick!r} is not a point of this path. Pick one with path.select(...) or path[i]."
        )
    return same[0]
