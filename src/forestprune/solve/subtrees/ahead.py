"""Compiling ahead: in a new installation, a second process compiles what will be needed next.

Machine code is kept on disk, so what one process compiles the other one finds. While this process
compiles what routes rows, the other one begins with sweeps; there the longest kernels are.
"""

import os
import subprocess
import sys
import threading
from dataclasses import dataclass

import numpy as np

from forestprune import kernels
from forestprune.forest.checks import seal
from forestprune.forest.forest import Forest
from forestprune.forest.inputs import InputSpec
from forestprune.kernels.jit import nothing_kept
from forestprune.rows.encoding import Encoding, code_dtype
from forestprune.solve.problem import pose
from forestprune.solve.subtrees.rule import SubtreeRule
from forestprune.solve.subtrees.tuning import Tuning
from forestprune.system.threads import thread_count

STAGES = {
    "sweep": ("sweep_subtrees",),
    "refit": ("count_overlaps", "refit_by_overlaps"),
    "screening": ("spread_below", "square_rows", "gains_at_most"),
}
"""Kernels by when they are compiled."""


def compile_ahead(forest: Forest, n_jobs: int | None) -> None:
    """Begin to compile for a forest, if nothing has been compiled yet and a core is free."""
    from forestprune.kernels.subtrees import sweep_subtrees

    alone = thread_count(n_jobs) == 1 or getattr(sys, "frozen", False) or not sys.executable
    if alone or kernels.awaited or not nothing_kept(sweep_subtrees):
        return
    done = {stage: threading.Event() for stage in STAGES}
    for stage, names in STAGES.items():
        kernels.awaited.update(dict.fromkeys(names, done[stage].wait))
    other = _Other(code_dtype(forest).name, done)
    threading.Thread(target=other.run, daemon=True).start()


@dataclass
class _Other:
    """The other process. Stages that are done, or will never be, are waited for no longer."""

    dtype: str
    done: dict[str, threading.Event]

    def run(self) -> None:
        """Have it compile, and say what is done."""
        call = f"from {__name__} import main; main({self.dtype!r})"
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        quiet = subprocess.DEVNULL
        try:
            with subprocess.Popen(  # noqa: S603
                [sys.executable, "-c", call],
                env=environment,
                stdin=quiet,
                stdout=subprocess.PIPE,
                stderr=quiet,
                text=True,
            ) as process:
                for line in process.stdout or ():
                    if line.strip() in self.done:
                        self.done[line.strip()].set()
        except OSError:  # no other process is to be had here: this one compiles it all
            pass
        finally:
            for done in self.done.values():
                done.set()


def main(dtype: str) -> None:
    """Compile, in the order of the stages, by pruning a forest of two stumps."""
    forest = Forest(
        offsets=np.array([0, 3, 6]),
        left=np.array([1, -1, -1] * 2),
        feature=np.array([0, -1, -1] * 2),
        threshold=np.zeros(6),
        missing_left=np.zeros(6, np.bool_),
        value=np.array([[0.0], [-1.0], [1.0]] * 2),
        cover=np.ones(6),
        scale=np.ones(2),
        base=np.zeros(1),
        input=InputSpec(1),
    )
    codes = seal(np.array([[0, 1, 0, 1]] * 2, dtype))
    problem = pose(Encoding(forest, codes), [-2.0, 2.0, -2.0, 2.0], n_jobs=1)
    rule = SubtreeRule(problem, tuning=Tuning(gram_rows=0, large=0, deep=0.0, screened_rows=0.0))
    rule.sweep(1e-3, rule.order)
    print("sweep", flush=True)
    rule.refine(1e-3, rule.order, 1)
    print("refit", flush=True)
    rule.begin(1e-3, rule.order)
    rule.refine(1e-3, rule.order, 1)  # so that active nodes are not taken to be just chosen
    rule.holds(1e-3, rule.order)
    print("screening", flush=True)
