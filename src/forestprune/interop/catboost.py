"""CatBoost: regressors, and plain models with a regression or binary loss, on numeric features.

Models come in and go out through CatBoost's JSON format. Symmetric (oblivious) trees become plain
binary ones. They are written as symmetric trees again if all of them still are, as after cutting
whole layers, and as non-symmetric trees otherwise: CatBoost keeps one kind a model.

Parameters are kept as they were, `iterations` too: it says how long to train, `tree_count_` how
many trees there are. What the training rows alone could tell about the pruned model is not carried
over: `evals_result_` and `best_score_` are empty, `best_iteration_` is None.
"""

import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
from catboost import CatBoost, CatBoostError, CatBoostRegressor, Pool
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from forestprune.build import RawTree, average_of_leaves, build_forest
from forestprune.exceptions import UnsupportedModelError
from forestprune.forest import Forest, Origin
from forestprune.frames import listed
from forestprune.inputs import InputSpec

_CLASSES = {cls.__name__: cls for cls in (CatBoostRegressor, CatBoost)}

_WHY_NOT = {
    "CatBoostClassifier": "Classifiers are not read yet.",
    "CatBoostRanker": "Rankers are not read: what they predict is not on the scale of y.",
}

# What the sum of the trees stands for, by loss function.
_PREDICTS = (
    dict.fromkeys(("RMSE", "MAE", "MAPE", "RMSPE", "Huber", "LogCosh", "Lq"), "y")
    | dict.fromkeys(("Poisson", "Tweedie"), "the log of the mean of y")
    | dict.fromkeys(("Logloss", "CrossEntropy"), "the log-odds of y")
)
# And by those that have a level `alpha`.
_AT_LEVEL = {
    "Quantile": "the {} quantile of y",
    "Expectile": "the {} expectile of y",
    "LogLinQuantile": "the log of the {} quantile of y",
}

# What a model says of its training that is no longer true of the pruned one: its identity, its
# scores and, if it is a sum of models, all about each of them.
_NO_LONGER_TRUE = re.compile(r"model_guid|training|summand_scale_and_biases|model\d+:.*")


def from_model(model: Any) -> Forest:
    """Read a fitted CatBoostRegressor, or a CatBoost with a loss that is known."""
    if type(model) not in _CLASSES.values():
        raise UnsupportedModelError(_refusal(model))
    if not model.is_fitted():
        raise NotFittedError(f"This {type(model).__name__} is not fitted yet. Call fit() first.")
    if not model.tree_count_:
        raise UnsupportedModelError(
            "A model with at least one tree is required; this one has none, and CatBoost itself "
            "cannot predict with it."
        )
    _check_features(model)
    document = _as_json(model)
    predicts = _what_it_predicts(document["model_info"])
    features = document["features_info"]["float_features"]
    scale, bias = document["scale_and_bias"]
    leaves = model.get_tree_leaf_counts().astype(np.int64)
    forest = build_forest(
        _read_trees(document),
        n_nodes=int((2 * leaves - 1).sum()),
        scale=np.full(leaves.size, float(scale)),
        base=np.array(bias, dtype=np.float64),
        input=_input(model, features),
        origin=Origin("catboost", type(model).__name__, _describe(model, document), predicts),
    )
    return average_of_leaves(forest)


def to_native(forest: Forest, origin: Origin) -> Any:
    """Write `forest` as a fitted model of the class it was read from."""
    if origin.model_class not in _CLASSES:
        raise UnsupportedModelError(
            f"One of {', '.join(_CLASSES)} can be written, not {origin.model_class!r}."
        )
    state = deepcopy(dict(origin.state))  # lists in it become parameters of the model
    compact = forest.compact()
    document = _write_trees(compact, state) if compact.n_trees else _write_constant(forest, state)
    document |= {"model_info": state["info"], "scale_and_bias": [1.0, compact.base.tolist()]}
    # Loading a file replaces a model's parameters; loading a blob leaves them alone.
    params = {name: _decoded(param) for name, param in state["params"].items()}
    model = _CLASSES[origin.model_class]().set_params(**params)
    model.load_model(blob=_as_blob(document))
    # CatBoost itself forgets it whenever a model is loaded or copied.
    model._n_features_in = forest.n_features
    if state["weighted"]:
        model.get_feature_importance()  # as fit() does: it fills feature_importances_
    return model


def table_of(X: Any) -> Any:
    """Return the rows of a Pool as a table; None if `X` is none."""
    if not isinstance(X, Pool):
        return None
    if X.is_quantized():
        raise ValueError(
            "A Pool with the numbers it was made of is required; this one is quantized and keeps "
            "only bins. Pass the table, or a Pool of it."
        )
    if len(X.get_baseline()):
        raise ValueError(
            "A Pool without a baseline is required: CatBoost adds it to what the trees predict, "
            "and the forest would not. Pass the table, or a Pool of it alone."
        )
    try:
        rows = X.get_features()
    except CatBoostError as error:
        raise ValueError(f"A Pool of numeric features is required ({error}).") from error
    names = X.get_feature_names()
    if not all(names):
        return rows
    import pandas as pd  # CatBoost cannot do without it either

    return pd.DataFrame(rows, columns=names, copy=False)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model file: JSON if its name ends in .json, else CatBoost's binary format.

    The file does not say which class it came from, so the model is a plain CatBoost.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    form = "json" if path.suffix.lower() == ".json" else "cbm"
    problem = "it holds no trees"
    try:
        model = CatBoost().load_model(str(path), format=form)
    except CatBoostError as error:
        problem = str(error)
    else:
        if model.tree_count_:
            return model
    raise ValueError(
        f"{path} is not a CatBoost model that can be used ({problem}). A file that save_model() "
        "wrote is required, named .json if it was written with format='json'."
    )


# What is read and what is not


def _refusal(model: Any) -> str:
    cls = type(model)
    reason = _WHY_NOT.get(cls.__name__, "")
    for base in cls.__mro__[1:]:
        if base in _CLASSES.values() and not reason:
            reason = (
                f"It is a subclass of {base.__name__}; a subclass may predict differently, "
                "so only the class itself is read."
            )
    return f"A fitted {' or '.join(_CLASSES)} is required, got {cls.__name__}. {reason}".rstrip()


def _check_features(model: Any) -> None:
    """Raise UnsupportedModelError unless all features are numbers."""
    for kind, columns in (
        ("categorical", model.get_cat_feature_indices()),
        ("text", model.get_text_feature_indices()),
        ("embedding", model.get_embedding_feature_indices()),
    ):
        if columns:
            names = [model.feature_names_[column] for column in columns]
            raise UnsupportedModelError(
                f"A model of numeric features is required; this one has {kind} features "
                f"({listed(names)}). Encode them as numbers before training."
            )


def _what_it_predicts(info: Mapping[str, Any]) -> str:
    if "params" in info:
        loss = info["params"]["loss_function"]
    else:  # a sum of models
        loss = json.loads(info.get("loss_function", '{"type": "an unknown loss"}'))
    kind = loss["type"]
    if kind in _PREDICTS:
        return _PREDICTS[kind]
    if kind in _AT_LEVEL:
        level = float(loss["params"].get("alpha", 0.5))
        in_the_middle = level == 0.5 and kind != "LogLinQuantile"  # the median or the mean
        return "y" if in_the_middle else _AT_LEVEL[kind].format(f"{level:g}")
    raise UnsupportedModelError(
        f"The loss function must be one of {', '.join([*_PREDICTS, *_AT_LEVEL])}; this model was "
        f"trained with {kind}, and its prediction is not one number whose meaning is known."
    )


def _input(model: Any, features: list[dict[str, Any]]) -> InputSpec:
    """Describe the rows; CatBoost takes any number, and NaN also where it has seen none."""
    known = {feature["flat_feature_index"]: feature["feature_id"] for feature in features}
    # Unused features may have been dropped, and only a model fresh from training counts them.
    n_features = max([column + 1 for column in known] + [getattr(model, "n_features_in_", 0)])
    names = tuple(known.get(column, "") for column in range(n_features))
    # Columns without names are called by their numbers.
    named = all(names) and names != tuple(map(str, range(n_features)))
    return InputSpec(
        n_features=n_features,
        feature_names=names if named else None,
        dtype="float32",
        ensure_all_finite=False,
        sparse="zero",
    )


def _describe(model: Any, document: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "params": {name: _encoded(name, param) for name, param in model.get_params().items()},
        "info": {
            name: entry
            for name, entry in document["model_info"].items()
            if not _NO_LONGER_TRUE.fullmatch(name)
        },
        "features": [
            {name: entry for name, entry in feature.items() if name != "borders"}
            for feature in document["features_info"]["float_features"]
        ],
        "weighted": len(model.get_leaf_weights()) > 0,
    }


def _encoded(name: str, param: Any) -> Any:
    """Return `param` as JSON can hold it."""
    if param is None or isinstance(param, bool | int | float | str):
        return param
    if hasattr(param, "tolist"):  # of numpy or pandas
        return param.tolist()
    if isinstance(param, list | tuple | range | set | frozenset):
        return [_encoded(name, item) for item in param]
    if isinstance(param, dict):  # in pairs, for JSON has no keys but strings
        return {"pairs": [[_encoded(name, key), _encoded(name, param[key])] for key in param]}
    raise UnsupportedModelError(
        f"The parameter {name} must be a plain value, got {type(param).__name__}, which could not "
        "be written back. save_model() and load_model() give a model without it."
    )


def _decoded(param: Any) -> Any:
    """Undo _encoded."""
    if isinstance(param, list):
        return [_decoded(item) for item in param]
    if isinstance(param, dict):
        return {key: _decoded(entry) for key, entry in param["pairs"]}
    return param


# Reading trees. A row goes right if x > border.


def _read_trees(document: Mapping[str, Any]) -> Iterator[RawTree]:
    features = document["features_info"]["float_features"]
    columns = np.full(max(f["feature_index"] for f in features) + 1, -1)
    nan_left = np.zeros(columns.size, np.bool_)
    for f in features:
        columns[f["feature_index"]] = f["flat_feature_index"]
        nan_left[f["feature_index"]] = _nan_goes_left(f)
    for symmetric in document.get("oblivious_trees") or ():
        yield _read_symmetric(symmetric, columns, nan_left)
    for root in document.get("trees") or ():
        yield _read_nested(root, columns, nan_left)


def _nan_goes_left(feature: Mapping[str, Any]) -> bool:
    # "AsIs" compares NaN with the border, which is false like "AsFalse".
    return bool(feature["nan_value_treatment"] != "AsTrue")


def _read_symmetric(
    tree: Mapping[str, Any], columns: NDArray[Any], nan_left: NDArray[Any]
) -> RawTree:
    """Expand a tree that asks the same in all nodes of a layer."""
    splits = tree["splits"] or []
    depth = len(splits)
    value, cover = (
        _turn_bits(np.array(tree.get(name) or np.zeros(2**depth), dtype=np.float64))
        for name in ("leaf_values", "leaf_weights")
    )
    layers = [cover]
    while layers[0].size > 1:
        layers.insert(0, layers[0].reshape(-1, 2).sum(axis=1))
    inside = 2**depth - 1
    node = np.arange(2 * inside + 1)
    left = np.where(node < inside, 2 * node + 1, -1)
    # What a split asks, for every node of its layer, then nothing for the leaves.
    of_layer = np.repeat(np.arange(depth + 1), 2 ** np.arange(depth + 1))
    feature = np.array([s["float_feature_index"] for s in splits] + [0])[of_layer]
    return RawTree(
        left=left,
        right=left + (left >= 0),
        feature=columns[feature],
        threshold=np.array([s["border"] for s in splits] + [0.0])[of_layer],
        missing_left=nan_left[feature],
        cover=np.concatenate(layers),
        value=np.concatenate([np.zeros(inside), value])[:, np.newaxis],
    )


def _turn_bits(leaves: NDArray[Any]) -> NDArray[Any]:
    """Sort a symmetric tree's leaves from left to right, or back.

    In CatBoost the root decides on the lowest bit of a leaf's number, from left to right on the
    highest.
    """
    depth = leaves.size.bit_length() - 1
    return leaves.reshape((2,) * depth).T.ravel()


def _read_nested(
    root: dict[str, Any], columns: NDArray[Any], nan_left: NDArray[Any]
) -> RawTree:
    layer = [root]
    nodes: list[dict[str, Any]] = []
    bounds = [0]
    while layer:
        nodes += layer
        bounds.append(len(nodes))
        layer = [
            child for node in layer if "split" in node for child in (node["left"], node["right"])
        ]
    nothing = {"float_feature_index": 0, "border": 0.0}
    splits = [node.get("split", nothing) for node in nodes]
    feature = np.array([split["float_feature_index"] for split in splits])
    is_split = np.array(["split" in node for node in nodes])
    left = np.where(is_split, 2 * np.cumsum(is_split) - 1, -1)
    cover = np.array([node.get("weight", 0.0) for node in nodes], dtype=np.float64)
    for a, b in zip(bounds[-2::-1], bounds[:0:-1], strict=True):
        parents = a + np.flatnonzero(is_split[a:b])
        cover[parents] = cover[left[parents]] + cover[left[parents] + 1]
    value = np.array([node.get("value", 0.0) for node in nodes], dtype=np.float64)
    return RawTree(
        left=left,
        right=left + is_split,
        feature=columns[feature],
        threshold=np.array([split["border"] for split in splits]),
        missing_left=nan_left[feature],
        cover=cover,
        value=value[:, np.newaxis],
    )


# Writing trees. Splits are numbers in the list of all borders, feature by feature.


def _write_trees(forest: Forest, state: Mapping[str, Any]) -> dict[str, Any]:
    _check_splits(forest, state)
    is_split = forest.left >= 0
    asked = np.stack([forest.feature[is_split], forest.threshold[is_split] + 0.0], axis=1)
    borders, numbers = np.unique(asked, axis=0, return_inverse=True)
    split = np.full(forest.n_nodes, -1)
    split[is_split] = numbers.ravel()
    weights = np.repeat(forest.scale, np.diff(forest.offsets))
    value = forest.value[:, 0] * weights
    document = _features_info(state, borders)
    symmetric = _write_symmetric(forest, split, value, state)
    if symmetric is not None:
        return document | {"oblivious_trees": symmetric}
    return document | {"trees": _write_nested(forest, split, value, state)}


def _write_constant(forest: Forest, state: Mapping[str, Any]) -> dict[str, Any]:
    """Write one tree that is a root and adds nothing: CatBoost cannot do without a tree."""
    tree: dict[str, Any] = {"leaf_values": [0.0], "splits": []}
    if state["weighted"]:
        tree["leaf_weights"] = [float(forest.cover[0]) if forest.n_trees else 1.0]
    return _features_info(state, np.empty((0, 2))) | {"oblivious_trees": [tree]}


def _features_info(state: Mapping[str, Any], borders: NDArray[np.float64]) -> dict[str, Any]:
    features = [
        feature | {"borders": borders[borders[:, 0] == feature["flat_feature_index"], 1].tolist()}
        for feature in state["features"]
    ]
    return {"features_info": {"float_features": features}}


def _check_splits(forest: Forest, state: Mapping[str, Any]) -> None:
    """Raise UnsupportedModelError if a split is none that CatBoost can make."""
    nan_left = np.full(forest.n_features, -1)
    for feature in state["features"]:
        nan_left[feature["flat_feature_index"]] = _nan_goes_left(feature)
    is_split = forest.left >= 0
    wrong = nan_left[forest.feature[is_split]] != forest.missing_left[is_split]
    if forest.category_set.size or wrong.any():
        raise UnsupportedModelError(
            "CatBoost's splits here are on numbers, and NaN goes the same way at all splits on a "
            "feature; this forest has others. Write what was pruned, not what was made anew."
        )


def _write_symmetric(
    forest: Forest, split: NDArray[np.int64], value: NDArray[np.float64], state: Mapping[str, Any]
) -> list[dict[str, Any]] | None:
    """Return the trees as CatBoost's symmetric ones, or None if one of them is not."""
    trees = []
    for a, size, depth in zip(
        forest.offsets[:-1].tolist(), np.diff(forest.offsets), forest.depths, strict=True
    ):
        inside = 2**depth - 1
        widths = 2 ** np.arange(depth)
        asked = split[a + widths - 1]
        if size != 2 * inside + 1 or (split[a : a + inside] != np.repeat(asked, widths)).any():
            return None
        leaves = slice(a + inside, a + size)
        tree = {
            "splits": [{"split_index": number} for number in asked.tolist()],
            "leaf_values": _turn_bits(value[leaves]).tolist(),
        }
        if state["weighted"]:
            tree["leaf_weights"] = _turn_bits(forest.cover[leaves]).tolist()
        trees.append(tree)
    return trees


def _write_nested(
    forest: Forest, split: NDArray[np.int64], value: NDArray[np.float64], state: Mapping[str, Any]
) -> list[dict[str, Any]]:
    nodes: list[dict[str, Any]] = [{"value": v} for v in value.tolist()]
    if state["weighted"]:
        for node, weight in zip(nodes, forest.cover.tolist(), strict=True):
            node["weight"] = weight
    start = np.repeat(forest.offsets[:-1], np.diff(forest.offsets))
    left = (start + forest.left).tolist()
    for v in np.flatnonzero(forest.left >= 0)[::-1].tolist():
        nodes[v] = {
            "split": {"split_index": int(split[v])},
            "left": nodes[left[v]],
            "right": nodes[left[v] + 1],
        }
    return [nodes[root] for root in forest.offsets[:-1].tolist()]


# Through files, for CatBoost has no other way to JSON.


def _as_json(model: Any) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        document: dict[str, Any] = json.loads(path.read_bytes())
    return document


def _as_blob(document: Mapping[str, Any]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        path.write_text(json.dumps(document), encoding="utf-8")
        CatBoost().load_model(str(path), format="json").save_model(str(path), format="cbm")
        return path.read_bytes()
