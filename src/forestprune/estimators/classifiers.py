"""Estimators of classes."""

from forestprune.estimators.budgeted import BudgetedEstimator
from forestprune.estimators.folds import FoldedEstimator
from forestprune.estimators.kinds import PrunedClassifier


class ForestPruneClassifier(PrunedClassifier, BudgetedEstimator):
    """Prunes a tree ensemble of classes; fits it first unless it is fitted already.

    Parameters
    ----------
    estimator : classifier
        A tree ensemble, or a Pipeline that ends in one, for two classes or more. A fitted one is
        used as it is; mind that cloning, as in a grid search, makes it unfitted unless it is in a
        FrozenEstimator. It is pruned in the loss that it was trained for, classes weighted as
        there.
    alpha, max_nodes, max_trees, max_depth, max_bytes, format, tolerance, confidence, one_standard_error, n_alphas
        How small: as for :func:`forestprune.prune`.
    validation_fraction : float or None
        Share of the rows, and of those of each class, to choose the point of the path and the
        shrinkage by; see :class:`ForestPruneRegressor`.
    scoring : str, callable or None
        What these rows choose by and `tolerance` is measured in: a scorer of scikit-learn, such as
        "roc_auc" or "balanced_accuracy". None: the share of the loss explained, D squared.
    rule, refit, shrinkage, polish, weighting, max_iter, n_jobs, joint, alpha2, local_search, solver, time_limit, random_state
        How to prune: see :class:`forestprune.Options`. `random_state` also draws the validation
        rows.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, as `estimator_` has them.
    pruned_ : PrunedForest
    estimator_ : classifier
        The small model, of the class of `estimator`; it needs nothing of this package.
    n_iter_, n_features_in_, feature_names_in_
        As of :class:`ForestPruneRegressor`.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> import forestprune as fp
    >>> wine = fp.load_wine_quality()
    >>> forest = RandomForestClassifier(20, random_state=0)
    >>> small = fp.ForestPruneClassifier(forest, max_nodes=500)
    >>> small = small.fit(wine.data, wine.target > 6)
    >>> small.pruned_.n_nodes <= 500
    True
    >>> small.classes_
    array([False,  True])
    """  # noqa: E501 (numpydoc wants the names on one line)


class ForestPruneClassifierCV(PrunedClassifier, FoldedEstimator):
    """Prunes a tree ensemble of classes; chooses how much by cross-validation.

    It does so as :class:`ForestPruneRegressorCV` does.

    Parameters
    ----------
    estimator : classifier
        A tree ensemble, or a Pipeline that ends in one; see :class:`ForestPruneClassifier`.
    cv : int, splitter or iterable
        The folds, as for scikit-learn's `check_cv`: each with its share of each class, unless you
        give others. A forest that is fitted to the other folds must see all classes there.
    max_nodes, max_trees, max_depth, max_bytes, format, tolerance, confidence, one_standard_error, n_alphas
        As for :func:`forestprune.prune`; all may be left out.
    alphas : array-like or None
        Your own alphas, instead of `n_alphas` of them.
    scoring : str, callable or None
        What the folds choose by: see :class:`ForestPruneClassifier`.
    rule, refit, shrinkage, polish, weighting, max_iter, n_jobs, joint, alpha2, local_search, solver, time_limit, random_state
        How to prune: see :class:`forestprune.Options`. Not ``polish="split"``.

    Attributes
    ----------
    path_ : PruningPath
        The path of the forest fitted to all rows, with the folds' scores as its `validation`.
    scores_ : float64 array of shape (n_alphas, n_folds)
        The score in each fold: D squared, or what `scoring` says.
    alpha_, shrinkage_ : float
        The alpha and the shrinkage chosen; without refitted leaves the latter means nothing.
    classes_, pruned_, estimator_, n_iter_, n_features_in_, feature_names_in_
        As of :class:`ForestPruneClassifier`.
    """  # noqa: E501 (numpydoc wants the names on one line)
