"""From what is asked for to the point that is taken, and to those it was chosen from."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from forestprune.exceptions import OptionError, named, warn_caller
from forestprune.forest.constraints import require_no_constraint
from forestprune.interop.source import Source
from forestprune.options import Options, require_count, require_number
from forestprune.polish.subset.exact import check_solver
from forestprune.select.budget import Budget, check_quality
from forestprune.select.path import PruningPath
from forestprune.select.routed import HeldOut, RoutedRows
from forestprune.select.solver import Solver, rule_for
from forestprune.select.validation import Validation, validate
from forestprune.solve.costs import cut_weighting
from forestprune.solve.point import Point
from forestprune.system.progress import track


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

    def choosers(self, options: Options, rows: str | None) -> list[str]:
        """Return what there is to choose by; nothing if one alpha is all there is to solve.

        `rows` is the option that gives validation rows, None if there are none.
        """
        picks = options.polish == "subset"  # then max_trees says how many, and chooses nothing
        given = {
            "max_nodes": self.budget.max_nodes,
            "max_trees": None if picks else self.budget.max_trees,
            "max_bytes": self.budget.max_bytes,
            "tolerance": self.tolerance,
            "one_standard_error": self.one_standard_error or None,
            rows: rows,
        }
        return [name for name, value in given.items() if name and value is not None]

    def check(self, options: Options, rows: str | None) -> None:
        """Refuse what cannot be asked for at once, or not without rows to choose by."""
        choosers = self.choosers(options, rows)
        if self.alpha is not None and choosers:
            other = f"{{{choosers[0]}}}"
            raise OptionError(
                f"{{alpha}} and {other} exclude each other: give {{alpha}} to say what size costs, "
                f"or {other} to have alpha chosen."
            )
        if self.by_quality and rows is None:
            raise OptionError(
                "{tolerance} and {one_standard_error} need validation rows, which the forest is "
                "not pruned with: give {X_val} and {y_val}."
            )
        several = options.shrinkage is not None and len(options.shrinkages) > 1
        if several and rows is None:
            one = "with {alpha}, give one number"
            instead = "give {X_val} and {y_val}" if self.alpha is None else one
            raise OptionError(
                f"{named('shrinkage', repr(options.shrinkage))} is to be chosen from, which needs "
                f"validation rows: {instead}."
            )


def open_model(
    model: Any, X: Any, options: Options, max_depth: int | None = None
) -> tuple[Source, Options]:
    """Read a model for the rows of `X`, cut it, and fit the options to what is left."""
    require_count("max_depth", max_depth, 1)
    if options.polish == "subset":
        check_solver(options.solver)
    source = Source.of(model)
    if options.polish == "subset":
        other = "Use {polish='ridge'} or {polish='leaf'}."
        require_no_constraint(source.forest, "{polish='subset'}", other)
    if max_depth is not None:
        weighting = cut_weighting(source.forest, options.weighting, max_depth)
        source, options = source.cut(max_depth), replace(options, weighting=weighting)
    rule = rule_for(source.forest, options)
    rule.prepare(source.forest, _about_rows(X), options.n_jobs)
    return source.by_levels() if rule.by_levels else source, options


def _about_rows(X: Any) -> int:
    """Return how many rows there are, or many if a library's own container does not say."""
    try:
        return int(X.shape[0] if hasattr(X, "shape") else len(X))
    except (TypeError, ValueError, IndexError):
        return 1_000_000


def choose(
    model: Any,
    X: Any,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
    wanted: Wanted,
    held_out: HeldOut | None,
    options: Options,
) -> tuple[PruningPath, int]:
    """Return all points that were looked at, as a path, and the place of the one to take."""
    wanted.check(options, None if held_out is None else "X_val")
    source, options = open_model(model, X, options, wanted.max_depth)
    rows = RoutedRows.of(source, X, y, sample_weight, options.n_jobs)
    del X  # which the caller may have handed over: only the leaves that rows end in count now
    validation_rows = None if held_out is None else held_out.routed(source, options.n_jobs)
    return choose_routed(rows, validation_rows, wanted, options)


def choose_routed(
    rows: RoutedRows, validation_rows: RoutedRows | None, wanted: Wanted, options: Options
) -> tuple[PruningPath, int]:
    """Do what :func:`choose` does, with rows that are routed already."""
    held_out, budget = validation_rows is not None, wanted.budget
    max_trees = budget.max_trees if options.polish == "subset" else None
    if not wanted.choosers(options, "X_val" if held_out else None):
        solver = Solver(rows.problem(options.n_jobs), options, max_trees)
        point = solver.solve_alone(1.0 if wanted.alpha is None else float(wanted.alpha))
        return PruningPath(rows.source, (point,)), 0
    points: list[Point] = []
    parts: list[Validation] = []
    # What is polished to a few trees, or may keep a few only, can be smaller further on.
    free = budget.max_trees is None and options.polish != "subset" and not wanted.whole
    enough = budget.max_nodes if free else None
    for solver in solvers(rows, options, max_trees, choosing=held_out):
        found = solver.path(solver.grid(wanted.n_alphas), enough)
        known = None if validation_rows is None else validate(validation_rows, found)
        if budget and not wanted.by_quality:
            path = PruningPath(rows.source, tuple(found), known)
            further = _further_points(path, path.choose(budget, None, False, known), budget, solver)
            found += further
            if further and validation_rows is not None:
                parts += [known] if known is not None else []
                known = validate(validation_rows, further)
        points += found
        parts += [] if known is None else [known]
        del solver  # what it takes must be gone before the next one begins
    order = np.argsort([-point.alpha for point in points], kind="stable")
    validation = Validation.joined(parts).take(order) if parts else None
    path = PruningPath(rows.source, tuple(points[i] for i in order), validation)
    taken = path.choose(budget, wanted.tolerance, wanted.one_standard_error, validation)
    if not path.points[taken].n_trees:
        warn_caller(_why_constant(path, wanted, options), UserWarning)
    return path, taken


def solvers(
    rows: RoutedRows, options: Options, max_trees: int | None = None, *, choosing: bool
) -> Iterator[Solver]:
    """Yield a solver for each shrinkage to choose from; if nothing can choose, for the first."""
    problem, shrinkages = rows.problem(options.n_jobs), options.shrinkages
    if not choosing or len(shrinkages) == 1:
        yield Solver(problem, options, max_trees)
        return
    for shrinkage in track(shrinkages, "choosing the shrinkage", len(shrinkages)):
        one = replace(options, shrinkage=float(shrinkage))
        yield Solver(problem, one, max_trees, about={"shrinkage": float(shrinkage)})


def _further_points(path: PruningPath, chosen: int, budget: Budget, solver: Solver) -> list[Point]:
    """Return points beside the path with which a budget is used up better.

    If trees are counted, those of the chosen point may keep more of themselves, whatever the others
    would do. And between the chosen point and the next, if that is too large, there may be others
    that are not.
    """
    more: list[Point] = []
    if budget.max_trees is not None:
        more += solver.deepen(path.points[chosen], path.alphas[chosen + 1 :])
    if chosen + 1 < len(path) and not path.keeps_to(budget, path.points[chosen + 1]):
        fits = partial(path.keeps_to, budget)
        more += solver.refine(path.points[chosen], path.points[chosen + 1], fits)
    return more


def _why_constant(path: PruningPath, wanted: Wanted, options: Options) -> str:
    """Return why no tree is left, and what to do about it."""
    budget, trees = wanted.budget, np.flatnonzero(path.n_trees)
    if not trees.size:
        return "No tree of the model explains anything of these rows: a constant is left."
    if wanted.tolerance is not None:
        return (
            f"A constant comes within {named('tolerance', wanted.tolerance)} of the full model: no "
            "tree is left. Give less; it is in units of R squared, so 0.01 loses 0.01 of it."
        )
    if wanted.one_standard_error:
        return (
            f"A constant comes within one standard error of the best model"
            f"{f' within {budget.named}' if budget else ''}: no tree is left. Give more validation "
            f"rows, or a {{tolerance}}{', or allow more' if budget else ''}."
        )
    smallest = int(trees[np.argmin(path.n_nodes[trees])])
    if path.keeps_to(budget, path.points[smallest]):
        rows = "these" if path.validation is None else "the validation"
        return f"A constant does best on {rows} rows: no tree is left."
    remedies = "Allow more"
    if not options.new_values and options.polish is None:
        remedies += (
            ", or refit leaves ({rule='subtree'}) or weights ({polish='ridge'}), so that fewer "
            "trees do"
        )
    return f"Only a constant keeps to {budget.named}: no tree is left. {remedies}."
