"""A forest read as an additive model: a constant, and what each tree adds to it.

Text, formulas, plots and reports all start here, so that they agree.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestprune.forest.category_sets import unpack_categories
from forestprune.forest.cutting import sum_of_roots
from forestprune.forest.forest import Forest
from forestprune.forest.frames import listed


@dataclass(frozen=True, eq=False)
class Additive:
    """A forest, or one output of it, with the values of roots moved into the constants.

    Attributes
    ----------
    constants : float64 array of shape (n_read,)
        What is predicted if no tree adds anything, for each output that is read.
    contributions : float64 array of shape (n_nodes,), or (n_nodes, n_read)
        What its tree adds to a row that ends in a node, weight of the tree included; 0 at roots.
        The latter if trees add to several of the outputs that are read.
    shares : float64 array of shape (n_nodes,)
        Share of the training rows, by weight, that pass a node; NaN if that is not known.
    order : tuple of int
        The trees by importance: how much what they add varies over the training rows. If one output
        is read, only those that add to it.
    outputs : tuple of int
        The outputs that are read.
    """

    constants: NDArray[np.float64]
    contributions: NDArray[np.float64]
    shares: NDArray[np.float64]
    order: tuple[int, ...]
    outputs: tuple[int, ...]

    @property
    def constant(self) -> float:
        """What is predicted if no tree adds anything, where one output is read."""
        return float(self.constants[0])

    @classmethod
    def of(cls, forest: Forest, output: int | None = None) -> "Additive":
        """Read one output of `forest`; None if there is only one, or for all classes at once."""
        whole = output is None and is_read_whole(forest)
        if not whole:
            check_output(forest, output)
        outputs = tuple(range(forest.n_outputs)) if whole else (output or 0,)
        by_tree = bool(forest.tree_output.size)
        columns = [0] if by_tree else list(outputs)
        value = forest.value[:, columns] if forest.n_nodes else np.zeros((0, len(columns)))
        tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.offsets))
        roots = forest.offsets[:-1]
        contributions = forest.scale[tree, np.newaxis] * (value - value[roots][tree])
        total = forest.cover[roots][tree]
        unknown = np.full(forest.n_nodes, np.nan)
        shares = np.divide(forest.cover, total, out=unknown, where=total > 0)
        spread = np.zeros(forest.n_trees)
        squares = (contributions**2).sum(axis=1)
        np.add.at(spread, tree, forest.cover * squares * (forest.left < 0))
        order = np.argsort(-spread, kind="stable")
        if by_tree and not whole:
            order = order[forest.tree_output[order] == outputs[0]]
        constants = forest.base + sum_of_roots(forest, np.ones(forest.n_trees, np.bool_))
        return cls(
            constants[list(outputs)],
            contributions if len(columns) > 1 else contributions[:, 0],
            shares,
            tuple(order.tolist()),
            outputs,
        )


def is_read_whole(forest: Forest) -> bool:
    """Tell whether all outputs of a forest are read together: those of classes are."""
    return forest.n_outputs > 1 and forest.origin is not None and bool(forest.origin.classes)


@dataclass(frozen=True)
class Condition:
    """What a row must meet to go left.

    Attributes
    ----------
    feature : int
    threshold : float
        Rows with ``x <= threshold`` meet it, x as the user has it: if the model rounds x to
        float32 before it compares, the threshold allows for that.
    categories : tuple of int, or None
        The codes that meet it, if the split is categorical; then there is no threshold.
    missing : bool
        Whether a missing value meets it; False if rows have none.
    """

    feature: int
    threshold: float
    categories: tuple[int, ...] | None
    missing: bool

    @classmethod
    def of(cls, forest: Forest, node: int) -> "Condition":
        """Return the condition of a split."""
        categories = None
        if forest.category_set.size and forest.category_set[node] >= 0:
            start, end = forest.set_offsets[forest.category_set[node] :][:2]
            categories = unpack_categories(forest.set_words[start:end])
        threshold = float(forest.threshold[node])
        if forest.input.dtype == "float32":
            threshold = before_rounding(threshold)
        missing = bool(forest.missing_left[node]) and takes_missing(forest)
        return cls(int(forest.feature[node]), threshold, categories, missing)


def before_rounding(threshold: float) -> float:
    """Return the largest x that is at most `threshold` once it is rounded to float32."""
    with np.errstate(over="ignore"):
        below = np.float32(threshold)
        # As float64: numpy would compare a float32 with a number of Python's in float32.
        if float(below) > threshold:
            below = np.nextafter(below, np.float32(-np.inf))
        above = np.nextafter(below, np.float32(np.inf))
        # Beyond the largest float32 rounding goes on as if there were one more.
        low, high = (float(np.clip(float(x), -(2.0**128), 2.0**128)) for x in (below, above))
        middle = (low + high) / 2.0
        rounded = float(np.float32(middle))
    return middle if rounded <= threshold else float(np.nextafter(middle, -np.inf))


def takes_missing(forest: Forest) -> bool:
    """Tell whether rows may have missing values."""
    return forest.input.ensure_all_finite is not True


def category_labels(forest: Forest, condition: Condition) -> list[str | int | float | None]:
    """Return the categories of a condition by name, or by code where the model has no name."""
    labels = forest.input.known_categories.get(condition.feature, ())
    return [labels[c] if c < len(labels) else c for c in condition.categories or ()]


def percent(share: float) -> str:
    """Return a share in per cent; little is not written as nothing."""
    return "<1 %" if 0.0 < share < 0.005 else f"{100 * share:.0f} %"


def check_output(forest: Forest, output: int | None) -> None:
    """Refuse a number of no output, or none where there are several."""
    if output is None and forest.n_outputs > 1:
        classes = () if forest.origin is None else forest.origin.classes
        whose = f", of the classes {listed(classes)}" if is_read_whole(forest) else ""
        raise ValueError(
            f"This forest predicts {forest.n_outputs} outputs{whose}; say which one is meant, with "
            f"output=0 to output={forest.n_outputs - 1}."
        )
    if output is not None and not (
        isinstance(output, int | np.integer) and 0 <= output < forest.n_outputs
    ):
        raise ValueError(
            f"output must be a whole number from 0 to {forest.n_outputs - 1}, got {output!r}."
        )
