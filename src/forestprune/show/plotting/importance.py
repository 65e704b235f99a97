"""Which features are used, before and after."""

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from forestprune.forest.forest import Forest
from forestprune.options import require_count
from forestprune.show.plotting.look import (
    BLUE,
    INK,
    PALE_GREY,
    VERBATIM,
    count,
    frame,
    legend,
    open_axes,
    short_names,
)
from forestprune.show.plotting.models import forest_of, refuse_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LETTERS = 34
"""How much of a name there is room for."""


def plot_importance(
    small: Any,
    ax: "Axes | None" = None,
    *,
    before: Any = None,
    by: Literal["splits", "gain"] = "splits",
    top: int = 15,
) -> "Axes":
    """Draw how much each feature is used, after pruning and before, as shares of all use.

    Parameters
    ----------
    small : PrunedForest, Forest or model
        What came out.
    ax : matplotlib Axes or None
        Where to draw; None makes a figure.
    before : model, Forest, PruningPath, or None
        What went in. A pruned forest does not keep it, so it has to be given to be drawn.
    by : "splits" or "gain"
        What is counted: splits, whose numbers stand at the bars; or what they change in the
        prediction, that is how far values of children, in the unit of the prediction, are from
        their parent's, squared and weighted by the training rows that went there. For several
        outputs, the sum over all of them.
    top : int
        How many features to draw at most: those used most after pruning, then those before.

    Returns
    -------
    matplotlib Axes
    """
    if by not in ("splits", "gain"):
        raise ValueError(f'by must be "splits" or "gain", got {by!r}.')
    require_count("top", top, 1)
    refuse_path(small, "plot_importance()")
    forest = forest_of(small)
    original = None if before is None else forest_of(before)
    if original is not None and original.n_features != forest.n_features:
        raise ValueError(
            f"before must be what was pruned, but it has {original.n_features} features, and the "
            f"pruned forest {forest.n_features}."
        )
    after = use_of_features(forest, by)
    earlier = np.zeros_like(after) if original is None else use_of_features(original, by)
    ranked = np.lexsort((-earlier, -after))
    shown = [int(column) for column in ranked if after[column] > 0 or earlier[column] > 0][:top]
    rows = len(shown)
    ax = open_axes(ax, 7.2, 1.5 + 0.3 * max(rows, 1))
    at = np.arange(rows)
    if original is not None:
        used = f"before, {count(int(np.count_nonzero(earlier)), 'feature')}"
        ax.barh(at, _shares(earlier)[shown], height=0.8, color=PALE_GREY, label=used)
    used = count(int(np.count_nonzero(after)), "feature")
    if original is not None:
        used = f"after, {used}"
    bars = ax.barh(at, _shares(after)[shown], height=0.46, color=BLUE, label=used)
    if by == "splits":
        numbers = [f"{after[column]:,.0f}" if after[column] else "" for column in shown]
        ax.bar_label(bars, numbers, fontsize=8, color=INK, padding=3)
    names = short_names(forest, shown, LETTERS)
    ax.set_yticks(at, [names[column] for column in shown], **VERBATIM)
    ax.set_ylim(max(rows, 1) - 0.4, -0.6)
    ax.set_xlim(left=0)
    ax.set_xlabel("share of all splits, %" if by == "splits" else "share of all change, %")
    what = "splits" if by == "splits" else "change of the prediction"
    frame(ax, f"Use of features, by {what}", grid="x")
    if not rows:
        ax.text(0.5, 0.5, "no feature is used", ha="center", color=INK, transform=ax.transAxes)
    legend(ax, loc="lower right")
    return ax


def use_of_features(forest: Forest, by: Literal["splits", "gain"]) -> NDArray[np.float64]:
    """Return for each feature the number of its splits, or what they change."""
    tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.offsets))
    splits = np.flatnonzero(forest.left >= 0)
    if by == "splits":
        changes = np.ones(splits.size)
    else:
        changes = np.zeros(splits.size)
        first = forest.offsets[tree[splits]] + forest.left[splits]
        for child in (first, first + 1):
            steps = forest.value[child] - forest.value[splits]
            changes += forest.cover[child] * (steps**2).sum(axis=1)
        changes *= forest.scale[tree[splits]] ** 2
    use = np.zeros(forest.n_features)
    np.add.at(use, forest.feature[splits], changes)
    return use


def _shares(use: NDArray[np.float64]) -> NDArray[np.float64]:
    return 100.0 * use / (use.sum() or 1.0)
