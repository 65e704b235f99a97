"""Estimators of numbers."""

from forestprune.estimators.budgeted import BudgetedEstimator
from forestprune.estimators.folds import FoldedEstimator
from forestprune.estimators.kinds import PrunedRegressor


class ForestPruneRegressor(PrunedRegressor, BudgetedEstimator):
    """Prunes a tree ensemble; fits it first unless it is fitted already.

    Parameters
    ----------
    estimator : regressor
        A tree ensemble, or a Pipeline that ends in one. A fitted one is used as it is; mind that
        cloning, as in a grid search, makes it unfitted unless it is in a FrozenEstimator. It is
        pruned in the loss that it was trained for; if that is not known here, towards what it says
        itself.
    alpha, max_nodes, max_trees, max_depth, max_bytes, format, tolerance, confidence, one_standard_error, n_alphas
        How small: as for :func:`forestprune.prune`.
    validation_fraction : float or None
        Share of the rows to choose the point of the path and the shrinkage by; the forest is
        neither fitted to them, unless it was fitted before, nor pruned with them. `tolerance` and
        `one_standard_error` need it; without a budget the best point on these rows is taken.
    scoring : str, callable or None
        What these rows choose by and `tolerance` is measured in: a scorer of scikit-learn, such as
        "neg_mean_absolute_error". None: the share of the loss explained, R squared or D squared.
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


class ForestPruneRegressorCV(PrunedRegressor, FoldedEstimator):
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
    max_nodes, max_trees, max_depth, max_bytes, format, tolerance, confidence, one_standard_error, n_alphas
        As for :func:`forestprune.prune`; all may be left out.
    alphas : array-like or None
        Your own alphas, instead of `n_alphas` of them.
    scoring : str, callable or None
        What the folds choose by: see :class:`ForestPruneRegressor`.
    rule, refit, shrinkage, polish, weighting, max_iter, n_jobs, joint, alpha2, local_search, solver, time_limit, random_state
        How to prune: see :class:`forestprune.Options`. Not ``polish="split"``.

    Attributes
    ----------
    path_ : PruningPath
        The path of the forest fitted to all rows, with the folds' scores as its `validation`.
    scores_ : float64 array of shape (n_alphas, n_folds)
        The score in each fold: R squared, D squared or what `scoring` says; of y or, if the loss
        of the model is not known, of the full model's predictions.
    alpha_, shrinkage_ : float
        The alpha and the shrinkage chosen; without refitted leaves the latter means nothing.
    pruned_, estimator_, n_iter_, n_features_in_, feature_names_in_
        As of :class:`ForestPruneRegressor`.
    """  # noqa: E501 (numpydoc wants the names on one line)
