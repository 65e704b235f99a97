"""CatBoost: regressors, classifiers, rankers, and plain models of any loss.

Features are numbers, or categories of which splits ask for one at a time, as CatBoost trains them
where there are few (`one_hot_max_size`). A model holds hashes in place of categories.

Models come in and go out through CatBoost's JSON format. Symmetric (oblivious) trees become plain
binary ones. They are written as symmetric trees again if all of them still are, as after dropping
whole levels, and as non-symmetric trees otherwise: CatBoost keeps one kind a model. To train on
from non-symmetric trees, it wants to be asked for such (`grow_policy="Depthwise"`).

Parameters are kept as they were, `iterations` too: it says how long to train, `tree_count_` how
many trees there are. What the training rows alone could tell about the pruned model is not carried
over: `evals_result_` and `best_score_` are empty, `best_iteration_` is None.
"""

import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # CatBoost needs it, too
from catboost import (
    CatBoost,
    CatBoostClassifier,
    CatBoostError,
    CatBoostRanker,
    CatBoostRegressor,
    Pool,
)
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from forestprune.exceptions import UnsupportedModelError
from forestprune.forest.build import average_of_leaves, build_forest, with_a_tree
from forestprune.forest.constraints import within_boxes
from forestprune.forest.forest import Forest
from forestprune.forest.frames import as_floats, column_names, entries_of, listed
from forestprune.forest.inputs import InputSpec
from forestprune.forest.origin import Origin
from forestprune.forest.symmetric import is_symmetric, within_levels
from forestprune.interop.catboost_objective import read_objective, trainings
from forestprune.interop.catboost_trees import (
    as_compared,
    new_node_extras,
    read_trees,
    split_limits,
    write_trees,
)
from forestprune.interop.params import check_writable, plain, refusal, refuse

__all__ = [
    "FILES",
    "as_compared",
    "codes_of_hashes",
    "from_model",
    "load",
    "new_node_extras",
    "save",
    "split_limits",
    "table_of",
    "to_native",
]

_CLASSES = {
    cls.__name__: cls for cls in (CatBoostRegressor, CatBoostClassifier, CatBoostRanker, CatBoost)
}

FILES = (".cbm", ".json")

_INSTEAD = {
    "categorical": "CatBoost keeps hashes in place of their categories and, unless these are few, "
    "statistics of the target for each of them and for combinations, which no tree can hold. "
    "Train with a larger one_hot_max_size, so that splits ask for one category at a time, or "
    "encode them as numbers before training, as sklearn.preprocessing.TargetEncoder does.",
    "text": "Encode them as numbers before training.",
    "embedding": "Give their numbers as columns of their own when training.",
}

_OF_ONES_OWN = "PythonUserDefinedPerObject"
"""What a model that comes from a file has in place of a loss or a metric written in Python."""

# What a model says of itself that is not true of the pruned one: its identity, its scores and, if
# it is a sum of models, everything about each of them.
_NO_LONGER_TRUE = re.compile(r"model_guid|training|summand_scale_and_biases|model\d+:.*")


def from_model(model: Any) -> Forest:
    """Read a fitted model of CatBoost's; a tree adds to all outputs."""
    _check_model(model)
    document = _checked_document(model)
    scale, bias = document["scale_and_bias"]
    objective = read_objective(model, len(bias))
    leaves = model.get_tree_leaf_counts().astype(np.int64)
    info = document["features_info"]
    rows = _input(model, info)
    forest = build_forest(
        read_trees(document),
        n_nodes=int((2 * leaves - 1).sum()),
        scale=np.full(leaves.size, float(scale)),
        base=np.array(bias, dtype=np.float64),
        input=rows,
        origin=Origin(
            "catboost",
            type(model).__name__,
            _describe(model, document),
            **objective,
            # Of several outputs CatBoost takes constraints, too, but its trees do not keep them.
            monotone=_monotone(model, info, rows.n_features) if len(bias) == 1 else (),
        ),
    )
    return _without_broken_promises(average_of_leaves(forest))


def to_native(forest: Forest, origin: Origin) -> Any:
    """Write `forest` as a fitted model of the class it was read from."""
    check_writable(forest, origin, _CLASSES, "CatBoost")
    state = origin.state
    forest = with_a_tree(forest)
    document = write_trees(
        forest, state["features"], state.get("categorical", []), symmetric=state["symmetric"]
    )
    document["scale_and_bias"] = [1.0, forest.base.tolist()]
    params = {name: _decoded(param) for name, param in state["params"].items()}
    model = _CLASSES[origin.model_class]().set_params(**params)
    # Loading a file would replace the parameters.
    model.load_model(blob=_to_blob(document, state["metadata"]))
    # As fit() leaves it. CatBoost forgets the number whenever it loads or copies a model.
    model._n_features_in = forest.n_features
    # Is kept as feature_importances_. A ranker has none: it would need the rows again.
    model.get_feature_importance(type="PredictionValuesChange")
    return model


def table_of(X: Any) -> Any:
    """Return the rows of a Pool as a table; None if `X` is no Pool."""
    if not isinstance(X, Pool):
        return None
    if X.is_quantized():
        raise ValueError(
            "A Pool with the numbers it was made of is required; this one is quantized and keeps "
            "only bins. Pass the table, or a Pool of it."
        )
    if np.size(X.get_baseline()):
        raise ValueError(
            "A Pool without a baseline is required: CatBoost adds it to what the trees predict, "
            "the forest would not. Pass the table, or a Pool of nothing else; if it is the log of "
            "exposure, with rates for y and exposure for sample_weight."
        )
    try:
        rows = X.get_features()
    except CatBoostError as error:
        raise ValueError(f"A Pool of numeric features is required ({error}).") from error
    names = _real_names(X.get_feature_names())
    return rows if names is None else pd.DataFrame(rows, columns=list(names), copy=False)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model file: JSON if its name ends in .json, else CatBoost's binary format.

    The file does not say which class it came from, so the model is a plain CatBoost.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    problem = "it holds no trees"
    form = "json" if path.suffix.lower() == ".json" else "cbm"
    try:
        if form == "json":
            json.loads(path.read_bytes())  # of one that is cut short, CatBoost makes up the rest
        model = CatBoost().load_model(str(path), format=form)
    except (CatBoostError, ValueError) as error:
        problem = str(error)
    else:
        if model.tree_count_:
            return model
    raise ValueError(
        f"{path} does not hold a CatBoost model ({problem}). A file that save_model() wrote is "
        "required; it must be named .json if it was written with format='json'."
    )


def save(model: Any, path: Path) -> None:
    """Write a model file: JSON if its name ends in .json, else CatBoost's binary format."""
    model.save_model(str(path), format=path.suffix.removeprefix("."))


# What is read and what is not


def _check_model(model: Any) -> None:
    """Raise an error that says why `model` cannot be read, if so."""
    if type(model) not in _CLASSES.values():
        raise UnsupportedModelError(refusal(type(model), _CLASSES.values()))
    if not model.is_fitted():
        raise NotFittedError(f"This {type(model).__name__} is not fitted yet. Call fit() first.")
    if not model.tree_count_:
        raise UnsupportedModelError(
            "A model with at least one tree is required; this one has none, and CatBoost itself "
            "cannot predict with it."
        )
    for kind, columns in (
        ("text", model.get_text_feature_indices()),
        ("embedding", model.get_embedding_feature_indices()),
    ):
        if columns:
            _refuse_features(model, kind, columns)
    # Asking such a model for its weights returns random bytes, writing it as JSON may crash.
    if not model._object._has_leaf_weights_in_model():
        raise UnsupportedModelError(
            "A model that knows the weight of its leaves is required; this one does not, as "
            "models of the first versions of CatBoost. Train it again."
        )


def _refuse_features(model: Any, kind: str, columns: list[int]) -> None:
    names = [model.feature_names_[column] for column in columns]
    raise UnsupportedModelError(
        f"A model of numeric features, or of few categories, is required; this one has {kind} "
        f"features: {listed(names)}. {_INSTEAD[kind]}"
    )


def _checked_document(model: Any) -> dict[str, Any]:
    """Return a model as JSON; refuse one whose splits ask for more than numbers and categories."""
    categorical = model.get_cat_feature_indices()
    try:
        document = _to_json(model)
    except CatBoostError:
        if not categorical:
            raise
        _refuse_features(model, "categorical", categorical)
    if document["features_info"].get("ctrs") or document.get("ctr_data"):
        _refuse_features(model, "categorical", categorical)
    return document


def _monotone(model: Any, info: Mapping[str, Any], n_features: int) -> tuple[int, ...]:
    """Return the constraints of the columns, as far as the model says what it was trained with.

    CatBoost counts columns of numbers only. A sum of models keeps what all of them do.
    """
    trained = [
        each.get("tree_learner_options", {}).get("monotone_constraints") or {}
        for each in trainings(model)
    ]
    signs = [0] * n_features
    for each in info.get("float_features") or ():
        given = {int(one.get(str(each["feature_index"]), 0)) for one in trained}
        signs[each["flat_feature_index"]] = given.pop() if len(given) == 1 else 0
    return tuple(signs) if any(signs) else ()


def _without_broken_promises(forest: Forest) -> Forest:
    """Return a forest without its constraints if its trees do not keep them.

    So in sums of models, of which some may have been given negative weights.
    """
    origin = forest.origin
    if origin is None or not origin.monotone or "params" in origin.state["metadata"]:
        return forest
    settled = within_levels(forest) if is_symmetric(forest) else within_boxes(forest)
    return forest if settled is forest else replace(forest, origin=replace(origin, monotone=()))


def _input(model: Any, info: Mapping[str, Any]) -> InputSpec:
    """Describe the rows: CatBoost takes any number, and NaN even if it has seen none."""
    categorical, columns = info.get("categorical_features") or [], model.get_cat_feature_indices()
    features = [*(info.get("float_features") or ()), *categorical]
    known = {feature["flat_feature_index"]: feature["feature_id"] for feature in features}
    # Unused features may have been dropped; only a model fresh from training still counts them.
    n_features = max([column + 1 for column in known] + [getattr(model, "n_features_in_", 0)])
    return InputSpec(
        n_features=n_features,
        feature_names=_real_names([known.get(column, "") for column in range(n_features)]),
        dtype="float32",
        ensure_all_finite=False,
        sparse="refuse" if columns else "zero",
        hashed=_hashed(columns, categorical, n_features) if columns else None,
    )


def _hashed(
    columns: list[int], categorical: list[dict[str, Any]], n_features: int
) -> tuple[tuple[int, ...] | None, ...]:
    """Return for each column the hashes that splits ask for, or None if it is one of numbers."""
    found = {each["flat_feature_index"]: tuple(each.get("values") or ()) for each in categorical}
    # A file may leave out columns that nothing is asked about.
    known = dict.fromkeys(columns, ()) | found
    return tuple(known.get(column) for column in range(n_features))


def codes_of_hashes(X: Any, hashed: tuple[tuple[int, ...] | None, ...]) -> NDArray[np.float64]:
    """Return a table in which categories are replaced by their codes: see `InputSpec.hashed`."""
    names: Sequence[Any] = column_names(X) or range(len(hashed))
    matrix = np.empty((len(X), len(hashed)))
    for j, known in enumerate(hashed):
        column = X.iloc[:, j] if hasattr(X, "iloc") else X[:, j]
        if known is None:
            matrix[:, j] = as_floats(column, names[j])
            continue
        entries = [(type(entry), entry) for entry in entries_of(column)]
        if not entries:  # no rows, which the caller refuses
            continue
        different = list(dict.fromkeys(entries))
        try:
            rows = Pool([[entry] for _, entry in different], cat_features=[0])
        except (CatBoostError, TypeError) as error:
            raise ValueError(
                f"Column {names[j]!r} must hold categories as CatBoost takes them, strings or "
                f"whole numbers ({error})."
            ) from error
        found = np.full(len(different), -1)
        if known:
            found = _asking(known).predict(rows).astype(np.int64) - 1
        codes = dict(zip(different, np.where(found < 0, len(known), found), strict=True))
        matrix[:, j] = [codes[entry] for entry in entries]
    return matrix


@lru_cache(maxsize=64)
def _asking(hashes: tuple[int, ...]) -> Any:
    """Return a model that predicts the place of a category among some hashes, counted from 1.

    Only CatBoost can tell the hash of a category, and only in its predictions.
    """
    trees = [
        {"splits": [{"split_index": j}], "leaf_values": [0.0, j + 1.0], "leaf_weights": [1.0, 1.0]}
        for j in range(len(hashes))
    ]
    feature = {"feature_id": "", "feature_index": 0, "flat_feature_index": 0}
    document = {
        "oblivious_trees": trees,
        "scale_and_bias": [1.0, [0.0]],
        "features_info": {
            "float_features": [],
            "categorical_features": [feature | {"values": list(hashes)}],
        },
    }
    return CatBoost().load_model(blob=_to_blob(document, {}))


def _real_names(names: list[str]) -> tuple[str, ...] | None:
    """Return `names`, or None if columns have none, or are called by their numbers."""
    given = all(names) and names != [str(column) for column in range(len(names))]
    return tuple(names) if given else None


# Models as plain data


def _describe(model: Any, document: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "params": plain("params", model.get_params(), _not_plain),
        "metadata": {
            name: text
            for name, text in dict(model.get_metadata()).items()
            if not _NO_LONGER_TRUE.fullmatch(name)
        },
        "features": [
            {name: entry for name, entry in feature.items() if name != "borders"}
            for feature in document["features_info"].get("float_features") or ()
        ],
        "categorical": [
            {name: entry for name, entry in feature.items() if name != "values"}
            for feature in document["features_info"].get("categorical_features") or ()
        ],
        "symmetric": "oblivious_trees" in document,
    }


def _not_plain(name: str, param: Any) -> Any:
    if isinstance(param, dict):  # in pairs: JSON has no keys that are numbers
        return {"pairs": [[key, plain(name, item, _not_plain)] for key, item in param.items()]}
    if name in ("loss_function", "objective", "eval_metric"):
        return _OF_ONES_OWN
    return refuse(name, param)


def _decoded(param: Any) -> Any:
    """Undo what was done to parameters that are not plain."""
    if isinstance(param, list):
        return [_decoded(item) for item in param]
    if isinstance(param, dict):
        pairs = param["pairs"] if set(param) == {"pairs"} else param.items()
        return {key: _decoded(entry) for key, entry in pairs}
    return param


# CatBoost reads and writes JSON in files only.


def _to_json(model: Any) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        document: dict[str, Any] = json.loads(path.read_bytes())
    return document


def _to_blob(document: Mapping[str, Any], metadata: Mapping[str, str]) -> bytes:
    """Return a model in CatBoost's binary format."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "model.json", Path(folder) / "model.cbm"
        source.write_text(json.dumps(document), encoding="utf-8")
        model = CatBoost().load_model(str(source), format="json")
        # It would round numbers in them if they came with the rest.
        for name, text in metadata.items():
            model.get_metadata()[name] = text
        model.save_model(str(target))
        return target.read_bytes()
