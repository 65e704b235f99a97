"""What a fresh process waits for: importing the package, and the first calls.

python benchmarks/cold_start.py [--repeats 5]
"""

import argparse
import os
import subprocess
import sys
import tempfile

from rich.console import Console
from side_by_side import table

IMPORT = """
import time
begun = time.perf_counter()
{statement}
print(time.perf_counter() - begun)
"""

STATEMENTS = {
    "import sklearn": "import sklearn",
    "import forestprune": "import forestprune",
    "its functions and classes": "from forestprune import Forest, ForestPruneRegressor, prune",
}

HELP = """
import subprocess, sys, time
begun = time.perf_counter()
subprocess.run([sys.executable, "-m", "forestprune", "--help"], stdout=subprocess.DEVNULL)
print(time.perf_counter() - begun)
"""

FIRST_CALLS = """
import time
import numpy as np
from sklearn.ensemble import RandomForestRegressor
X = np.random.default_rng(0).normal(size=(500, 4))
model = RandomForestRegressor(5, max_depth=6, random_state=0).fit(X, X[:, 0])
import forestprune as fp
begun = time.perf_counter()
forest = fp.Forest.from_model(model)
fp.encode(forest, X).node_sums(np.ones(len(X)))
forest.predict(X)
forest.predict(X[:1])
forest.truncate(2).to_native()
print(time.perf_counter() - begun)
"""

FIRST_PRUNING = """
import time
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
import forestprune as fp
wine = fp.load_wine_quality()
X, y = wine.data, wine.target
model = {model}.fit(X, y)
begun = time.perf_counter()
fp.prune(model, X[:4000], y[:4000], X_val=X[4000:], y_val=y[4000:], max_nodes=500).to_native()
print(time.perf_counter() - begun)
"""

MODELS = {
    "boosting, depth 5": ("GradientBoostingRegressor(n_estimators=100, max_depth=5)", 8),
    "a random forest, any depth": ("RandomForestRegressor(75, n_jobs=-1)", 12),
}
"""Shallow trees and deep ones need different machine code: each with its goal in seconds."""


def seconds(script: str, cache: str | None = None) -> float:
    """Return what `script` prints when it is run in a process of its own."""
    environment = dict(os.environ)
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = cache
    run = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    return float(run.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats

    rounds = [
        {name: seconds(IMPORT.format(statement=line)) for name, line in STATEMENTS.items()}
        for _ in range(repeats + 1)
    ]
    imports = {name: min(times[name] for times in rounds[1:]) for name in STATEMENTS}
    helping = min(seconds(HELP) for _ in range(repeats))
    with tempfile.TemporaryDirectory() as cache:
        cold = seconds(FIRST_CALLS, cache)
        warm = min(seconds(FIRST_CALLS, cache) for _ in range(repeats))
    prunings = {}
    for name, (model, _) in MODELS.items():
        script = FIRST_PRUNING.format(model=model)
        with tempfile.TemporaryDirectory() as cache:
            first = seconds(script, cache)
            prunings[name] = first, min(seconds(script, cache) for _ in range(repeats))

    result = table(f"A fresh process, best of {repeats}", "", "seconds", "goal")
    for name, taken in imports.items():
        result.add_row(name, f"{taken:.2f}", "")
    ratio = imports["its functions and classes"] / imports["import sklearn"]
    result.add_row("these over import sklearn", f"{ratio:.2f}", "below 1.3")
    result.add_row("forestprune --help, the whole process", f"{helping:.2f}", "below 0.5")
    result.add_row("first calls, numba cache empty", f"{cold:.2f}", "below 10")
    result.add_row("first calls, numba cache filled", f"{warm:.2f}", "below 1")
    for name, (first, again) in prunings.items():
        goal = f"below {MODELS[name][1]}"
        result.add_row(f"prune {name}, numba cache empty", f"{first:.2f}", goal)
        result.add_row(f"prune {name}, numba cache filled", f"{again:.2f}", "")
    Console().print(result)


if __name__ == "__main__":
    main()
