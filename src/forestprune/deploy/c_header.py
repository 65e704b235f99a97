"""A forest as one header in C99 that needs nothing else."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from forestprune.deploy.c_about import about
from forestprune.deploy.c_branches import Branches
from forestprune.deploy.c_conditions import SplitTests
from forestprune.deploy.c_predict import Functions
from forestprune.deploy.c_tables import Tables
from forestprune.deploy.c_words import comment, require_name
from forestprune.deploy.conditions import Conditions, Precision
from forestprune.deploy.leaves import LeafType, Leaves
from forestprune.deploy.preorder import Preorder
from forestprune.exceptions import OptionError, escaped
from forestprune.forest.forest import Forest

Layout = Literal["tables", "branches"]


class CHeader(str):
    """The text of a header, which also knows what it takes and how exact it is.

    Attributes
    ----------
    n_bytes : int or None
        What the model takes in memory that is only read: its tables, and at most what its functions
        take on a microcontroller (Cortex-M), compiled to be small. None for branches, which only a
        compiler can tell.
    table_bytes : int
        What its tables take, exactly.
    error_bound : float
        How far the raw sum of any row is at most from that of the model.
    """

    n_bytes: int | None
    table_bytes: int
    error_bound: float

    def __new__(  # noqa: D102
        cls, text: str, *, n_bytes: int | None, table_bytes: int, error_bound: float
    ) -> CHeader:
        header = super().__new__(cls, text)
        header.n_bytes, header.table_bytes = n_bytes, table_bytes
        header.error_bound = error_bound
        return header

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        return (str(self),), dict(vars(self))


def to_c(
    forest: Forest,
    name: str = "model",
    *,
    dtype: Precision = "float64",
    layout: Layout = "tables",
    leaves: LeafType | None = None,
) -> CHeader:
    """Return a forest as a header in C; see :meth:`forestprune.PrunedForest.to_c`."""
    require_name(name)
    for option, given, allowed in (
        ("dtype", dtype, get_args(Precision)),
        ("layout", layout, get_args(Layout)),
        ("leaves", leaves, (None, *get_args(LeafType))),
    ):
        if given not in allowed:
            listed = ", ".join(map(repr, allowed[:-1])) + f" or {allowed[-1]!r}"
            raise OptionError(f"{{{option}}} must be {listed}, got {escaped(repr(given))}.")
    forest = forest.compact()
    order = Preorder.of(forest)
    tests = SplitTests(
        name, dtype, Conditions.of(forest, dtype), order, _precision(forest.input.dtype)
    )
    kind = leaves or dtype
    with np.errstate(over="ignore", under="ignore"):
        kept = Leaves.of(forest, order, kind, dtype)
    if not np.isfinite(kept.error):
        raise OptionError(
            f"{{dtype}} and {{leaves}} must be types that hold what the leaves add, but numbers of "
            f"this model are too large for {dtype} or {kind}. Use float64."
        )
    body: Tables | Branches = (Tables if layout == "tables" else Branches)(
        name, forest, tests, kept
    )
    functions = Functions(name, forest, body, kept, dtype)
    raw, own_bytes = functions.raw()
    table_bytes = body.table_bytes + own_bytes
    text = _text(functions, raw, table_bytes)
    return CHeader(
        text,
        n_bytes=None if layout == "branches" else table_bytes + _code_bytes(functions),
        table_bytes=table_bytes,
        error_bound=kept.error,
    )


def _precision(dtype: str) -> Precision:
    return "float32" if dtype == "float32" else "float64"


def _code_bytes(functions: Functions) -> int:
    """Return what functions take at most when gcc makes them small for a Cortex-M0 or M4.

    Without what it calls: exp, and arithmetic that the processor cannot do. Measured with
    arm-none-eabi-gcc 12 on the models of `tests/deployed.py`, and rounded up.
    """
    tests, origin = functions.body.tests, functions.forest.origin
    link = "identity" if origin is None else origin.link
    parts = {
        "loop": 240 if functions.dtype == "float64" else 210,
        "levels": -40 * (isinstance(functions.body, Tables) and functions.body.symmetric),
        "integers": 30 * (functions.leaves.step is not None),
        "missing": 110 * (not tests.is_plain),
        "link": 40 * (link != "identity"),
        "classes": 70 * bool(origin is not None and origin.classes),
        "outputs": 100 * (functions.n_outputs > 1),
        "softmax": 80 * (link == "softmax"),
    }
    return sum(parts.values())


def _text(functions: Functions, raw: str, table_bytes: int) -> str:
    name, links, forest = functions.name, functions.links(), functions.forest
    code = "\n".join([*functions.body.parts, raw])
    plain = [text for text, libm in links if not libm]
    with_libm = [text for text, libm in links if libm]
    last = "\n".join(plain)
    if with_libm:
        needing = "\n".join(with_libm)
        last = f"#ifndef {name}_NO_LIBM\n{needing}#endif\n" + ("\n" + last if last else "")
    includes = "#include <stdint.h>\n"
    if "HUGE_VAL" in code:
        includes += "#include <math.h>\n"
    elif with_libm:
        includes += f"#ifndef {name}_NO_LIBM\n#include <math.h>\n#endif\n"
    guard = f"FORESTPRUNE_{name}_H"
    counts = f"enum {{ {name}_n_features = {forest.n_features}"
    origin = forest.origin
    what = "classes" if origin is not None and origin.classes else "outputs"
    count = len(origin.classes) if origin is not None and origin.classes else forest.n_outputs
    counts += f", {name}_n_{what} = {count} }};\n"
    words = comment(about(functions, table_bytes, libm=bool(with_libm)))
    return (
        f"{words}#ifndef {guard}\n#define {guard}\n\n{includes}\n{counts}\n{code}\n{last}\n#endif\n"
    )
