"""XGBoost's models as plain data: what reading and writing both need."""

import copy
import json
from collections.abc import Mapping, Sequence
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

CLASSES = {
    cls.__name__: cls
    for cls in (
        xgb.XGBRegressor,
        xgb.XGBRFRegressor,
        xgb.XGBClassifier,
        xgb.XGBRFClassifier,
        xgb.XGBRanker,
        xgb.Booster,
    )
}
FORESTS = (xgb.XGBRFRegressor, xgb.XGBRFClassifier)
"""Those whose trees are all of one round."""

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
    "multi:softprob": ("softmax", "log_loss"),
    "multi:softmax": ("softmax", "log_loss"),
    "rank:pairwise": ("identity", "unknown"),
    "rank:ndcg": ("identity", "unknown"),
    "rank:map": ("identity", "unknown"),
    "survival:cox": ("log", "unknown"),
    "survival:aft": ("log", "unknown"),
}
"""Those that are read: the link, and the name for all libraries.

With the identity as link the base score is the constant; else it goes through the link first.
"""

RAW = ("binary:logitraw", "rank:pairwise", "rank:ndcg", "rank:map")
"""Those whose models predict raw sums."""


def to_json(document: Any) -> str:
    """Return a document as text, without escapes: XGBoost would read them letter by letter."""
    return json.dumps(document, ensure_ascii=False)


def body_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a model that holds the trees."""
    booster = document["learner"]["gradient_booster"]
    body: dict[str, Any] = booster.get("gbtree", booster)["model"]
    return body


def n_outputs(document: Mapping[str, Any]) -> int:
    """Return how many numbers a model predicts: one for each class or target."""
    known = document["learner"]["learner_model_param"]
    return max(int(known.get("num_class", 0)), int(known.get("num_target", 1)), 1)


def with_trees(
    document: Any, trees: list[Any], per_round: int, tree_output: Sequence[int] | None = None
) -> Any:
    """Return a model that has `trees`, all of weight 1, and the rest from `document`.

    Each adds to the one output there is, or to that of `tree_output`.
    """
    outputs = n_outputs(document)
    result = copy.copy(document)
    result["learner"] = learner = copy.copy(document["learner"])
    learner["gradient_booster"] = booster = copy.copy(learner["gradient_booster"])
    if "weight_drop" in booster:
        booster["weight_drop"] = [1.0] * len(trees)
        booster["gbtree"] = booster = copy.copy(booster["gbtree"])
    booster["model"] = booster["model"] | {
        "gbtree_model_param": {
            "num_parallel_tree": str(per_round // outputs),
            "num_trees": str(len(trees)),
        },
        "iteration_indptr": list(range(0, len(trees) + 1, per_round)),
        "tree_info": [0] * len(trees) if tree_output is None else list(map(int, tree_output)),
        # XGBoost puts them where their numbers say, and looks at places that are left empty.
        "trees": [tree | {"id": number} for number, tree in enumerate(trees)],
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
    """Return a Booster that has trees which add nothing in place of those of `document`.

    That are so many `roots` for each output.
    """
    outputs = n_outputs(document)
    trees = [empty_tree(n_features)] * (roots * outputs)
    info = list(range(outputs)) * roots
    return load_bytes(ubjson.dumps(with_trees(document, trees, outputs, info)))


def constant_margin(booster: Any) -> NDArray[np.float64]:
    """Return the raw prediction of a model that is a constant, one number for each output."""
    nothing = xgb.DMatrix(sparse.csr_matrix((1, booster.num_features())), nthread=1)
    margin: NDArray[np.float32] = booster.predict(
        nothing, output_margin=True, validate_features=False
    )
    return np.asarray(np.ravel(margin), dtype=np.float64)
