"""Models with new splits beside those that are only pruned, and the choice between them."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from forestprune.exceptions import OutOfReachError
from forestprune.options import Options
from forestprune.select.choose import Wanted, choose_routed
from forestprune.select.path import PruningPath, keeps_to
from forestprune.select.preference import Preference
from forestprune.select.routed import RoutedRows
from forestprune.select.solver import Solver
from forestprune.select.split_polish import SplitPolisher, wider_size
from forestprune.select.validation import Scorer, ValidationScore, validate
from forestprune.solve.point import Point

STEP = 0.8
"""Nodes of one model over those of the one before, on the way to the smallest that will do."""

MOST_NODES, HALF = 5_000, 0.5
"""Up to how many nodes models of a path get new splits, and nodes of one over the one before."""

FEWEST_ROWS = 80
"""Of fewer rows no part can say whether new splits are of use."""

N_ALPHAS = 30
"""How fine a path is on which a larger model is looked for."""


Settle = Callable[[list[Point], Point | None], list[Point]]
"""What is done to models with new splits before one is chosen: all rows may have more to say than
those that chose the splits. It is told which model they are to be better than, if any."""


def choose_with_new_splits(
    rows: RoutedRows,
    validation_rows: RoutedRows | None,
    wanted: Wanted,
    options: Options,
    choose_plain: Callable[[Wanted, Options], tuple[PruningPath, int]] | None = None,
    settle: Settle | None = None,
) -> tuple[PruningPath, int]:
    """Do what `choose_routed` does, and let the model that it takes have other splits.

    Models with and without are on the path. Validation rows choose between them; without any, part
    of the rows does: see `_Polished`. If rows are only some of all, something else may
    `choose_plain` in place of `choose_routed`, and models are to be settled.
    """
    plain, missed = options.plain, None
    choose = choose_plain or partial(choose_routed, rows, validation_rows)
    try:
        path, taken = choose(wanted, plain)
    except OutOfReachError as error:
        if not (wanted.by_quality and wanted.budget):
            raise
        missed = error  # new splits may reach what pruning alone does not
        within = replace(wanted, tolerance=None, confidence=None, one_standard_error=False)
        path, taken = choose(within, plain)
    point = path.points[taken]
    if point.n_trees:
        wider = _wider(rows, path, point, wanted, plain)
        polished = _Polished(rows, validation_rows, options, wanted.max_depth, settle)
        found, best = polished.beside(
            point, wider, lambda each: keeps_to(path.source, wanted.budget, each)
        )
        if wanted.by_quality and validation_rows is not None:
            return polished.smallest(path, point, found, wanted, missed)
        joined = _joined(path, found, validation_rows, options)
        return joined, _place(joined, best)
    if missed is not None:
        raise missed
    return path, taken


def choose_polished(
    rows: RoutedRows,
    validation_rows: RoutedRows | None,
    point: Point,
    options: Options,
    max_depth: int | None,
    settle: Settle | None = None,
) -> tuple[PruningPath, int]:
    """Return a model and what new splits make of it as a path, and the place of the one to take."""
    found: list[Point] = []
    best = point
    if point.n_trees:
        polished = _Polished(rows, validation_rows, options, max_depth, settle)
        found, best = polished.beside(point, None, lambda _: True)
    validation = None
    if validation_rows is not None:
        validation = validate(validation_rows, [point], options.scoring)
    path = PruningPath(rows.source, (point,), validation)
    joined = _joined(path, found, validation_rows, options)
    return joined, _place(joined, best)


def with_new_splits(
    path: PruningPath,
    rows: RoutedRows,
    validation_rows: RoutedRows | None,
    options: Options,
    settle: Settle | None = None,
) -> PruningPath:
    """Return a path with models that have new splits beside those that are only pruned."""
    points = [point for point in path.points if 0 < point.n_nodes <= MOST_NODES]
    if not points:
        return path
    polisher = SplitPolisher(rows, options, path.source.max_depth)
    largest = max(points, key=lambda point: (point.n_nodes, -point.loss))
    found: list[Point] = []
    score = None
    if validation_rows is not None:
        score = Preference(validation_rows, options.scoring).score
    for each in polisher.beside(largest, None, score):
        found += [each, *polisher.smaller(each, lambda _: True, HALF)]
    found = found if settle is None else settle(found, None)
    beside = [replace(each, alpha=_alpha_beside(path, each)) for each in found if each.n_nodes]
    return _joined(path, beside, validation_rows, options)


class _Polished:
    """Models with new splits, and the choice between them and those without.

    Parameters
    ----------
    rows : RoutedRows
    validation_rows : RoutedRows or None
    options : Options
    max_depth : int or None
    settle : callable or None
    """

    def __init__(
        self,
        rows: RoutedRows,
        validation_rows: RoutedRows | None,
        options: Options,
        max_depth: int | None,
        settle: Settle | None = None,
    ) -> None:
        self._settle = settle
        self._rows, self._validation_rows = rows, validation_rows
        self._options, self._max_depth = options, max_depth
        self._polisher = SplitPolisher(rows, options, max_depth)

    def beside(
        self, point: Point, wider: Point | None, allowed: Callable[[Point], bool]
    ) -> tuple[list[Point], Point]:
        """Return what new splits make of a model, and the best of these and the model itself."""
        rows = self._validation_rows
        if rows is not None:
            preference = Preference(rows, self._options.scoring)
            found = self._polisher.beside(point, wider, preference.score)
            kept = [self._polisher.within(each, allowed) for each in found]
            found = [each for each in kept if each is not None and each.n_nodes]
            found = self._settled(found, point, allowed)
            return found, preference.among([point, *found])
        shrinkage = self._options.shrinkage
        if shrinkage is None:
            best = self._on_part(point, wider)
            if best is None:
                return [], point
            shrinkage, wider = best
        polisher = SplitPolisher(
            self._rows, replace(self._options, shrinkage=shrinkage), self._max_depth
        )
        kept = [polisher.within(each, allowed) for each in polisher.beside(point, wider, None)]
        found = self._settled([each for each in kept if each is not None], point, allowed)
        return found, found[-1] if found else point

    def _settled(
        self, found: list[Point], point: Point | None, allowed: Callable[[Point], bool]
    ) -> list[Point]:
        """Return models with what all rows say of them, if these are to be asked."""
        if self._settle is None or not found:
            return found
        return [each for each in self._settle(found, point) if allowed(each)]

    def _on_part(self, point: Point, wider: Point | None) -> tuple[float, Point | None] | None:
        """Return what does best on some rows if others choose the splits.

        The shrinkage, and what to make the model of if not of itself. None if none does better than
        the model as it is, nor than its own splits with values that are fitted anew. Both have seen
        all of these rows in part, so doubt speaks for them.
        """
        parts = _two_parts(self._rows)
        if parts is None:
            return None
        some, others = parts
        polisher = SplitPolisher(some, self._options, self._max_depth)
        preference = Preference(others, None)
        found = polisher.beside(point, wider, preference.score)
        own = max(polisher.refitted(point, found), key=preference.score)
        for careful in (own, point):
            best = preference.among([careful, *found])
            if best is not careful:
                # The last is the one that is made of a wider model, if there is one.
                return float(best.report["shrinkage"]), wider if best is found[-1] else None
        return None

    def smallest(
        self,
        path: PruningPath,
        point: Point,
        found: list[Point],
        wanted: Wanted,
        missed: OutOfReachError | None,
    ) -> tuple[PruningPath, int]:
        """Return the smallest model that is good enough, with new splits or without.

        `found` is what new splits make of `point`, which is the smallest without, or if pruning
        alone has `missed` what is asked for, what it came to.
        """
        if self._validation_rows is None:
            raise AssertionError("quality is measured on validation rows")
        scorer = Scorer(self._validation_rows, self._options.scoring)
        good = good_enough(path, wanted)
        enough = [] if missed is not None else [point]

        def will_do(each: Point) -> bool:
            does = good(scorer.add(each)) and keeps_to(path.source, wanted.budget, each)
            if does:
                enough.append(each)
            return does

        scores = [(scorer.add(each).score, each) for each in found]
        if scores:
            best = max(scores, key=lambda pair: pair[0])[1]
            if will_do(best):
                smaller = self._polisher.smaller(best, will_do, STEP)
                if self._settle is not None and smaller:
                    enough = [each for each in enough if each is best or each is point]
                    smaller = self._settle(smaller, None)
                    for each in smaller:
                        will_do(each)
                found = [*found, *smaller]
        if missed is not None and not enough:
            raise missed
        smallest = min(enough, key=lambda each: (each.n_nodes, each.loss))
        joined = _joined(path, found, self._validation_rows, self._options)
        return joined, _place(joined, smallest)


def _two_parts(rows: RoutedRows) -> tuple[RoutedRows, RoutedRows] | None:
    """Return three quarters of rows and the others, of each class; None if there are too few."""
    weight, n_rows = rows.sample_weight, rows.target.shape[1]
    counted = np.arange(n_rows) if weight is None else np.flatnonzero(weight > 0.0)
    if counted.size < FEWEST_ROWS:
        return None
    order = np.random.default_rng(0).permutation(counted)
    if rows.numbers is not None:
        order = order[np.argsort(rows.numbers[order], kind="stable")]
    held = np.arange(order.size) % 4 == 3
    return rows.take(np.sort(order[~held])), rows.take(np.sort(order[held]))


def good_enough(path: PruningPath, wanted: Wanted) -> Callable[[ValidationScore], bool]:
    """Return what tells whether a model is good enough."""
    validation = path.validation
    if wanted.good is not None or validation is None:
        return wanted.good or (lambda _: True)
    best = int(np.argmax(validation.scores))
    lowest = float(validation.scores[best] - validation.standard_errors[best])
    return lambda score: score.score >= lowest


def _wider(
    rows: RoutedRows, path: PruningPath, point: Point, wanted: Wanted, plain: Options
) -> Point | None:
    """Return the larger model of which one of the size of `point` is best made.

    None if trees or bytes are limited, which a larger model has more of; or if none was asked for
    by size.
    """
    budget = wanted.budget
    asked = budget.max_nodes is not None or wanted.by_quality
    if not asked or budget.max_trees is not None or budget.max_bytes is not None:
        return None
    most = wider_size(point.n_nodes)
    if plain.refits:
        shrinkage = point.report.get("shrinkage", plain.shrinkages[0])
        plain = replace(plain, shrinkage=shrinkage)
    solver = Solver(rows.problem(plain.n_jobs), plain)
    points = solver.path(solver.grid(N_ALPHAS), lambda each: each.n_nodes > most)
    within = [each for each in (*points, *path.points) if each.n_nodes <= most]
    return max(within, key=lambda each: (each.n_nodes, -each.loss))


def _joined(
    path: PruningPath,
    found: list[Point],
    validation_rows: RoutedRows | None,
    options: Options,
) -> PruningPath:
    """Return a path with further points."""
    parts = [] if path.validation is None else [path.validation]
    if validation_rows is not None and found:
        parts.append(validate(validation_rows, found, options.scoring))
    return PruningPath.joined(path.source, [*path.points, *found], parts)


def _place(path: PruningPath, point: Point) -> int:
    return next(place for place, each in enumerate(path.points) if each is point)


def _alpha_beside(path: PruningPath, point: Point) -> float:
    """Return the alpha of the largest model that is only pruned and no larger than `point`."""
    smaller = [each for each in path.points if each.n_nodes <= point.n_nodes]
    beside = max(smaller, key=lambda each: each.n_nodes) if smaller else path.points[0]
    return beside.alpha
