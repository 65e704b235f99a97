"""scikit-learn: decision trees, random forests, extra trees, bagging over trees, boosting.

Regressors and classifiers. The leaves of class trees hold the share of each class; the forest has
that of the second of two classes, or those of all. Boosting for several classes has trees by class.

What the origin's state holds is plain data: the constructor's parameters, those of the trees
inside, and the scalar fitted attributes. What the training rows alone could tell about the pruned
model is not carried over: a forest's `oob_score_`, `oob_prediction_` and `oob_decision_function_`
are gone, the scores of boosting's stages are NaN. Neither is a random generator given as
`random_state`: it becomes None, for its state would only matter to another fit.
"""

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
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
from forestprune.forest.build import RawTree, average_of_leaves, build_forest, with_a_tree
from forestprune.forest.classes import labels_of
from forestprune.forest.forest import Forest
from forestprune.forest.inputs import InputSpec
from forestprune.forest.new_splits import NewTree, SplitLimits, limits_of_rows
from forestprune.forest.origin import Origin
from forestprune.interop import sklearn_hist, sklearn_trees
from forestprune.interop.params import check_writable, refusal
from forestprune.interop.sklearn_classes import (
    check_outputs,
    described,
    in_rounds,
    output_count,
    outputs_of,
    shares_of,
)
from forestprune.interop.sklearn_params import (
    CLASS_TREES,
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
_LAST_BITS = 1e-14  # relative to a start, what its way through probabilities may cost

# What to say of a tree of which nothing is known any more.
_UNKNOWN = {"n_node_samples": 1, "random_state": _NO_SEED}  # and 0 for all else


@dataclass(frozen=True)
class _Parts:
    """A fitted estimator, taken apart."""

    trees: list[Any]
    scale: float
    base: NDArray[np.float64]
    tree_output: ArrayLike = ()
    extras: dict[str, NDArray[Any]] = field(default_factory=dict)  # one entry a tree


# Taking apart, one function a family of classes.


def _read_tree(model: Any) -> _Parts:
    return _Parts([model], 1.0, _zeros(model, model))


def _read_average(model: Any) -> _Parts:
    trees = model.estimators_
    return _Parts(trees, 1.0 / len(trees), _zeros(model, trees[0]))


def _zeros(model: Any, tree: Any) -> NDArray[np.float64]:
    """Return where an average starts: a zero for each output."""
    return np.zeros(output_count(model.classes_) if is_classifier(model) else tree.n_outputs_)


def _read_bagging(model: Any) -> _Parts:
    name = type(model).__name__
    known = CLASS_TREES if is_classifier(model) else REGRESSION_TREES
    for tree in model.estimators_:
        if type(tree) not in known.values():
            raise UnsupportedModelError(
                f"{name} is read if its estimators are {' or '.join(known)}, "
                f"got {type(tree).__name__}."
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


def _read_boosted_classes(model: Any) -> _Parts:
    init = model.init_
    if not isinstance(init, str) and (
        type(init) is not DummyClassifier or init.strategy == "stratified"
    ):
        raise UnsupportedModelError(
            "GradientBoostingClassifier is read if it starts from a constant: init=None, 'zero' or "
            f"a DummyClassifier that is not stratified. Here init is {init!r}, whose prediction "
            "differs between rows and would not be part of the forest."
        )
    n_rounds, n_outputs = model.estimators_.shape
    return _Parts(
        model.estimators_.ravel().tolist(),
        float(model.learning_rate),
        _start(model),
        tree_output=np.tile(np.arange(n_outputs), n_rounds) if n_outputs > 1 else (),
    )


def _start(model: Any) -> NDArray[np.float64]:
    """Return the raw prediction that a boosted classifier starts from, as it computes it itself."""
    row = np.zeros((1, model.n_features_in_), np.float32)
    return np.array(model._raw_predict_init(row)[0], np.float64)


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
    _forget_stages(model)


def _write_boosted_classes(model: Any, forest: Forest, state: Mapping[str, Any]) -> None:
    constants = np.zeros((forest.n_trees, 1))
    trees = _write_trees(forest, state, model.learning_rate, constants)
    output = forest.tree_output if forest.tree_output.size else np.zeros(len(trees), np.int32)
    rounds = in_rounds(trees, output, forest.n_outputs, lambda: _root(forest, state))
    model.estimators_ = np.array(rounds, dtype=object)
    model._loss = model._get_loss(sample_weight=None)
    _start_from(model, forest.base)
    _forget_stages(model)


def _start_from(model: Any, base: NDArray[np.float64]) -> None:
    """Let a boosted classifier start from the raw prediction `base`.

    Its start can say only what is the log of probabilities, clipped and rounded, and centred if
    there are several classes. What is missing then is added to the trees of the first round.
    """
    n_classes, rate = model.n_classes_, model.learning_rate
    if model.init == "zero" and rate > 0:
        # Converters read the parameter, not init_, so it has to stay true.
        model.init_ = "zero"
    else:
        numbers = np.arange(float(n_classes))  # what the model makes of labels before it fits
        model.init_ = DummyClassifier().fit(np.zeros((n_classes, model.n_features_in_)), numbers)
        if n_classes == 2:
            second = float(model._loss.link.inverse(base)[0])
            model.init_.class_prior_ = np.array([1.0 - second, second])
        else:
            model.init_.class_prior_ = model._loss.link.inverse(base[np.newaxis])[0]
    missing = base - _start(model)
    if rate > 0 and np.abs(missing).max() > _LAST_BITS * max(1.0, np.abs(base).max()):
        for tree, more in zip(model.estimators_[0], missing / rate, strict=True):
            tree.tree_.value[:] += more


def _forget_stages(model: Any) -> None:
    """Fill in what training recorded of each stage: no longer known, but a warm start looks."""
    n_stages = len(model.estimators_)
    model.n_estimators_ = n_stages
    model._rng = check_random_state(model.random_state)
    model.train_score_ = np.full(n_stages, np.nan)
    if model.subsample < 1:
        model.oob_improvement_ = np.full(n_stages, np.nan)
        model.oob_scores_ = np.full(n_stages, np.nan)
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
_CLASSES = {cls.__name__: cls for cls in _FAMILIES} | sklearn_hist.CLASSES
_BOOSTING = (GradientBoostingRegressor, GradientBoostingClassifier)
_BAGGING = (BaggingRegressor, BaggingClassifier)

# With several classes each tree of these adds to one of them.
_BY_CLASS = {"GradientBoostingClassifier", "HistGradientBoostingClassifier"}

_WHY_NOT = {
    "AdaBoostRegressor": "It predicts the weighted median of its trees; only sums can be pruned.",
    "AdaBoostClassifier": "Its trees vote for a class each; only sums of leaves can be pruned.",
    "CalibratedClassifierCV": "Pass the estimator inside, calibrated_classifiers_[0].estimator.",
    **dict.fromkeys(
        ("FixedThresholdClassifier", "TunedThresholdClassifierCV"), "Pass its estimator_."
    ),
    **dict.fromkeys(
        (
            "MultiOutputClassifier",
            "OneVsOneClassifier",
            "OneVsRestClassifier",
            "StackingClassifier",
            "VotingClassifier",
        ),
        "It puts several models together. Pass one of its estimators_.",
    ),
    **dict.fromkeys(("GridSearchCV", "RandomizedSearchCV"), "Pass its best_estimator_."),
    "TransformedTargetRegressor": "Pass its regressor_, and y as that one sees it.",
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
    if cls in sklearn_hist.CLASSES.values():
        return sklearn_hist.from_model(model)
    classes = _classes(model)
    parts = _FAMILIES[cls][0](model)
    names = getattr(model, "feature_names_in_", None)
    subsets = parts.extras.get("features", [None] * len(parts.trees))
    seeds = np.array([_seed(tree) for tree in parts.trees], dtype=np.int64)
    forest = build_forest(
        (
            _raw_tree(model, tree, columns)
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
            averages=cls not in _BOOSTING,
            monotone=_monotone(model, subsets),
            **classes,
        ),
        tree_output=parts.tree_output,
        tree_extras=parts.extras | {"random_state": seeds},
    )
    if getattr(model, "loss", "squared_error") != "squared_error":
        # Other losses set the leaves after the tree is grown and leave the splits as they were.
        forest = average_of_leaves(forest)
    return forest


def to_native(forest: Forest, origin: Origin) -> Any:
    """Write `forest` as a fitted estimator of the class it was read from."""
    by_class = origin.model_class in _BY_CLASS
    check_writable(forest, origin, _CLASSES, "scikit-learn", by_class=by_class)
    if issubclass(_CLASSES[origin.model_class], ClassifierMixin):
        check_outputs(forest, origin, by_class=by_class)
    if origin.model_class in sklearn_hist.CLASSES:
        return sklearn_hist.to_native(forest, origin)
    if forest.category_set.size:
        raise UnsupportedModelError(
            "scikit-learn's trees split on numbers only; this forest has categorical splits."
        )
    if by_class and forest.n_outputs > 1:
        forest = forest.compact()  # classes that have lost all trees get one back
    else:
        forest = with_a_tree(forest, _UNKNOWN)
    state = deepcopy(dict(origin.state))  # lists in it become parameters of the model
    cls = _CLASSES[origin.model_class]
    write = _FAMILIES[cls][1]
    if write is None:
        model = _write_trees(forest, state, 1.0, forest.base[np.newaxis])[0]
        model.set_params(**decoded(state["params"]))
    else:
        model = cls(**decoded(state["params"]))
        for name in _ATTRIBUTES:
            if name in state["attributes"]:
                setattr(model, name, state["attributes"][name])
        model.n_features_in_ = forest.n_features
        if origin.classes:
            model.n_classes_ = len(origin.classes)
        write(model, forest, state)
        model.set_params(n_estimators=len(model.estimators_))
    if origin.classes:
        model.classes_ = labels_of(origin)
    if forest.feature_names is not None:
        model.feature_names_in_ = np.array(forest.feature_names, dtype=object)
    return model


def split_limits(forest: Forest) -> SplitLimits:
    """Return which new splits an estimator can have."""
    if _is_hist(forest):
        return sklearn_hist.split_limits(forest)
    limits = limits_of_rows(forest)
    features = forest.tree_extras.get("features")
    if features is None:
        return limits
    columns = np.zeros((forest.n_trees, forest.n_features), np.bool_)
    np.put_along_axis(columns, features, values=True, axis=1)
    return replace(limits, columns=columns)


def new_node_extras(forest: Forest, tree: NewTree) -> dict[str, NDArray[Any]]:
    """Return what an estimator keeps of the nodes of a new tree."""
    if _is_hist(forest):
        return sklearn_hist.new_node_extras(forest, tree)
    return sklearn_trees.new_node_extras(forest, tree)


def _is_hist(forest: Forest) -> bool:
    return forest.origin is not None and forest.origin.model_class in sklearn_hist.CLASSES


def _classes(model: Any) -> dict[str, Any]:
    """Return what there is to say of the classes of a classifier, and nothing of other models."""
    if not is_classifier(model):
        return {}
    # Bagging encodes labels before its trees see, and weight, them.
    in_bags = isinstance(model, BaggingClassifier)
    weighted = model.estimator_ if in_bags else model
    return described(model, getattr(weighted, "class_weight", None), by_number=in_bags)


def _raw_tree(model: Any, tree: Any, columns: NDArray[np.int64] | None) -> RawTree:
    raw = read_tree(tree.tree_, columns)
    if type(tree) not in CLASS_TREES.values():
        return raw
    n_classes = len(model.classes_)
    # Trees in an ensemble have numbers for labels, and may not have met all of them.
    known = np.arange(n_classes) if tree is model else tree.classes_.astype(np.int64)
    return replace(raw, value=outputs_of(tree.tree_.value[:, 0], known, n_classes))


def _objective(model: Any, tree: Any) -> dict[str, Any]:
    """Return the loss that boosting, or the criterion that trees alone, were trained for.

    Class trees are judged by the probabilities that they say, whatever their criterion. Boosting
    with the exponential loss makes half the log-odds; that loss has no name of its own.
    """
    if is_classifier(model):
        if not isinstance(model, _BOOSTING):
            return {"objective": "brier"}
        if model.loss == "exponential":
            return {"link": "logit", "objective": "unknown", "objective_params": {"sigmoid": 2.0}}
        link = "logit" if len(model.classes_) == 2 else "softmax"
        return {"link": link, "objective": model.loss}
    name = getattr(model, "loss", tree.criterion)
    params = {"level": float(model.alpha)} if name == "quantile" else {}
    # Friedman's improvement chooses other splits, for the same loss.
    name = "squared_error" if name == "friedman_mse" else name
    return {"objective": name, "objective_params": params}


def _monotone(model: Any, subsets: Iterable[NDArray[Any] | None]) -> tuple[int, ...]:
    """Return the constraints of a model: what all its trees that know a column promise of it."""
    trees = getattr(model, "estimator_", model) if isinstance(model, _BAGGING) else model
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
    features = forest.tree_extras.get("features")
    like = _stump(forest, state, constants.shape[1])
    factors = np.divide(forest.scale, unit, out=np.ones(forest.n_trees), where=unit != 0)
    depths = forest.depths
    trees = []
    for i, (a, b) in enumerate(pairwise(forest.offsets.tolist())):
        nodes = slice(a, b)
        values = forest.value[nodes] * factors[i] + constants[i]
        if state["tree_class"] in CLASS_TREES:
            shares = shares_of(values, forest.left[nodes] < 0, state["tree_class"])
            values = shares[:, np.newaxis]
        else:
            values = values[:, :, np.newaxis]
        columns = None if features is None else features[i]
        table = write_tree(like.tree_, forest, nodes, int(depths[i]), values, columns)
        trees.append(_estimator(like, table, state, int(forest.tree_extras["random_state"][i])))
    return trees


def _stump(forest: Forest, state: Mapping[str, Any], n_outputs: int) -> Any:
    """Return a tree estimator fitted to nothing in particular.

    Types and arguments differ between versions of scikit-learn: this has those of the one
    installed.
    """
    cls = TREES[state["tree_class"]]
    features = forest.tree_extras.get("features")
    n_features = forest.n_features if features is None else features.shape[1]
    if cls in CLASS_TREES.values():
        n_classes = 2 if forest.n_outputs == 1 else forest.n_outputs
        y = np.arange(n_classes).astype(state["tree_labels"])
    else:
        y = np.zeros((1, n_outputs))
    return cls(random_state=0).fit(np.zeros((len(y), n_features)), y)


def _estimator(like: Any, table: Any, state: Mapping[str, Any], seed: int) -> Any:
    """Return a tree estimator with the given table of nodes, fitted as `like` is."""
    tree = type(like)(**decoded(state["tree_params"]))
    tree.set_params(random_state=None if seed == _NO_SEED else seed)
    tree.tree_ = table
    for name in ("n_features_in_", "n_outputs_", "classes_", "n_classes_"):
        if hasattr(like, name):
            setattr(tree, name, deepcopy(getattr(like, name)))
    tree.max_features_ = state["tree_max_features"]
    return tree


def _root(forest: Forest, state: Mapping[str, Any]) -> Any:
    """Return a regression tree that adds nothing."""
    like = _stump(forest, state, 1)
    return _estimator(like, like.tree_, state, _NO_SEED)


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
    return {
        "params": {name: encoded(name, param) for name, param in params.items()},
        "attributes": attributes,
        "tree_class": type(first).__name__,
        "tree_params": {name: encoded(name, p) for name, p in first.get_params().items()},
        "tree_max_features": int(first.max_features_),
        "tree_labels": _label_type(model, first),
    }


def _label_type(model: Any, tree: Any) -> str:
    """Return the type of the numbers that class trees in an ensemble have for labels."""
    inside = tree is not model and is_classifier(tree)
    return str(tree.classes_.dtype.str) if inside else "int64"
