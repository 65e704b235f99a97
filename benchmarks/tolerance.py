"""A tolerance is judged on validation rows: how much is lost on others, with or without confidence?

    python benchmarks/tolerance.py [--data FOLDER] [--sets houses ...]

Each data set is split three times: half of the rows, at most 4,000, to train and prune with, a
quarter, at most 2,000, to choose by, the others to test with. A boosted model of LightGBM and a
random forest are pruned, and the smallest model is taken that loses no more than 0.01 of R squared
on validation rows, as measured and with confidence. What it loses on test rows, how often that is
more than 0.01, and how many nodes it has, relative to the choice without confidence. Writes
results/tolerance.md.
"""

import argparse
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
from frontier import HERE
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics import r2_score

import forestprune as fp

SETS = ("abalone", "cpu_small", "houses")
SPLITS, TOLERANCE = 3, 0.01
CONFIDENCES = (None, 0.8, 0.95)


def originals(seed):
    yield (
        "LightGBM",
        lightgbm.LGBMRegressor(n_estimators=150, n_jobs=2, random_state=seed, verbose=-1),
    )
    yield (
        "random forest",
        RandomForestRegressor(30, min_samples_leaf=3, n_jobs=2, random_state=seed),
    )


def losses(model, train, val, test):
    """Return nodes, and R squared lost on validation and test rows, for each confidence."""
    X_val, y_val = val
    X_test, y_test = test
    full = r2_score(y_test, model.predict(X_test))
    asked = {"tolerance": TOLERANCE, "n_alphas": 60, "X_val": X_val, "y_val": y_val}
    for confidence in CONFIDENCES:
        small = fp.prune(model, *train, confidence=confidence, **asked)
        lost = full - r2_score(y_test, small.predict(X_test))
        found = small.validation
        yield small.n_nodes, found.shortfall, found.shortfall_error, lost


def measured(folder, sets):
    """Return one row for each data set, original, split and confidence."""
    rows = []
    for name in sets:
        table = pd.get_dummies(pd.read_csv(folder / f"{name}.csv.gz"), dtype=float)
        X, y = table.drop(columns="target").to_numpy(float), table["target"].to_numpy(float)
        for seed in range(SPLITS):
            order = np.random.default_rng(seed).permutation(len(y))
            n_train, n_val = min(len(y) // 2, 4000), min(len(y) // 4, 2000)
            parts = [(X[part], y[part]) for part in np.split(order, [n_train, n_train + n_val])]
            for kind, model in originals(seed):
                model.fit(*parts[0])
                for confidence, found in zip(CONFIDENCES, losses(model, *parts), strict=True):
                    rows.append((name, kind, seed, n_val, confidence, *found))
        print(name, flush=True)
    columns = ["set", "original", "split", "rows", "confidence", "nodes", "validation", "error"]
    return pd.DataFrame(rows, columns=[*columns, "test"])


def _named(confidence):
    return "as measured" if pd.isna(confidence) else f"confidence={confidence:g}"


def _line(label, group, plain):
    ratio = np.median(group["nodes"].to_numpy() / plain["nodes"].to_numpy())
    lost = group["test"]
    return (
        f"| {label} | {lost.median():.4f} | {lost.quantile(0.9):.4f} "
        f"| {(lost > TOLERANCE).sum()} of {lost.size} | {ratio:.2f} |"
    )


def report(found):
    """Return the table as text."""
    lines = [
        "# What a tolerance of 0.01 loses on other rows",
        "",
        "By `python benchmarks/tolerance.py`; its first lines say how.",
        "",
        "| | R squared lost on test rows, median | nine tenths lose less than | more than 0.01 "
        "| nodes, relative |",
        "|---|---|---|---|---|",
    ]
    whole = found.assign(confidence=found["confidence"].fillna(0.5))
    plain = whole[whole["confidence"] == 0.5]
    for confidence, group in whole.groupby("confidence"):
        name = _named(np.nan if confidence == 0.5 else confidence)
        lines.append(_line(f"all data sets, {name}", group, plain))
    for (name, rows), part in whole.groupby(["set", "rows"]):
        plain = part[part["confidence"] == 0.5]
        for confidence, group in part.groupby("confidence"):
            words = _named(np.nan if confidence == 0.5 else confidence)
            lines.append(_line(f"{name}, {rows:,} validation rows, {words}", group, plain))
    error = whole[whole["confidence"] == 0.5]["error"].median()
    about = f"The standard error of what is lost on validation rows has a median of {error:.4f}."
    return "\n".join([*lines, "", about, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data")
    parser.add_argument("--sets", nargs="+", default=SETS)
    options = parser.parse_args()
    if not options.data.exists():
        raise SystemExit(f"{options.data} does not exist: say where the data sets are with --data.")
    text = report(measured(options.data, options.sets))
    (HERE / "results" / "tolerance.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
