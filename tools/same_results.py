"""Some fifty prunings, written down to the last bit, so that a rebuilding can be held against them.

python tools/same_results.py record before.npz     with the code as it was
python tools/same_results.py record after.npz      with the code as it is
python tools/same_results.py compare before.npz after.npz

Nothing of the package but its public names is used, so both may be of any age.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]


def data() -> tuple[Any, Any, Any, Any]:
    """Return rows to prune with and validation rows: wines."""
    import forestprune as fp

    wine = fp.load_wine_quality()
    order = np.random.default_rng(0).permutation(len(wine.data))
    X, y = wine.data[order], wine.target[order].astype(float)
    return X[:4500], y[:4500], X[4500:], y[4500:]


def models(X: Any, y: Any) -> dict[str, Callable[[], Any]]:
    """Return how each model is trained."""
    import catboost
    import lightgbm
    import pandas as pd
    import xgboost
    from sklearn import ensemble
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    frame = pd.DataFrame(X[:2000], columns=[f"c{j}" for j in range(X.shape[1])])
    frame["kind"] = pd.Categorical(
        np.where(X[:2000, 5] > 50, "a", np.where(y[:2000] > 5, "b", "c"))
    )
    holes = X[:2000].copy()
    holes[::7, 3] = np.nan
    two = np.column_stack([y, X[:, 0]])[:1500]
    return {
        "deep forest": lambda: ensemble.RandomForestRegressor(60, random_state=0).fit(X, y),
        "forest": lambda: ensemble.RandomForestRegressor(25, max_depth=9, random_state=0).fit(X, y),
        "two outputs": lambda: ensemble.ExtraTreesRegressor(15, max_depth=7, random_state=0).fit(
            X[:1500], two
        ),
        "boosting": lambda: ensemble.GradientBoostingRegressor(
            n_estimators=60, max_depth=4, random_state=0
        ).fit(X, y),
        "histograms": lambda: ensemble.HistGradientBoostingRegressor(
            max_iter=40, random_state=0
        ).fit(holes, y[:2000]),
        "xgboost": lambda: xgboost.XGBRegressor(n_estimators=80, max_depth=5, n_jobs=1).fit(X, y),
        "xgboost rf": lambda: xgboost.XGBRFRegressor(
            n_estimators=12, max_depth=6, n_jobs=1, random_state=0
        ).fit(X, y),
        "lightgbm": lambda: lightgbm.LGBMRegressor(
            n_estimators=100, n_jobs=1, verbose=-1, deterministic=True
        ).fit(X, y),
        "categories": lambda: lightgbm.LGBMRegressor(
            n_estimators=30, n_jobs=1, verbose=-1, deterministic=True
        ).fit(frame, y[:2000]),
        "poisson": lambda: lightgbm.LGBMRegressor(
            objective="poisson", n_estimators=30, n_jobs=1, verbose=-1, deterministic=True
        ).fit(X[:1500], y[:1500]),
        "catboost": lambda: catboost.CatBoostRegressor(
            iterations=40, depth=5, thread_count=1, verbose=False, random_seed=0
        ).fit(X, y),
        "pipeline": lambda: make_pipeline(
            StandardScaler(), ensemble.RandomForestRegressor(10, max_depth=6, random_state=0)
        ).fit(X, y),
        "one tree": lambda: ensemble.RandomForestRegressor(1, random_state=0).fit(X[:500], y[:500]),
        "frame": lambda: frame,
        "holes": lambda: holes,
    }


LAYER: dict[str, Any] = {"rule": "layer"}

PRUNINGS: list[tuple[str, dict[str, Any]]] = [
    ("deep forest", {"max_nodes": 500}),
    ("deep forest", {"max_nodes": 500, "validate": True}),
    ("deep forest", {"tolerance": 0.05, "validate": True}),
    ("deep forest", {"max_nodes": 3000, "weights": True}),
    ("deep forest", {"alpha": 0.5}),
    ("deep forest", {"max_nodes": 2000, "refit": False}),
    ("deep forest", {**LAYER, "max_nodes": 2000}),
    ("forest", {}),
    ("forest", {"max_nodes": 200, "shrinkage": [5.0, 50.0], "validate": True}),
    ("forest", {"max_trees": 3}),
    ("forest", {"max_bytes": 20_000}),
    ("forest", {"one_standard_error": True, "validate": True}),
    ("forest", {"max_nodes": 300, "polish": "leaf"}),
    ("forest", {"max_nodes": 300, "polish": "ridge"}),
    ("forest", {"max_trees": 5, "polish": "subset"}),
    ("forest", {"max_depth": 3, "max_nodes": 100, "validate": True}),
    ("forest", {**LAYER}),
    ("forest", {**LAYER, "max_nodes": 300, "weighting": "depth"}),
    ("forest", {**LAYER, "max_nodes": 300, "joint": "ridge"}),
    ("forest", {**LAYER, "alpha": 0.2, "joint": "subset", "alpha2": 0.001}),
    ("forest", {**LAYER, "max_nodes": 400, "polish": "leaf", "validate": True}),
    ("forest", {**LAYER, "max_nodes": 400, "polish": "ridge", "validate": True}),
    ("forest", {**LAYER, "alpha": 0.3, "local_search": "random", "random_state": 3}),
    ("forest", {**LAYER, "alpha": 0.3, "local_search": "correlated", "random_state": 3}),
    ("forest", {**LAYER, "alpha": 0.3, "local_search": False}),
    ("two outputs", {"max_nodes": 300}),
    ("two outputs", {**LAYER, "max_nodes": 300, "polish": "ridge"}),
    ("boosting", {"max_nodes": 300, "validate": True}),
    ("boosting", {"max_nodes": 300, "refit": False}),
    ("boosting", {**LAYER, "max_nodes": 300}),
    ("boosting", {"max_trees": 4, "max_nodes": 30}),
    ("boosting", {"max_nodes": 200, "shrinkage": 0.0}),
    ("histograms", {"max_nodes": 400}),
    ("histograms", {**LAYER, "max_trees": 10}),
    ("xgboost", {"max_nodes": 300}),
    ("xgboost", {"tolerance": 0.02, "validate": True}),
    ("xgboost", {"max_nodes": 300, "weights": True, "validate": True}),
    ("xgboost", {"max_bytes": 60_000, "validate": True}),
    ("xgboost", {**LAYER, "max_nodes": 300, "local_search": False}),
    ("xgboost rf", {"max_nodes": 200}),
    ("xgboost rf", {**LAYER, "alpha": 0.3}),
    ("lightgbm", {"max_nodes": 500}),
    ("lightgbm", {"tolerance": 0.01, "validate": True}),
    ("lightgbm", {"max_nodes": 200, "polish": "leaf", "weights": True}),
    ("categories", {"max_nodes": 300}),
    ("poisson", {"max_nodes": 100, "unlabelled": True}),
    ("catboost", {"max_nodes": 300, "validate": True}),
    ("catboost", {**LAYER, "max_nodes": 300}),
    ("pipeline", {"max_nodes": 100}),
    ("one tree", {"max_nodes": 50}),
]

PATHS: list[tuple[str, dict[str, Any]]] = [
    ("deep forest", {"n_alphas": 25}),
    ("forest", {"n_alphas": 30, "validate": True}),
    ("forest", {**LAYER, "n_alphas": 30, "validate": True}),
    ("forest", {**LAYER, "n_alphas": 15, "weights": True, "joint": "ridge"}),
    ("forest", {"n_alphas": 15, "weights": True, "weighting": "nodes by depth"}),
    ("lightgbm", {"n_alphas": 30, "validate": True, "max_depth": 4}),
    ("xgboost", {"alphas": [0.3, 0.1, 0.01], "refit": False}),
]


def prunings() -> Iterator[tuple[str, Arrays]]:
    """Yield the name of each configuration and what came out."""
    import forestprune as fp

    X, y, X_val, y_val = data()
    make = models(X, y)
    fitted: dict[str, Any] = {}

    def rows_of(name: str) -> tuple[Any, Any]:
        if name == "categories":
            return fitted.setdefault("frame", make["frame"]()), y[:2000]
        if name == "histograms":
            return fitted.setdefault("holes", make["holes"]()), y[:2000]
        if name == "two outputs":
            return X[:1500], np.column_stack([y, X[:, 0]])[:1500]
        return X, y

    def called(function: Any, name: str, options: dict[str, Any]) -> tuple[Any, Any]:
        rows, target = rows_of(name)
        given = dict(options)
        if given.pop("weights", False):
            given["sample_weight"] = (
                np.random.default_rng(1).integers(0, 4, len(target)).astype(float)
            )
        if given.pop("validate", False):
            given |= {"X_val": X_val, "y_val": y_val}
        if given.pop("unlabelled", False):
            target = None
        if isinstance(given.get("weighting"), str) and given["weighting"].startswith("nodes by"):
            given["weighting"] = 1.0 + fp.Forest.from_model(fitted[name]).node_depths
        return function(fitted[name], rows, target, **given), rows

    for name, options in PRUNINGS:
        if name not in fitted:
            fitted[name] = make[name]()
        small, rows = called(fp.prune, name, options)
        yield f"prune {name} {options}", described(small, rows)
    for name, options in PATHS:
        path, rows = called(fp.prune_path, name, options)
        yield f"path {name} {options}", of_path(path)
    for options in ({"max_nodes": 200, "n_alphas": 12}, {"rule": "layer", "n_alphas": 12}):
        estimator = fp.ForestPruneRegressorCV(fitted["forest"], cv=3, **options).fit(X, y)
        found = of_path(estimator.path_) | described(estimator.pruned_, X)
        yield f"folds {options}", found | {"scores": estimator.scores_}


def described(small: Any, rows: Any) -> Arrays:
    """Return everything about a pruned forest."""
    arrays: Arrays = {f"forest/{name}": array for name, array in small.forest.pack()[0].items()}
    for name in ("depths", "weights", "alpha", "objective", "loss", "n_iter"):
        arrays[name] = np.asarray(getattr(small, name))
    arrays["predicted"] = np.asarray(small.to_native().predict(rows[:300]))
    return arrays


def of_path(path: Any) -> Arrays:
    """Return everything about a path."""
    names = ("alphas", "objectives", "losses", "depths", "weights", "intercepts", "n_nodes")
    arrays = {f"path/{name}": np.asarray(getattr(path, name)) for name in names}
    if path.validation is not None:
        arrays["path/scores"] = path.validation.scores
        arrays["path/errors"] = path.validation.standard_errors
        arrays["path/full"] = np.asarray(path.validation.full)
    return arrays


def compare(before: Arrays, after: Arrays) -> list[str]:
    """Return a line for each array that differs."""
    lines = [f"only in one: {name}" for name in sorted(set(before) ^ set(after))]
    for name in sorted(set(before) & set(after)):
        old, new = before[name], after[name]
        if old.shape != new.shape:
            lines.append(f"{name}: shape {old.shape} is now {new.shape}")
        elif not np.array_equal(old, new, equal_nan=old.dtype.kind == "f"):
            size = np.abs(old.astype(float)).max(initial=0.0) or 1.0
            by = float(np.abs(old.astype(float) - new.astype(float)).max()) / size
            lines.append(f"{name}: differs by {by:.2g} of the largest")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("record", "compare"))
    parser.add_argument("files", nargs="+")
    given = parser.parse_args()
    if given.what == "compare":
        with np.load(given.files[0]) as first, np.load(given.files[1]) as second:
            lines = compare(dict(first), dict(second))
        count = len(PRUNINGS) + len(PATHS) + 2
        print("\n".join(lines) or f"{count} configurations, the same to the last bit")
        return bool(lines)
    warnings.simplefilter("ignore")
    found: Arrays = {}
    for name, arrays in prunings():
        print(name, flush=True)
        found |= {f"{name} | {key}": array for key, array in arrays.items()}
    with Path(given.files[0]).open("wb") as file:
        np.savez_compressed(file, **found)  # type: ignore[arg-type]
    return 0


if __name__ == "__main__":
    sys.exit(main())
