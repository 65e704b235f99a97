"""A forest in words: a constant plus what each tree adds."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from forestprune.forest.forest import Forest
from forestprune.forest.new_splits import new_splits
from forestprune.options import require_count
from forestprune.text.additive import Additive, Condition, category_labels, percent, takes_missing
from forestprune.text.meaning import capitalised, meaning
from forestprune.text.names import spoken_names
from forestprune.text.rounding import Rounding

NEW = "[new]"
"""What is behind the condition of a split that the original model does not have."""


def to_text(
    forest: Forest,
    *,
    digits: int | None = 4,
    output: int | None = None,
    numbers: Sequence[int] | NDArray[np.int64] | None = None,
) -> str:
    """Return a forest in words, the most important tree first.

    Names that are not plain words are quoted as Python quotes strings, and names that occur twice
    are followed by the number of their column, so no two features read alike.

    Parameters
    ----------
    forest : Forest
    digits : int or None
        To how many digits numbers are rounded; whole numbers are not rounded further, and
        thresholds of a feature only as far as they stay different. None writes them exactly.
    output : int or None
        Which output, if there are several; None for all classes of a classifier.
    numbers : sequence of int, or None
        The numbers of the trees; by default their places in the forest.
    """
    require_count("digits", digits, 1)
    words = _Words(forest, Additive.of(forest, output), Rounding(forest, digits))
    lines = words.opening()
    for tree in words.view.order:
        number = tree if numbers is None else numbers[tree]
        lines += ["", f"Tree {number}{words.adds_to(tree)}", *words.tree(tree)]
    return "\n".join(lines)


class _Words:
    def __init__(self, forest: Forest, view: Additive, rounding: Rounding) -> None:
        self.forest, self.view, self.rounding = forest, view, rounding
        self.names, self.meaning = spoken_names(forest), meaning(forest.origin)
        self.missing_sentence, self.missing_meets = _missing_rule(forest)
        new, is_split = new_splits(forest), forest.left >= 0
        self.only_new = bool(new.any()) and bool(new[is_split].all())
        self.marked = new & (not self.only_new)

    def opening(self) -> list[str]:
        predicted = [f"{self.meaning.prediction}."] if self.meaning.prediction else []
        if not self.view.order:
            [*first, last] = [*self._sums(), *predicted]
            return [*first, f"{last.rstrip('.')}. No tree is left."]
        notes = f"In brackets: share of the training rows.{self.rounding.in_words}"
        return [*self._sums(), *predicted, notes, *self.missing_sentence, *self._about_new()]

    def _about_new(self) -> list[str]:
        """Return what there is to say of splits that are not those of the original model."""
        if self.only_new:
            return ["All splits are new: the original model has none of them."]
        if self.marked.any():
            return [f'Splits that say "{NEW}" are new: the original model does not have them.']
        return []

    def _sums(self) -> list[str]:
        """Return what is added up: on one line, or on one for each of several classes."""
        view, own = self.view, self.forest.tree_output
        constants = [self.rounding.plain(float(constant)) for constant in view.constants]
        if len(constants) == 1:
            total = self.meaning.of_output(view.outputs[0])
            what = "Prediction" if total == "y" else capitalised(total)
            return [f"{what} = {constants[0]}{_added_by(len(view.order))}."]
        lines = [f"{capitalised(self.meaning.total)}:"]
        for output, constant in zip(view.outputs, constants, strict=True):
            count = int(np.count_nonzero(own == output)) if own.size else len(view.order)
            lines.append(f"  {self.meaning.named(output)} = {constant}{_added_by(count)}")
        return lines

    def adds_to(self, tree: int) -> str:
        """Return to which class a tree adds, if there are several that have trees of their own."""
        if len(self.view.outputs) == 1 or not self.forest.tree_output.size:
            return ""
        return f", for {self.meaning.named(int(self.forest.tree_output[tree]))}"

    def tree(self, tree: int) -> list[str]:
        start, left_child = int(self.forest.offsets[tree]), self.forest.left
        lines = []
        # Trees can be deeper than Python's stack, so nodes still to come are on a stack of our own.
        waiting: list[tuple[str, int, int]] = [("", start, 1)]
        while waiting:
            lead, node, depth = waiting.pop()
            indent = "  " * depth
            if left_child[node] < 0:
                lines.append(indent + f"{lead} {self._leaf(node)}".lstrip())
                continue
            if lead:
                lines.append(indent + lead)
                indent, depth = indent + "  ", depth + 1
            left = start + int(left_child[node])
            condition = self._condition(node)
            short = self.view.contributions.ndim == 1
            if short and left_child[left] < 0 and left_child[left + 1] < 0:
                leaves = self._leaf(left), self._leaf(left + 1)
                lines.append(f"{indent}{leaves[0]} if {condition}, else {leaves[1]}")
            else:
                waiting += [("else:", left + 1, depth), (f"if {condition}:", left, depth)]
        return lines

    def _leaf(self, node: int) -> str:
        added, share = self.view.contributions[node], self.view.shares[node]
        if added.ndim == 0:
            text = self.rounding.signed(float(added))
        else:
            signed = [self.rounding.signed(float(each)) for each in added]
            told = zip(self.view.outputs, signed, strict=True)
            text = ", ".join(f"{self.meaning.named(o)} {x}" for o, x in told if x != "+0")
        return text if np.isnan(share) else f"{text or 'nothing'} ({percent(share)})"

    def _condition(self, node: int) -> str:
        condition = Condition.of(self.forest, node)
        text = self.names[condition.feature]
        if condition.categories is None:
            text = " ".join([text, *self.rounding.threshold(condition)])
        else:
            labels = ", ".join(repr(label) for label in category_labels(self.forest, condition))
            text = f"{text} in {{{labels}}}"
        if condition.missing != self.missing_meets[node]:
            text = f"{text} {_exception(not condition.missing)}"
        return f"{text} {NEW}" if self.marked[node] else text


def _added_by(trees: int) -> str:
    """Return what stands behind a constant to which some trees add."""
    if not trees:
        return ""
    return f" + what {'one tree' if trees == 1 else f'each of {trees:,} trees'} adds"


def _missing_rule(forest: Forest) -> tuple[list[str], NDArray[np.bool_]]:
    """Return where missing values go, and for each split whether they meet its condition by that.

    Libraries note for each split where a missing value would go, even if they never saw one, by
    rules of their own. The rule with the fewest exceptions is put into words, none if there are no
    missing values; exceptions are marked in their conditions.
    """
    never = np.zeros(forest.n_nodes, dtype=np.bool_)
    splits = np.flatnonzero(forest.left >= 0)
    if not splits.size or not takes_missing(forest):
        return [], never
    goes_left = forest.missing_left[splits]
    left = forest.offsets[np.searchsorted(forest.offsets, splits, "right") - 1]
    left += forest.left[splits]
    more = forest.cover[left] - forest.cover[left + 1]
    larger = never.copy()
    larger[splits] = np.where(more == 0.0, ~goes_left, more > 0.0)  # a tie is an exception
    rules = {
        'to "else"': never,
        "where the condition is met": ~never,
        "the way of more training rows": larger,
    }
    where = min(rules, key=lambda rule: np.count_nonzero(rules[rule][splits] != goes_left))
    meets = rules[where]
    exceptions = splits[meets[splits] != goes_left]
    words = dict.fromkeys(f'"{_exception(bool(meets[node]))}"' for node in exceptions)
    unless = f", unless the condition says {' or '.join(words)}" if words else ""
    return [f"A missing value goes {where}{unless}."], meets


def _exception(meets: bool) -> str:
    """Return what follows a condition that is an exception, if a missing value meets the rule."""
    return "and not missing" if meets else "or missing"
