"""What a LightGBM model was trained for, as its text says: objective, outputs, classes, weights."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from forestprune.exceptions import InvalidForestError, UnsupportedModelError
from forestprune.forest.classes import plain_labels
from forestprune.forest.origin import Link
from forestprune.interop.lightgbm_text import ModelText

Header = Mapping[str, str | None]

# Objectives that are read: the link, and the name for all libraries.
_OBJECTIVES: dict[str, tuple[Link, str]] = {
    "regression": ("identity", "squared_error"),
    "regression_l1": ("identity", "absolute_error"),
    "huber": ("identity", "huber"),
    "fair": ("identity", "fair"),
    "mape": ("identity", "absolute_percentage_error"),
    "quantile": ("identity", "quantile"),
    "poisson": ("log", "poisson"),
    "gamma": ("log", "gamma"),
    "tweedie": ("log", "tweedie"),
    "binary": ("logit", "log_loss"),
    "cross_entropy": ("logit", "cross_entropy"),
    "multiclass": ("softmax", "log_loss"),
    # The probabilities of one class against all others are returned as they are: they do not add
    # up to 1.
    "multiclassova": ("logit", "log_loss"),
    "lambdarank": ("identity", "unknown"),
    "rank_xendcg": ("identity", "unknown"),
}
_PARAMS = {
    "quantile": ("level", "alpha"),
    "huber": ("delta", "alpha"),
    "tweedie": ("power", "tweedie_variance_power"),
}
_OF_LABELS = ("binary", "multiclass", "multiclassova")
_OF_CLASSIFIERS = (*_OF_LABELS, "cross_entropy")


def count_outputs(header: Header) -> int:
    """Return how many raw predictions a row has: one, or one a class.

    Every round has a tree for each. LightGBM trusts that the numbers in a text fit together, and
    writes beyond its arrays if they do not.
    """
    outputs = int(str(header["num_tree_per_iteration"]))
    said = {int(str(header["num_class"]))}
    if "objective" in header:
        if not _name(header):
            raise InvalidForestError(
                "The objective of a LightGBM model must have a name, or be left out if it is a "
                "function; this model has a line without a name and is damaged."
            )
        said.add(int(_flags(header).get("num_class", 1)))
    if outputs < 1 or said != {outputs}:
        raise InvalidForestError(
            "A LightGBM model must have a tree for each class in every round, and its objective "
            f"the same number of classes; this one has {outputs} trees a round, and classes "
            f"{sorted(said)}."
        )
    return outputs


def read_objective(text: ModelText, labels: Any = None, class_weight: Any = None) -> dict[str, Any]:
    """Return what :class:`Origin` holds of link, objective and classes; refuse an unknown link.

    Parameters
    ----------
    text : ModelText
    labels : array, optional
        Labels of an LGBMClassifier. Other models of classes know these by their numbers.
    class_weight : mapping of int to float, "balanced" or None
        What the rows of each class were multiplied by before the library saw them.
    """
    name, flags, outputs = _name(text.header), _flags(text.header), count_outputs(text.header)
    if labels is not None:
        _check_classifier(name, labels, outputs)
    if not name:
        # Nobody knows what the sum stands for, and `predict` returns just that.
        return {"response": "raw"}
    if name not in _OBJECTIVES:
        raise UnsupportedModelError(
            f"LightGBM models are read if their objective is one of {', '.join(_OBJECTIVES)}, or a "
            f"function; got {name}, whose link is none of those that are known."
        )
    link, objective = _OBJECTIVES[name]
    params = {"sigmoid": float(flags["sigmoid"])} if "sigmoid" in flags else {}
    if name in _PARAMS:
        key, parameter = _PARAMS[name]
        if (number := _parameter(text, parameter)) is not None:
            params[key] = number
    described: dict[str, Any] = {
        "link": "signed_sqrt" if "sqrt" in flags else link,
        "objective": objective,
        "objective_params": params,
        "response": "raw" if objective == "unknown" else "value",
    }
    if labels is None and name in _OF_LABELS:
        labels = np.arange(max(2, outputs))
        described["response"] = "probability"
    elif labels is not None:
        # Of labels, as opposed to shares, the cross entropy is the log loss.
        described |= {"objective": "log_loss", "response": "class"}
    if labels is not None:
        described |= plain_labels(labels)
        described["class_weight"] = _class_weight(text, class_weight, len(labels))
    return described


def _check_classifier(name: str, labels: Any, outputs: int) -> None:
    """Refuse an LGBMClassifier that does not predict one of its labels."""
    if not name:
        raise UnsupportedModelError(
            "An LGBMClassifier is read if trained with one of LightGBM's own objectives; with a "
            "function in their place it predicts raw scores, no labels, and the function cannot be "
            "written back. Pass its booster_."
        )
    if name not in _OF_CLASSIFIERS:
        raise UnsupportedModelError(
            f"An LGBMClassifier is read if its objective is one of {', '.join(_OF_CLASSIFIERS)}; "
            f"got {name}. Pass its booster_ to have it read as what it is."
        )
    if len(labels) < 2:
        raise UnsupportedModelError(
            "An LGBMClassifier must have seen two classes or more; this one saw the label "
            f"{labels.tolist()[0]!r} only."
        )
    if outputs not in (1 if len(labels) == 2 else len(labels), len(labels)):
        raise UnsupportedModelError(
            f"An LGBMClassifier must predict as many classes as it has labels; this one has "
            f"{len(labels)} labels and {outputs} outputs. Train it without num_class."
        )


def _class_weight(text: ModelText, given: Any, n_classes: int) -> Any:
    """Return by what the rows of each class counted.

    Parameters of LightGBM's own hold for the objective binary alone. With multiclassova they
    weight what is not the class at hand, which is no weight of a row; the others ignore them.
    """
    binary = _name(text.header) == "binary"
    # The library makes the rarer class count as much as the other: but for a factor that both
    # share, this is "balanced". That and further weights are too much for one name.
    if given == "balanced" or (binary and _parameter(text, "is_unbalance")):
        return "balanced"
    weight = [float((given or {}).get(number, 1.0)) for number in range(n_classes)]
    if binary:
        factor = _parameter(text, "scale_pos_weight")
        weight[1] *= 1.0 if factor is None else factor
    return () if set(weight) == {1.0} else tuple(weight)


def _name(header: Header) -> str:
    """Return LightGBM's name of the objective; empty if it is a function."""
    return next(iter(str(header.get("objective") or "").split()), "")


def _flags(header: Header) -> dict[str, str]:
    """Return what the objective's line has besides its name, such as ``num_class:3``."""
    parts = str(header.get("objective") or "").split()[1:]
    return {key: number for key, _, number in (part.partition(":") for part in parts)}


def _parameter(text: ModelText, name: str) -> float | None:
    """Return a number among the parameters of training, if they are there."""
    found = re.search(rf"(?m)^\[{name}: (.*)\]$", text.parameters)
    return float(found[1]) if found else None
