"""What estimators predict: numbers, or classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier
from sklearn.utils import assert_all_finite
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from forestprune.estimators.base import PrunedEstimator, Rows
from forestprune.exceptions import UnsupportedModelError
from forestprune.interop.source import Source
from forestprune.select.pruned import PrunedForest


class PrunedRegressor(RegressorMixin, PrunedEstimator):  # type: ignore[misc]
    """A pruned forest that predicts numbers."""

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return what the pruned model predicts for the rows of `X`.

        Parameters
        ----------
        X : array-like of shape (m, n_features)

        Returns
        -------
        array of shape (m,), or (m, n_outputs)
        """
        self._check_rows(X)
        return self.pruned_.predict(X, n_jobs=self.n_jobs)

    def _check_kind(self) -> None:
        if is_classifier(self.estimator):
            raise UnsupportedModelError(
                f"{type(self).__name__} prunes regressors, but {_name(self.estimator)} is a "
                "classifier. Use ForestPruneClassifier or ForestPruneClassifierCV."
            )


def _has_scores(estimator: PrunedClassifier) -> bool:
    # Asked of the estimator, and not of what was read from it: that is known only after fitting,
    # but who calibrates or stacks classifiers settles before that which method to use.
    return hasattr(estimator.estimator, "decision_function")


class PrunedClassifier(ClassifierMixin, PrunedEstimator):  # type: ignore[misc]
    """A pruned forest that tells classes apart."""

    classes_: NDArray[Any]

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most likely class for each row of `X`.

        Parameters
        ----------
        X : array-like of shape (m, n_features)

        Returns
        -------
        array of shape (m,)
            Labels, as in `classes_`.
        """
        self._check_rows(X)
        return self.pruned_.predict(X, n_jobs=self.n_jobs)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class for each row of `X`.

        Parameters
        ----------
        X : array-like of shape (m, n_features)

        Returns
        -------
        array of shape (m, n_classes)
            Classes in the order of `classes_`.
        """
        self._check_rows(X)
        return self.pruned_.predict_proba(X, n_jobs=self.n_jobs)

    @available_if(_has_scores)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return what the trees add up to; for estimators that have this method themselves.

        Parameters
        ----------
        X : array-like of shape (m, n_features)

        Returns
        -------
        array of shape (m,), or (m, n_classes)
            Of two classes one number a row, positive where the second is more likely.
        """
        self._check_rows(X)
        return self.pruned_.decision_function(X, n_jobs=self.n_jobs)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False  # of classes; such models are not read
        return tags

    def _check_kind(self) -> None:
        if not is_classifier(self.estimator):
            raise UnsupportedModelError(
                f"{type(self).__name__} prunes classifiers, but {_name(self.estimator)} is none. "
                "Use ForestPruneRegressor or ForestPruneRegressorCV for regressors."
            )

    def _labels(self, y: ArrayLike) -> NDArray[Any]:
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but y is None.")
        labels: NDArray[Any] = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        if labels.size and np.all(labels == labels[0]):
            raise ValueError(
                f"y must hold labels of two classes or more, got one class, {labels.tolist()[0]!r}."
            )
        return labels

    def _source(self, rows: Rows) -> Source:
        source = super()._source(rows)
        origin = source.original.origin
        if origin is None or origin.response != "class":
            raise UnsupportedModelError(
                f"{_name(self.estimator)} is a classifier, but what its trees add up to does not "
                "tell which class is the most likely. Prune it with forestprune.prune()."
            )
        return source

    def _finish(self, pruned: PrunedForest) -> None:
        self.classes_ = pruned.classes_
        super()._finish(pruned)


def _name(estimator: Any) -> str:
    return type(estimator).__name__
