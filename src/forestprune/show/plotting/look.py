"""What plots have in common: colours, frames, and how names and numbers are written."""

import math
import re
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from forestprune.forest.forest import Forest
from forestprune.text.names import column_names
from forestprune.text.rounding import NEAR_ZERO, rounded_sign

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, RED, GREY, GOLD, INK = "#2f6f9f", "#c0553b", "#8c8c8c", "#c9a227", "#333333"
VIOLET = "#8145a8"
PALE_BLUE, PALE_RED, PALE_GREY = "#cfe0ec", "#f3d6cd", "#d9d9d9"

VERBATIM: dict[str, Any] = {"parse_math": False, "usetex": False}
"""For texts with names in them, whose dollar signs are not meant as formulas."""

_WORD = r"(?:[A-Z]+(?![a-z])|[A-Z]?[^A-Z\W_]+|[^\w]|_)[\W_]*"
"""A word and what separates it from the next; a capital letter begins a new one."""

ELLIPSIS, MINUS = "\N{HORIZONTAL ELLIPSIS}", "\N{MINUS SIGN}"


def open_axes(ax: "Axes | None", width: float, height: float) -> "Axes":
    """Return `ax`, or the axes of a new figure of this size in inches."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "Plots need matplotlib, which is not installed: pip install matplotlib"
        ) from error
    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def frame(ax: "Axes", title: str, grid: str = "both") -> None:
    """Set a title, and keep only what helps to read of the frame and the grid."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color("#bbbbbb")
    ax.tick_params(which="both", color="#bbbbbb", labelcolor=INK, labelsize=9)
    ax.xaxis.label.set_color(INK)
    ax.yaxis.label.set_color(INK)
    if grid in ("x", "y", "both"):
        ax.grid(axis=grid, alpha=0.25)  # type: ignore[arg-type]
    ax.set_axisbelow(True)
    ax.set_title(title, loc="left", fontsize=11, color=INK, linespacing=1.5, **VERBATIM)


def legend(ax: "Axes", **options: Any) -> None:
    """Add a legend, with names exactly as they are."""
    shown = ax.legend(frameon=False, fontsize=9, labelcolor=INK, **options)
    for text in shown.get_texts():
        text.set(**VERBATIM)


def count(number: int, noun: str) -> str:
    """Return a number with its noun, such as "1 tree" or "2,000 trees"."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def short_number(x: float, digits: int = 4) -> str:
    """Return a number as one would write it by hand."""
    if abs(x) < NEAR_ZERO:
        return "0"
    comma = "," if abs(x) >= 10_000 else ""  # 2010 may be a year
    text = f"{x:{comma}.1f}".removesuffix(".0") if 1000 <= abs(x) < 1e9 else f"{x:.{digits}g}"
    return text.replace("-", MINUS)


def short_threshold(threshold: float) -> str:
    """Return what x is compared with as one would write it by hand."""
    text = short_number(threshold)
    sign = rounded_sign(threshold, float(text.replace(MINUS, "-").replace(",", "")))
    return f"{sign.replace('<=', '≤')} {text}"


def aligned_number(x: float, largest: float) -> str:
    """Return a number with its sign and as many decimals as the largest of some needs."""
    decimals = 2 - math.floor(math.log10(largest)) if largest > 0 else 0
    fits = -4 <= decimals <= 4
    text = f"{x:+,.{max(decimals, 0)}f}" if fits else f"{x:+.2g}"
    return text.replace("-", MINUS)


def short_names(forest: Forest, columns: Iterable[int], width: int) -> dict[int, str]:
    """Return the names of some columns, each shortened to at most `width` letters.

    Those that then look alike are followed by the number of their column.
    """
    names = column_names(forest)
    short = {column: shortened(_on_one_line(names[column]), width) for column in columns}
    count = Counter(short.values())
    return {
        column: name if count[name] == 1 else f"{name} [{column}]" for column, name in short.items()
    }


def even_lines(text: str, width: int) -> list[str]:
    """Break a text into lines of about the same length, so that no word stands alone.

    Lines end after spaces, underscores and the like, or before a capital letter.
    """
    words = re.findall(_WORD, text)
    lines = _filled(words, width)
    narrower = (_filled(words, less) for less in range(max(map(len, words), default=1), width))
    return next((other for other in narrower if len(other) == len(lines)), lines)


def _filled(words: list[str], width: int) -> list[str]:
    lines = [""]
    for word in words:
        pieces = [word[i : i + width] for i in range(0, len(word), width)]
        for piece in pieces:
            if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > width:
                lines.append("")
            lines[-1] += piece
    return [line.strip() for line in lines]


def _on_one_line(name: str) -> str:
    return " ".join(printable(name).split()) or repr(name)


def printable(text: str) -> str:
    """Return a text with spaces for characters that do not print."""
    return "".join(c if c.isprintable() else " " for c in text)


def shortened(name: str, width: int) -> str:
    """Return a text of at most `width` letters: the beginning and the end of a longer one."""
    if len(name) <= width:
        return name
    end = width // 3
    return name[: width - end - 1].rstrip() + ELLIPSIS + name[-end:].lstrip()
