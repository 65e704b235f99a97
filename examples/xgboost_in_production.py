"""Make an XGBoost model small on its way to production: a file in, a file out.

    python examples/xgboost_in_production.py

A model is trained and saved as model.json, as a training job would. A second step knows that file
and some rows only: it writes small.json, the smallest model whose R squared on validation rows is
at most 0.005 (--tolerance) below that of model.json. The third, a Python in which forestprune
cannot be imported, loads both files with xgboost alone and serves test rows, which nothing has seen
before.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
from xgboost import XGBRegressor

import forestprune as fp

SERVE = """
import json, sys, time

sys.modules["forestprune"] = None  # from here on, importing it is an error
import numpy as np
import xgboost

rows = np.load("rows.npy")
report = {}
for name in ("model", "small"):
    booster = xgboost.Booster({"nthread": 1}, model_file=f"{name}.json")
    times = []
    for _ in range(7):
        begun = time.perf_counter()
        predictions = booster.inplace_predict(rows)
        times.append(time.perf_counter() - begun)
    np.save(f"{name}.npy", predictions)
    report[name] = min(times)
print(json.dumps(report))
"""


def train(folder: Path, n_rows: int, n_trees: int) -> None:
    """Train a model; leave it and its rows in a folder."""
    X, y = make_friedman1(2 * n_rows, noise=1.0, random_state=0)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    X, X_val, y, y_val = train_test_split(X, y, test_size=0.25, random_state=0)
    model = XGBRegressor(n_estimators=n_trees, learning_rate=0.1, max_depth=6, n_jobs=1)
    model.fit(X, y).save_model(folder / "model.json")
    np.savez(folder / "train.npz", X=X, y=y, X_val=X_val, y_val=y_val)
    np.savez(folder / "test.npz", X=X_test, y=y_test)


def shrink(folder: Path, tolerance: float) -> fp.PrunedForest:
    """Prune model.json to small.json; the small one is still validated as the full one was."""
    with np.load(folder / "train.npz") as rows:
        X, y, X_val, y_val = (rows[name] for name in ("X", "y", "X_val", "y_val"))
    small = fp.prune(folder / "model.json", X, y, tolerance=tolerance, X_val=X_val, y_val=y_val)
    small.to_native().save_model(folder / "small.json")
    return small


def serve(folder: Path) -> dict[str, float]:
    """Predict with both files where only xgboost is installed; return the seconds it took."""
    with np.load(folder / "test.npz") as rows:
        np.save(folder / "rows.npy", rows["X"])
    call = [sys.executable, "-c", SERVE]
    result = subprocess.run(call, cwd=folder, check=True, capture_output=True, text=True)
    return json.loads(result.stdout)


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=4000, help="rows, with those to choose by")
    parser.add_argument("--trees", type=int, default=300, help="trees of the model")
    parser.add_argument("--tolerance", type=float, default=0.005, help="R squared to be lost")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train(folder, options.rows, options.trees)
        small = shrink(folder, options.tolerance)
        seconds = serve(folder)
        full = fp.Forest.from_file(folder / "model.json")
        sizes = [(folder / f"{which}.json").stat().st_size for which in ("model", "small")]
        served = [np.load(folder / f"{which}.npy") for which in ("model", "small")]
        with np.load(folder / "test.npz") as rows:
            X_test, y_test = rows["X"], rows["y"]

    def line(what: str, *entries: str) -> None:
        print(f"{what:<40}{entries[0]:>12}{entries[1]:>12}")

    line("", "model.json", "small.json")
    line("trees", f"{full.n_trees:,}", f"{small.n_trees:,}")
    line("nodes", f"{full.n_nodes:,}", f"{small.n_nodes:,}")
    line("file, bytes", *(f"{size:,}" for size in sizes))
    line("R squared, test rows", *(f"{r2_score(y_test, p):.4f}" for p in served))
    per_row = [1e6 * seconds[which] / len(X_test) for which in ("model", "small")]
    line("prediction on one core, microseconds/row", *(f"{t:.2f}" for t in per_row))
    error = np.abs(served[1] - small.predict(X_test)).max()
    print(
        f"\nServed by xgboost alone, {len(X_test):,} predictions are within {error:.1e} of what "
        f"forestprune promised; the small file is {sizes[0] / sizes[1]:.0f} times smaller and "
        f"predicts {per_row[0] / per_row[1]:.1f} times as fast."
    )


if __name__ == "__main__":
    main()
