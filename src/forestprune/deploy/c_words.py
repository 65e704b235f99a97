"""Numbers, arrays and comments as C has them."""

from __future__ import annotations

import keyword
import re
import textwrap
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestprune.exceptions import OptionError, escaped

WIDTH = 96
"""Letters in a line, if it can be broken."""

FLOATS = {"float32": "float", "float64": "double"}

# Of C++ too, as many programs for microcontrollers are written in it.
_RESERVED = """
auto break case char const continue default do double else enum extern float for goto if inline int
long register restrict return short signed sizeof static struct switch typedef union unsigned void
volatile while asm typeof main new delete class this template namespace operator private protected
public virtual friend using throw try catch bool true false
"""


def require_name(name: Any) -> str:
    """Refuse what functions in C cannot be called by."""
    sound = isinstance(name, str) and re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,59}", name)
    if not sound or name in _RESERVED.split() or keyword.iskeyword(str(name)):
        raise OptionError(
            "{name} must be a name that functions in C can begin with: a letter, then letters, "
            f"digits and underscores, 60 at most, and no keyword; got {escaped(repr(name))}."
        )
    return str(name)


def unsigned(largest: int) -> str:
    """Return the smallest type that holds the numbers from 0 to `largest`."""
    bits = 8 if largest < 2**8 else 16 if largest < 2**16 else 32
    return f"uint{bits}_t"


def width(name: str) -> int:
    """Return how many bytes a number of a type in C takes."""
    known = {"float": 4, "double": 8}
    return known[name] if name in known else int(re.sub(r"\D", "", name)) // 8


def literal(number: Any, dtype: str) -> str:
    """Return a number as C reads it: the same number, of the type `dtype`."""
    plain = np.dtype(dtype).type(number)
    if np.isinf(plain):
        return ("-" if plain < 0 else "") + ("HUGE_VALF" if dtype == "float32" else "HUGE_VAL")
    text = str(plain)
    if not re.search(r"[.e]", text):
        text += ".0"
    return f"{text}f" if dtype == "float32" else text


def array(kind: str, name: str, numbers: NDArray[Any] | Iterable[str]) -> str:
    """Return the definition of a table, its numbers as they are or as text."""
    if isinstance(numbers, np.ndarray):
        floats = {"float": "float32", "double": "float64"}.get(kind)
        texts = [literal(n, floats) if floats else str(int(n)) for n in numbers.ravel()]
    else:
        texts = list(numbers)
    body = textwrap.fill(", ".join(texts), WIDTH, initial_indent="    ", subsequent_indent="    ")
    return f"static const {kind} {name}[{len(texts)}] = {{\n{body}\n}};\n"


def quoted(text: Any) -> str:
    """Return a name, or a label, such that it can neither end a comment nor begin one."""
    plain = ascii(text)
    if len(plain) > 80:
        plain = f"{plain[:76]}...{plain[0]}"
    for pair in ("*/", "/*", "??"):
        # Three of a kind have two pairs in them.
        while pair in plain:
            plain = plain.replace(pair, f"{pair[0]} {pair[1]}")
    return plain


def comment(lines: Iterable[str]) -> str:
    """Return paragraphs as a comment; what they quote went through :func:`quoted`."""
    wrapped = [
        part
        for line in lines
        for part in textwrap.wrap(
            line,
            WIDTH - 3,
            subsequent_indent="  " if line.startswith("  ") else "",
            break_long_words=False,
            break_on_hyphens=False,
        )
        or [""]
    ]
    return "/* " + "\n".join(f" * {line}".rstrip() for line in wrapped)[3:] + "\n */\n"
