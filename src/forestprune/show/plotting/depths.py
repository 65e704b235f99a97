"""How deep trees are, before and after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from forestprune.select.pruned import PrunedForest
from forestprune.show.plotting import look
from forestprune.show.plotting.models import forest_of, one_forest

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = (look.BLUE, look.RED, look.GOLD)


def plot_depths(
    small: PrunedForest | Mapping[str, PrunedForest] | Any,
    ax: Axes | None = None,
    *,
    before: Any = None,
) -> Axes:
    """Draw how many trees have which depth, after pruning and before.

    Trees that are gone count as trees of depth 0.

    Parameters
    ----------
    small : PrunedForest, mapping of str to PrunedForest, Forest or model
        The result; a mapping compares up to three, by their names in it.
    ax : matplotlib Axes or None
        Where to draw; None makes a figure.
    before : model, Forest, PruningPath, or None
        The original, if it is to be drawn too: a pruned forest does not keep it.

    Returns
    -------
    matplotlib Axes
    """
    models = small if isinstance(small, Mapping) else {"after": small}
    if not 1 <= len(models) <= len(COLOURS):
        raise ValueError(
            f"plot_depths compares one to {len(COLOURS)} pruned forests, got {len(models)}."
        )
    depths = {name: _depths(model) for name, model in models.items()}
    original = None if before is None else forest_of(before).depths
    known = [*depths.values(), *([] if original is None else [original])]
    deepest = max(int(each.max(initial=0)) for each in known)
    ax = look.open_axes(ax, 7.2, 4.0)
    at = np.arange(deepest + 1)
    if original is not None:
        label = f"before, {look.count(original.size, 'tree')}"
        _bars(ax, at, original, 0.92, look.PALE_GREY, label)
    width, gone = 0.62 / len(depths), False
    for place, (name, each) in enumerate(depths.items()):
        label = look.count(each.size, "tree")
        if isinstance(models[name], PrunedForest):
            label = look.count(int(np.count_nonzero(each)), "tree") + " left"
            gone = gone or bool((each == 0).any())
        if len(depths) > 1 or original is not None:
            label = f"{name}, {label}"
        shift = (place - (len(depths) - 1) / 2) * width
        _bars(ax, at + shift, each, width, COLOURS[place], label)
    ticks = range(0, deepest + 1, max(1, -(-deepest // 20)))
    ax.set_xticks(ticks, ["gone" if gone and not tick else str(tick) for tick in ticks])
    ax.set_xlim(-0.6, deepest + 0.6)
    ax.margins(y=0.12)
    ax.set_xlabel("depth")
    ax.set_ylabel("trees")
    ax.locator_params(axis="y", integer=True)
    look.frame(ax, "Depths of trees", grid="y")
    look.legend(ax)
    return ax


def _depths(model: Any) -> NDArray[np.int64]:
    forest = one_forest(model, "plot_depths")
    return model.depths if isinstance(model, PrunedForest) else forest.depths


def _bars(
    ax: Axes, at: NDArray[Any], depths: NDArray[np.int64], width: float, colour: str, label: str
) -> None:
    counts = np.bincount(depths, minlength=at.size)
    bars = ax.bar(at, counts, width=width, color=colour, label=label)
    if at.size <= 12:
        # Most trees are often gone, which makes the other bars hard to read off.
        numbers = [f"{number:,}" if number else "" for number in counts]
        ax.bar_label(bars, numbers, fontsize=8, color=look.INK, padding=1)
