"""A forest pruned as much as cross-validation says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import indexable

from forestprune.estimators.base import PrunedEstimator, Rows, is_fitted
from forestprune.exceptions import OptionError, escaped
from forestprune.forest.frames import listed
from forestprune.interop.source import Source
from forestprune.options import (
    Format,
    Joint,
    LocalSearch,
    Options,
    Polish,
    Rule,
    SolverName,
    Weighting,
    require_heuristic,
)
from forestprune.select.budget import Budget
from forestprune.select.certify import certified
from forestprune.select.choose import open_model, solvers, whole_path
from forestprune.select.path import PruningPath
from forestprune.select.routed import RoutedRows, checked_alphas
from forestprune.select.scoring import Scoring
from forestprune.select.solver import rule_for
from forestprune.select.validation import Validation, validate
from forestprune.solve.point import Point
from forestprune.system.progress import track


class FoldedEstimator(PrunedEstimator):
    """Prunes as much as cross-validation says."""

    def __init__(
        self,
        estimator: Any,
        *,
        cv: Any = None,
        max_nodes: int | None = None,
        max_trees: int | None = None,
        max_depth: int | None = None,
        max_bytes: int | None = None,
        format: Format | None = None,  # noqa: A002
        tolerance: float | None = None,
        confidence: float | None = None,
        one_standard_error: bool = False,
        alphas: ArrayLike | None = None,
        n_alphas: int = 100,
        rule: Rule | None = None,
        refit: bool | None = None,
        shrinkage: float | Sequence[float] | None = None,
        polish: Polish | None = None,
        scoring: Scoring = None,
        weighting: Weighting = "node",
        certify: bool = False,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        joint: Joint | None = None,
        alpha2: float = 0.01,
        local_search: bool | LocalSearch = True,
        solver: SolverName = "heuristic",
        time_limit: float = 60.0,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.cv = cv
        self.max_nodes = max_nodes
        self.max_trees = max_trees
        self.max_depth = max_depth
        self.max_bytes = max_bytes
        self.format = format
        self.tolerance = tolerance
        self.confidence = confidence
        self.one_standard_error = one_standard_error
        self.alphas = alphas
        self.n_alphas = n_alphas
        self.rule = rule
        self.refit = refit
        self.shrinkage = shrinkage
        self.polish = polish
        self.scoring = scoring
        self.weighting = weighting
        self.certify = certify
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.joint = joint
        self.alpha2 = alpha2
        self.local_search = local_search
        self.solver = solver
        self.time_limit = time_limit
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the forest, if it is not fitted, choose alpha by cross-validation, and prune.

        Parameters
        ----------
        X : array-like of shape (m, n_features)
        y : array-like of shape (m,), or (m, n_outputs)
            Numbers to estimate, or labels of classes.
        sample_weight : array-like of shape (m,), or None
            Weight of each row, in fitting, pruning and scoring.
        """
        from sklearn.model_selection import check_cv  # not needed to predict

        how, labels = self._checked(X, y), self._labels(y)
        require_heuristic(how)
        if how.polish == "split":
            kind = "Regressor" if labels is None else "Classifier"
            raise OptionError(
                f"{{polish='split'}} is not for ForestPrune{kind}CV: its folds compare models at "
                "the same alpha, but splits that are chosen anew are others in each fold. Use "
                f"ForestPrune{kind} with {{validation_fraction}}, or give `estimator_` to "
                "forestprune.polish()."
            )
        rows = Rows(*indexable(X, y if labels is None else labels, sample_weight))
        cv = check_cv(self.cv, labels, classifier=labels is not None)
        folds = list(cv.split(rows.X, rows.y))
        if (self.one_standard_error or self.confidence is not None) and len(folds) < 2:
            raise OptionError(
                "{one_standard_error} and {confidence} need at least two folds to tell how much "
                f"scores scatter, got {len(folds)}."
            )
        given = None if self.alphas is None else checked_alphas(self.alphas)
        fitted = is_fitted(self.estimator)
        if labels is not None and not fitted:
            _require_every_class(folds, labels)
        source = self._source(rows)
        source, how = open_model(source, rows.X, how, self.max_depth, self.format)
        routed = self._routed(source, rows)
        with np.errstate(under="ignore"):
            paths: list[list[Point]] = []
            last: list[Point] = []
            for solver in solvers(routed.problem(how.n_jobs), how, self._picked, choosing=True):
                if given is not None:
                    paths.append(solver.path(given))
                else:
                    path, last = whole_path(solver, self.n_alphas, None)
                    paths.append(path)
            scored = []
            for train, test in track(folds, "cross-validating", len(folds)):
                # The trees of a fitted model are the same in all folds, and so are the codes.
                parts = (
                    (routed.take(train), routed.take(test))
                    if fitted
                    else self._fitted_to(rows.some(train), rows.some(test), how)
                )
                scored.append(self._score_fold(paths, how, *parts, full=bool(last)))
        points = [point for path in paths for point in path]
        validation = _summary(scored)
        chosen = PruningPath(source, (*points, *last), validation).choose(
            Budget(max_nodes=self.max_nodes, max_trees=self.max_trees, max_bytes=self.max_bytes),
            self.tolerance,
            self.one_standard_error,
            validation,
            self.confidence,
        )
        # Which path that point belongs to, and where that begins; the full model ends each of them.
        ends = np.cumsum([len(path) for path in paths])
        which = int(np.searchsorted(ends, chosen, side="right")) % len(paths)
        own = np.arange(ends[which] - len(paths[which]), ends[which])
        own = np.append(own, np.arange(len(points), len(points) + len(last)))
        self.scores_ = np.array([fold.scores[own] for fold in scored]).T
        self.path_ = PruningPath(source, (*paths[which], *last), validation.take(own))
        self.shrinkage_ = float(how.shrinkages[which])
        taken = int(np.flatnonzero(own == chosen)[0])
        self.alpha_ = float(self.path_.alphas[taken])
        if how.certify:
            self.path_ = certified(self.path_, routed, how, taken)
        self._finish(self.path_[taken])
        return self

    @property
    def _picked(self) -> int | None:
        """How many trees a best subset has."""
        return self.max_trees if self.polish == "subset" else None

    def _routed(self, source: Source, rows: Rows) -> RoutedRows:
        return RoutedRows.of(
            source, rows.X, self._target(source, rows.y), rows.weights, self.n_jobs
        )

    def _fitted_to(self, train: Rows, test: Rows, how: Options) -> tuple[RoutedRows, RoutedRows]:
        """Fit the forest to the rows of some folds; return these and the others, routed."""
        source = self._source(train)
        source = source if self.max_depth is None else source.cut(self.max_depth)
        source = source.by_levels() if rule_for(source.forest, how).by_levels else source
        return self._routed(source, train), self._routed(source, test)

    def _score_fold(
        self,
        paths: Sequence[Sequence[Point]],
        how: Options,
        train: RoutedRows,
        test: RoutedRows,
        *,
        full: bool,
    ) -> Validation:
        """Return the scores of all alphas, of one path after another, in one fold.

        If asked for, those of the `full` model come last.
        """
        parts: list[Validation] = []
        fold = solvers(train.problem(how.n_jobs), how, self._picked, choosing=True)
        for path, solver in zip(paths, fold, strict=True):
            points = solver.path(np.array([point.alpha for point in path]))
            found = validate(test, points, how.scoring)
            # A path that ends early ends at the full model, the solution for smaller alphas too.
            parts.append(found.take(np.minimum(np.arange(len(path)), found.scores.size - 1)))
        parts += [validate(test, [solver.full()], how.scoring)] if full else []
        return Validation.joined(parts)


def _require_every_class(folds: Sequence[tuple[Any, Any]], labels: NDArray[Any]) -> None:
    """Refuse folds for which a forest would be fitted that has never seen some class."""
    for number, (train, _) in enumerate(folds, start=1):
        missing = np.setdiff1d(labels, labels[train])
        if missing.size:
            raise OptionError(
                f"Each class must be among the rows that are fitted to for each fold of {{cv}}, "
                f"but those for fold {number} of {len(folds)} lack "
                f"{escaped(listed(missing.tolist()))}. "
                "Give more rows of each class, or folds such as StratifiedKFold(shuffle=True)."
            )


def _summary(folds: Sequence[Validation]) -> Validation:
    """Return the means of what folds say of each point, and how much their scores scatter."""

    def mean(name: str) -> Any:
        return np.mean([getattr(fold, name) for fold in folds], axis=0)

    def error(scores: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        # One fold cannot say how much they scatter.
        spread = np.std(scores, axis=0, ddof=min(1, len(folds) - 1))
        return np.asarray(spread / np.sqrt(len(folds)))

    first = folds[0]
    return Validation(
        scores=mean("scores"),
        standard_errors=error([fold.scores for fold in folds]),
        full=float(mean("full")),
        shortfall_errors=error([fold.full - fold.scores for fold in folds]),
        n_rows=sum(fold.n_rows for fold in folds),
        metrics={
            name: np.mean([fold.metrics[name] for fold in folds], axis=0)
            for name in first.metrics
            if all(name in fold.metrics for fold in folds)
        },
        full_metrics={
            name: float(np.mean([fold.full_metrics[name] for fold in folds]))
            for name in first.full_metrics
            if all(name in fold.full_metrics for fold in folds)
        },
        name=first.name,
    )
