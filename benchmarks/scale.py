"""Many rows: in memory, in Parquet files that are read by the block, and on a cluster of Dask.

    python benchmarks/scale.py [--memory 500000 2000000] [--files 2000000 6000000 20000000]
                               [--kinds 200000] [--cluster 2000000] [--folder FOLDER]

A LightGBM regressor of 300 trees of 31 leaves, fitted to the first million rows of generated data
with 20 columns, is pruned to 500 nodes with 20,000 validation rows. In memory: the time beside the
model's own fit to these rows and one `predict` of them, here and with all rows gone through in each
sweep, as rows up to 199,999 are. In files: the time beside one pass of reading and predicting them
with the library, and the peak of memory, each in a process of its own. On a cluster: two processes
of Dask, undisturbed and with one of them killed on the way. What is minimised (on all rows), the
passes over them, and what any tree could still gain are printed too. Kinds: regression, two and
three classes, 100 trees, no validation rows, shrinkages of 10, 100 and 1,000; the objective beside
that of a descent on all rows at the same alpha.

Files are made once, in FOLDER (default: a temporary one): 80 bytes a row.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import lightgbm
import numpy as np

import forestprune as fp
from forestprune.select import request

COLUMNS, TREES, LEAVES, MAX_NODES = 20, 300, 31, 500
PART = 500_000
"""Rows of a file."""
FITTED = 1_000_000
NAMES = [f"x{j}" for j in range(COLUMNS)]


def part(number, rows=PART):
    """Return some rows: X in single precision, and y."""
    rng = np.random.default_rng(number)
    X = rng.random((rows, COLUMNS), dtype=np.float32)
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    y += 10 * X[:, 3] + 5 * X[:, 4] + 3 * np.sin(8 * X[:, 5] * X[:, 6])
    return X, y + rng.normal(scale=2.0, size=rows)


def parts(rows):
    found = [part(number) for number in range(-(-rows // PART))]
    X, y = (np.concatenate([each[i] for each in found])[:rows] for i in (0, 1))
    return X, y


def fitted(rows):
    model = lightgbm.LGBMRegressor(
        n_estimators=TREES, num_leaves=LEAVES, learning_rate=0.05, verbose=-1
    )
    return model.fit(*parts(rows))


def held_out():
    X, y = part(10**6, 20_000)
    return {"X_val": X, "y_val": y}


def told(small):
    point = small.path.points[small.index]
    about = {"nodes": small.n_nodes, "loss": point.loss, "objective": point.objective}
    about |= {"alpha": point.alpha, "R squared": small.validation.score}
    return about | {k: point.report[k] for k in ("passes", "gain_left") if k in point.report}


def seconds(call, *arguments, **options):
    begun = time.perf_counter()
    found = call(*arguments, **options)
    return time.perf_counter() - begun, found


def in_memory(rows):
    X, y = parts(rows)
    fit, model = seconds(fitted, rows)
    predict, _ = seconds(model.predict, X)
    fp.prune(model, X[:5_000], y[:5_000], max_nodes=50)  # compiled by now
    print(f"\n{rows:,} rows in memory: fit {fit:.1f} s, predict {predict:.1f} s", flush=True)
    before = request.LARGE_ROWS
    for name, large in (("sample", before), ("all rows", rows + 1)):
        request.LARGE_ROWS = large
        taken, small = seconds(fp.prune, model, X, y, max_nodes=MAX_NODES, **held_out())
        print(
            f"  {name}: {taken:.1f} s, {taken / fit:.2f} fits, {taken / predict:.2f} predicts, "
            f"{told(small)}",
            flush=True,
        )
    request.LARGE_ROWS = before


def kinds(rows):
    X, y = parts(rows)
    targets = {"regression": y, "two classes": (y > 15).astype(int)}
    targets["three classes"] = np.digitize(y, [12, 17])
    for name, target in targets.items():
        cls = lightgbm.LGBMRegressor if name == "regression" else lightgbm.LGBMClassifier
        model = cls(n_estimators=100, num_leaves=LEAVES, verbose=-1).fit(X, target)
        for shrinkage in (10.0, 100.0, 1000.0):
            ratios = []
            for nodes in (100, 500):
                begun = fp.prune(model, X, target, max_nodes=nodes, shrinkage=shrinkage)
                point = begun.path.points[begun.index]
                before, request.LARGE_ROWS = request.LARGE_ROWS, rows + 1
                whole = fp.prune(model, X, target, alpha=point.alpha, shrinkage=shrinkage)
                request.LARGE_ROWS = before
                ratio = point.objective / whole.path.points[0].objective
                ratios.append(f"{nodes} nodes {100 * (ratio - 1):+.2f} %")
            print(
                f"{name}, {rows:,} rows, shrinkage {shrinkage:g}: {', '.join(ratios)}", flush=True
            )


def make_files(folder, rows):
    """Write files and the model, unless they are there; return those that have so many rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"part-{number:03}.parquet" for number in range(-(-rows // PART))]
    for number, file in enumerate(files):
        if not file.exists():
            X, y = part(number)
            columns = {name: X[:, j] for j, name in enumerate(NAMES)} | {"y": y}
            pq.write_table(pa.table(columns), file, row_group_size=PART // 4)
    if not (folder / "model.txt").exists():
        X, y = parts(FITTED)
        model = lightgbm.train(
            {"num_leaves": LEAVES, "learning_rate": 0.05, "verbose": -1},
            lightgbm.Dataset(X, y, feature_name=NAMES),
            num_boost_round=TREES,
        )
        model.save_model(folder / "model.txt")
    return files


def one_pass(folder, files):
    """Read all rows and let the library predict them."""
    model = lightgbm.Booster(model_file=folder / "model.txt")
    for X, _, _ in fp.open_rows(files, target="y"):
        model.predict(X)


def from_files(folder, files):
    rows = fp.open_rows(files, target="y")
    forest = fp.Forest.from_file(folder / "model.txt")
    X, y = part(10**6, 20_000)
    import pandas as pd

    return fp.prune(
        forest, rows, max_nodes=MAX_NODES, X_val=pd.DataFrame(X, columns=NAMES), y_val=y
    )


def on_cluster(folder, files, *, kill_after=None):
    import pandas as pd
    from distributed import Client, LocalCluster

    X, y = part(10**6, 20_000)
    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    )
    with cluster, Client(cluster) as client:
        if kill_after is not None:
            victim = min(client.run(os.getpid).values())
            threading.Timer(kill_after, os.kill, (victim, signal.SIGKILL)).start()
        rows = fp.open_rows(files, target="y").on_dask()
        forest = fp.Forest.from_file(folder / "model.txt")
        return fp.prune(
            forest, rows, max_nodes=MAX_NODES, X_val=pd.DataFrame(X, columns=NAMES), y_val=y
        )


def child(what, folder, rows, kill_after):
    files = make_files(folder, rows)
    if what == "pass":
        taken, small = seconds(one_pass, folder, files)
        found = {}
    elif what == "files":
        taken, small = seconds(from_files, folder, files)
        found = told(small)
    else:
        taken, small = seconds(on_cluster, folder, files, kill_after=kill_after)
        found = told(small)
    # Not ru_maxrss, which counts what the process that called this one had, too.
    status = Path("/proc/self/status").read_text()
    peak = int(status.split("VmHWM:")[1].split()[0]) / 2**20
    print(json.dumps({"seconds": taken, "peak GiB": round(peak, 2), **found}))


def measured(what, folder, rows, kill_after=None):
    command = [sys.executable, __file__, "--child", what, "--folder", str(folder)]
    command += ["--files", str(rows)]
    command += [] if kill_after is None else ["--kill-after", str(kill_after)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory", type=int, nargs="*", default=[500_000, 2_000_000])
    parser.add_argument("--kinds", type=int, nargs="*", default=[200_000])
    parser.add_argument("--files", type=int, nargs="*", default=[2_000_000, 6_000_000, 20_000_000])
    parser.add_argument("--cluster", type=int, nargs="*", default=[2_000_000])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--child")
    parser.add_argument("--kill-after", type=float)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.folder, options.files[0], options.kill_after)
        return
    for rows in options.memory:
        in_memory(rows)
    for rows in options.kinds:
        kinds(rows)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        for rows in options.files:
            make_files(folder, rows)
            once = measured("pass", folder, rows)
            print(f"\n{rows:,} rows in files: one pass of the library {once}", flush=True)
            found = measured("files", folder, rows)
            ratio = found["seconds"] / once["seconds"]
            print(f"  by the block: {ratio:.2f} passes of the library, {found}", flush=True)
        for rows in options.cluster:
            make_files(folder, rows)
            whole = measured("files", folder, rows)
            print(f"\n{rows:,} rows, one process: {whole}", flush=True)
            found = measured("cluster", folder, rows)
            print(f"  two processes of Dask: {found}", flush=True)
            found = measured("cluster", folder, rows, found["seconds"] / 2)
            print(f"  one of them killed half-way: {found}", flush=True)


if __name__ == "__main__":
    main()
