"""From what is asked for to the model that is taken, and to those it was chosen from."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from forestprune.exceptions import warn_caller
from forestprune.interop.source import Source
from forestprune.options import Options, require_count, require_number
from forestprune.polish.subset.exact import check_solver
from forestprune.select.opening import HeldOut, Opened, validated
from forestprune.select.path import Budget, PruningPath, check_quality
from forestprune.select.pruned import PrunedForest
from forestprune.select.solver import Point, Solver
from forestprune.solve.problem import cut_weighting
from forestprune.system.progress import track

HALVINGS = 8
"""How often the gap between the last alpha within a budget and the next is halved."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """How small a model shall be: see :func:`forestprune.prune`.

    What `budget` limits is chosen by; `max_depth` holds from the beginning, whatever else is said.
    `whole` asks for the whole path, also beyond the budget, to look at.
    """

    alpha: float | None = None
    budget: Budget = field(default_factory=Budget)
    max_depth: int | None = None
    tolerance: float | None = None
    one_standard_error: bool = False
    n_alphas: int = 100
    whole: bool = False

    def __post_init__(self) -> None:
        require_count("n_alphas", self.n_alphas, 1)
        require_count("max_depth", self.max_depth, 1)
        require_number("alpha", 1.0 if self.alpha is None else self.alpha)
        check_quality(self.tolerance, self.one_standard_error)

    @property
    def by_quality(self) -> bool:
        """Whether the smallest model is wanted that is good enough."""
        return self.tolerance is not None or self.one_standard_error

    def choosing(self, held_out: HeldOut | None, options: Options) -> list[str]:
        """Return what there is to choose by; nothing if one alpha is all there is to solve."""
        picks = options.polish == "subset"  # then max_trees says how many, and chooses nothing
        choosers = {
            "max_nodes": self.budget.max_nodes,
            "max_trees": None if picks else self.budget.max_trees,
            "max_bytes": self.budget.max_bytes,
            "tolerance": self.tolerance,
            "one_standard_error": self.one_standard_error or None,
            "X_val": held_out,
        }
        return [name for name, value in choosers.items() if value is not None]


def candidates(
    model: Any,
    X: Any,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
    wanted: Wanted,
    held_out: HeldOut | None,
    options: Options,
) -> tuple[PruningPath, int]:
    """Return all models that were looked at, as a path, and the place of the one to take."""
    choosing = wanted.choosing(held_out, options)
    _check(wanted, choosing, held_out, options)
    budget = wanted.budget
    picked = budget.max_trees if options.polish == "subset" else None
    opened, how = open_model(model, X, y, sample_weight, options, wanted.max_depth)
    del X  # which the caller may have handed over: only the leaves that rows end in count now
    if not choosing:
        solver = Solver(opened.encoding, opened.target, how, picked)
        point = solver.solve_alone(1.0 if wanted.alpha is None else float(wanted.alpha))
        return PruningPath(opened.source, (point,)), 0
    shrinkages = how.shrinkages if held_out is not None else how.shrinkages[:1]
    # What is polished to a few trees, or may keep a few only, can be smaller further on.
    free = budget.max_trees is None and how.polish != "subset" and not wanted.whole
    enough = budget.max_nodes if free else None
    points: list[Point] = []
    for shrinkage in track(shrinkages, "choosing the shrinkage", len(shrinkages)):
        options_now = how if len(shrinkages) == 1 else replace(how, shrinkage=shrinkage)
        solver = Solver(opened.encoding, opened.target, options_now, picked)
        path = PruningPath(opened.source, tuple(solver.path(solver.grid(wanted.n_alphas), enough)))
        found = list(path.points)
        if budget and not wanted.by_quality:
            path = validated(path, held_out, how.n_jobs)
            chosen = path.choose(budget, None, False, path.validation)
            found += _further_points(path, chosen, budget, solver)
        if len(shrinkages) > 1:
            about = {"shrinkage": float(shrinkage)}
            found = [replace(point, report=point.report | about) for point in found]
        points += found
        del solver  # what it takes must be gone before the next one begins
    points.sort(key=lambda point: -point.alpha)
    path = validated(PruningPath(opened.source, tuple(points)), held_out, how.n_jobs)
    taken = path.choose(budget, wanted.tolerance, wanted.one_standard_error, path.validation)
    if not path.n_trees[taken]:
        warn_caller(_why_constant(path, wanted, how), UserWarning)
    return path, taken


def _why_constant(path: PruningPath, wanted: Wanted, options: Options) -> str:
    """Return why no tree is left, and what to do about it."""
    budget, trees = wanted.budget, np.flatnonzero(path.n_trees)
    if not trees.size:
        return "No tree of the model is worth anything to these rows: a constant is left."
    if wanted.tolerance is not None:
        return (
            f"A constant comes within tolerance={wanted.tolerance} of the full model: no tree is "
            "left. Give less; it is in units of R squared, so 0.01 loses 0.01 of it."
        )
    if wanted.one_standard_error:
        return (
            f"A constant comes within one standard error of the best model"
            f"{f' within {budget}' if budget else ''}: no tree is left. Give more validation rows, "
            f"or a tolerance{', or allow more' if budget else ''}."
        )
    smallest = path[int(trees[np.argmin(path.n_nodes[trees])])]
    if budget.allows(smallest):
        return "A constant does best on the validation rows: no tree is left."
    remedies = "Allow more"
    if not options.new_values and options.polish is None:
        remedies += (
            ", or refit leaves (rule='subtree') or weights (polish='ridge'), so that fewer trees do"
        )
    return f"Only a constant keeps to {budget}: no tree is left. {remedies}."


def open_model(
    model: Any,
    X: Any,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
    options: Options,
    max_depth: int | None,
) -> tuple[Opened, Options]:
    """Open the model, and fit the options to what is left of its trees."""
    require_count("max_depth", max_depth, 1)
    if options.polish == "subset":
        check_solver(options.solver)
    source = Source.of(model)
    if max_depth is not None:
        options = replace(
            options, weighting=cut_weighting(source.forest, options.weighting, max_depth)
        )
    return Opened.of(source, X, y, sample_weight, options.n_jobs, max_depth), options


def _check(wanted: Wanted, choosing: list[str], held_out: HeldOut | None, options: Options) -> None:
    """Refuse what cannot be asked for at once, or not without rows to choose by."""
    if wanted.alpha is not None and choosing:
        raise ValueError(
            f"alpha and {choosing[0]} exclude each other: give alpha to say what size costs, or "
            f"{choosing[0]} to have alpha chosen."
        )
    if wanted.by_quality and held_out is None:
        raise ValueError(
            "tolerance and one_standard_error need validation rows, which the forest is not pruned "
            "with: give X_val and y_val."
        )
    several = options.shrinkage is not None and len(options.shrinkages) > 1
    if several and held_out is None:
        instead = "give X_val and y_val" if wanted.alpha is None else "with alpha, give one number"
        raise ValueError(
            f"shrinkage={options.shrinkage!r} is to be chosen from, which needs validation rows: "
            f"{instead}."
        )


def _further_points(path: PruningPath, chosen: int, budget: Budget, solver: Solver) -> list[Point]:
    """Return points beside the path with which a budget is used up better.

    If trees are counted, those of the chosen point may keep more of themselves, whatever the others
    would do. And between the chosen point and the next, if that is too large, there may be others
    that are not; coming from the larger one, others again.
    """
    more: list[Point] = []
    if budget.max_trees is not None:
        more += solver.deepen(path.points[chosen], path.alphas[chosen + 1 :])
    if chosen + 1 == len(path) or budget.allows(path[chosen + 1]):
        return more
    within, beyond = path.points[chosen], path.points[chosen + 1]
    for _ in track(range(HALVINGS), "refining", HALVINGS):
        solver.go_to(within)
        point = solver.solve(float(np.sqrt(within.alpha * beyond.alpha)))
        more.append(point)
        if budget.allows(PrunedForest.of(path.source, point)):
            within = point
        else:
            beyond = point
    solver.go_to(beyond)
    for factor in track(np.geomspace(1.0, 2.0, HALVINGS + 1)[1:], "refining", HALVINGS):
        point = solver.solve(factor * beyond.alpha)
        more.append(point)
        if budget.allows(PrunedForest.of(path.source, point)):
            break
    return more
