"""Tables and the figure of what `frontier.py` found.

    python benchmarks/frontier_report.py

Writes results/frontier.csv (one line for each data set, original, method and budget or tolerance),
results/frontier.md (medians, and every data set) and results/frontier.png.

- Error at a budget: of the points with no more nodes, the one with the least validation error; its
  test error is shown.
- Nodes to come within t of the full model: the smallest point whose validation error is at most
  that of the full model plus t. Errors are in units of the training targets' variance.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from new_splits import SPLIT, WITH

RESULTS = Path(__file__).parent / "results"
BUDGETS = (50, 100, 500, 1000, 5000)
TOLERANCES = (0.0, 0.01, 0.025, 0.05)
ORIGINALS = {"rf": "random forest", "gb": "boosting", "xgb": "XGBoost", "lgb": "LightGBM"}
COLOURS = {
    "layer + ridge": "#999999",
    "layer joint": "#c9a227",
    "subtree": "#7fb3d5",
    "subtree + leaf": "#1f6f9f",
    "subtree + refit": "#c0392b",
    WITH: "#8e44ad",
    "trained directly": "#222222",
}


def candidates(name, kind):
    """Return the full model and a table of points for each method, smallest first."""
    points = pd.read_csv(RESULTS / "points" / f"{name}-{kind}.csv.gz")
    full = points[points.method == "full"].iloc[0]
    direct = pd.read_csv(RESULTS / "points" / f"{name}-direct.csv.gz")
    groups = dict(list(points[points.method != "full"].groupby("method", sort=False)))
    new = RESULTS / "points" / f"{name}-{kind}{SPLIT}.csv.gz"
    if new.exists():
        found = pd.read_csv(new)
        groups[WITH] = found[found.method == WITH]
    groups["trained directly"] = direct
    return full, {method: Curve(group) for method, group in groups.items()}


class Curve:
    """The test error of what validation rows choose, for every budget of nodes."""

    def __init__(self, group):
        group = group.sort_values(["nodes", "val"])
        self.nodes = group.nodes.to_numpy()
        self.val = group.val.to_numpy()
        best = np.minimum.accumulate(self.val)
        # Where the least validation error so far was reached.
        at = np.maximum.accumulate(np.where(self.val == best, np.arange(best.size), 0))
        self.used, self.test = self.nodes[at], group.test.to_numpy()[at]

    def at(self, budget):
        """Return nodes and test error within a budget; NaN if there is nothing that small."""
        i = np.searchsorted(self.nodes, budget, side="right") - 1
        return (self.used[i], self.test[i]) if i >= 0 else (np.nan, np.nan)

    def nodes_for(self, val):
        """Return the smallest number of nodes whose validation error is no more than `val`."""
        good = np.flatnonzero(self.val <= val)
        return self.nodes[good[0]] if good.size else np.inf

    def nodes_for_test(self, test):
        """Return the smallest budget at which the test error is no more than `test`."""
        good = np.flatnonzero(self.test <= test)
        return self.nodes[good[0]] if good.size else np.inf


def collect():
    """Return the summary, and the curves by data set and original."""
    rows, curves = [], {}
    for file in sorted((RESULTS / "points").glob("*-direct.csv.gz")):
        name = file.name.removesuffix("-direct.csv.gz")
        for kind in ORIGINALS:
            if not (RESULTS / "points" / f"{name}-{kind}.csv.gz").exists():
                continue
            full, by_method = candidates(name, kind)
            curves[name, kind] = full, by_method
            for method, curve in by_method.items():
                common = {"data": name, "original": kind, "method": method}
                common |= {"full_nodes": full.nodes, "full_test": round(full.test, 5)}
                for budget in BUDGETS:
                    nodes, test = curve.at(budget)
                    rows.append(common | {"budget": budget, "nodes": nodes, "test": test})
                for tolerance in TOLERANCES:
                    nodes = curve.nodes_for(full.val + tolerance)
                    test = curve.at(nodes)[1] if np.isfinite(nodes) else np.nan
                    rows.append(common | {"within": tolerance, "nodes": nodes, "test": test})
    return pd.DataFrame(rows), curves


def number(x):
    return "never" if np.isinf(x) else "-" if np.isnan(x) else f"{x:,.0f}"


def capital(name):
    return name[0].upper() + name[1:]


def median_tables(summary):
    """Return Markdown lines: medians over the data sets for each original."""
    lines = []
    for kind, name in ORIGINALS.items():
        part = summary[summary.original == kind]
        full = part.drop_duplicates("data").full_nodes.median()
        count = part.data.nunique()
        lines += [
            f"### {capital(name)}: medians over {count} data sets (full: {full:,.0f} nodes)",
            "",
            "Test error divided by the full model's at a budget of nodes; then nodes to match the "
            "full model's validation error, and to come within 0.01, 0.025 and 0.05 of it "
            "(`never`: not on most data sets); then the share of the full model's nodes that "
            "matching takes.",
            "",
            "| | "
            + " | ".join(f"{b:,}" for b in BUDGETS)
            + " | match | .01 | .025 | .05 | share |",
            "|---" * (len(BUDGETS) + 6) + "|",
        ]
        for method in part.method.unique():
            mine = part[part.method == method]
            errors = [
                (mine[mine.budget == b].test / mine[mine.budget == b].full_test).median()
                for b in BUDGETS
            ]
            within = [mine[mine.within == t] for t in TOLERANCES]
            nodes = [number(w.nodes.median()) for w in within]
            share = (within[0].nodes / within[0].full_nodes).median()
            cells = [f"{e:.3f}" for e in errors] + nodes
            cells.append("never" if np.isinf(share) else f"1/{1 / share:,.0f}")
            lines.append(f"| {method} | " + " | ".join(cells) + " |")
        lines.append("")
    return lines


def goal_table(summary, curves):
    """Return Markdown lines: what was aimed at, and what came out."""
    counts = [
        f"{name} ({len([k for _, k in curves if k == kind])} sets)"
        for kind, name in ORIGINALS.items()
    ]
    lines = ["| | " + " | ".join([*counts, "all"]) + " |", "|---" * (len(counts) + 2) + "|"]
    ratios, wins = {}, {}
    for (_, kind), (_, by_method) in curves.items():
        ours, paper = by_method["subtree + refit"], by_method["layer + ridge"]
        direct = by_method["trained directly"]
        for budget in (*BUDGETS, 20_000):
            nodes, test = paper.at(budget)
            if nodes > 0:
                ratios.setdefault(kind, []).append(ours.nodes_for_test(test) / nodes)
        for budget in BUDGETS:
            (_, mine), (_, theirs) = ours.at(budget), direct.at(budget)
            if not np.isnan(theirs):
                wins.setdefault(kind, []).append(mine < theirs)
    for title, values, show in (
        (
            "nodes of subtree + refit / nodes of layer + ridge, at equal test error (median)",
            ratios,
            lambda v: f"{np.median(v):.3f}",
        ),
        (
            "lower test error than the small model trained directly (share of data sets x budgets)",
            wins,
            lambda v: f"{np.mean(v):.2f} of {len(v)}",
        ),
    ):
        each = [values[kind] for kind in ORIGINALS]
        shown = [show(v) for v in (*each, [x for v in each for x in v])]
        lines.append(f"| {title} | " + " | ".join(shown) + " |")
    lines += ["", "Wins over small models trained directly, by budget:", ""]
    lines += ["| | " + " | ".join(f"{b:,}" for b in BUDGETS) + " |", "|---" * 6 + "|"]
    for kind, name in ORIGINALS.items():
        part = summary[summary.original == kind].pivot_table(
            index=["data", "budget"], columns="method", values="test"
        )
        won = (part["subtree + refit"] < part["trained directly"]).groupby("budget").mean()
        lines.append(f"| {name} | " + " | ".join(f"{won[b]:.2f}" for b in BUDGETS) + " |")
    return [*lines, ""]


def each_set(summary):
    """Return Markdown lines: every data set, for the methods that matter."""
    lines = []
    for kind, name in ORIGINALS.items():
        lines += [
            f"### {capital(name)}: every data set",
            "",
            "| data | full: nodes | test error | method | "
            + " | ".join(f"{b:,}" for b in BUDGETS)
            + " | match | .01 | .025 | .05 |",
            "|---" * (len(BUDGETS) + 8) + "|",
        ]
        part = summary[summary.original == kind]
        for data, rows in part.groupby("data", sort=True):
            for method in ("layer + ridge", "subtree + refit", WITH, "trained directly"):
                mine = rows[rows.method == method]
                if mine.empty:
                    continue
                errors = [f"{mine[mine.budget == b].test.iloc[0]:.4f}" for b in BUDGETS]
                nodes = [number(mine[mine.within == t].nodes.iloc[0]) for t in TOLERANCES]
                head = f"| {data} | {mine.full_nodes.iloc[0]:,.0f} | {mine.full_test.iloc[0]:.4f} "
                lines.append(f"{head}| {method} | " + " | ".join(errors + nodes) + " |")
        lines.append("")
    return lines


def figure(curves):
    """Draw the median error, relative to the full model's, against the number of nodes."""
    sizes = np.geomspace(10, 50_000, 60)
    fig, axes = plt.subplots(2, 2, figsize=(11, 8.6), sharey=True, layout="constrained")
    for axis, (kind, name) in zip(axes.flat, ORIGINALS.items(), strict=True):
        mine = [value for (_, k), value in curves.items() if k == kind]
        for method, colour in COLOURS.items():
            errors = np.array(
                [[by[method].at(n)[1] / full.test for n in sizes] for full, by in mine]
            )
            known = np.isfinite(errors).mean(axis=0) > 0.9
            middle = np.nanmedian(errors[:, known], axis=0)
            bold = method == "subtree + refit"
            axis.plot(
                sizes[known],
                middle,
                color=colour,
                label=method,
                linewidth=2.8 if bold else 1.6,
                linestyle="--" if method == "trained directly" else "-",
                zorder=3 if bold else 2,
            )
        axis.axhline(1.0, color="#bbbbbb", linewidth=1, zorder=1)
        nodes = np.median([full.nodes for full, _ in mine])
        axis.set_title(
            f"{capital(name)}: {len(mine)} data sets, full {nodes:,.0f} nodes",
            loc="left",
            fontsize=11,
        )
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_ylim(0.78, 5)
        axis.set_yticks(
            [0.8, 0.9, 1, 1.2, 1.5, 2, 3, 5], ["0.8", "0.9", "1", "1.2", "1.5", "2", "3", "5"]
        )
        axis.minorticks_off()
        axis.set_xlabel("nodes")
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes[:, 0]:
        axis.set_ylabel("test error / full model's")
    axes[0, 1].legend(frameon=False, fontsize=9)
    fig.suptitle("Error against size: medians over data sets", x=0.01, ha="left")
    fig.savefig(RESULTS / "frontier.png", dpi=130)


def main() -> None:
    summary, curves = collect()
    summary.to_csv(RESULTS / "frontier.csv", index=False, float_format="%.5g")
    head = [
        "# Size against error",
        "",
        "Made by `python benchmarks/frontier.py` and `python benchmarks/frontier_report.py`, whose "
        "docstrings say how. Choices look at validation rows only.",
        "",
        "![Error against size](frontier.png)",
        "",
        "## What was aimed at",
        "",
    ]
    body = [*goal_table(summary, curves), "## Medians", "", *median_tables(summary)]
    text = "\n".join([*head, *body, "## Every data set", "", *each_set(summary)])
    (RESULTS / "frontier.md").write_text(text.rstrip() + "\n")
    figure(curves)
    print("\n".join(body))


if __name__ == "__main__":
    main()
