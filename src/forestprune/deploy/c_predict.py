"""The functions that a header offers: sums, predictions, probabilities, classes."""

from __future__ import annotations

from dataclasses import dataclass

from forestprune.deploy.c_branches import Branches
from forestprune.deploy.c_tables import Tables
from forestprune.deploy.c_words import FLOATS, array, literal, width
from forestprune.deploy.conditions import Precision
from forestprune.deploy.leaves import Leaves
from forestprune.forest.forest import Forest

MOST_IN_32_BITS = 2**31 - 1


@dataclass(frozen=True)
class Functions:
    """What is written below the tables of a forest, or below the functions of its trees."""

    name: str
    forest: Forest
    body: Tables | Branches
    leaves: Leaves
    dtype: Precision

    @property
    def number(self) -> str:
        """The type of rows and predictions."""
        return FLOATS[self.dtype]

    @property
    def n_outputs(self) -> int:
        """How many sums there are."""
        return self.forest.n_outputs

    def raw(self) -> tuple[str, int]:
        """Return the function that adds up what trees add, and the bytes of its own tables."""
        head = "static inline {} {}_raw(const {} *x{})"
        if self.n_outputs == 1:
            title = head.format(self.number, self.name, self.number, "")
        else:
            title = head.format("void", self.name, self.number, f", {self.number} *sums")
        if not self.body.tests.order.trees.size:
            return self._constant(title)
        if self.n_outputs == 1:
            return self._single(title), 0
        return self._several(title)

    def links(self) -> list[tuple[str, bool]]:
        """Return the functions for predictions, and of each whether it needs libm."""
        origin = self.forest.origin
        if origin is not None and origin.classes:
            return self._classifier()
        raw = origin is None or origin.response == "raw"
        link = "identity" if raw or origin is None else origin.link
        needs = link not in ("identity", "signed_sqrt")
        if self.n_outputs == 1:
            value = self._linked("sum", link)
            body = f"    {self.number} sum = {self.name}_raw(x);\n    return {value};\n"
            return [(self._function(self.number, "predict", "", body), needs)]
        body = f"    {self.name}_raw(x, y);\n{self._all_linked('y', link)}"
        return [(self._function("void", "predict", f", {self.number} *y", body), needs)]

    def _function(self, kind: str, what: str, more: str, body: str) -> str:
        head = f"static inline {kind} {self.name}_{what}(const {self.number} *x{more})"
        return f"{head}\n{{\n{body}}}\n"

    def _literal(self, number: float) -> str:
        return literal(number, self.dtype)

    def _constant(self, title: str) -> tuple[str, int]:
        if self.n_outputs == 1:
            body = f"    (void)x;\n    return {self._literal(self.leaves.base[0])};\n"
            return f"{title}\n{{\n{body}}}\n", 0
        sums = "".join(
            f"    sums[{k}] = {self._literal(base)};\n" for k, base in enumerate(self.leaves.base)
        )
        return f"{title}\n{{\n    (void)x;\n{sums}}}\n", 0

    @property
    def _counter(self) -> str:
        """The type in which integers are added up."""
        largest = 32767 if self.leaves.values.dtype == "int16" else 127
        fits = self.body.tests.order.trees.size * largest <= MOST_IN_32_BITS
        return "int32_t" if fits else "int64_t"

    def _single(self, title: str) -> str:
        base = self._literal(self.leaves.base[0])
        step = None if self.leaves.step is None else self._literal(self.leaves.step[0])
        start = (
            f"    {self.number} sum = {base};\n"
            if step is None
            else f"    {self._counter} sum = 0;\n"
        )
        if isinstance(self.body, Tables):
            n_trees = str(self.body.tests.order.trees.size)
            loop = self.body.locals
            loop += self.body.add_trees("    ", "", n_trees, f"sum += {self.body.value(None)};")
        else:
            loop = "".join(f"    sum += {call};\n" for call in self.body.calls())
        total = "sum" if step is None else f"{base} + {step} * ({self.number})sum"
        return f"{title}\n{{\n{start}{loop}    return {total};\n}}\n"

    def _several(self, title: str) -> tuple[str, int]:
        """Write the sums of several outputs: all from each leaf, or tree by tree one of them."""
        n, k_all, whole = self.name, self.n_outputs, self.leaves.step is not None
        tables = array(self.number, f"{n}_base", self.leaves.base)
        if self.leaves.step is not None:
            tables += array(self.number, f"{n}_step", self.leaves.step)
        n_bytes = k_all * width(self.number) * (2 if whole else 1)
        joint = not self.forest.tree_output.size
        into = "total" if whole else "sums"
        start = "    int output;\n"
        start += f"    {self._counter} total[{k_all}] = {{0}};\n" if whole else ""
        each = f"    for (output = 0; output < {k_all}; output++)\n        "
        start_sums = "" if whole else f"{each}sums[output] = {n}_base[output];\n"
        if isinstance(self.body, Tables):
            n_trees = str(self.body.tests.order.trees.size)
            if joint:
                add = (
                    f"for (output = 0; output < {k_all}; output++)\n"
                    f"            {into}[output] += {self.body.value('output')};"
                )
                loop = self.body.add_trees("    ", "", n_trees, add)
            else:
                loop = f"    for (output = 0; output < {k_all}; output++) {{\n"
                loop += f"        last += {n}_trees[output];\n"
                add = f"{into}[output] += {self.body.value(None)};"
                loop += self.body.add_trees("        ", "", "last", add) + "    }\n"
                start += f"    {self.body.index} last = 0;\n"
            start += self.body.locals
        elif joint:
            loop = ""
            for call in self.body.calls():
                loop += f"    leaf = {k_all} * {call};\n"
                loop += f"{each}{into}[output] += {n}_value[leaf + output];\n"
            start += "    uint32_t leaf;\n"
        else:
            outputs = self.forest.tree_output[self.body.tests.order.trees]
            loop = "".join(
                f"    {into}[{k}] += {call};\n"
                for k, call in zip(outputs, self.body.calls(), strict=True)
            )
        end = ""
        if whole:
            end = (
                f"{each}sums[output] = {n}_base[output]"
                f" + {n}_step[output] * ({self.number})total[output];\n"
            )
        return f"{tables}{title}\n{{\n{start}{start_sums}{loop}{end}}}\n", n_bytes

    def _linked(self, value: str, link: str) -> str:
        """Return a sum as it goes through the link."""
        exp = "exp" if self.dtype == "float64" else "expf"
        if link == "log":
            return f"{exp}({value})"
        if link == "logit":
            return f"{self._literal(1)} / ({self._literal(1)} + {exp}(-{self._scaled(value)}))"
        if link == "signed_sqrt":
            return f"{value} < 0 ? -({value} * {value}) : {value} * {value}"
        return value

    def _scaled(self, value: str) -> str:
        origin = self.forest.origin
        factor = 1.0 if origin is None else origin.objective_params.get("sigmoid", 1.0)
        return value if factor == 1.0 else f"{self._literal(factor)} * {value}"

    def _all_linked(self, values: str, link: str) -> str:
        """Return statements that take sums, in place, through the link."""
        if link == "identity":
            return ""
        k_all, zero = self.n_outputs, self._literal(0)
        if link != "softmax":
            one = self._linked(f"{values}[k]", link)
            return (
                f"    {{\n        int k;\n        for (k = 0; k < {k_all}; k++)\n"
                f"            {values}[k] = {one};\n    }}\n"
            )
        exp = "exp" if self.dtype == "float64" else "expf"
        return (
            "    {\n"
            f"        {self.number} most = {values}[0], total = {zero};\n"
            "        int k;\n"
            f"        for (k = 1; k < {k_all}; k++)\n"
            f"            if ({values}[k] > most)\n"
            f"                most = {values}[k];\n"
            f"        for (k = 0; k < {k_all}; k++)\n"
            f"            total += {values}[k] = {exp}({values}[k] - most);\n"
            f"        for (k = 0; k < {k_all}; k++)\n"
            f"            {values}[k] /= total;\n"
            "    }\n"
        )

    def _classifier(self) -> list[tuple[str, bool]]:
        origin = self.forest.origin
        assert origin is not None  # noqa: S101 - the caller has seen its classes
        by_sum = origin.link != "identity"
        zero, one = self._literal(0), self._literal(1)
        if self.n_outputs == 1:
            p = self._linked("p1", origin.link)
            body = f"    {self.number} p1 = {self.name}_raw(x);\n"
            body += f"    p1 = {p};\n" if by_sum else _clipped("p1", zero, one)
            body += f"    p[0] = {one} - p1;\n    p[1] = p1;\n"
            above = zero if by_sum else self._literal(0.5)
            sign = f"{self.name}_raw(x)"
            label = f"    return {self._scaled(sign) if by_sum else sign} > {above};\n"
        else:
            body = f"    {self.name}_raw(x, p);\n{self._all_linked('p', origin.link)}"
            clip = _clipped("p[k]", zero, one)
            if not by_sum:
                body += "    {\n        int k;\n"
                body += f"        for (k = 0; k < {self.n_outputs}; k++) {{\n"
                body += clip.replace("    ", " " * 12, 1) + "        }\n    }\n"
            sums = "predict_proba" if not by_sum else "raw"
            label = (
                f"    {self.number} sums[{self.n_outputs}];\n    int k, best = 0;\n"
                f"    {self.name}_{sums}(x, sums);\n"
                f"    for (k = 1; k < {self.n_outputs}; k++)\n"
                "        if (sums[k] > sums[best])\n            best = k;\n    return best;\n"
            )
        proba = self._function("void", "predict_proba", f", {self.number} *p", body)
        return [(proba, by_sum), (self._function("int", "predict", "", label), False)]


def _clipped(value: str, zero: str, one: str) -> str:
    return f"    {value} = {value} < {zero} ? {zero} : {value} > {one} ? {one} : {value};\n"
