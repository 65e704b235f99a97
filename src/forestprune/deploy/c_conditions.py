"""What splits ask, as expressions of C."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from forestprune.deploy.c_words import FLOATS, array, literal, unsigned, width
from forestprune.deploy.conditions import Conditions, Precision
from forestprune.deploy.preorder import Preorder
from forestprune.forest.inputs import ZERO


@dataclass(frozen=True)
class Flag:
    """What is true of some splits: of none, of all, or told by a bit of each."""

    of_splits: NDArray[np.bool_]

    @property
    def mixed(self) -> bool:
        """Whether splits differ."""
        return bool(self.of_splits.any() and not self.of_splits.all())

    @property
    def always(self) -> bool:
        """Whether it is true of all, if they do not differ."""
        return bool(self.of_splits.size and self.of_splits.all())


@dataclass(frozen=True)
class SplitTests:
    """The splits of a forest in the order in which a program has them.

    Attributes
    ----------
    name : str
        What names of functions and tables begin with.
    dtype : {"float32", "float64"}
        Of the rows that the program gets.
    """

    name: str
    dtype: Precision
    conditions: Conditions
    order: Preorder
    input_dtype: Precision

    def of_levels(self, depths: NDArray[np.int64]) -> SplitTests:
        """Return the first split of each level, given the depths of symmetric trees.

        They are the first of each tree, as those on the left of one another come first.
        """
        order = self.order
        depth = depths[order.trees]
        starts = np.repeat(np.cumsum(order.sizes) - order.sizes, depth)
        within = np.arange(starts.size) - np.repeat(np.cumsum(depth) - depth, depth)
        nothing = np.empty(0, np.int64)
        levels = replace(
            order, sizes=depth, splits=order.splits[starts + within], left_splits=nothing
        )
        return replace(self, order=levels)

    @cached_property
    def feature(self) -> NDArray[np.int64]:
        """The column that each split asks about."""
        return self.conditions.feature[self.order.splits].astype(np.int64)

    @cached_property
    def missing_left(self) -> Flag:
        """Whether what is missing goes left."""
        return Flag(self.conditions.missing_left[self.order.splits])

    @cached_property
    def zero(self) -> Flag:
        """Whether zero is missing."""
        return Flag(self.conditions.zero_is_missing[self.order.splits])

    @cached_property
    def by_set(self) -> Flag:
        """Whether the split asks for categories."""
        return Flag(self.conditions.set_number[self.order.splits] >= 0)

    @cached_property
    def number(self) -> NDArray[np.float32] | NDArray[np.float64]:
        """The threshold of each split, or the number of its set."""
        found = self.conditions.threshold[self.order.splits].copy()
        sets = self.conditions.set_number[self.order.splits]
        found[sets >= 0] = sets[sets >= 0]
        found[found == 0.0] = 0.0  # zero of either sign is the same threshold
        return found

    @property
    def compared(self) -> str:
        """The type in which numbers are compared."""
        return FLOATS[str(self.conditions.threshold.dtype)]

    @property
    def is_plain(self) -> bool:
        """Whether there are only thresholds, and only NaN is missing."""
        special = self.by_set.of_splits.any() or self.zero.of_splits.any()
        return not special and self.conditions.missing_number is None

    def value_of(self, feature: str) -> str:
        """Return the number to compare, of a column."""
        cast = "(float)" if self.dtype == "float64" and self.compared == "float" else ""
        return f"{cast}x[{feature}]"

    def constant(self, split: int) -> str:
        """Return the condition of one split, all its numbers written out."""
        missing = str(int(self.missing_left.of_splits[split]))
        zero = str(int(self.zero.of_splits[split]))
        by_set = str(int(self.by_set.of_splits[split]))
        precision = "float32" if self.compared == "float" else "float64"
        number = literal(self.number[split], precision)
        return self.condition(str(self.feature[split]), number, missing, zero, by_set)

    def condition(self, feature: str, number: str, missing: str, zero: str, by_set: str) -> str:
        """Return the condition under which a row goes left, of expressions for what it takes."""
        value = self.value_of(feature)
        if self.is_plain:
            if not self.missing_left.of_splits.any() or missing == "0":
                return f"{value} <= {number}"
            to_left = f"!({value} > {number})"
            return to_left if missing == "1" else f"{missing} ? {to_left} : {value} <= {number}"
        given = [value, number, missing]
        given += [zero] * self.zero.mixed + [by_set] * self.by_set.mixed
        return f"{self.name}_goes_left({', '.join(given)})"

    @property
    def set_bytes(self) -> int:
        """What the tables of sets take."""
        sets = self.conditions.sets
        total = sum(map(len, sets))
        return (max(total, 1) + (len(sets) + 1) * width(unsigned(total))) if sets else 0

    def definitions(self) -> list[str]:
        """Return the functions and tables that conditions need."""
        if self.is_plain:
            return []
        of = self.conditions
        parts = [self._sets(), self._in_set()] if of.sets else []
        given = [f"{self.compared} v", f"{self.compared} number", "int missing_left"]
        given += ["int zero_is_missing"] * self.zero.mixed + ["int by_set"] * self.by_set.mixed
        missing = ["v != v"]
        near_zero = f"(v <= {literal(ZERO, 'float32')} && v >= -{literal(ZERO, 'float32')})"
        if self.zero.mixed:
            missing.append(f"(zero_is_missing && {near_zero})")
        elif self.zero.always:
            missing.append(near_zero)
        if of.missing_number is not None:
            missing.append(f"v == {literal(of.missing_number, self.input_dtype)}")
        body = f"    if ({' || '.join(missing)})\n        return missing_left;\n"
        in_set = f"return {self.name}_in_set(v, (uint32_t)number);"
        if self.by_set.mixed:
            body += f"    if (by_set)\n        {in_set}\n"
        body += f"    {in_set}\n" if self.by_set.always else "    return v <= number;\n"
        head = f"static inline int {self.name}_goes_left({', '.join(given)})"
        return [*parts, f"{head}\n{{\n{body}}}\n"]

    def _sets(self) -> str:
        sets = self.conditions.sets
        starts = np.cumsum([0, *map(len, sets)])
        bits = np.frombuffer(b"".join(sets) or b"\0", np.uint8)
        return array("uint8_t", f"{self.name}_set_bits", bits) + array(
            unsigned(int(starts[-1])), f"{self.name}_set_starts", starts
        )

    def _in_set(self) -> str:
        least = "v > -1" if self.conditions.truncated else "v >= 0"
        n = self.name
        return (
            f"static inline int {n}_in_set({self.compared} v, uint32_t set)\n"
            "{\n"
            f"    uint32_t start = {n}_set_starts[set], bytes = {n}_set_starts[set + 1] - start;\n"
            "    uint32_t category;\n"
            f"    if (!({least} && v < ({self.compared})(8 * bytes)))\n"
            "        return 0;\n"
            "    category = (uint32_t)v;\n"
            f"    return {n}_set_bits[start + category / 8] >> category % 8 & 1;\n"
            "}\n"
        )
