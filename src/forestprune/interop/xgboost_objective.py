"""What an XGBoost model was trained for: objective, classes, their weights, what it predicts."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import xgboost as xgb

from forestprune.exceptions import UnsupportedModelError
from forestprune.forest.classes import plain_labels
from forestprune.forest.origin import Link, Response


class Objective(NamedTuple):
    """What is known of one of XGBoost's objectives.

    Attributes
    ----------
    link : str
    name : str
        That of all libraries.
    response : str
        What a Booster predicts.
    raw_base : bool
        Whether the base score is a raw prediction; else it goes through the link first.
    """

    link: Link
    name: str
    response: Response = "value"
    raw_base: bool = False


OBJECTIVES = {
    "reg:squarederror": Objective("identity", "squared_error", raw_base=True),
    "reg:squaredlogerror": Objective("identity", "squared_log_error", raw_base=True),
    "reg:pseudohubererror": Objective("identity", "pseudo_huber", raw_base=True),
    "reg:absoluteerror": Objective("identity", "absolute_error", raw_base=True),
    "reg:quantileerror": Objective("identity", "quantile", raw_base=True),
    "reg:logistic": Objective("logit", "cross_entropy"),
    "count:poisson": Objective("log", "poisson"),
    "reg:gamma": Objective("log", "gamma"),
    "reg:tweedie": Objective("log", "tweedie"),
    "binary:logistic": Objective("logit", "log_loss", "probability"),
    "binary:logitraw": Objective("logit", "log_loss", "raw"),
    # Margins are no log-odds, but their sign is, and that is all that a label needs.
    "binary:hinge": Objective("logit", "hinge", "class", raw_base=True),
    "multi:softprob": Objective("softmax", "log_loss", "probability", raw_base=True),
    "multi:softmax": Objective("softmax", "log_loss", "class", raw_base=True),
    "rank:pairwise": Objective("identity", "unknown", "raw", raw_base=True),
    "rank:ndcg": Objective("identity", "unknown", "raw", raw_base=True),
    "rank:map": Objective("identity", "unknown", "raw", raw_base=True),
    "survival:aft": Objective("log", "unknown"),
    "survival:cox": Objective("log", "unknown"),
}
"""Those that are read."""

_OF_LABELS = ("binary:", "multi:")
"""How the names of objectives begin that are about classes, whatever class the model has."""

_OF_CLASSIFIERS = (
    *("binary:logistic", "binary:hinge", "reg:logistic"),
    *("multi:softprob", "multi:softmax"),
)


def objective_of(learner: Mapping[str, Any]) -> Objective:
    """Return what is known of a model's objective; refuse one that is not."""
    name = learner["objective"]["name"]
    if name not in OBJECTIVES:
        raise UnsupportedModelError(
            f"Models of one of these objectives are read: {', '.join(OBJECTIVES)}. "
            f"This one has {name}."
        )
    return OBJECTIVES[name]


def read_objective(model: Any, learner: Mapping[str, Any], outputs: int) -> dict[str, Any]:
    """Return what :class:`Origin` holds of link, objective, classes and response."""
    objective = objective_of(learner)
    labels = _labels(model, learner, outputs)
    described: dict[str, Any] = {
        "link": objective.link,
        "objective": objective.name,
        "objective_params": _params(objective.name, learner["objective"]),
        "response": objective.response,
    }
    if labels is not None:
        described |= plain_labels(labels)
        described["class_weight"] = _class_weight(learner["objective"], len(labels))
    if isinstance(model, xgb.XGBClassifier):
        described["response"] = "class"
        if objective.name == "cross_entropy":  # of labels, as opposed to shares
            described["objective"] = "log_loss"
    if callable(getattr(model, "objective", None)):
        # The model says how predictions come of raw sums, not what these were trained for.
        described |= {"objective": "unknown", "objective_params": {}, "class_weight": ()}
        if labels is None:
            described["response"] = "raw"
    return described


def _params(name: str, objective: Mapping[str, Any]) -> dict[str, float]:
    if name == "quantile":
        levels = json.loads(objective["quantile_loss_param"]["quantile_alpha"])
        return {"level": float(levels[0])} if len(levels) == 1 else {}
    if name == "tweedie":
        return {"power": float(objective["tweedie_regression_param"]["tweedie_variance_power"])}
    return {}


def _labels(model: Any, learner: Mapping[str, Any], outputs: int) -> Any:
    """Return the labels of a model of classes, None for others; refuse several labels a row.

    A classifier has seen them, and they are whole numbers. Other models know classes by their
    numbers, which are floats where these are what they predict.
    """
    name = learner["objective"]["name"]
    classifier = isinstance(model, xgb.XGBClassifier)
    if not classifier and not name.startswith(_OF_LABELS):
        return None
    if classifier and name not in _OF_CLASSIFIERS:
        raise UnsupportedModelError(
            f"An {type(model).__name__} is read if its objective is one of "
            f"{', '.join(_OF_CLASSIFIERS)}; got {name}, whose predictions it compares with 0.5 as "
            "if they were probabilities. Pass its get_booster() to have it read as what it is."
        )
    labels = model.classes_ if classifier else np.arange(2 if outputs == 1 else outputs)
    of_several = name.startswith("multi:")
    if len(labels) < 2 or (of_several and outputs < 2):
        raise UnsupportedModelError(
            "A model of classes must have seen two of them or more; this one saw one only."
        )
    # Of two probabilities, each a column, a classifier makes labels of two questions.
    two_questions = classifier and name == "multi:softprob" and len(labels) == 2
    if outputs != (len(labels) if of_several else 1) or two_questions:
        raise UnsupportedModelError(
            f"Models that give each row one label are read; this one gives {outputs}. Fit one for "
            "each."
        )
    told = not classifier and OBJECTIVES[name].response == "class"
    return labels.astype(np.float32) if told else labels


def _class_weight(objective: Mapping[str, Any], n_classes: int) -> tuple[float, ...]:
    """Return by what the rows of each class counted: of two classes, the second has a weight."""
    weight = float(objective.get("reg_loss_param", {}).get("scale_pos_weight", 1.0))
    return () if weight == 1.0 or n_classes != 2 else (1.0, weight)
