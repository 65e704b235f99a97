"""Fit a boosted model into the flash memory of a microcontroller, as C.

    python examples/flash_budget.py --bytes 4096 --out wine.h

A model is pruned until its tables keep to the budget, and written as a C header: an array of nodes
of 8 bytes each, and a function of a few lines. If there is a C compiler, the header is compiled and
its predictions are compared with those of the model that was pruned.
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

NODE_BYTES, ROOT_BYTES, CONSTANT_BYTES = 8, 2, 4
MIN_BYTES = 3 * NODE_BYTES + ROOT_BYTES + CONSTANT_BYTES

HEADER = """\
/* {n_trees} trees, {n_nodes} nodes; tables of {n_bytes} bytes. Features, in order:
   {features}. */
#include <stdint.h>

typedef struct {{
    float number;   /* threshold of a split, value of a leaf */
    uint16_t child; /* the left one; the right one is the next */
    int8_t feature; /* -1 at a leaf */
}} forest_node;

static const forest_node forest_nodes[{n_nodes}] = {{
{nodes}
}};

static const uint16_t forest_roots[{n_trees}] = {{{roots}}};
static const float forest_constant = {constant};

static float forest_predict(const float *row) {{
    float sum = forest_constant;
    for (int tree = 0; tree < {n_trees}; tree++) {{
        const forest_node *node = &forest_nodes[forest_roots[tree]];
        while (node->feature >= 0)
            node = &forest_nodes[node->child + !(row[node->feature] <= node->number)];
        sum += node->number;
    }}
    return sum;
}}
"""

HARNESS = """
#include "forest.h"

void predict_all(const float *rows, int n_rows, int n_features, float *out) {
    for (int i = 0; i < n_rows; i++) out[i] = forest_predict(rows + i * n_features);
}
int table_bytes(void) {
    return sizeof forest_nodes + sizeof forest_roots + sizeof forest_constant;
}
"""


def table_bytes(forest: fp.Forest) -> int:
    """Return the size of the tables of a forest in C."""
    return NODE_BYTES * forest.n_nodes + ROOT_BYTES * forest.n_trees + CONSTANT_BYTES


def file_bytes(model: GradientBoostingRegressor) -> int:
    """Return the size of a model as a joblib file."""
    file = io.BytesIO()
    joblib.dump(model, file)
    return file.tell()


def to_c(forest: fp.Forest, features: list[str]) -> str:
    """Return a forest of numeric splits without missing values as a C header."""
    roots = forest.offsets[:-1]
    tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.offsets))
    is_leaf = forest.left < 0
    child = np.where(is_leaf, 0, roots[tree] + forest.left)
    value = forest.value[:, 0] * forest.scale[tree]
    number = np.where(is_leaf, value, forest.threshold).astype(np.float32)
    # Rows are float32: x <= t holds exactly if x <= the largest float32 that is not above t.
    above = ~is_leaf & (number > forest.threshold)
    number[above] = np.nextafter(number[above], np.float32(-np.inf))
    return HEADER.format(
        n_trees=forest.n_trees,
        n_nodes=forest.n_nodes,
        n_bytes=table_bytes(forest),
        features=", ".join(features),
        nodes="\n".join(
            f"    {{{_float(n)}, {c}, {f}}},"
            for n, c, f in zip(number, child, np.where(is_leaf, -1, forest.feature), strict=True)
        ),
        roots=", ".join(map(str, roots)),
        constant=_float(np.float32(forest.base[0])),
    )


def _float(number: np.float32) -> str:
    return f"{float(number).hex()}f"


def compiled_predictions(header: str, X: np.ndarray) -> tuple[np.ndarray, int] | None:
    """Return the predictions of the compiled header, and its size; None without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    rows = np.ascontiguousarray(X, dtype=np.float32)
    out = np.empty(len(rows), dtype=np.float32)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "forest.h").write_text(header, encoding="utf-8")
        (folder / "harness.c").write_text(HARNESS, encoding="utf-8")
        flags = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
        call = [compiler, *flags, "-o", "forest.so", "harness.c"]
        subprocess.run(call, cwd=folder, check=True)
        library = ctypes.CDLL(str(folder / "forest.so"))
        pointer = ctypes.POINTER(ctypes.c_float)
        places = (array.ctypes.data_as(pointer) for array in (rows, out))
        library.predict_all(next(places), len(rows), rows.shape[1], next(places))
        return out, library.table_bytes()


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--bytes", type=int, default=4096, help="flash that the tables may take")
    parser.add_argument("--trees", type=int, default=100, help="trees of the full model")
    parser.add_argument("--out", type=Path, help="where the header goes; by default nowhere")
    options = parser.parse_args()
    if options.bytes < MIN_BYTES:
        sys.exit(
            f"--bytes must be at least {MIN_BYTES}, for one tree with a root and two leaves; got "
            f"{options.bytes}."
        )

    wine = fp.load_wine_quality()
    X, X_test, y, y_test = train_test_split(wine.data, wine.target, random_state=0)
    X, X_val, y, y_val = train_test_split(X, y, random_state=0)
    model = GradientBoostingRegressor(n_estimators=options.trees, max_depth=5, random_state=0)
    model.fit(X, y)

    # A tree has three nodes at least, so this many nodes, and the roots of their trees, fit.
    max_nodes = 3 * (options.bytes - CONSTANT_BYTES) // (3 * NODE_BYTES + ROOT_BYTES)
    small = fp.prune(model, X, y, max_nodes=max_nodes, X_val=X_val, y_val=y_val)
    header = to_c(small.forest, wine.feature_names)

    full = fp.Forest.from_model(model)
    print(f"Budget: {options.bytes:,} bytes of tables, at most {max_nodes:,} nodes.\n")
    print(f"{'':<32}{'full':>10}{'small':>10}")
    print(f"{'trees':<32}{full.n_trees:>10,}{small.n_trees:>10,}")
    print(f"{'nodes':<32}{full.n_nodes:>10,}{small.n_nodes:>10,}")
    print(f"{'tables in C, bytes':<32}{table_bytes(full):>10,}{table_bytes(small.forest):>10,}")
    # What max_bytes= would limit: the file that the library writes, not the tables of a C program.
    print(f"{'joblib file, bytes':<32}{file_bytes(model):>10,}{small.n_bytes:>10,}")
    scores = [m.score(X_test, y_test) for m in (model, small.to_native())]
    print(f"{'R squared, rows not seen before':<32}{scores[0]:>10.3f}{scores[1]:>10.3f}\n")
    # Among models that fit, prune() takes the best on validation rows, not the largest.
    print(
        f"{table_bytes(small.forest):,} of {options.bytes:,} bytes are used: no larger model that "
        "was found to fit does better on the validation rows."
    )

    verified = compiled_predictions(header, X_test)
    if verified is None:
        print("There is no C compiler (cc) here: the header was NOT verified.")
    else:
        predictions, n_bytes = verified
        error = np.abs(predictions - small.predict(X_test)).max()
        print(
            f"Compiled: {n_bytes:,} bytes of tables; {predictions.size:,} predictions are within "
            f"{error:.1e} of the model's."
        )
    if options.out is not None:
        options.out.write_text(header, encoding="utf-8")
        print(f"Written to {options.out}.")


if __name__ == "__main__":
    main()
