"""What classifiers of scikit-learn have besides: distributions, starts, weights of classes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier

from forestprune.exceptions import UnsupportedModelError

ROUNDING = 1e-9
"""By what a leaf may miss being a distribution before it counts as none."""


def read_distributions(tree: Any, n_classes: int) -> NDArray[np.float64]:
    """Return the distribution of each node; of two classes, the probability of the second.

    A tree of a bag may know fewer classes than the model does.
    """
    value = tree.tree_.value[:, 0, :]
    if value.shape[1] < n_classes:
        known = np.asarray(tree.classes_).astype(np.int64)
        full = np.zeros((len(value), n_classes))
        full[:, known] = value
        value = full
    return np.asarray(value[:, 1:] if n_classes == 2 else value, dtype=np.float64)


def distribution_values(value: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return nodes as scikit-learn has them, (nodes, 1, n_classes); refuse what is no distribution.

    What rounding left beside one is mended.
    """
    full = np.column_stack([1.0 - value[:, 0], value[:, 0]]) if value.shape[1] == 1 else value
    off = max(float(-full.min(initial=0.0)), float(np.abs(full.sum(axis=1) - 1.0).max(initial=0.0)))
    if off > ROUNDING:
        raise UnsupportedModelError(
            "Every leaf of a classifier that averages its trees must be a distribution over "
            f"classes; here one is off by {off:.2g}. Prune with rule='subtree' or 'layer', which "
            "keep to that."
        )
    full = np.maximum(full, 0.0)
    full /= full.sum(axis=1, keepdims=True)
    return full[:, np.newaxis, :]


def boosting_start(model: Any) -> NDArray[np.float64]:
    """Return the raw prediction that boosting of classes starts from."""
    if not isinstance(model.init_, str) and type(model.init_) is not DummyClassifier:
        raise UnsupportedModelError(
            "GradientBoostingClassifier is read if it starts from a constant: init=None, 'zero' or "
            f"a DummyClassifier. Here init is {type(model.init_).__name__}, whose prediction "
            "depends on the row and would not be part of the forest."
        )
    if not isinstance(model.init_, str) and model.init_.strategy != "prior":
        raise UnsupportedModelError(
            "GradientBoostingClassifier is read if it starts from the shares of the classes; here "
            f"its start is a DummyClassifier of the strategy {model.init_.strategy!r}."
        )
    rows = np.zeros((1, model.n_features_in_), dtype=np.float32)
    return np.asarray(np.ravel(model._raw_predict_init(rows)), dtype=np.float64)


def class_weight(model: Any) -> Any:
    """Return how classes were weighted in training, as `Origin.class_weight` has it."""
    given = getattr(getattr(model, "estimator_", None), "class_weight", None)
    given = getattr(model, "class_weight", None) if given is None else given
    if given is None:
        return ()
    if isinstance(given, str):
        return "balanced"
    return tuple(float(given.get(label, 1.0)) for label in model.classes_.tolist())
