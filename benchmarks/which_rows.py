"""Which rows to prune with: those that the forest was grown with, or others?

    python benchmarks/which_rows.py [--data FOLDER] [--sets kin8nm houses ...]

The same rows are spent in three ways, and validated on the same others: "same": the forest is grown
and pruned with all of them; "other": grown with two thirds, pruned with the last third; "both":
grown with two thirds, pruned with all. Test errors at budgets of nodes, relative to "same"; the
median over data sets. Forests and splits as in `frontier.py`.
"""

import argparse
from pathlib import Path

import numpy as np
from frontier import HERE, Split, original
from rich.console import Console
from side_by_side import table
from sklearn.model_selection import train_test_split

import forestprune as fp

SETS = ["us_crime", "abalone", "wine_quality", "cpu_small", "kin8nm"]
SETS += ["puma32H", "pol", "bike_sharing_hour", "houses"]
BUDGETS = (50, 500, 5000, 50_000)
RULES = {
    "layer + ridge": {"rule": "layer", "polish": "ridge", "local_search": False},
    "subtree": {"refit": False},
    "subtree + refit": {"refit": True},
}


def errors(split, model, X, y, rule):
    """Return the test error at each budget, chosen on validation rows."""
    rows = []
    for shrinkage in (10.0, 100.0, 1000.0) if "refit" in rule else (None,):
        path = fp.prune_path(model, X, y, shrinkage=shrinkage, **RULES[rule])
        rows += split.path_errors(path)
    nodes, val, test = np.array(rows).T
    return [test[nodes <= budget][np.argmin(val[nodes <= budget])] for budget in BUDGETS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data")
    parser.add_argument("--sets", nargs="+", default=SETS)
    options = parser.parse_args()
    if not options.data.exists():
        raise SystemExit(f"{options.data} does not exist: say where the data sets are with --data.")
    found = {}
    for name in options.sets:
        split = Split(options.data, name)
        parts = train_test_split(split.X, split.y, test_size=1 / 3, random_state=0)
        X_grow, X_other, y_grow, y_other = parts
        for kind in ("rf", "gb"):
            whole = original(kind, split.X, split.y)
            grown = original(kind, X_grow, y_grow)
            for rule in RULES:
                same = errors(split, whole, split.X, split.y, rule)
                other = errors(split, grown, X_other, y_other, rule)
                both = errors(split, grown, split.X, split.y, rule)
                found.setdefault((kind, rule), []).append((same, other, both))
        print(name, flush=True)
    result = table(
        f"Test error relative to pruning with the rows of growing; median of {len(options.sets)}",
        *("original, rule", "rows", *(f"{budget:,} nodes" for budget in BUDGETS)),
    )
    for (kind, rule), triples in found.items():
        same, other, both = np.array(triples).transpose(1, 0, 2)
        for name, these in (("other", other), ("both", both)):
            ratios = np.median(these / same, axis=0)
            result.add_row(f"{kind}, {rule}", name, *(f"{ratio:.3f}" for ratio in ratios))
    Console(width=120).print(result)


if __name__ == "__main__":
    main()
