"""How far a path goes: budgets from 500 nodes to everything, and small tolerances.

    python benchmarks/reach.py [--data FOLDER]

LightGBM models of 500 trees of 31 leaves; categories are left to the library. Rows are divided as
in frontier.py. For each budget, the error of the model that validation rows choose: it must not
rise with the budget on the rows it is chosen by. And for each tolerance, the nodes it takes. Errors
are shares of the variance that are left unexplained. Writes results/reach.md.
"""

import argparse
import warnings
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
from frontier import HERE, MOST_ROWS
from sklearn.model_selection import train_test_split

import forestprune as fp

SETS = ("diamonds", "houses", "wine_quality", "bike_sharing_hour")
BUDGETS = (500, 1000, 2000, 5000, 10_000, 20_000)
TOLERANCES = (0.01, 0.0005, 0.0)


def parts(folder, name):
    """Return rows to train, to validate and to test with, categories as pandas has them."""
    about = pd.read_csv(folder / "datasets.csv").set_index("name").loc[name]
    categories = str(about.categorical_columns).split(";") if about.n_categorical else []
    frame = pd.read_csv(folder / f"{name}.csv.gz", dtype=dict.fromkeys(categories, str))
    frame = frame.sample(min(len(frame), MOST_ROWS), random_state=0)
    frame = frame.astype(dict.fromkeys(categories, "category"))
    y = frame.pop("target").to_numpy(dtype=float)
    X, X_test, y, y_test = train_test_split(frame, y, test_size=0.2, random_state=0)
    X, X_val, y, y_val = train_test_split(X, y, test_size=0.25, random_state=0)
    return (X, y), (X_val, y_val), (X_test, y_test)


def unexplained(model, X, y):
    return float(np.mean((model.predict(X) - y) ** 2) / np.var(y))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "shared" / "data")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = [
        "# How far a path goes",
        "",
        "Made by `python benchmarks/reach.py`: LightGBM, 500 trees of 31 leaves. Share of the "
        "variance left unexplained, on the validation rows that choose / on test rows, and nodes.",
        "",
        "| data | full model | " + " | ".join(f"max_nodes={b:,}" for b in BUDGETS) + " | all |",
        "|---|---|" + "---|" * (len(BUDGETS) + 1),
    ]
    tolerated = [
        "",
        "Nodes for a tolerance, and by how much R squared is below the full model's on test rows:",
        "",
        "| data | " + " | ".join(f"tolerance={t:g}" for t in TOLERANCES) + " |",
        "|---|" + "---|" * len(TOLERANCES),
    ]
    for name in SETS:
        train, held_out, test = parts(given.data, name)
        model = lightgbm.LGBMRegressor(n_estimators=500, n_jobs=1, random_state=0, verbose=-1)
        model.fit(*train)
        chosen = {"X_val": held_out[0], "y_val": held_out[1]}
        full, everything = unexplained(model, *test), fp.Forest.from_model(model).n_nodes
        cells, errors = [f"{unexplained(model, *held_out):.4f} / {full:.4f}, {everything:,}"], []
        for nodes in (*BUDGETS, everything):
            small = fp.prune(model, *train, max_nodes=nodes, **chosen)
            errors.append(unexplained(small, *held_out))
            cells.append(f"{errors[-1]:.4f} / {unexplained(small, *test):.4f}, {small.n_nodes:,}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
        assert (np.diff(errors) <= 1e-12).all(), errors
        cells = []
        for tolerance in TOLERANCES:
            small = fp.prune(model, *train, tolerance=tolerance, **chosen)
            cells.append(f"{small.n_nodes:,}, {unexplained(small, *test) - full:+.4f}")
        tolerated.append(f"| {name} | {' | '.join(cells)} |")
        print(lines[-1], tolerated[-1], sep="\n", flush=True)
    (HERE / "results" / "reach.md").write_text("\n".join([*lines, *tolerated]) + "\n")


if __name__ == "__main__":
    main()
