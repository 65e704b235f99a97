"""What drawn trees say, the same in plots and reports."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from forestprune.forest.forest import Forest
from forestprune.select.pruned import PrunedForest
from forestprune.show.plotting.look import (
    aligned_number,
    printable,
    short_names,
    short_number,
    shortened,
)
from forestprune.text.additive import Additive, Condition, category_labels, percent, takes_missing
from forestprune.text.meaning import capitalised, meaning

NAME = 11
"""Letters of the name of a class in a leaf."""

CLASSES = 10
"""Classes that are listed, those of a leaf with what changes most."""


@dataclass(frozen=True)
class Leaf:
    """What a leaf adds, shortly and in full, relative to the largest, and its share of the rows.

    If a leaf adds to several classes, it shortly says which it raises most.
    """

    added: float
    lines: tuple[str, ...]
    full: str
    strength: float
    share: str | None


class Labels:
    """What the trees of one picture share, and what their nodes say.

    Attributes
    ----------
    forest : Forest
    view : Additive
    tints : dict of int to int
        Numbers of colours for the commonest features.
    names : dict of int to str
        Short names of the features that are used.
    """

    def __init__(
        self, forest: Forest, view: Additive, trees: Sequence[int], n_tints: int, letters: int
    ) -> None:
        self.forest, self.view = forest, view
        drawn = [np.arange(*forest.offsets[tree : tree + 2]) for tree in trees]
        nodes = np.concatenate([np.empty(0, np.int64), *drawn])
        features = Counter(int(f) for f in forest.feature[nodes] if f >= 0)
        common = features.most_common(n_tints)
        self.tints = {feature: number for number, (feature, _) in enumerate(common)}
        self.names = short_names(forest, features, letters)
        self._largest = float(np.abs(view.contributions[nodes]).max(initial=0.0))
        self._rings, self._meaning = takes_missing(forest), meaning(forest.origin)

    def has_ring(self, node: int, side: int) -> bool:
        """Tell whether missing values go to this side of a split: 0 is left, 1 right."""
        return self._rings and side == 1 - int(self.forest.missing_left[node])

    def categories(self, condition: Condition) -> list[str]:
        """Return the categories of a condition, such that each can be printed."""
        return [printable(str(label)) for label in category_labels(self.forest, condition)]

    def leaf(self, node: int) -> Leaf:
        """Return what a leaf says."""
        values, share = np.atleast_1d(self.view.contributions[node]), self.view.shares[node]
        raised = int(np.argmax(values))
        added = float(values[raised])
        lines: tuple[str, ...] = (aligned_number(added, self._largest),)
        full = f"adds {added!r}"
        if values.size > 1:
            names = [self._meaning.named(output) for output in self.view.outputs]
            each = [aligned_number(float(value), self._largest) for value in values]
            lines = shortened(printable(names[raised]), NAME), *lines
            most = np.sort(np.argsort(-np.abs(values), kind="stable")[:CLASSES])
            full = _listed([names[k] for k in most], [each[k] for k in most], values.size)
        return Leaf(
            added,
            lines,
            full,
            abs(added) / self._largest if self._largest > 0 else 0.0,
            None if np.isnan(share) else percent(float(share)),
        )


def tree_titles(small: Any, view: Additive, forest: Forest, digits: int) -> list[str]:
    """Return for each tree its number in the original, and its weight if weights differ.

    And the class that it adds to, if several are read that have trees of their own.
    """
    numbers, weights = np.arange(forest.n_trees), forest.scale
    if isinstance(small, PrunedForest):
        numbers, weights = small.tree_numbers, small.weights[small.tree_numbers]
    titles = [f"tree {number}" for number in numbers]
    # Weights that are all the same say nothing that the leaves do not.
    if weights.size and np.ptp(weights) > 1e-9 * np.abs(weights).max():
        told = [f", weight {short_number(weight, digits)}" for weight in weights]
        titles = [title + weight for title, weight in zip(titles, told, strict=True)]
    if len(view.outputs) > 1 and forest.tree_output.size:
        names = map(meaning(forest.origin).named, forest.tree_output.tolist())
        short = [f", for {shortened(printable(name), 3 * NAME)}" for name in names]
        titles = [title + name for title, name in zip(titles, short, strict=True)]
    return titles


def sum_in_words(forest: Forest, view: Additive, digits: int) -> str:
    """Return what is added up, such as "Prediction = 0.3", up to what trees add."""
    stands_for = meaning(forest.origin)
    constants = [short_number(float(constant), digits) for constant in view.constants]
    if len(constants) == 1:
        total = stands_for.of_output(view.outputs[0])
        return f"{'Prediction' if total == 'y' else capitalised(total)} = {constants[0]}"
    names = [f"{stands_for.named(output)}:" for output in view.outputs]
    told = _listed(names[:CLASSES], constants[:CLASSES], len(names))
    return f"{capitalised(stands_for.total)} = ({told})"


def _listed(names: list[str], numbers: list[str], count: int) -> str:
    """Return what some of `count` classes have."""
    told = ", ".join(f"{name} {x}" for name, x in zip(names, numbers, strict=True))
    return told if count == len(names) else f"{told} and {count - len(names):,} others"
