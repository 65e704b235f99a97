"""Compiling ahead: in a new installation, two processes compile at once.

Machine code is kept on disk, so what one process compiles the other one finds. A second process
begins with sweeps, the longest kernels, while this one compiles what routes rows; when it gets to
sweeps before the other has finished, it compiles what comes after them in the meantime.
"""

import atexit
import os
import subprocess
import sys
import threading
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from forestprune import kernels
from forestprune.forest.checks import seal
from forestprune.kernels.jit import nothing_kept
from forestprune.kernels.records import Price, Trees
from forestprune.solve.subtrees.active import ActiveSet
from forestprune.solve.subtrees.gram import Gram
from forestprune.solve.subtrees.pruning import nothing_pruned
from forestprune.solve.subtrees.screening import Screening
from forestprune.solve.subtrees.tuning import Tuning
from forestprune.system.threads import Crew, thread_count

PATIENCE = 60.0
"""Seconds after which the other process is not waited for any longer."""

COMPILED = b"compiled"
"""What it says after each stage."""

if TYPE_CHECKING:  # the other process does without what it imports
    from forestprune.forest.forest import Forest


@dataclass
class _Toy:
    """A stump, as arrays of the types that kernels are compiled for."""

    dtype: str

    def __post_init__(self) -> None:
        node = np.array([0.0, -1.0, 1.0])
        self.trees = Trees(
            offsets=seal(np.array([0, 3])),
            split=seal(np.zeros(1, np.uint32)),
            leaf=seal(np.array([1, 2], np.uint32)),
            origin=seal(node[np.newaxis].copy()),
            weight=seal(np.array([2.0, 1.0, 1.0])),
            low=seal(np.empty((1, 0))),
            high=seal(np.empty((1, 0))),
            own=seal(np.empty(0)),
            excess=seal(np.empty((1, 0))),
        )
        self.whole = ActiveSet.of_all(self.trees, seal(np.array([[0, 1]], self.dtype)))
        self.cut = nothing_pruned(
            self.trees, self.whole.codes, np.array([[-2.0, 2.0]]), refits=True
        )
        self.price = Price(seal(np.ones(1)), 1e-3, 1.0, True, 1e-9, seal(np.empty(0)), 0)
        self.row_weight, self.order, self.crew = seal(np.empty(0)), np.arange(1), Crew(1)

    def sweep(self) -> None:
        whole, cut, nothing = self.whole, self.cut, np.zeros(1, np.bool_)
        here = (cut, whole.trees, whole.nodes, whole.inside, nothing)
        found = (np.zeros(1), np.zeros(1), np.zeros(1, np.bool_))
        arguments = (whole.codes, whole.trees, self.price, 1.0, True, *here, *found)
        kernels.best_prunings(self.order, *arguments)
        whole.sweep(self.row_weight, cut, self.price, self.order, lazy=True)

    def screen(self) -> None:
        screening = Screening(self.whole, self.price.cost, self.crew)
        screening.cut(0.5)
        screening.gains_at_most(self.price, self.row_weight, self.cut, self.whole, np.zeros(1))

    def refit(self, *, gram: bool) -> None:
        known = (self.cut, self.price, self.order, 1)
        if gram:
            Gram(2, 3).refit(self.row_weight, self.whole, *known)
        else:
            kernels.refit_values(self.row_weight, self.trees, *known)

    def score(self) -> None:
        self.whole.carry(self.cut, self.whole)  # numbers leaves
        first, table = np.array([0, 2]), np.zeros((2, 1))
        output = seal(np.empty(0, np.int32))
        kernels.replace_columns(
            self.whole.codes, self.order, first, output, table, table.copy(), np.zeros((1, 2))
        )


def compile_ahead(forest: "Forest", n_rows: int, n_jobs: int | None, tuning: Tuning) -> None:
    """Begin to compile for a forest, if nothing has been compiled yet and a core is free."""
    from forestprune.kernels.subtrees import sweep_subtrees
    from forestprune.rows.encoding import code_dtype

    alone = thread_count(n_jobs) == 1 or getattr(sys, "frozen", False) or not sys.executable
    if alone or not nothing_kept(sweep_subtrees) or not _STARTED.acquire(blocking=False):
        return
    codes = n_rows * forest.n_trees
    deep = tuning.is_deep(forest.n_nodes, codes)
    other = _OtherProcess(code_dtype(forest).name, stages=2 if deep else 1)
    threading.Thread(target=other.run, daemon=True).start()
    at_work = threading.Lock()

    def meanwhile() -> None:
        if at_work.acquire(blocking=False):
            toy = _Toy(other.dtype)
            toy.refit(gram=codes >= tuning.gram_rows)
            toy.score()
        other.wait_for(0)

    kernels.awaited.update(dict.fromkeys(("best_prunings", "sweep_subtrees"), meanwhile))
    if deep:
        screens = ("spread_below", "square_rows", "gains_at_most")
        kernels.awaited.update(dict.fromkeys(screens, lambda: other.wait_for(1)))


_STARTED = threading.Lock()
"""Taken by the first pruning that compiles in two processes; there is no second."""

if hasattr(os, "register_at_fork"):  # a copy of this process has no thread that would tell it
    os.register_at_fork(after_in_child=kernels.awaited.clear)


class _OtherProcess:
    """A process that compiles in stages. One that cannot, or does not, is waited for no longer."""

    def __init__(self, dtype: str, stages: int) -> None:
        self.dtype = dtype
        self._done = [threading.Event() for _ in range(stages)]
        self._process: subprocess.Popen[bytes] | None = None

    def wait_for(self, stage: int) -> None:
        """Return once a stage is done, or will never be."""
        if not self._done[stage].wait(PATIENCE):
            self._end()

    def run(self) -> None:
        """Start the process, and hear what it has done, until its end."""
        call = f"from {__name__} import main; main({self.dtype!r}, {len(self._done)})"
        folders = [folder for folder in sys.path if isinstance(folder, str) and folder]
        nothing = subprocess.DEVNULL
        # Whatever goes wrong here, this process can compile it all by itself.
        with suppress(Exception):
            # -P: modules of the working folder are none of its business.
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-P", "-c", call],
                env=os.environ | {"PYTHONPATH": os.pathsep.join(folders)},
                stdin=nothing,
                stdout=subprocess.PIPE,
                stderr=nothing,
            )
            atexit.register(self._end)
            with self._process.stdout or nullcontext(()) as said:
                for done, line in zip(self._done, said, strict=False):
                    if not line.startswith(COMPILED):
                        break  # some other program than Python
                    done.set()
            self._process.wait(PATIENCE)
        self._end()

    def _end(self) -> None:
        """Let nobody wait any longer, and the process not go on."""
        for done in self._done:
            done.set()
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
        atexit.unregister(self._end)


def main(dtype: str, stages: int) -> None:
    """Compile sweeps, then, in a second stage, screening; say so after each."""
    toy = _Toy(dtype)
    for compiled in (toy.sweep, toy.screen)[:stages]:
        compiled()
        sys.stdout.buffer.write(COMPILED + b"\n")
        sys.stdout.flush()
