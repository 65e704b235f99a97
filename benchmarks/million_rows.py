"""A million rows through `forestprune prune`: what the process takes beside its data and codes.

python benchmarks/million_rows.py [--rows 1000000] [--out benchmarks/results/million_rows.md]

Models are fitted to generated rows, which are then written to a CSV and a Parquet file. The real
command runs in a process of its own; its peak is what the system says (VmHWM), its phases are told
by the marks that a hook in that process writes when a function of the package is entered and left.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

COLUMNS = 20
HELD_OUT = 0.25
TRAINING = 100_000
"""Rows that models are fitted to: what is measured does not depend on that."""

MEGABYTE = 1e6

PHASES = {
    "read the model": ("forestprune.cli.models", "read_source"),
    "read the rows": ("forestprune.cli.work", "prepare"),
    "route rows": ("forestprune.select.routed", "encode_matrix"),
    "score": ("forestprune.cli.summary", "scores"),
    "write": ("forestprune.cli.models", "write_small"),
}
"""Functions that are timed. Pruning is the rest: to wrap it would hold the rows it lets go of."""

SHOWN = ("import", "read the model", "read the rows", "route rows", "prune", "score", "write")

HOOK = """
import importlib, json, resource, sys, time
phases = json.loads(sys.argv[1])
seconds = {}
def timed(name, call):
    def wrapper(*args, **kwargs):
        start = time.perf_counter()
        try:
            return call(*args, **kwargs)
        finally:
            seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - start
    return wrapper
for name, (module, function) in phases.items():
    found = importlib.import_module(module)
    setattr(found, function, timed(name, getattr(found, function)))
def peak():
    lines = open("/proc/self/status").read().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith("VmHWM")))
importing = time.perf_counter() - begun
imported = peak()
from forestprune.cli.app import app
code = app(sys.argv[3:], standalone_mode=False) if len(sys.argv) > 3 else 0
seconds["import"] = importing
document = {"code": code, "peak": peak(), "imported": imported, "seconds": seconds}
open(sys.argv[2], "w").write(json.dumps(document))
"""

IMPORTS = """
import forestprune.estimators, forestprune.kernels, numba, pandas, pyarrow.csv, pyarrow.compute
import pyarrow.parquet, sklearn.ensemble, sklearn.metrics, sklearn.model_selection, rich.console
import rich.progress
[getattr(forestprune.kernels, name) for name in forestprune.kernels._FILES]
"""
"""All that the command imports in the end, but for the library of the model."""


def make_rows(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, COLUMNS))
    y = 10.0 * np.sin(X[:, 0] * X[:, 1]) + 20.0 * (X[:, 2] - 0.5) ** 2
    return X, y + 10.0 * X[:, 3] + 5.0 * X[:, 4] + rng.normal(size=n_rows)


def write_rows(folder: Path, X: np.ndarray, y: np.ndarray) -> list[Path]:
    import pyarrow
    from pyarrow import csv, parquet

    names = [f"f{j}" for j in range(COLUMNS)]
    table = pyarrow.table({**dict(zip(names, X.T, strict=True)), "y": y})
    files = [folder / "rows.csv", folder / "rows.parquet"]
    csv.write_csv(table, files[0])
    parquet.write_table(table, files[1])
    return files


def fit_models(folder: Path, X: np.ndarray, y: np.ndarray) -> dict[str, Path]:
    """Fit models to some of the rows, and write them into files."""
    import joblib
    from lightgbm import LGBMRegressor
    from pandas import DataFrame
    from sklearn.ensemble import RandomForestRegressor
    from xgboost import XGBRegressor

    rows = DataFrame(X[:TRAINING], columns=[f"f{j}" for j in range(COLUMNS)])
    y = y[:TRAINING]
    files = {
        "XGBoost, 200 trees of depth 6": folder / "xgboost.json",
        "LightGBM, 200 trees of 31 leaves": folder / "lightgbm.txt",
        "random forest, 50 deep trees": folder / "forest.joblib",
    }
    xgboost, lightgbm, forest = files.values()
    XGBRegressor(n_estimators=200, max_depth=6, n_jobs=1).fit(rows, y).save_model(xgboost)
    LGBMRegressor(n_estimators=200, n_jobs=1, verbose=-1).fit(rows, y).booster_.save_model(lightgbm)
    some = min(len(y), 20_000)
    joblib.dump(
        RandomForestRegressor(
            50, max_samples=some, max_features=1 / 3, min_samples_leaf=5, n_jobs=-1, random_state=0
        ).fit(rows, y),
        forest,
    )
    return files


def run(folder: Path, imports: str, *args: str) -> dict:
    """Run the command, or nothing, in a process of its own; return what it took."""
    marks = folder / "marks.json"
    script = f"import time\nbegun = time.perf_counter()\n{imports}{HOOK}"
    begun = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", script, json.dumps(PHASES), str(marks), *args],
        check=True,
        stdout=subprocess.DEVNULL,
        env=os.environ | {"FORESTPRUNE_DEBUG": "1"},
    )
    document = json.loads(marks.read_text())
    if document["code"]:
        raise SystemExit(f"forestprune {' '.join(args)} failed")
    return document | {"all": time.perf_counter() - begun}


def measure(folder: Path, name: str, model: Path, rows: Path, n_rows: int, ask: list[str]) -> dict:
    import forestprune as fp

    forest = fp.Forest.from_file(model, trust=True)
    library = {"xgboost": "import xgboost\n", "lightgbm": "import lightgbm\n"}.get(model.stem, "")
    options = ["--target", "y", "--trust", "--force", "--quiet", *ask]
    out = folder / f"small{model.suffix}"
    # The first run of a new installation compiles, which takes memory of its own.
    few = folder / "few.parquet"
    command = ["prune", str(model), str(few), "--out", str(out), *options]
    run(folder, library + IMPORTS, *command)
    fixed = run(folder, library + IMPORTS, *command)
    command[2] = str(rows)
    took = run(folder, library + IMPORTS, *command)
    print(name, rows.name, took, file=sys.stderr, flush=True)
    leaves = int((np.diff(forest.offsets).max() + 1) // 2)
    return {
        "name": name,
        "file": rows.suffix[1:],
        "asked": " ".join(ask),
        "data": n_rows * COLUMNS * np.dtype(forest.input.dtype).itemsize,
        "dtype": str(forest.input.dtype),
        "codes": n_rows * forest.n_trees * np.min_scalar_type(leaves - 1).itemsize,
        "imported": took["imported"],
        "fixed": fixed["peak"],
        "peak": took["peak"],
        "seconds": took["seconds"],
        "all": took["all"],
    }


def report(lines: list[dict], n_rows: int, command: str) -> str:
    text = [
        f"# {n_rows:,} rows x {COLUMNS} columns through `forestprune prune`",
        "",
        f"`{command}`, on {os.cpu_count()} cores. Sizes in MB (10^6 bytes). Data: the rows as the "
        "model compares them, float32 or float64. Codes: one or two bytes a row and tree, rows "
        f"held out ({HELD_OUT:g}) included. Imports: the peak of a process that only imports. Few "
        "rows: the peak of the same command on 1,000 rows, which has the model too. Ratios: peak "
        "less that of few rows, or less imports, over data + codes.",
        "",
        "| model | file | asked | data | codes | imports | few rows | peak | from few rows | "
        "from imports |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for line in lines:
        sizes = [
            f"{line[key] / MEGABYTE:,.0f}" for key in ("data", "codes", "imported", "fixed", "peak")
        ]
        room = line["data"] + line["codes"]
        ratios = [f"{(line['peak'] - line[key]) / room:.2f}" for key in ("fixed", "imported")]
        sizes[0] += f" ({line['dtype']})"
        text.append(
            f"| {line['name']} | {line['file']} | `{line['asked']}` | {' | '.join(sizes)} "
            f"| {' | '.join(ratios)} |"
        )
    text += [
        "",
        "Seconds by phase.",
        "",
        f"| model | file | asked | {' | '.join(SHOWN)} | all |",
        "|---|---|---" + "|---" * len(SHOWN) + "|---|",
    ]
    for line in lines:
        seconds = dict(line["seconds"])
        seconds["prune"] = line["all"] - sum(seconds.values())
        cells = [f"{seconds[key]:.1f}" for key in SHOWN]
        text.append(
            f"| {line['name']} | {line['file']} | `{line['asked']}` | {' | '.join(cells)} "
            f"| {line['all']:.0f} |"
        )
    text += [
        "",
        "What few rows take as well is compiled code, the libraries' own pages and the model. "
        "On top of data and codes come a few numbers a row: the target, weights, and, while all "
        "rows correct the sample that is pruned with, predictions and residuals. In return the "
        "features of a row are let go of once it was sent down the trees. No row is held as text, "
        "twice, or in another precision. Rows that are read by the block need none of this: see "
        "benchmarks/scale.py.",
    ]
    return "\n".join(text) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        X, y = make_rows(args.rows)
        files = write_rows(folder, X, y)
        models = fit_models(folder, X, y)
        import pyarrow
        from pyarrow import parquet

        few = pyarrow.table({**{f"f{j}": X[:1000, j] for j in range(COLUMNS)}, "y": y[:1000]})
        parquet.write_table(few, folder / "few.parquet")
        del X, y
        lines = [
            measure(
                folder,
                model,
                path,
                rows,
                args.rows,
                ["--max-nodes", "500", "--shrinkage", "100", "--n-alphas", "20"],
            )
            for model, path in models.items()
            for rows in files
        ]
        everything = ["--shrinkage", "100", "--n-alphas", "20"]  # all trees, in the end
        xgboost = next(iter(models))
        lines.append(measure(folder, xgboost, models[xgboost], files[1], args.rows, everything))
    command = f"python benchmarks/million_rows.py --rows {args.rows}"
    text = report(lines, args.rows, command)
    print(text)
    if args.out is not None:
        args.out.write_text(text)


if __name__ == "__main__":
    main()
