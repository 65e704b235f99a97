"""What raw predictions stand for: values through the link, probabilities, labels."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from forestprune.exceptions import UnsupportedModelError
from forestprune.forest.classes import labels_of

if TYPE_CHECKING:
    from forestprune.forest.origin import Origin

Floats = NDArray[np.float64]


def through_link(origin: "Origin | None", raw: Floats) -> Floats:
    """Return what the model predicts: raw predictions of any shape, outputs last, through its link.

    Of two classes that is the probability of the second.
    """
    if origin is None or origin.link == "identity":
        return raw
    if origin.link == "log":
        with np.errstate(over="ignore"):
            return np.exp(raw)
    if origin.link == "signed_sqrt":
        return np.sign(raw) * raw**2
    if origin.link == "softmax":
        return np.asarray(softmax(raw, axis=-1), dtype=np.float64)
    return np.asarray(expit(origin.objective_params.get("sigmoid", 1.0) * raw), dtype=np.float64)


def probabilities(origin: "Origin | None", raw: Floats) -> Floats:
    """Return the probability of each class, (m, n_classes), as the library's predict_proba does."""
    require_classes(origin, "Probabilities")
    # Sums of what trees add to probabilities are rounded, and scikit-learn refuses less than 0.
    predicted = np.clip(through_link(origin, raw), 0.0, 1.0)
    return predicted if predicted.ndim == 2 else np.column_stack([1.0 - predicted, predicted])


def predicted(origin: "Origin | None", raw: Floats) -> NDArray[Any]:
    """Return what the `predict` of the model itself returns for raw predictions."""
    if origin is None or origin.response == "raw":
        return raw
    if origin.response != "class":
        return through_link(origin, raw)
    # Of classes that are as likely, the first, as all libraries do.
    labels: NDArray[Any] = labels_of(origin)[np.argmax(probabilities(origin, raw), axis=1)]
    return labels


def require_classes(origin: "Origin | None", what: str) -> None:
    """Refuse to speak of classes where there are none."""
    if origin is None or not origin.classes:
        kind = "a Forest without an origin" if origin is None else f"a {origin.model_class}"
        raise UnsupportedModelError(
            f"{what} are for classifiers, but this model is {kind}, which has no classes. "
            "Use predict()."
        )
