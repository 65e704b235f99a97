"""Leaves saved within half a point of balanced accuracy, beside what LOP's authors publish.

    python benchmarks/lop.py [--data FOLDER] [--seeds 3]

LOP (Devos and others, "Compressing tree ensembles through level-wise optimization and pruning",
ICML 2025) is judged by how many times fewer leaves an ensemble has that loses no more than 0.5
points of balanced accuracy on validation rows, or 2 % of the RMSE; what it loses on test rows; and
how long that takes. Their figures, means over 240 and 30 runs, come from shared/rivals; the
originals here have as many trees as theirs have on average (46 of XGBoost with a rate of 0.3, 133
in random forests), and the depth, up to 15, with which they come closest to as many leaves. 60 % of
the rows train and prune, 20 % choose, 20 % test, anew for each seed. Times are seconds of one core
for pruning, choice included, once kernels are compiled. Each is pruned twice: with the splits of
the original, and with new ones (`polish="split"`). Writes results/lop.csv and results/lop.md.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
import xgboost
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import balanced_accuracy_score, root_mean_squared_error
from sklearn.model_selection import train_test_split

import forestprune as fp

HERE = Path(__file__).parent
TREES = {"XGB": 46, "RF": 133}
BINARY = {
    "adult": "Adult",
    "california": "California",
    "compas_two_years": "CompasTwoYears",
    "dry_bean_sira": "DryBean[6vRest]",
    "electricity": "Electricity",
    "mnist_2v4": "Mnist[2v4]",
    "phoneme": "Phoneme",
    "spambase": "Spambase",
    "vehicle_bin": "Vehicle",
}
REGRESSION = {
    "abalone": "Abalone",
    "cpu_small": "CpuSmall",
    "house_16H": "House16H",
    "houses": "Houses",
    "wine_quality": "WineQuality",
}
WAYS = {"own splits": {}, "new splits": {"polish": "split"}}
POINTS, SHARE = 0.005, 0.02
"""What may be lost on validation rows: of balanced accuracy, and of the RMSE."""


def load(folder, name, *, classes):
    about = pd.read_csv(folder / "datasets.csv").set_index("name").loc[name]
    categories = str(about.categorical_columns).split(";") if about.n_categorical else []
    frame = pd.read_csv(folder / f"{name}.csv.gz", dtype=dict.fromkeys(categories, str))
    target = frame.pop("target")
    X = pd.get_dummies(frame, columns=categories).fillna(0).to_numpy(dtype=np.float32)
    if not classes:
        return X, target.to_numpy(float)
    return X, np.unique(target, return_inverse=True)[1]


def candidate(kind, depth, *, classes):
    if kind == "XGB":
        model = xgboost.XGBClassifier if classes else xgboost.XGBRegressor
        return model(
            n_estimators=TREES[kind], max_depth=depth, learning_rate=0.3, n_jobs=2, random_state=0
        )
    model = RandomForestClassifier if classes else RandomForestRegressor
    return model(TREES[kind], max_depth=depth, max_features="sqrt", n_jobs=2, random_state=0)


def leaves(model):
    forest = fp.Forest.from_model(model)
    return (forest.n_nodes + forest.n_trees) // 2


def original(kind, X, y, wanted, *, classes):
    """Return the model whose number of leaves is closest to what is wanted."""
    best, nearest = None, np.inf
    for depth in range(3, 16):
        model = candidate(kind, depth, classes=classes).fit(X, y)
        away = abs(np.log(leaves(model) / wanted))
        if away >= nearest:
            break
        best, nearest = model, away
    return best


def measured(kind, X, y, wanted, seed, *, classes):
    """Prune in each way; yield what it is called, leaves before and after, scores, seconds."""
    by = y if classes else None
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, stratify=by, random_state=seed)
    by = y if classes else None
    X, X_val, y, y_val = train_test_split(X, y, test_size=0.25, stratify=by, random_state=seed)
    model = original(kind, X, y, wanted, classes=classes)
    asked = {"scoring": "balanced_accuracy", "tolerance": POINTS}
    if not classes:
        error = root_mean_squared_error(y_val, model.predict(X_val))
        asked = {"scoring": "neg_root_mean_squared_error", "tolerance": SHARE * error}
    score = balanced_accuracy_score if classes else root_mean_squared_error
    before = score(y_test, model.predict(X_test))
    for way, options in WAYS.items():
        begun = time.process_time()
        small = fp.prune(model, X, y, X_val=X_val, y_val=y_val, n_jobs=1, **asked, **options)
        taken = time.process_time() - begun
        native = small.to_native()
        after = score(y_test, native.predict(X_test))
        loss = 100 * (before - after) if classes else 100 * (after / before - 1)
        yield {
            "way": way,
            "rows": len(y),
            "leaves_before": leaves(model),
            "leaves_after": leaves(native),
            "before": before,
            "loss": loss,
            "seconds": taken,
        }


def published(folder):
    """Return LOP's own figures, by task, data set and model."""
    table = pd.read_csv(folder.parent / "rivals" / "lop_binary_and_regression.csv")
    return table[table.method == "LOP"].set_index(["task", "dataset", "model"])


def run(folder, seeds):
    theirs, rows = published(folder), []
    for task, sets in (("binary classification", BINARY), ("regression", REGRESSION)):
        classes = sets is BINARY
        for name, known in sets.items():
            X, y = load(folder, name, classes=classes)
            for kind in TREES:
                own = theirs.loc[task, known, kind]
                for seed in range(seeds):
                    loss = own.loss if classes else 100 * own.loss / own.metric_before
                    for found in measured(kind, X, y, own.leaves_before, seed, classes=classes):
                        rows.append(
                            {"task": task, "data": name, "model": kind, "seed": seed}
                            | found
                            | {"lop_times": own.leaf_ratio, "lop_loss": loss}
                            | {"lop_seconds": own.seconds}
                        )
                        print(name, kind, seed, found, flush=True)
    return pd.DataFrame(rows)


def compile_kernels():
    """Prune something small in each way, so that no time below is the compiler's."""
    X = np.random.default_rng(0).random((400, 3), np.float32)
    for kind in TREES:
        for classes in (False, True):
            y = (X[:, 0] > 0.5).astype(int) if classes else X[:, 0].astype(float)
            for _ in measured(kind, X, y, 40, 0, classes=classes):
                pass


def report(found):
    """Return the tables as text."""
    found = found.assign(times=found.leaves_before / found.leaves_after)
    columns = ["rows", "leaves_before", "times", "loss", "seconds"]
    columns += ["lop_times", "lop_loss", "lop_seconds"]
    each = found.groupby(["task", "model", "data", "way"], sort=False)[columns].median()
    each = each.reset_index()
    lines = [
        "# Leaves saved at a given loss, beside LOP",
        "",
        "By `python benchmarks/lop.py`, whose first lines say how; medians over "
        f"{found.seed.nunique()} splits, LOP's figures as published. Loss is what test rows lose: "
        "points of balanced accuracy, or per cent of the RMSE.",
        "",
    ]
    head = "| | times fewer leaves | loss | seconds | LOP: times | loss | seconds |"
    rule = "|---|---|---|---|---|---|---|"

    def line(label, row):
        return (
            f"| {label} | {row.times:,.1f} | {row.loss:.2f} | {row.seconds:.1f} "
            f"| {row.lop_times:,.1f} | {row.lop_loss:.2f} | {row.lop_seconds:,.0f} |"
        )

    lines += ["## Medians over the data sets", "", head, rule]
    numbers = each.groupby(["task", "model", "way"], sort=False)[columns].median()
    lines += [line(", ".join(names), row) for names, row in numbers.iterrows()]
    for (task, kind), part in each.groupby(["task", "model"]):
        lines += ["", f"## {task.capitalize()}, {kind}", "", head, rule]
        for row in part.itertuples():
            label = f"{row.data}, {row.rows:,.0f} rows, {row.leaves_before:,.0f} leaves, {row.way}"
            lines.append(line(label, row))
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    if not options.data.exists():
        raise SystemExit(f"{options.data} does not exist: say where the data sets are with --data.")
    compile_kernels()
    found = run(options.data, options.seeds)
    found.to_csv(HERE / "results" / "lop.csv", index=False, float_format="%.5g")
    text = report(found)
    (HERE / "results" / "lop.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
