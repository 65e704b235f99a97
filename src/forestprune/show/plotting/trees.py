"""A whole small ensemble, drawn tree by tree."""

from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from forestprune.forest.forest import Forest
from forestprune.forest.new_splits import new_splits
from forestprune.options import require_count
from forestprune.show.plotting import look
from forestprune.show.plotting.labels import Labels, sum_in_words, tree_titles
from forestprune.show.plotting.layout import GAP, Place, Rows, place_nodes, row_width
from forestprune.show.plotting.models import one_forest
from forestprune.text.additive import Additive, Condition, takes_missing

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
"""Letters in a line of a split, and in the name of its feature."""

SLOT, LAYER = 0.7, 0.72
"""Inches from leaf to leaf, and from layer to layer."""

ASPECT, ONE_ROW, TITLE = 1.5, 11.0, 6.4
"""About the width over height of a new figure; inches of a single row, and of the title."""

DARK_RED, DARK_BLUE = "#8e3822", "#1f4f74"

EDGE = "#b9b9b9"


def plot_forest(
    small: Any, ax: "Axes | None" = None, *, top: int | None = None, output: int | None = None
) -> "Axes":
    """Draw all trees of a small ensemble side by side, the most important one first.

    Rows go left where the condition of a split holds. A leaf says what is added to the prediction,
    weight of the tree included, and which share of the training rows ends there; lines are as
    thick as the share of rows that follow them. Splits on the same feature have the same colour,
    for the twelve commonest. Where values can be missing, a ring marks the line that they follow.
    Splits that the original does not have, of ``polish="split"``, are framed.

    Parameters
    ----------
    small : PrunedForest, Forest or model
    ax : matplotlib Axes or None
        Where to draw; None makes a figure that is large enough. Letters shrink to fit small axes.
    top : int or None
        Draw only this many trees, the most important: those whose contribution varies most.
    output : int or None
        Which output, counted from 0; needed if there are several, but not for classes: None draws
        the trees of all, each with the name of its class, or with leaves that name the class that
        they raise most.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If there is more than can be read: 30 trees, 240 leaves, or depth 12.
    """
    require_count("top", top, 1)
    forest = one_forest(small, "plot_forest")
    view = Additive.of(forest, output)
    chosen = view.order[:top]
    _check_size(forest, chosen)
    if not chosen:
        return _draw_constant(ax, sum_in_words(forest, view, 4))
    trees = [place_nodes(forest, tree) for tree in chosen]
    if ax is None:
        all_in_one = SLOT * row_width(tuple(trees)) <= ONE_ROW
        rows = Rows((tuple(trees),)) if all_in_one else Rows.of(trees, ASPECT * LAYER / SLOT)
        width = max(rows.width, TITLE / SLOT)
        inches = SLOT * width
        ax, scale = look.open_axes(None, inches, LAYER * rows.height + 0.7), 1.0
    else:
        inches, high = _inches(ax)
        rows = Rows.of(trees, inches / high * LAYER / SLOT)
        width = rows.width
        scale = min(1.0, inches / (SLOT * width), high / (LAYER * rows.height))
    ax.set_axis_off()
    ax.set_xlim(-GAP / 2 - 0.5, width - GAP / 2 - 0.5)
    ax.set_ylim(0.8 - rows.height, 0.8)
    titles = tree_titles(small, view, forest, digits=2)
    title_of = {place: titles[tree] for place, tree in zip(trees, chosen, strict=True)}
    pen = _Pen(ax, Labels(forest, view, chosen, len(TINTS), LETTERS), scale)
    top_of_row = 0.0
    for row, height in zip(rows.trees, rows.heights, strict=True):
        # Trees are spread out evenly, so that no row looks as if something were missing.
        room = (width - row_width(row)) / len(row)
        left = room / 2
        for tree in row:
            pen.draw(tree, title_of[tree], left, top_of_row)
            left += tree.leaves + GAP + room
        top_of_row -= height
    title = _title(forest, view, chosen, int(11.5 * inches))
    style: dict[str, Any] = {"color": look.INK, "fontsize": 10, "linespacing": 1.5}
    ax.set_title(title, loc="left", **style, **look.VERBATIM)
    return ax


class _Pen:
    """Draws one tree after another, all in the same colours and sizes."""

    def __init__(self, ax: "Axes", labels: Labels, scale: float) -> None:
        self.ax, self.labels, self.scale = ax, labels, scale
        self.new = new_splits(labels.forest)

    def draw(self, tree: Place, title: str, left: float, top: float) -> None:
        self._text(left + tree.x, top + 0.6, title, 7.5, color=look.GREY)
        for place in tree:
            x, y = left + place.x, top - place.depth
            for side, child in enumerate(place.children):
                end = left + child.x, top - child.depth
                self._edge((x, y), end, child.node, self.labels.has_ring(place.node, side))
            if place.children:
                self._split(x, y, place.node)
            else:
                self._leaf(x, y, place.node)

    def _edge(self, a: tuple[float, float], b: tuple[float, float], node: int, ring: bool) -> None:
        share = self.labels.view.shares[node]
        width = 1.0 if np.isnan(share) else 0.6 + 3.4 * min(1.0, share)
        style: dict[str, Any] = {"color": EDGE, "solid_capstyle": "round", "zorder": 1}
        self.ax.plot([a[0], b[0]], [a[1], b[1]], lw=width * self.scale, **style)
        if ring:
            x, y = (start + 0.55 * (end - start) for start, end in zip(a, b, strict=True))
            style = {"marker": "o", "mfc": "white", "mec": look.GREY, "zorder": 2}
            self.ax.plot([x], [y], ms=4.2 * self.scale, mew=0.9 * self.scale, **style)

    def _split(self, x: float, y: float, node: int) -> None:
        condition = Condition.of(self.labels.forest, node)
        name = self.labels.names[condition.feature]
        lines = [*look.even_lines(name, LINE), self._met(condition)]
        number = self.labels.tints.get(condition.feature)
        tint = REST if number is None else TINTS[number]
        box = {"boxstyle": "round,pad=0.3", "lw": 0, "fc": tint}
        if self.new[node]:
            box |= {"lw": 1.4 * self.scale, "ec": look.INK}
        self._text(x, y, "\n".join(lines), 7.8, bbox=box, linespacing=1.15, zorder=3)

    def _met(self, condition: Condition) -> str:
        if condition.categories is None:
            return look.short_threshold(condition.threshold)
        labels = self.labels.categories(condition)
        text = ", ".join(labels)
        while len(text) > 2 * LINE - 4 and len(labels) > 1:
            labels.pop()
            text = ", ".join(labels) + f", {look.ELLIPSIS} ({len(condition.categories)} in all)"
        return "\n".join(look.even_lines(f"in {{{text}}}", LINE + 4))

    def _leaf(self, x: float, y: float, node: int) -> None:
        leaf = self.labels.leaf(node)
        base, colour = (look.RED, DARK_RED) if leaf.added < 0 else (look.BLUE, DARK_BLUE)
        tint = _blend(base, 0.06 + 0.3 * leaf.strength)
        box = {"boxstyle": "round,pad=0.28", "lw": 0, "fc": tint}
        style: dict[str, Any] = {"weight": "bold", "color": colour, "bbox": box, "zorder": 3}
        self._text(x, y, "\n".join(leaf.lines), 8.3, linespacing=1.1, **style)
        if leaf.share is not None:
            below = y - 0.18 - 0.1 * len(leaf.lines)
            self._text(x, below, leaf.share, 6.8, color=look.GREY, zorder=3)

    def _text(self, x: float, y: float, text: str, size: float, **options: Any) -> None:
        options = {"ha": "center", "va": "center", "color": look.INK} | options
        self.ax.text(x, y, text, fontsize=size * self.scale, **options, **look.VERBATIM)


def _check_size(forest: Forest, trees: tuple[int, ...]) -> None:
    leaves = sum(
        int(np.count_nonzero(forest.left[slice(*forest.offsets[tree : tree + 2])] < 0))
        for tree in trees
    )
    depth = int(forest.depths[list(trees)].max(initial=0))
    if len(trees) > MAX_TREES or leaves > MAX_LEAVES or depth > MAX_DEPTH:
        raise ValueError(
            f"plot_forest draws at most {MAX_TREES} trees with {MAX_LEAVES} leaves and of depth "
            f"{MAX_DEPTH}, because more cannot be read; got {look.count(len(trees), 'tree')} with "
            f"{leaves:,} leaves and of depth {depth}. Prune to fewer, such as prune(model, X, y, "
            "max_trees=10, max_nodes=100), or draw the most important ones only, with top=10."
        )


def _draw_constant(ax: "Axes | None", constant: str) -> "Axes":
    ax = look.open_axes(ax, 5.0, 1.6)
    ax.set_axis_off()
    text = "\n".join([*wrap(constant, 50), "No tree is left: a constant."])
    place: dict[str, Any] = {"ha": "center", "va": "center", "transform": ax.transAxes}
    ax.text(0.5, 0.5, text, fontsize=12, color=look.INK, linespacing=1.6, **place, **look.VERBATIM)
    return ax


def _title(forest: Forest, view: Additive, trees: tuple[int, ...], width: int) -> str:
    used = np.unique(forest.feature[forest.feature >= 0]).size
    size = f"{look.count(forest.n_trees, 'tree')}, {look.count(forest.n_nodes, 'node')}, "
    size += f"{used} of {look.count(forest.n_features, 'feature')}."
    new = int(np.count_nonzero(new_splits(forest)))
    if new:
        n_splits = int(np.count_nonzero(forest.left >= 0))
        size += f" {new:,} of {look.count(n_splits, 'split')} new, not the original's: framed."
    if len(trees) < forest.n_trees:
        size += f" Shown: the {'' if len(trees) == 1 else f'{len(trees)} '}most important."
    how = f"{sum_in_words(forest, view, 4)} + what the trees add. "
    if view.contributions.ndim > 1:
        how += "A leaf names the class that it raises most. "
    how += "Left if the condition holds"
    how += "; missing values follow the ring." if takes_missing(forest) else "."
    return "\n".join(line for part in (size, how) for line in wrap(part, max(width, 20)))


def _inches(ax: "Axes") -> tuple[float, float]:
    # Not get_figure(root=True), which matplotlib has only from 3.10 on.
    figure: Any = ax.figure
    box = ax.get_window_extent().transformed(figure.dpi_scale_trans.inverted())
    return box.width, box.height


def _blend(colour: str, strength: float) -> tuple[float, ...]:
    """Return a colour mixed with white."""
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return tuple(1.0 - strength * (1.0 - part) for part in parts)
