"""The paper's timing table: one solve at alpha = 1, and a path of 100 alphas.

    python benchmarks/timing.py [--rows 1145 15437 50164] [--trees 100 500 1000]

Random forests of depth 6 on generated data with ten columns. Beside ours stand the paper's
algorithm as it is printed (`literal.py`, matrices and all, until a sweep changes nothing) and the
time scikit-learn takes to fit the forest on two cores. To prepare is, for us, to encode the rows
and pose the problem; for the literal one, to build the matrices. To measure the layers, which is
done once for all alphas, is a column of its own and in the path, but not in one solve. Both descend
without local search; ours with it is another column, and the last column compares objectives with
it on both sides. Where the literal one would take longer than --patience seconds, some of its block
updates are timed and multiplied by the number it needs, which is known: it makes the same updates
in the same order as our descent does without its shortcuts. Such figures have a ~.
The last table has forests of other depths, up to no limit at all.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from literal import Literal
from rich.console import Console
from side_by_side import seconds, table
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor

import forestprune as fp
from forestprune.options import Options
from forestprune.select.solver import Solver
from forestprune.solve.descent import Descent
from forestprune.solve.layers.layers import measured_layers
from forestprune.solve.layers.rule import LayerRule
from forestprune.solve.layers.tuning import Tuning
from forestprune.solve.problem import pose

WITHOUT_GUESSES = Tuning(guesses=0)

MEMORY_SCRIPT = """
import json, re, sys
from pathlib import Path
import numpy as np
import forestprune as fp

def status(key):
    text = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(rf"{key}:\\s+(\\d+) kB", text)[1])

folder = Path(sys.argv[1])
forest = fp.Forest.load(folder / "forest.npz")
X, y = np.load(folder / "X.npy"), np.load(folder / "y.npy")
fp.prune_path(forest, X[:5000], y[:5000], n_alphas=3, rule="layer")
Path("/proc/self/clear_refs").write_text("5")
before = status("VmRSS")
fp.prune_path(forest, X, y, rule="layer")
print(json.dumps(status("VmHWM") - before))
"""


def prepare(forest, X, y):
    """Return the problem and its layers, and the seconds that each of them takes."""
    prepared, problem = seconds(lambda: pose(fp.encode(forest, X), y))
    # A copy does not know yet how many rows pass each node, which is part of it.
    measured, layers = seconds(lambda: measured_layers(replace(problem), Tuning()))
    return problem, layers, prepared, measured


def solves(problem, tuning=None):
    """Return a function that solves at alpha = 1, from nothing kept and no tree looked at."""
    rule = LayerRule(problem, tuning=tuning)
    begun = rule.save()

    def solve():
        rule.restore(begun)
        rule.look_at(np.arange(rule.order.size))
        descent = Descent(rule)
        descent.descend(1.0, 1000)
        return rule, descent

    return solve


def twin_of(problem, alphas):
    """Return our descent with the same updates in the same order as the literal algorithm.

    So it makes as many sweeps: no guesses, trees as they stand.
    """
    twin = Descent(LayerRule(problem, tuning=WITHOUT_GUESSES))
    twin.rule.order = np.arange(twin.rule.order.size)
    for alpha in alphas:
        twin.descend(alpha, 1000)
    return twin


def literal_seconds(literal, problem, alphas, patience):
    """Return the time the literal algorithm takes for some alphas, and whether it was sampled."""
    updates = twin_of(problem, alphas).sweeps * literal.n_trees
    z = np.zeros((literal.n_trees, literal.depth))
    rest = literal.residual(z)
    begun = time.perf_counter()
    sample = min(literal.n_trees, 50)
    for i in range(sample):
        literal.update(z, rest, i, alphas[0])
    each = (time.perf_counter() - begun) / sample
    if each * updates > patience:
        return each * updates, True
    return seconds(lambda: literal.path(alphas), repeats=1)[0], False


def peak_memory(forest, X, y):
    """Return by how much a path of 100 alphas raises a process at most."""
    if not Path("/proc/self/clear_refs").exists():
        return None
    with tempfile.TemporaryDirectory() as folder:
        forest.save(Path(folder) / "forest.npz")
        np.save(Path(folder) / "X.npy", X)
        np.save(Path(folder) / "y.npy", y)
        command = [sys.executable, "-c", MEMORY_SCRIPT, folder]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def measure(rows, n_trees, patience):
    X, y = make_friedman1(rows, n_features=10, noise=1.0, random_state=0)
    model = RandomForestRegressor(n_trees, max_depth=6, n_jobs=2, random_state=0)
    fit, _ = seconds(lambda: model.fit(X, y), repeats=1)
    forest = fp.Forest.from_model(model)
    plain, searching = Options(rule="layer", local_search=False), Options(rule="layer")

    def path(options):
        solver = Solver(pose(fp.encode(forest, X), y), options)
        return solver.path(solver.grid(100))

    problem, _, prepared, measured = prepare(forest, X, y)
    single, _ = seconds(solves(problem))
    whole, points = seconds(lambda: path(plain), repeats=2)
    searched, better = seconds(lambda: path(searching), repeats=1)
    matrices, literal = seconds(lambda: Literal(problem, X), repeats=1)
    alphas = np.array([point.alpha for point in points])
    literal_single, sampled_single = literal_seconds(literal, problem, np.ones(1), patience)
    literal_path, sampled_path = literal_seconds(literal, problem, alphas, patience)
    worst = np.nan
    if not sampled_path:
        theirs = literal.path(alphas, np.random.default_rng(0))
        ratios = [
            ours.objective / literal.objective(z, ours.alpha) - 1
            for ours, z in zip(better, theirs, strict=False)
        ]
        worst = max(ratios)
    return {
        "fit": fit,
        "prepare": prepared,
        "measure": measured,
        "single": single,
        "path": whole,
        "searched": searched,
        "matrices": matrices,
        "literal_single": literal_single,
        "literal_path": literal_path,
        "sampled": (sampled_single, sampled_path),
        "worst": worst,
        "bytes": literal.memory,
        "peak": peak_memory(forest, X, y),
    }


def measure_deep(max_depth, rows=15437, n_trees=40):
    """Return how the cost of a node and of a row depends on how deep trees are."""
    X, y = make_friedman1(rows, n_features=10, noise=1.0, random_state=0)
    model = RandomForestRegressor(n_trees, max_depth=max_depth, n_jobs=2, random_state=0)
    forest = fp.Forest.from_model(model.fit(X, y))
    problem, layers, prepared, measured = prepare(forest, X, y)
    single, (rule, descent) = seconds(solves(problem, WITHOUT_GUESSES), repeats=9)
    looks = n_trees + descent.looks
    each = rows + forest.n_nodes / n_trees
    largest = max(array.nbytes for array in (*layers, *rule.save()))
    return (
        "none" if max_depth is None else str(max_depth),
        str(forest.max_depth),
        f"{forest.n_nodes / n_trees:,.0f}",
        f"{1e9 * prepared / n_trees / each:.1f}",
        f"{1e9 * measured / n_trees / each:.1f}",
        f"{1e9 * single / looks / each:.2f}",
        f"{largest / (8 * rows * forest.max_depth * n_trees):.4f}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1145, 15437, 50164])
    parser.add_argument("--trees", type=int, nargs="+", default=[100, 500, 1000])
    parser.add_argument("--patience", type=float, default=10.0)
    options = parser.parse_args()
    # Once, small, so that nothing is compiled while it is timed.
    measure(4200, 4, 0.0)

    times = table(
        "Seconds: ours / literal (times faster)",
        *("rows x trees", "fit", "prepare", "measure layers", "one solve", "with preparation"),
        *("path of 100, all included", "with local search"),
    )
    shares = table(
        "Shares and rates",
        *("rows x trees", "path / fit", "one solve, ns a row and tree", "path, ns a row and tree"),
        *("peak memory / matrices", "objective / literal's - 1, worst on the path"),
    )

    def pair(ours, theirs, sampled=False):
        return f"{ours:.4f} / {'~' if sampled else ''}{theirs:,.2f} ({theirs / ours:,.0f})"

    for rows in options.rows:
        for trees in options.trees:
            r = measure(rows, trees, options.patience)
            single, path = r["sampled"]
            times.add_row(
                f"{rows:,} x {trees:,}",
                f"{r['fit']:.2f}",
                pair(r["prepare"], r["matrices"]),
                f"{r['measure']:.4f}",
                pair(r["single"], r["literal_single"], single),
                pair(r["prepare"] + r["single"], r["matrices"] + r["literal_single"], single),
                pair(r["path"], r["matrices"] + r["literal_path"], path),
                f"{r['searched']:.3f}",
            )
            shares.add_row(
                f"{rows:,} x {trees:,}",
                f"{r['path'] / r['fit']:.3f}",
                f"{1e9 * r['single'] / rows / trees:.2f}",
                f"{1e9 * r['path'] / rows / trees:.0f}",
                "-" if r["peak"] is None else f"{r['peak'] / r['bytes']:.3f}",
                "-" if np.isnan(r["worst"]) else f"{r['worst']:.1e}",
            )
    deep = table(
        "How depth matters: 15,437 rows x 40 trees",
        *("max_depth", "layers", "nodes a tree", "prepare, ns a row or node of each tree"),
        *("measure layers, ns", "solve, ns a row or node gone through", "largest array / matrices"),
    )
    for max_depth in (6, 12, None):
        deep.add_row(*measure_deep(max_depth))
    console = Console(width=170)
    console.print(times)
    console.print(shares)
    console.print(deep)


if __name__ == "__main__":
    main()
