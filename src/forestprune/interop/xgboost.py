"""XGBoost: regressors, classifiers, rankers and Boosters, with trees of gbtree and dart.

Trees come and go through the library's own binary form of a model. The origin's state is plain
data: that model with a single root in place of its trees, the library's configuration, and the
constructor's parameters that are not the default. What a model predicts with by default is what is
read: a wrapper that stopped early its best rounds, a Booster all of them.

What is written differs from what was read in this:

- `best_iteration`, where there was one, is the last round; `best_score`, a score of the model
  before, is gone, and so is `evals_result()`.
- `base_score`, if it was given, is the constant of the pruned model: XGBoost predicts with it.
- Weights of dart are in the leaves; all trees have weight 1.
- Rounds of equally many trees keep `num_parallel_tree` true. Otherwise every tree becomes a round
  of its own, but for XGBRFRegressor and XGBRFClassifier, whose trees are always one round. Where
  each tree adds to one output, those with fewer trees get some that are only a root.
- A constant alone is a tree that is only a root: XGBoost 3.2 forgets about the link function of a
  model without trees.
- Parameters that would only matter to another fit and are no plain data become None: callbacks,
  metrics that are functions, random generators.

A Booster does not remember that its objective was a function; XGBoost takes it for one of squared
error from then on, and so does this module.
"""

import copy
import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import xgboost as xgb

from forestprune.exceptions import UnsupportedModelError, warn_caller
from forestprune.forest.build import average_of_leaves, build_forest
from forestprune.forest.classes import plain_labels
from forestprune.forest.constraints import kept_by_trees
from forestprune.forest.forest import Forest
from forestprune.forest.inputs import Categories, InputSpec
from forestprune.forest.origin import Origin
from forestprune.interop import ubjson
from forestprune.interop.params import plain, refusal
from forestprune.interop.xgboost_model import (
    CLASSES,
    OBJECTIVES,
    RAW,
    body_of,
    constant_margin,
    constant_model,
    n_outputs,
)
from forestprune.interop.xgboost_trees import read_tree
from forestprune.interop.xgboost_write import to_native

__all__ = ["FILES", "from_model", "load", "save", "table_of", "to_native"]

FILES = (".json", ".ubj")

_BOOSTERS = ("gbtree", "dart")

_LOADED = (("max_depth", 6.0), ("gamma", 0.0), ("lambda", 1.0), ("subsample", 1.0))
"""Parameters that a model has if it was loaded from a file, whatever it was trained with."""

_OFTEN = 10
"""How often a feature must be split on, always the same way up, to be taken for constrained."""


def from_model(model: Any) -> Forest:
    """Read a fitted XGBoost model."""
    cls = type(model)
    if cls not in CLASSES.values():
        raise UnsupportedModelError(refusal(cls, CLASSES.values()))
    booster = model if cls is xgb.Booster else model.get_booster()
    document = _document(booster)
    objective = _objective(model, document["learner"])
    body = body_of(document)
    n_rounds = len(body["iteration_indptr"]) - 1
    if cls is not xgb.Booster and booster.attr("best_iteration") is not None:
        n_rounds = min(n_rounds, booster.best_iteration + 1)
    bounds = body["iteration_indptr"][: n_rounds + 1]
    trees = body["trees"][: bounds[-1]]
    weights = document["learner"]["gradient_booster"].get("weight_drop", [1.0] * len(trees))

    # A link function is not applied where there is no tree at all: see above.
    constant = constant_model(document, booster.num_features(), roots=int(bool(body["trees"])))
    several = n_outputs(document) > 1
    forest = build_forest(
        map(read_tree, trees),
        n_nodes=sum(tree["left_children"].size for tree in trees),
        scale=weights[: len(trees)],
        base=constant_margin(constant),
        tree_output=body["tree_info"][: len(trees)] if several else (),
        input=_input(model, booster, body),
        origin=Origin(
            "xgboost",
            cls.__name__,
            _describe(model, booster, constant),
            **objective,
            averages=n_rounds == 1,
        ),
        tree_extras={"round": np.repeat(np.arange(n_rounds), np.diff(bounds))},
    )
    return _with_constraints(average_of_leaves(forest), forest.origin)


def _with_constraints(forest: Forest, origin: Origin | None) -> Forest:
    """Return the forest with what its model was trained to keep to.

    XGBoost forgets how a model was trained when that is loaded from a file. Where nothing is left
    but defaults, what all trees keep to counts as a constraint.
    """
    if origin is None:
        return forest
    trained = origin.state["config"]["learner"]["gradient_booster"]
    trained = trained.get("gbtree", trained)["tree_train_param"]
    signs = [int(sign) for sign in re.findall(r"-?\d+", trained["monotone_constraints"])]
    groups = json.loads(trained["interaction_constraints"] or "[]")
    monotone: tuple[int, ...] = ()
    if any(signs):
        monotone = tuple([*signs, *[0] * forest.n_features][: forest.n_features])
    elif all(float(trained.get(name, by_default)) == by_default for name, by_default in _LOADED):
        monotone = kept_by_trees(forest, least=_OFTEN)
    return replace(forest, origin=replace(origin, monotone=monotone, interactions=groups))


def table_of(container: Any) -> Any:
    """Return the rows of a DMatrix, entries that are missing not stored; None for other objects.

    Of a QuantileDMatrix they are what the library itself predicts with: a number for each bin.
    """
    if not isinstance(container, xgb.DMatrix):
        return None
    if hasattr(container, "get_categories") and not container.get_categories().empty():
        raise ValueError(
            "This DMatrix was made from a data frame with categories, and has codes of its own for "
            "them. Pass the data frame itself."
        )
    if container.get_float_info("base_margin").size:
        raise ValueError(
            "A DMatrix without a base margin is required: XGBoost adds it to what the trees "
            "predict, the forest would not. Pass the rows themselves."
        )
    try:
        rows = container.get_data()
    except xgb.core.XGBoostError as error:
        raise ValueError(
            f"A DMatrix that has its rows in memory is required, got a {type(container).__name__} "
            f"that does not give them: {_first_line(error)}. Pass the rows themselves."
        ) from error
    if container.feature_names is not None:
        rows.columns = container.feature_names  # as of a data frame, to be checked like these
    return rows


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model file, .json or .ubj, as a Booster."""
    path = Path(path)
    if path.suffix not in FILES:
        raise UnsupportedModelError(
            f"A model of XGBoost is read from a file {' or '.join(FILES)}, got {path.name}. Load "
            "it with the XGBoost that wrote it, and save it again as .json."
        )
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    booster = xgb.Booster()
    try:
        booster.load_model(path)
    except xgb.core.XGBoostError as error:
        raise UnsupportedModelError(
            f"{path} is not a model of XGBoost, or not all of one ({_first_line(error)})."
        ) from error
    _tell_of_early_stopping(booster, path)
    return booster


def save(model: Any, path: Path) -> None:
    """Write a model file, .json or .ubj."""
    model.save_model(path)


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]


# What is refused


def _objective(model: Any, learner: Mapping[str, Any]) -> dict[str, Any]:
    """Return link, objective and classes; refuse what is no sum of trees."""
    booster, objective = learner["gradient_booster"]["name"], learner["objective"]["name"]
    if booster not in _BOOSTERS:
        raise UnsupportedModelError(
            f"Models of the boosters {' and '.join(_BOOSTERS)} are read, this one is {booster}."
        )
    if callable(getattr(model, "objective", None)):
        if isinstance(model, xgb.XGBClassifier):
            raise UnsupportedModelError(
                "Classifiers with an objective of XGBoost's own are read. This one has a function "
                "for it, and what its trees add up to cannot be known."
            )
        return {"link": "identity", "objective": "unknown", "response": "raw"}
    if objective not in OBJECTIVES:
        raise UnsupportedModelError(
            f"Models of one of these objectives are read: {', '.join(OBJECTIVES)}. "
            f"This one has {objective}."
        )
    trees = body_of({"learner": learner})["trees"]
    if trees and int(trees[0]["tree_param"].get("size_leaf_vector", 1)) > 1:
        raise UnsupportedModelError(
            "Models whose trees have one output each are read. Those of this one have several "
            "(multi_strategy='multi_output_tree'), which XGBoost itself cannot write to all its "
            "formats: train with multi_strategy='one_output_per_tree'."
        )
    link, name = OBJECTIVES[objective]
    params: dict[str, float] = {}
    found: dict[str, Any] = {"link": link, "objective": name, "objective_params": params}
    found |= _classes(model, learner)
    if name == "quantile":
        levels = json.loads(learner["objective"]["quantile_loss_param"]["quantile_alpha"])
        if len(levels) > 1:
            raise UnsupportedModelError(
                f"Models of one quantile are read, this one has {len(levels)}. Fit one for each."
            )
        params["level"] = float(levels[0])
    elif name == "tweedie":
        power = learner["objective"]["tweedie_regression_param"]["tweedie_variance_power"]
        params["power"] = float(power)
    return found


def _classes(model: Any, learner: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the model tells apart, how classes count, and what its `predict` returns."""
    objective = learner["objective"]["name"]
    response = "raw" if objective in RAW else "value"
    if objective.startswith("multi:"):
        n_classes = int(learner["learner_model_param"]["num_class"])
        response = "class" if objective == "multi:softmax" else "probability"
    elif objective in ("binary:logistic", "binary:logitraw"):
        n_classes = 2
        response = "raw" if response == "raw" else "probability"
    else:
        return {"response": response}
    found: dict[str, Any] = {"response": response}
    if isinstance(model, xgb.XGBClassifier):  # XGBRFClassifier is one, too
        found |= plain_labels(model.classes_) | {"response": "class"}
    else:  # what a Booster answers if it answers with a class
        dtype = np.float32 if response == "class" else np.int64
        found |= plain_labels(np.arange(n_classes, dtype=dtype))
    weight = float(learner["objective"].get("reg_loss_param", {}).get("scale_pos_weight", 1.0))
    return found | ({"class_weight": (1.0, weight)} if n_classes == 2 and weight != 1.0 else {})


def _document(booster: Any) -> dict[str, Any]:
    try:
        document: dict[str, Any] = ubjson.loads(booster.save_raw("ubj"))
    except xgb.core.XGBoostError as error:
        raise UnsupportedModelError(
            f"A Booster that was trained or loaded is required: {_first_line(error)}"
        ) from error
    return document


def _tell_of_early_stopping(booster: Any, path: Path) -> None:
    """Warn that a Booster has trees that the estimator it comes from would not use."""
    rounds = booster.num_boosted_rounds()
    best = rounds if booster.attr("best_iteration") is None else booster.best_iteration + 1
    if best < rounds:
        warn_caller(
            f"{path} stopped early, with {best} rounds of {rounds}: all are read, as a Booster "
            f"predicts, though an XGBRegressor would use the first {best}. To prune these alone, "
            f"write them to a file: model.get_booster()[:{best}].save_model(...).",
            UserWarning,
        )


def _describe(model: Any, booster: Any, constant: Any) -> dict[str, Any]:
    document = json.loads(constant.save_raw("json"))
    document["learner"]["attributes"].pop("best_score", None)
    return {
        "model": document,
        "config": json.loads(booster.save_config()),
        "params": {} if type(model) is xgb.Booster else _params(model),
    }


def _params(model: Any) -> dict[str, Any]:
    """Return the constructor's parameters that are not the default, as JSON can hold them."""
    model = copy.copy(model)
    if not isinstance(model.random_state, int | np.integer | None):
        model.random_state = None  # asking for parameters would draw from it
    defaults = type(model)().get_params(deep=False)
    params = {
        name: None if name == "callbacks" or _is_code(param) else plain(name, param)
        for name, param in model.get_params(deep=False).items()
    }
    # NaN, the default of `missing`, is not equal to itself.
    return {
        name: param
        for name, param in params.items()
        if param == param and (name not in defaults or param != defaults[name])
    }


def _is_code(param: Any) -> bool:
    """Tell whether a parameter is something to be called, or a list with such things."""
    return callable(param) or (isinstance(param, list | tuple) and any(map(callable, param)))


# Rows


def _input(model: Any, booster: Any, body: Mapping[str, Any]) -> InputSpec:
    n_features = booster.num_features()
    names = booster.feature_names
    if names == [str(i) for i in range(n_features)]:
        names = None  # the frame had none, its columns were numbered
    missing = getattr(model, "missing", None)
    number = None if missing is None or np.isnan(missing) else float(missing)
    categories = _categories(booster, body)
    if number is not None and categories is not None and any(categories):
        raise UnsupportedModelError(
            f"A number that stands for missing values, here missing={number:g}, is read only for "
            "models without names of categories: XGBoost looks for it among codes that are not "
            "those of the model. Put NaN into the data instead."
        )
    return InputSpec(
        n_features=n_features,
        feature_names=None if names is None else tuple(names),
        dtype="float32",
        ensure_all_finite=False,
        categories=categories,
        unseen="refuse",
        missing_number=number,
        sparse="missing",
    )


def _categories(booster: Any, body: Mapping[str, Any]) -> tuple[Categories | None, ...] | None:
    """Return the categories of each column: none known if the model has only seen codes."""
    types = booster.feature_types
    if types is None or "c" not in types:
        return None
    features = booster.feature_names or range(len(types))
    stored = body.get("cats", {}).get("enc", []) or [None] * len(types)
    return tuple(
        _names(column, feature) if kind == "c" else None
        for kind, column, feature in zip(types, stored, features, strict=True)
    )


def _names(column: Mapping[str, Any] | None, feature: str | int) -> Categories:
    if column is None:
        return ()
    if "offsets" not in column:
        return tuple(column["values"].tolist())
    letters = column["values"].tobytes()
    if not letters.isascii():
        raise UnsupportedModelError(
            f"Feature {feature!r} has categories with letters outside ASCII. XGBoost stores their "
            "names so that they cannot be told apart again: it counts letters where it should "
            "count bytes. Rename these categories, or replace them by their codes, and train "
            "again."
        )
    return tuple(letters[a:b].decode() for a, b in pairwise(column["offsets"].tolist()))
