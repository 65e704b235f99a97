"""Models with new splits beside those that are only pruned, and the choice between them."""

from collections.abc import Callable
from dataclasses import replace

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

N_ALPHAS = 30
"""How fine a path is on which a larger model is looked for."""


def choose_with_new_splits(
    rows: RoutedRows, validation_rows: RoutedRows | None, wanted: Wanted, options: Options
) -> tuple[PruningPath, int]:
    """Do what `choose_routed` does, and let the model that it takes have other splits.

    Models with and without are on the path. Validation rows choose between them; without any, the
    model has other splits.
    """
    plain, missed = options.plain, None
    try:
        path, taken = choose_routed(rows, validation_rows, wanted, plain)
    except OutOfReachError as error:
        if not (wanted.by_quality and wanted.budget):
            raise
        missed = error  # new splits may reach what pruning alone does not
        within = replace(wanted, tolerance=None, confidence=None, one_standard_error=False)
        path, taken = choose_routed(rows, validation_rows, within, plain)
    point = path.points[taken]
    if point.n_trees:
        polisher = SplitPolisher(rows, options, wanted.max_depth)
        if wanted.by_quality and validation_rows is not None:
            return _smallest(polisher, rows, validation_rows, wanted, path, point, missed)
        wider = _wider(polisher, rows, path, point, wanted)
        found = polisher.beside(point, wider, choosing=validation_rows is not None)
        found = [each for each in found if keeps_to(path.source, wanted.budget, each)]
        return _with_choice(path, point, found, validation_rows, options)
    if missed is not None:
        raise missed
    return path, taken


def choose_polished(
    rows: RoutedRows,
    validation_rows: RoutedRows | None,
    point: Point,
    options: Options,
    max_depth: int | None,
) -> tuple[PruningPath, int]:
    """Return a model and what new splits make of it as a path, and the place of the one to take."""
    polisher = SplitPolisher(rows, options, max_depth)
    found = []
    if point.n_trees:
        found = polisher.beside(point, None, choosing=validation_rows is not None)
    validation = None
    if validation_rows is not None:
        validation = validate(validation_rows, [point], options.scoring)
    path = PruningPath(rows.source, (point,), validation)
    return _with_choice(path, point, found, validation_rows, options)


def with_new_splits(
    path: PruningPath, rows: RoutedRows, validation_rows: RoutedRows | None, options: Options
) -> PruningPath:
    """Return a path with models that have new splits beside those that are only pruned."""
    points = [point for point in path.points if 0 < point.n_nodes <= MOST_NODES]
    if not points:
        return path
    polisher = SplitPolisher(rows, options, path.source.max_depth)
    largest = max(points, key=lambda point: (point.n_nodes, -point.loss))
    found = polisher.smaller(
        largest, largest, lambda _: True, step=HALF, choosing=validation_rows is not None
    )
    beside = [replace(each, alpha=_alpha_beside(path, each)) for each in found]
    return _joined(path, beside, validation_rows, options)


def _smallest(
    polisher: SplitPolisher,
    rows: RoutedRows,
    validation_rows: RoutedRows,
    wanted: Wanted,
    path: PruningPath,
    point: Point,
    missed: OutOfReachError | None,
) -> tuple[PruningPath, int]:
    """Return the smallest model that is good enough, with new splits or without.

    If pruning alone has `missed` it, `point` is what it came to.
    """
    scorer = Scorer(validation_rows, polisher.options.scoring)
    good = _good_enough(path, wanted)
    enough = [] if missed is not None else [point]

    def will_do(each: Point) -> bool:
        does = good(scorer.add(each)) and keeps_to(path.source, wanted.budget, each)
        if does:
            enough.append(each)
        return does

    wider = _wider(polisher, rows, path, point, wanted)
    found = polisher.smaller(point, wider, will_do, step=STEP, choosing=True)
    if missed is not None and not enough:
        raise missed
    best = min(enough, key=lambda each: (each.n_nodes, each.loss))
    joined = _joined(path, found, validation_rows, polisher.options)
    return joined, _place(joined, best)


def _good_enough(path: PruningPath, wanted: Wanted) -> Callable[[ValidationScore], bool]:
    """Return what tells whether a model is good enough."""
    validation = path.validation
    if wanted.good is not None or validation is None:
        return wanted.good or (lambda _: True)
    best = int(np.argmax(validation.scores))
    lowest = float(validation.scores[best] - validation.standard_errors[best])
    return lambda score: score.score >= lowest


def _wider(
    polisher: SplitPolisher, rows: RoutedRows, path: PruningPath, point: Point, wanted: Wanted
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
    plain = polisher.plain
    if plain.refits:
        shrinkage = point.report.get("shrinkage", plain.shrinkages[0])
        plain = replace(plain, shrinkage=shrinkage)
    solver = Solver(rows.problem(plain.n_jobs), plain)
    points = solver.path(solver.grid(N_ALPHAS), lambda each: each.n_nodes > most)
    within = [each for each in (*points, *path.points) if each.n_nodes <= most]
    return max(within, key=lambda each: (each.n_nodes, -each.loss))


def _with_choice(
    path: PruningPath,
    point: Point,
    found: list[Point],
    validation_rows: RoutedRows | None,
    options: Options,
) -> tuple[PruningPath, int]:
    """Return a path with what new splits made of one of its points, and the place of the best."""
    candidates = [point, *found]
    taken = min(1, len(found))
    if validation_rows is not None:
        taken = Preference(validation_rows, options.scoring).among(candidates)
    joined = _joined(path, found, validation_rows, options)
    return joined, _place(joined, candidates[taken])


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
