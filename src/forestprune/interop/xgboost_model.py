"""XGBoost's models as plain data: what reading and writing both need."""

import copy
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import xgboost as xgb
from numpy.typing import NDArray
from scipy import sparse

from forestprune.forest.build import build_forest, with_a_tree
from forestprune.forest.inputs import InputSpec
from forestprune.interop import ubjson
from forestprune.interop.xgboost_trees import n_columns, write_tree

CLASSES = {
    cls.__name__: cls
    for cls in (
        *(xgb.XGBRegressor, xgb.XGBRFRegressor, xgb.XGBClassifier, xgb.XGBRFClassifier),
        *(xgb.XGBRanker, xgb.Booster),
    )
}


class Layout(NamedTuple):
    """How the trees of a model share its outputs.

    Attributes
    ----------
    groups : int
        How many outputs have trees of their own; 1 if all trees add to all outputs.
    columns : int
        How many outputs a tree adds to.
    """

    groups: int
    columns: int

    @property
    def outputs(self) -> int:
        """Number of values a raw prediction has."""
        return self.groups * self.columns


def layout_of(document: Mapping[str, Any]) -> Layout:
    """Return how the trees of a model share its outputs."""
    trees = body_of(document)["trees"]
    if trees and n_columns(trees[0]) > 1:
        return Layout(1, n_columns(trees[0]))
    param = document["learner"]["learner_model_param"]
    return Layout(max(1, int(param["num_class"]), int(param["num_target"])), 1)


def to_json(document: Any) -> str:
    """Return a document as text, without escapes: XGBoost would read them letter by letter."""
    return json.dumps(document, ensure_ascii=False)


def body_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a model that holds the trees."""
    booster = document["learner"]["gradient_booster"]
    body: dict[str, Any] = booster.get("gbtree", booster)["model"]
    return body


def with_trees(document: Any, trees: list[Any], groups: int, per_round: int = 1) -> Any:
    """Return a model that has `trees`, all of weight 1, and the rest from `document`.

    A round has `per_round` trees for the first group, then as many for the next, and so on.
    """
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
        "iteration_indptr": list(range(0, len(trees) + 1, groups * per_round)),
        "tree_info": [number // per_round % groups for number in range(len(trees))],
        # XGBoost puts each where its number says.
        "trees": [tree | {"id": number} for number, tree in enumerate(trees)],
    }
    return result


def root_tree(n_features: int, values: NDArray[np.float64]) -> dict[str, Any]:
    """Return a tree that is a root and adds `values`, one or one for each output."""
    nothing = build_forest([], n_nodes=0, scale=[], base=[0.0], input=InputSpec(n_features))
    return write_tree(with_a_tree(nothing), 0, values[np.newaxis])


def load_bytes(content: bytearray) -> Any:
    """Return a Booster."""
    booster = xgb.Booster()
    booster.load_model(content)
    return booster


def constant_model(document: Any, n_features: int, *, with_roots: bool = True) -> Any:
    """Return a Booster that has trees which add nothing in place of those of `document`."""
    layout = layout_of(document)
    trees = [root_tree(n_features, np.zeros(layout.columns))] * (layout.groups * with_roots)
    return load_bytes(ubjson.dumps(with_trees(document, trees, layout.groups)))


def constant_margin(booster: Any) -> NDArray[np.float64]:
    """Return the raw prediction of a model that is a constant, one number for each output."""
    nothing = xgb.DMatrix(sparse.csr_matrix((1, booster.num_features())), nthread=1)
    margin: NDArray[np.float32] = booster.predict(
        nothing, output_margin=True, validate_features=False
    )
    return margin.ravel().astype(np.float64)
