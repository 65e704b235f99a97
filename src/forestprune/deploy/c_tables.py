"""A forest as tables of the smallest types that hold them, and a loop that walks through them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestprune.deploy.c_conditions import SplitTests
from forestprune.deploy.c_words import FLOATS, array, unsigned, width
from forestprune.deploy.leaves import Leaves
from forestprune.forest.forest import Forest
from forestprune.forest.symmetric import is_symmetric

WORTHWHILE = 16
"""Bytes that a further table must save, because looking things up in it takes some as well."""

WALK = """\
/* The leaf of a tree that a row reaches, counted from the tree's first; the tree has `splits`
 * splits from `node` on: the root, then all on its left side, then all on its right side. On
 * either there is one leaf more than splits. */
static inline @INDEX @NAME_leaf(const @NUMBER *x, @INDEX node, @INDEX splits)
{
    @INDEX leaf = 0;
    while (splits > 0) {
        @INDEX split = @SPLIT, left = @NAME_left[node];
        if (@CONDITION) {
            splits = left;
        } else {
            splits -= left + 1;
            leaf += left + 1;
            node += left;
        }
        node++;
    }
    return leaf;
}
"""

LEVELS = """\
/* The leaf of a tree that a row reaches, counted from the tree's first; the tree asks the same in
 * all nodes of a level: `splits` questions from `node` on. */
static inline @INDEX @NAME_leaf(const @NUMBER *x, @INDEX node, @INDEX splits)
{
    @INDEX leaf = 0;
    for (; splits > 0; splits--, node++) {
        @INDEX split = @SPLIT;
        leaf = 2 * leaf + !(@CONDITION);
    }
    return leaf;
}
"""


@dataclass
class Tables:
    """The tables of a program, and the functions that read them."""

    name: str
    forest: Forest
    tests: SplitTests
    leaves: Leaves
    parts: list[str] = field(default_factory=list)
    table_bytes: int = 0

    def __post_init__(self) -> None:
        self.index, self.symmetric = "uint_fast16_t", False
        if not self.tests.order.trees.size:
            return
        self.symmetric = is_symmetric(self.forest)
        if self.symmetric:
            self.tests = self.tests.of_levels(self.forest.depths)
        order = self.tests.order
        largest = self._split_tables()
        if max(largest, self.leaves.values.size) >= 2**16:
            self.index = "uint32_t"
        if not self.symmetric:
            self._table(unsigned(int(order.left_splits.max())), "left", order.left_splits)
        self.same_size = bool((order.sizes == order.sizes[0]).all())
        if not self.same_size:
            self._table(unsigned(int(order.sizes.max())), "splits", order.sizes)
        self._leaf_tables()
        if self.forest.tree_output.size:
            counts = np.bincount(self.forest.tree_output, minlength=self.forest.n_outputs)
            self._table(unsigned(int(counts.max())), "trees", counts)
        self.table_bytes += self.tests.set_bytes
        self.parts += [*self.tests.definitions(), self._walk()]

    def add_trees(self, indent: str, first: str, last: str, add: str) -> str:
        """Return a loop that adds the leaves of some trees, as the statement `add` says."""
        n = self.name
        splits = str(self.tests.order.sizes[0]) if self.same_size else f"{n}_splits[tree]"
        # A tree has one leaf more than splits, and a symmetric one twice as many with each level.
        before = "first" if self.symmetric else "node + tree"
        lines = [
            f"for ({first}; tree < {last}; tree++) {{",
            f"    {self.index} splits = {splits};",
            f"    {self.index} leaf = {before} + {n}_leaf(x, node, splits);",
            f"    {add}",
            "    node += splits;",
            *([f"    first += ({self.index})1 << splits;"] if self.symmetric else []),
            "}",
        ]
        return "".join(f"{indent}{line}\n" for line in lines)

    @property
    def locals(self) -> str:
        """The variables that :meth:`add_trees` needs, all zero."""
        return f"    {self.index} node = 0, tree = 0{', first = 0' * self.symmetric};\n"

    def value(self, output: str | None) -> str:
        """Return what the leaf at hand adds to an output; None if it adds to one only."""
        n = self.name
        place = f"{n}_value_number[leaf]" if self.numbered else "leaf"
        if output is None:
            return f"{n}_value[{place}]"
        return f"{n}_value[{self.forest.n_outputs} * {place} + {output}]"

    def _table(self, kind: str, what: str, numbers: NDArray[Any]) -> None:
        self.parts.append(array(kind, f"{self.name}_{what}", numbers))
        self.table_bytes += numbers.size * width(kind)

    def _split_tables(self) -> int:
        """Choose how splits are kept: each by itself, or numbers of what several of them share.

        Returns the largest of the whole numbers that are to be held.
        """
        tests = self.tests
        flags = [tests.missing_left, tests.zero, tests.by_set]
        mixed = [flag for flag in flags if flag.mixed]
        split = tests.feature << len(mixed)
        for bit, flag in enumerate(mixed):
            split = split | (flag.of_splits.astype(np.int64) << bit)
        number, kind = tests.number, tests.compared
        with np.errstate(over="ignore", under="ignore"):
            if kind == "double" and np.array_equal(number.astype(np.float32), number):
                number, kind = number.astype(np.float32), "float"
        self.flags = {id(flag): f"split >> {bit} & 1" for bit, flag in enumerate(mixed)}
        self.feature = f"split >> {len(mixed)}" if mixed else "split"
        distinct, which = _distinct(split, number)
        numbers, which_number = np.unique(number, return_inverse=True)
        pairs, place = _distinct(tests.feature, number)
        starts = np.searchsorted(pairs["first"], np.arange(int(tests.feature.max()) + 1))
        within = place - starts[tests.feature]
        s, n = unsigned(int(split.max())), width(kind)
        own = split.size * width(s)
        sizes = {
            "own": own + split.size * n,
            "numbered": own + split.size * width(unsigned(numbers.size - 1)) + numbers.size * n,
            "within": own
            + split.size * width(unsigned(int(within.max())))
            + starts.size * width(unsigned(int(starts.max())))
            + pairs.size * n,
            "tests": split.size * width(unsigned(distinct.size - 1))
            + distinct.size * (width(s) + n),
        }
        self.kept = min(sizes, key=lambda way: sizes[way] + WORTHWHILE * (way != "own"))
        if self.kept == "tests":
            self._table(unsigned(distinct.size - 1), "test", which)
            self._table(s, "split", distinct["first"])
            self._table(kind, "number", distinct["second"])
        else:
            self._table(s, "split", split)
        if self.kept == "own":
            self._table(kind, "number", number)
        elif self.kept == "numbered":
            self._table(unsigned(numbers.size - 1), "which", which_number)
            self._table(kind, "number", numbers)
        elif self.kept == "within":
            self._table(unsigned(int(within.max())), "which", within)
            self._table(unsigned(int(starts.max())), "first", starts)
            self._table(kind, "number", pairs["second"])
        return int(split.max())

    def _leaf_tables(self) -> None:
        values = self.leaves.values
        kind = FLOATS.get(str(values.dtype), f"{values.dtype}_t")
        distinct, which = np.unique(values, axis=0, return_inverse=True)
        number = unsigned(len(distinct) - 1)
        shared = len(values) * width(number) + distinct.size * width(kind)
        self.numbered = shared + WORTHWHILE < values.size * width(kind)
        if self.numbered:
            self._table(number, "value_number", which.ravel())
        self._table(kind, "value", distinct if self.numbered else values)

    def _walk(self) -> str:
        n, tests = self.name, self.tests
        number = {
            "own": f"{n}_number[node]",
            "numbered": f"{n}_number[{n}_which[node]]",
            "within": f"{n}_number[{n}_first[{self.feature}] + {n}_which[node]]",
            "tests": f"{n}_number[{n}_test[node]]",
        }[self.kept]
        split = f"{n}_split[{n}_test[node]]" if self.kept == "tests" else f"{n}_split[node]"
        flags = {
            what: self.flags.get(id(flag), str(int(flag.always)))
            for what, flag in (
                ("missing", tests.missing_left),
                ("zero", tests.zero),
                ("by_set", tests.by_set),
            )
        }
        condition = tests.condition(self.feature, number, **flags)
        text = LEVELS if self.symmetric else WALK
        for word, meant in (
            ("INDEX", self.index),
            ("NUMBER", FLOATS[self.tests.dtype]),
            ("NAME", self.name),
            ("SPLIT", split),
            ("CONDITION", condition),
        ):
            text = text.replace(f"@{word}", meant)
        return text


def _distinct(first: NDArray[Any], second: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the distinct pairs of two columns, in their order, and which of them each row has."""
    pairs = np.empty(first.size, [("first", first.dtype), ("second", second.dtype)])
    pairs["first"], pairs["second"] = first, second
    distinct, which = np.unique(pairs, return_inverse=True)
    return distinct, which
