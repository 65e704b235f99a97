"""LightGBM: LGBMRegressor and Booster, with boosting gbdt, dart, rf or goss.

A model is read as its default `predict` uses it: up to the best iteration, if training stopped
early. A random forest (boosting="rf") is read as the average that `predict` returns, though with
raw_score=True the library returns the sum. It is written as an average again: the values make up
for the trees that are gone.

LightGBM has no place for a constant and adds the start score to the first tree. So does writing;
a random forest gets the constant in every tree. If no tree is left, the model is one leaf.

What training recorded besides the trees (scores, the best iteration) is not carried over: it does
not hold for the pruned model. A random generator given as `random_state` becomes None.

Arrays of whole numbers are rounded to float32 by LightGBM's Python package, before anything else;
here they are not. That makes a difference only beyond 2**24.
"""

import json
import os
import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
from lightgbm import Booster, Dataset, LGBMRegressor
from lightgbm.basic import LightGBMError, _ConfigAliases
from numpy.typing import NDArray

from forestprune.exceptions import InvalidForestError, UnsupportedModelError
from forestprune.forest.build import average_of_leaves, build_forest
from forestprune.forest.forest import Forest
from forestprune.forest.inputs import InputSpec
from forestprune.forest.origin import Link, Origin
from forestprune.interop.lightgbm_text import (
    NAN_IS_MISSING,
    ZERO_IS_MISSING,
    ModelText,
    compose_model,
    constant_tree,
    parse_model,
    read_tree,
    write_tree,
)
from forestprune.interop.params import check_writable, plain, refusal

_CLASSES = {cls.__name__: cls for cls in (LGBMRegressor, Booster)}
_FORMAT = "v4"

FILES = (".txt",)

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
}
_PARAMS = {"quantile": ("level", "alpha"), "tweedie": ("power", "tweedie_variance_power")}

# Fitted attributes of LGBMRegressor, as far as they differ from those of one not fitted. Which of
# them exist depends on the version.
_ATTRIBUTES = ("_objective", "_n_features", "_n_features_in", "_fitted_with_feature_names")

_WHY_NOT = {
    "LGBMClassifier": "Classifiers are not read yet.",
    "LGBMRanker": "A ranker's output has no scale that rows of different queries share.",
    "DaskLGBMRegressor": "Pass what its to_local() returns.",
    "CVBooster": "Pass one of its boosters.",
}


# In


def from_model(model: Any) -> Forest:
    """Read a fitted LGBMRegressor, or a Booster."""
    cls = type(model)
    if cls not in _CLASSES.values():
        raise UnsupportedModelError(refusal(cls, _CLASSES.values(), _WHY_NOT.get(cls.__name__, "")))
    booster = model if isinstance(model, Booster) else model.booster_
    text = parse_model(_text_of(booster))
    if text.header["version"] != _FORMAT:
        raise UnsupportedModelError(
            f"LightGBM models are read in its format {_FORMAT}; this LightGBM writes "
            f"{text.header['version']}, which this version of forestprune does not know. Use "
            "LightGBM 4."
        )
    objective = _objective(text)
    state: dict[str, Any] = {
        "header": text.header,
        "parameters": text.parameters,
        "pandas_categorical": text.pandas_categorical,
        "booster_params": plain("params", booster.params),
    }
    if isinstance(model, LGBMRegressor):
        state["params"] = plain("params", model.get_params())
        state["attributes"] = {
            name: plain(name, getattr(model, name)) for name in _ATTRIBUTES if hasattr(model, name)
        }
    origin = Origin(
        "lightgbm",
        cls.__name__,
        state,
        **objective,
        averages=_averages(text.header),
        **_constraints(text),
    )
    return _forest_of(text, origin)


def load(path: str | os.PathLike[str]) -> Booster:
    """Read a file that LightGBM's `save_model` wrote.

    LightGBM trusts such a file, and a damaged one may end the process. So it is read here first,
    and then handed over without the list of the trees' sizes.
    """
    try:
        text = parse_model(Path(path).read_text(encoding="utf-8"))
        _objective(text)
        _forest_of(text)
        return Booster(model_str=compose_model(text))
    except (LookupError, ValueError, OverflowError, MemoryError, LightGBMError) as error:
        raise InvalidForestError(
            f"{os.fspath(path)} is not a model that LightGBM can read ({error}). Write one with "
            "booster.save_model('model.txt'); what dump_model returns, LightGBM itself cannot read."
        ) from error


def save(model: Any, path: Path) -> None:
    """Write a model file."""
    booster = model if isinstance(model, Booster) else model.booster_
    booster.save_model(path)


def table_of(X: Any) -> Any:
    """Return the rows of a Dataset; None if `X` is something else."""
    if not isinstance(X, Dataset):
        return None
    if X.used_indices is not None:  # made by subset()
        rows = table_of(X.reference)
        return rows.iloc[X.used_indices] if hasattr(rows, "iloc") else rows[X.used_indices]
    data = X.data
    if data is None:
        raise ValueError(
            "The rows of this lightgbm.Dataset are gone. Make it with free_raw_data=False, or pass "
            "the array or data frame itself."
        )
    if isinstance(data, str | Path):
        raise ValueError(
            f"This lightgbm.Dataset reads its rows from {data}. Pass them as an array or a data "
            "frame."
        )
    if isinstance(data, lightgbm.Sequence):
        data = [data]
    if isinstance(data, list):
        return np.concatenate([np.atleast_2d(part[0 : len(part)]) for part in data])
    return data


def _text_of(booster: Booster) -> str:
    try:
        text: str = booster.model_to_string()
    except (TypeError, ValueError) as error:
        raise UnsupportedModelError(
            "LightGBM must be able to write this model as text, but cannot: the categories of the "
            f"data frame it was trained on must be strings or numbers ({error})."
        ) from error
    return text


def _forest_of(text: ModelText, origin: Origin | None = None) -> Forest:
    """Return the trees of a model text as a forest."""
    n_trees = len(text.trees)
    unit = 1.0 / n_trees if n_trees and _averages(text.header) else 1.0
    forest = build_forest(
        map(read_tree, text.trees),
        n_nodes=sum(2 * int(fields["num_leaves"]) - 1 for fields in text.trees),
        scale=np.full(n_trees, unit),
        base=np.zeros(1),
        input=InputSpec(n_features=int(text.header["max_feature_idx"] or 0) + 1),
        origin=origin,
        tree_extras={"shrinkage": np.array([float(f.get("shrinkage", 1)) for f in text.trees])},
    )
    forest = replace(forest, input=_input_of(forest, text), cover=_cover(forest))
    return average_of_leaves(forest)


def _averages(header: Mapping[str, str | None]) -> bool:
    return "average_output" in header


def _objective(text: ModelText) -> dict[str, Any]:
    """Return link and objective of a model; refuse it if they cannot be known."""
    header = text.header
    if not header.get("objective"):
        raise UnsupportedModelError(
            "LightGBM models are read if trained with one of its own objectives; this one has a "
            "custom objective, whose link is unknown. Train it with one of "
            f"{', '.join(_OBJECTIVES)}."
        )
    name, *flags = str(header["objective"]).split()
    if name not in _OBJECTIVES or header["num_tree_per_iteration"] != "1":
        raise UnsupportedModelError(
            f"LightGBM models are read if their objective is one of {', '.join(_OBJECTIVES)}; "
            f"got {name}, whose raw output is not one number that estimates y or a function of it."
        )
    link, objective = _OBJECTIVES[name]
    params = {
        key: float(number)
        for key, _, number in (flag.partition(":") for flag in flags)
        if key == "sigmoid"
    }
    if name in _PARAMS:
        key, parameter = _PARAMS[name]
        if found := re.search(rf"(?m)^\[{parameter}: (.*)\]$", text.parameters):
            params[key] = float(found[1])
    return {
        "link": "signed_sqrt" if "sqrt" in flags else link,
        "objective": objective,
        "objective_params": params,
    }


def _constraints(text: ModelText) -> dict[str, Any]:
    """Return what the model was trained to keep to."""
    signs = tuple(map(int, str(text.header.get("monotone_constraints") or "").split()))
    groups: Any = ()
    if found := re.search(r"(?m)^\[interaction_constraints: (\[.*\])\]$", text.parameters):
        groups = json.loads(f"[{found[1]}]")
    return {"monotone": signs, "interactions": groups}


def _cover(forest: Forest) -> NDArray[np.float64]:
    """Return the weight of each node: leaves have theirs, splits get that of their leaves.

    The weights of splits in the text have only six digits, and older versions write 0 for roots.
    """
    cover = forest.cover.copy()
    depths = forest.node_depths
    left = forest.left + forest.offsets[forest.tree_of_node]
    splits = np.flatnonzero(forest.left >= 0)
    splits = splits[np.argsort(-depths[splits], kind="stable")]
    for layer in np.split(splits, np.flatnonzero(np.diff(depths[splits])) + 1):
        cover[layer] = cover[left[layer]] + cover[left[layer] + 1]
    return cover


def _input_of(forest: Forest, text: ModelText) -> InputSpec:
    """Return how rows have to be prepared for the splits of `forest`."""
    names = str(text.header["feature_names"]).split(" ")
    splits = forest.left >= 0
    sets = forest.category_set
    categorical = splits & (sets >= 0) if sets.size else np.zeros_like(splits)
    numeric = splits & ~categorical
    missing_type = forest.node_extras.get("missing_type", np.empty(0))  # there may be no tree
    truncated = set(forest.feature[categorical].tolist())
    zero = set(forest.feature[numeric & (missing_type == ZERO_IS_MISSING)].tolist())
    # Where zero and NaN go the same way, zero may count as missing as well.
    apart = (missing_type == NAN_IS_MISSING) & (forest.missing_left != (forest.threshold >= 0))
    mixed = truncated & set(forest.feature[numeric].tolist())
    mixed |= zero & set(forest.feature[numeric & apart].tolist())
    if mixed:
        raise UnsupportedModelError(
            "LightGBM models are read if all trees take a column in the same way; here column "
            f"{names[min(mixed)]!r} is categorical in some splits and numeric in others, or zero "
            "is missing in some and a number in others. Train all trees with the same parameters."
        )
    n = forest.n_features
    # LightGBM and pandas make up names for columns that have none.
    made_up = names in ([f"Column_{j}" for j in range(n)], [str(j) for j in range(n)])
    marked = text.pandas_categorical or ()
    return InputSpec(
        n_features=n,
        feature_names=None if made_up else tuple(names),
        underscores=True,
        ensure_all_finite=False,
        marked_categories=tuple(map(tuple, marked)),
        marked_columns=_marked_columns(text, [len(categories) for categories in marked]),
        truncated=tuple(sorted(truncated)),
        zero_is_missing=tuple(sorted(zero)),
        sparse="zero",
    )


def _marked_columns(text: ModelText, sizes: list[int]) -> tuple[int, ...]:
    """Return which columns a data frame marked as categorical; none if that is not certain.

    The file has their categories, but not which columns they were. Columns of categories list their
    codes, such as -1:0:2:1, where others have a range, such as [0:1]; but a frame may have marked
    others than were taken for categories, then numbers from 0 on. So the former must list such
    codes, and none of the latter may have just their range.
    """
    infos = str(text.header.get("feature_infos", "")).split(" ")
    codes = {
        column: set(info.split(":")) - {"-1"}
        for column, info in enumerate(infos)
        if info[:1] in tuple("-0123456789")
    }
    if len(codes) != len(sizes) or {f"[0:{size - 1}]" for size in sizes} & set(infos):
        return ()
    sound = all(
        "0" in listed and listed <= set(map(str, range(size)))
        for listed, size in zip(codes.values(), sizes, strict=True)
    )
    return tuple(codes) if sound else ()


# Out


def to_native(forest: Forest, origin: Origin) -> Any:
    """Write `forest` as a fitted model of the class it was read from."""
    check_writable(forest, origin, _CLASSES, "LightGBM")
    state = deepcopy(dict(origin.state))  # lists in it become parameters of the model
    trees = _write_trees(forest, average=_averages(state["header"]))
    parameters = re.sub(
        r"(?m)^\[num_iterations: .*\]$", f"[num_iterations: {len(trees)}]", state["parameters"]
    )
    text = ModelText(state["header"], trees, parameters, state["pandas_categorical"])
    booster = Booster(model_str=compose_model(text))
    booster.params = _with_rounds(state["booster_params"], len(trees))
    if origin.model_class == "Booster":
        return booster
    model = LGBMRegressor(**_with_rounds(state["params"], len(trees)))
    for name in _ATTRIBUTES:
        if name in state["attributes"] and hasattr(model, name):
            setattr(model, name, state["attributes"][name])
    model._Booster = booster
    model.fitted_ = True
    return model


def _with_rounds(params: dict[str, Any], rounds: int) -> dict[str, Any]:
    """Return `params` with the number of trees that there are, under whatever name they have it."""
    names = _ConfigAliases.get("num_iterations")
    return {name: rounds if name in names else param for name, param in params.items()}


def _write_trees(forest: Forest, *, average: bool) -> list[dict[str, str]]:
    """Return the trees as text, whose sum or average is the forest."""
    compact = forest.compact()
    if not compact.n_trees:
        return [constant_tree(float(compact.base[0]))]
    base = float(compact.base[0])
    factors = compact.scale / (1.0 / compact.n_trees if average else 1.0)
    trees = []
    for i, (a, b) in enumerate(pairwise(compact.offsets.tolist())):
        value = compact.value[a:b, 0] * factors[i]
        shrinkage = float(compact.tree_extras["shrinkage"][i])
        if base != 0.0 and (average or i == 0):
            # Like the library, which says so by a shrinkage of 1.
            value, shrinkage = value + base, 1.0
        trees.append(write_tree(compact, slice(a, b), value, shrinkage))
    return trees
