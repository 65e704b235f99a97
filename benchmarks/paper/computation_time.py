"""The paper's timing table (section 3.3): our solves beside solvers of the relaxed problem.

Random forests of depth 6, alpha = 1. The paper does not name its data, only their sizes; here they
are generated, with ten columns (Friedman's first function). Beside one solve and a path of 100
alphas, ours, stand solvers of the relaxed problem (`relaxation.py`), each in a process of its own
that ends when the limit of time or memory is reached. If that has happened, larger problems are not
given to the same solver. The paper's limit is half an hour (`run.py --limit 1800`), here LIMIT.

The relaxed problem's optimum is a lower bound on what any pruning can reach, so it also says how
far from the best ours can be at most.
"""

import importlib.util
import json
import signal
import subprocess
import sys
import tempfile
import time
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import relaxation
from computation_time_report import ROWS, TREES
from relaxation import NOT_LICENSED, OUT_OF_MEMORY, OVER_TIME, SOLVED
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor
from units import Settings, run_units, write_table

import forestprune as fp
from forestprune.options import Options
from forestprune.select.solver import Solver
from forestprune.solve.problem import pose

ALPHA = 1.0
LIMIT, QUICK_LIMIT = 60.0, 20.0
MEMORY = 10 * 2**30
REPEATS, ENOUGH = 3, 5.0
"""How often ours are timed, unless that takes more seconds than this."""
SEARCH: dict[str, Literal[False, True, "random"]] = {
    "single": False,
    "single-search": True,
    "path": False,
    "path-random": "random",
    "path-search": True,
}
"""Our solves, and which local search they have: "random" is the paper's."""
NOT_INSTALLED = "not installed"
NOT_RUN = ", not run"


@lru_cache(maxsize=1)
def grown(rows: int, trees: int) -> tuple[fp.Forest, Any, Any]:
    X, y = make_friedman1(rows, n_features=10, noise=1.0, random_state=0)
    model = RandomForestRegressor(trees, max_depth=6, n_jobs=2, random_state=0)
    return fp.Forest.from_model(model.fit(X, y)), X, y


def work(solver: str, rows: int, trees: int, file: Path, limit: float) -> list[dict[str, Any]]:
    if solver in SEARCH:
        return [ours(solver, rows, trees)]
    if importlib.util.find_spec(solver.split("-")[0]) is None:
        return [record(NOT_INSTALLED)]
    if status := status_of_smaller(file, solver, rows, trees):
        return [record(status + NOT_RUN, limit if status == OVER_TIME else np.nan)]
    return [relaxed(solver, rows, trees, limit)]


def record(
    status: str,
    seconds: float = np.nan,
    preparation: float = np.nan,
    objective: float = np.nan,
    bound: float = np.nan,
) -> dict[str, Any]:
    """Return a line of the results; where time ran out, `seconds` has the limit."""
    return {
        "seconds": seconds,
        "preparation": preparation,
        "status": status,
        # As text: objective and bound may differ by less than the digits that numbers are given.
        "objective": "" if np.isnan(objective) else f"{objective:.12g}",
        "bound": "" if np.isnan(bound) else f"{bound:.12g}",
    }


def ours(solver: str, rows: int, trees: int) -> dict[str, Any]:
    """Time one solve or a path; to prepare is to send the rows down and pose the problem."""
    forest, X, y = grown(rows, trees)
    options = Options(rule="layer", local_search=SEARCH[solver], random_state=0)
    preparation = seconds = np.inf
    objective = np.nan
    # The shortest time counts, so it does not matter that the first round may compile.
    for repeat in range(REPEATS):
        if repeat >= 2 and seconds > ENOUGH:
            break
        begun = time.perf_counter()
        engine = Solver(pose(fp.encode(forest, X), y), options)
        prepared = time.perf_counter()
        if solver.startswith("path"):
            engine.path(engine.grid(100))
        else:
            objective = engine.solve_alone(ALPHA).objective
        done = time.perf_counter()
        preparation, seconds = min(preparation, prepared - begun), min(seconds, done - prepared)
    return record(SOLVED, seconds, preparation, objective)


def relaxed(solver: str, rows: int, trees: int, limit: float) -> dict[str, Any]:
    """Have a process of its own solve the relaxed problem, and say how it ended."""
    forest, X, y = grown(rows, trees)
    with tempfile.TemporaryDirectory() as folder:
        forest.save(Path(folder) / "forest.npz")
        np.save(Path(folder) / "X.npy", X)
        np.save(Path(folder) / "y.npy", y)
        command = [sys.executable, relaxation.__file__, folder, solver]
        command += [str(ALPHA), str(limit), str(MEMORY)]
        process = subprocess.run(command, capture_output=True, text=True)
    said: dict[str, Any] = {}
    for line in process.stdout.splitlines():
        said |= json.loads(line)
    if process.returncode == -signal.SIGALRM:
        said |= {"status": OVER_TIME, "seconds": limit}
    elif process.returncode in (-signal.SIGABRT, -signal.SIGSEGV):
        # How Clarabel and ECOS take it if they do not get the memory they ask for.
        said["status"] = OUT_OF_MEMORY
    elif process.returncode:
        raise RuntimeError(f"{solver}, {rows} rows, {trees} trees: {process.stderr}")
    return record(**said)


def status_of_smaller(file: Path, solver: str, rows: int, trees: int) -> str | None:
    """Return how a solver failed at a smaller problem, if it would fail at this one too."""
    if not file.exists():
        return None
    done = pd.read_csv(file)
    smaller = (done.solver == solver) & (done.rows <= rows) & (done.trees <= trees)
    failed = done.status.isin([OVER_TIME, OUT_OF_MEMORY, NOT_LICENSED])
    return next(iter(done.status[smaller & failed]), None)


def forget_what_may_change(file: Path, limit: float) -> None:
    """Take from a results file what more time or another installation could solve."""
    if file.exists():
        done = pd.read_csv(file)
        missing = done.status.str.startswith((NOT_INSTALLED, NOT_LICENSED))
        short = done.status.str.startswith(OVER_TIME) & (done.seconds < limit)
        write_table(done[~missing & ~short], file)


def run(settings: Settings) -> None:
    file = settings.results / "timing.csv"
    limit = settings.limit or (QUICK_LIMIT if settings.quick else LIMIT)
    forget_what_may_change(file, limit)
    all_rows, all_trees = (ROWS[:1], TREES[:1]) if settings.quick else (ROWS, TREES)
    units = [
        {"solver": solver, "rows": rows, "trees": trees}
        for rows in all_rows
        for trees in all_trees
        for solver in (*SEARCH, *relaxation.SOLVERS)
    ]
    # One at a time: what is timed must not share the machine.
    run_units(file, units, partial(work, file=file, limit=limit), jobs=1)
