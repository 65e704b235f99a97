"""How results are shown: Markdown tables, and figures that look alike."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

BLUE, RED, GREY, GOLD, INK = "#2f6f9f", "#c0553b", "#9a9a9a", "#c9a227", "#333333"
PALE_BLUE, PALE_RED = "#cfe0ec", "#f3d6cd"

mpl.use("Agg")


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """Return the lines of a Markdown table, with an empty one behind."""
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return [*lines, ""]


def figure(width: float, height: float) -> Figure:
    """Return an empty figure, in inches."""
    return Figure(figsize=(width, height), layout="constrained")


def plain(axis: Axes, title: str = "") -> None:
    """Leave of the frame and the grid what helps to read."""
    axis.spines[["top", "right"]].set_visible(False)
    axis.spines[["left", "bottom"]].set_color("#bbbbbb")
    axis.tick_params(color="#bbbbbb", labelcolor=INK, labelsize=9)
    axis.grid(alpha=0.25)
    axis.set_axisbelow(True)
    axis.set_title(title, loc="left", fontsize=11, color=INK)


def save(fig: Figure, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(file, dpi=130, facecolor="white")
