"""A forest as a function a tree, of conditions within conditions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from forestprune.deploy.c_conditions import SplitTests
from forestprune.deploy.c_words import FLOATS, array, literal, unsigned, width
from forestprune.deploy.leaves import Leaves
from forestprune.forest.forest import Forest

NESTED = 60
"""Conditions within conditions at most, as compilers limit them; what is below them is apart."""


@dataclass
class Branches:
    """A function for each tree; of a leaf for several outputs it says which row of a table."""

    name: str
    forest: Forest
    tests: SplitTests
    leaves: Leaves
    parts: list[str] = field(default_factory=list)
    table_bytes: int = 0

    def __post_init__(self) -> None:
        order, values = self.tests.order, self.leaves.values
        if not order.trees.size:
            return
        kind = str(values.dtype)
        self.parts += self.tests.definitions()
        self.table_bytes += self.tests.set_bytes
        if values.shape[1] == 1:
            number = FLOATS.get(kind)
            texts = [literal(v, kind) if number else str(int(v)) for v in values[:, 0]]
            self.returns = number or f"{kind}_t"
        else:
            distinct, which = np.unique(values, axis=0, return_inverse=True)
            texts = [str(place) for place in which.ravel()]
            self.returns = unsigned(len(distinct) - 1)
            table = FLOATS.get(kind, f"{kind}_t")
            self.parts.append(array(table, f"{self.name}_value", distinct))
            self.table_bytes += distinct.size * width(table)
        self._write(texts)

    def calls(self) -> list[str]:
        """Return the call of each tree's function."""
        return [f"{self.name}_tree_{tree}(x)" for tree in self.tests.order.trees]

    def _write(self, texts: list[str]) -> None:
        order = self.tests.order
        first_splits = np.cumsum([0, *order.sizes])
        for place, tree in enumerate(order.trees):
            start, size = int(first_splits[place]), int(order.sizes[place])
            head = f"{self.name}_tree_{tree}"
            # Functions come before those that call them.
            functions: list[str] = []
            todo: list[tuple[str, int, int, int]] = [(head, start, start + place, size)]
            while todo:
                functions.append(self._function(*todo.pop(), texts, todo.append))
            self.parts += functions[::-1]

    def _function(
        self,
        name: str,
        split: int,
        leaf: int,
        size: int,
        texts: list[str],
        later: Callable[..., Any],
    ) -> str:
        """Write the subtree of `size` splits that begins at a split and at a leaf."""
        argument = f"const {FLOATS[self.tests.dtype]} *x"
        lines = [f"static inline {self.returns} {name}({argument})", "{"]
        # What is to be written, last first: text, or a subtree and its depth.
        ahead: list[str | tuple[int, int, int, int]] = ["}", (split, leaf, size, 0)]
        while ahead:
            item = ahead.pop()
            if isinstance(item, str):
                lines.append(item)
                continue
            node, first, splits, depth = item
            pad = "    " + "  " * depth
            if not splits:
                lines.append(f"{pad}return {texts[first]};")
            elif depth == NESTED:
                part = f"{self.name}_part_{node}"
                lines.append(f"{pad}return {part}(x);")
                later((part, node, first, splits))
            else:
                left = int(self.tests.order.left_splits[node])
                lines.append(f"{pad}if ({self.tests.constant(node)}) {{")
                right = (node + 1 + left, first + left + 1, splits - left - 1, depth + 1)
                ahead += [f"{pad}}}", right, f"{pad}}} else {{", (node + 1, first, left, depth + 1)]
        return "\n".join(lines) + "\n"
