"""A forest pruned to a budget, or by rows that are kept back for that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from numpy.typing import ArrayLike, NDArray

from forestprune.api import prune
from forestprune.estimators.base import BUDGET, PrunedEstimator, Rows
from forestprune.exceptions import OptionError, named
from forestprune.options import (
    Format,
    Joint,
    LocalSearch,
    Options,
    Polish,
    Rule,
    SolverName,
    Weighting,
    require,
)
from forestprune.select.budget import Budget
from forestprune.select.choose import Wanted
from forestprune.select.scoring import Scoring


class BudgetedEstimator(PrunedEstimator):
    """Prunes to a budget, an alpha, or what rows that are kept back allow."""

    def __init__(
        self,
        estimator: Any,
        *,
        alpha: float | None = None,
        max_nodes: int | None = None,
        max_trees: int | None = None,
        max_depth: int | None = None,
        max_bytes: int | None = None,
        format: Format | None = None,  # noqa: A002
        tolerance: float | None = None,
        confidence: float | None = None,
        one_standard_error: bool = False,
        validation_fraction: float | None = None,
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
        self.alpha = alpha
        self.max_nodes = max_nodes
        self.max_trees = max_trees
        self.max_depth = max_depth
        self.max_bytes = max_bytes
        self.format = format
        self.tolerance = tolerance
        self.confidence = confidence
        self.one_standard_error = one_standard_error
        self.validation_fraction = validation_fraction
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
        """Fit the forest, if it is not fitted, and prune it.

        Parameters
        ----------
        X : array-like of shape (m, n_features)
        y : array-like of shape (m,), or (m, n_outputs)
            Numbers to estimate, or labels of classes.
        sample_weight : array-like of shape (m,), or None
            Weight of each row, in fitting and in pruning.
        """
        how, labels = self._checked(X, y), self._labels(y)
        y = y if labels is None else labels
        rows, held_out = self._divided(Rows(X, y, sample_weight), how, labels)
        budget = Budget(**self._given("max_nodes", "max_trees", "max_bytes"))
        quality = ("tolerance", "one_standard_error", "confidence")
        wanted = Wanted(budget=budget, **self._given("alpha", *quality))
        wanted.check(how, None if held_out.X is None else "validation_fraction")
        source = self._source(rows)
        small = prune(
            source,
            rows.X,
            self._target(source, rows.y),
            X_val=held_out.X,
            y_val=self._target(source, held_out.y),
            sample_weight=rows.weights,
            sample_weight_val=held_out.weights,
            **self._given("alpha", "format", "n_alphas", *quality, *BUDGET),
            **self._options(),
        )
        self._finish(small)
        return self

    def _divided(self, rows: Rows, how: Options, labels: NDArray[Any] | None) -> tuple[Rows, Rows]:
        """Return the rows to fit and prune with, and validation rows if there are any.

        These have their share of each class, if there are `labels`.
        """
        share = self.validation_fraction
        if share is not None:
            require(
                "validation_fraction",
                share,
                "a number between 0 and 1",
                lambda share: isinstance(share, float) and 0.0 < share < 1.0,
            )
            parts = self._split([part for part in rows if part is not None], share, labels)
            fitted, held_out = ([*parts[start::2], None][:3] for start in (0, 1))
            return Rows(*fitted), Rows(*held_out)
        needy = None
        if self.scoring is not None:
            needy = "{scoring} needs"
        elif self.shrinkage is not None and len(how.shrinkages) > 1:
            needy = f"{named('shrinkage', self.shrinkage)}, to choose from, needs"
        elif self.tolerance is not None or self.one_standard_error:
            needy = "{tolerance} and {one_standard_error} need"
        if needy is not None:
            kind = "Regressor" if labels is None else "Classifier"
            raise OptionError(
                f"{needy} rows to choose by: set {{validation_fraction}}, such as 0.25, or use "
                f"ForestPrune{kind}CV."
            )
        return rows, Rows(None, None, None)

    def _split(self, parts: list[Any], share: float, labels: NDArray[Any] | None) -> list[Any]:
        from sklearn.model_selection import train_test_split  # not needed to predict

        try:
            divided: list[Any] = train_test_split(
                *parts, test_size=share, random_state=self.random_state, stratify=labels
            )
        except ValueError as error:
            if labels is not None:
                error.add_note("Validation rows and the others each need a row of every class.")
            raise
        return divided
