"""Size against error for classifiers: every way to prune, and small models trained directly.

    python benchmarks/classification.py [--data FOLDER] [--sets adult car ...] [--models rf xgb lgb]

For each classification data set, of two to 18 classes: 60 % of the rows train, 4,000 at most, 20 %
validate, 2,000 at most, and others test, 10,000 at most (seed 0, by class); categories one-hot,
missing values 0; classes of fewer than ten rows, or five that train or validate, are left out. The
originals: XGBoost, 100 rounds of depth 6; LightGBM, 200 rounds of 31 leaves; a random forest of
scikit-learn, 100 trees of depth 15; all else as the libraries have it. They are pruned with the
training rows: to each budget of nodes by one call of `prune`, and by the paper's layers and
competitors (`--models xgb lgb rf`); to each budget also with new splits (`--models xgb-split
lgb-split rf-split`). What a user would do instead: train a small LightGBM, XGBoost or random forest
on the same rows, many settings of each.
Global refinement is left out of several classes and of more than 15,000 nodes, and L1 over trees of
boosting for several classes: they take minutes there.

Every candidate is a point: nodes, then log-loss and balanced accuracy on validation and test rows.
Choices look at validation rows only. Points are kept in results/points/classes, so that a run that
was stopped goes on; `classification_report.py` makes tables and the figure of them, and
`split_report.py` of new splits beside those of all benchmarks.
"""

import argparse
import time
import warnings
from functools import partial
from itertools import product
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
import xgboost
from new_splits import BUDGETS, SPLIT, with_and_without
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

import forestprune as fp

HERE = Path(__file__).parent
POINTS = HERE / "results" / "points" / "classes"
OURS = "refitted subtrees"
MOST = {"train": 4000, "validate": 2000, "test": 10_000}
FEWEST, FEWEST_CHOOSING = 10, 5
MOST_NODES = 5000
"""The largest budget of the report."""
MOST_REFINED = 15_000
"""Of more nodes global refinement is left out."""
COLUMNS = ["nodes", "val", "test", "val_accuracy", "test_accuracy"]


class Split:
    """One data set, in three parts."""

    def __init__(self, folder, name):
        about = pd.read_csv(folder / "datasets.csv").set_index("name").loc[name]
        categories = str(about.categorical_columns).split(";") if about.n_categorical else []
        kinds = dict.fromkeys([*categories, "target"], str)
        frame = pd.read_csv(folder / f"{name}.csv.gz", dtype=kinds)
        counts = frame.target.value_counts()
        share = min(0.8, (MOST["train"] + MOST["validate"]) / len(frame))
        enough = (counts >= FEWEST) & (share * counts >= FEWEST_CHOOSING)
        frame = frame[frame.target.isin(counts.index[enough])]
        labels, y = np.unique(frame.pop("target"), return_inverse=True)
        X = pd.get_dummies(frame, columns=categories).fillna(0).to_numpy(dtype=np.float32)
        train = min(MOST["train"], int(0.6 * len(y)))
        validate = min(MOST["validate"], int(0.2 * len(y)))
        test = min(MOST["test"], len(y) - train - validate)
        parts = {"train_size": train + validate, "test_size": test, "random_state": 0}
        X, self.X_test, y, self.y_test = train_test_split(X, y, stratify=y, **parts)
        self.X, self.X_val, self.y, self.y_val = train_test_split(
            X, y, test_size=validate, stratify=y, random_state=0
        )
        self.classes = labels.size

    def figures(self, predict):
        """Return what columns after the nodes hold, for a function that gives probabilities."""
        return self.figures_of([predict(X) for X in (self.X_val, self.X_test)])

    def figures_of(self, found):
        """Return the same for the probabilities on validation and test rows."""
        pairs = list(zip((self.y_val, self.y_test), found, strict=True))
        return *(_log_loss(y, p) for y, p in pairs), *(_accuracy(y, p) for y, p in pairs)

    def path_figures(self, path):
        """Return the same, with nodes, of all points of a path."""
        parts = [path.validate(self.X_val, self.y_val), path.validate(self.X_test, self.y_test)]
        names = ("log_loss", "balanced_accuracy")
        columns = [part.metrics[name].tolist() for name in names for part in parts]
        return list(zip(path.n_nodes.tolist(), *columns, strict=True))


def _log_loss(y, probabilities):
    own = probabilities[np.arange(y.size), y]
    return -float(np.log(np.clip(own, np.finfo(float).eps, 1.0)).mean())


def _accuracy(y, probabilities):
    """Return the balanced accuracy."""
    right = np.bincount(y, probabilities.argmax(axis=1) == y)
    return float((right / np.bincount(y)).mean())


def original(kind, split):
    if kind == "rf":
        model = RandomForestClassifier(100, max_depth=15, n_jobs=1, random_state=0)
    elif kind == "xgb":
        model = xgboost.XGBClassifier(n_estimators=100, max_depth=6, n_jobs=1, random_state=0)
    else:
        model = lightgbm.LGBMClassifier(
            n_estimators=200, num_leaves=31, n_jobs=1, random_state=0, verbose=-1
        )
    return model.fit(split.X, split.y)


def methods(split, model):
    """Yield the name of every method, and a function that returns its path."""
    forest, rows = fp.Forest.from_model(model), (model, split.X, split.y)
    held_out = {"X_val": split.X_val, "y_val": split.y_val, "n_jobs": 1}
    layers = held_out | {"rule": "layer", "local_search": False, "max_nodes": MOST_NODES}
    yield "layers", lambda: fp.prune(*rows, **layers).path
    yield "fewer trees", lambda: fp.baselines.fewer_trees(*rows)
    yield "cost complexity", lambda: fp.baselines.cost_complexity(*rows)
    if forest.n_outputs == 1 or forest.averages:
        # A loss that is expanded around each solution takes long: 30 penalties will do.
        yield "L1 over trees", lambda: fp.baselines.lasso(*rows, n_alphas=30, eps=1e-3)
    if forest.n_outputs == 1 and forest.n_nodes <= MOST_REFINED:
        refined = {"max_nodes": MOST_NODES, "n_jobs": 1}
        yield "global refinement", lambda: fp.baselines.global_refinement(*rows, **refined)


def subtrees(split, model, budgets):
    """Return what `prune` makes of a model: rows of (method, budget, *COLUMNS)."""
    rows, held_out = [], {"X_val": split.X_val, "y_val": split.y_val, "n_jobs": 1}
    for budget in budgets:
        begun = time.perf_counter()
        small = fp.prune(model, split.X, split.y, max_nodes=budget, **held_out)
        rows.append((OURS, budget, small.n_nodes, *split.figures(small.predict_proba)))
        print(f"    {budget:,} nodes: {time.perf_counter() - begun:.1f} s", flush=True)
    return rows


def pruned(split, model):
    """Return the points of every other method: rows of (method, seconds, *COLUMNS)."""
    rows = []
    for method, run in methods(split, model):
        begun = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            path = run()
        taken = time.perf_counter() - begun
        rows += [(method, taken, *point) for point in split.path_figures(path)]
        print(f"    {method}: {taken:.1f} s", flush=True)
    return rows


def boosted(split):
    """Yield small boosted models: a name, one fitted with rounds to spare, its `predict_proba`."""
    rounds = 400 if split.classes < 5 else 60  # each of which has a tree a class
    common = {"n_estimators": rounds, "n_jobs": 1, "random_state": 0}
    for leaves, rate in product((2, 3, 4, 8, 16, 32), (0.05, 0.1, 0.2, 0.4)):
        model = lightgbm.LGBMClassifier(
            num_leaves=leaves, learning_rate=rate, min_child_samples=5, verbose=-1, **common
        ).fit(split.X, split.y)
        yield "LightGBM", model, lambda X, n, m=model: m.predict_proba(X, num_iteration=n)
    for depth, rate in product((1, 2, 3, 4, 6), (0.1, 0.3, 0.6)):
        model = xgboost.XGBClassifier(max_depth=depth, learning_rate=rate, **common)
        model.fit(split.X, split.y)
        yield "XGBoost", model, lambda X, n, m=model: m.predict_proba(X, iteration_range=(0, n))


def trained_directly(split):
    """Return the points of small models that were never large."""
    rows = []
    counts = np.unique(np.geomspace(1, 400, 25).astype(int))
    for name, model, predict in boosted(split):
        forest = fp.Forest.from_model(model)
        sizes = np.diff(forest.offsets).reshape(-1, forest.n_outputs).sum(axis=1).cumsum()
        for count in map(int, counts[counts <= sizes.size]):
            if sizes[count - 1] > MOST_NODES:
                break
            figures = split.figures(partial(predict, n=count))
            rows.append((name, "", int(sizes[count - 1]), *figures))
    for leaves in (2, 4, 8, 16, 32, 64, 128, 256):
        forest = RandomForestClassifier(
            50, max_leaf_nodes=leaves, max_features=0.5, n_jobs=1, random_state=0
        ).fit(split.X, split.y)
        each = [
            np.cumsum([tree.predict_proba(X) for tree in forest.estimators_], axis=0)
            for X in (split.X_val, split.X_test)
        ]
        sizes = np.cumsum([tree.tree_.node_count for tree in forest.estimators_])
        for count in (1, 2, 3, 5, 8, 12, 20, 30, 50):
            figures = split.figures_of([sums[count - 1] / count for sums in each])
            rows.append(("random forest", "", int(sizes[count - 1]), *figures))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data")
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--budgets", nargs="+", type=int, default=BUDGETS)
    kinds = ["xgb", "lgb", "rf"]
    parser.add_argument(
        "--models", nargs="+", default=[*kinds, "direct", *(kind + SPLIT for kind in kinds)]
    )
    options = parser.parse_args()
    if not options.data.exists():
        raise SystemExit(f"{options.data} does not exist: say where the data sets are with --data.")
    about = pd.read_csv(options.data / "datasets.csv")
    names = options.sets or about[about.task == "classification"].sort_values("rows").name
    POINTS.mkdir(parents=True, exist_ok=True)
    for name in names:
        missing = [m for m in options.models if not (POINTS / f"{name}-{m}.csv.gz").exists()]
        if not missing:
            continue
        split = Split(options.data, name)
        about_set = f"{name} ({len(split.y):,} training rows, {split.classes} classes)"
        for kind in missing:
            begun = time.perf_counter()
            print(f"{about_set}, {kind}", flush=True)
            if kind == "direct":
                rows = trained_directly(split)
            else:
                model = original(kind.removesuffix(SPLIT), split)
                fitted = time.perf_counter() - begun
                nodes = fp.Forest.from_model(model).n_nodes
                rows = [("full", fitted, nodes, *split.figures(model.predict_proba))]
                if kind.endswith(SPLIT):
                    how = (split.figures, fp.PrunedForest.predict_proba, options.budgets)
                    rows += with_and_without(split, model, *how)
                else:
                    rows += subtrees(split, model, options.budgets) + pruned(split, model)
            frame = pd.DataFrame(rows, columns=["method", "detail", *COLUMNS])
            file = POINTS / f"{name}-{kind}.csv.gz"
            frame.to_csv(file.with_suffix(".part"), index=False, compression="gzip")
            file.with_suffix(".part").rename(file)
            print(f"  {time.perf_counter() - begun:.1f} s", flush=True)


if __name__ == "__main__":
    main()
