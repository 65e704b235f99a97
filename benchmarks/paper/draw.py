"""Draw a few small trees side by side: a condition at each split, what is added at each leaf."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
import style

import forestprune as fp

TINTS = (
    "#f6d8a8", "#bcd7e8", "#cfe3b8", "#e9c3c3", "#d8cbe6", "#f2e59b",
    "#b9ddd5", "#e6c9a8", "#c9cfe8", "#dfe0c0", "#f3cfe0", "#c2e0c6",
)  # fmt: skip
"""Backgrounds of splits, the commonest features first; features beyond are grey."""

REST = "#e4e4e4"
SLOTS = 16
"""Leaves side by side, about."""

LINE = 17
"""Letters in a line, at most."""

GAP = 0.7
SLOT, LAYER = 0.98, 0.82
"""Inches from leaf to leaf, and from layer to layer."""


@dataclass(frozen=True)
class Place:
    """A node of a tree on paper: where it stands, in leaves and layers, and its children."""

    node: int
    x: float
    depth: int
    children: tuple["Place", ...] = ()

    def __iter__(self) -> Iterator["Place"]:
        yield self
        for child in self.children:
            yield from child

    @property
    def leaves(self) -> int:
        return sum(not place.children for place in self)

    @property
    def layers(self) -> int:
        return max(place.depth for place in self)


def contributions(forest: fp.Forest) -> tuple[float, np.ndarray]:
    """Return a constant, and what each node adds to it if a row ends there.

    Roots add nothing: what they stand for is in the constant.
    """
    trees = np.repeat(np.arange(forest.n_trees), np.diff(forest.offsets))
    value = forest.value[:, 0]
    roots = value[forest.offsets[:-1]]
    constant = float(forest.base[0] + forest.scale @ roots)
    return constant, forest.scale[trees] * (value - roots[trees])


def by_importance(forest: fp.Forest) -> list[int]:
    """Return the trees, first the one whose contributions vary most over the training rows."""
    _, adds = contributions(forest)
    spread = forest.cover * adds**2 * (forest.left < 0)
    return [int(tree) for tree in np.argsort(-np.add.reduceat(spread, forest.offsets[:-1]))]


def draw_trees(forest: fp.Forest, title: str, file: Path) -> None:
    """Draw all trees of a forest, the most important first, and save the picture."""
    _, adds = contributions(forest)
    rows = _rows([_place(forest, tree) for tree in by_importance(forest)])
    heights = [max(tree.layers for tree in row) + 1.35 for row in rows]
    width = max(sum(tree.leaves + GAP for tree in row) for row in rows)
    fig = style.figure(SLOT * width, LAYER * sum(heights) + 0.9)
    axis = fig.add_subplot()
    axis.set_axis_off()
    axis.set_xlim(-0.6, width - 0.6)
    axis.set_ylim(-sum(heights) + 0.95, 0.7)
    colours = _colours(forest)
    number, top = 0, 0.0
    for row, height in zip(rows, heights, strict=True):
        used = sum(tree.leaves + GAP for tree in row)
        left = 0.0
        # Rows are spread out evenly, so that none looks as if something were missing.
        room = (width - used) / max(len(row), 1)
        for tree in row:
            number += 1
            _draw_tree(axis, forest, adds, colours, tree, (left + room / 2, top), number)
            left += tree.leaves + GAP + room
        top -= height
    axis.set_title(
        title + "\nLeft if the condition holds; leaves say what is added.",
        loc="left",
        fontsize=12,
        color=style.INK,
        linespacing=1.5,
    )
    style.save(fig, file)


def _place(forest: fp.Forest, tree: int) -> Place:
    start, taken = int(forest.offsets[tree]), 0

    def put(local: int, depth: int) -> Place:
        nonlocal taken
        left = int(forest.left[start + local])
        if left < 0:
            taken += 1
            return Place(start + local, taken - 1.0, depth)
        children = (put(left, depth + 1), put(left + 1, depth + 1))
        return Place(start + local, sum(c.x for c in children) / 2, depth, children)

    return put(0, 0)


def _rows(trees: list[Place]) -> list[list[Place]]:
    """Fill rows with trees, in their order, all about as wide."""
    widths = [tree.leaves + GAP for tree in trees]
    count = math.ceil(sum(widths) / SLOTS)
    rows: list[list[Place]] = [[]]
    for tree, end in zip(trees, np.cumsum(widths), strict=True):
        # A tree stands in the row that has its middle.
        if rows[-1] and end - (tree.leaves + GAP) / 2 > len(rows) * sum(widths) / count:
            rows.append([])
        rows[-1].append(tree)
    return rows


def _colours(forest: fp.Forest) -> dict[int, str]:
    common = Counter(int(f) for f in forest.feature if f >= 0).most_common(len(TINTS))
    return {feature: tint for (feature, _), tint in zip(common, TINTS, strict=False)}


def _draw_tree(
    axis: Any,
    forest: fp.Forest,
    adds: np.ndarray,
    colours: dict[int, str],
    tree: Place,
    at: tuple[float, float],
    number: int,
) -> None:
    left, top = at
    for place in tree:
        x, y = left + place.x, top - place.depth
        for child in place.children:
            axis.plot([x, left + child.x], [y, y - 1], color="#b5b5b5", lw=1, zorder=1)
        if place.children:
            box = {"boxstyle": "round,pad=0.3", "lw": 0, "zorder": 2}
            box["fc"] = colours.get(int(forest.feature[place.node]), REST)
            axis.text(
                x, y, condition(forest, place.node), ha="center", va="center", fontsize=8.5,
                color=style.INK, bbox=box, linespacing=1.15,
            )  # fmt: skip
        else:
            axis.text(
                x, y, f"{adds[place.node]:+.2g}", ha="center", va="center", fontsize=10,
                weight="bold", color=style.RED if adds[place.node] < 0 else style.BLUE,
                bbox={"boxstyle": "round,pad=0.25", "fc": "white", "ec": "#d0d0d0", "lw": 0.8},
            )  # fmt: skip
    axis.text(
        left + tree.x, top + 0.42, f"tree {number}", ha="center", fontsize=9, color=style.GREY
    )


def condition(forest: fp.Forest, node: int) -> str:
    """Return the condition of a split on a few short lines."""
    name = _name(forest, int(forest.feature[node])).replace("_", " ")
    threshold = float(forest.threshold[node])
    shown = f"{threshold:,.0f}" if abs(threshold) >= 1000 else f"{threshold:.3g}"
    return "\n".join([*_even_lines(name), f"≤ {shown}"])


def _even_lines(text: str) -> list[str]:
    """Break a text into lines as long as each other, about, so that no word stands alone."""
    lines = wrap(text, LINE)
    narrower = (wrap(text, width) for width in range(1, LINE))
    return next((other for other in narrower if len(other) == len(lines)), lines)


def _name(forest: fp.Forest, feature: int) -> str:
    names = forest.feature_names
    return f"x{feature}" if names is None else names[feature]
