"""What features are called: as trained, in words, and in Python expressions."""

import keyword
import re
from collections import Counter

from forestprune.forest.forest import Forest


def column_names(forest: Forest) -> tuple[str, ...]:
    """Return the names of features, x0, x1, ... if they have none."""
    return forest.column_names


def spoken_names(forest: Forest) -> list[str]:
    """Return the names of columns as words that cannot be mistaken for anything else."""
    names = column_names(forest)
    count = Counter(names)
    # Python's quotes escape newlines and whatever else does not print.
    words = [name if _is_plain(name) else repr(name) for name in names]
    return [
        word if count[name] == 1 else f"{word}[{column}]"
        for column, (name, word) in enumerate(zip(names, words, strict=True))
    ]


def identifiers(forest: Forest) -> tuple[str, ...]:
    """Return a Python identifier for each column, in order; no two are the same.

    A name that is one already (of ASCII letters, digits and underscores, not a keyword) does not
    change. In others, each run of other characters becomes one underscore, and another is put
    before a leading digit or after a keyword. Names that would then occur twice end in ``_2``,
    ``_3`` and so on. Features without names are x0, x1 and so on.

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
    plain_names = {name for name in names if _is_plain(name)}
    found: dict[str, None] = {}  # a set that keeps its order
    for name in names:
        stem = name if name in plain_names else _as_identifier(name)
        unique, count = stem, 1
        # A plain name belongs to the first column that has it.
        while unique in found or (unique in plain_names and unique != name):
            count += 1
            unique = f"{stem}_{count}"
        found[unique] = None
    return tuple(found)


def _as_identifier(name: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_]+", "_", name) or "_"
    if plain[0].isdigit():
        plain = f"_{plain}"
    return f"{plain}_" if _is_reserved(plain) else plain


def _is_plain(name: str) -> bool:
    # Python takes letters of all alphabets, but considers some of them the same.
    return name.isascii() and name.isidentifier() and not _is_reserved(name)


def _is_reserved(name: str) -> bool:
    return keyword.iskeyword(name) or name == "__debug__"
