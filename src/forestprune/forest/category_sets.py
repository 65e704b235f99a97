"""Sets of categories as bits, 32 categories a word: which of them go left at a categorical split.

A forest with n sets keeps three arrays: `category_set` names the set of each node (-1: none),
and set s is ``set_words[set_offsets[s]:set_offsets[s + 1]]``.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from forestprune.exceptions import InvalidForestError

if TYPE_CHECKING:
    from forestprune.forest.forest import Forest


def pack_categories(categories: Sequence[int]) -> NDArray[np.uint32]:
    """Return the words of one set."""
    chosen = np.asarray(categories, dtype=np.int64)
    if (chosen < 0).any():
        raise InvalidForestError(f"Categories must not be negative, got {chosen.min()}.")
    words = np.zeros(chosen.max(initial=-1) // 32 + 1, np.uint32)
    np.bitwise_or.at(words, chosen // 32, np.uint32(1) << (chosen % 32).astype(np.uint32))
    return words


def unpack_categories(words: NDArray[np.uint32]) -> tuple[int, ...]:
    """Return the categories in one set, rising."""
    bits = words[:, np.newaxis] >> np.arange(32, dtype=np.uint32) & np.uint32(1)
    return tuple(int(category) for category in np.flatnonzero(bits))


def join_sets(sets: Mapping[int, NDArray[np.uint32]], n_nodes: int) -> dict[str, NDArray[Any]]:
    """Return the forest's three arrays, given the set of each categorical split."""
    category_set = np.full(n_nodes if sets else 0, -1, np.int32)
    category_set[list(sets)] = np.arange(len(sets))
    return {
        "category_set": category_set,
        "set_offsets": np.cumsum([0, *(words.size for words in sets.values())]),
        "set_words": np.concatenate([np.empty(0, np.uint32), *sets.values()]),
    }


def sets_of_nodes(forest: "Forest", nodes: slice) -> dict[int, NDArray[np.uint32]]:
    """Return the words of the set of each categorical split, counted from the first of `nodes`."""
    numbers = forest.category_set[nodes]
    bounds = forest.set_offsets
    return {
        node: forest.set_words[bounds[numbers[node]] : bounds[numbers[node] + 1]]
        for node in np.flatnonzero(numbers >= 0).tolist()
    }


def drop_unused_sets(
    category_set: NDArray[np.int32],
    set_offsets: NDArray[np.int64],
    set_words: NDArray[np.uint32],
) -> dict[str, NDArray[Any]]:
    """Return the three arrays with only the sets that `category_set` still names."""
    users = np.flatnonzero(category_set >= 0)
    sets = {
        int(node): set_words[set_offsets[s] : set_offsets[s + 1]]
        for node, s in zip(users, category_set[users], strict=True)
    }
    return join_sets(sets, category_set.size)
