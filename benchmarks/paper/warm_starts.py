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
import pandas as pd
import sets
import style
import units
from matplotlib.ticker import LogLocator
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
SHOWN = ("us_crime", "boosted")
MODELS = ("boosted", "bagged")
SWEEPS = ("cold", "warm", "warm + random", "warm + random, five times", "warm + ours")
QUIET = ("3 quiet: cold", "3 quiet: warm", "3 quiet: warm + random")
DRAWN = ("cold", "warm", "warm + random", "warm + ours")
AT_ONCE = 1.0
"""Passes up to which a solve has ended at once: one sweep to see that nothing changes, or less."""

SAME = 1e-4
"""Objectives that differ by less than this share are alike."""

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


def report(settings: units.Settings) -> list[str]:
    rows = _compared(pd.read_csv(settings.results / "warm_starts.csv"))
    _draw(rows, settings.results / "warm_starts.png")
    lines = [
        "## Warm starts (figure 3)",
        "",
        f"{rows.step.nunique()} alphas from where nothing is kept down to the full model. Passes "
        "are sweeps over all trees, on the whole path and in the median an alpha; looks what was "
        "really done of them, where sweeps pass over trees that certainly stay as they are. Ends "
        "at once: the share of alphas after one pass or less. Models: how often the model is "
        "another than at the alpha before. Objectives are relative to the best that any way found "
        "at the same alpha. 3 quiet: stops as the authors' code does, after three trees in a row "
        "that stay as they are; the others after a whole sweep without a change. Random: the "
        "paper's local search, until it fails once, or five times in a row.",
        "",
        "![Passes and objectives](warm_starts.png)",
        "",
    ]
    for (data, model), part in rows.groupby(["data", "model"], sort=False):
        lines += [f"### {data}, {model}", "", *_table(part)]
    return [*lines, *_verdict(rows)]


def _compared(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the alphas that every way has reached, with the excess over the best objective."""
    steps = rows.groupby(["data", "model", "way"]).step.max().groupby(["data", "model"]).min()
    last = rows.set_index(["data", "model"]).index.map(steps)
    rows = rows[rows.step.to_numpy() <= last.to_numpy()]
    best = rows.groupby(["data", "model", "step"]).objective.transform("min")
    return rows.assign(excess=rows.objective / best - 1.0, best=best)


def _table(part: pd.DataFrame) -> list[str]:
    header = [
        "",
        "passes",
        "looks",
        "median",
        "ends at once",
        "models",
        "objective / best: mean",
        "worst",
    ]
    cells = []
    for way in (*SWEEPS, *QUIET):
        mine = part[part.way == way]
        cells.append(
            [
                way,
                f"{mine.passes.sum():,.0f}",
                f"{mine.looks.sum():,.0f}",
                f"{mine.passes.median():.3g}",
                f"{100 * (mine.passes <= AT_ONCE).mean():.0f} %",
                (mine.moved > 0).sum(),
                f"{1 + mine.excess.mean():.4f}",
                f"{1 + mine.excess.max():.4f}",
            ]
        )
    return style.table(header, cells)


def _verdict(rows: pd.DataFrame) -> list[str]:
    lines = []
    for model, part in rows.groupby("model", sort=False):
        by_way = dict(list(part.groupby("way", sort=False)))
        lines.append(f"- {model.capitalize()}, all data sets:")
        lines += [f"  - {saying}." for saying in _sayings(by_way)]
    return [
        "The paper says that warm starts alone get stuck, that their path is nearly piecewise and "
        "their solves end at once, and that with local search the path is like the cold one with "
        "fewer passes.",
        "",
        *lines,
        "",
    ]


def _sayings(by_way: dict[str, pd.DataFrame]) -> list[str]:
    """Return what the numbers say of each claim."""
    cold, warm, random = by_way["cold"], by_way["warm"], by_way["warm + random"]
    quiet_cold, quiet_warm, quiet_random = (by_way[way] for way in QUIET)
    ours = by_way["warm + ours"]
    return [
        f"With sweeps to the end warm starts alone {_stuck(warm, cold)}",
        f"With the authors' stop they {_stuck(quiet_warm, quiet_cold)}",
        f"The paper's local search takes {_times(random, cold)} of cold starts, objectives "
        f"{_level(random, cold)} theirs; with the authors' stop "
        f"{_times(quiet_random, quiet_cold)}, objectives {_level(quiet_random, quiet_cold)} theirs",
        f"Our search takes {_times(ours, cold)} ({_times(ours, cold, 'looks')}), objectives "
        f"{_level(ours, cold)} cold ones",
        f"Cold starts with the authors' stop end {_level(quiet_cold, cold)} those of whole sweeps",
    ]


def _stuck(warm: pd.DataFrame, cold: pd.DataFrame) -> str:
    at_once = (warm.passes <= AT_ONCE).mean()
    level = warm.objective.to_numpy() / cold.objective.to_numpy() - 1.0
    verb = "get stuck" if level.mean() > SAME else "do not get stuck"
    return (
        f"{verb} (objectives {_level(warm, cold)} cold ones, worse at "
        f"{100 * (level > SAME).mean():.0f} % of alphas, {100 * at_once:.0f} % end at once, "
        f"{_times(warm, cold)})"
    )


def _times(mine: pd.DataFrame, other: pd.DataFrame, what: str = "passes") -> str:
    return f"{mine[what].sum() / other[what].sum():.2f} times the {what}"


def _level(mine: pd.DataFrame, other: pd.DataFrame) -> str:
    mean = float(np.mean(mine.objective.to_numpy() / other.objective.to_numpy())) - 1.0
    if abs(mean) < SAME:
        return "level with"
    return f"{100 * abs(mean):.2f} % {'above' if mean > 0 else 'below'}"


def _draw(rows: pd.DataFrame, file: Path) -> None:
    data, model = SHOWN if SHOWN[0] in set(rows.data) else (rows.data.iloc[0], "boosted")
    one = rows[(rows.data == data) & (rows.model == model)]
    fig = style.figure(15, 5.6)
    fig.suptitle(
        f"Passes and objectives along a path: {data}, {model}",
        x=0.012,
        ha="left",
        fontsize=13,
        color=style.INK,
    )
    left, right = fig.subfigures(1, 2, width_ratios=[4, 3.1])
    _draw_block(left, one, DRAWN, style.BLUE, "until a whole sweep changes nothing")
    _draw_block(right, one, QUIET, style.RED, "until three updates in a row do not (authors' code)")
    style.save(fig, file)


def _draw_block(
    fig: Any, one: pd.DataFrame, ways: tuple[str, ...], colour: str, title: str
) -> None:
    axes = fig.subplots(2, len(ways), sharey="row", squeeze=False)
    fig.suptitle(title, fontsize=11, color=colour)
    for (top, bottom), way in zip(axes.T, ways, strict=True):
        mine = one[one.way == way]
        top.plot(mine.alpha, mine.best, color=style.GREY, lw=1.5, zorder=1)
        top.scatter(mine.alpha, mine.objective, s=7, color=colour, zorder=2)
        top.set_xscale("log")
        top.xaxis.set_major_locator(LogLocator(100))
        top.minorticks_off()
        style.plain(top, way.removeprefix("3 quiet: "))
        top.set_xlabel("alpha", fontsize=9)
        highest = max(float(mine.passes.max()), 2.0)
        bottom.hist(mine.passes, bins=np.linspace(0, highest, 25), color=colour)
        style.plain(bottom)
        bottom.set_xlim(0, None)
        bottom.set_xlabel(f"passes an alpha ({mine.passes.sum():,.0f} in all)", fontsize=9)
    axes[0, 0].set_ylabel("objective (grey: best found)", fontsize=9)
    axes[1, 0].set_ylabel("alphas", fontsize=9)
