"""Tables and the figure of what `classification.py` found.

    python benchmarks/classification_report.py

Writes results/classification.csv (one line for each data set, original, method and budget),
results/classification.md and results/classification.png. Within a budget of nodes the point with
the least log-loss on validation rows is taken; its log-loss and balanced accuracy on test rows are
shown. Medians of log-loss are relative to the full model's, those of accuracy differences to it.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from classification import OURS
from new_splits import SPLIT, WITH

RESULTS = Path(__file__).parent / "results"
POINTS = RESULTS / "points" / "classes"
BUDGETS = (50, 100, 500, 1000, 5000)
ORIGINALS = {
    "xgb": "XGBoost, 100 rounds of depth 6",
    "lgb": "LightGBM, 200 rounds of 31 leaves",
    "rf": "Random forest, 100 trees of depth 15",
}
NEW, DIRECT = "with new splits", "trained directly"
COLOURS = {
    OURS: "#c0392b",
    NEW: "#8e44ad",
    DIRECT: "#222222",
    "layers": "#c9a227",
    "global refinement": "#7fb3d5",
    "L1 over trees": "#1f6f9f",
    "cost complexity": "#76b583",
    "fewer trees": "#999999",
}


def chosen(points, budget):
    """Return the point that validation rows choose within a budget; None if there is none."""
    within = points[points.nodes <= budget]
    return None if within.empty else within.loc[within.val.idxmin()]


def returned(points, budget):
    """Return what one call of `prune` returned for a budget; None if there was none."""
    found = points[points.detail == budget]
    return None if found.empty else found.iloc[0]


def collect():
    """Return one line for each data set, original, method and budget."""
    rows = []
    for file in sorted(POINTS.glob("*-direct.csv.gz")):
        name = file.name.removesuffix("-direct.csv.gz")
        direct = pd.read_csv(file)
        for kind in ORIGINALS:
            plain, split = (POINTS / f"{name}-{kind}{end}.csv.gz" for end in ("", SPLIT))
            if not plain.exists():
                continue
            points = pd.read_csv(plain)
            full = points[points.method == "full"].iloc[0]
            groups = dict(list(points[points.method != "full"].groupby("method", sort=False)))
            if split.exists():
                points = pd.read_csv(split)
                groups[NEW] = points[points.method == WITH]
            groups[DIRECT] = direct
            for method, group in groups.items():
                choose = returned if method in (OURS, NEW) else chosen
                for budget in BUDGETS:
                    point = choose(group, budget)
                    if point is None:
                        continue
                    rows.append(
                        {
                            "data": name,
                            "original": kind,
                            "method": method,
                            "budget": budget,
                            "nodes": point.nodes,
                            "log_loss": point.test,
                            "balanced_accuracy": point.test_accuracy,
                            "full_nodes": full.nodes,
                            "full_log_loss": full.test,
                            "full_accuracy": full.test_accuracy,
                        }
                    )
    found = pd.DataFrame(rows)
    # A model that is always right has next to no loss, and nothing should be divided by that.
    found["relative"] = found.log_loss / np.maximum(found.full_log_loss, 0.01)
    found["lost"] = 100.0 * (found.full_accuracy - found.balanced_accuracy)
    return found


def wins(found):
    """Return Markdown lines: how often pruning has the lower log-loss than training directly."""
    lines = ["| | | " + " | ".join(f"{b:,}" for b in BUDGETS) + " | all | pairs |"]
    lines.append("|---" * (len(BUDGETS) + 4) + "|")
    for kind, name in ORIGINALS.items():
        part = found[found.original == kind].pivot_table(
            index=["data", "budget"], columns="method", values="log_loss"
        )
        for method in part.columns.intersection([OURS, NEW]):
            both = part[[method, DIRECT]].dropna()
            won = both[method] < both[DIRECT]
            by = won.groupby("budget").mean()
            cells = " | ".join(f"{by[b]:.2f}" for b in BUDGETS)
            lines.append(f"| {name} | {method} | {cells} | {won.mean():.2f} | {won.size} |")
    return [*lines, ""]


def medians(found, column, digits):
    """Return Markdown lines: the median of a column by original, method and budget."""
    lines = []
    for kind, name in ORIGINALS.items():
        part = found[found.original == kind]
        count, nodes = part.data.nunique(), part.drop_duplicates("data").full_nodes.median()
        lines += [f"{name}: {count} data sets, full models of {nodes:,.0f} nodes", ""]
        lines += ["| | " + " | ".join(f"{b:,}" for b in BUDGETS) + " | sets |"]
        lines += ["|---" * (len(BUDGETS) + 2) + "|"]
        for method in part.method.unique():
            mine = part[part.method == method]
            by = mine.groupby("budget")
            # Where most sets have no model so small, the others tell nothing.
            known = by.data.nunique() > count / 2 if mine.data.nunique() > count / 2 else by.size()
            middle = by[column].median()
            cells = [
                f"{middle[b]:.{digits}f}" if b in middle.index and known[b] else "-"
                for b in BUDGETS
            ]
            lines.append(f"| {method} | " + " | ".join(cells) + f" | {mine.data.nunique()} |")
        lines.append("")
    return lines


def each_set(found):
    """Return Markdown lines: every data set, pruned in both ways and trained directly."""
    lines = []
    for kind, name in ORIGINALS.items():
        lines += [f"### {name}", ""]
        lines += ["| data | full: nodes | log-loss | method | "]
        lines[-1] += " | ".join(f"{b:,}" for b in BUDGETS) + " |"
        lines += ["|---" * (len(BUDGETS) + 4) + "|"]
        for data, rows in found[found.original == kind].groupby("data"):
            for method in (OURS, NEW, DIRECT):
                mine = rows[rows.method == method].set_index("budget").log_loss
                if mine.empty:
                    continue
                cells = [f"{mine[b]:.4f}" if b in mine.index else "-" for b in BUDGETS]
                first = rows.iloc[0]
                head = f"| {data} | {first.full_nodes:,.0f} | {first.full_log_loss:.4f} | {method}"
                lines.append(f"{head} | " + " | ".join(cells) + " |")
        lines.append("")
    return lines


def figure(found):
    """Draw the median log-loss, relative to the full model's, for each budget."""
    fig, axes = plt.subplots(1, 3, figsize=(13, 4.6), sharey=True, layout="constrained")
    for axis, (kind, name) in zip(axes, ORIGINALS.items(), strict=True):
        part = found[found.original == kind]
        count = part.data.nunique()
        for method in part.method.unique():
            colour, by = COLOURS[method], part[part.method == method].groupby("budget")
            middle = by.relative.median()[by.data.nunique() > count / 2]
            axis.plot(
                middle.index,
                middle,
                color=colour,
                label=method,
                marker="o",
                markersize=4,
                linewidth=2.8 if method in (OURS, NEW) else 1.6,
                linestyle="--" if method == DIRECT else "-",
                zorder=3 if method in (OURS, NEW) else 2,
            )
        axis.axhline(1.0, color="#bbbbbb", linewidth=1, zorder=1)
        axis.set_title(name, loc="left", fontsize=11)
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xticks(BUDGETS, [f"{b:,}" for b in BUDGETS])
        axis.set_yticks([0.8, 1, 1.5, 2, 3, 5], ["0.8", "1", "1.5", "2", "3", "5"])
        axis.minorticks_off()
        axis.set_xlabel("nodes at most")
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("test log-loss / full model's")
    axes[-1].legend(frameon=False, fontsize=9)
    sets = found.data.nunique()
    fig.suptitle(f"Log-loss against size: medians over {sets} data sets", x=0.01, ha="left")
    fig.savefig(RESULTS / "classification.png", dpi=130)


def main() -> None:
    found = collect()
    found.to_csv(RESULTS / "classification.csv", index=False, float_format="%.5g")
    sets = found.data.nunique()
    body = [
        "# Classifiers: size against error",
        "",
        "Made by `python benchmarks/classification.py` and `python "
        f"benchmarks/classification_report.py`, whose docstrings say how: {sets} data sets, "
        "choices by validation rows only, log-loss of full models below 0.01 counted as 0.01.",
        "",
        "![Log-loss against size](classification.png)",
        "",
        "## Lower log-loss than the best small model trained directly",
        "",
        "Share of pairs of data set and budget of nodes:",
        "",
        *wins(found),
        "## Test log-loss over that of the full model, medians",
        "",
        *medians(found, "relative", 3),
        "## Points of balanced accuracy lost on test rows, medians",
        "",
        *medians(found, "lost", 2),
        "## Every data set",
        "",
        *each_set(found),
    ]
    text = "\n".join(body).rstrip() + "\n"
    (RESULTS / "classification.md").write_text(text)
    figure(found)
    print(text[: text.index("## Every data set")])


if __name__ == "__main__":
    main()
