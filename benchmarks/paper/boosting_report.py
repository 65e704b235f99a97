"""What `boosting.py` found: tables, and the paper's figure 5."""

import numpy as np
import pandas as pd
from authors import BUDGET_COLUMNS, published
from bagging_report import boxes
from boosting import AUTHORS, BUDGETS, PICTURED, TIME_LIMIT
from compare import (
    ORDER,
    UNIT,
    common_sets,
    count,
    mean_curve,
    median_cells,
    nodes_for,
    over_full,
    over_paper,
    percent,
)
from protocols import PROTOCOLS
from style import BLUE, GOLD, GREY, PALE_BLUE, PALE_RED, RED, figure, plain, save, table
from systems import COMPETITORS, OURS
from units import Settings

LEVELS = (*map(str, BUDGETS), "of best")
TEXT = {"best subset": {"50": 43.0}}
"""Increase of test error over the paper's method in %, as its text says it."""


def report(settings: Settings) -> list[str]:
    """Return Markdown lines, and draw the figure."""
    rows = pd.read_csv(settings.results / "boosting.csv", dtype={"by": str})
    draw(rows, settings)
    sets, folds = rows.data.nunique(), rows.fold.nunique()
    lines = [
        "## Compact boosting ensembles (section 4.2)",
        "",
        f"Boosting with 250 trees of depth 5, rate 0.1, a quarter of the rows for each tree, on "
        f"{sets} data sets, {folds} fold(s) of five each.",
        "",
        "![Boosting](boosting.png)",
        "",
    ]
    lines += best_models(rows)
    lines += within_budgets(rows, settings)
    return lines + each_set(rows, settings)


def best_models(rows: pd.DataFrame) -> list[str]:
    """Tabulate the best model of each method."""
    lines = []
    for protocol in PROTOCOLS:
        part = rows[(rows.protocol == protocol) & (rows.by == "best")]
        where = (
            "chosen and scored on the same rows, as the authors do"
            if protocol == "paper"
            else "chosen on validation rows, scored on test rows"
        )
        lines += [f"**Best models, protocol {protocol}**, {where}; medians, and mean nodes.", ""]
        cells = []
        for method in (m for m in ORDER if (part.method == m).any()):
            mine = part[part.method == method]
            cells.append(
                [
                    method,
                    percent(over_full(mine).median()),
                    count(mine.nodes.median()),
                    count(mine.nodes.mean()),
                    count(mine.trees.median()),
                    f"{(mine.full_nodes / mine.nodes.clip(lower=1)).median():,.3g}",
                ]
            )
        head = ["", "test error over the full model", "nodes", "mean nodes", "trees"]
        lines += table([*head, "times smaller"], cells)
    clean = rows[(rows.protocol == "clean") & (rows.by == "best")].groupby("method").nodes.mean()
    others = " and ".join(f"{m} {clean[m]:,.0f}" for m in ("fewer trees", "LASSO"))
    return [
        *lines,
        f"On average, best models of layer + ridge have {clean['layer + ridge']:,.0f} nodes, of "
        f"{others} (clean protocol).",
        "",
    ]


def within_budgets(rows: pd.DataFrame, settings: Settings) -> list[str]:
    """Tabulate what others reach within budgets of nodes."""
    mine = over_paper(rows[rows.by.isin(LEVELS)], [*UNIT, "by"])
    mine = mine.assign(value=mine.increase)
    files, mine = common_sets(published(settings.published, "boosting"), mine)
    lines = [
        "**Within budgets of nodes.** Increase of test error over layer + ridge, median over data "
        "sets of medians over folds. In the clean protocol the best by validation rows, in the "
        "authors' the largest. Best subsets are solved once, for the whole budget, and have "
        f"{TIME_LIMIT:g} s each after a heuristic. {mine.data.nunique()} data sets that the "
        "authors' files have too, if they are there.",
        "",
    ]
    cells = []
    for method in (*COMPETITORS, *OURS):
        row = [method, percent(TEXT.get(method, {}).get("50", np.nan))]
        for level in LEVELS:
            column = f"b{level.removeprefix('of ')}_{BUDGET_COLUMNS.get(method)}_pctinc_med"
            known = files[column].median() if column in files else np.nan
            row.append(percent(float(known)))
        for protocol in PROTOCOLS:
            part = mine[mine.protocol == protocol]
            row += median_cells(part, method, "by", LEVELS, percent)
        cells.append(row)
    heads = ("authors' files", "paper protocol", "clean protocol")
    head = ["", "paper's text, 50", *(f"{head}, {level}" for head in heads for level in LEVELS)]
    return lines + table(head, cells)


def each_set(rows: pd.DataFrame, settings: Settings) -> list[str]:
    """Tabulate every data set beside the authors' figures, paper protocol."""
    files = published(settings.published, "boosting").set_index("dataset")
    part = rows[rows.protocol == "paper"]
    methods = ("layer + ridge", "subtree + refit")
    cells, ratios, wins = [], [], []
    for data in rows.data.unique():
        known = files.loc[data] if data in files.index else None
        row = [data]
        for budget in BUDGETS:
            errors = [
                part[
                    (part.data == data) & (part.by == str(budget)) & (part.method == method)
                ].test.mean()
                for method in methods
            ]
            theirs = np.nan if known is None else known[f"b{budget}_fp"]
            row.append(" / ".join("-" if np.isnan(e) else f"{e:.3f}" for e in (theirs, *errors)))
            if known is not None:
                wins.append([error <= theirs for error in errors])
        sizes = [np.nan, np.nan]
        if known is not None:
            error = known["bbest_fp"]
            sizes = [nodes_for(mean_curve(rows, data, "paper", m), error) for m in methods]
            ratios.append([size / known.fp_nodes for size in sizes])
        nodes = np.nan if known is None else known.fp_nodes
        cells.append([*row, " / ".join(count(n) for n in (nodes, *sizes))])
    lines = [
        "**Every data set**, paper protocol, means over folds: test errors within budgets of nodes "
        "of the authors' runs / our layer + ridge / subtree + refit; and the nodes of the authors' "
        "best models / the smallest budgets of a grid at which ours have no more error than those, "
        "on scoring rows.",
        "",
        *table(["", *(f"{b:,}" for b in BUDGETS), "nodes at the error of their best"], cells),
    ]
    if ratios:
        won, ratio = np.array(wins).mean(axis=0), np.median(np.array(ratios), axis=0)
        lines += [
            f"Within budgets, layer + ridge is no worse than the authors' runs on "
            f"{100 * won[0]:.0f} % of data sets and budgets, subtree + refit on "
            f"{100 * won[1]:.0f} %. For the error of the authors' best models they need "
            f"{ratio[0]:.2g} and {ratio[1]:.2g} times their nodes in the median. The rows of folds "
            "are not theirs, whose seed is not known.",
            "",
        ]
    return lines


def draw(rows: pd.DataFrame, settings: Settings) -> None:
    """Draw the paper's figure 5: paths, sizes of the best models, errors within budgets."""
    fig = figure(11, 7.6)
    axes = fig.subplots(2, 2)
    clean = rows[rows.protocol == "clean"]
    colours = dict(zip(AUTHORS, (BLUE, GREY, GOLD), strict=True))
    pictured = [data for data in PICTURED if (clean.data == data).any()]
    for axis in axes[0, len(pictured) :]:
        axis.set_axis_off()
    for axis, data in zip(axes[0], pictured, strict=False):
        for method, colour in colours.items():
            part = clean[(clean.data == data) & (clean.method == method)]
            points = part[(part.by == "path") & (part.trees > 0)]
            axis.scatter(points.nodes, points.test, s=7, color=colour, label=method, alpha=0.6)
        axis.set_xscale("log")
        axis.set_xlabel("nodes")
        axis.set_ylabel("test error")
        plain(axis, data)
    if pictured:
        axes[0, 0].legend(frameon=False, fontsize=9)
    best = clean[clean.by == "best"]
    shown = (*AUTHORS, "subtree + refit")
    fills = ((BLUE, PALE_BLUE), (GREY, "#dddddd"), (GOLD, "#efe3b8"), (RED, PALE_RED))
    axis = axes[1, 0]
    for i, (method, fill) in enumerate(zip(shown, fills, strict=True)):
        boxes(axis, [best[best.method == method].nodes], [i], fill, method, 0.5)
    axis.set_yscale("log")
    axis.set_xticks(range(len(shown)), [m.replace(" + ", "\n+ ") for m in shown])
    plain(axis, "Nodes of the best models")
    others = over_paper(clean[clean.by.isin(LEVELS)], [*UNIT, "by"])
    axis = axes[1, 1]
    shown = (*COMPETITORS, "subtree + refit")
    fills = ((GREY, "#eeeeee"), (GREY, "#cccccc"), (GOLD, "#efe3b8"), (BLUE, PALE_BLUE))
    for i, (method, fill) in enumerate(zip(shown, (*fills, (RED, PALE_RED)), strict=True)):
        part = others[others.method == method]
        groups = [part[part.by == level].increase.dropna() for level in LEVELS]
        boxes(axis, groups, np.arange(len(LEVELS)) + 0.16 * (i - 2), fill, method, 0.13)
    axis.axhline(0.0, color=BLUE, linewidth=1)
    axis.set_yscale("symlog", linthresh=100)
    axis.set_xticks(range(len(LEVELS)), [f"{b} nodes" for b in BUDGETS] + ["of best"])
    plain(axis, "Increase of test error over layer + ridge, %")
    axis.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.6, 1.0))
    fig.suptitle(
        f"Pruned boosting, {rows.data.nunique()} data sets x {rows.fold.nunique()} folds, "
        "clean protocol",
        x=0.01,
        ha="left",
    )
    save(fig, settings.results / "boosting.png")
