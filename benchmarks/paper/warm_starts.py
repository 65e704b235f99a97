"""Figure 3 of the paper: passes over the trees, and objectives, along a path of alphas.

Cold starts each alpha from nothing kept, warm from the solution before; warm paths are also made
with the paper's local search, which gives up at the first failure as the paper says, or at the
fifth in a row as this package does, and with our own. All sweep until no tree changes, without the
sketch by which this package guesses, for many rows, where a descent will end: so a pass is what the
paper calls one. But a sweep here does not look at trees that certainly stay as they are: looks say
what work was really done, in units of all trees.

The authors' code stops sooner: after three updates of single trees in a row that change nothing, or
next to nothing. We do the same for comparison, beginning with the first tree at each alpha. Their
local search drops a random tree and goes on with the first absent one, as long as that does no
harm; what the last step has harmed stays so. We do that too.
"""

import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import sets
import units
from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor

import forestprune as fp
from forestprune.options import Options
from forestprune.select.solver import Solver
from forestprune.solve.descent import Descent
from forestprune.solve.layers.rule import LayerRule
from forestprune.solve.layers.tuning import Tuning
from forestprune.solve.point import Point
from forestprune.solve.problem import Problem, pose
from forestprune.solve.rule import Order

sys.path.append(str(Path(__file__).parent.parent))  # where it stands with the other benchmarks

from literal import Literal

SETS = ("Moneyball", "us_crime", "abalone")
MODELS = ("boosted", "bagged")
SWEEPS = ("cold", "warm", "warm + random", "warm + random, five times", "warm + ours")
QUIET = ("3 quiet: cold", "3 quiet: warm", "3 quiet: warm + random")

UNSKETCHED = Tuning(sketch_rows=sys.maxsize)

Floats = NDArray[np.float64]


class CountedRule(LayerRule):
    """A rule that does without the sketch, and counts how often it looks at a tree."""

    looks = 0

    def __init__(self, problem: Problem, options: Options) -> None:
        super().__init__(problem, options, UNSKETCHED)

    def look_at(self, trees: Order) -> None:
        super().look_at(trees)
        self.looks += trees.size

    def sweep(self, alpha: float, order: Order) -> tuple[int, int]:
        changed, looked = super().sweep(alpha, order)
        self.looks += looked
        return changed, looked


class Counted(Solver):
    """A solver that does without the sketch, and says how often it looked at all trees."""

    def __init__(self, problem: Problem, options: Options) -> None:
        super().__init__(problem, options)
        self._before = 0
        self._begin()

    def forget(self) -> None:
        """Go back to nothing kept."""
        self._before += self.rule.looks
        self._begin()

    def _begin(self) -> None:
        self.rule = CountedRule(self.problem, self.options)
        self._descent = Descent(self.rule)

    @property
    def looks(self) -> float:
        """How often all trees were looked at, so far."""
        return (self._before + self.rule.looks) / self.rule.order.size


class Counting(Literal):
    """The paper's algorithm, with the trees in a given order; says how often it went over them."""

    def __init__(self, problem: Problem, X: Floats, order: Order) -> None:
        super().__init__(problem, X)
        self.matrices = [self.matrices[tree] for tree in order]
        self.costs = self.costs[order]
        self.updates = 0

    def update(self, z: Floats, rest: Floats, i: int, alpha: float) -> bool:
        self.updates += 1
        return super().update(z, rest, i, alpha)

    def nothing(self) -> Floats:
        return np.zeros((self.n_trees, self.depth))


class ThreeQuiet(Counting):
    """Descends until three trees in a row stay as they are."""

    def settle(self, z: Floats, alpha: float, first: int = 0, at_least: int = 5) -> None:
        """Descend from `z`, beginning with tree number `first`."""
        rest = self.residual(z)
        quiet = looked = 0
        while quiet < 3 or looked < at_least:
            tree = (first + looked) % self.n_trees
            quiet = 0 if self.update(z, rest, tree, alpha) else quiet + 1
            looked += 1

    def search(self, z: Floats, alpha: float, random: np.random.Generator) -> None:
        """Drop random trees, one after another, as long as that does no harm."""
        best, in_vain = self.objective(z, alpha), 0
        while in_vain < UNSKETCHED.patience:
            there = z[:, 0] > 0
            if not there.any() or there.all():
                return
            z[random.choice(np.flatnonzero(there))] = 0.0
            self.settle(z, alpha, int(np.argmin(there)), at_least=4)
            value = self.objective(z, alpha)
            if value > best:
                return
            in_vain = 0 if value < best else in_vain + 1
            best = value


def run(settings: units.Settings) -> None:
    if settings.quick:
        names = ("diabetes",)
    else:
        names = SETS if settings.folder else tuple(sets.names(None))
    jobs = [{"data": name, "model": model} for name in names for model in MODELS]
    work = partial(_paths, settings.folder, settings.quick)
    units.run_units(settings.results / "warm_starts.csv", jobs, work, settings.jobs)


def _paths(folder: Path | None, quick: bool, data: str, model: str) -> list[dict[str, Any]]:
    """Return a row for each way to make a path, and each alpha."""
    known = sets.load(folder, data)
    rows, _ = known.fold(0)
    X, y = known.X[rows], known.y[rows]
    fitted = _model(model, quick).fit(X, y)
    encoding = fp.encode(fp.Forest.from_model(fitted), X, n_jobs=1)
    problem = pose(encoding, y, n_jobs=1)
    plain = Counted(problem, _options(False))
    alphas = plain.grid(10 if quick else 100)
    result = _of_points("cold", plain, _cold(plain, alphas))
    searches = {"warm": False, "warm + random, five times": "random", "warm + ours": True}
    for way, search in searches.items():
        solver = Counted(problem, _options(search))
        result += _of_points(way, solver, solver.path(alphas))
    result += _of_literal(Counting(problem, X, plain.rule.order), "warm + random", alphas)
    quiet = ThreeQuiet(problem, X, plain.rule.order)
    return result + [row for way in QUIET for row in _of_literal(quiet, way, alphas)]


def _model(kind: str, quick: bool) -> Any:
    if kind == "bagged":
        return RandomForestRegressor(
            10 if quick else 100,
            max_depth=5 if quick else 20,
            max_features="sqrt",
            random_state=0,
        )
    return GradientBoostingRegressor(
        n_estimators=20 if quick else 250,
        max_depth=5,
        learning_rate=0.1,
        subsample=0.25,
        random_state=0,
    )


def _options(local_search: bool | str) -> Options:
    return Options(rule="layer", local_search=local_search, random_state=0, n_jobs=1)


def _cold(solver: Counted, alphas: Floats) -> list[Point]:
    points = []
    for alpha in alphas:
        solver.forget()
        points.append(solver.solve(float(alpha)))
    return points


def _of_points(way: str, solver: Counted, points: list[Point]) -> list[dict[str, Any]]:
    """Return a row for each point. Looks are known of the whole path: each has an equal share."""
    before = np.zeros(solver.rule.order.size, np.int64)
    looks = solver.looks / len(points)
    rows = []
    for step, point in enumerate(points):
        moved = int(np.count_nonzero(point.depths != before))
        before = point.depths
        work = (point.n_iter, looks)
        rows.append(_row(way, step, point.alpha, work, point.objective, before, moved))
    return rows


def _of_literal(literal: Counting, way: str, alphas: Floats) -> list[dict[str, Any]]:
    random = np.random.default_rng(0)
    z = literal.nothing()
    rows = []
    for step, alpha in enumerate(alphas):
        before, begun = z, literal.updates
        if isinstance(literal, ThreeQuiet):
            z = literal.nothing() if "cold" in way else z.copy()
            literal.settle(z, alpha)
            if "random" in way:
                literal.search(z, alpha, random)
        else:
            z = literal.solve(alpha, z, random)
        work = 2 * ((literal.updates - begun) / literal.n_trees,)
        moved = int(np.count_nonzero((z != before).any(axis=1)))
        depths = z.sum(axis=1).astype(int)
        rows.append(_row(way, step, alpha, work, literal.objective(z, alpha), depths, moved))
    return rows


def _row(
    way: str,
    step: int,
    alpha: float,
    work: tuple[float, float],
    objective: float,
    depths: NDArray[np.int64],
    moved: int,
) -> dict[str, Any]:
    return {
        "way": way,
        "step": step,
        "alpha": alpha,
        "passes": work[0],
        "looks": work[1],
        "objective": objective,
        "trees": int(np.count_nonzero(depths)),
        "layers": int(depths.sum()),
        "moved": moved,
    }
