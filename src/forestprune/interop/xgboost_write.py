"""Forests written as XGBoost models: see :mod:`forestprune.interop.xgboost`."""

import copy
import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import xgboost as xgb
from numpy.typing import NDArray

from forestprune.exceptions import UnsupportedModelError
from forestprune.forest.build import with_a_tree
from forestprune.forest.forest import Forest
from forestprune.forest.origin import Origin
from forestprune.interop import ubjson
from forestprune.interop.params import check_writable
from forestprune.interop.rounds import whole_rounds
from forestprune.interop.xgboost_model import (
    CLASSES,
    FORESTS,
    OBJECTIVES,
    constant_margin,
    constant_model,
    load_bytes,
    to_json,
    with_trees,
)
from forestprune.interop.xgboost_trees import write_tree


def to_native(forest: Forest, origin: Origin) -> Any:
    """Write `forest` as a fitted model of the class it was read from."""
    check_writable(forest, origin, CLASSES, "XGBoost", by_class=True)
    forest = forest.compact()
    outputs = forest.n_outputs
    if outputs > 1 and forest.n_trees and not forest.tree_output.size:
        raise UnsupportedModelError(
            f"Trees of XGBoost are written with one output each, those of this forest have "
            f"{outputs}."
        )
    cls = CLASSES[origin.model_class]
    in_one_round = cls in FORESTS
    if outputs > 1:
        forest, per_round = whole_rounds(forest, {})[0], outputs
    else:
        forest = with_a_tree(forest)
        per_round = _trees_per_round(forest)
    per_round = forest.n_trees if in_one_round else per_round
    state = copy.deepcopy(dict(origin.state))  # lists in it become parameters of the model
    text = bytearray(to_json(state["model"]).encode())
    blank = ubjson.loads(load_bytes(text).save_raw("ubj"))
    rest = _set_constant(blank, forest)

    n_rounds = forest.n_trees // per_round
    values = forest.scaled_value[:, 0]
    for first, each in enumerate(rest):  # the first trees are one of each output
        values[forest.offsets[first] : forest.offsets[first + 1]] += each
    trees = [
        write_tree(forest, i, values[a:b]) for i, (a, b) in enumerate(pairwise(forest.offsets))
    ]
    if "best_iteration" in blank["learner"]["attributes"]:
        blank["learner"]["attributes"]["best_iteration"] = str(n_rounds - 1)
    output = forest.tree_output.tolist() if outputs > 1 else None
    content = ubjson.dumps(with_trees(blank, trees, per_round, output))
    if cls is xgb.Booster:
        booster = model = load_bytes(content)
    else:
        model = _wrapper(cls, state["params"], content)
        booster = model.get_booster()
        model.n_estimators = forest.n_trees // outputs if in_one_round else n_rounds
        if model.num_parallel_tree is not None:
            model.num_parallel_tree = per_round // outputs
        if model.base_score is not None and outputs == 1 and _base_score_is_constant(blank):
            # Any set_params() hands it to the library again, where it would be the constant.
            model.base_score = float(np.float32(forest.base[0]))
    if state["config"]["version"] == json.loads(booster.save_config())["version"]:
        booster.load_config(to_json(state["config"]))
    return model


def _set_constant(blank: Any, forest: Forest) -> NDArray[np.float64]:
    """Make the base score that of `forest`; return what it cannot hold, for trees to add.

    That is what rounding leaves, or where a link function comes between, all the difference: with
    rounding behind that function the constant could be far off.
    """
    learner = blank["learner"]
    learner["learner_model_param"]["num_feature"] = str(forest.n_features)
    if forest.n_outputs == 1 and _base_score_is_constant(blank):
        # As short as it can be told: XGBoost 2.1 takes more than 9 digits for no number at all.
        learner["learner_model_param"]["base_score"] = str(np.float32(forest.base[0]))
    return forest.base - constant_margin(constant_model(blank, forest.n_features))


def _base_score_is_constant(model: Any) -> bool:
    return OBJECTIVES[model["learner"]["objective"]["name"]][0] == "identity"


def _trees_per_round(forest: Forest) -> int:
    """Return how many trees each round has that is left; 1 if they have not equally many."""
    rounds = forest.tree_extras.get("round")
    if rounds is None:
        return 1
    _, sizes = np.unique(rounds, return_counts=True)
    return int(sizes[0]) if (sizes == sizes[0]).all() else 1


def _wrapper(cls: type, params: Mapping[str, Any], content: bytearray) -> Any:
    params = dict(params)
    if isinstance(params.get("monotone_constraints"), list):
        params["monotone_constraints"] = tuple(params["monotone_constraints"])  # no list is taken
    model = cls(**params)
    chosen = dict(vars(model))
    model.load_model(content)
    vars(model).update(chosen)  # loading overwrites parameters, even those that were left open
    return model
