"""Which features are used, before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from forestprune.forest.forest import Forest
from forestprune.options import require_count
from forestprune.show.plotting import look
from forestprune.show.plotting.models import forest_of, one_forest

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LETTERS = 34
"""How much of a name there is room for."""


def plot_importance(
    small: Any,
    ax: Axes | None = None,
    *,
    before: Any = None,
    by: Literal["splits", "gain"] = "splits",
    top: int = 15,
) -> Axes:
    """Draw how much each feature is used, after pruning and before, as shares of all use.

    Bars are labelled with their shares in per cent, as the axis is; for splits the legend tells how
    many there are in all.

    Parameters
    ----------
    small : PrunedForest, Forest or model
        The result.
    ax : matplotlib Axes or None
        Where to draw; None makes a figure.
    before : model, Forest, PruningPath, or None
        The original, if it is to be drawn too: a pruned forest does not keep it.
    by : "splits" or "gain"
        What is counted: splits, or how much they change the prediction: the squared differences
        between the values of children and their parent, weighted by training rows and summed over
        outputs.
    top : int
        How many features to draw at most: those used most after pruning, then before.

    Returns
    -------
    matplotlib Axes
    """
    if by not in ("splits", "gain"):
        raise ValueError(f'by must be "splits" or "gain", got {by!r}.')
    require_count("top", top, 1)
    forest = one_forest(small, "plot_importance")
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
    ax = look.open_axes(ax, 7.2, 1.5 + 0.3 * max(rows, 1))
    at = np.arange(rows)
    label = _used(after, by)
    if original is not None:
        used = f"before, {_used(earlier, by)}"
        ax.barh(at, _shares(earlier)[shown], height=0.8, color=look.PALE_GREY, label=used)
        label = f"after, {label}"
    shares = _shares(after)[shown]
    bars = ax.barh(at, shares, height=0.46, color=look.BLUE, label=label)
    told = [f"{share:.1f} %" if share else "" for share in shares]
    ax.bar_label(bars, told, fontsize=8, color=look.INK, padding=3)
    names = look.short_names(forest, shown, LETTERS)
    ax.set_yticks(at, [names[column] for column in shown], **look.VERBATIM)
    ax.set_ylim(max(rows, 1) - 0.4, -0.6)
    ax.margins(x=0.12)  # for the labels
    ax.set_xlim(left=0)
    ax.set_xlabel("share of all splits, %" if by == "splits" else "share of all change, %")
    what = "splits" if by == "splits" else "change of the prediction"
    look.frame(ax, f"Use of features, by {what}", grid="x")
    if not rows:
        place: dict[str, Any] = {"ha": "center", "transform": ax.transAxes}
        ax.text(0.5, 0.5, "no feature is used", color=look.INK, **place)
    look.legend(ax, loc="lower right")
    return ax


def use_of_features(forest: Forest, by: Literal["splits", "gain"]) -> NDArray[np.float64]:
    """Return for each feature the number of its splits, or how much they change."""
    splits = np.flatnonzero(forest.left >= 0)
    if by == "splits":
        changes = np.ones(splits.size)
    else:
        tree = np.searchsorted(forest.offsets, splits, side="right") - 1
        left = forest.offsets[tree] + forest.left[splits]
        changes = np.zeros(splits.size)
        for child in (left, left + 1):
            steps = forest.value[child] - forest.value[splits]
            changes += forest.cover[child] * (steps**2).sum(axis=1)
        changes *= forest.scale[tree] ** 2
    return np.bincount(forest.feature[splits], changes, forest.n_features).astype(np.float64)


def _used(use: NDArray[np.float64], by: Literal["splits", "gain"]) -> str:
    features = look.count(int(np.count_nonzero(use)), "feature")
    return f"{features}, {look.count(int(use.sum()), 'split')}" if by == "splits" else features


def _shares(use: NDArray[np.float64]) -> NDArray[np.float64]:
    return 100.0 * use / (use.sum() or 1.0)
