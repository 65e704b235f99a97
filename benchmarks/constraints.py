"""Monotone constraints: are they kept, and what does keeping them cost?

    python benchmarks/constraints.py [--data FOLDER] [--sets houses ...]

Each data set is split as in frontier.py. The three numeric features whose ranks go most with the
target's are constrained to do so; the originals are of five libraries. Each is pruned to 200 and
1,000 nodes, chosen on validation rows: with the constraints, and, for comparison, from a copy that
does not say that it has any. Lines through rows of the test set, along a constrained feature over
the range of the data, are followed with the exported model: one that turns back breaks a
constraint, however little. Writes results/constraints.md.
"""

import argparse
import warnings
from dataclasses import replace
from pathlib import Path

import catboost
import lightgbm
import numpy as np
import xgboost
from frontier import HERE, Split
from scipy.stats import spearmanr
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

import forestprune as fp

SETS = ("abalone", "cpu_small", "wine_quality", "houses")
BUDGETS = (200, 1000)
LINES, STEPS = 1000, 30
RULES = {
    "default": {},
    "refit=False": {"refit": False},
    "ridge": {"polish": "ridge"},
    "leaf": {"polish": "leaf"},
    "layer": {"rule": "layer", "local_search": False},
    "layer, leaf": {"rule": "layer", "local_search": False, "polish": "leaf"},
    "layer, joint": {"rule": "layer", "local_search": False, "joint": "ridge"},
}


def signs_of(X, y):
    """Return which features are constrained, and which way."""
    many = [j for j in range(X.shape[1]) if np.unique(X[:, j]).size > 2]
    found = {j: spearmanr(X[:, j], y).statistic for j in many}
    signs = np.zeros(X.shape[1], int)
    for j in sorted(many, key=lambda j: -abs(found[j]))[:3]:
        signs[j] = int(np.sign(found[j]))
    return signs.tolist()


def originals(signs):
    common = {"n_estimators": 200, "learning_rate": 0.1, "n_jobs": 2, "random_state": 0}
    yield (
        "random forest",
        RandomForestRegressor(
            100, max_depth=15, max_features=0.4, monotonic_cst=signs, n_jobs=2, random_state=0
        ),
    )
    yield "histogram boosting", HistGradientBoostingRegressor(max_iter=200, monotonic_cst=signs)
    yield "XGBoost", xgboost.XGBRegressor(monotone_constraints=tuple(signs), **common)
    for method in ("basic", "advanced"):
        how = {"monotone_constraints": signs, "monotone_constraints_method": method}
        yield f"LightGBM, {method}", lightgbm.LGBMRegressor(verbose=-1, **how, **common)
    yield (
        "CatBoost",
        catboost.CatBoostRegressor(
            iterations=200, monotone_constraints=signs, verbose=0, allow_writing_files=False
        ),
    )


def share_broken(predict, X, signs, rng):
    """Return the share of lines through rows of `X` that turn back."""
    broken = total = 0
    for column in np.flatnonzero(signs):
        rows = np.repeat(X[rng.integers(0, len(X), LINES)], STEPS, axis=0)
        rows[:, column] = np.tile(np.quantile(X[:, column], np.linspace(0, 1, STEPS)), LINES)
        predicted = np.reshape(predict(rows), (LINES, STEPS))
        broken += (signs[column] * np.diff(predicted, axis=1) < 0.0).any(axis=1).sum()
        total += LINES
    return broken / total


def measured(split, model, signs, rng, **how):
    """Return the test error of a pruned model, and the share of lines that it breaks."""
    small = fp.prune(model, split.X, split.y, X_val=split.X_val, y_val=split.y_val, **how)
    native = small.to_native()
    error = float(np.mean((native.predict(split.X_test) - split.y_test) ** 2))
    return error, share_broken(native.predict, split.X_test, signs, rng)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "shared" / "data")
    parser.add_argument("--sets", nargs="*", default=SETS)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    costs, broken, free_broken, every = {}, {}, {}, {}
    for name in given.sets:
        split = Split(given.data, name)
        signs = signs_of(split.X, split.y)
        for kind, model in originals(signs):
            model.fit(split.X, split.y)
            forest = fp.Forest.from_model(model)
            silent = replace(forest, origin=replace(forest.origin, monotone=()))
            for nodes in BUDGETS:
                kept = measured(split, model, signs, rng, max_nodes=nodes)
                free = measured(split, silent, signs, rng, max_nodes=nodes)
                costs.setdefault((kind, nodes), []).append(kept[0] / free[0])
                broken.setdefault(kind, []).append(kept[1])
                free_broken.setdefault(kind, []).append(free[1])
                print(f"{name}, {kind}, {nodes}: {kept[0]:.4f} {kept[1]:.1%}", end="; ")
                print(f"without {free[0]:.4f} {free[1]:.1%}", flush=True)
            for rule, how in RULES.items() if name == given.sets[0] else ():
                found = measured(split, model, signs, rng, max_nodes=500, **how)
                every.setdefault((kind, rule), []).append(found[1])
    kinds = list(broken)
    lines = [
        "# Monotone constraints: kept, and what that costs",
        "",
        f"Made by `python benchmarks/constraints.py`. {len(given.sets)} data sets "
        f"({', '.join(given.sets)}), three constrained features each; {LINES:,} lines through test "
        f"rows for each feature, {STEPS} steps a line. Test errors of the pruned model over those "
        "of one pruned from a copy that forgot its constraints: median and worst.",
        "",
        "| original | lines broken | of the copy that forgot, worst |"
        + "".join(f" error at {nodes:,} nodes |" for nodes in BUDGETS),
        "|---|---|---|" + "---|" * len(BUDGETS),
    ]
    for kind in kinds:
        ratios = [
            f"{np.median(costs[kind, nodes]):.3f} (worst {max(costs[kind, nodes]):.3f})"
            for nodes in BUDGETS
        ]
        line = [f"{max(broken[kind]):.1%}", f"{max(free_broken[kind]):.0%}", *ratios]
        lines.append(f"| {kind} | {' | '.join(line)} |")
    lines += [
        "",
        f"Every rule and polish on {given.sets[0]}, 500 nodes, share of lines broken:",
        "",
        f"| original | {' | '.join(RULES)} |",
        "|---|" + "---|" * len(RULES),
    ]
    for kind in kinds:
        shares = [f"{every[kind, rule][0]:.1%}" for rule in RULES]
        lines.append(f"| {kind} | {' | '.join(shares)} |")
    (HERE / "results" / "constraints.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    for shares in (*broken.values(), *every.values()):
        assert not any(shares)


if __name__ == "__main__":
    main()
