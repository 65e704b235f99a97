"""Pruning with a sample of the rows, which all of them correct, pass by pass.

A path is solved on the sample. One pass over all rows then tells the gradient at some of its
models, and the path is solved again with the sample corrected by that. What is taken is checked by
one more pass: if any tree could still gain on all rows, the sample is corrected at that very model
and solved again around it. So what comes out is a model that no single tree can improve on all
rows, as it is where all are pruned with, by few passes over them.
"""

import operator
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestprune.exceptions import OptionError, OutOfReachError, named
from forestprune.forest.checks import seal
from forestprune.interop.source import Source
from forestprune.options import Options
from forestprune.polishing.leaf_rounds import LeafRounds, nodes_asked
from forestprune.rows.encoding import Encoding
from forestprune.rows.trees import read_trees
from forestprune.select.all_rows import AllRows
from forestprune.select.choose import (
    Search,
    Wanted,
    choose_routed,
    solver_makers,
    solvers,
    warn_of_constant,
    whole_paths,
)
from forestprune.select.ending import LEAST, Falling
from forestprune.select.leaf_polish import LeafPolish
from forestprune.select.measuring import Measured, Measuring, steady
from forestprune.select.path import PruningPath, keeps_to
from forestprune.select.references import Reference
from forestprune.select.routed import RoutedRows
from forestprune.select.solver import Solver, rule_for
from forestprune.select.validation import Validation, validate
from forestprune.solve.correction import Sums
from forestprune.solve.levels import leaf_origins
from forestprune.solve.point import Point
from forestprune.solve.problem import Problem
from forestprune.solve.rule import Rule
from forestprune.solve.subtrees.rule import SubtreeRule

SAMPLE_ROWS = 50_000
"""Rows of the sample at most."""

PATH_ROWS = 2 * SAMPLE_ROWS
"""Those of the sample for a whole path."""

LARGE_ROWS = 4 * SAMPLE_ROWS
"""From so many rows on that are all there a sample of them is taken."""

ROWS_A_LEAF = 20
"""Rows that the sample must have for each leaf that is kept. Fewer cannot tell which trees answer
to the same rows, so that together these would do too much."""

SETTLED = 2e-5
"""What a tree may still gain on all rows, in units of the loss of the best constant."""

MOST_ROUNDS = 5
"""How often what is taken is checked, and looked for again around it."""

APART = 2.0
"""By what factor alphas of models fall at which the sample is corrected."""

MOST_REFERENCES = 16
"""How many such models there are at most for one shrinkage."""

REFERENCE_BYTES = 2**29
"""What their sums may take."""

FROM = 8.0
"""From what multiple of an alpha on it is looked around it."""

BESIDE = (0.8, 0.9, 1.0, 1.1, 1.3)
"""By what alpha is multiplied until a model that is still improved is what was asked for."""


def suits(source: Source, options: Options) -> bool:
    """Tell whether a sample will do where all rows are there; they choose better new splits."""
    return options.polish != "split" and not _hindrance(source, options)


def _hindrance(source: Source, options: Options) -> str:
    """Return the option for which all rows are needed at once, if there is one."""
    if options.joint is not None:
        return named("joint", repr(options.joint))
    if options.polish in ("ridge", "subset"):
        return named("polish", repr(options.polish))
    if options.solver == "exact":
        return named("solver", repr(options.solver))
    if rule_for(source.forest, options) is SubtreeRule:
        return ""
    return named("rule", repr(options.rule or "oblivious"))


def require_suited(source: Source, options: Options) -> None:
    """Refuse what rows by the block cannot be used for."""
    if hindrance := _hindrance(source, options):
        raise OptionError(
            "Rows by the block are for {rule='subtree'}, polished by 'leaf', 'split' or not at "
            f"all, got {hindrance}: give rows that fit into memory, or leave that out."
            + " Trees of this model are symmetric; {rule='subtree'} prunes them as any others."
            * (options.rule is None and not options.polish)
        )


def choose_by_sample(
    everything: AllRows, validation_rows: RoutedRows | None, wanted: Wanted, options: Options
) -> tuple[PruningPath, int]:
    """Return all points that were looked at, as a path, and the place of the one to take.

    If the sample is too small for what it is to choose, a larger one is drawn.
    """
    size, rows = SAMPLE_ROWS, everything.sample(SAMPLE_ROWS)
    most = everything.largest_sample
    while rows.encoding.n_rows < everything.n_rows:
        try:
            plain = options if options.polish is None else options.plain
            by_sample = BySample(rows, everything, validation_rows, plain, largest=size >= most)
            if options.polish == "leaf":
                return LeafPolish(by_sample, validation_rows, options).choose(wanted)
            return by_sample.choose(wanted)
        except _TooFewRowsError as error:
            if size >= most:
                raise OptionError(
                    f"The model asked for has {error.leaves:,} leaves, and {most:,} rows, the "
                    f"largest sample that is taken of rows by the block, can tell of "
                    f"{most // ROWS_A_LEAF:,} at most. Allow fewer nodes, as by {{max_nodes}}, or "
                    "give rows that fit into memory."
                ) from None
            size = everything.size_for(2 * error.leaves * ROWS_A_LEAF)
            rows = everything.sample(size)
    return choose_routed(rows, validation_rows, wanted, options)


class _TooFewRowsError(Exception):
    """The sample is too small for so many leaves."""

    def __init__(self, leaves: int) -> None:
        super().__init__(leaves)
        self.leaves = leaves


class BySample:
    """Prunes with a sample, corrected by all rows.

    Parameters
    ----------
    rows : RoutedRows
        The sample, with weights by which it stands for all rows.
    everything : AllRows
    validation_rows : RoutedRows or None
    options : Options
    largest : bool
        Whether no larger sample can be had.

    Attributes
    ----------
    passes : int
        How often all rows were gone through.
    """

    def __init__(
        self,
        rows: RoutedRows,
        everything: AllRows,
        validation_rows: RoutedRows | None,
        options: Options,
        *,
        largest: bool = False,
    ) -> None:
        self._largest = largest
        self._rules: dict[tuple[Any, float], Rule] = {}
        self._rows, self._all, self._validation = rows, everything, validation_rows
        self._options, self.passes = options, 0
        self._problem: Problem = rows.problem(options.n_jobs)
        self._trees = read_trees(rows.source.forest, seal(np.empty(0)))
        self._rule: Rule | None = None  # in whose parts leaves are fitted
        self._at_leaves: dict[Point, Sums] = {}  # where all rows have told of leaves already

    # One model

    def choose(self, wanted: Wanted) -> tuple[PruningPath, int]:
        """Return all points that were looked at, as a path, and the place of the one to take."""
        if not wanted.choosers(self._options, None if self._validation is None else "X_val"):
            return self._at_one_alpha(1.0 if wanted.alpha is None else float(wanted.alpha), wanted)
        search = self._search(wanted)
        choosing = self._validation is not None
        makers = solver_makers(self._problem, self._options, choosing=choosing)
        search.look_at_all(makers, self._options.n_jobs, closely=False)
        before, place = search.chosen()
        self._require_rows(before.points[place])
        plans = self._plans(before, before.points[place], wanted)
        try:
            path, place = self._corrected(plans, wanted)
        except OutOfReachError:  # corrected, models may be larger
            plans = [replace(plan, begin=None) for plan in plans]
            path, place = self._corrected(plans, wanted)
        options = self._with_shrinkage_of(path.points[place], *before.points[::-1])
        path = self._settled(path, place, wanted, options)
        taken, path = path.points[place], _continued(before, plans, path)
        place = next(i for i, point in enumerate(path.points) if point is taken)
        warn_of_constant(path, place, wanted, self._options)
        return path, place

    def _require_rows(self, point: Point) -> None:
        """Ask for a larger sample if this one is too small for what a point keeps."""
        leaves, full = (point.n_nodes + point.n_trees) // 2, not point.alpha > 0.0
        if full and point.values is None and self._largest:
            return  # there is nothing better to be found, and it is what it is
        if leaves * ROWS_A_LEAF > self._rows.encoding.n_rows:
            raise _TooFewRowsError(leaves)

    def _search(self, wanted: Wanted) -> Search:
        most = self._most_nodes
        return Search(self._rows.source, self._validation, wanted, self._options, most)

    def _plans(self, path: PruningPath, taken: Point, wanted: Wanted) -> list["_Plan"]:
        """Return for each shrinkage where a path is solved again, and by what it is corrected."""
        plans = []
        for shrinkage in _shrinkages(path):
            options = self._options
            if shrinkage is not None:
                options = replace(options, shrinkage=shrinkage)
            tried, last = _of_one(path, shrinkage), taken
            with suppress(OutOfReachError):
                last = tried.points[_choose(tried, wanted)]
            begin = _above(tried.points, FROM * last.alpha)
            points = self._thinned(tried.points, last, begin)
            plans.append(_Plan(shrinkage, options, points, begin))
        references = iter(self._references([point for plan in plans for point in plan.points]))
        return [replace(plan, references=[next(references) for _ in plan.points]) for plan in plans]

    def _corrected(self, plans: Sequence["_Plan"], wanted: Wanted) -> tuple[PruningPath, int]:
        """Return the points that the corrected sample has where it is planned, and the place."""
        search, begins = self._search(wanted), [plan.begin for plan in plans]
        makers = [partial(self._corrected_by, plan) for plan in plans]
        search.look_at_all(makers, self._options.n_jobs, begins)
        return search.chosen()

    def _corrected_by(self, plan: "_Plan", **how: Any) -> Solver:
        about = {} if plan.shrinkage is None else {"shrinkage": plan.shrinkage}
        solver = Solver(self._problem, plan.options, about=about, **how)
        solver.correct_by(plan.references)
        return solver

    def _settled(
        self, path: PruningPath, place: int, wanted: Wanted, options: Options
    ) -> PruningPath:
        """Return a path whose point in some place no single tree can improve on all rows."""
        held: set[int] = set()
        best: PruningPath | None = None
        for rounds in range(1, MOST_ROUNDS + 1):
            taken, reference = self._checked(path.points[place], options)
            path = _put_in(path, place, taken)
            settled = reference is not None and taken.report["gain_left"] <= SETTLED
            if best is not None:
                before = replace(best.points[place], alpha=taken.alpha)
                if taken.objective >= self._priced(before):
                    return best  # all rows do not bear out what the sample said
            best = path
            if reference is None or settled or rounds == MOST_ROUNDS:
                break
            path = self._improved(path, place, reference, wanted, options, held)
            if path.points[place] is taken:
                break
        return path

    def _improved(
        self,
        path: PruningPath,
        place: int,
        reference: Reference,
        wanted: Wanted,
        options: Options,
        held: set[int],
    ) -> PruningPath:
        """Return a path with a better point in some place, where one tree is known to gain most.

        That tree is given what is best by all rows, and then `held`, since the sample alone may
        not see what it gains; the others answer to that. Alpha is changed a little, if need be.
        """
        validation, factors = path.validation, BESIDE if wanted.budget else (1.0,)
        for factor in BESIDE[::-1] if wanted.by_quality else factors:
            point = self._answer(reference, factor * reference.point.alpha, options, held)
            if self._validation is not None and validation is not None:
                score = validate(self._validation, [point], options.scoring)
                if wanted.good is not None and not wanted.good(score.at(0)):
                    continue
                parts = [validation.take(slice(place)), score]
                validation = Validation.joined([*parts, validation.take(slice(place + 1, None))])
            if not wanted.budget or keeps_to(path.source, wanted.budget, point):
                points = (*path.points[:place], point, *path.points[place + 1 :])
                return PruningPath(path.source, points, validation)
        return path

    def _answer(
        self, reference: Reference, alpha: float, options: Options, held: set[int]
    ) -> Point:
        """Return what is best at an alpha next to a reference, of one tree by all rows."""
        by_all, begun = self._without_rows(options), reference.point
        solver = Solver(self._problem, options)
        by_all.move_to(begun)
        by_all.correct(reference.sums)
        tree = int(np.argmax(by_all.tree_gains(alpha)))
        by_all.sweep(alpha, np.array([tree]))
        held.add(tree)
        solver.rule.move_to(begun)
        solver.rule.correct(reference.sums)
        solver.rule.move_to(by_all.point(alpha))
        found = solver.solve(alpha, held=sorted(held))
        about = {name: begun.report[name] for name in ("shrinkage",) if name in begun.report}
        return replace(found, report=found.report | about)

    def _at_one_alpha(self, alpha: float, wanted: Wanted) -> tuple[PruningPath, int]:
        """Return the point of one alpha."""
        points: list[Point] = []
        references: Sequence[Reference] = ()
        for _ in range(2):
            solver = Solver(self._problem, self._options)
            solver.correct_by(references)
            alphas = [alpha]
            if alpha > 0.0:
                grid, least = solver.grid(wanted.n_alphas), max(alpha * (1.0 + 1e-9), LEAST)
                alphas = [*takewhile(partial(operator.lt, least), Falling(grid)), alpha]
            points = solver.path(np.array(alphas))
            if not references:
                self._require_rows(points[-1])
                references = self._references(self._thinned(points, points[-1]))
        path = PruningPath(self._rows.source, (points[-1],))
        return self._settled(path, 0, wanted, self._options), 0

    # A path

    def paths(
        self, n_alphas: int, alphas: NDArray[np.float64] | None, *, several: bool
    ) -> list[list[Point]]:
        """Return paths from nothing kept on, one for each shrinkage; the full model comes last."""
        references: list[list[Reference]] = []
        paths: list[list[Point]] = []
        for corrected in (False, True):
            if corrected:
                thinned = [self._thinned(path) for path in paths]
                known = iter(self._references([point for each in thinned for point in each]))
                references = [[next(known) for _ in each] for each in thinned]
            choosing = solvers(self._problem, self._options, choosing=several)
            by = (_by(solver, references[i : i + 1]) for i, solver in enumerate(choosing))
            paths = whole_paths(by, n_alphas, alphas, self._validation, self._most_nodes)
            if alphas is not None:
                self._require_large_alphas([point for path in paths for point in path])
        measured = self._measure([point for path in paths for point in path], sums=False)
        losses = iter(self._told(measured).tolist())
        return [[self._said(point, next(losses)) for point in path] for path in paths]

    def _require_large_alphas(self, points: Sequence[Point]) -> None:
        """Refuse alphas at which more is kept than the sample can tell of."""
        too_large = [point for point in points if point.n_nodes > self._most_nodes]
        if too_large:
            raise OptionError(
                f"At {named('alphas', f'{too_large[0].alpha:.3g}')} {too_large[0].n_nodes:,} nodes "
                f"are kept, and a sample of {self._rows.encoding.n_rows:,} rows by the block can "
                f"tell of {self._most_nodes:,} at most: give larger ones."
            )

    @property
    def _most_nodes(self) -> int:
        """How many nodes the sample has rows enough for."""
        return 2 * self._rows.encoding.n_rows // ROWS_A_LEAF

    def _said(self, point: Point, loss: float) -> Point:
        """Return a point with its loss on all rows, and the objective that goes with it."""
        # What the sample says of the loss is part of what it says of the objective.
        return replace(
            point,
            loss=loss,
            objective=self._priced(replace(point, loss=loss)),
            report=point.report | self._about(),
        )

    # Leaves fitted anew

    def leaf_rounds(self, point: Point, shrinkage: float) -> LeafRounds:
        """Return what fits the leaves of a point to all rows."""
        if self._rule is None or self._rule.problem.variation != self._problem.variation:
            self._rule = Solver(self._problem, self._options).rule
        rounds = LeafRounds(self._rule, point, shrinkage, leaf_origins(self._problem, point))
        if (known := self._at_leaves.get(point)) is not None:
            rounds.take(0.5 * point.loss * self._problem.variation, known)
        return rounds

    def may_fit(self, point: Point) -> bool:
        """Tell whether a point has leaves, and the sample rows enough for them."""
        return bool(point.n_trees) and point.n_nodes <= self._most_nodes

    def fit(self, rounds: Sequence[LeafRounds], most: int) -> None:
        """Go through all rows, `most` times at most, until rounds are done."""
        for _ in range(most):
            going = [each for each in rounds if not each.done]
            if not going:
                break
            points = [each.asked for each in going]
            measured = self._measure(points, sums=True, at_leaves=True, doing=", fitting leaves")
            for each, loss, sums in zip(going, measured.losses, measured.sums, strict=True):
                each.take(float(loss), steady(sums))

    def fitted(self, rounds: LeafRounds) -> Point:
        """Return the point that rounds have led to, with what there is to say of it."""
        if rounds.best is None:
            raise AssertionError("nothing was asked about")
        report = rounds.best.report | self._about() | {"gain_left": rounds.left}
        return replace(rounds.best, objective=self._priced(rounds.best), report=report)

    # Passes

    def _measure(
        self, points: Sequence[Point], *, sums: bool, at_leaves: bool = False, doing: str = ""
    ) -> Measured:
        """Go through all rows and measure points; sums are at all nodes or those of leaves."""
        self.passes += 1
        problem, n_jobs = self._problem, self._options.n_jobs
        constant = problem.loss.best_constant(problem.target, problem.sample_weight)
        measuring = Measuring(
            source=self._rows.source,
            trees=self._trees,
            loss=problem.loss,
            constant=constant,
            points=points,
            class_counts=self._all.class_counts,
            sums=sums,
            n_jobs=n_jobs,
            at_leaves=at_leaves,
        )
        measured = self._all.measure(measuring, f"pass {self.passes} over all rows{doing}")
        if measured.of_constant > 0.0:  # else it is what `pose` has put there
            self._problem = replace(problem, variation=2.0 * measured.of_constant)
        return measured

    def _told(self, measured: Measured) -> NDArray[np.float64]:
        """Return the losses of models over that of the best constant."""
        told: NDArray[np.float64] = 2.0 * measured.losses / self._problem.variation
        return told

    def _references(self, points: Sequence[Point]) -> list[Reference]:
        """Return some points as references."""
        if not points:
            return []
        measured = self._measure(points, sums=True)
        return [Reference(p, steady(sums)) for p, sums in zip(points, measured.sums, strict=True)]

    def _checked(self, point: Point, options: Options) -> tuple[Point, Reference | None]:
        """Return a point with what all rows say of it, and that as a reference.

        A point that is not of a path, as the full model, is no reference.
        """
        measured = self._measure([point], sums=True)
        loss, sums = float(self._told(measured)[0]), steady(measured.sums[0])
        rule, told = self._without_rows(options), replace(point, loss=loss)
        report = point.report | self._about()
        if not point.alpha > 0.0 and point.values is None:
            return replace(told, objective=float(rule.priced(told)), report=report), None
        rule.move_to(point)
        rule.correct(sums)
        report["gain_left"] = float(rule.tree_gains(point.alpha).max(initial=0.0))
        told = replace(told, objective=float(rule.priced(told)), report=report)
        nodes = nodes_asked(self._rows.source.forest, point)
        self._at_leaves[told] = Sums(sums.weight[nodes], sums.residual[:, nodes])
        return told, Reference(told, sums)

    def _about(self) -> dict[str, int]:
        sample = self._rows.encoding.n_rows
        return {"rows": self._all.n_rows, "sample_rows": sample, "passes": self.passes}

    def _without_rows(self, options: Options) -> Rule:
        """Return a rule for no rows at all: what it is corrected by is then all it knows."""
        problem, outputs = self._problem, len(self._problem.target)
        codes = problem.encoding.codes
        nothing = seal(np.empty((outputs, 0)))
        empty = replace(
            problem,
            encoding=Encoding(problem.encoding.forest, seal(codes[:, :0].copy())),
            target=nothing,
            sample_weight=None,
            residual=nothing,
        )
        return Solver(empty, options).rule

    def _priced(self, point: Point) -> float:
        """Return the objective of a point whose loss is known."""
        options = self._with_shrinkage_of(point)
        key = options.shrinkages[0], self._problem.variation
        if key not in self._rules:
            self._rules[key] = self._without_rows(options)
        return float(self._rules[key].priced(point))

    # Points

    def _with_shrinkage_of(self, *points: Point) -> Options:
        """Return the options with the shrinkage of the first point that has one."""
        for point in points:
            shrinkage = point.report.get("shrinkage")
            if shrinkage is not None and self._options.refits:
                return replace(self._options, shrinkage=float(shrinkage))
        return self._options

    def _thinned(
        self, points: Sequence[Point], last: Point | None = None, begin: Point | None = None
    ) -> list[Point]:
        """Return some points of a path, by falling alpha: from one of them down to another."""
        forest = self._rows.source.forest
        each = 8 * forest.n_nodes * (1 + forest.value.shape[1])
        most = int(np.clip(REFERENCE_BYTES // max(each, 1), 2, MOST_REFERENCES))
        lowest = 0.0 if last is None else last.alpha
        highest = np.inf if begin is None else begin.alpha
        points = [p for p in points if p.alpha > 0.0 and lowest <= p.alpha <= highest]
        if not points:
            return []
        points.sort(key=lambda point: point.alpha)
        apart = max(APART, (points[-1].alpha / points[0].alpha) ** (1.0 / (most - 1)))
        chosen = points[:1]
        for point in points:
            if point.alpha >= apart * chosen[-1].alpha:
                chosen.append(point)
        return chosen[:most][::-1]


@dataclass(frozen=True, eq=False)
class _Plan:
    """Where a path is solved again for one shrinkage, with the sample corrected.

    Attributes
    ----------
    shrinkage : float or None
        None if there is but one.
    options : Options
        With this shrinkage.
    points : list of Point
        Those by which it is corrected.
    begin : Point or None
        Where the path begins; None for nothing kept.
    references : list of Reference
    """

    shrinkage: float | None
    options: Options
    points: list[Point]
    begin: Point | None
    references: Sequence[Reference] = ()


def _by(solver: Solver, references: Sequence[Sequence[Reference]]) -> Solver:
    """Return a solver that is corrected by the first references, if there are any."""
    for each in references:
        solver.correct_by(each)
    return solver


def _shrinkages(path: PruningPath) -> list[float | None]:
    """Return the shrinkages that points have; None if all have the same."""
    found = {p.report["shrinkage"] for p in path.points if "shrinkage" in p.report}
    return sorted(found) or [None]


def _of_one(path: PruningPath, shrinkage: float | None) -> PruningPath:
    """Return the points that have a shrinkage, and are not the full model."""
    some = [
        i
        for i, point in enumerate(path.points)
        if point.alpha > 0.0 and point.report.get("shrinkage") == shrinkage
    ]
    validation = path.validation
    if validation is not None:
        validation = validation.take(np.array(some, dtype=np.int64))
    return PruningPath(path.source, tuple(path.points[i] for i in some), validation)


def _choose(path: PruningPath, wanted: Wanted) -> int:
    """Return the place of the point to take."""
    quality = (wanted.tolerance, wanted.one_standard_error, path.validation, wanted.confidence)
    return path.choose(wanted.budget, *quality)


def _above(points: Sequence[Point], alpha: float) -> Point | None:
    """Return the point with the smallest alpha that is not below one."""
    above = [point for point in points if point.alpha >= alpha]
    return min(above, key=lambda point: point.alpha, default=None)


def _put_in(path: PruningPath, place: int, point: Point) -> PruningPath:
    """Return a path with another point in some place."""
    points = (*path.points[:place], point, *path.points[place + 1 :])
    return PruningPath(path.source, points, path.validation)


def _continued(path: PruningPath, plans: Sequence[_Plan], found: PruningPath) -> PruningPath:
    """Return a path down to where plans begin, and from there on as it was found since."""
    parts = [_of_one(path, plan.shrinkage) for plan in plans if plan.begin is not None]
    begins = [plan.begin.alpha for plan in plans if plan.begin is not None]
    kept = [
        part[: int(np.count_nonzero(part.alphas > begin))]
        for part, begin in zip(parts, begins, strict=True)
    ]
    points = [point for part in [*kept, found] for point in part.points]
    known = [part.validation for part in [*kept, found] if part.validation is not None]
    return PruningPath.joined(path.source, points, known)
