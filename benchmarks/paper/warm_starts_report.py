"""What `warm_starts.py` found: tables, what they say of the paper's claims, and its figure 3."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import style
import units
from matplotlib.ticker import LogLocator
from warm_starts import QUIET, SWEEPS

SHOWN = ("us_crime", "boosted")
DRAWN = ("cold", "warm", "warm + random", "warm + ours")
AT_ONCE = 1.0
"""Passes up to which a solve has ended at once: one sweep to see that nothing changes, or less."""

SAME = 1e-4
"""Objectives that differ by less than this share are alike."""


def report(settings: units.Settings) -> list[str]:
    rows = _compared(pd.read_csv(settings.results / "warm_starts.csv"))
    _draw(rows, settings.results / "warm_starts.png")
    lines = [
        "## Warm starts (figure 3)",
        "",
        f"{rows.step.nunique()} alphas from where nothing is kept down to the full model. Passes "
        "are sweeps over all trees, on the whole path and in the median an alpha; looks what was "
        "really done of them, where sweeps pass over trees that certainly stay as they are. Ends "
        "at once: the share of alphas after one pass or less. Models: how often the model is "
        "another than at the alpha before. Objectives are relative to the best that any way found "
        "at the same alpha. 3 quiet: stops as the authors' code does, after three trees in a row "
        "that stay as they are; the others after a whole sweep without a change. Random: the "
        "paper's local search, until it fails once, or five times in a row.",
        "",
        "![Passes and objectives](warm_starts.png)",
        "",
    ]
    for (data, model), part in rows.groupby(["data", "model"], sort=False):
        lines += [f"### {data}, {model}", "", *_table(part)]
    return [*lines, *_verdict(rows)]


def _compared(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the alphas that every way has reached, with the excess over the best objective."""
    steps = rows.groupby(["data", "model", "way"]).step.max().groupby(["data", "model"]).min()
    last = rows.set_index(["data", "model"]).index.map(steps)
    rows = rows[rows.step.to_numpy() <= last.to_numpy()]
    best = rows.groupby(["data", "model", "step"]).objective.transform("min")
    return rows.assign(excess=rows.objective / best - 1.0, best=best)


def _table(part: pd.DataFrame) -> list[str]:
    header = [
        "",
        "passes",
        "looks",
        "median",
        "ends at once",
        "models",
        "objective / best: mean",
        "worst",
    ]
    cells = []
    for way in (*SWEEPS, *QUIET):
        mine = part[part.way == way]
        cells.append(
            [
                way,
                f"{mine.passes.sum():,.0f}",
                f"{mine.looks.sum():,.0f}",
                f"{mine.passes.median():.3g}",
                f"{100 * (mine.passes <= AT_ONCE).mean():.0f} %",
                (mine.moved > 0).sum(),
                f"{1 + mine.excess.mean():.4f}",
                f"{1 + mine.excess.max():.4f}",
            ]
        )
    return style.table(header, cells)


def _verdict(rows: pd.DataFrame) -> list[str]:
    lines = []
    for model, part in rows.groupby("model", sort=False):
        by_way = dict(list(part.groupby("way", sort=False)))
        lines.append(f"- {model.capitalize()}, all data sets:")
        lines += [f"  - {saying}." for saying in _sayings(by_way)]
    return [
        "The paper says that warm starts alone get stuck, that their path is nearly piecewise and "
        "their solves end at once, and that with local search the path is like the cold one with "
        "fewer passes.",
        "",
        *lines,
        "",
    ]


def _sayings(by_way: dict[str, pd.DataFrame]) -> list[str]:
    """Return what the numbers say of each claim."""
    cold, warm, random = by_way["cold"], by_way["warm"], by_way["warm + random"]
    quiet_cold, quiet_warm, quiet_random = (by_way[way] for way in QUIET)
    ours = by_way["warm + ours"]
    return [
        f"With sweeps to the end warm starts alone {_stuck(warm, cold)}",
        f"With the authors' stop they {_stuck(quiet_warm, quiet_cold)}",
        f"The paper's local search takes {_times(random, cold)} of cold starts, objectives "
        f"{_level(random, cold)} theirs; with the authors' stop "
        f"{_times(quiet_random, quiet_cold)}, objectives {_level(quiet_random, quiet_cold)} theirs",
        f"Our search takes {_times(ours, cold)} ({_times(ours, cold, 'looks')}), objectives "
        f"{_level(ours, cold)} cold ones",
        f"Cold starts with the authors' stop end {_level(quiet_cold, cold)} those of whole sweeps",
    ]


def _stuck(warm: pd.DataFrame, cold: pd.DataFrame) -> str:
    at_once = (warm.passes <= AT_ONCE).mean()
    level = warm.objective.to_numpy() / cold.objective.to_numpy() - 1.0
    verb = "get stuck" if level.mean() > SAME else "do not get stuck"
    return (
        f"{verb} (objectives {_level(warm, cold)} cold ones, worse at "
        f"{100 * (level > SAME).mean():.0f} % of alphas, {100 * at_once:.0f} % end at once, "
        f"{_times(warm, cold)})"
    )


def _times(mine: pd.DataFrame, other: pd.DataFrame, what: str = "passes") -> str:
    return f"{mine[what].sum() / other[what].sum():.2f} times the {what}"


def _level(mine: pd.DataFrame, other: pd.DataFrame) -> str:
    mean = float(np.mean(mine.objective.to_numpy() / other.objective.to_numpy())) - 1.0
    if abs(mean) < SAME:
        return "level with"
    return f"{100 * abs(mean):.2f} % {'above' if mean > 0 else 'below'}"


def _draw(rows: pd.DataFrame, file: Path) -> None:
    data, model = SHOWN if SHOWN[0] in set(rows.data) else (rows.data.iloc[0], "boosted")
    one = rows[(rows.data == data) & (rows.model == model)]
    fig = style.figure(15, 5.6)
    fig.suptitle(
        f"Passes and objectives along a path: {data}, {model}",
        x=0.012,
        ha="left",
        fontsize=13,
        color=style.INK,
    )
    left, right = fig.subfigures(1, 2, width_ratios=[4, 3.1])
    _draw_block(left, one, DRAWN, style.BLUE, "until a whole sweep changes nothing")
    _draw_block(right, one, QUIET, style.RED, "until three updates in a row do not (authors' code)")
    style.save(fig, file)


def _draw_block(
    fig: Any, one: pd.DataFrame, ways: tuple[str, ...], colour: str, title: str
) -> None:
    axes = fig.subplots(2, len(ways), sharey="row", squeeze=False)
    fig.suptitle(title, fontsize=11, color=colour)
    for (top, bottom), way in zip(axes.T, ways, strict=True):
        mine = one[one.way == way]
        top.plot(mine.alpha, mine.best, color=style.GREY, lw=1.5, zorder=1)
        top.scatter(mine.alpha, mine.objective, s=7, color=colour, zorder=2)
        top.set_xscale("log")
        top.xaxis.set_major_locator(LogLocator(100))
        top.minorticks_off()
        style.plain(top, way.removeprefix("3 quiet: "))
        top.set_xlabel("alpha", fontsize=9)
        highest = max(float(mine.passes.max()), 2.0)
        bottom.hist(mine.passes, bins=np.linspace(0, highest, 25), color=colour)
        style.plain(bottom)
        bottom.set_xlim(0, None)
        bottom.set_xlabel(f"passes an alpha ({mine.passes.sum():,.0f} in all)", fontsize=9)
    axes[0, 0].set_ylabel("objective (grey: best found)", fontsize=9)
    axes[1, 0].set_ylabel("alphas", fontsize=9)
