"""Shrink a random forest, and use the small one where forestprune is not installed.

    python examples/shrink_a_forest.py

A forest is fitted to the bundled wine data and pruned: the smallest model is taken whose R squared
on validation rows is at most 0.05 (--tolerance) below the forest's. What comes out is a
RandomForestRegressor again: a second Python, in which forestprune cannot be imported, loads it and
predicts. Test rows are looked at once, in the end.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import joblib
import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import train_test_split

import forestprune as fp

SERVE = """
import sys

sys.modules["forestprune"] = None  # from here on, importing it is an error
import joblib
import numpy as np

model = joblib.load("small.joblib")
np.save("served.npy", model.predict(np.load("rows.npy")))
print(type(model).__name__)
"""


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trees", type=int, default=100, help="trees of the forest")
    parser.add_argument("--tolerance", type=float, default=0.05, help="R squared that may be lost")
    options = parser.parse_args()

    wine = fp.load_wine_quality()
    X, X_test, y, y_test = train_test_split(wine.data, wine.target, random_state=0)
    X, X_val, y, y_val = train_test_split(X, y, random_state=0)
    model = RandomForestRegressor(options.trees, max_features=1 / 3, random_state=0).fit(X, y)

    small = fp.prune(model, X, y, tolerance=options.tolerance, X_val=X_val, y_val=y_val)
    native = small.to_native()

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        joblib.dump(model, folder / "full.joblib")
        joblib.dump(native, folder / "small.joblib")
        full_bytes, small_bytes = (
            (folder / file).stat().st_size for file in ("full.joblib", "small.joblib")
        )
        np.save(folder / "rows.npy", X_test)
        serving = subprocess.run(
            [sys.executable, "-c", SERVE], cwd=folder, check=True, capture_output=True, text=True
        )
        served = np.load(folder / "served.npy")

    full = fp.Forest.from_model(model)
    print(
        "The smallest model whose R squared on validation rows, by which it is chosen, is at most "
        f"{options.tolerance:g} below the full one's:\n"
    )
    print(f"{'':<32}{'full':>12}{'small':>12}")
    print(f"{'trees':<32}{full.n_trees:>12,}{small.n_trees:>12,}")
    print(f"{'nodes':<32}{full.n_nodes:>12,}{small.n_nodes:>12,}")
    print(f"{'joblib file, bytes':<32}{full_bytes:>12,}{small_bytes:>12,}")
    for rows, target, label in ((X_val, y_val, "chosen by"), (X_test, y_test, "not seen before")):
        scores = "".join(f"{m.score(rows, target):>12.3f}" for m in (model, native))
        print(f"{f'R squared, rows {label}':<32}{scores}")
    same = np.array_equal(served, native.predict(X_test))
    print(
        f"\nWithout forestprune, a {serving.stdout.strip()} was loaded; its {served.size:,} "
        f"predictions are {'the same, bit for bit' if same else 'NOT the same'}."
    )


if __name__ == "__main__":
    main()
