"""scikit-learn meta-estimators: fit a forest, or take a fitted one, and prune it."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from forestprune.api import prune, prune_path
from forestprune.interop.source import Source, is_a
from forestprune.options import Joint, Options, Polish, Rule, Weighting, require, require_number
from forestprune.select.budget import Budget, check_quality
from forestprune.select.path import PruningPath
from forestprune.select.pruned import PrunedForest
from forestprune.select.validation import Validation
from forestprune.system.progress import track


class _PrunedRegressor(MetaEstimatorMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """What both estimators share: a fitted forest in, the small model out."""

    estimator: Any
    max_nodes: int | None
    max_trees: int | None
    max_depth: int | None
    max_bytes: int | None
    tolerance: float | None
    one_standard_error: bool
    n_jobs: int | None
    pruned_: PrunedForest
    n_iter_: int
    estimator_: Any

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return what the pruned model predicts for the rows of `X`.

        Parameters
        ----------
        X : array-like of shape (m, n_features)

        Returns
        -------
        array of shape (m,), or (m, n_outputs)
        """
        check_is_fitted(self)
        if getattr(X, "ndim", 2) == 1:
            raise ValueError(
                "X must be a table with a row for each prediction, got one dimension. Reshape your "
                "data with X.reshape(1, -1) if it is one row."
            )
        validate_data(self, X, reset=False, skip_check_array=True)
        if self.pruned_.forest.adds_up_to_y:
            return self.pruned_.predict(X, n_jobs=self.n_jobs)
        predicted: NDArray[np.float64] = self.estimator_.predict(X)
        return predicted

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.target_tags.multi_output = inner.target_tags.multi_output
        return tags

    def _options(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(Options)}

    def _check(self) -> None:
        """Refuse what is wrong before a forest is fitted, which may take hours."""
        Options.of(self._options())
        check_quality(self.tolerance, self.one_standard_error)
        Budget(
            max_nodes=self.max_nodes,
            max_trees=self.max_trees,
            max_depth=self.max_depth,
            max_bytes=self.max_bytes,
        )

    def _source(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> Source:
        """Return the estimator as it is if it is fitted, else a clone fitted to the rows."""
        if _is_fitted(self.estimator):
            return Source.of(self.estimator)
        if is_a(self.estimator, "sklearn.frozen", "FrozenEstimator"):
            raise NotFittedError("A FrozenEstimator must be fitted before it is pruned.")
        return Source.of(_fit(clone(self.estimator), X, y, sample_weight))

    def _finish(self, pruned: PrunedForest) -> None:
        self.pruned_ = pruned
        self.n_iter_ = pruned.n_iter
        self.estimator_ = pruned.to_native()


class ForestPruneRegressor(_PrunedRegressor):
    """Prunes a tree ensemble; fits it first unless it is fitted already.

    Parameters
    ----------
    estimator : regressor
        A tree ensemble, or a Pipeline that ends in one. A fitted one is used as it is; mind that
        cloning, as in a grid search, makes it unfitted unless it is in a FrozenEstimator. If its
        trees do not add up to y, as with a log link or a quantile loss, it is fitted to y and
        pruned towards what it then says.
    alpha, max_nodes, max_trees, max_depth, max_bytes, tolerance, one_standard_error, n_alphas
        How small: as for :func:`forestprune.prune`.
    validation_fraction : float or None
        Share of the rows to choose the point of the path and the shrinkage by; the forest is
        neither fitted to them, unless it was fitted before, nor pruned with them. `tolerance` and
        `one_standard_error` need it; without a budget the best point on these rows is taken.
    rule, refit, shrinkage, weighting, joint, alpha2, polish, local_search, max_iter, solver, time_limit, random_state, n_jobs
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
        tolerance: float | None = None,
        one_standard_error: bool = False,
        validation_fraction: float | None = None,
        n_alphas: int = 100,
        rule: Rule = "subtree",
        refit: bool | None = None,
        shrinkage: float | Sequence[float] | None = None,
        weighting: Weighting = "node",
        joint: Joint | None = None,
        alpha2: float = 0.01,
        polish: Polish | None = None,
        local_search: bool | Literal["random", "correlated"] = True,
        max_iter: int = 1000,
        solver: Literal["heuristic", "scip", "gurobi"] = "heuristic",
        time_limit: float = 60.0,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.alpha = alpha
        self.max_nodes = max_nodes
        self.max_trees = max_trees
        self.max_depth = max_depth
        self.max_bytes = max_bytes
        self.tolerance = tolerance
        self.one_standard_error = one_standard_error
        self.validation_fraction = validation_fraction
        self.n_alphas = n_alphas
        self.rule = rule
        self.refit = refit
        self.shrinkage = shrinkage
        self.weighting = weighting
        self.joint = joint
        self.alpha2 = alpha2
        self.polish = polish
        self.local_search = local_search
        self.max_iter = max_iter
        self.solver = solver
        self.time_limit = time_limit
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> "ForestPruneRegressor":
        """Fit the forest, if it is not fitted, and prune it.

        Parameters
        ----------
        X : array-like of shape (m, n_features)
        y : array-like of shape (m,), or (m, n_outputs)
        sample_weight : array-like of shape (m,), or None
            Weight of each row, in fitting and in pruning.
        """
        from sklearn.model_selection import train_test_split  # not needed to predict

        validate_data(self, X, y, skip_check_array=True)
        self._check()
        X_val = y_val = weights_val = None
        if self.alpha is not None:
            require_number("alpha", self.alpha)
        if self.validation_fraction is not None:
            require(
                "validation_fraction",
                self.validation_fraction,
                "a number between 0 and 1",
                lambda share: isinstance(share, float) and 0.0 < share < 1.0,
            )
            weights = [] if sample_weight is None else [sample_weight]
            X, X_val, y, y_val, *weights = train_test_split(
                X,
                y,
                *weights,
                test_size=self.validation_fraction,
                random_state=self.random_state,
            )
            sample_weight, weights_val = weights if weights else (None, None)
        elif self.shrinkage is not None and len(Options.of(self._options()).shrinkages) > 1:
            raise ValueError(
                f"shrinkage={self.shrinkage!r} is to be chosen from, which needs rows: set "
                "validation_fraction, such as 0.25, or use ForestPruneRegressorCV; or give one."
            )
        elif self.tolerance is not None or self.one_standard_error:
            raise ValueError(
                "tolerance and one_standard_error need rows to choose by: set "
                "validation_fraction, such as 0.25, or use ForestPruneRegressorCV."
            )
        source = self._source(X, y, sample_weight)
        comparable = source.forest.adds_up_to_y
        self._finish(
            prune(
                source,
                X,
                y if comparable else None,
                alpha=self.alpha,
                max_nodes=self.max_nodes,
                max_trees=self.max_trees,
                max_depth=self.max_depth,
                max_bytes=self.max_bytes,
                tolerance=self.tolerance,
                one_standard_error=self.one_standard_error,
                X_val=X_val,
                y_val=y_val if comparable else None,
                sample_weight=sample_weight,
                sample_weight_val=weights_val,
                n_alphas=self.n_alphas,
                **self._options(),
            )
        )
        return self


class ForestPruneRegressorCV(_PrunedRegressor):
    """Prunes a tree ensemble; chooses how much by cross-validation.

    For each fold the forest is fitted to the other folds and pruned with them for all alphas. Then
    it is fitted and pruned with all rows, and the alpha is chosen by the scores of the folds: the
    best within the budget, or by `tolerance` or `one_standard_error` the smallest one that is good
    enough. A fitted estimator is not fitted again: then the folds say only how well *pruning* does
    on rows that it did not see, whatever the forest saw.

    Parameters
    ----------
    estimator : regressor
        A tree ensemble, or a Pipeline that ends in one; see :class:`ForestPruneRegressor`.
    cv : int, splitter or iterable
        The folds, as for scikit-learn's `check_cv`.
    max_nodes, max_trees, max_depth, max_bytes, tolerance, one_standard_error, n_alphas
        As for :func:`forestprune.prune`; all may be left out.
    alphas : array-like or None
        Your own alphas, instead of `n_alphas` of them.
    rule, refit, shrinkage, weighting, joint, alpha2, polish, local_search, max_iter, solver, time_limit, random_state, n_jobs
        How to prune: see :class:`forestprune.Options`.

    Attributes
    ----------
    path_ : PruningPath
        The path of the forest fitted to all rows, with the folds' scores as its `validation`.
    scores_ : float64 array of shape (n_alphas, n_folds)
        R squared in each fold, of y or, if trees do not add up to it, of what the full model says.
    alpha_, shrinkage_ : float
        The alpha and the shrinkage chosen; without refitted leaves the latter means nothing.
    pruned_ : PrunedForest
    estimator_ : regressor
        The small model, of the class of `estimator`; it needs nothing of this package.
    n_iter_ : int
        Sweeps over all trees that the chosen solution took.
    n_features_in_ : int
    feature_names_in_ : array of str
        If X has column names.
    """  # noqa: E501 (numpydoc wants the names on one line)

    def __init__(
        self,
        estimator: Any,
        *,
        cv: Any = None,
        max_nodes: int | None = None,
        max_trees: int | None = None,
        max_depth: int | None = None,
        max_bytes: int | None = None,
        tolerance: float | None = None,
        one_standard_error: bool = False,
        alphas: ArrayLike | None = None,
        n_alphas: int = 100,
        rule: Rule = "subtree",
        refit: bool | None = None,
        shrinkage: float | Sequence[float] | None = None,
        weighting: Weighting = "node",
        joint: Joint | None = None,
        alpha2: float = 0.01,
        polish: Polish | None = None,
        local_search: bool | Literal["random", "correlated"] = True,
        max_iter: int = 1000,
        solver: Literal["heuristic", "scip", "gurobi"] = "heuristic",
        time_limit: float = 60.0,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.cv = cv
        self.max_nodes = max_nodes
        self.max_trees = max_trees
        self.max_depth = max_depth
        self.max_bytes = max_bytes
        self.tolerance = tolerance
        self.one_standard_error = one_standard_error
        self.alphas = alphas
        self.n_alphas = n_alphas
        self.rule = rule
        self.refit = refit
        self.shrinkage = shrinkage
        self.weighting = weighting
        self.joint = joint
        self.alpha2 = alpha2
        self.polish = polish
        self.local_search = local_search
        self.max_iter = max_iter
        self.solver = solver
        self.time_limit = time_limit
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> "ForestPruneRegressorCV":
        """Fit the forest, if it is not fitted, choose alpha by cross-validation, and prune.

        Parameters
        ----------
        X : array-like of shape (m, n_features)
        y : array-like of shape (m,), or (m, n_outputs)
        sample_weight : array-like of shape (m,), or None
            Weight of each row, in fitting, pruning and scoring.
        """
        from sklearn.model_selection import check_cv  # not needed to predict

        validate_data(self, X, y, skip_check_array=True)
        self._check()
        X, y, sample_weight = indexable(X, y, sample_weight)
        folds = list(check_cv(self.cv).split(X, y))
        if self.one_standard_error and len(folds) < 2:
            raise ValueError(
                "one_standard_error needs at least two folds to tell how much scores scatter, got "
                f"{len(folds)}."
            )
        budget = Budget(
            max_nodes=self.max_nodes, max_trees=self.max_trees, max_bytes=self.max_bytes
        )
        shrinkages = Options.of(self._options()).shrinkages
        # One is what the options say in any case.
        tried = shrinkages if len(shrinkages) > 1 else [None]
        source = self._source(X, y, sample_weight)
        paths = [
            self._path(source, X, y, sample_weight, self.alphas, shrinkage) for shrinkage in tried
        ]
        scored = [
            self._score_fold(paths, tried, X, y, sample_weight, train, test)
            for train, test in track(folds, "cross-validating", len(folds))
        ]
        full = float(np.mean([full for _, full in scored]))
        all_scores = np.array([np.concatenate(scores) for scores, _ in scored])
        everything = PruningPath(
            paths[0].source,
            tuple(point for path in paths for point in path.points),
            _summary(all_scores, full),
        )
        chosen = everything.choose(
            budget, self.tolerance, self.one_standard_error, everything.validation
        )
        # Which path that point belongs to, and which of its points it is.
        ends = np.cumsum([len(path) for path in paths])
        which = int(np.searchsorted(ends, chosen, side="right"))
        first = int(ends[which]) - len(paths[which])
        chosen -= first
        self.scores_ = all_scores[:, first : ends[which]].T
        self.path_ = replace(paths[which], validation=_summary(self.scores_.T, full))
        self.shrinkage_ = float(shrinkages[which])
        self.alpha_ = float(self.path_.alphas[chosen])
        self._finish(self.path_[chosen])
        return self

    def _path(
        self,
        source: Source,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        alphas: ArrayLike | None,
        shrinkage: float | None,
    ) -> PruningPath:
        return prune_path(
            source,
            X,
            y if source.forest.adds_up_to_y else None,
            alphas=alphas,
            n_alphas=self.n_alphas,
            sample_weight=sample_weight,
            max_depth=self.max_depth,
            max_trees=self.max_trees if self.polish == "subset" else None,
            **(self._options() | ({} if shrinkage is None else {"shrinkage": shrinkage})),
        )

    def _score_fold(
        self,
        paths: list[PruningPath],
        shrinkages: list[float | None],
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        train: NDArray[np.int64],
        test: NDArray[np.int64],
    ) -> tuple[list[NDArray[np.float64]], float]:
        """Return the scores of all alphas of each path, and of the full model, in one fold."""

        def part(rows: NDArray[np.int64]) -> tuple[Any, Any, Any]:
            weights = None if sample_weight is None else _safe_indexing(sample_weight, rows)
            return _safe_indexing(X, rows), _safe_indexing(y, rows), weights

        X_train, y_train, w_train = part(train)
        X_test, y_test, w_test = part(test)
        source = self._source(X_train, y_train, w_train)
        y_scored = y_test if source.forest.adds_up_to_y else None
        all_scores, full = [], np.nan
        for path, shrinkage in zip(paths, shrinkages, strict=True):
            fold = self._path(source, X_train, y_train, w_train, np.array(path.alphas), shrinkage)
            validation = fold.validate(X_test, y_scored, sample_weight=w_test, n_jobs=self.n_jobs)
            # A path that ends early ends at the full model, the solution for smaller alphas too.
            scores = np.full(len(path), validation.scores[-1])
            scores[: validation.scores.size] = validation.scores
            all_scores.append(scores)
            full = validation.full
        return all_scores, full


def _summary(scores: NDArray[np.float64], full: float) -> Validation:
    """Return the mean of the folds' scores, (n_folds, n_alphas), and how much they scatter."""
    folds = len(scores)
    # One fold cannot say how much they scatter.
    spread = scores.std(axis=0, ddof=min(1, folds - 1))
    return Validation(scores.mean(axis=0), spread / np.sqrt(folds), full)


def _is_fitted(estimator: Any) -> bool:
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def _fit(estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> Any:
    """Fit an estimator, or a pipeline, passing the weights on to where they count."""
    if sample_weight is None:
        return estimator.fit(X, y)
    if is_a(estimator, "sklearn.pipeline", "Pipeline"):
        name, last = estimator.steps[-1]
        weights = {f"{name}__sample_weight": sample_weight}
    else:
        last, weights = estimator, {"sample_weight": sample_weight}
    if not has_fit_parameter(last, "sample_weight"):
        raise TypeError(
            f"sample_weight was given, but {type(last).__name__} cannot be fitted with weights."
        )
    return estimator.fit(X, y, **weights)
