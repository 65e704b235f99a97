"""The trees of a small model as shapes to draw: where nodes stand, and what they say."""

from typing import Any

import numpy as np

from forestprune.forest.new_splits import new_splits
from forestprune.select.pruned import PrunedForest
from forestprune.show.plotting.labels import Labels, sum_in_words, tree_titles
from forestprune.show.plotting.layout import Place, place_nodes
from forestprune.show.plotting.look import even_lines, short_threshold, shortened
from forestprune.text.additive import (
    Additive,
    Condition,
    category_labels,
    is_read_whole,
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
"""Letters in a line of a split, in the name of its feature, and in its full text."""

TINTS = 12
"""Features that have a colour of their own, the commonest."""

MAX_OUTPUTS = 4
"""Outputs whose trees are drawn."""


def drawn_trees(small: PrunedForest) -> dict[str, Any]:
    """Return the trees, the most important one first: of all classes, or once for each output."""
    n_outputs = 1 if is_read_whole(small.forest) else small.forest.n_outputs
    shown = [None] if n_outputs == 1 else list(range(min(n_outputs, MAX_OUTPUTS)))
    return {
        "outputs": [_of_output(small, output, MAX_NODES // len(shown)) for output in shown],
        "outputs_not_drawn": n_outputs - len(shown),
        "missing": takes_missing(small.forest),
        "splits": small.n_splits,
        "new_splits": small.n_new_splits,
    }


def _of_output(small: PrunedForest, output: int | None, max_nodes: int) -> dict[str, Any]:
    forest = small.forest
    view = Additive.of(forest, output)
    chosen: dict[int, bool] = {}  # whether the tree is unfolded
    open_leaves = 0
    for tree in view.order:
        start, end = forest.offsets[tree : tree + 2]
        leaves = int(np.count_nonzero(forest.left[start:end] < 0))
        fits = leaves <= MAX_LEAVES and forest.depths[tree] <= MAX_DEPTH
        if fits and end - start <= max_nodes:
            max_nodes -= end - start
            open_leaves += leaves
            chosen[tree] = not chosen or open_leaves <= OPEN_LEAVES
    draw = _Drawing(Labels(forest, view, list(chosen), TINTS, LETTERS))
    titles = tree_titles(small, view, forest, digits=3)
    several = len(view.outputs) > 1
    return {
        "sum": sum_in_words(forest, view, 5),
        "by_class": several and forest.tree_output.size > 0,
        "names_class": several and not forest.tree_output.size,
        "not_drawn": len(view.order) - len(chosen),
        "trees": [
            {"title": titles[tree], "open": is_open, **draw.tree(tree)}
            for tree, is_open in chosen.items()
        ],
    }


class _Drawing:
    """Turns trees into shapes, all with the same colours."""

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        self.names = column_names(labels.forest)
        self.new = new_splits(labels.forest)

    def tree(self, tree: int) -> dict[str, Any]:
        root = place_nodes(self.labels.forest, tree)
        places = list(root)
        return {
            "leaves_count": root.leaves,
            "depth": root.layers,
            "width": round(2 * MARGIN + SLOT * max(root.leaves - 1, 1)),
            "height": round(2 * MARGIN + LAYER * root.layers),
            "edges": [
                self._edge(parent, side, child)
                for parent in places
                for side, child in enumerate(parent.children)
            ],
            # A node before those below it, the left side before the right: readers rely on that.
            "nodes": [self._node(place) for place in places],
        }

    def _edge(self, parent: Place, side: int, child: Place) -> dict[str, Any]:
        share = float(self.labels.view.shares[child.node])
        (x1, y1), (x2, y2) = _at(parent), _at(child)
        ring = [round(x1 + 0.6 * (x2 - x1)), round(y1 + 0.6 * (y2 - y1))]
        return {
            "x1": x1,
            "y1": y1,
            "x2": x2,
            "y2": y2,
            "width": 1.5 if np.isnan(share) else round(1.0 + 5.0 * min(1.0, share), 1),
            "ring": ring if self.labels.has_ring(parent.node, side) else None,
        }

    def _node(self, place: Place) -> dict[str, Any]:
        x, y = _at(place)
        said = self._split(place) if place.children else self._leaf(place)
        return {"x": x, "y": y, "level": place.depth + 1, "leaf": not place.children, **said}

    def _split(self, place: Place) -> dict[str, Any]:
        condition = Condition.of(self.labels.forest, place.node)
        feature = condition.feature
        lines = [*even_lines(self.labels.names[feature], LINE), *self._met(condition)]
        return {
            "lines": lines,
            "width": 16 + round(6.4 * max(map(len, lines))),
            "height": 8 + 14 * len(lines),
            "tint": self.labels.tints.get(feature, TINTS),
            "new": bool(self.new[place.node]),
            "full": f"{shortened(self.names[feature], LONGEST)} {self._in_full(condition)}"
            f"{' (new split)' if self.new[place.node] else ''}",
        }

    def _met(self, condition: Condition) -> list[str]:
        if condition.categories is None:
            return [short_threshold(condition.threshold)]
        labels = ", ".join(self.labels.categories(condition))
        if len(labels) > 2 * LINE:
            return [f"in {len(condition.categories)} categories"]
        return even_lines(f"in {{{labels}}}", LINE + 4)

    def _in_full(self, condition: Condition) -> str:
        """Return the condition that is shown when one points at the split."""
        if condition.categories is None:
            met = f"≤ {condition.threshold!r}"
        else:
            labels = map(str, category_labels(self.labels.forest, condition))
            met = f"in {{{shortened(', '.join(labels), LONGEST)}}}"
        return f"{met} or missing" if condition.missing else met

    def _leaf(self, place: Place) -> dict[str, Any]:
        leaf = self.labels.leaf(place.node)
        share = "" if leaf.share is None else f"; {leaf.share} of the training rows end here"
        return {
            "lines": leaf.lines,
            "width": 14 + round(7.4 * max(map(len, leaf.lines))),
            "height": 8 + 14 * len(leaf.lines),
            "sign": "less" if leaf.added < 0 else "more",
            "strength": round(12 + 38 * leaf.strength),
            "share": leaf.share,
            "full": f"{leaf.full}{share}",
        }


def _at(place: Place) -> tuple[int, int]:
    # A tree of one leaf is in the middle of the space for two.
    shift = 0.5 * SLOT if not place.depth and not place.children else 0.0
    return round(MARGIN + SLOT * place.x + shift), round(MARGIN + LAYER * place.depth)
