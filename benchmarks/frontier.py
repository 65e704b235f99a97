"""Size against test error: every way to prune, and small models trained directly.

    python benchmarks/frontier.py [--data FOLDER] [--sets kin8nm houses ...] [--models rf gb]

For each regression data set: 60 % of the rows train, 20 % validate, 20 % test (seed 0); categories
one-hot, missing values 0, the target standardised by the training rows; of sets with more rows,
20,000, or as many as `--rows` says, drawn at random. The originals are a random forest (100 trees,
depth 20, sqrt features) and boosting (250 trees, depth 5, subsample 0.25), both of scikit-learn;
and 500 trees of XGBoost (depth 6) and of LightGBM (31 leaves), with a rate of 0.05 and 0.8 of the
rows for each tree. They are
pruned with the training rows. What a user would do instead: train a small model of LightGBM,
XGBoost or scikit-learn on the training rows, many settings of each.

Every candidate is a point (nodes, validation error, test error). Choices look at validation errors
only; the test error of what was chosen is reported. Points are kept in results/points, so that a
run that was stopped goes on; `frontier_report.py` makes tables and the figure of them.

`--models rf-split gb-split ...` are the same originals, pruned to each budget with and without new
splits by one call of `prune` with `polish="split"`; `split_report.py` makes tables of these.
"""

import argparse
import time
import warnings
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
import xgboost
from new_splits import BUDGETS, SPLIT, with_and_without
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

import forestprune as fp

HERE = Path(__file__).parent
MOST_ROWS = 20_000
SHRINKAGES = (10.0, 100.0, 1000.0)
MOST_NODES_TO_POLISH = 20_000
METHODS = {
    "layer + ridge": {"rule": "layer", "polish": "ridge"},
    "layer + leaf": {"rule": "layer", "polish": "leaf"},
    "layer joint": {"rule": "layer", "joint": "ridge", "local_search": False},
    "layer joint + leaf": {
        "rule": "layer",
        "joint": "ridge",
        "local_search": False,
        "polish": "leaf",
    },
    "subtree": {"rule": "subtree", "refit": False},
    "subtree + leaf": {"rule": "subtree", "refit": False, "polish": "leaf"},
    "subtree + refit": {"rule": "subtree", "refit": True},
    "subtree + refit + leaf": {"rule": "subtree", "refit": True, "polish": "leaf"},
}


class Split:
    """One data set, in three parts."""

    def __init__(self, folder, name, rows=MOST_ROWS):
        about = pd.read_csv(folder / "datasets.csv").set_index("name").loc[name]
        categories = str(about.categorical_columns).split(";") if about.n_categorical else []
        frame = pd.read_csv(folder / f"{name}.csv.gz", dtype=dict.fromkeys(categories, str))
        if len(frame) > rows:
            frame = frame.sample(rows, random_state=0)
        y = frame.pop("target").to_numpy(dtype=float)
        X = pd.get_dummies(frame, columns=categories).fillna(0).to_numpy(dtype=float)
        X, self.X_test, y, y_test = train_test_split(X, y, test_size=0.2, random_state=0)
        self.X, self.X_val, y, y_val = train_test_split(X, y, test_size=0.25, random_state=0)
        mean, spread = y.mean(), y.std()
        self.y, self.y_val, self.y_test = ((part - mean) / spread for part in (y, y_val, y_test))

    def errors(self, predict):
        """Return the mean squared errors on validation and test rows."""
        return (
            float(np.mean((predict(self.X_val) - self.y_val) ** 2)),
            float(np.mean((predict(self.X_test) - self.y_test) ** 2)),
        )

    def path_errors(self, path):
        """Return nodes, validation and test errors of the points of a path."""
        parts = ((self.X_val, self.y_val), (self.X_test, self.y_test))
        errors = [(1.0 - path.score(X, y)) * y.var() for X, y in parts]
        return list(zip(path.n_nodes.tolist(), *map(np.ndarray.tolist, errors), strict=True))


def original(kind, X, y):
    if kind == "rf":
        model = RandomForestRegressor(
            100, max_depth=20, max_features="sqrt", n_jobs=2, random_state=0
        )
    elif kind == "gb":
        model = GradientBoostingRegressor(
            n_estimators=250, max_depth=5, subsample=0.25, random_state=0
        )
    else:
        common = {"n_estimators": 500, "learning_rate": 0.05, "subsample": 0.8}
        common |= {"n_jobs": 1, "random_state": 0}
        if kind == "xgb":
            model = xgboost.XGBRegressor(max_depth=6, **common)
        else:
            model = lightgbm.LGBMRegressor(num_leaves=31, subsample_freq=1, verbose=-1, **common)
    return model.fit(X, y)


def pruned(split, model):
    """Return the points of every method: rows of (method, detail, nodes, val, test)."""
    rows = []
    alphas = {}
    for method, options in METHODS.items():
        begun = time.perf_counter()
        base = method.removesuffix(" + leaf")
        polishes_leaves = options.get("polish") == "leaf"
        polished = (100.0,) if polishes_leaves else (None,)
        for shrinkage in SHRINKAGES if options.get("refit") else polished:
            given = {}
            if polishes_leaves and base in ("layer", "layer joint", "subtree"):
                # The same points as without; the largest have no need.
                given["alphas"] = alphas["layer + ridge" if base == "layer" else base]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                path = fp.prune_path(
                    model, split.X, split.y, shrinkage=shrinkage, **options, **given
                )
            small = path.n_nodes <= MOST_NODES_TO_POLISH
            alphas[method] = path.alphas[small]
            rows += [(method, shrinkage, *point) for point in split.path_errors(path)]
        print(f"    {method}: {time.perf_counter() - begun:.1f} s", flush=True)
    return rows


def trained_directly(split):
    """Return the points of small models that were never large."""
    rows = []
    counts = np.unique(np.geomspace(1, 400, 30).astype(int))
    for leaves in (2, 3, 4, 6, 8, 12, 16, 32):
        for rate in (0.05, 0.1, 0.2, 0.4):
            booster = lightgbm.LGBMRegressor(
                n_estimators=400,
                num_leaves=leaves,
                learning_rate=rate,
                min_child_samples=5,
                n_jobs=1,
                verbose=-1,
                random_state=0,
            ).fit(split.X, split.y)
            frame = booster.booster_.trees_to_dataframe()
            sizes = frame.groupby("tree_index").size().to_numpy().cumsum()
            for count in counts[counts <= sizes.size]:
                errors = split.errors(
                    lambda X, n=int(count), b=booster: b.predict(X, num_iteration=n)
                )
                rows.append(("LightGBM", f"{leaves} {rate}", int(sizes[count - 1]), *errors))
    parts = [xgboost.DMatrix(X) for X in (split.X_val, split.X_test)]
    targets = (split.y_val, split.y_test)
    for depth in (1, 2, 3, 4, 5, 6):
        for rate in (0.1, 0.3, 0.6):
            booster = xgboost.XGBRegressor(
                n_estimators=400, max_depth=depth, learning_rate=rate, n_jobs=1, random_state=0
            ).fit(split.X, split.y)
            frame = booster.get_booster().trees_to_dataframe()
            sizes = frame.groupby("Tree").size().to_numpy().cumsum()
            for count in counts[counts <= sizes.size]:
                errors = [
                    float(np.mean((inner.predict(part, iteration_range=(0, int(count))) - y) ** 2))
                    for inner in [booster.get_booster()]
                    for part, y in zip(parts, targets, strict=True)
                ]
                rows.append(("XGBoost", f"{depth} {rate}", int(sizes[count - 1]), *errors))
    for leaves in (2, 4, 8, 16, 32, 64, 128, 256):
        forest = RandomForestRegressor(
            50, max_leaf_nodes=leaves, max_features=0.5, n_jobs=2, random_state=0
        ).fit(split.X, split.y)
        each = [
            np.cumsum([tree.predict(X) for tree in forest.estimators_], axis=0)
            for X in (split.X_val, split.X_test)
        ]
        sizes = np.cumsum([tree.tree_.node_count for tree in forest.estimators_])
        for count in (1, 2, 3, 5, 8, 12, 20, 30, 50):
            errors = [
                float(np.mean((sums[count - 1] / count - y) ** 2))
                for sums, y in zip(each, targets, strict=True)
            ]
            rows.append(("random forest", f"{leaves}", int(sizes[count - 1]), *errors))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data")
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--budgets", nargs="+", type=int, default=BUDGETS)
    parser.add_argument("--rows", type=int, default=MOST_ROWS)
    kinds = ["rf", "gb", "xgb", "lgb"]
    parser.add_argument(
        "--models", nargs="+", default=[*kinds, "direct", *(kind + SPLIT for kind in kinds)]
    )
    options = parser.parse_args()
    if not options.data.exists():
        raise SystemExit(f"{options.data} does not exist: say where the data sets are with --data.")
    about = pd.read_csv(options.data / "datasets.csv")
    names = options.sets or about[about.task == "regression"].sort_values("rows").name
    points = HERE / "results" / "points"
    points.mkdir(parents=True, exist_ok=True)
    for name in names:
        missing = [m for m in options.models if not (points / f"{name}-{m}.csv.gz").exists()]
        if not missing:
            continue
        split = Split(options.data, name, options.rows)
        for kind in missing:
            begun = time.perf_counter()
            print(f"{name} ({len(split.y):,} training rows), {kind}", flush=True)
            if kind == "direct":
                rows = trained_directly(split)
            else:
                model = original(kind.removesuffix(SPLIT), split.X, split.y)
                fitted = time.perf_counter() - begun
                nodes = fp.Forest.from_model(model).n_nodes
                rows = [("full", fitted, nodes, *split.errors(model.predict))]
                if kind.endswith(SPLIT):
                    how = (split.errors, fp.PrunedForest.predict, options.budgets)
                    rows += with_and_without(split, model, *how)
                else:
                    rows += pruned(split, model)
            frame = pd.DataFrame(rows, columns=["method", "detail", "nodes", "val", "test"])
            file = points / f"{name}-{kind}.csv.gz"
            frame.to_csv(file.with_suffix(".part"), index=False, compression="gzip")
            file.with_suffix(".part").rename(file)
            print(f"  {time.perf_counter() - begun:.1f} s", flush=True)


if __name__ == "__main__":
    main()
