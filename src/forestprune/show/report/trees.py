"""The trees of a small model as shapes to draw: where nodes stand, and what they say."""

from collections import Counter
from typing import Any

import numpy as np

from forestprune.forest.forest import Forest
from forestprune.select.pruned import PrunedForest
from forestprune.show.plotting.layout import Place, place_nodes
from forestprune.show.plotting.look import (
    aligned_number,
    even_lines,
    short_names,
    short_number,
    short_threshold,
    shortened,
)
from forestprune.text.additive import (
    Additive,
    Condition,
    category_labels,
    percent,
    takes_missing,
)
from forestprune.text.names import column_names

MAX_NODES = 1_500
"""Nodes to draw in all, so that the file stays small."""

MAX_LEAVES, MAX_DEPTH = 120, 24
"""What a tree may have to be drawn."""

OPEN_LEAVES = 80
"""Leaves of the trees that are unfolded to begin with."""

SLOT, LAYER, MARGIN = 92, 84, 40
"""Pixels from leaf to leaf, from layer to layer, and around a tree."""

LINE, LETTERS, LONGEST = 14, 36, 200
"""Letters in a line of a split, in the name of its feature, and in what is told of it."""

TINTS = 12
"""Features that have a colour of their own, the commonest."""

MAX_OUTPUTS = 4
"""Outputs whose trees are drawn."""


def drawn_trees(small: PrunedForest) -> dict[str, Any]:
    """Return the trees, the one that matters most first, once for each output."""
    forest = small.forest
    n_outputs = forest.n_outputs
    shown = range(min(n_outputs, MAX_OUTPUTS))
    budget = MAX_NODES // max(len(shown), 1)
    return {
        "outputs": [_of_output(small, output, budget) for output in shown],
        "outputs_not_drawn": n_outputs - len(shown),
        "missing": takes_missing(forest),
    }


def _of_output(small: PrunedForest, output: int, budget: int) -> dict[str, Any]:
    forest = small.forest
    view = Additive.of(forest, output)
    chosen: list[tuple[int, bool]] = []
    too_large, open_leaves = 0, 0
    for tree in view.order:
        start, end = forest.offsets[tree : tree + 2]
        leaves = int(np.count_nonzero(forest.left[start:end] < 0))
        fits = leaves <= MAX_LEAVES and forest.depths[tree] <= MAX_DEPTH
        if not fits or end - start > budget:
            too_large += 1
            continue
        budget -= end - start
        open_leaves += leaves
        chosen.append((tree, not chosen or open_leaves <= OPEN_LEAVES))
    draw = _Drawing(forest, view, [tree for tree, _ in chosen])
    weights = small.weights[small.tree_numbers]
    tell = bool(weights.size) and np.ptp(weights) > 1e-9 * np.abs(weights).max()
    return {
        "constant": short_number(view.constant, 5),
        "not_drawn": too_large,
        "trees": [
            {
                "number": int(small.tree_numbers[tree]),
                "weight": short_number(float(weights[tree]), 3) if tell else None,
                "open": is_open,
                **draw.tree(tree),
            }
            for tree, is_open in chosen
        ],
    }


class _Drawing:
    """Turns trees into shapes, all with the same colours."""

    def __init__(self, forest: Forest, view: Additive, trees: list[int]) -> None:
        self.forest, self.view = forest, view
        nodes = (
            np.concatenate([np.arange(*forest.offsets[tree : tree + 2]) for tree in trees])
            if trees
            else np.empty(0, np.int64)
        )
        features = Counter(int(f) for f in forest.feature[nodes] if f >= 0)
        common = [feature for feature, _ in features.most_common(TINTS)]
        self.tints = {feature: number for number, feature in enumerate(common)}
        self.names = column_names(forest)
        self.short = short_names(forest, features, LETTERS)
        self.largest = float(np.abs(view.contributions[nodes]).max(initial=0.0))
        self.rings = takes_missing(forest)

    def tree(self, tree: int) -> dict[str, Any]:
        root = place_nodes(self.forest, tree)
        places = list(root)
        edges = [
            self._edge(parent, side, child)
            for parent in places
            for side, child in enumerate(parent.children)
        ]
        return {
            "nodes": len(places),
            "leaves_count": root.leaves,
            "depth": root.layers,
            "width": round(2 * MARGIN + SLOT * max(root.leaves - 1, 1)),
            "height": round(2 * MARGIN + LAYER * root.layers),
            "edges": edges,
            "splits": [self._split(place) for place in places if place.children],
            "leaves": [self._leaf(place) for place in places if not place.children],
        }

    def _edge(self, parent: Place, side: int, child: Place) -> dict[str, Any]:
        share = float(self.view.shares[child.node])
        (x1, y1), (x2, y2) = _at(parent), _at(child)
        follows = self.rings and side == 1 - int(self.forest.missing_left[parent.node])
        return {
            "x1": x1,
            "y1": y1,
            "x2": x2,
            "y2": y2,
            "width": 1.5 if share != share else round(1.0 + 5.0 * min(1.0, share), 1),
            "ring": [round(x1 + 0.6 * (x2 - x1)), round(y1 + 0.6 * (y2 - y1))] if follows else None,
        }

    def _split(self, place: Place) -> dict[str, Any]:
        condition = Condition.of(self.forest, place.node)
        lines = [*even_lines(self.short[condition.feature], LINE), *self._met(condition)]
        x, y = _at(place)
        return {
            "x": x,
            "y": y,
            "lines": lines,
            "width": 16 + round(6.4 * max(map(len, lines))),
            "height": 8 + 14 * len(lines),
            "tint": self.tints.get(condition.feature, TINTS),
            "told": f"{shortened(self.names[condition.feature], LONGEST)} {self._told(condition)}",
        }

    def _met(self, condition: Condition) -> list[str]:
        if condition.categories is None:
            return [short_threshold(condition.threshold)]
        labels = ", ".join(str(label) for label in category_labels(self.forest, condition))
        printable = "".join(c if c.isprintable() else " " for c in labels)
        if len(printable) > 2 * LINE:
            return [f"in {len(condition.categories)} categories"]
        return even_lines(f"in {{{printable}}}", LINE + 4)

    def _told(self, condition: Condition) -> str:
        """Return the condition in full, for whoever points at it."""
        if condition.categories is None:
            met = f"≤ {condition.threshold!r}"
        else:
            labels = ", ".join(str(label) for label in category_labels(self.forest, condition))
            met = f"in {{{shortened(labels, LONGEST)}}}"
        return f"{met} or missing" if condition.missing else met

    def _leaf(self, place: Place) -> dict[str, Any]:
        adds, share = (
            float(self.view.contributions[place.node]),
            float(self.view.shares[place.node]),
        )
        x, y = _at(place)
        text = aligned_number(adds, self.largest)
        strength = abs(adds) / self.largest if self.largest > 0 else 0.0
        return {
            "x": x,
            "y": y,
            "text": text,
            "width": 14 + round(7.4 * len(text)),
            "sign": "less" if adds < 0 else "more",
            "strength": round(12 + 38 * strength),
            "share": None if share != share else percent(share),
            "told": f"adds {adds!r}",
        }


def _at(place: Place) -> tuple[int, int]:
    # A tree of one leaf stands in the middle of the room for two.
    shift = 0.5 * SLOT if not place.depth and not place.children else 0.0
    return round(MARGIN + SLOT * place.x + shift), round(MARGIN + LAYER * place.depth)
