"""What a CatBoost model was trained for: loss, classes, their weights, and what it predicts."""

import json
import re
from collections.abc import Mapping
from typing import Any

from catboost import CatBoostClassifier, CatBoostRegressor

from forestprune.exceptions import UnsupportedModelError
from forestprune.forest.classes import plain_labels
from forestprune.forest.frames import listed
from forestprune.forest.origin import Link, Response

# Loss functions whose raw predictions have a known meaning: the link, and the name for all
# libraries. What the others add up to, as those of rankers and of one's own, is on no known scale.
_LOSSES: dict[str, tuple[Link, str]] = {
    "RMSE": ("identity", "squared_error"),
    "MultiRMSE": ("identity", "squared_error"),
    "MultiRMSEWithMissingValues": ("identity", "squared_error"),
    "MAE": ("identity", "absolute_error"),
    "MAPE": ("identity", "absolute_percentage_error"),
    "RMSPE": ("identity", "squared_percentage_error"),
    "Huber": ("identity", "huber"),
    "LogCosh": ("identity", "log_cosh"),
    "Lq": ("identity", "lq"),
    "Quantile": ("identity", "quantile"),
    "MultiQuantile": ("identity", "quantile"),
    "Expectile": ("identity", "expectile"),
    "LogLinQuantile": ("log", "quantile"),
    "Poisson": ("log", "poisson"),
    "Tweedie": ("log", "tweedie"),
    "Cox": ("log", "unknown"),
    "SurvivalAft": ("log", "unknown"),
    "Logloss": ("logit", "log_loss"),
    "CrossEntropy": ("logit", "cross_entropy"),
    "Focal": ("logit", "unknown"),
    "MultiLogloss": ("logit", "cross_entropy"),
    "MultiCrossEntropy": ("logit", "cross_entropy"),
    "MultiClass": ("softmax", "log_loss"),
    # The probabilities of one class against all others are returned as they are: they do not add
    # up to 1.
    "MultiClassOneVsAll": ("logit", "log_loss"),
}
_AT_HALF = {"Quantile": "absolute_error", "Expectile": "squared_error"}
"""What losses with a level are at the level 0.5."""

_OF_SEVERAL_LABELS = ("MultiLogloss", "MultiCrossEntropy")
_OF_SHARES = ("CrossEntropy", *_OF_SEVERAL_LABELS)
"""Those of plain models whose targets need not be labels."""

_COUNTS = ("Poisson", "Tweedie")
"""Those whose regressors predict through the link."""

# The parameters of a model, or of those that a sum was made of.
_TRAINED_WITH = re.compile(r"(model\d+:)*params")


def trainings(model: Any) -> list[dict[str, Any]]:
    """Return what a model says of its training; of a sum of models, what each of them says."""
    return [
        json.loads(text)
        for name, text in dict(model.get_metadata()).items()
        if _TRAINED_WITH.fullmatch(name) and text
    ]


def read_objective(model: Any, outputs: int) -> dict[str, Any]:
    """Return what :class:`Origin` holds of link, objective, classes and response."""
    loss = _loss_function(model)
    kind = loss["type"]
    labels = _labels(model, kind, outputs)
    link, name = _LOSSES.get(kind, ("identity", "unknown"))
    if labels is not None and kind not in _LOSSES:  # that is how CatBoost makes probabilities
        link = "logit" if outputs == 1 else "softmax"
    params = _params(name, loss.get("params") or {})
    if kind in _AT_HALF and params == {"level": 0.5}:
        name, params = _AT_HALF[kind], {}
    described: dict[str, Any] = {
        "link": link,
        "objective": name,
        "objective_params": params,
        "response": _response(model, kind, link, name),
    }
    if labels is not None:
        described |= plain_labels(labels) | {"class_weight": _class_weight(model)}
        if name == "cross_entropy":  # of labels, as opposed to shares
            described["objective"] = "log_loss"
    return described


def _loss_function(model: Any) -> dict[str, Any]:
    metadata = dict(model.get_metadata())
    if metadata.get("params"):
        loss: dict[str, Any] = json.loads(metadata["params"])["loss_function"]
    else:  # a sum of models, or one that says nothing of its training
        loss = json.loads(metadata.get("loss_function") or '{"type": "an unknown loss"}')
    return loss


def _params(name: str, params: Mapping[str, str]) -> dict[str, float]:
    if name in ("quantile", "expectile"):
        levels = str(params.get("alpha", 0.5)).split(",")
        return {"level": float(levels[0])} if len(levels) == 1 else {}
    if name == "tweedie":
        return {"power": float(params["variance_power"])}
    if name == "huber":
        return {"delta": float(params["delta"])}
    return {}


def _response(model: Any, kind: str, link: Link, name: str) -> Response:
    """Return what the `predict` of a model returns unless it is asked for something else."""
    if isinstance(model, CatBoostClassifier):
        return "class"
    if not isinstance(model, CatBoostRegressor):
        return "raw"
    if kind == "RMSEWithUncertainty":
        raise UnsupportedModelError(
            "A CatBoostRegressor must predict what its trees add up to, or that through a link; "
            "trained for RMSEWithUncertainty, it makes a mean and a variance of it. Save it and "
            "load the file as a plain CatBoost, which predicts what the trees add up to."
        )
    known = link == "identity" and name != "unknown"
    return "value" if known or kind in _COUNTS else "raw"


def _labels(model: Any, kind: str, outputs: int) -> Any:
    """Return the labels of a model of classes, None for others; refuse several labels a row."""
    classifier = isinstance(model, CatBoostClassifier)
    labels = model.classes_
    if not classifier and (kind in _OF_SHARES or not len(labels)):
        return None
    if kind in _OF_SEVERAL_LABELS:
        raise UnsupportedModelError(
            f"A CatBoostClassifier must give each row one label; this one, trained for {kind}, "
            f"gives {outputs}. Fit one for each, or load its file as a plain CatBoost."
        )
    if len(labels) < 2:
        raise UnsupportedModelError(
            "A model of classes must have seen two of them or more; this one saw "
            f"{listed(labels.tolist()) or 'none'}."
        )
    if outputs not in (1 if len(labels) == 2 else len(labels), len(labels)):
        raise UnsupportedModelError(
            "A model of classes must have seen rows of each; this one was told of "
            f"{len(labels)}, {listed(labels.tolist())}, and has {outputs} outputs. Train it "
            "with rows of each, or without class_names and classes_count."
        )
    return labels


def _class_weight(model: Any) -> Any:
    """Return by what the rows of each class counted; nothing if parts of a sum do not agree."""
    found = [_weight_in(each.get("data_processing_options", {})) for each in trainings(model)]
    return found[0] if found and all(weight == found[0] for weight in found) else ()


def _weight_in(options: Mapping[str, Any]) -> Any:
    """Return the weights of classes that a training was told to use."""
    named = {"Balanced": "balanced", "SqrtBalanced": "sqrt_balanced"}
    if options.get("auto_class_weights") in named:
        return named[options["auto_class_weights"]]
    weight = tuple(map(float, options.get("class_weights") or ()))
    return () if set(weight) == {1.0} else weight
