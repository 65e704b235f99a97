"""A forest in words and as a formula: a constant plus what each tree adds."""

import keyword
import re
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestprune.forest.forest import Forest
from forestprune.options import require_count
from forestprune.text.additive import (
    NEAR_ZERO,
    Additive,
    Condition,
    category_labels,
    column_names,
    percent,
    rounded_sign,
    takes_missing,
)

WIDTH = 88
"""Letters in a line of a formula, if it can be broken."""

_ALL_DIGITS = 17

_OPPOSITE = {"<": ">=", "<=": ">"}

MAX_TREES, MAX_DEPTH = 1000, 80
"""What Python's own parser is sure to take in one expression."""


def to_text(
    forest: Forest,
    *,
    digits: int | None = 4,
    output: int | None = None,
    numbers: Sequence[int] | NDArray[np.int64] | None = None,
) -> str:
    """Return a forest in words, the tree that matters most first.

    Names that are not plain words are quoted as Python quotes strings, and those that occur twice
    have the number of their column behind them, so no two features read alike.

    Parameters
    ----------
    forest : Forest
    digits : int or None
        To how many digits numbers are rounded, though no further than to whole ones, and thresholds
        of a feature no further than they stay different; None writes
        them exactly.
    output : int or None
        Which output, if there are several.
    numbers : sequence of int, or None
        What the trees are called; by default their places in the forest.
    """
    require_count("digits", digits, 1)
    view = Additive.of(forest, output)
    names = _spoken_names(forest)
    missing = _Missing.of(forest)
    rounding = _Rounding(forest, digits)
    lines = [*_opening(forest, view, rounding), *missing.sentence]
    for tree in view.order:
        lines += ["", f"Tree {tree if numbers is None else numbers[tree]}"]
        lines += _tree_in_words(forest, view, tree, names, missing, rounding)
    return "\n".join(lines)


def to_formula(forest: Forest, *, digits: int | None = None, output: int | None = None) -> str:
    """Return a forest as a Python expression of its features.

    See :meth:`forestprune.PrunedForest.to_formula`. The names in it are :func:`identifiers`; those
    that are not the names of features are explained by comments, and so are codes of categories.
    """
    require_count("digits", digits, 1)
    if forest.n_trees > MAX_TREES or forest.max_depth > MAX_DEPTH:
        raise ValueError(
            f"A formula can have {MAX_TREES:,} trees of depth {MAX_DEPTH}, but this forest has "
            f"{forest.n_trees:,} of depth {forest.max_depth}. Prune it with max_trees= or "
            "max_depth=, or call predict()."
        )
    view = Additive.of(forest, output)
    names, original = identifiers(forest), column_names(forest)
    rounding = _Rounding(forest, digits)
    constant = rounding.plain(view.constant)
    if not forest.n_trees:
        return constant
    used = sorted({int(column) for column in forest.feature[forest.left >= 0]})
    # Quoted as Python does, a name cannot end its line.
    renamed = [
        f"    # {names[column]}: {original[column]!r}"
        for column in used
        if names[column] != original[column]
    ]
    lines = ["(", *renamed, *_legend(forest, names), f"    {constant}"]
    for tree in view.order:
        root = int(forest.offsets[tree])
        lines.append(f"    + {_expression(forest, view, root, root, names, rounding, 4)}")
    return "\n".join([*lines, ")"])


def identifiers(forest: Forest) -> tuple[str, ...]:
    """Return a Python identifier for each column, in order; no two are the same.

    A name that is one already (of ASCII letters, digits and underscores, no keyword) stays as it
    is. In others, each stretch of other characters becomes one underscore, and one more is put
    before a digit at the beginning or behind a keyword. What would then occur twice gets ``_2``,
    ``_3`` and so on behind it. Features without names are x0, x1 and so on.

    Examples
    --------
    >>> import forestprune as fp
    >>> from forestprune.forest.build import build_forest
    >>> from forestprune.text import identifiers
    >>> names = ("age", "fixed acidity", "fixed-acidity", "2nd", "class")
    >>> spec = fp.InputSpec(5, names)
    >>> constant = build_forest([], n_nodes=0, scale=[], base=[1.0], input=spec)
    >>> identifiers(constant)
    ('age', 'fixed_acidity', 'fixed_acidity_2', '_2nd', 'class_')
    """
    names = column_names(forest)
    sound = [_is_plain(name) for name in names]
    taken = {name for name, is_sound in zip(names, sound, strict=True) if is_sound}
    given: set[str] = set()
    result = []
    for name, is_sound in zip(names, sound, strict=True):
        plain = name if is_sound else _as_identifier(name)
        unique, count = plain, 1
        # A sound name belongs to the first column that has it.
        while unique in given or (unique in taken and not (is_sound and count == 1)):
            count += 1
            unique = f"{plain}_{count}"
        given.add(unique)
        result.append(unique)
    return tuple(result)


def _as_identifier(name: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_]+", "_", name) or "_"
    if plain[0].isdigit():
        plain = f"_{plain}"
    return f"{plain}_" if _is_reserved(plain) else plain


def _is_plain(name: str) -> bool:
    # Python takes letters of all alphabets, but holds some of them for the same.
    return name.isascii() and name.isidentifier() and not _is_reserved(name)


def _is_reserved(name: str) -> bool:
    return keyword.iskeyword(name) or name == "__debug__"


def _spoken_names(forest: Forest) -> list[str]:
    """Return the names of columns as words in which nothing else can hide."""
    names = column_names(forest)
    count = Counter(names)
    # Python's quotes escape newlines and whatever else does not print.
    words = [name if _is_plain(name) else repr(name) for name in names]
    return [
        word if count[name] == 1 else f"{word}[{column}]"
        for column, (name, word) in enumerate(zip(names, words, strict=True))
    ]


class _Rounding:
    """How numbers are written: to some digits, or exactly if `digits` is None.

    Thresholds of one feature stay different, because else they would say something else.
    """

    def __init__(self, forest: Forest, digits: int | None) -> None:
        self.digits = digits
        self._thresholds: dict[int, int] = {}
        if digits is None:
            return
        different: dict[int, set[float]] = {}
        for node in np.flatnonzero(forest.left >= 0):
            condition = Condition.of(forest, int(node))
            if condition.categories is None:
                different.setdefault(condition.feature, set()).add(condition.threshold)
        for feature, thresholds in different.items():
            self._thresholds[feature] = _digits_to_tell_apart(thresholds, digits)

    @property
    def in_words(self) -> str:
        """What has to be known of numbers."""
        if self.digits is None:
            return ""
        more = any(digits > self.digits for digits in self._thresholds.values())
        but = ", thresholds to more where they would be the same" if more else ""
        return f" Numbers are rounded to {self.digits} digits{but}."

    def plain(self, x: float) -> str:
        return _number(x, self.digits)

    def signed(self, x: float) -> str:
        text = self.plain(x + 0.0)  # there is no point in a negative zero
        return text if text.startswith("-") else f"+{text}"

    def threshold(self, condition: Condition) -> tuple[str, str]:
        """Return how a feature is compared, and with which number."""
        return _compared(condition.threshold, self._thresholds.get(condition.feature))


def _number(x: float, digits: int | None) -> str:
    if digits is None:
        return repr(x)
    if abs(x) < NEAR_ZERO:
        return "0"
    # 12345 to three digits is 12345: zeros would be no shorter.
    whole = 10.0**digits <= abs(x) < 1e15
    return f"{x:.0f}" if whole else f"{x:.{digits}g}"


def _digits_to_tell_apart(numbers: set[float], least: int) -> int:
    """Return to how many digits numbers can be rounded without becoming the same."""
    digits = least
    while digits < _ALL_DIGITS and len({_compared(x, digits) for x in numbers}) < len(numbers):
        digits += 1
    return digits


def _compared(threshold: float, digits: int | None) -> tuple[str, str]:
    """Return how x is compared with a threshold, and the threshold as it is written."""
    text = _number(threshold, digits)
    return rounded_sign(threshold, float(text)), text


# In words


def _opening(forest: Forest, view: Additive, rounding: _Rounding) -> list[str]:
    origin = forest.origin
    what = "Prediction"
    if origin is not None and not forest.adds_up_to_y:
        what += f" of {origin.predicts}"
    constant = rounding.plain(view.constant)
    if not forest.n_trees:
        return [f"{what} = {constant}. No tree is left."]
    trees = "one tree adds" if forest.n_trees == 1 else f"each of {forest.n_trees:,} trees adds"
    notes = f"In brackets: share of the training rows.{rounding.in_words}"
    return [f"{what} = {constant} + what {trees}.", notes]


@dataclass(frozen=True, eq=False)
class _Missing:
    """Where missing values go: a rule for all conditions, and what is said where it fails.

    Libraries note for each split where a missing value would go, even if they never saw one. They
    have rules of their own for that, and it is said only once if a forest keeps to one.

    Attributes
    ----------
    sentence : list of str
        The rule in words; nothing, if no condition can meet a missing value.
    meets : bool array of shape (n_nodes,)
        Whether a missing value meets the condition of a split, by the rule.
    """

    sentence: list[str]
    meets: NDArray[np.bool_]

    @classmethod
    def of(cls, forest: Forest) -> "_Missing":
        """Find the rule to which the fewest splits are exceptions."""
        never = np.zeros(forest.n_nodes, dtype=np.bool_)
        splits = np.flatnonzero(forest.left >= 0)
        if not splits.size or not takes_missing(forest):
            return cls([], never)
        there = forest.missing_left[splits]
        first = forest.offsets[np.searchsorted(forest.offsets, splits, "right") - 1]
        first += forest.left[splits]
        more = forest.cover[first] - forest.cover[first + 1]
        larger = never.copy()
        larger[splits] = np.where(more == 0.0, ~there, more > 0.0)  # equally many: an exception
        rules = {
            'to "else"': never,
            "where the condition is met": ~never,
            "the way of more training rows": larger,
        }
        where = min(rules, key=lambda rule: np.count_nonzero(rules[rule][splits] != there))
        meets = rules[where]
        failing = splits[meets[splits] != there]
        words = dict.fromkeys(_exception(bool(meets[node])) for node in failing)
        said = " or ".join(f'"{word}"' for word in words)
        unless = f", unless the condition says {said}" if said else ""
        return cls([f"A missing value goes {where}{unless}."], meets)


def _exception(meets: bool) -> str:
    """Return what is added to a condition that a missing value would meet by the rule, or not."""
    return "and not missing" if meets else "or missing"


def _tree_in_words(
    forest: Forest,
    view: Additive,
    tree: int,
    names: list[str],
    missing: _Missing,
    rounding: _Rounding,
) -> list[str]:
    start = int(forest.offsets[tree])

    def ends(node: int) -> bool:
        return bool(forest.left[node] < 0)

    def leaf(node: int) -> str:
        share = view.shares[node]
        return rounding.signed(float(view.adds[node])) + (
            "" if share != share else f" ({percent(share)})"
        )

    lines = []
    # Trees can be deeper than Python's stack: what is still to be said waits on one of our own.
    waiting: list[tuple[str, int, int]] = [("", start, 1)]
    while waiting:
        lead, node, depth = waiting.pop()
        indent = "  " * depth
        if ends(node):
            lines.append(f"{indent}{lead} {leaf(node)}" if lead else indent + leaf(node))
            continue
        if lead:
            lines.append(indent + lead)
            indent, depth = indent + "  ", depth + 1
        left = start + int(forest.left[node])
        condition = Condition.of(forest, node)
        met = _condition_in_words(forest, condition, names, rounding)
        if condition.missing != missing.meets[node]:
            met = f"{met} {_exception(not condition.missing)}"
        if ends(left) and ends(left + 1):
            lines.append(f"{indent}{leaf(left)} if {met}, else {leaf(left + 1)}")
        else:
            waiting += [("else:", left + 1, depth), (f"if {met}:", left, depth)]
    return lines


def _condition_in_words(
    forest: Forest, condition: Condition, names: list[str], rounding: _Rounding
) -> str:
    name = names[condition.feature]
    if condition.categories is None:
        return " ".join([name, *rounding.threshold(condition)])
    labels = ", ".join(repr(label) for label in category_labels(forest, condition))
    return f"{name} in {{{labels}}}"


# As a formula


def _legend(forest: Forest, names: tuple[str, ...]) -> list[str]:
    """Return comments that say which categories the codes in the conditions stand for."""
    known = forest.input.known_categories
    used: dict[int, set[int]] = {}
    for node in np.flatnonzero(forest.left >= 0):
        condition = Condition.of(forest, int(node))
        used.setdefault(condition.feature, set()).update(condition.categories or ())
    lines = []
    for feature, codes in sorted(used.items()):
        labels = dict(enumerate(known.get(feature, ())))
        told = ", ".join(f"{code} is {labels[code]!r}" for code in sorted(codes & labels.keys()))
        if not told:
            continue
        lines += textwrap.wrap(
            f"{names[feature]}: {told}; others are any other number",
            WIDTH,
            initial_indent="    # ",
            subsequent_indent="    #   ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    return lines


def _expression(
    forest: Forest,
    view: Additive,
    root: int,
    node: int,
    names: tuple[str, ...],
    rounding: _Rounding,
    indent: int,
) -> str:
    """Return what a node adds as an expression, on one line if that is short enough."""
    if forest.left[node] < 0:
        return rounding.signed(float(view.adds[node]))
    condition = Condition.of(forest, node)
    first = root + int(forest.left[node])
    second = first + 1
    name = names[condition.feature]
    # NaN fails every comparison, so it goes to what stands behind "else".
    if condition.categories is None:
        sign, threshold = rounding.threshold(condition)
        if condition.missing:
            sign, first, second = _OPPOSITE[sign], second, first
        met = f"{name} {sign} {threshold}"
    else:
        codes = ", ".join(map(str, condition.categories))
        met = f"{name} in {{{codes}}}" if codes else f"{name} in ()"
        if condition.missing:
            met = f"{met} or {name} != {name}"
    deeper = indent + 4
    one, other = (
        _expression(forest, view, root, child, names, rounding, deeper) for child in (first, second)
    )
    line = f"({one} if {met} else {other})"
    if "\n" not in line and indent + len(line) < WIDTH:
        return line
    pad = " " * deeper
    return f"(\n{pad}{one}\n{pad}if {met}\n{pad}else {other}\n{' ' * indent})"
