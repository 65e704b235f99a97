"""Polished models beside boosting with full corrective refits: the regularised greedy forest.

    python benchmarks/corrective.py [--data FOLDER] [--sets kin8nm houses ...]

The regularised greedy forest (Johnson and Zhang, "Learning nonlinear functions using regularized
greedy forest", 2014) grows a forest node by node, and refits all leaf values as it goes. Its own
program is run here (`pip install rgf_python`, which needs a compiler) on the data sets of
`frontier.py`, cut and chosen from as there: for each budget of nodes, of all its settings (three
penalties, two ways to penalise, leaf counts that fit) the one with the least error on validation
rows. Beside it stands what `frontier.py --models rf-split xgb-split` found by pruning a random
forest and XGBoost with new splits; so that is to be run first. Writes results/corrective.md.
"""

import argparse
import contextlib
import io
import re
import time
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from frontier import Split
from new_splits import BUDGETS, SPLIT, WITH

HERE = Path(__file__).parent
SETS = (
    *("abalone", "bike_sharing_hour", "cpu_small", "houses"),
    *("kin8nm", "pol", "puma32H", "wine_quality"),
)
PENALTIES = (1.0, 0.1, 0.01)
WAYS = ("RGF", "RGF_Sib")
LEAVES = (0.5, 0.57)
"""Of the budget: with T trees, L leaves are 2 L - T nodes."""
OURS = {"rf": "random forest, new splits", "xgb": "XGBoost, new splits"}


def nodes_of(model):
    """Return how many nodes a fitted model has; it tells by printing them."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        model.dump_model()
    return len(re.findall(r"^\s*\[\s*\d+\], ", printed.getvalue(), re.MULTILINE))


def greedy_forests(split):
    """Return the points of all settings: budget, nodes, errors on validation and test rows."""
    try:
        from rgf.sklearn import RGFRegressor
    except ImportError:
        raise SystemExit("This needs rgf_python: pip install rgf_python.") from None

    rows = []
    for budget, share, l2, way in product(BUDGETS, LEAVES, PENALTIES, WAYS):
        leaves = int(share * budget)
        model = RGFRegressor(leaves, algorithm=way, l2=l2, min_samples_leaf=5, test_interval=leaves)
        model.fit(split.X, split.y)
        rows.append((budget, nodes_of(model), *split.errors(model.predict)))
        model.cleanup()
    return pd.DataFrame(rows, columns=["budget", "nodes", "val", "test"])


def compared(folder, names):
    """Return one line for each data set, budget and method: the error on test rows."""
    rows = []
    for name in names:
        split, begun = Split(folder, name), time.perf_counter()
        greedy = greedy_forests(split)
        print(f"{name}: {time.perf_counter() - begun:.0f} s", flush=True)
        own = {
            kind: pd.read_csv(HERE / "results" / "points" / f"{name}-{kind}{SPLIT}.csv.gz")
            for kind in OURS
        }
        for budget in BUDGETS:
            within = greedy[greedy.nodes <= budget]
            rows.append((name, budget, "greedy forest", within.test[within.val.idxmin()]))
            for kind, method in OURS.items():
                found = own[kind]
                test = found.test[(found.method == WITH) & (found.detail == budget)]
                rows.append((name, budget, method, float(test.iloc[0])))
    return pd.DataFrame(rows, columns=["data", "budget", "method", "test"])


def report(found):
    """Return the tables as text."""
    errors = found.pivot(index=["data", "budget"], columns="method", values="test")
    lines = [
        "# Beside boosting with full corrective refits",
        "",
        "By `python benchmarks/corrective.py`, whose first lines say how. Mean squared errors on "
        "test rows, of what validation rows chose.",
        "",
        "| | error / greedy forest's, geometric mean | lower in |",
        "|---|---|---|",
    ]
    for method in OURS.values():
        ratio = errors[method] / errors["greedy forest"]
        below = f"{(ratio < 1).sum()} of {len(ratio)}"
        lines.append(f"| {method} | {np.exp(np.log(ratio).mean()):.3f} | {below} |")
    methods = ["greedy forest", *OURS.values()]
    lines += ["", "| data | " + " | ".join(f"{b:,}" for b in BUDGETS) + " |"]
    lines.append("|---" * (len(BUDGETS) + 1) + "|")
    for name, part in errors.groupby("data"):
        for method in methods:
            cells = [f"{part[method][name, budget]:.4f}" for budget in BUDGETS]
            lines.append(f"| {name}, {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data")
    parser.add_argument("--sets", nargs="+", default=SETS)
    options = parser.parse_args()
    if not options.data.exists():
        raise SystemExit(f"{options.data} does not exist: say where the data sets are with --data.")
    text = report(compared(options.data, options.sets))
    (HERE / "results" / "corrective.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
