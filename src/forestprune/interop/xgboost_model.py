"""XGBoost's models as plain data: what reading and writing both need."""

import copy
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import xgboost as xgb
from numpy.typing import NDArray
from scipy import sparse

from forestprune.forest.build import build_forest, with_a_tree
from forestprune.forest.inputs import InputSpec
from forestprune.forest.origin import Link
from forestprune.interop import ubjson
from forestprune.interop.xgboost_trees import write_tree

CLASSES = {cls.__name__: cls for cls in (xgb.XGBRegressor, xgb.XGBRFRegressor, xgb.Booster)}

OBJECTIVES: dict[str, tuple[Link, str]] = {
    "reg:squarederror": ("identity", "squared_error"),
    "reg:squaredlogerror": ("identity", "squared_log_error"),
    "reg:pseudohubererror": ("identity", "pseudo_huber"),
    "reg:absoluteerror": ("identity", "absolute_error"),
    "reg:quantileerror": ("identity", "quantile"),
    "binary:hinge": ("identity", "hinge"),
    "reg:logistic": ("logit", "cross_entropy"),
    "binary:logistic": ("logit", "log_loss"),
    "binary:logitraw": ("logit", "log_loss"),
    "count:poisson": ("log", "poisson"),
    "reg:gamma": ("log", "gamma"),
    "reg:tweedie": ("log", "tweedie"),
}
"""Those that are read: the link, and the name for all libraries.

With the identity as link the base score is the constant; else it goes through the link first.
"""


def to_json(document: Any) -> str:
    """Return a document as text, without escapes: XGBoost would read them letter by letter."""
    return json.dumps(document, ensure_ascii=False)


def body_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a model that holds the trees."""
    booster = document["learner"]["gradient_booster"]
    body: dict[str, Any] = booster.get("gbtree", booster)["model"]
    return body


def with_trees(document: Any, trees: list[Any], per_round: int) -> Any:
    """Return a model that has `trees`, all of weight 1, and the rest from `document`."""
    result = copy.copy(document)
    result["learner"] = learner = copy.copy(document["learner"])
    learner["gradient_booster"] = booster = copy.copy(learner["gradient_booster"])
    if "weight_drop" in booster:
        booster["weight_drop"] = [1.0] * len(trees)
        booster["gbtree"] = booster = copy.copy(booster["gbtree"])
    booster["model"] = booster["model"] | {
        "gbtree_model_param": {
            "num_parallel_tree": str(per_round),
            "num_trees": str(len(trees)),
        },
        "iteration_indptr": list(range(0, len(trees) + 1, per_round)),
        "tree_info": [0] * len(trees),
        "trees": trees,
    }
    return result


def empty_tree(n_features: int) -> dict[str, Any]:
    """Return a tree that is a root and adds nothing."""
    nothing = build_forest([], n_nodes=0, scale=[], base=[0.0], input=InputSpec(n_features))
    return write_tree(with_a_tree(nothing), 0, np.zeros(1))


def load_bytes(content: bytearray) -> Any:
    """Return a Booster."""
    booster = xgb.Booster()
    booster.load_model(content)
    return booster


def constant_model(document: Any, n_features: int, *, roots: int = 1) -> Any:
    """Return a Booster that has trees which add nothing in place of those of `document`."""
    trees = [empty_tree(n_features)] * roots
    return load_bytes(ubjson.dumps(with_trees(document, trees, per_round=1)))


def constant_margin(booster: Any) -> float:
    """Return the raw prediction of a model that is a constant."""
    nothing = xgb.DMatrix(sparse.csr_matrix((1, booster.num_features())), nthread=1)
    margin: NDArray[np.float32] = booster.predict(
        nothing, output_margin=True, validate_features=False
    )
    return float(margin[0])
