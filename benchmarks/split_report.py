"""Tables and the figure of models with new splits, beside those without and small ones.

    python benchmarks/split_report.py

Of what `frontier.py` and `classification.py` found: for each original and budget of nodes one call
of `prune` with `polish="split"` gives two models, with new splits and with the original's own, both
chosen on validation rows. Small models trained directly are those of results/frontier.csv and
results/classification.csv: the one with the least error on validation rows within the budget.
Errors are those of test rows: the mean squared error of regressors, the log-loss of classifiers; of
which less than 0.01 counts as 0.01, for nothing should be divided by next to nothing. Writes
results/split_polish.csv, results/split_polish.md and results/split_polish.png; lines of the first
about data sets of which there are no points stay.
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from new_splits import BUDGETS, SPLIT, WITH, WITHOUT

HERE = Path(__file__).parent
RESULTS = HERE / "results"
TABLE = RESULTS / "split_polish.csv"
POINTS = {"regression": RESULTS / "points", "classification": RESULTS / "points" / "classes"}
ORIGINALS = {
    ("regression", "rf"): "Random forests",
    ("regression", "gb"): "Boosting of scikit-learn",
    ("regression", "xgb"): "XGBoost",
    ("regression", "lgb"): "LightGBM",
    ("classification", "rf"): "Random forests of classes",
    ("classification", "xgb"): "XGBoost classifiers",
    ("classification", "lgb"): "LightGBM classifiers",
}
LEAST_LOSS = 0.01
MANY_ROWS, WORSE = 5_000, 1.01
"""On sets of more rows no model should be worse than the one without by more."""


def trained_directly():
    """Return the test errors of small models by data set and budget, as other reports have them."""
    found = {}
    for table, column in (("frontier", "test"), ("classification", "log_loss")):
        lines = pd.read_csv(RESULTS / f"{table}.csv")
        lines = lines[(lines.method == "trained directly") & lines.budget.notna()]
        for line in lines.itertuples():
            found[line.data, int(line.budget)] = getattr(line, column)
    return found


def collect(folder):
    """Return one line for each data set, original and budget."""
    about = pd.read_csv(folder / "datasets.csv").set_index("name")
    rows, direct = [], trained_directly()
    for task, points in POINTS.items():
        for kind in [kind for known, kind in ORIGINALS if known == task]:
            for file in sorted(points.glob(f"*-{kind}{SPLIT}.csv.gz")):
                name = file.name.removesuffix(f"-{kind}{SPLIT}.csv.gz")
                own = pd.read_csv(file)
                full = own[own.method == "full"].iloc[0]
                for budget in BUDGETS:
                    found = own[own.detail == budget].set_index("method")
                    if found.empty:
                        continue
                    rows.append(
                        {
                            "task": task,
                            "original": kind,
                            "data": name,
                            "rows": int(about.rows[name]),
                            "budget": budget,
                            "full_nodes": int(full.nodes),
                            "full": full.test,
                            "without": found.test[WITHOUT],
                            "with": found.test[WITH],
                            "taken": found.val[WITH] != found.val[WITHOUT],
                            "direct": direct.get((name, budget), np.nan),
                        }
                    )
    found = with_earlier(pd.DataFrame(rows))
    classes = found.task == "classification"
    for column in ("full", "without", "with", "direct"):
        found.loc[classes, column] = found.loc[classes, column].clip(lower=LEAST_LOSS)
    return found.assign(ratio=found["with"] / found["without"])


def with_earlier(found):
    """Return lines with those of an earlier report about other data sets and originals."""
    if not TABLE.exists():
        return found
    earlier, key = pd.read_csv(TABLE).drop(columns="ratio"), ["task", "original", "data"]
    known = pd.MultiIndex.from_frame(found[key]) if len(found) else []
    others = earlier[~pd.MultiIndex.from_frame(earlier[key]).isin(known)]
    return pd.concat([found, others], ignore_index=True) if len(found) else others


def parts(found):
    """Yield the name of each kind of original, and its lines."""
    for (task, kind), name in ORIGINALS.items():
        part = found[(found.task == task) & (found.original == kind)]
        if len(part):
            yield name, part


def mean_ratio(values):
    return np.exp(np.log(values).mean())


def goal_table(found):
    """Return Markdown lines: what was aimed at, and what came out."""
    lines = [
        "| original | sets | error with new splits / without | share of pairs with new splits "
        "| below the small model, without | with | worst ratio beyond "
        f"{MANY_ROWS:,} rows | pairs above {WORSE} "
        f"| below the small model, with, up to {MANY_ROWS:,} rows | beyond |",
        "|---" * 10 + "|",
    ]
    for name, part in parts(found):
        pairs = part[part.direct.notna()]
        large = part[part.rows > MANY_ROWS]
        above = f"{(large.ratio > WORSE).sum()} of {len(large)}"
        lines.append(
            f"| {name} | {part.data.nunique()} | {mean_ratio(part.ratio):.3f} "
            f"| {part.taken.mean():.2f} | {(pairs['without'] < pairs.direct).mean():.2f} "
            f"| {(pairs['with'] < pairs.direct).mean():.2f} of {len(pairs)} "
            f"| {large.ratio.max():.3f} | {above} "
            f"| {won(part[part.rows <= MANY_ROWS])} | {won(large)} |"
        )
    return [*lines, ""]


def budget_table(found, title, cell):
    """Return Markdown lines: a figure of each kind of original by budget."""
    lines = [f"| {title} | " + " | ".join(f"{b:,}" for b in BUDGETS) + " |"]
    lines.append("|---" * (len(BUDGETS) + 1) + "|")
    for name, part in parts(found):
        by = [cell(part[part.budget == budget]) for budget in BUDGETS]
        lines.append(f"| {name} | " + " | ".join(by) + " |")
    return [*lines, ""]


def won(part):
    pairs = part[part.direct.notna()]
    return f"{(pairs['with'] < pairs.direct).mean():.2f}"


def worse(found):
    """Return Markdown lines: sets of many rows on which new splits cost more than they should."""
    bad = found[(found.rows > MANY_ROWS) & (found.ratio > WORSE)].sort_values("ratio")
    lines = ["| data | rows | original | budget | without | with | ratio |", "|---" * 7 + "|"]
    for line in bad.iloc[::-1].itertuples():
        row = found.loc[line.Index]
        name = ORIGINALS[row.task, row.original]
        lines.append(
            f"| {row.data} | {row.rows:,} | {name} | {row.budget:,} | {row['without']:.4f} "
            f"| {row['with']:.4f} | {row.ratio:.3f} |"
        )
    return [*lines, ""]


def each_set(found):
    """Return Markdown lines: every data set, without new splits, with, and trained directly."""
    lines = []
    for name, part in parts(found):
        lines += [f"### {name}", "", "Without new splits, with, and trained directly.", ""]
        lines += ["| data | rows | full | " + " | ".join(f"{b:,}" for b in BUDGETS) + " |"]
        lines += ["|---" * (len(BUDGETS) + 3) + "|"]
        for data, rows in part.groupby("data"):
            first, by = rows.iloc[0], rows.set_index("budget")
            cells = [
                " ".join(
                    "-" if np.isnan(error) else f"{error:.4f}"
                    for error in by.loc[b, ["without", "with", "direct"]].astype(float)
                )
                if b in by.index
                else ""
                for b in BUDGETS
            ]
            head = f"| {data} | {first.rows:,} | {first.full:.4f} | "
            lines.append(head + " | ".join(cells) + " |")
        lines.append("")
    return lines


def figure(found):
    """Draw the mean error by budget, over that of the small model trained directly."""
    shown = list(parts(found[found.direct.notna()]))
    lines = -(-len(shown) // 4)
    size = {"figsize": (14, 0.4 + 3.4 * lines), "squeeze": False}
    fig, axes = plt.subplots(lines, 4, sharey=True, layout="constrained", **size)
    for axis, (name, part) in zip(axes.flat, shown, strict=False):
        for column, label, colour in (
            ("without", "its own splits", "#c0392b"),
            ("with", "new splits", "#1f6f9f"),
        ):
            by = (part[column] / part.direct).groupby(part.budget).apply(mean_ratio)
            axis.plot(by.index, by, color=colour, label=label, marker="o", markersize=4)
        axis.axhline(1.0, color="#222222", linewidth=1.2, linestyle="--", label="trained directly")
        axis.set_title(f"{name}: {part.data.nunique()} sets", loc="left", fontsize=11)
        axis.set_xscale("log")
        axis.set_xticks(BUDGETS, [f"{b:,}" for b in BUDGETS])
        axis.minorticks_off()
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes.flat[len(shown) :]:
        axis.set_visible(False)
    for axis in axes[:, 0]:
        axis.set_ylabel("error / small model's")
    for axis in axes[-1]:
        axis.set_xlabel("nodes at most")
    axes[0, 0].legend(frameon=False, fontsize=9)
    fig.suptitle(
        "Test error over that of the best small model trained directly: geometric means",
        x=0.01,
        ha="left",
    )
    fig.savefig(RESULTS / "split_polish.png", dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data")
    options = parser.parse_args()
    if not options.data.exists():
        raise SystemExit(f"{options.data} does not exist: say where the data sets are with --data.")
    found = collect(options.data)
    found.to_csv(TABLE, index=False, float_format="%.5g")
    body = [
        "# New splits: error at equal size",
        "",
        "Made by `python benchmarks/frontier.py`, `python benchmarks/classification.py` and "
        "`python benchmarks/split_report.py`, whose docstrings say how. All choices look at "
        "validation rows only.",
        "",
        "![Error with new splits and without](split_polish.png)",
        "",
        "## What was aimed at, and what came out",
        "",
        "Error ratios are geometric means over data sets and budgets; "
        '"below the small model" is the share of pairs of data set and budget in which the test '
        "error is lower than that of the best small model trained directly.",
        "",
        *goal_table(found),
        "## By budget",
        "",
        *budget_table(found, "error with / without", lambda p: f"{mean_ratio(p.ratio):.3f}"),
        *budget_table(found, "below the small model", won),
        f"## Where new splits cost more than {WORSE - 1:.0%}",
        "",
        f"Of sets with more than {MANY_ROWS:,} rows:",
        "",
        *worse(found),
        "## Every data set",
        "",
        *each_set(found),
    ]
    text = "\n".join(body).rstrip() + "\n"
    (RESULTS / "split_polish.md").write_text(text)
    figure(found)
    print(text[: text.index("## Every data set")])


if __name__ == "__main__":
    main()
