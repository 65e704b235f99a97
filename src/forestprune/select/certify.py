"""Certificates for points: how far from the least objective they can be at most."""

from dataclasses import replace
from time import perf_counter

from forestprune.options import Options
from forestprune.select.path import PruningPath
from forestprune.select.routed import RoutedRows
from forestprune.select.solver import make_rule
from forestprune.solve.dual.bound import Dual, hindrance
from forestprune.solve.dual.certificate import Certificate
from forestprune.solve.point import Point
from forestprune.solve.problem import Problem
from forestprune.solve.rule import Rule
from forestprune.system.progress import track

BY_SAMPLE = (
    "of so many rows, or rows by the block, a sample chooses the model, and what bounds its "
    "objective on the sample bounds none on all rows"
)


def certified(
    path: PruningPath, rows: RoutedRows, options: Options, only: int | None = None
) -> PruningPath:
    """Return a path whose points, or one of them only, have a certificate in their report."""
    certifier = _Certifier(rows.problem(options.n_jobs), options)
    places = range(len(path)) if only is None else [only]
    points = list(path.points)
    for place in track(places, "certifying", len(places)):
        if "certificate" in points[place].report:
            continue  # as proved by an exact solver
        points[place] = with_certificate(points[place], certifier.certify(points[place]))
    return replace(path, points=tuple(points))


def without_bound(path: PruningPath, reason: str, only: int | None = None) -> PruningPath:
    """Return a path whose points, or one of them only, say why there is no bound."""
    none = Certificate.none(reason)
    points = [
        with_certificate(point, none) if only in (None, place) else point
        for place, point in enumerate(path.points)
    ]
    return replace(path, points=tuple(points))


def with_certificate(point: Point, certificate: Certificate) -> Point:
    """Return a point with a certificate in its report."""
    return replace(point, report=point.report | {"certificate": certificate.to_dict()})


class _Certifier:
    """Bounds the objective of one point after another; rules for the same shrinkage are kept."""

    def __init__(self, problem: Problem, options: Options) -> None:
        self._problem, self._options = problem, options
        self._rules: dict[float, Rule] = {}

    def certify(self, point: Point) -> Certificate:
        begun, options = perf_counter(), self._options
        if point.forest is not None:
            return Certificate.none("its splits are new ones, which no pruning of the model has")
        if options.polish not in (None, "split"):
            return Certificate.none(
                f'polish="{options.polish}" has changed it after pruning, and what it then '
                "minimises is another objective"
            )
        shrinkage = float(point.report.get("shrinkage", options.shrinkages[0]))
        if shrinkage not in self._rules:
            own = replace(
                options.plain, shrinkage=shrinkage if options.refits else None, certify=False
            )
            self._rules[shrinkage] = make_rule(self._problem, own)
        rule = self._rules[shrinkage]
        reason = hindrance(
            rule, replace(options, shrinkage=shrinkage if options.new_values else None)
        )
        if reason is not None:
            return Certificate.none(reason)
        objective = rule.priced(point)
        bound = Dual(rule, point).raise_bound(objective)
        return Certificate.of(objective, bound, perf_counter() - begun)
