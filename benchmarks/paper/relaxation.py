"""The relaxed problem of section 3.3 of the paper: depths that need not be whole.

    python benchmarks/paper/relaxation.py FOLDER SOLVER ALPHA SECONDS BYTES

Variable z_ik says how much of layer k of tree i is kept. Relaxed, it may be anything between 0 and
1, if within a tree no layer is kept more than the one above it:

    minimise  || target - D z ||^2 + costs z    where  1 >= z_i1 >= z_i2 >= ... >= 0 for each tree i

`Rows` is that as the paper has it, for solvers of second-order cone programs, with a row of D for
each row of the data. In `Gram` only D'D is left, which has a row and a column for each layer of
each tree, however many rows there are.

As a script, this solves the problem of the forest and the rows in a folder, within a limit of time
for the solver and one of memory for the process: a solver that hangs in compiled code cannot be
stopped otherwise. It prints a line of JSON once the problem is prepared, and one when it is solved.
"""

import json
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

import forestprune as fp
from forestprune.solve.costs import layer_costs
from forestprune.solve.problem import Problem, pose

SOLVED = "solved"
OVER_TIME = "over the limit"
OUT_OF_MEMORY = "out of memory"
NOT_LICENSED = "not licensed"

PIECE = 2000
"""So many rows of D are made at a time."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Answer:
    """What a solver found.

    Attributes
    ----------
    status : str
        `SOLVED`, or what the solver says instead.
    objective : float
        At the solver's z.
    bound : float
        No z, so no pruning either, has a lower objective.
    """

    status: str
    objective: float = np.nan
    bound: float = np.nan


class Relaxation:
    """What both forms have in common: the costs and the order of the layers.

    Parameters
    ----------
    problem : Problem
        One output, rows without weights.
    alpha : float
    """

    def __init__(self, problem: Problem, alpha: float) -> None:
        layers = np.diff(layer_costs(problem.encoding.forest, "node"), axis=1)
        self.n_trees, self.depth = layers.shape
        self.costs = alpha * layers.ravel()

    def evaluate(self, z: Floats) -> tuple[float, Floats]:
        """Return the objective and its gradient."""
        raise NotImplementedError

    @cached_property
    def order(self) -> tuple[sp.csc_matrix, Floats]:
        """A and b of ``A z <= b``: in each tree 1 >= first layer >= second >= ... >= 0."""
        tree = sp.diags([1.0, -1.0], [0, -1], shape=(self.depth + 1, self.depth))
        first = np.zeros((self.n_trees, self.depth + 1))
        first[:, 0] = 1.0
        return sp.csc_matrix(sp.kron(sp.eye(self.n_trees), tree)), first.ravel()

    def answer(self, status: str, z: Any) -> Answer:
        """Return the objective of z, and a bound that holds whatever z a solver has stopped at.

        A convex function lies above its tangents. The tangent at z is least, over all that is
        allowed, where each tree is cut at the depth at which its gradient adds up to the least.
        """
        z = np.asarray(z, dtype=np.float64)[: self.costs.size]
        value, gradient = self.evaluate(z)
        cuts = gradient.reshape(self.n_trees, self.depth).cumsum(axis=1)
        least = np.minimum(cuts.min(axis=1), 0.0).sum()
        return Answer(status, value, float(value - gradient @ z + least))


class Rows(Relaxation):
    """The relaxed problem on all rows, as a second-order cone program.

    With one more variable t for the squared error, minimise ``t + costs z``, and the cone says that
    ``|| (1 - t, 2 (target - D z)) || <= 1 + t``.
    """

    def __init__(self, problem: Problem, X: Floats, alpha: float) -> None:
        super().__init__(problem, alpha)
        self.target = problem.residual[0] / np.sqrt(problem.variation)
        A, b = self.order
        # Solvers want all as ``G x + s = h``, with s in the cones; x is z and then t.
        self.c = np.append(self.costs, 1.0)
        blocks = [sp.bmat([[A, None], [None, np.array([[-1.0], [1.0]])]], format="csr")]
        for piece, _ in pieces(problem, X):
            block = sp.csr_matrix(2.0 * piece)
            block.resize(len(piece), self.c.size)
            blocks.append(block)
        self.G = sp.vstack(blocks, format="csr")
        # Each copy of so large a matrix counts against the solver's memory.
        del blocks
        self.G = self.G.tocsc()
        self.h = np.concatenate([b, [1.0, 1.0], 2.0 * self.target])
        self.cones = b.size, 2 + self.target.size

    def evaluate(self, z: Floats) -> tuple[float, Floats]:
        rest = 0.5 * (self.h - self.G @ np.append(z, 0.0))
        rest[: -self.target.size] = 0.0
        return float(rest @ rest + self.costs @ z), self.costs - (rest @ self.G)[:-1]


class Gram(Relaxation):
    """The relaxed problem as a quadratic program on the Gram matrix D'D."""

    def __init__(self, problem: Problem, X: Floats, alpha: float) -> None:
        super().__init__(problem, alpha)
        size = self.costs.size
        self.gram, self.linear, self.square = np.zeros((size, size)), np.zeros(size), 0.0
        for piece, target in pieces(problem, X):
            self.gram += piece.T @ piece
            self.linear += target @ piece
            self.square += float(target @ target)

    def evaluate(self, z: Floats) -> tuple[float, Floats]:
        half = self.gram @ z
        value = self.square + (half - 2.0 * self.linear + self.costs) @ z
        return float(value), 2.0 * (half - self.linear) + self.costs


def pieces(problem: Problem, X: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Yield some rows of D at a time, and of the target, both over the square root of m var(y)."""
    forest = problem.encoding.forest
    scale = forest.scale / np.sqrt(problem.variation)
    target = problem.residual[0] / np.sqrt(problem.variation)
    for first in range(0, len(X), PIECE):
        rows = slice(first, first + PIECE)
        steps = fp.depth_difference(forest, X[rows])[:, :, 1:] * scale[:, None, None]
        yield steps.transpose(1, 0, 2).reshape(steps.shape[1], -1), target[rows]


def by_ecos(rows: Rows) -> Answer:
    import ecos

    linear, cone = rows.cones
    try:
        found = ecos.solve(rows.c, rows.G, rows.h, {"l": linear, "q": [cone]}, verbose=False)
    except RuntimeError as error:
        # Short of memory, it says only that its set-up failed.
        raise MemoryError from error
    info = found["info"]
    return rows.answer(SOLVED if info["exitFlag"] == 0 else info["infostring"], found["x"])


def by_clarabel(rows: Rows) -> Answer:
    import clarabel

    linear, cone = rows.cones
    cones = [clarabel.NonnegativeConeT(linear), clarabel.SecondOrderConeT(cone)]
    size = rows.c.size
    return _clarabel(rows, sp.csc_matrix((size, size)), rows.c, rows.G, rows.h, cones)


def by_clarabel_gram(gram: Gram) -> Answer:
    import clarabel

    A, b = gram.order
    quadratic = sp.csc_matrix(np.triu(2.0 * gram.gram))
    cones = [clarabel.NonnegativeConeT(b.size)]
    return _clarabel(gram, quadratic, gram.costs - 2.0 * gram.linear, A, b, cones)


def _clarabel(relaxation: Relaxation, *program: Any) -> Answer:
    import clarabel

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    found = clarabel.DefaultSolver(*program, settings).solve()
    status = str(found.status)
    return relaxation.answer(SOLVED if status == "Solved" else status, found.x)


def by_mosek(rows: Rows) -> Answer:
    import mosek

    linear, cone = rows.cones
    entries = rows.G.tocoo()
    with mosek.Env() as env, env.Task() as task:
        task.appendvars(rows.c.size)
        task.putvarboundsliceconst(0, rows.c.size, mosek.boundkey.fr, 0.0, 0.0)
        task.putclist(range(rows.c.size), rows.c)
        task.appendafes(rows.h.size)
        task.putafefentrylist(entries.row.astype(np.int64), entries.col, -entries.data)
        task.putafegslice(0, rows.h.size, rows.h)
        task.appendaccseq(task.appendrplusdomain(linear), 0, None)
        task.appendaccseq(task.appendquadraticconedomain(cone), linear, None)
        try:
            task.optimize()
        except mosek.Error as error:
            if "license" in str(error.errno):
                return Answer(NOT_LICENSED)
            raise
        status = task.getsolsta(mosek.soltype.itr)
        z = task.getxx(mosek.soltype.itr)
    return rows.answer(SOLVED if status == mosek.solsta.optimal else str(status), z)


SOLVERS: dict[str, tuple[Callable[..., Any], Callable[[Any], Answer]]] = {
    "ecos": (Rows, by_ecos),
    "clarabel": (Rows, by_clarabel),
    "mosek": (Rows, by_mosek),
    "clarabel-gram": (Gram, by_clarabel_gram),
}
"""Each with the form of the problem that it takes."""


def main(folder: Path, solver: str, alpha: float, seconds: float, memory: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    form, solve = SOLVERS[solver]
    forest = fp.Forest.load(folder / "forest.npz")
    X, y = np.load(folder / "X.npy"), np.load(folder / "y.npy")
    try:
        begun = time.perf_counter()
        relaxation = form(pose(fp.encode(forest, X), y), X, alpha)
        print(json.dumps({"preparation": time.perf_counter() - begun}), flush=True)
        # Left to its default, this signal ends the process, whatever code it is in.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        begun = time.perf_counter()
        answer = solve(relaxation)
        print(json.dumps({"seconds": time.perf_counter() - begun, **vars(answer)}))
    except MemoryError:
        print(json.dumps({"status": OUT_OF_MEMORY}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5]))
