"""What `bagging.py` found: tables, and the paper's figure 4."""

import numpy as np
import pandas as pd
from authors import BAGGING_TEXT, COLUMNS, published
from bagging import PHIS, TIME_LIMIT
from compare import (
    ORDER,
    UNIT,
    common_sets,
    count,
    error_at,
    mean_curve,
    median_cells,
    nodes_for,
    over_full,
    over_paper,
    percent,
)
from protocols import PROTOCOLS
from style import BLUE, GREY, INK, PALE_BLUE, PALE_RED, RED, figure, plain, save, table
from systems import COMPETITORS, OURS
from units import Settings


def report(settings: Settings) -> list[str]:
    """Return Markdown lines, and draw the figure."""
    rows = pd.read_csv(settings.results / "bagging.csv")
    draw(rows, settings)
    sets, folds = rows.data.nunique(), rows.fold.nunique()
    lines = [
        "## Compact bagging ensembles (section 4.1)",
        "",
        f"Random forests of 100 trees, depth at most 20, on {sets} data sets, {folds} fold(s) of "
        "five each. For each phi, the smallest model whose error on validation rows is at most phi "
        "above the full forest's; if there is none, the best (layer + ridge in the authors' "
        "protocol: the largest alpha, else the smallest). Medians over data sets of medians over "
        "folds.",
        "",
        "![Bagging](bagging.png)",
        "",
    ]
    lines += within_phi(rows)
    lines += at_equal_size(rows, settings)
    return lines + each_set(rows, settings)


def within_phi(rows: pd.DataFrame) -> list[str]:
    """Tabulate how much worse and how much smaller models become that a phi allows."""
    lines = []
    mine = rows[rows.by == "phi"]
    for protocol in PROTOCOLS:
        part = mine[mine.protocol == protocol]
        lines += [
            f"**Protocol {protocol}.** Increase of test error over the full forest; times smaller, "
            "in nodes; mean depth of the trees left, for phi = "
            + ", ".join(map(str, PHIS))
            + "; and the share of cases in which a model comes within phi.",
            "",
        ]
        cells = []
        for method in (m for m in ORDER if (part.method == m).any()):
            measures = (
                (over_full(part), percent),
                (part.full_nodes / part.nodes.clip(lower=1), lambda x: f"{x:,.3g}"),
                (part.depths.map(mean_depth), lambda x: f"{x:.2g}"),
            )
            row = [method]
            for values, show in measures:
                row += median_cells(part.assign(value=values), method, "phi", PHIS, show)
            reached = part[part.method == method].eval("val <= full_val + phi + 1e-6").mean()
            cells.append([*row, f"{100 * reached:.0f} %"])
        head = ["", *(f"error {phi}" for phi in PHIS), *(f"smaller {phi}" for phi in PHIS)]
        lines += table([*head, *(f"depth {phi}" for phi in PHIS), "reached"], cells)
    return lines


def mean_depth(counts) -> float:
    """Return the mean depth of a list such as "1:12 2:30"."""
    if not isinstance(counts, str) or not counts:
        return np.nan
    depths, trees = np.array([pair.split(":") for pair in counts.split()], dtype=float).T
    return float(np.average(depths, weights=trees))


def at_equal_size(rows: pd.DataFrame, settings: Settings) -> list[str]:
    """Tabulate what other methods reach with as many nodes as the paper's keeps."""
    mine = over_paper(rows[rows.by == "budget"], [*UNIT, "phi"])
    mine = mine.assign(value=mine.increase)
    files = published(settings.published, "bagging")
    files, mine = common_sets(files, mine)
    lines = [
        "**At equal size.** Increase of test error over layer + ridge, the paper's method, within "
        "the nodes that it keeps at each phi; best by validation rows. Best subsets are solved "
        f"once, for the whole budget, and have {TIME_LIMIT:g} s each after a heuristic (the "
        f"authors: 60 s). {mine.data.nunique()} data sets that the authors' files have too, if "
        "they are there.",
        "",
    ]
    cells = []
    for method in (*COMPETITORS, *OURS):
        row = [method]
        row += [percent(x) for x in BAGGING_TEXT.get(method, (np.nan,) * 3)]
        column = f"{COLUMNS.get(method)}_inc_med"
        for phi in PHIS:
            known = files[files.phi == phi][column] if column in files else pd.Series(dtype=float)
            row.append(percent(float(known.median()) if len(known) else np.nan))
        for protocol in PROTOCOLS:
            part = mine[mine.protocol == protocol]
            row += median_cells(part, method, "phi", PHIS, percent)
        cells.append(row)
    heads = ("paper's text", "authors' files", "paper protocol", "clean protocol")
    lines += table(["", *(f"{head}, {phi}" for head in heads for phi in PHIS)], cells)
    solved = rows[(rows.method == "best subset") & rows.status.notna()]
    proved = (solved.status == "optimal").mean()
    none = (rows[rows.method == "best subset"].nodes == 0).mean()
    gap = solved.gap.median()
    return [
        *lines,
        f"Of the best subsets, {100 * none:.0f} % are empty. Of those that had to be searched for, "
        f"{100 * proved:.0f} % were proved to be best in the time given, and the median gap is "
        f"{100 * gap:.2g} %.",
        "",
    ]


def each_set(rows: pd.DataFrame, settings: Settings) -> list[str]:
    """Tabulate every data set beside the authors' figures, phi = 0.01, paper protocol."""
    files = published(settings.published, "bagging")
    files = files[files.phi == PHIS[0]].set_index("dataset")
    part = rows[(rows.protocol == "paper") & (rows.by == "phi") & (rows.phi == PHIS[0])]
    cells, better, smaller = [], [], []
    for data in rows.data.unique():
        paper, ours = (
            part[(part.data == data) & (part.method == method)]
            for method in ("layer + ridge", "subtree + refit")
        )
        row = [data, f"{paper.full_test.mean():.4f}", f"{paper.full_nodes.mean():,.0f}"]
        row += [f"{paper.test.mean():.4f}", f"{paper.nodes.mean():,.0f}"]
        row += [f"{ours.test.mean():.4f}", f"{ours.nodes.mean():,.0f}"]
        if data in files.index:
            known = files.loc[data]
            curves = [
                mean_curve(rows, data, "paper", m) for m in ("layer + ridge", "subtree + refit")
            ]
            errors = [error_at(curve, known.fp_nodes) for curve in curves]
            sizes = [nodes_for(curve, known.fp_mse) for curve in curves]
            noise = known.fp_mse_sd / np.sqrt(5)
            better.append([error <= known.fp_mse + 2 * noise for error in errors])
            smaller.append([size / known.fp_nodes for size in sizes])
            row += [f"{known.fp_mse:.4f} ± {noise:.4f}", f"{known.fp_nodes:,.0f}"]
            row += [f"{error:.4f}" for error in errors] + [count(size) for size in sizes]
        else:
            row += ["-"] * 6
        cells.append(row)
    lines = [
        "**Every data set**, paper protocol, phi = 0.01, means over folds: test error and nodes of "
        "the full forest, of layer + ridge, of subtree + refit, and of the authors' runs (± their "
        "standard error); then our two methods' errors at the authors' size, and their sizes at "
        "the authors' error (smallest budget of a grid whose mean error is no higher).",
        "",
    ]
    head = ["", "full", "nodes", "layer", "nodes", "subtree", "nodes", "authors", "nodes"]
    head += ["layer at their size", "subtree", "layer's nodes at their error", "subtree's"]
    lines += table(head, cells)
    if better:
        good, ratio = np.array(better), np.array(smaller)
        lines += [
            f"At the authors' size, layer + ridge is no worse than theirs by more than two "
            f"standard errors on {good[:, 0].sum()} of {len(good)} sets, subtree + refit on "
            f"{good[:, 1].sum()}. At the authors' error they need {np.median(ratio[:, 0]):.2g} and "
            f"{np.median(ratio[:, 1]):.2g} times the authors' nodes in the median. The rows of "
            "folds are not theirs, whose seed is not known.",
            "",
        ]
    return lines


def draw(rows: pd.DataFrame, settings: Settings) -> None:
    """Draw the paper's figure 4: loss, compactness, depths, competitors."""
    fig = figure(11, 7.6)
    axes = fig.subplots(2, 2)
    part = rows[(rows.protocol == "clean")]
    chosen = part[part.by == "phi"]
    methods = {"layer + ridge": (BLUE, PALE_BLUE), "subtree + refit": (RED, PALE_RED)}
    for axis, values, title in (
        (axes[0, 0], over_full(chosen), "Increase of test error over the full forest, %"),
        (axes[0, 1], chosen.full_nodes / chosen.nodes.clip(lower=1), "Times fewer nodes"),
        (axes[1, 0], chosen.depths.map(mean_depth), "Mean depth of the trees left"),
    ):
        for i, (method, colours) in enumerate(methods.items()):
            mine = chosen.assign(value=values)[chosen.method == method]
            groups = [mine[mine.phi == phi].value.dropna() for phi in PHIS]
            boxes(axis, groups, np.arange(len(PHIS)) + 0.36 * (i - 0.5), colours, method)
        axis.set_xticks(range(len(PHIS)), [f"phi = {phi}" for phi in PHIS])
        plain(axis, title)
    axes[0, 1].set_yscale("log")
    axes[1, 0].legend(frameon=False, fontsize=9, loc="upper right")
    others = over_paper(part[part.by == "budget"], [*UNIT, "phi"])
    shown = (*COMPETITORS, "subtree + refit")
    axis = axes[1, 1]
    shades = ("#dddddd", "#bbbbbb", "#8f8f8f")
    for i, phi in enumerate(PHIS):
        groups = [
            others[(others.method == m) & (others.phi == phi)].increase.dropna() for m in shown
        ]
        at = np.arange(len(shown)) + 0.26 * (i - 1)
        boxes(axis, groups, at, (GREY, shades[i]), f"phi = {phi}", 0.22)
    axis.axhline(0.0, color=BLUE, linewidth=1)
    axis.set_yscale("symlog", linthresh=100)
    axis.set_xticks(range(len(shown)), [m.replace(" ", "\n", 1) for m in shown])
    plain(axis, "Increase of test error over layer + ridge at its size, %")
    axis.legend(frameon=False, fontsize=9)
    fig.suptitle(
        f"Pruned random forests, {rows.data.nunique()} data sets x {rows.fold.nunique()} folds, "
        "clean protocol",
        x=0.01,
        ha="left",
    )
    save(fig, settings.results / "bagging.png")


def boxes(axis, groups, at, colours, label, width=0.3) -> None:
    """Draw boxes side by side, without the points beyond their whiskers."""
    edge, fill = colours
    drawn = axis.boxplot(
        groups, positions=at, widths=width, showfliers=False, patch_artist=True, whis=(10, 90)
    )
    for box in drawn["boxes"]:
        box.set(facecolor=fill, edgecolor=edge)
    for part in ("whiskers", "caps", "medians"):
        for line in drawn[part]:
            line.set(color=INK if part == "medians" else edge, linewidth=1.6)
    drawn["boxes"][0].set_label(label)
