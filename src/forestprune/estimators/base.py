"""What the estimators share: a fitted forest in, the small model out."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from forestprune.exceptions import OptionError, UnsupportedModelError
from forestprune.interop.source import Source, is_a
from forestprune.loss import loss_for
from forestprune.options import Format, Options, require_choice, require_count
from forestprune.select.budget import Budget, check_quality
from forestprune.select.pruned import PrunedForest
from forestprune.select.scoring import Scoring, check_scoring

BUDGET = ("max_nodes", "max_trees", "max_depth", "max_bytes")


class Rows(NamedTuple):
    """Rows to fit, prune or score with."""

    X: Any
    y: Any
    weights: Any

    def some(self, which: NDArray[np.int64]) -> Rows:
        """Return the rows of some numbers."""
        return Rows(*(None if part is None else _safe_indexing(part, which) for part in self))


class PrunedEstimator(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator that predicts with a pruned forest.

    What it predicts is said in :mod:`forestprune.estimators.kinds`.
    """

    estimator: Any
    format: Format | None
    tolerance: float | None
    confidence: float | None
    one_standard_error: bool
    n_alphas: int
    scoring: Scoring
    n_jobs: int | None
    pruned_: PrunedForest
    n_iter_: int
    estimator_: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.target_tags.multi_output = inner.target_tags.multi_output
        return tags

    def _given(self, *names: str) -> dict[str, Any]:
        return {name: getattr(self, name) for name in names}

    def _options(self) -> dict[str, Any]:
        return self._given(*(field.name for field in fields(Options)))

    def _check_kind(self) -> None:
        """Refuse an estimator of another kind than this one."""
        raise NotImplementedError

    def _labels(self, y: ArrayLike) -> NDArray[Any] | None:  # noqa: ARG002
        """Return the labels of classes, checked; None if y is numbers to be estimated."""
        return None

    def _checked(self, X: Any, y: ArrayLike) -> Options:
        """Refuse what is wrong before a forest is fitted, which may take hours."""
        if not hasattr(self.estimator, "get_params"):
            raise UnsupportedModelError(
                f"{type(self).__name__} takes estimators of scikit-learn's kind, got a "
                f"{type(self.estimator).__name__}. Use forestprune.prune() for other models."
            )
        validate_data(self, X, y, skip_check_array=True)
        self._check_kind()
        check_quality(self.tolerance, self.one_standard_error, self.confidence)
        check_scoring(self.scoring)
        require_choice("format", self.format)
        require_count("n_alphas", self.n_alphas, 1)
        Budget(**self._given(*BUDGET))
        return Options.of(self._options())

    def _source(self, rows: Rows) -> Source:
        """Return the estimator as it is if it is fitted, else a clone fitted to the rows."""
        if is_fitted(self.estimator):
            return Source.of(self.estimator)
        if is_a(self.estimator, "sklearn.frozen", "FrozenEstimator"):
            raise NotFittedError("A FrozenEstimator must be fitted before it is pruned.")
        return Source.of(_fit(clone(self.estimator), rows))

    def _target(self, source: Source, y: Any) -> Any:
        """Return y; None if a model is to be pruned towards what it says itself.

        That is where y cannot be judged by: the loss that it was trained for is not known.
        """
        origin = source.original.origin
        if loss_for(origin, labelled=True) is not None:
            return y
        if self.scoring is not None:
            raise OptionError(
                f"{{scoring}} compares predictions with y, but this "
                f"{type(self.estimator).__name__} was trained for a loss that pruning does not "
                "know: it is pruned towards what it says itself. Leave {scoring} out."
            )
        return None

    def _check_rows(self, X: Any) -> None:
        """Refuse rows that cannot be predicted for, or before there is a model."""
        check_is_fitted(self)
        if getattr(X, "ndim", 2) == 1:
            raise ValueError(
                "X must be a table with a row for each prediction, got one dimension. Reshape your "
                "data with X.reshape(1, -1) if it is one row."
            )
        validate_data(self, X, reset=False, skip_check_array=True)

    def _finish(self, pruned: PrunedForest) -> None:
        self.pruned_ = pruned
        self.n_iter_ = max(pruned.n_iter, 1)  # scikit-learn wants one even for the full model
        self.estimator_ = pruned.to_native()


def is_fitted(estimator: Any) -> bool:
    """Tell whether an estimator is fitted."""
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def _fit(estimator: Any, rows: Rows) -> Any:
    """Fit an estimator, or a pipeline, passing the weights on to where they count."""
    if rows.weights is None:
        return estimator.fit(rows.X, rows.y)
    last, name = estimator, "sample_weight"
    if is_a(estimator, "sklearn.pipeline", "Pipeline"):
        step, last = estimator.steps[-1]
        name = f"{step}__sample_weight"
    if not has_fit_parameter(last, "sample_weight"):
        raise TypeError(
            f"sample_weight was given, but {type(last).__name__} cannot be fitted with weights."
        )
    return estimator.fit(rows.X, rows.y, **{name: rows.weights})
