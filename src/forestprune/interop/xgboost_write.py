"""Forests written as XGBoost models: see :mod:`forestprune.interop.xgboost`."""

import copy
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import xgboost as xgb
from numpy.typing import NDArray

from forestprune.exceptions import UnsupportedModelError
from forestprune.forest.build import with_a_tree
from forestprune.forest.forest import Forest
from forestprune.forest.origin import Origin
from forestprune.interop import ubjson
from forestprune.interop.params import check_writable
from forestprune.interop.xgboost_model import (
    CLASSES,
    Layout,
    constant_margin,
    constant_model,
    layout_of,
    load_bytes,
    root_tree,
    to_json,
    with_trees,
)
from forestprune.interop.xgboost_objective import objective_of
from forestprune.interop.xgboost_trees import write_tree

_OF_ONE_ROUND = (xgb.XGBRFRegressor, xgb.XGBRFClassifier)


def to_native(forest: Forest, origin: Origin) -> Any:
    """Write `forest` as a fitted model of the class it was read from."""
    check_writable(forest, origin, CLASSES, "XGBoost", by_class=_is_by_output(origin))
    cls = CLASSES[origin.model_class]
    state = copy.deepcopy(dict(origin.state))  # lists in it become parameters of the model
    text = bytearray(to_json(state["model"]).encode())
    blank = ubjson.loads(load_bytes(text).save_raw("ubj"))
    layout = layout_of(blank)
    _check_outputs(forest, layout)
    forest = forest.compact() if layout.groups > 1 else with_a_tree(forest)
    rest = _set_constant(blank, forest)

    places, per_round = _arrange(forest, layout.groups, one_round=cls in _OF_ONE_ROUND)
    n_rounds = len(places) // (per_round * layout.groups)
    trees = _write_trees(forest, places, rest.reshape(layout))
    if "best_iteration" in blank["learner"]["attributes"]:
        blank["learner"]["attributes"]["best_iteration"] = str(n_rounds - 1)
    content = ubjson.dumps(with_trees(blank, trees, layout.groups, per_round))
    if cls is xgb.Booster:
        booster = model = load_bytes(content)
    else:
        model = _wrapper(cls, state["params"], content)
        booster = model.get_booster()
        model.n_estimators = per_round if cls in _OF_ONE_ROUND else n_rounds
        if model.num_parallel_tree is not None:
            model.num_parallel_tree = per_round
        if model.base_score is not None and _holds_constant(blank, layout.outputs):
            # Any set_params() hands it to the library again, where it would be the constant.
            constant = forest.base.astype(np.float32).tolist()
            model.base_score = constant if len(set(constant)) > 1 else constant[0]
    if state["config"]["version"] == json.loads(booster.save_config())["version"]:
        booster.load_config(to_json(state["config"]))
    return model


def _is_by_output(origin: Origin) -> bool:
    """Tell whether each output of the original model has trees of its own."""
    return "model" in origin.state and layout_of(origin.state["model"]).groups > 1


def _check_outputs(forest: Forest, layout: Layout) -> None:
    """Refuse a forest with other outputs than the model it was read from."""
    if forest.n_outputs != layout.outputs:
        raise UnsupportedModelError(
            f"A model of XGBoost is written with as many outputs as it had, {layout.outputs}; this "
            f"forest has {forest.n_outputs}."
        )
    if forest.n_trees and layout.groups > 1 and not forest.tree_output.size:
        raise UnsupportedModelError(
            f"Each of the {layout.outputs} outputs of this model of XGBoost had trees of its own; "
            "in this forest every tree adds to all of them."
        )


# The constant


def _set_constant(blank: Any, forest: Forest) -> NDArray[np.float64]:
    """Make the base score that of `forest`; return what it cannot hold, for trees to add.

    That is what rounding leaves, or where a link function comes between, all the difference: with
    rounding behind that function the constant could be far off.
    """
    param = blank["learner"]["learner_model_param"]
    param["num_feature"] = str(forest.n_features)
    if _holds_constant(blank, forest.n_outputs):
        # As short as it can be told: XGBoost 2.1 takes more than 9 digits for no number at all.
        numbers = ",".join(str(number) for number in forest.base.astype(np.float32))
        param["base_score"] = numbers if forest.n_outputs == 1 else f"[{numbers}]"
    return forest.base - constant_margin(constant_model(blank, forest.n_features))


def _holds_constant(model: Any, outputs: int) -> bool:
    """Tell whether the base score is the constant: a number, or from XGBoost 3.1 on several."""
    learner = model["learner"]
    several = learner["learner_model_param"]["base_score"].startswith("[")
    return objective_of(learner).raw_base and (outputs == 1 or several)


# Trees


class _Place(NamedTuple):
    """Where a tree stands: for which group, and the number of the tree; None if there is none."""

    group: int
    tree: int | None


def _arrange(forest: Forest, groups: int, *, one_round: bool) -> tuple[list[_Place], int]:
    """Return the places for trees in the order of the file, and how many a round and group has."""
    output = forest.tree_output if groups > 1 else np.zeros(forest.n_trees, np.int32)
    trees = [np.flatnonzero(output == group).tolist() for group in range(groups)]
    most = max(1, *map(len, trees))
    per_round = most if one_round else _trees_per_round(forest, output)
    places = [
        _Place(group, trees[group][number] if number < len(trees[group]) else None)
        for start in range(0, most, per_round)
        for group in range(groups)
        for number in range(start, start + per_round)
    ]
    return places, per_round


def _trees_per_round(forest: Forest, output: NDArray[np.int32]) -> int:
    """Return how many trees each output has in a round; 1 if they are not equally many."""
    rounds = forest.tree_extras.get("round")
    if rounds is None or not forest.n_trees:
        return 1
    _, sizes = np.unique(np.column_stack([output, rounds]), axis=0, return_counts=True)
    return int(sizes[0]) if (sizes == sizes[0]).all() else 1


def _write_trees(
    forest: Forest, places: list[_Place], rest: NDArray[np.float64]
) -> list[dict[str, Any]]:
    """Return the trees, of which the first of each group adds its `rest`, (groups, columns)."""
    values = forest.scaled_value
    trees, met = [], set()
    for group, tree in places:
        extra = np.zeros_like(rest[group]) if group in met else rest[group]
        met.add(group)
        if tree is None:
            trees.append(root_tree(forest.n_features, extra))
        else:
            nodes = slice(forest.offsets[tree], forest.offsets[tree + 1])
            trees.append(write_tree(forest, tree, values[nodes] + extra))
    return trees


def _wrapper(cls: type, params: Mapping[str, Any], content: bytearray) -> Any:
    params = dict(params)
    if isinstance(params.get("monotone_constraints"), list):
        params["monotone_constraints"] = tuple(params["monotone_constraints"])  # no list is taken
    model = cls(**params)
    chosen = dict(vars(model))
    model.load_model(content)
    vars(model).update(chosen)  # loading overwrites parameters, even those that were left open
    return model
