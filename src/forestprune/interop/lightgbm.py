"""LightGBM: its estimators and Booster, with boosting gbdt, dart, rf or goss.

A model is read as its default `predict` uses it: up to the best iteration, if training stopped
early. A random forest (boosting="rf") is read as the average that `predict` returns, though with
raw_score=True the library returns the sum. It is written as an average again: the values make up
for the trees that are gone.

LightGBM has no place for a constant and adds the start score to the first tree. So does writing;
a random forest gets the constant in every tree. If no tree is left, the model is one leaf.

Of several classes each has a tree in every round, and the constant goes into the first tree of each
class. Where classes have lost different numbers of trees, leaves that add nothing fill the rounds.

What training recorded besides the trees (scores, the best iteration) is not carried over: it does
not hold for the pruned model. A random generator given as `random_state` becomes None, and a
function given as `objective` becomes "custom", LightGBM's name for any: it is needed for training
alone.

Arrays of whole numbers are rounded to float32 by LightGBM's Python package, before anything else;
here they are not. That makes a difference only beyond 2**24.
"""

import json
import os
import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
from lightgbm import Booster, Dataset, LGBMClassifier, LGBMRanker, LGBMRegressor
from lightgbm.basic import LightGBMError, _ConfigAliases
from numpy.typing import NDArray
from sklearn.preprocessing import LabelEncoder

from forestprune.exceptions import InvalidForestError, UnsupportedModelError
from forestprune.forest.build import average_of_leaves, build_forest
from forestprune.forest.classes import labels_of
from forestprune.forest.forest import Forest
from forestprune.forest.inputs import InputSpec
from forestprune.forest.new_splits import (
    MANY_CATEGORIES,
    RIGHT,
    SplitLimits,
    limits_of_rows,
)
from forestprune.forest.origin import Origin
from forestprune.interop.lightgbm_objective import count_outputs, read_objective
from forestprune.interop.lightgbm_text import (
    NAN_IS_MISSING,
    ZERO_IS_MISSING,
    ModelText,
    as_compared,
    compose_model,
    constant_tree,
    new_node_extras,
    parse_model,
    read_tree,
    write_tree,
)
from forestprune.interop.params import check_writable, plain, refusal

__all__ = [
    "FILES",
    "as_compared",
    "from_model",
    "load",
    "new_node_extras",
    "save",
    "split_limits",
    "table_of",
    "to_native",
]

_CLASSES: dict[str, Any] = {
    cls.__name__: cls for cls in (LGBMRegressor, LGBMClassifier, LGBMRanker, Booster)
}
_FORMAT = "v4"

FILES = (".txt",)

# Fitted attributes of all estimators, as far as they differ from those of one not fitted. Which of
# them exist depends on the version.
_ATTRIBUTES = ("_objective", "_n_features", "_n_features_in", "_fitted_with_feature_names")
_OF_RANKERS = ("_eval_at",)
_WEIGHTS = ("class_weight", "_class_weight")

_WHY_NOT = {"CVBooster": "Pass one of its boosters."}


# In


def from_model(model: Any) -> Forest:
    """Read a fitted LGBMRegressor, LGBMClassifier or LGBMRanker, or a Booster."""
    if callable(getattr(model, "to_local", None)):  # it was fitted with Dask
        model = model.to_local()
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
    described = read_objective(
        text,
        model.classes_ if isinstance(model, LGBMClassifier) else None,
        getattr(model, "_class_weight", None),
    )
    state: dict[str, Any] = {
        "header": text.header,
        "parameters": text.parameters,
        "pandas_categorical": text.pandas_categorical,
        "booster_params": _plain_params(booster.params),
    }
    if model is not booster:
        state["params"] = _plain_params(model.get_params())
        state["attributes"] = _plain_params(
            {
                name: getattr(model, name)
                for name in (*_ATTRIBUTES, *_OF_RANKERS, "_class_weight")
                if hasattr(model, name)
            }
        )
    origin = Origin(
        "lightgbm",
        cls.__name__,
        state,
        **described,
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
        read_objective(text)
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
    # Where training goes on from another model, LightGBM writes that one's predictions there.
    if X.init_score is not None and getattr(X, "_predictor", None) is None:
        raise ValueError(
            "A Dataset without init_score is required: training starts from it, but neither "
            "LightGBM nor the forest adds it to what the trees predict. Pass the rows themselves; "
            "if it is the log of exposure, with rates for y and exposure for sample_weight."
        )
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


def _plain_params(params: dict[str, Any]) -> dict[str, Any]:
    """Return parameters, or attributes of such names, as JSON can hold them."""
    objectives = {"_objective", *_ConfigAliases.get("objective")}
    known: dict[str, Any] = {
        name: "custom" if name in objectives and callable(param) else param
        for name, param in params.items()
    }
    for name in _WEIGHTS:
        weights = known.get(name)
        if isinstance(weights, dict):
            # As two lists: labels may be numbers, which cannot be keys in JSON.
            known[name] = {"labels": list(weights), "weights": list(weights.values())}
    return {name: plain(name, param) for name, param in known.items()}


def _with_labels(params: dict[str, Any]) -> dict[str, Any]:
    """Return parameters with the weights of classes by label again."""
    return {
        name: dict(zip(param["labels"], param["weights"], strict=True))
        if name in _WEIGHTS and isinstance(param, dict)
        else param
        for name, param in params.items()
    }


def _forest_of(text: ModelText, origin: Origin | None = None) -> Forest:
    """Return the trees of a model text as a forest."""
    n_trees, outputs = len(text.trees), count_outputs(text.header)
    if n_trees % outputs:
        raise InvalidForestError(
            f"A LightGBM model must have whole rounds of {outputs} trees; this one has {n_trees} "
            "trees."
        )
    unit = outputs / n_trees if n_trees and _averages(text.header) else 1.0
    forest = build_forest(
        map(read_tree, text.trees),
        n_nodes=sum(2 * int(fields["num_leaves"]) - 1 for fields in text.trees),
        scale=np.full(n_trees, unit),
        base=np.zeros(outputs),
        tree_output=np.arange(n_trees) % outputs if outputs > 1 else (),
        input=InputSpec(n_features=int(text.header["max_feature_idx"] or 0) + 1),
        origin=origin,
        tree_extras={"shrinkage": np.array([float(f.get("shrinkage", 1)) for f in text.trees])},
    )
    forest = replace(forest, input=_input_of(forest, text), cover=_cover(forest))
    return average_of_leaves(forest)


def _averages(header: Mapping[str, str | None]) -> bool:
    return "average_output" in header


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


# New splits


def split_limits(forest: Forest) -> SplitLimits:
    """Return which new splits a model of LightGBM can have.

    A column is split by sets if it has been before, since LightGBM, and this module, take a column
    in one way only. NaN goes right there. Unusable are

    - other columns of categories, and those of which LightGBM has seen one value only,
    - with `zero_as_missing`, columns that were never split on: nobody knows whether zero counts as
      missing in them,
    - with constraints on interactions, columns that no group names: LightGBM does not use them.
    """
    limits = limits_of_rows(forest)
    header, parameters = _header_of(forest)
    categorical, usable = np.zeros((2, forest.n_features), np.bool_)
    categorical[list(forest.input.truncated)] = True
    usable |= [info.startswith("[") for info in _infos(header, forest.n_features)]
    if re.search(r"(?m)^\[zero_as_missing: 1\]$", parameters):
        split = np.bincount(forest.feature[forest.left >= 0], minlength=forest.n_features) > 0
        split[list(forest.input.zero_is_missing)] = True
        usable &= split
    usable |= categorical
    if limits.interactions:
        named = {column for group in limits.interactions for column in group}
        usable &= np.isin(np.arange(forest.n_features), list(named))
    known = forest.input.known_categories
    most = [len(known.get(column, ())) or MANY_CATEGORIES for column in range(forest.n_features)]
    return replace(
        limits,
        missing=np.where(categorical, RIGHT, limits.missing).astype(np.int8),
        categorical=categorical,
        usable=usable,
        max_category=np.where(categorical, most, 0),
    )


def _header_of(forest: Forest) -> tuple[Mapping[str, Any], str]:
    """Return header and parameters of the text that `forest` was read from."""
    state = {} if forest.origin is None else forest.origin.state
    return state.get("header", {}), state.get("parameters", "")


def _infos(header: Mapping[str, Any], n_features: int) -> list[str]:
    """Return for each column its range, such as [0:1], the list of its codes, or "none"."""
    infos = str(header.get("feature_infos") or "").split(" ")
    return infos if len(infos) == n_features else ["[]"] * n_features


# Out


def to_native(forest: Forest, origin: Origin) -> Any:
    """Write `forest` as a fitted model of the class it was read from."""
    check_writable(forest, origin, _CLASSES, "LightGBM", by_class=True)
    state = deepcopy(dict(origin.state))  # lists in it become parameters of the model
    outputs = count_outputs(state["header"])
    if forest.n_outputs != outputs:
        raise InvalidForestError(
            f"The forest must have {outputs} outputs, like the model that it was read from; got "
            f"{forest.n_outputs}."
        )
    trees = _write_trees(forest, average=_averages(state["header"]))
    rounds = len(trees) // outputs
    parameters = re.sub(
        r"(?m)^\[num_iterations: .*\]$", f"[num_iterations: {rounds}]", state["parameters"]
    )
    text = ModelText(state["header"], trees, parameters, state["pandas_categorical"])
    booster = Booster(model_str=compose_model(text))
    booster.params = _with_rounds(state["booster_params"], rounds)
    if origin.model_class == "Booster":
        return booster
    model = _CLASSES[origin.model_class](**_with_labels(_with_rounds(state["params"], rounds)))
    for name, attribute in _with_labels(state["attributes"]).items():
        if hasattr(model, name) or (name in _OF_RANKERS and isinstance(model, LGBMRanker)):
            setattr(model, name, attribute)
    if isinstance(model, LGBMClassifier):
        _set_labels(model, labels_of(origin))
    model._Booster = booster
    model.fitted_ = True
    return model


def _set_labels(model: LGBMClassifier, labels: NDArray[Any]) -> None:
    """Let a classifier know its labels, as its `fit` does."""
    model._le = LabelEncoder()
    model._le.classes_ = labels
    model._class_map = dict(zip(labels, model._le.transform(labels), strict=True))
    model._classes = labels
    model._n_classes = len(labels)


def _with_rounds(params: dict[str, Any], rounds: int) -> dict[str, Any]:
    """Return `params` with the number of trees that there are, under whatever name they have it."""
    names = _ConfigAliases.get("num_iterations")
    return {name: rounds if name in names else param for name, param in params.items()}


def _write_trees(forest: Forest, *, average: bool) -> list[dict[str, str]]:
    """Return the trees as text, whose sum or average is the forest, in rounds of one an output."""
    compact = forest.compact()
    output = compact.tree_output if compact.tree_output.size else np.zeros(compact.n_trees)
    by_output = [np.flatnonzero(output == k).tolist() for k in range(compact.n_outputs)]
    rounds = max(1, *map(len, by_output))
    columns = [
        _write_output(compact, trees, float(base), rounds, average=average)
        for trees, base in zip(by_output, compact.base, strict=True)
    ]
    return [tree for trees in zip(*columns, strict=True) for tree in trees]


def _write_output(
    forest: Forest, numbers: list[int], base: float, rounds: int, *, average: bool
) -> list[dict[str, str]]:
    """Return the trees of one output, and leaves that add nothing up to `rounds` of them."""
    trees = []
    for place, i in enumerate(numbers):
        nodes = slice(int(forest.offsets[i]), int(forest.offsets[i + 1]))
        value = forest.value[nodes, 0] * (forest.scale[i] / (1.0 / rounds if average else 1.0))
        shrinkage = float(forest.tree_extras["shrinkage"][i])
        if base != 0.0 and (average or place == 0):
            # Like the library, which says so by a shrinkage of 1.
            value, shrinkage = value + base, 1.0
        trees.append(write_tree(forest, nodes, value, shrinkage))
    for place in range(len(numbers), rounds):
        trees.append(constant_tree(base if average or place == 0 else 0.0))
    return trees
