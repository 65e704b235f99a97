"""How deep trees are, before and after."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from forestprune.select.pruned import PrunedForest
from forestprune.show.plotting.look import (
    BLUE,
    GOLD,
    INK,
    PALE_GREY,
    RED,
    count,
    frame,
    legend,
    open_axes,
)
from forestprune.show.plotting.models import forest_of, refuse_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = (BLUE, RED, GOLD)


def plot_depths(
    small: PrunedForest | Mapping[str, PrunedForest] | Any,
    ax: "Axes | None" = None,
    *,
    before: Any = None,
) -> "Axes":
    """Draw how many trees have which depth, after pruning and before.

    Trees that are gone count as trees of depth 0.

    Parameters
    ----------
    small : PrunedForest, mapping of str to PrunedForest, Forest or model
        What came out; a mapping compares up to three, by the names they have in it.
    ax : matplotlib Axes or None
        Where to draw; None makes a figure.
    before : model, Forest, PruningPath, or None
        What went in. A pruned forest does not keep it, so it has to be given to be drawn.

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
    ax = open_axes(ax, 7.2, 4.0)
    at = np.arange(deepest + 1)
    if original is not None:
        _bars(ax, at, original, 0.92, PALE_GREY, f"before, {count(original.size, 'tree')}")
    width = 0.62 / len(depths)
    for place, (name, each) in enumerate(depths.items()):
        trees = count(int(np.count_nonzero(each)), "tree") + " left"
        if not isinstance(models[name], PrunedForest):
            trees = count(each.size, "tree")
        _bars(
            ax,
            at + (place - (len(depths) - 1) / 2) * width,
            each,
            width,
            COLOURS[place],
            f"{name}, {trees}" if len(depths) > 1 or original is not None else trees,
        )
    pruned = [model.depths for model in models.values() if isinstance(model, PrunedForest)]
    gone = any((each == 0).any() for each in pruned)
    step = max(1, -(-deepest // 20))
    ticks = list(range(0, deepest + 1, step))
    ax.set_xticks(ticks, ["gone" if gone and not tick else str(tick) for tick in ticks])
    ax.set_xlim(-0.6, deepest + 0.6)
    ax.margins(y=0.12)
    ax.set_xlabel("depth")
    ax.set_ylabel("trees")
    ax.locator_params(axis="y", integer=True)
    frame(ax, "Depths of trees", grid="y")
    legend(ax)
    return ax


def _depths(model: Any) -> NDArray[np.int64]:
    refuse_path(model, "plot_depths()")
    return model.depths if isinstance(model, PrunedForest) else forest_of(model).depths


def _bars(
    ax: "Axes",
    at: NDArray[Any],
    depths: NDArray[np.int64],
    width: float,
    colour: str,
    label: str,
) -> None:
    counts = np.bincount(depths, minlength=at.size)
    bars = ax.bar(at, counts, width=width, color=colour, label=label)
    if at.size <= 12:
        # Most trees are often gone, which makes the other bars hard to read off.
        ax.bar_label(
            bars,
            [f"{number:,}" if number else "" for number in counts],
            fontsize=8,
            color=INK,
            padding=1,
        )
