"""A whole small ensemble, drawn tree by tree."""

from collections import Counter
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from forestprune.forest.forest import Forest
from forestprune.options import require_count
from forestprune.select.pruned import PrunedForest
from forestprune.show.plotting.layout import GAP, Place, Rows, place_nodes, row_width
from forestprune.show.plotting.look import (
    BLUE,
    ELLIPSIS,
    GREY,
    INK,
    RED,
    VERBATIM,
    aligned_number,
    count,
    even_lines,
    open_axes,
    short_names,
    short_number,
    short_threshold,
)
from forestprune.show.plotting.models import forest_of, refuse_path
from forestprune.text.additive import Additive, Condition, category_labels, percent, takes_missing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TINTS = (
    "#f6d8a8", "#bcd7e8", "#cfe3b8", "#e9c3c3", "#d8cbe6", "#f2e59b",
    "#b9ddd5", "#e6c9a8", "#c9cfe8", "#dfe0c0", "#f3cfe0", "#c2e0c6",
)  # fmt: skip
"""Backgrounds of splits, the commonest features first; features beyond are grey."""

REST = "#e4e4e4"

MAX_TREES, MAX_LEAVES, MAX_DEPTH = 30, 240, 12
"""What can still be read."""

LINE, LETTERS = 15, 32
"""Letters in a line of a split, and in the name of its feature, so that it takes few lines."""

SLOT, LAYER = 0.7, 0.72
"""Inches from leaf to leaf, and from layer to layer."""

ASPECT, ONE_ROW = 1.5, 11.0
"""Width over height of a figure of its own, about; inches that all trees may take in one row."""

LEAST_WIDTH = 6.4
"""Inches that the title needs."""

DARK_RED, DARK_BLUE = "#8e3822", "#1f4f74"

EDGE = "#b9b9b9"


def plot_forest(
    small: Any,
    ax: "Axes | None" = None,
    *,
    top: int | None = None,
    output: int | None = None,
) -> "Axes":
    """Draw all trees of a small ensemble side by side, the one that matters most first.

    Rows go left where the condition of a split holds. A leaf says what is added to the prediction,
    weight of the tree included, and which share of the training rows ends there; lines are as
    thick as what passes along them. Splits on the same feature have the same colour, up to the
    twelve commonest. Where missing values can occur, a ring sits on the line that they follow.

    Parameters
    ----------
    small : PrunedForest, Forest or model
    ax : matplotlib Axes or None
        Where to draw; None makes a figure that is large enough. In axes that are too small, letters
        shrink.
    top : int or None
        Draw only the trees that matter most, by how much what they add varies.
    output : int or None
        Which output, counted from 0; needed if there are several.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If there is more than can be read: 30 trees, 240 leaves, or depth 12.
    """
    refuse_path(small, "plot_forest()")
    require_count("top", top, 1)
    forest = forest_of(small)
    view = Additive.of(forest, output)
    chosen = view.order[:top]
    _check_size(forest, chosen)
    if not chosen:
        return _draw_constant(ax, view.constant)
    trees = [place_nodes(forest, tree) for tree in chosen]
    if ax is None:
        all_in_one = SLOT * row_width(tuple(trees)) <= ONE_ROW
        rows = Rows((tuple(trees),)) if all_in_one else Rows.of(trees, ASPECT * LAYER / SLOT)
        width = max(rows.width, LEAST_WIDTH / SLOT)
        inches = SLOT * width
        ax, scale = open_axes(None, inches, LAYER * rows.height + 0.7), 1.0
    else:
        inches, high = _inches(ax)
        rows = Rows.of(trees, inches / high * LAYER / SLOT)
        width = rows.width
        scale = min(1.0, inches / (SLOT * width), high / (LAYER * rows.height))
    ax.set_axis_off()
    ax.set_xlim(-GAP / 2 - 0.5, width - GAP / 2 - 0.5)
    ax.set_ylim(0.8 - rows.height, 0.8)
    heads = dict(zip(trees, _heads(small, forest, chosen), strict=True))
    pen = _Pen(ax, forest, view, chosen, scale)
    top_of_row = 0.0
    for row, height in zip(rows.trees, rows.heights, strict=True):
        # Rows are spread out evenly, so that none looks as if something were missing.
        room = (width - row_width(row)) / len(row)
        left = room / 2
        for tree in row:
            pen.draw(tree, heads[tree], left, top_of_row)
            left += tree.leaves + GAP + room
        top_of_row -= height
    title = _title(forest, view, chosen, int(11.5 * inches))
    ax.set_title(title, loc="left", color=INK, fontsize=10, linespacing=1.5)
    return ax


class _Pen:
    """Draws one tree after another, all in the same colours and sizes."""

    def __init__(
        self, ax: "Axes", forest: Forest, view: Additive, trees: tuple[int, ...], scale: float
    ) -> None:
        self.ax, self.forest, self.view, self.scale = ax, forest, view, scale
        nodes = np.concatenate([np.arange(*forest.offsets[tree : tree + 2]) for tree in trees])
        features = Counter(int(f) for f in forest.feature[nodes] if f >= 0)
        self.colours = {
            f: tint for (f, _), tint in zip(features.most_common(), TINTS, strict=False)
        }
        self.names = short_names(forest, features, LETTERS)
        self.largest = float(np.abs(view.contributions[nodes]).max())
        self.rings = takes_missing(forest)

    def draw(self, tree: Place, head: str, left: float, top: float) -> None:
        self._text(left + tree.x, top + 0.6, head, 7.5, color=GREY)
        for place in tree:
            at = left + place.x, top - place.depth
            for side, child in enumerate(place.children):
                self._edge(at, (left + child.x, top - child.depth), child.node)
                if self.rings and side == 1 - int(self.forest.missing_left[place.node]):
                    self._ring(at, (left + child.x, top - child.depth))
            if place.children:
                self._split(*at, place.node)
            else:
                self._leaf(*at, place.node)

    def _edge(self, a: tuple[float, float], b: tuple[float, float], node: int) -> None:
        share = self.view.shares[node]
        width = 1.0 if share != share else 0.6 + 3.4 * min(1.0, share)
        self.ax.plot(
            [a[0], b[0]],
            [a[1], b[1]],
            color=EDGE,
            lw=width * self.scale,
            solid_capstyle="round",
            zorder=1,
        )

    def _ring(self, a: tuple[float, float], b: tuple[float, float]) -> None:
        part = 0.55
        self.ax.plot(
            [a[0] + part * (b[0] - a[0])],
            [a[1] + part * (b[1] - a[1])],
            marker="o",
            ms=4.2 * self.scale,
            mfc="white",
            mec=GREY,
            mew=0.9 * self.scale,
            zorder=2,
        )

    def _split(self, x: float, y: float, node: int) -> None:
        condition = Condition.of(self.forest, node)
        lines = [*even_lines(self.names[condition.feature], LINE), self._met(condition)]
        tint = self.colours.get(condition.feature, REST)
        box = {"boxstyle": "round,pad=0.3", "lw": 0, "fc": tint}
        self._text(x, y, "\n".join(lines), 7.8, bbox=box, linespacing=1.15, zorder=3)

    def _met(self, condition: Condition) -> str:
        if condition.categories is None:
            return short_threshold(condition.threshold)
        labels = [str(label) for label in category_labels(self.forest, condition)]
        text = ", ".join(labels)
        while len(text) > 2 * LINE - 4 and len(labels) > 1:
            labels.pop()
            text = ", ".join(labels) + f", {ELLIPSIS} ({len(condition.categories)} in all)"
        printable = "".join(c if c.isprintable() else " " for c in text)
        return "\n".join(even_lines(f"in {{{printable}}}", LINE + 4))

    def _leaf(self, x: float, y: float, node: int) -> None:
        adds, share = float(self.view.contributions[node]), float(self.view.shares[node])
        strength = abs(adds) / self.largest if self.largest > 0 else 0.0
        tint = _blend(RED if adds < 0 else BLUE, 0.06 + 0.3 * strength)
        box = {"boxstyle": "round,pad=0.28", "fc": tint, "lw": 0}
        colour = DARK_RED if adds < 0 else DARK_BLUE
        text = aligned_number(adds, self.largest)
        self._text(x, y, text, 8.3, weight="bold", color=colour, bbox=box, zorder=3)
        if share == share:
            self._text(x, y - 0.28, percent(share), 6.8, color=GREY, zorder=3)

    def _text(self, x: float, y: float, text: str, size: float, **options: Any) -> None:
        options = {"ha": "center", "va": "center", "color": INK} | options
        self.ax.text(x, y, text, fontsize=size * self.scale, **options, **VERBATIM)


def _check_size(forest: Forest, trees: tuple[int, ...]) -> None:
    leaves = sum(
        int(np.count_nonzero(forest.left[slice(*forest.offsets[tree : tree + 2])] < 0))
        for tree in trees
    )
    depth = int(forest.depths[list(trees)].max(initial=0))
    if len(trees) > MAX_TREES or leaves > MAX_LEAVES or depth > MAX_DEPTH:
        raise ValueError(
            f"plot_forest draws at most {MAX_TREES} trees with {MAX_LEAVES} leaves and of depth "
            f"{MAX_DEPTH}, because more cannot be read; got {count(len(trees), 'tree')} with "
            f"{leaves:,} leaves and of depth {depth}. Prune to fewer, such as prune(model, X, y, "
            "max_trees=10, max_nodes=100), or draw the most important ones only, with top=10."
        )


def _draw_constant(ax: "Axes | None", constant: float) -> "Axes":
    ax = open_axes(ax, 5.0, 1.6)
    ax.set_axis_off()
    ax.text(
        0.5,
        0.5,
        f"Prediction = {short_number(constant)}\nNo tree is left: a constant.",
        ha="center",
        va="center",
        fontsize=12,
        color=INK,
        linespacing=1.6,
        transform=ax.transAxes,
    )
    return ax


def _heads(small: Any, forest: Forest, trees: tuple[int, ...]) -> list[str]:
    """Return what stands above each tree: its number in the original, and its weight."""
    numbers: NDArray[Any] = np.arange(forest.n_trees)
    weights = forest.scale
    if isinstance(small, PrunedForest):
        numbers, weights = small.tree_numbers, small.weights[small.tree_numbers]
    # Weights that are all the same say nothing that the leaves do not.
    tell = np.ptp(weights) > 1e-9 * np.abs(weights).max()
    return [
        f"tree {numbers[tree]}" + (f", weight {short_number(weights[tree], 2)}" if tell else "")
        for tree in trees
    ]


def _title(forest: Forest, view: Additive, trees: tuple[int, ...], width: int) -> str:
    used = np.unique(forest.feature[forest.feature >= 0]).size
    size = f"{count(forest.n_trees, 'tree')}, {count(forest.n_nodes, 'node')}, "
    size += f"{used} of {count(forest.n_features, 'feature')}."
    if len(trees) < forest.n_trees:
        size += f" Here the most important {'tree' if len(trees) == 1 else len(trees)}."
    how = f"Prediction = {short_number(view.constant)} + what the trees add. Left if the condition "
    how += "holds; missing values follow the ring." if takes_missing(forest) else "holds."
    return "\n".join(line for part in (size, how) for line in wrap(part, max(width, 20)))


def _inches(ax: "Axes") -> tuple[float, float]:
    # Not get_figure(root=True), which matplotlib has only from 3.10 on.
    figure: Any = ax.figure
    box = ax.get_window_extent().transformed(figure.dpi_scale_trans.inverted())
    return box.width, box.height


def _blend(colour: str, strength: float) -> tuple[float, ...]:
    """Return a colour thinned with white."""
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return tuple(1.0 - strength * (1.0 - part) for part in parts)
