"""A forest pruned to a budget, or by rows that are kept back for that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from forestprune.api import prune
from forestprune.estimators.base import BUDGET, PrunedRegressor, Rows
from forestprune.exceptions import OptionError, named
from forestprune.options import (
    Format,
    Joint,
    LocalSearch,
    Options,
    Polish,
    Rule,
    SubsetSolver,
    Weighting,
    require,
)
from forestprune.select.budget import Budget
from forestprune.select.choose import Wanted


class ForestPruneRegressor(PrunedRegressor):
    """Prunes a tree ensemble; fits it first unless it is fitted already.

    Parameters
    ----------
    estimator : regressor
        A tree ensemble, or a Pipeline that ends in one. A fitted one is used as it is; mind that
        cloning, as in a grid search, makes it unfitted unless it is in a FrozenEstimator. If its
        trees do not add up to y, as with a log link or a quantile loss, it is fitted to y and
        pruned towards its own predictions.
    alpha, max_nodes, max_trees, max_depth, max_bytes, format, tolerance, confidence, one_standard_error, n_alphas
        How small: as for :func:`forestprune.prune`.
    validation_fraction : float or None
        Share of the rows to choose the point of the path and the shrinkage by; the forest is
        neither fitted to them, unless it was fitted before, nor pruned with them. `tolerance` and
        `one_standard_error` need it; without a budget the best point on these rows is taken.
    rule, refit, shrinkage, polish, weighting, max_iter, n_jobs, joint, alpha2, local_search, solver, time_limit, random_state
        How to prune: see :class:`forestprune.Options`. `random_state` also draws the validation
        rows.

    Attributes
    ----------
    pruned_ : PrunedForest
    estimator_ : regressor
        The small model, of the class of `estimator`; it needs nothing of this package.
    n_iter_ : int
        Sweeps over all trees that the chosen solution took.
    n_features_in_ : int
    feature_names_in_ : array of str
        If X has column names.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> import forestprune as fp
    >>> wine = fp.load_wine_quality()
    >>> forest = RandomForestRegressor(20, random_state=0)
    >>> small = fp.ForestPruneRegressor(forest, max_nodes=500)
    >>> small.fit(wine.data, wine.target).pruned_.n_nodes <= 500
    True
    """  # noqa: E501 (numpydoc wants the names on one line)

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
        rule: Rule = "subtree",
        refit: bool | None = None,
        shrinkage: float | Sequence[float] | None = None,
        polish: Polish | None = None,
        weighting: Weighting = "node",
        max_iter: int = 1000,
        n_jobs: int | None = None,
        joint: Joint | None = None,
        alpha2: float = 0.01,
        local_search: bool | LocalSearch = True,
        solver: SubsetSolver = "heuristic",
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
        self.weighting = weighting
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.joint = joint
        self.alpha2 = alpha2
        self.local_search = local_search
        self.solver = solver
        self.time_limit = time_limit
        self.random_state = random_state

    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> ForestPruneRegressor:
        """Fit the forest, if it is not fitted, and prune it.

        Parameters
        ----------
        X : array-like of shape (m, n_features)
        y : array-like of shape (m,), or (m, n_outputs)
        sample_weight : array-like of shape (m,), or None
            Weight of each row, in fitting and in pruning.
        """
        how = self._checked(X, y)
        rows, held_out = self._divided(Rows(X, y, sample_weight), how)
        budget = Budget(**self._given("max_nodes", "max_trees", "max_bytes"))
        quality = ("tolerance", "one_standard_error", "confidence")
        wanted = Wanted(budget=budget, **self._given("alpha", *quality))
        wanted.check(how, None if held_out.X is None else "validation_fraction")
        source = self._source(rows)
        labelled = source.forest.adds_up_to_y
        small = prune(
            source,
            rows.X,
            rows.y if labelled else None,
            X_val=held_out.X,
            y_val=held_out.y if labelled else None,
            sample_weight=rows.weights,
            sample_weight_val=held_out.weights,
            **self._given("alpha", "format", "n_alphas", *quality, *BUDGET),
            **self._options(),
        )
        self._finish(small)
        return self

    def _divided(self, rows: Rows, how: Options) -> tuple[Rows, Rows]:
        """Return the rows to fit and prune with, and validation rows if there are any."""
        from sklearn.model_selection import train_test_split  # not needed to predict

        share = self.validation_fraction
        if share is not None:
            require(
                "validation_fraction",
                share,
                "a number between 0 and 1",
                lambda share: isinstance(share, float) and 0.0 < share < 1.0,
            )
            given = [part for part in rows if part is not None]
            parts = train_test_split(*given, test_size=share, random_state=self.random_state)
            fitted, held_out = ([*parts[start::2], None][:3] for start in (0, 1))
            return Rows(*fitted), Rows(*held_out)
        needy = None
        if self.shrinkage is not None and len(how.shrinkages) > 1:
            needy = f"{named('shrinkage', self.shrinkage)}, to choose from, needs"
        elif self.tolerance is not None or self.one_standard_error:
            needy = "{tolerance} and {one_standard_error} need"
        if needy is not None:
            raise OptionError(
                f"{needy} rows to choose by: set {{validation_fraction}}, such as 0.25, or use "
                "ForestPruneRegressorCV."
            )
        return rows, Rows(None, None, None)
