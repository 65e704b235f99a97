"""Routing rows: time beside scikit-learn's own, and memory beside the size of the codes.

    python benchmarks/encoding.py [--rows 50000] [--trees 300] [--repeats 5]

Two forests, of depth 6 and of unlimited depth, on generated data with ten columns. Theirs is
scikit-learn's `apply` and `predict`, ours `encode` and `Forest.predict`, each on two threads. A
visit is one row passing one node below the root; it moves 16 bytes of the node and one number of X.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from side_by_side import best_times, table
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor

import forestprune as fp

THREADS = 2

# Run in a process of its own: the memory of one call cannot be told in one that has fitted forests.
MEMORY_SCRIPT = """
import json, re, sys
from pathlib import Path
import numpy as np
import forestprune as fp

def status(key):
    text = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(rf"{key}:\\s+(\\d+) kB", text)[1])

folder, threads = Path(sys.argv[1]), int(sys.argv[2])
forest, X = fp.Forest.load(folder / "forest.npz"), np.load(folder / "X.npy")
fp.encode(forest.truncate(1), X[:100], n_jobs=threads)
Path("/proc/self/clear_refs").write_text("5")
before = status("VmRSS")
encoding = fp.encode(forest, X, n_jobs=threads)
peak = status("VmHWM") - before
print(json.dumps({"codes": encoding.codes.nbytes, "peak": peak}))
"""


def peak_memory(forest: fp.Forest, X: np.ndarray) -> dict[str, int] | None:
    """Return the bytes of the codes, and by how much encoding raised the process at most."""
    if not Path("/proc/self/clear_refs").exists():
        return None
    with tempfile.TemporaryDirectory() as folder:
        forest.save(Path(folder) / "forest.npz")
        np.save(Path(folder) / "X.npy", X)
        run = subprocess.run(
            [sys.executable, "-c", MEMORY_SCRIPT, folder, str(THREADS)],
            capture_output=True,
            text=True,
            check=True,
        )
    return json.loads(run.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--trees", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()

    console = Console()
    X, y = make_friedman1(options.rows, n_features=10, noise=1.0, random_state=0)
    speed = table(
        f"{options.rows:,} rows x {options.trees} trees, {THREADS} threads, best of "
        f"{options.repeats}, seconds",
        *("depth", "task", "nodes", "theirs", "ours", "ratio", "ns a visit"),
    )
    memory = table(
        "Memory of encoding, MB", "depth", "codes", "type", "peak", "peak / codes", "node weights"
    )
    reading = table("Reading the model, seconds", "depth", "fit", "from_model", "to_native at 6")
    for depth in (6, None):
        begun = time.perf_counter()
        model = RandomForestRegressor(
            options.trees, max_depth=depth, max_features=1 / 3, n_jobs=THREADS, random_state=0
        ).fit(X, y)
        fitted = time.perf_counter()
        forest = fp.Forest.from_model(model)
        read = time.perf_counter()
        encoding = fp.encode(forest, X, n_jobs=THREADS)
        times = best_times(
            {
                "apply": lambda model=model: model.apply(X),
                "encode": lambda forest=forest: fp.encode(forest, X, n_jobs=THREADS),
                "their predict": lambda model=model: model.predict(X),
                "our predict": lambda forest=forest: forest.predict(X, n_jobs=THREADS),
                "to_native": lambda forest=forest: forest.truncate(6).to_native(),
            },
            options.repeats,
        )
        name = "no limit" if depth is None else str(depth)
        # Every node but the root is entered once by each of its rows.
        passing = encoding.node_sums(np.ones(options.rows), n_jobs=THREADS)
        visits = passing.sum() - options.rows * forest.n_trees
        for task, theirs, ours in (
            ("encode", "apply", "encode"),
            ("predict", "their predict", "our predict"),
        ):
            speed.add_row(
                name,
                task,
                f"{forest.n_nodes:,}",
                f"{times[theirs]:.3f}",
                f"{times[ours]:.3f}",
                f"{times[ours] / times[theirs]:.2f}",
                f"{times[ours] * THREADS / visits * 1e9:.1f}",
            )
        reading.add_row(
            name, f"{fitted - begun:.1f}", f"{read - fitted:.2f}", f"{times['to_native']:.2f}"
        )
        peak = peak_memory(forest, X)
        codes = encoding.codes
        memory.add_row(
            name,
            f"{codes.nbytes / 1e6:.1f}",
            str(codes.dtype),
            "not on this system" if peak is None else f"{peak['peak'] / 1e6:.1f}",
            "" if peak is None else f"{peak['peak'] / peak['codes']:.2f}",
            f"{passing.nbytes / 1e6:.1f}",
        )
    console.print(speed, memory, reading)


if __name__ == "__main__":
    main()
