"""What `computation_time.py` found, beside the paper's own table of times."""

import numpy as np
import pandas as pd
from relaxation import OVER_TIME, SOLVED
from units import Settings

ROWS = (1145, 15437, 50164)
TREES = (100, 500, 1000)
PAPER_LIMIT = 1800.0
PAPER = {
    "single": [[0.1, 0.8, 1.5], [0.2, 0.9, 2.2], [3.0, 69.7, 131.0]],
    "path-random": [[0.2, 1.5, 4.3], [2.3, 11.6, 24.2], [10.2, 106.3, 206.5]],
    "ecos": [[9.7, 829.8, np.inf], [184.3, np.inf, np.inf], [np.inf] * 3],
    "mosek": [[7.0, 21.4, 59.8], [140.5, 874.4, np.inf], [np.inf] * 3],
}
"""Seconds in the paper's table, a line for each of ROWS; infinite where over its limit."""

RELAXED = {
    "ecos": "ECOS",
    "clarabel": "Clarabel",
    "mosek": "MOSEK",
    "clarabel-gram": "Clarabel on the Gram matrix",
}
TITLES = {
    "single": "one solve",
    "single-search": "with local search",
    "path": "path of 100",
    "path-random": "path with the paper's local search",
    "path-search": "path with ours",
} | {solver: f"relaxed, {name}" for solver, name in RELAXED.items()}

OF_PAPER = [
    ("single", "single", "One solve"),
    ("path-random", "path-random", "A path with the paper's local search"),
    ("path-search", "path-random", "A path with our own, more thorough search"),
]
"""Times of ours, which of the paper's they are held against, and how to say that."""

INTRODUCTION = """\
Forests of depth 6, alpha = 1. Seconds in all, in parentheses those of preparation: for us, sending
the rows down the trees and posing the problem; for the solvers of the relaxed problem, building
their matrices. After the stroke, the paper's figure. Its data are not named, only their sizes; ours
are generated, with ten columns. Its machine was another one, so only ratios compare. The relaxed
problem is the paper's benchmark: depths need not be whole, so its optimum is a lower bound. ECOS,
Clarabel and MOSEK solve it as a second-order cone program on all rows, as in the paper; the last
column is the same problem as a quadratic program on the Gram matrix, which the paper does not try.
"""


def paper_seconds(solver: str, rows: int, trees: int) -> float:
    """Return the paper's figure: NaN if there is none, infinite if it is over its limit."""
    if solver not in PAPER or rows not in ROWS or trees not in TREES:
        return np.nan
    return PAPER[solver][ROWS.index(rows)][TREES.index(trees)]


def short(number: float) -> str:
    return f"{number:,.0f}" if number >= 1000 else f"{number:.3g}"


def span(numbers: pd.Series, suffix: str = "") -> str:
    low, high = short(numbers.min()), short(numbers.max())
    return f"{low}{suffix}" if low == high else f"{low} to {high}{suffix}"


def table(rows: list[list[str]]) -> list[str]:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return [lines[0], "|---" * len(rows[0]) + "|", *lines[1:], ""]


def results(settings: Settings) -> pd.DataFrame:
    """Return what was measured, with the time in all, the paper's, and our solve's at that size."""
    done = pd.read_csv(settings.results / "timing.csv")
    done["total"] = done.seconds + done.preparation.fillna(0.0)
    done["paper"] = [
        paper_seconds(*key)
        for key in done[["solver", "rows", "trees"]].itertuples(index=False, name=None)
    ]
    single = done[done.solver == "single"][["rows", "trees", "total", "objective"]]
    return done.merge(single, on=["rows", "trees"], suffixes=("", "_single"))


def time_cell(line: pd.Series) -> str:
    text = str(line.status)
    if line.status == SOLVED:
        text = f"{short(line.total)} ({short(line.preparation)})"
    elif line.status.startswith(OVER_TIME):
        text = f"> {short(line.seconds)}" + line.status.removeprefix(OVER_TIME)
    if np.isnan(line.paper):
        return text
    return f"{text} / {short(line.paper) if line.paper < np.inf else f'> {short(PAPER_LIMIT)}'}"


def times(done: pd.DataFrame) -> list[str]:
    rows = [["rows x trees", *TITLES.values()]]
    for (m, n), cell in done.groupby(["rows", "trees"]):
        lines = cell.set_index("solver")
        cells = [time_cell(lines.loc[name]) if name in lines.index else "" for name in TITLES]
        rows.append([f"{m:,} x {n:,}", *cells])
    return table(rows)


def comparisons(done: pd.DataFrame) -> list[str]:
    """Say how long each solver of the relaxed problem takes, in units of our solve."""
    lines = []
    for solver, title in RELAXED.items():
        mine = done[done.solver == solver]
        solved = mine[mine.status == SOLVED]
        text = f"- {title} solved {len(solved)} of {len(mine)} relaxed problems"
        if len(solved):
            text += f", in {span(solved.total / solved.total_single)} times what our solve takes"
        stopped = mine[mine.status == OVER_TIME]
        if len(stopped):
            text += (
                f"; it was stopped after {span(stopped.seconds, ' s')}, which is "
                f"{span(stopped.seconds / stopped.total_single)} times as long as ours"
            )
        known = mine[np.isfinite(mine.paper)]
        if len(known):
            base = [
                paper_seconds("single", m, n) for m, n in zip(known.rows, known.trees, strict=True)
            ]
            text += f" (in the paper, {span(known.paper / base)} times, where it came to an end)"
        others = mine.status[~mine.status.isin([SOLVED, OVER_TIME])].value_counts()
        text += "".join(f"; {count} {status}" for status, count in others.items())
        lines.append(text + ".")
    for solver, paper, what in OF_PAPER:
        mine = done[done.solver == solver]
        seconds = [paper_seconds(paper, *key) for key in zip(mine.rows, mine.trees, strict=True)]
        ratio = span(seconds / mine.total)
        lines.append(f"- {what}: the paper's figure, on its machine, is {ratio} times ours.")
    return [*lines, ""]


def gaps(done: pd.DataFrame) -> list[str]:
    """Set the objectives reached beside the greatest lower bound that any solver has proven."""
    best = done.groupby(["rows", "trees"]).bound.max().rename("best")
    known = done.drop(columns="bound").merge(best, on=["rows", "trees"]).dropna(subset="best")
    if not len(known):
        return ["No relaxed problem was solved, so there is no bound on our objective.", ""]
    known["gap"] = known.objective / known.best - 1.0
    wide = known.pivot(index=["rows", "trees", "best"], columns="solver")
    plain, searched = wide["gap", "single"], wide["gap", "single-search"]
    wrong = int(((plain < 0.0) | (searched < 0.0)).sum())
    rows = [["rows x trees", "bound", "one solve", "gap", "with local search", "gap"]]
    for (m, n, bound), line in wide.iterrows():
        row = [f"{m:,} x {n:,}", f"{bound:.7g}"]
        for solver in ("single", "single-search"):
            row += [f"{line['objective', solver]:.7g}", f"{line['gap', solver]:.2g}"]
        rows.append(row)
    return [
        f"Solved, the relaxed problem proves a lower bound of the objective: {len(wide)} of "
        f"{len(best)} times. Our objective is below that bound, which would be an error, {wrong} "
        f"times. It is above the bound, and so above the best pruning, by at most "
        f"{plain.max():.2g} of it without local search and {searched.max():.2g} with it.",
        "",
        *table(rows),
    ]


def report(settings: Settings) -> list[str]:
    """Return the table and what follows from it, as lines of Markdown."""
    done = results(settings)
    return [
        "## Computation time (section 3.3)",
        "",
        INTRODUCTION,
        *times(done),
        *comparisons(done),
        *gaps(done),
    ]
