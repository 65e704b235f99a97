"""From what is asked for to the point that is taken, and to those it was chosen from."""

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from forestprune.exceptions import OptionError, OutOfReachError, named, warn_caller
from forestprune.forest.constraints import require_no_constraint
from forestprune.forest.new_splits import split_limits
from forestprune.interop.source import Source
from forestprune.options import Options, require_count, require_number
from forestprune.polishing.subset.exact import check_solver
from forestprune.select.budget import Budget, check_quality
from forestprune.select.ending import Ending, Falling
from forestprune.select.path import PruningPath, keeps_to
from forestprune.select.routed import RoutedRows
from forestprune.select.scoring import Scoring, check_scoring
from forestprune.select.solver import Solver, rule_for
from forestprune.select.validation import Scorer, Validation, ValidationScore, validate
from forestprune.solve.costs import cut_weighting
from forestprune.solve.point import Point
from forestprune.solve.problem import Problem
from forestprune.system.progress import bar, track
from forestprune.system.threads import Crew, one_blas_thread

CHOOSING = "choosing the shrinkage"

AT_ONCE_BYTES = 2**30
"""Up to how large the codes of rows may be, once for each shrinkage, for solving all at once."""

LARGE_STEP = 1.25
"""A point with so many times the nodes of the one before may have others in between."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """How small a model shall be: see :func:`forestprune.prune`.

    What `budget` limits is chosen by; `max_depth` holds from the beginning, whatever else is said.
    `whole` asks for the whole path, also beyond the budget, to look at.
    """

    alpha: float | None = None
    budget: Budget = field(default_factory=Budget)
    max_depth: int | None = None
    format: str | None = None
    tolerance: float | None = None
    one_standard_error: bool = False
    confidence: float | None = None
    n_alphas: int = 100
    whole: bool = False

    def __post_init__(self) -> None:
        require_count("n_alphas", self.n_alphas, 1)
        require_count("max_depth", self.max_depth, 1)
        require_number("alpha", 1.0 if self.alpha is None else self.alpha)
        check_quality(self.tolerance, self.one_standard_error, self.confidence)

    @property
    def good(self) -> Callable[[ValidationScore], bool] | None:
        """What tells whether a model is good enough; None if no tolerance is given."""
        if self.tolerance is None:
            return None
        return lambda score: score.within(self.tolerance or 0.0, self.confidence)

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
        if options.solver == "exact" and choosers:
            raise OptionError(
                f"{{solver='exact'}} finds the best model for one {{alpha}}: give that instead of "
                f"{{{choosers[0]}}}, which chooses among many."
            )
        check_scoring(options.scoring)
        if options.scoring is not None and rows is None:
            raise OptionError("{scoring} needs validation rows: give {X_val} and {y_val}.")
        several = options.shrinkage is not None and len(options.shrinkages) > 1
        if several and rows is None:
            one = "with {alpha}, give one number"
            instead = "give {X_val} and {y_val}" if self.alpha is None else one
            raise OptionError(
                f"{named('shrinkage', repr(options.shrinkage))} is to be chosen from, which needs "
                f"validation rows: {instead}."
            )


def open_model(
    model: Any,
    X: Any,
    options: Options,
    max_depth: int | None = None,
    format: str | None = None,  # noqa: A002
) -> tuple[Source, Options]:
    """Read a model for the rows of `X`, cut it, and fit the options to what is left."""
    require_count("max_depth", max_depth, 1)
    if options.polish == "subset":
        check_solver(options.solver)
    source = Source.of(model).written_as(format)
    if options.polish == "split":
        split_limits(source.forest, give_up_symmetry=options.rule == "subtree")
    if options.polish == "subset":
        other = "Use {polish='ridge'} or {polish='leaf'}."
        require_no_constraint(source.forest, "{polish='subset'}", other)
    if source.forest.averages_distributions:
        _require_distributions(options)
    if max_depth is not None:
        weighting = cut_weighting(source.forest, options.weighting, max_depth)
        source, options = source.cut(max_depth), replace(options, weighting=weighting)
    rule = rule_for(source.forest, options)
    rule.prepare(source.forest, _about_rows(X), options.n_jobs)
    return source.by_levels() if rule.by_levels else source, options


def _require_distributions(options: Options) -> None:
    """Refuse what would not leave distributions over classes in the leaves of an average."""
    polish = None if options.polish == "split" else options.polish
    if polish or options.joint:
        name, instead = "polish" if polish else "joint", "Leave it out"
    elif options.rule == "oblivious" and options.refits:
        name, instead = "rule", "Leave it out, or add {refit=False}"
    else:
        return
    raise OptionError(
        f"{named(name, repr(getattr(options, name)))} could make anything of the leaves, but this "
        f"model averages distributions over classes, and its leaves must stay such. {instead}: "
        "with {rule='subtree'} leaves are refitted as they are chosen."
    )


def _about_rows(X: Any) -> int:
    """Return how many rows there are, or many if a library's own container does not say."""
    try:
        return int(X.shape[0] if hasattr(X, "shape") else len(X))
    except (TypeError, ValueError, IndexError):
        return 1_000_000


def choose_routed(
    rows: RoutedRows, validation_rows: RoutedRows | None, wanted: Wanted, options: Options
) -> tuple[PruningPath, int]:
    """Return all points that were looked at, as a path, and the place of the one to take."""
    max_trees = wanted.budget.max_trees if options.polish == "subset" else None
    if not wanted.choosers(options, None if validation_rows is None else "X_val"):
        solver = Solver(rows.problem(options.n_jobs), options, max_trees)
        alpha = 1.0 if wanted.alpha is None else float(wanted.alpha)
        ways = solver.solve_exactly if options.solver == "exact" else solver.solve_alone
        return PruningPath(rows.source, (ways(alpha, wanted.n_alphas),)), 0
    search = Search(rows.source, validation_rows, wanted, options)
    problem = rows.problem(options.n_jobs)
    makers = solver_makers(problem, options, max_trees, choosing=validation_rows is not None)
    many = rows.encoding.codes.nbytes * len(makers) > AT_ONCE_BYTES
    search.look_at_all(makers, 1 if many else options.n_jobs)
    path, taken = search.chosen()
    warn_of_constant(path, taken, wanted, options)
    return path, taken


def warn_of_constant(path: PruningPath, taken: int, wanted: Wanted, options: Options) -> None:
    """Say why no tree is left, if none is."""
    if not path.points[taken].n_trees:
        warn_caller(_why_constant(path, wanted, options), UserWarning)


class Search:
    """Finds what there is to choose from, for one shrinkage after another, and chooses."""

    def __init__(
        self,
        source: Source,
        validation_rows: RoutedRows | None,
        wanted: Wanted,
        options: Options,
        largest: int | None = None,
    ) -> None:
        self._source, self._rows, self._wanted = source, validation_rows, wanted
        self._largest = largest  # nodes that a path goes on to, if it is whole
        self._scoring = options.scoring
        budget = wanted.budget
        # What is polished to a few trees, or may keep a few only, can be smaller further on.
        grows = budget.max_trees is None and options.polish != "subset"
        self._most_nodes = budget.max_nodes if grows else None
        self._found: list[_Found] = []
        self._given_up = False

    def look_at_all(
        self,
        makers: Sequence[Callable[..., Solver]],
        n_jobs: int | None,
        begins: Sequence[Point | None] | None = None,
        *,
        closely: bool = True,
    ) -> None:
        """Find the points of several paths, each in a thread if it need not know the others.

        If one looks `closely`, points beside them, too. Each path begins with what is kept at a
        point, if there is one that it `begins` with.
        """
        begins = begins or [None] * len(makers)
        if len(makers) == 1:
            self._found.append(self._look(makers[0](), begins[0], closely=closely))
            return
        found: dict[int, _Found] = {}
        later: list[list[str]] = [[] for _ in makers]
        here = threading.get_ident()

        def look(place: int) -> None:
            try:
                if threading.get_ident() == here:
                    show(len(found))
                solver = makers[place](warn=later[place].append)
                found[place] = self._look(solver, begins[place], closely=closely)
            except BaseException:
                self._given_up = True  # or others would be waited for
                raise

        # What is larger than one path finds, others need not look at if the smallest is wanted.
        # And functions of others need not know of threads.
        alone = self._wanted.by_quality or callable(self._scoring)
        crew = Crew(1 if alone else n_jobs)
        # Threads that limit those of linear algebra one by one would not find back to what was.
        with one_blas_thread(), bar(CHOOSING, len(makers)) as show:
            try:
                crew.run(look, [(place,) for place in range(len(makers))])
            except BaseException:
                self._given_up = True  # also if it came while others were waited for
                raise
        for message in itertools.chain(*later):
            warn_caller(message, ConvergenceWarning)
        self._found += [found[place] for place in sorted(found)]

    def _look(self, solver: Solver, begin: Point | None, *, closely: bool) -> "_Found":
        """Return what there is to choose from of one path."""
        wanted, budget, source, rows = self._wanted, self._wanted.budget, self._source, self._rows
        scoring = solver.options.scoring
        scorer = None if rows is None or solver.rule.searches else Scorer(rows, scoring)
        grid = solver.grid(wanted.n_alphas)
        alphas = Falling(grid)
        if begin is not None:
            alphas = Falling(grid, below=np.nextafter(begin.alpha, np.inf))
            solver.rule.move_to(begin)
        ending = Ending(
            n_grid=len(alphas),
            n_nodes=source.forest.n_nodes,
            max_nodes=self._most_nodes,
            allows=budget.allows,
            fits=partial(keeps_to, source, budget) if budget else None,
            scorer=scorer,
            good=wanted.good,
            hasty=True,
        )
        found = solver.path(alphas, lambda point: ending(point) or self._given_up)
        known = []
        if rows is not None:
            known = [scorer.validation() if scorer else validate(rows, found, scoring)]
        further: list[Point] = []
        good = wanted.good if closely else None
        if scorer is not None and good is not None and good(known[0].at(-1)):
            further, scores = self._smaller(solver, found, scorer, good)
            known.append(scores)
        if budget and closely and not (wanted.by_quality and self._has_one(found + further, known)):
            path = PruningPath(source, tuple(found), known[0] if known else None)
            chosen = path.choose(budget, None, False, path.validation)
            beside = _further_points(path, chosen, budget, solver)
            if beside and rows is not None:
                beside, scores = _no_better_than_next(path, chosen, budget, rows, beside, scoring)
                known.append(scores)
            further += beside
        beyond: list[Point] = []
        if wanted.whole and closely:
            beyond = _rest_of_path(solver, grid, found[-1], self._largest)
        return _Found(found + further, known, _full_model(solver, found + further), beyond)

    def _smaller(
        self,
        solver: Solver,
        found: list[Point],
        scorer: Scorer,
        good: Callable[[ValidationScore], bool],
    ) -> tuple[list[Point], Validation]:
        """Return points before the first that is good enough, if that took a large step."""
        last, further = found[-1], []
        # What is larger than this is not wanted: other paths need not go there.
        limit = self._most_nodes
        self._most_nodes = last.n_nodes if limit is None else min(limit, last.n_nodes)
        if len(found) > 1 and last.n_nodes > LARGE_STEP * found[-2].n_nodes:
            further = solver.refine(found[-2], last, lambda point: not good(scorer.add(point)))
        return further, scorer.validation().take(slice(len(found), None))

    def _has_one(self, points: list[Point], known: list[Validation]) -> bool:
        """Tell whether one of some points is what is asked for."""
        try:
            self._choose(PruningPath(self._source, tuple(points), Validation.joined(known)))
        except OutOfReachError:
            return False
        return True

    def _choose(self, path: PruningPath) -> int:
        """Return the place of the point to take."""
        wanted = self._wanted
        quality = (wanted.tolerance, wanted.one_standard_error, path.validation, wanted.confidence)
        return path.choose(wanted.budget, *quality)

    def chosen(self) -> tuple[PruningPath, int]:
        """Return all points as a path, and the place of the one to take."""
        rows, found = self._rows, self._found
        parts = [score for each in found for score in each.known]
        points = [point for each in found for point in each.points]
        full = found[-1].full if all(each.full for each in found) else []
        beyond = [point for each in found for point in each.beyond]
        for more in (full, beyond):
            if more and rows is not None:
                parts.append(validate(rows, more, self._scoring))
        n_candidates, points = len(points) + len(full), points + full + beyond
        validation = Validation.joined(parts) if parts else None
        path = PruningPath(self._source, tuple(points), validation)
        point = points[self._choose(path[:n_candidates])]
        path = PruningPath.joined(self._source, points, parts)
        return path, next(place for place, each in enumerate(path.points) if each is point)


@dataclass(frozen=True, eq=False)
class _Found:
    """What there is to choose from of one path.

    Attributes
    ----------
    points : list of Point
    known : list of Validation
        What validation rows say of them, part after part.
    full : list of Point
        The full model, unless the path has come to it.
    beyond : list of Point
        What is there to be looked at only.
    """

    points: list[Point]
    known: list[Validation]
    full: list[Point]
    beyond: list[Point]


def _rest_of_path(
    solver: Solver, grid: NDArray[np.float64], last: Point, largest: int | None
) -> list[Point]:
    """Return what follows the last point of a path, to look at; up to so many nodes, if any."""
    if not last.alpha > 0.0 or solver.rule.is_full():
        return []
    if largest is not None and last.n_nodes > largest:
        return []
    solver.rule.move_to(last)
    ending = replace(_unhurried(solver, grid[grid < last.alpha]), max_nodes=largest)
    return solver.path(Falling(grid, below=last.alpha), ending)


def _unhurried(solver: Solver, grid: NDArray[np.float64], scorer: Scorer | None = None) -> Ending:
    """Return where a path ends if it is there to be looked at.

    Without validation rows to tell what is of use, once it fits as well as the full model does: on
    rows that were trained on, all that is left of deep trees would still lower the loss.
    """
    n_nodes = solver.problem.encoding.forest.n_nodes
    low = None if scorer is not None else solver.full().loss
    return Ending(n_grid=grid.size, n_nodes=n_nodes, scorer=scorer, low=low)


def whole_path(
    solver: Solver,
    n_alphas: int,
    validation_rows: RoutedRows | None,
    max_nodes: int | None = None,
) -> tuple[list[Point], list[Point]]:
    """Return a path from nothing kept to where going on does not pay, and the full model.

    It ends with the first point that has more than `max_nodes`.

    The latter unless the path has come to it by itself.
    """
    grid = solver.grid(n_alphas)
    scored = validation_rows is not None and not solver.rule.searches
    scorer = None
    if scored and validation_rows is not None:
        scorer = Scorer(validation_rows, solver.options.scoring)
    ending = replace(_unhurried(solver, grid, scorer), max_nodes=max_nodes)
    points = solver.path(Falling(grid), ending)
    return points, _full_model(solver, points)


def whole_paths(
    solvers: Iterator[Solver],
    n_alphas: int,
    alphas: NDArray[np.float64] | None,
    validation_rows: RoutedRows | None,
    max_nodes: int | None = None,
) -> list[list[Point]]:
    """Return the path of each solver, for some alphas or as far as it pays, or up to `max_nodes`.

    If not for some alphas, the last of all is the full model.
    """
    paths: list[list[Point]] = []
    last: list[Point] = []
    for solver in solvers:
        if alphas is not None:
            paths.append(solver.path(alphas))
        else:
            found, last = whole_path(solver, n_alphas, validation_rows, max_nodes)
            paths.append(found)
        del solver  # what it takes must be gone before the next one begins
    paths[-1] += last
    return paths


def _full_model(solver: Solver, points: Sequence[Point]) -> list[Point]:
    """Return the full model as the last candidate, unless it is among some points.

    A best subset is of a given size, so that the full model is none of its candidates.
    """
    if solver.options.polish == "subset":
        return []
    full = solver.full()
    reached = any(
        point.n_nodes == full.n_nodes
        and (point.values is None or not full.n_nodes)
        and np.array_equal(point.weights, full.weights)
        for point in points
    )
    return [] if reached else [full]


def solvers(
    problem: Problem, options: Options, max_trees: int | None = None, *, choosing: bool
) -> Iterator[Solver]:
    """Yield a solver for each shrinkage to choose from; if nothing can choose, for the first."""
    each = _each_shrinkage(options, choosing=choosing)
    for one, about in track(each, CHOOSING, len(each)) if len(each) > 1 else each:
        yield Solver(problem, one, max_trees, about=about)


def solver_makers(
    problem: Problem, options: Options, max_trees: int | None = None, *, choosing: bool
) -> list[Callable[..., Solver]]:
    """Return what makes a solver for each shrinkage to choose from, or, as above, for the first."""
    each = _each_shrinkage(options, choosing=choosing)
    _ = problem.trees  # what all of them need is worked out before there are threads
    return [partial(Solver, problem, one, max_trees, about) for one, about in each]


def _each_shrinkage(options: Options, *, choosing: bool) -> list[tuple[Options, dict[str, Any]]]:
    """Return options with one shrinkage each, and what there is to say of points then."""
    if not choosing or len(options.shrinkages) == 1:
        return [(options, {})]
    return [
        (replace(options, shrinkage=float(each)), {"shrinkage": float(each)})
        for each in options.shrinkages
    ]


def _further_points(path: PruningPath, chosen: int, budget: Budget, solver: Solver) -> list[Point]:
    """Return points beside the path with which a budget is used up better.

    If trees are counted, those of the chosen point may keep more of themselves, whatever the others
    would do. And between the chosen point and the next, if that is too large, there may be others
    that are not.
    """
    more: list[Point] = []
    if budget.max_trees is not None:
        more += solver.deepen(path.points[chosen], path.alphas[chosen + 1 :])
    fits = partial(keeps_to, path.source, budget)
    if chosen + 1 < len(path) and not fits(path.points[chosen + 1]):
        more += solver.refine(path.points[chosen], path.points[chosen + 1], fits)
    return more


def _no_better_than_next(
    path: PruningPath,
    chosen: int,
    budget: Budget,
    rows: RoutedRows,
    further: list[Point],
    scoring: Scoring,
) -> tuple[list[Point], Validation]:
    """Return what is not better on validation rows than the next point of the path, and its scores.

    Points between two of a path should do as well as something between them. One that is better
    than both owes that to chance, and a larger budget, which takes the larger of the two, would
    seem to be worse.
    """
    scores = validate(rows, further, scoring)
    if budget.max_trees is not None or path.validation is None:
        return further, scores
    some = np.flatnonzero(scores.scores <= path.validation.scores[chosen + 1])
    return [further[i] for i in some], scores.take(some)


def _unit(path: PruningPath) -> str:
    return "R squared" if path.validation is None else path.validation.name


def _why_constant(path: PruningPath, wanted: Wanted, options: Options) -> str:
    """Return why no tree is left, and what to do about it."""
    budget, trees = wanted.budget, np.flatnonzero(path.n_trees)
    if not trees.size:
        return "No tree of the model explains anything of these rows: a constant is left."
    if wanted.tolerance is not None:
        return (
            f"A constant comes within {named('tolerance', wanted.tolerance)} of the full model: no "
            f"tree is left. Give less; it is in units of {_unit(path)}, so 0.01 loses 0.01 of it."
        )
    if wanted.one_standard_error:
        return (
            f"A constant comes within one standard error of the best model"
            f"{f' within {budget.named}' if budget else ''}: no tree is left. Give more validation "
            f"rows, or a {{tolerance}}{', or allow more' if budget else ''}."
        )
    smallest = int(trees[np.argmin(path.n_nodes[trees])])
    if keeps_to(path.source, budget, path.points[smallest]):
        rows = "these" if path.validation is None else "the validation"
        return f"A constant does best on {rows} rows: no tree is left."
    remedies = "Allow more"
    if not options.new_values and options.polish is None:
        remedies += (
            ", or refit leaves ({rule='subtree'}) or weights ({polish='ridge'}), so that fewer "
            "trees do"
        )
    return f"Only a constant keeps to {budget.named}: no tree is left. {remedies}."
