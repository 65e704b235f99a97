"""The constraints that a model was trained with, in words."""

from typing import Any

from forestprune.forest.constraints import monotone_features
from forestprune.forest.forest import Forest
from forestprune.text.names import column_names, spoken_names

_MOST = 20
"""How many names are written out."""


def constraints(forest: Forest) -> dict[str, Any]:
    """Return the monotone and interaction constraints of a model by names, as JSON can hold them.

    `monotone` says with which features predictions only rise or fall, `interactions` which groups
    of features may meet in a tree ("pairwise": any two); both are empty if nothing is promised.
    """
    groups = () if forest.origin is None else forest.origin.interactions
    names = column_names(forest)
    return {
        "monotone": monotone_features(forest),
        "interactions": groups
        if groups == "pairwise"
        else [[names[column] for column in group] for group in groups],
    }


def constraints_in_words(forest: Forest) -> str:
    """Return the constraints of a model as a sentence without an end; empty if it has none."""
    names = spoken_names(forest)
    words = []
    for word, sign in (("rising", 1), ("falling", -1)):
        features = [names[c] for c, given in enumerate(forest.monotone) if given == sign]
        if features:
            words.append(f"only {word} with {_few(features)}")
    groups = () if forest.origin is None else forest.origin.interactions
    if groups == "pairwise":
        words.append("no more than two features meet in a tree")
    elif groups:
        together = [f"({', '.join(names[column] for column in group)})" for group in groups]
        words.append(f"features meet only within {_few(together)}")
    return "; ".join(words)


def _few(words: list[str]) -> str:
    more = f" and {len(words) - _MOST:,} more" if len(words) > _MOST else ""
    return ", ".join(words[:_MOST]) + more
