"""Fit a boosted model into the flash memory of a microcontroller, as C.

    python examples/flash_budget.py --bytes 4096 --out wine.h

A model is pruned until its program in C keeps to the budget, and written as a header. If there is a
C compiler, the header is compiled, and its predictions are compared with those of the model.
"""

import argparse
import ctypes
import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import joblib
import numpy as np
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import train_test_split

import forestprune as fp
from forestprune.deploy import to_c
from forestprune.exceptions import OutOfReachError

HARNESS = """
#include "wine.h"

void predict_all(const float *rows, int n_rows, float *out) {
    for (int i = 0; i < n_rows; i++) out[i] = wine_predict(rows + i * wine_n_features);
}
"""


def compiled_predictions(header: str, X: np.ndarray) -> np.ndarray | None:
    """Return the predictions of the compiled header; None without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    rows = np.ascontiguousarray(X, dtype=np.float32)
    out = np.empty(len(rows), dtype=np.float32)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "wine.h").write_text(header, encoding="ascii")
        (folder / "harness.c").write_text(HARNESS, encoding="ascii")
        flags = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
        call = [compiler, *flags, "-o", "wine.so", "harness.c"]
        subprocess.run(call, cwd=folder, check=True)
        library = ctypes.CDLL(str(folder / "wine.so"))
        pointer = ctypes.POINTER(ctypes.c_float)
        places = (array.ctypes.data_as(pointer) for array in (rows, out))
        library.predict_all(next(places), len(rows), next(places))
        return out


def file_bytes(model: GradientBoostingRegressor) -> int:
    """Return the size of a model as a joblib file."""
    file = io.BytesIO()
    joblib.dump(model, file)
    return file.tell()


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--bytes", type=int, default=4096, help="flash that the model may take")
    parser.add_argument("--trees", type=int, default=100, help="trees of the full model")
    parser.add_argument("--out", type=Path, help="where the header goes; by default nowhere")
    options = parser.parse_args()

    wine = fp.load_wine_quality()
    X, X_test, y, y_test = train_test_split(wine.data, wine.target, random_state=0)
    X, X_val, y, y_val = train_test_split(X, y, random_state=0)
    model = GradientBoostingRegressor(n_estimators=options.trees, max_depth=5, random_state=0)
    model.fit(X, y)

    # Rows of floats, leaves of 16 bits: as the header below is written.
    wanted = {"max_bytes": options.bytes, "format": "c-int16"}
    try:
        small = fp.prune(model, X, y, **wanted, X_val=X_val, y_val=y_val)
    except OutOfReachError as error:
        sys.exit(f"--bytes: {error}")
    header = small.to_c("wine", dtype="float32", leaves="int16")

    full = small.path.source.forest
    full_bytes = to_c(full, dtype="float32", leaves="int16").n_bytes
    print(f"Budget: {options.bytes:,} bytes of flash.\n")
    print(f"{'':<32}{'full':>10}{'small':>10}")
    for what, name in (("trees", "n_trees"), ("nodes", "n_nodes"), ("thresholds", "n_thresholds")):
        print(f"{what:<32}{getattr(full, name):>10,}{getattr(small.forest, name):>10,}")
    print(f"{'C program, bytes at most':<32}{full_bytes:>10,}{small.n_bytes:>10,}")
    print(f"{'joblib file, bytes':<32}{file_bytes(model):>10,}{file_bytes(small.to_native()):>10,}")
    scores = [m.score(X_test, y_test) for m in (model, small.to_native())]
    print(f"{'R squared, rows not seen before':<32}{scores[0]:>10.3f}{scores[1]:>10.3f}\n")
    # Among models that fit, prune() takes the best on validation rows, not the largest.
    print(
        f"{small.n_bytes:,} of {options.bytes:,} bytes are used: no larger model that was found to "
        "fit does better on the validation rows."
    )

    predictions = compiled_predictions(header, X_test)
    if predictions is None:
        print("There is no C compiler (cc) here: the header was NOT verified.")
    else:
        error = np.abs(predictions - small.predict(X_test)).max()
        print(
            f"Compiled: {predictions.size:,} predictions are within {error:.1e} of the model's; "
            f"the header promises {header.error_bound:.1e}."
        )
    if options.out is not None:
        options.out.write_text(header, encoding="ascii")
        print(f"Written to {options.out}.")


if __name__ == "__main__":
    main()
