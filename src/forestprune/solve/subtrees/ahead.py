"""Compiling ahead: in a new installation, two processes compile at once.

Machine code is kept on disk, so what one process compiles the other one finds. A second process
begins with sweeps, the longest kernels, while this one compiles what routes rows; when it gets to
sweeps before the other has finished, it compiles what comes after them in the meantime.
"""

import os
import subprocess
import sys
import threading
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
        )
        self.whole = ActiveSet.of_all(self.trees, seal(np.array([[0, 1]], self.dtype)))
        self.cut = nothing_pruned(
            self.trees, self.whole.codes, np.array([[-2.0, 2.0]]), refits=True
        )
        self.price = Price(seal(np.ones(1)), 1e-3, 1.0, True, 1e-9)
        self.row_weight, self.order, self.crew = seal(np.empty(0)), np.arange(1), Crew(1)

    def sweep(self) -> None:
        whole, cut, nothing = self.whole, self.cut, np.zeros(1, np.bool_)
        here = (cut, whole.trees, whole.nodes, whole.inside, nothing)
        found = (np.zeros(1), np.zeros(1), np.zeros(1, np.bool_))
        arguments = (whole.codes, whole.trees, self.price, 1.0, *here, *found)
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
        kernels.replace_columns(
            self.whole.codes, self.order, first, table, table.copy(), np.zeros((1, 2))
        )


def compile_ahead(forest: "Forest", n_rows: int, n_jobs: int | None, tuning: Tuning) -> None:
    """Begin to compile for a forest, if nothing has been compiled yet and a core is free."""
    from forestprune.kernels.subtrees import sweep_subtrees
    from forestprune.rows.encoding import code_dtype

    alone = thread_count(n_jobs) == 1 or getattr(sys, "frozen", False) or not sys.executable
    if alone or kernels.awaited or not nothing_kept(sweep_subtrees):
        return
    toy, codes = _Toy(code_dtype(forest).name), n_rows * forest.n_trees
    swept, screened, at_work = threading.Event(), threading.Event(), threading.Lock()

    def meanwhile() -> None:
        if at_work.acquire(blocking=False):
            toy.refit(gram=codes >= tuning.gram_rows)
            toy.score()
        swept.wait()

    kernels.awaited.update(dict.fromkeys(("best_prunings", "sweep_subtrees"), meanwhile))
    done = [swept]
    if tuning.is_deep(forest.n_nodes, codes):
        screens = ("spread_below", "square_rows", "gains_at_most")
        kernels.awaited.update(dict.fromkeys(screens, screened.wait))
        done.append(screened)
    threading.Thread(target=_compile_elsewhere, args=(toy.dtype, done), daemon=True).start()


def _compile_elsewhere(dtype: str, done: list[threading.Event]) -> None:
    """Let another process compile, and tell what is done: at its end all that will ever be."""
    call = f"from {__name__} import main; main({dtype!r}, {len(done)})"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    nothing = subprocess.DEVNULL
    try:
        with subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", call],
            env=environment,
            stdin=nothing,
            stdout=subprocess.PIPE,
            stderr=nothing,
        ) as process:
            for stage, _ in zip(done, process.stdout or (), strict=False):
                stage.set()
    except OSError:  # no other process is to be had here: this one compiles it all
        pass
    finally:
        for stage in done:
            stage.set()


def main(dtype: str, stages: int) -> None:
    """Compile sweeps, then, in a second stage, screening; say so after each."""
    toy = _Toy(dtype)
    for compiled in (toy.sweep, toy.screen)[:stages]:
        compiled()
        print(compiled.__name__, flush=True)
