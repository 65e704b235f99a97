"""scikit-learn: decision trees, random forests, extra trees, bagging over trees, boosting.

What the origin's state holds is plain data: the constructor's parameters, those of the trees
inside, and the scalar fitted attributes. What the training rows alone could tell about the pruned
model is not carried over: a forest's `oob_score_` and `oob_prediction_` are gone, the scores of
boosting's stages are NaN. Neither is a random generator given as `random_state`: it becomes None,
for its state would only matter to another fit.
"""

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from forestprune.exceptions import UnsupportedModelError
from forestprune.forest.build import average_of_leaves, build_forest, with_a_tree
from forestprune.forest.classes import labels_of, plain_labels
from forestprune.forest.forest import Forest
from forestprune.forest.inputs import InputSpec
from forestprune.forest.origin import Origin
from forestprune.interop import sklearn_hist
from forestprune.interop.params import check_writable, refusal
from forestprune.interop.rounds import whole_rounds
from forestprune.interop.sklearn_classes import (
    boosting_start,
    class_weight,
    distribution_values,
    read_distributions,
)
from forestprune.interop.sklearn_params import (
    CLASSIFICATION_TREES,
    REGRESSION_TREES,
    TREES,
    decoded,
    encoded,
)
from forestprune.interop.sklearn_pipeline import forest_of_pipeline
from forestprune.interop.sklearn_trees import read_tree, write_tree

# Fitted attributes that are carried over as they are, where they are plain numbers or None. With
# sample weights `_sample_weight` is an array and stays behind, and with it `estimators_samples_`.
_ATTRIBUTES = (
    "max_features_",
    "n_trees_per_iteration_",
    "_n_samples",
    "_n_samples_bootstrap",
    "_max_samples",
    "_max_features",
    "_sample_weight",
)
_NO_SEED = -1

# What to say of a tree of which nothing is known any more.
_UNKNOWN = {"n_node_samples": 1, "random_state": _NO_SEED}  # and 0 for all else


@dataclass(frozen=True)
class _Parts:
    """A fitted estimator, taken apart."""

    trees: list[Any]
    scale: float
    base: NDArray[np.float64]
    extras: dict[str, NDArray[Any]] = field(default_factory=dict)  # one entry a tree
    tree_output: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))


# Taking apart, one function a family of classes.


def _read_tree(model: Any) -> _Parts:
    return _Parts([model], 1.0, np.zeros(_n_outputs(model, model)))


def _read_average(model: Any) -> _Parts:
    trees = model.estimators_
    return _Parts(trees, 1.0 / len(trees), np.zeros(_n_outputs(model, trees[0])))


def _n_outputs(model: Any, tree: Any) -> int:
    """Return how many numbers are averaged: of two classes, the probability of the second."""
    if not is_classifier(model):
        return int(tree.n_outputs_)
    return 1 if len(model.classes_) == 2 else len(model.classes_)


def _read_bagging(model: Any) -> _Parts:
    name = type(model).__name__
    trees = CLASSIFICATION_TREES if is_classifier(model) else REGRESSION_TREES
    for tree in model.estimators_:
        if type(tree) not in trees:
            raise UnsupportedModelError(
                f"{name} is read if its estimators are "
                f"{' or '.join(cls.__name__ for cls in trees)}, got {type(tree).__name__}."
            )
    if len({len(columns) for columns in model.estimators_features_}) > 1:
        raise UnsupportedModelError(
            f"{name} is read if all its trees have the same number of features; here "
            "max_features was changed between two fits with warm_start."
        )
    extras = {
        "bagging_seed": np.array(model._seeds),
        "features": np.stack(model.estimators_features_),
    }
    return replace(_read_average(model), extras=extras)


def _read_boosted_classes(model: Any) -> _Parts:
    base, n_rounds = boosting_start(model), len(model.estimators_)
    output = np.tile(np.arange(base.size), n_rounds) if base.size > 1 else np.empty(0, np.int64)
    trees = list(model.estimators_.ravel())
    return _Parts(trees, float(model.learning_rate), base, tree_output=output)


def _read_boosting(model: Any) -> _Parts:
    if isinstance(model.init_, str):  # "zero"
        base = 0.0
    elif type(model.init_) is DummyRegressor:
        base = float(np.ravel(model.init_.constant_)[0])
    else:
        raise UnsupportedModelError(
            "GradientBoostingRegressor is read if it starts from a constant: init=None, 'zero' or "
            f"a DummyRegressor. Here init is {type(model.init_).__name__}, whose prediction "
            "depends on the row and would not be part of the forest."
        )
    return _Parts(list(model.estimators_[:, 0]), float(model.learning_rate), np.array([base]))


# Putting together again: the parameters and scalar attributes are set, the trees are missing.


def _write_average(model: Any, forest: Forest, state: Mapping[str, Any]) -> None:
    constants = np.tile(forest.base, (forest.n_trees, 1))
    model.estimators_ = _write_trees(forest, state, 1.0 / forest.n_trees, constants)
    default = DecisionTreeClassifier() if is_classifier(model) else DecisionTreeRegressor()
    model.estimator_ = clone(default if model.estimator is None else model.estimator)


def _write_forest(model: Any, forest: Forest, state: Mapping[str, Any]) -> None:
    _write_average(model, forest, state)
    model.n_outputs_ = 1 if is_classifier(model) else forest.n_outputs


def _write_bagging(model: Any, forest: Forest, state: Mapping[str, Any]) -> None:
    _write_average(model, forest, state)
    model.estimators_features_ = [np.array(row) for row in forest.tree_extras["features"]]
    model._seeds = np.array(forest.tree_extras["bagging_seed"])


def _write_boosted_classes(model: Any, forest: Forest, state: Mapping[str, Any]) -> None:
    outputs = forest.n_outputs
    if isinstance(state["start"], list):
        start = DummyClassifier(strategy="prior").fit(
            np.zeros((model.n_classes_, forest.n_features)), model.classes_
        )
        start.class_prior_ = np.array(state["start"])
        model.init_ = start
    else:
        model.init_ = state["start"]
    model._loss = model._get_loss(sample_weight=None)
    whole, rounds = whole_rounds(forest, _UNKNOWN)
    constants = np.zeros((whole.n_trees, 1))
    if model.learning_rate > 0:
        # What the start cannot say, the first tree of each class adds.
        begun = np.array(state["start_raw"])
        constants[:outputs, 0] = (forest.base - begun) / model.learning_rate
    trees = _write_trees(whole, state, model.learning_rate, constants)
    model.estimators_ = np.array(trees, dtype=object).reshape(rounds, outputs)
    _finish_boosting(model, rounds)


def _write_boosting(model: Any, forest: Forest, state: Mapping[str, Any]) -> None:
    constants = np.zeros((forest.n_trees, 1))
    if model.init == "zero" and model.learning_rate > 0:
        # Converters read the parameter, not init_, so it has to stay true.
        model.init_ = "zero"
        constants[0] = forest.base / model.learning_rate
    else:
        start = DummyRegressor(strategy="constant", constant=forest.base[0])
        model.init_ = start.fit(np.zeros((1, forest.n_features)), forest.base)
    trees = _write_trees(forest, state, model.learning_rate, constants)
    model.estimators_ = np.array(trees, dtype=object).reshape(-1, 1)
    model._loss = model._get_loss(sample_weight=None)
    _finish_boosting(model, len(trees))


def _finish_boosting(model: Any, rounds: int) -> None:
    """Set what training recorded of each stage: no longer known, but a warm start looks for it."""
    model.set_params(n_estimators=rounds)
    model.n_estimators_ = rounds
    model._rng = check_random_state(model.random_state)
    model.train_score_ = np.full(rounds, np.nan)
    if model.subsample < 1:
        model.oob_improvement_ = np.full(rounds, np.nan)
        model.oob_scores_ = np.full(rounds, np.nan)
        model.oob_score_ = np.nan


_Writer = Callable[[Any, Forest, Mapping[str, Any]], None]
_FAMILIES: dict[type, tuple[Callable[[Any], _Parts], _Writer | None]] = {
    DecisionTreeRegressor: (_read_tree, None),  # the tree is the model
    ExtraTreeRegressor: (_read_tree, None),
    RandomForestRegressor: (_read_average, _write_forest),
    ExtraTreesRegressor: (_read_average, _write_forest),
    BaggingRegressor: (_read_bagging, _write_bagging),
    GradientBoostingRegressor: (_read_boosting, _write_boosting),
    DecisionTreeClassifier: (_read_tree, None),
    ExtraTreeClassifier: (_read_tree, None),
    RandomForestClassifier: (_read_average, _write_forest),
    ExtraTreesClassifier: (_read_average, _write_forest),
    BaggingClassifier: (_read_bagging, _write_bagging),
    GradientBoostingClassifier: (_read_boosted_classes, _write_boosted_classes),
}
_HISTOGRAMS = (HistGradientBoostingRegressor, HistGradientBoostingClassifier)
_BOOSTED = (GradientBoostingRegressor, GradientBoostingClassifier)
_CLASSES = {cls.__name__: cls for cls in (*_FAMILIES, *_HISTOGRAMS)}

_WHY_NOT = {
    "AdaBoostRegressor": "It predicts the weighted median of its trees; only sums can be pruned.",
    **dict.fromkeys(("GridSearchCV", "RandomizedSearchCV"), "Pass its best_estimator_."),
    "TransformedTargetRegressor": "Pass its regressor_, and y as that one sees it.",
    "AdaBoostClassifier": "Its trees vote or are weighted by more than a sum can tell.",
    "CalibratedClassifierCV": "Prune the classifier inside, and calibrate the small one.",
}


def from_model(model: Any) -> Forest:
    """Read a fitted scikit-learn estimator, or that at the end of a pipeline."""
    if isinstance(model, FrozenEstimator):
        return Forest.from_model(model.estimator)
    if isinstance(model, Pipeline):
        return forest_of_pipeline(model)
    cls = type(model)
    if cls not in _CLASSES.values():
        reason = _WHY_NOT.get(cls.__name__, "")
        raise UnsupportedModelError(refusal(cls, _CLASSES.values(), reason))
    check_is_fitted(model)
    classes: dict[str, Any] = {}
    if is_classifier(model):
        classes = _classes(model)
    if cls in _HISTOGRAMS:
        return sklearn_hist.from_model(model, classes)
    averages = cls not in _BOOSTED
    parts = _FAMILIES[cls][0](model)
    names = getattr(model, "feature_names_in_", None)
    subsets = parts.extras.get("features", [None] * len(parts.trees))
    seeds = np.array([_seed(tree) for tree in parts.trees], dtype=np.int64)
    forest = build_forest(
        (
            read_tree(
                tree.tree_,
                columns,
                read_distributions(tree, len(classes["classes"])) if classes and averages else None,
            )
            for tree, columns in zip(parts.trees, subsets, strict=True)
        ),
        n_nodes=sum(tree.tree_.node_count for tree in parts.trees),
        scale=np.full(len(parts.trees), parts.scale),
        base=parts.base,
        input=InputSpec(
            n_features=int(model.n_features_in_),
            feature_names=None if names is None else tuple(names.tolist()),
            dtype="float32",
            ensure_all_finite="allow-nan" if _takes_nan(model, parts.trees[0]) else True,
            sparse="zero",
        ),
        origin=Origin(
            "sklearn",
            cls.__name__,
            _describe(model, parts),
            **_objective(model, parts.trees[0]),
            averages=averages,
            monotone=_monotone(model, subsets),
            **classes,
        ),
        tree_output=parts.tree_output,
        tree_extras=parts.extras | {"random_state": seeds},
    )
    if not averages and model.loss != "squared_error":
        # Other losses set the leaves after the tree is grown and leave the splits as they were.
        forest = average_of_leaves(forest)
    return forest


def to_native(forest: Forest, origin: Origin) -> Any:
    """Write `forest` as a fitted estimator of the class it was read from."""
    cls = _CLASSES.get(origin.model_class)
    by_class = cls in (GradientBoostingClassifier, HistGradientBoostingClassifier)
    check_writable(forest, origin, _CLASSES, "scikit-learn", by_class=by_class)
    if cls in _HISTOGRAMS:
        return sklearn_hist.to_native(forest, origin, _CLASSES[origin.model_class])
    if forest.category_set.size:
        raise UnsupportedModelError(
            "scikit-learn's trees split on numbers only; this forest has categorical splits."
        )
    forest = forest.compact() if by_class else with_a_tree(forest, _UNKNOWN)
    state = deepcopy(dict(origin.state))  # lists in it become parameters of the model
    cls = _CLASSES[origin.model_class]
    write = _FAMILIES[cls][1]
    if write is None:
        model = _write_trees(forest, state, 1.0, forest.base[np.newaxis])[0]
        model.set_params(**decoded(state["params"]))
        if origin.classes:
            model.classes_ = labels_of(origin)
    else:
        model = cls(**decoded(state["params"])).set_params(n_estimators=max(forest.n_trees, 1))
        if origin.classes:
            model.classes_ = labels_of(origin)
            model.n_classes_ = len(origin.classes)
        for name in _ATTRIBUTES:
            if name in state["attributes"]:
                setattr(model, name, state["attributes"][name])
        model.n_features_in_ = forest.n_features
        write(model, forest, state)
    if forest.feature_names is not None:
        model.feature_names_in_ = np.array(forest.feature_names, dtype=object)
    return model


def _objective(model: Any, tree: Any) -> dict[str, Any]:
    """Return the loss that boosting, or the criterion that trees alone, were trained for."""
    if is_classifier(model):
        boosted = isinstance(model, GradientBoostingClassifier)
        if boosted and model.loss != "log_loss":
            raise UnsupportedModelError(
                f"GradientBoostingClassifier is read if its loss is 'log_loss', got "
                f"{model.loss!r}: what its trees add up to is no log-odds."
            )
        several = len(model.classes_) > 2
        link = ("softmax" if several else "logit") if boosted else "identity"
        return {"objective": "log_loss" if boosted else "brier", "link": link}
    name = getattr(model, "loss", tree.criterion)
    params = {"level": float(model.alpha)} if name == "quantile" else {}
    # Friedman's improvement chooses other splits, for the same loss.
    name = "squared_error" if name == "friedman_mse" else name
    return {"objective": name, "objective_params": params}


def _monotone(model: Any, subsets: Iterable[NDArray[Any] | None]) -> tuple[int, ...]:
    """Return the constraints of a model: what all its trees that know a column promise of it."""
    bagged = isinstance(model, BaggingRegressor | BaggingClassifier)
    trees = getattr(model, "estimator_", model) if bagged else model
    constraints = getattr(trees, "monotonic_cst", None)
    if constraints is None:
        return ()
    everything = np.arange(int(model.n_features_in_))
    promised: list[set[int]] = [set() for _ in everything]
    for columns in subsets:
        given = everything if columns is None else columns
        for column, sign in zip(given.tolist(), np.asarray(constraints).tolist(), strict=True):
            promised[column].add(int(sign))
    return tuple(signs.pop() if len(signs) == 1 else 0 for signs in promised)


def _takes_nan(model: Any, tree: Any) -> bool:
    """Tell whether `model` accepts NaN; in scikit-learn 1.6 the tags alone do not say."""
    dense = np.empty((0, 0))
    return bool(get_tags(model).input_tags.allow_nan and tree._support_missing_values(dense))


def _classes(model: Any) -> dict[str, Any]:
    """Return what a classifier tells apart; refuse several answers a row, or one for all."""
    if np.ndim(model.classes_[0]) or getattr(model, "n_outputs_", 1) > 1:
        raise UnsupportedModelError(
            f"A {type(model).__name__} is read if it answers one question; this one has several "
            "outputs. Fit one for each."
        )
    if len(model.classes_) < 2:
        raise UnsupportedModelError(
            f"A {type(model).__name__} of two or more classes is required; this one has seen one, "
            f"{model.classes_[0]!r}, and always answers that."
        )
    found = plain_labels(model.classes_)
    weight = class_weight(model)
    return found | {"response": "class"} | ({"class_weight": weight} if weight else {})


def _seed(tree: Any) -> int:
    seed = tree.random_state
    return int(seed) if isinstance(seed, int | np.integer) else _NO_SEED


# Writing trees


def _write_trees(
    forest: Forest, state: Mapping[str, Any], unit: float, constants: NDArray[np.float64]
) -> list[Any]:
    """Return fitted tree estimators whose sum times `unit` is the forest.

    constants[i] is added to every value of tree i. A scale equal to `unit` leaves values as they
    are, to the last bit.
    """
    cls = TREES[state["tree_class"]]
    params = decoded(state["tree_params"])
    features = forest.tree_extras.get("features")
    n_features = forest.n_features if features is None else features.shape[1]
    # Types and arguments differ between versions of scikit-learn: take those of the one installed.
    n_classes = len(forest.origin.classes) if forest.origin and "tree_classes" in state else 0
    rows, columns = max(n_classes, 1), 1 if n_classes or forest.tree_output.size else None
    columns = columns or forest.n_outputs
    target = np.arange(n_classes) if n_classes else np.zeros((1, columns))
    stump = cls(random_state=0).fit(np.zeros((rows, n_features)), target)
    factors = np.divide(forest.scale, unit, out=np.ones(forest.n_trees), where=unit != 0)
    depths = forest.depths
    trees = []
    for i, (a, b) in enumerate(pairwise(forest.offsets.tolist())):
        nodes = slice(a, b)
        seed = int(forest.tree_extras["random_state"][i])
        tree = cls(**params).set_params(random_state=None if seed == _NO_SEED else seed)
        values = forest.value[nodes] * factors[i] + constants[i]
        shaped = distribution_values(values) if n_classes else values[:, :, np.newaxis]
        own = None if features is None else features[i]
        tree.tree_ = write_tree(stump.tree_, forest, nodes, int(depths[i]), shaped, own)
        tree.n_features_in_ = n_features
        tree.n_outputs_ = columns
        if n_classes:
            tree.n_classes_ = np.int64(n_classes)
            tree.classes_ = np.arange(n_classes).astype(state["tree_classes"])
        tree.max_features_ = state["tree_max_features"]
        trees.append(tree)
    return trees


# Estimators as plain data


def _describe(model: Any, parts: _Parts) -> dict[str, Any]:
    params = model.get_params(deep=False)
    first = parts.trees[0]
    known = {name: getattr(model, name) for name in _ATTRIBUTES if hasattr(model, name)}
    attributes = {
        name: encoded(name, attribute)
        for name, attribute in known.items()
        if not isinstance(attribute, np.ndarray)
    }
    extra: dict[str, Any] = {}
    if isinstance(model, GradientBoostingClassifier):
        is_prior = type(model.init_) is DummyClassifier
        extra["start_raw"] = parts.base.tolist()
        extra["start"] = np.ravel(model.init_.class_prior_).tolist() if is_prior else "zero"
    elif is_classifier(model):
        # Trees of an ensemble know classes by their numbers, of one type or another.
        own = model.classes_.dtype.kind if first is model else first.classes_.dtype.kind
        extra["tree_classes"] = "f8" if own == "f" else "i8"
    return extra | {
        "params": {name: encoded(name, param) for name, param in params.items()},
        "attributes": attributes,
        "tree_class": type(first).__name__,
        "tree_params": {name: encoded(name, p) for name, p in first.get_params().items()},
        "tree_max_features": int(first.max_features_),
    }
