"""A forest as a Python expression: a constant plus what each tree adds."""

import textwrap

import numpy as np

from forestprune.forest.forest import Forest
from forestprune.forest.new_splits import new_splits
from forestprune.options import require_count
from forestprune.text.additive import Additive, Condition, check_output
from forestprune.text.meaning import capitalised, meaning
from forestprune.text.names import column_names, identifiers
from forestprune.text.rounding import Rounding

WIDTH = 88
"""Letters in a line of a formula, if it can be broken."""

MAX_TREES, MAX_DEPTH = 1000, 80
"""What Python's own parser is sure to accept in one expression."""

_OPPOSITE = {"<": ">=", "<=": ">"}


def to_formula(forest: Forest, *, digits: int | None = None, output: int | None = None) -> str:
    """Return a forest as a Python expression of its features.

    See :meth:`forestprune.PrunedForest.to_formula`. The names in it are :func:`identifiers`;
    comments explain those that are not the names of features, and codes of categories.
    """
    require_count("digits", digits, 1)
    if forest.n_trees > MAX_TREES or forest.max_depth > MAX_DEPTH:
        raise ValueError(
            f"A formula can have {MAX_TREES:,} trees of depth {MAX_DEPTH}, but this forest has "
            f"{forest.n_trees:,} of depth {forest.max_depth}. Prune it with max_trees= or "
            "max_depth=, or call predict()."
        )
    check_output(forest, output)
    view = Additive.of(forest, output or 0)
    formula = _Formula(forest, view, Rounding(forest, digits))
    constant = formula.rounding.plain(view.constant)
    if not view.order:
        return constant
    what = meaning(forest.origin).of_output(output or 0)
    said = [] if what == "y" else comment(capitalised(what), indent=4)
    n_new = int(np.count_nonzero(new_splits(forest)))
    if n_new:
        n_splits = int(np.count_nonzero(forest.left >= 0))
        words = f"{n_new:,} of {n_splits:,} splits are new: the original model does not have them"
        said += comment(words, indent=4)
    lines = ["(", *said, *formula.renamed(), *formula.categories(), f"    {constant}"]
    for tree in view.order:
        root = int(forest.offsets[tree])
        lines.append(f"    + {formula.expression(root, root, 4)}")
    return "\n".join([*lines, ")"])


def comment(text: str, indent: int = 0) -> list[str]:
    """Return a text as lines of comments, in which no word or name is broken."""
    start = " " * indent + "# "
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=start,
        subsequent_indent=start + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


class _Formula:
    def __init__(self, forest: Forest, view: Additive, rounding: Rounding) -> None:
        self.forest, self.view, self.rounding = forest, view, rounding
        self.names = identifiers(forest)

    def renamed(self) -> list[str]:
        """Return comments on features whose names are not identifiers."""
        original = column_names(self.forest)
        used = np.unique(self.forest.feature[self.forest.left >= 0])
        pairs = [(self.names[column], original[column]) for column in used]
        # Quoted as Python does, a name cannot end its line.
        return [f"    # {name}: {trained!r}" for name, trained in pairs if name != trained]

    def categories(self) -> list[str]:
        """Return comments on which categories the codes in the conditions stand for."""
        used: dict[int, set[int]] = {}
        for node in np.flatnonzero(self.forest.left >= 0):
            condition = Condition.of(self.forest, int(node))
            used.setdefault(condition.feature, set()).update(condition.categories or ())
        lines = []
        for feature, codes in sorted(used.items()):
            labels = dict(enumerate(self.forest.input.known_categories.get(feature, ())))
            known = [f"{code} is {labels[code]!r}" for code in sorted(codes & labels.keys())]
            if known:
                text = f"{self.names[feature]}: {', '.join(known)}; others are any other number"
                lines += comment(text, indent=4)
        return lines

    def expression(self, root: int, node: int, indent: int) -> str:
        """Return what a node adds as an expression, on one line if that is short enough."""
        if self.forest.left[node] < 0:
            return self.rounding.signed(float(self.view.contributions[node]))
        condition = Condition.of(self.forest, node)
        first = root + int(self.forest.left[node])
        second = first + 1
        name = self.names[condition.feature]
        # NaN fails every comparison, so it goes to what follows "else".
        if condition.categories is None:
            sign, threshold = self.rounding.threshold(condition)
            if condition.missing:
                sign, first, second = _OPPOSITE[sign], second, first
            met = f"{name} {sign} {threshold}"
        else:
            codes = ", ".join(map(str, condition.categories))
            met = f"{name} in {{{codes}}}" if codes else f"{name} in ()"
            if condition.missing:
                met = f"{met} or {name} != {name}"
        one, other = (self.expression(root, child, indent + 4) for child in (first, second))
        line = f"({one} if {met} else {other})"
        if "\n" not in line and indent + len(line) < WIDTH:
            return line
        pad = " " * (indent + 4)
        return f"(\n{pad}{one}\n{pad}if {met}\n{pad}else {other}\n{' ' * indent})"
