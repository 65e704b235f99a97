"""XGBoost: Booster and the estimators, with trees of the boosters gbtree and dart.

Trees come and go through the library's own binary form of a model. The origin's state is plain
data: that model with a single root in place of its trees, or one for each output that has trees of
its own; the library's configuration; and the constructor's parameters that are not the default.
What a model predicts with by default is what is read: a wrapper that stopped early its best rounds,
a Booster all of them.

What is written differs from what was read in this:

- `best_iteration`, where there was one, is the last round; `best_score`, a score of the model
  before, is gone, and so is `evals_result()`.
- `base_score`, if it was given, is the constant of the pruned model: XGBoost predicts with it.
- Weights of dart are in the leaves; all trees have weight 1.
- Rounds of equally many trees keep `num_parallel_tree` true. Otherwise every tree becomes a round
  of its own, but for XGBRFRegressor and XGBRFClassifier, whose trees are always one round.
- Where each output has trees of its own, a round has equally many for each: those that are missing
  in the end are roots that add nothing.
- A constant alone is a tree that is only a root: XGBoost 3.2 forgets about the link function of a
  model without trees.
- Parameters that would only matter to another fit and are no plain data become None: callbacks,
  metrics that are functions, random generators. In place of an objective that is a function stands
  the one by whose link the library predicts, as in its own files.

A Booster does not remember that its objective was a function; XGBoost takes it for one of squared
error, or of classes if there are several, from then on, and so does this module.
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
from numpy.typing import NDArray

from forestprune.exceptions import UnsupportedModelError, warn_caller
from forestprune.forest.build import average_of_leaves, build_forest
from forestprune.forest.constraints import kept_by_trees
from forestprune.forest.forest import Forest
from forestprune.forest.inputs import Categories, InputSpec
from forestprune.forest.new_splits import NewTree, SplitLimits, limits_of_rows
from forestprune.forest.origin import Origin
from forestprune.interop import ubjson
from forestprune.interop.params import plain, refusal
from forestprune.interop.xgboost_model import (
    CLASSES,
    body_of,
    constant_margin,
    constant_model,
    layout_of,
)
from forestprune.interop.xgboost_objective import read_objective
from forestprune.interop.xgboost_trees import n_columns, read_tree
from forestprune.interop.xgboost_write import to_native

__all__ = [
    "FILES",
    "from_model",
    "load",
    "new_node_extras",
    "save",
    "split_limits",
    "table_of",
    "to_native",
]

FILES = (".json", ".ubj")

_BOOSTERS = ("gbtree", "dart")

_LOADED = (("max_depth", 6.0), ("gamma", 0.0), ("lambda", 1.0), ("subsample", 1.0))
"""Parameters that a model has if it was loaded from a file, whatever it was trained with."""

_OFTEN = 10
"""How often a feature must be split on, always the same way up, to be taken for constrained."""


def _without_dask(model: Any) -> Any:
    """Return a model that was fitted with Dask as what it is without; others as they are."""
    name = type(model).__name__
    if not name.startswith("Dask"):
        return model
    cls = CLASSES.get(name.removeprefix("Dask"))
    if cls is None:
        return model  # which is refused by name
    local = cls(**{k: v for k, v in model.get_params().items() if k != "client"})
    local.load_model(model.get_booster().save_raw("ubj"))
    return local


def from_model(model: Any) -> Forest:
    """Read a fitted XGBoost model."""
    model = _without_dask(model)
    cls = type(model)
    if cls not in CLASSES.values():
        raise UnsupportedModelError(refusal(cls, CLASSES.values()))
    booster = model if cls is xgb.Booster else model.get_booster()
    document = _document(booster)
    _require_trees(document)
    layout, body = layout_of(document), body_of(document)
    n_rounds = len(body["iteration_indptr"]) - 1
    if cls is not xgb.Booster and booster.attr("best_iteration") is not None:
        n_rounds = min(n_rounds, booster.best_iteration + 1)
    bounds = body["iteration_indptr"][: n_rounds + 1]
    trees = body["trees"][: bounds[-1]]
    weights = document["learner"]["gradient_booster"].get("weight_drop", [1.0] * len(trees))

    # A link function is not applied where there is no tree at all: see above.
    constant = constant_model(document, booster.num_features(), with_roots=bool(body["trees"]))
    forest = build_forest(
        map(read_tree, trees),
        n_nodes=sum(tree["left_children"].size for tree in trees),
        scale=weights[: len(trees)],
        base=constant_margin(constant),
        input=_input(model, booster, body),
        origin=Origin(
            "xgboost",
            cls.__name__,
            _describe(model, booster, constant),
            **read_objective(model, document["learner"], layout.outputs),
            averages=n_rounds == 1,
        ),
        tree_output=body["tree_info"][: len(trees)] if layout.groups > 1 else (),
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


def split_limits(forest: Forest) -> SplitLimits:
    """Return which new splits a model of XGBoost can have: any, on any column.

    With constraints on interactions, a column that no group names meets no other.
    """
    limits = limits_of_rows(forest)
    if not limits.interactions:
        return limits
    named = {column for group in limits.interactions for column in group}
    alone = ((column,) for column in range(forest.n_features) if column not in named)
    return replace(limits, interactions=(*limits.interactions, *alone))


def new_node_extras(_forest: Forest, tree: NewTree) -> dict[str, NDArray[Any]]:
    """Return what XGBoost keeps of the nodes of a new tree."""
    return {"loss_change": tree.gain}


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
            "predict, the forest would not. Pass the rows themselves; if it is the log of "
            "exposure, with rates for y and exposure for sample_weight."
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


def _require_trees(document: Mapping[str, Any]) -> None:
    """Refuse what is no sum of trees, or of trees that a forest cannot hold."""
    booster = document["learner"]["gradient_booster"]["name"]
    if booster not in _BOOSTERS:
        raise UnsupportedModelError(
            f"Models of the boosters {' and '.join(_BOOSTERS)} are read, this one is {booster}."
        )
    trees = body_of(document)["trees"]
    columns = sorted({n_columns(tree) for tree in trees})
    if len(columns) > 1:
        raise UnsupportedModelError(
            "All trees of a model must add to one output, or all to every output; in this one some "
            f"have {columns[0]} at each leaf and some {columns[-1]}. Train it with one "
            "multi_strategy throughout."
        )
    if columns and columns[0] > 1 and "leaf_weights" not in trees[0]:
        raise UnsupportedModelError(
            f"Trees with {columns[0]} outputs at each leaf are read from XGBoost 3.2 on: older "
            "versions do not keep how many rows reach a node of such a tree. Update XGBoost and "
            'train again, or train with multi_strategy="one_output_per_tree".'
        )


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
            f"predicts, though the estimator they came from would use the first {best}. To prune "
            f"these alone, write them to a file: model.get_booster()[:{best}].save_model(...).",
            UserWarning,
        )


def _describe(model: Any, booster: Any, constant: Any) -> dict[str, Any]:
    document = json.loads(constant.save_raw("json"))
    document["learner"]["attributes"].pop("best_score", None)
    return {
        "model": document,
        "config": json.loads(booster.save_config()),
        "params": {} if type(model) is xgb.Booster else _params(model, document["learner"]),
    }


def _params(model: Any, learner: Mapping[str, Any]) -> dict[str, Any]:
    """Return the constructor's parameters that are not the default, as JSON can hold them."""
    model = copy.copy(model)
    if callable(model.objective):
        model.objective = learner["objective"]["name"]
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
