"""scikit-learn's histogram-based gradient boosting, called from forestprune.interop.sklearn.

Regressors and classifiers; with several classes, each round has a tree for each of them. The trees
differ from those of the other estimators: tables of their own kind, numbers compared in float64,
infinite numbers allowed, categorical splits. With categories the model has a preprocessor
that encodes them and puts their columns first; the forest has the columns in the user's order.

A model is written by letting scikit-learn fit one to a few made-up rows and then exchanging its
trees, so that it has whatever the installed version keeps in a fitted model. What only the training
rows could tell is not carried over: the scores of each iteration are empty, as they are without
early stopping, and the bins, which only training looks at, are gone. A function given as `scoring`
becomes "loss". Where splits are new, a warm start knows their bins only by those of others, and
so begins at predictions that are not quite those of the model.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.metrics import check_scoring
from threadpoolctl import threadpool_limits

from forestprune.exceptions import UnsupportedModelError
from forestprune.forest.build import RawTree, average_of_leaves, build_forest
from forestprune.forest.category_sets import unpack_categories
from forestprune.forest.classes import labels_of
from forestprune.forest.forest import Forest
from forestprune.forest.inputs import InputSpec
from forestprune.forest.new_splits import NewTree, SplitLimits, limits_of_rows
from forestprune.forest.origin import Link, Origin
from forestprune.interop.sklearn_classes import described, in_rounds
from forestprune.interop.sklearn_params import decoded, encoded
from forestprune.interop.thresholds import as_finite, as_infinite

CLASSES = {
    cls.__name__: cls for cls in (HistGradientBoostingRegressor, HistGradientBoostingClassifier)
}

_LINKS: dict[str, Link] = {
    "squared_error": "identity",
    "absolute_error": "identity",
    "quantile": "identity",
    "gamma": "log",
    "poisson": "log",
}

_NODE_FIELDS = {"value", "count", "feature_idx", "num_threshold", "missing_go_to_left", "left"}
_NODE_FIELDS |= {"right", "gain", "depth", "is_leaf", "bin_threshold", "is_categorical"}
_NODE_FIELDS |= {"bitset_idx"}

# Plain fitted attributes that a warm start looks at.
_ATTRIBUTES = ("_random_seed", "do_early_stopping_", "_use_validation_data", "_fitted_with_sw")

# Parameters that what a fit leaves behind depends on.
_FIRST = ("loss", "quantile", "max_bins")

_SET_WORDS = 8  # of 32 categories each
_NO_GAIN = -1.0  # what scikit-learn writes at leaves


# Reading


def from_model(model: Any) -> Forest:
    """Read a fitted model of one of the classes."""
    link = _link(model)
    trees = [tree for each in model._predictors for tree in each]
    n_outputs = int(model.n_trees_per_iteration_)
    n_features = int(model.n_features_in_)
    names = getattr(model, "feature_names_in_", None)
    is_categorical = model.is_categorical_
    if is_categorical is None:
        categories, encodings = None, []
    else:
        encoder = model._preprocessor.named_transformers_["encoder"]
        known = iter([_plain_categories(array) for array in encoder.categories_])
        categories = tuple(next(known) if is_one else None for is_one in is_categorical)
        encodings = [
            {"dtype": array.dtype.str, "nan": _ends_in_nan(array)} for array in encoder.categories_
        ]
    order = _column_order(categories, n_features)
    forest = build_forest(
        (_read_tree(tree, order) for tree in trees),
        n_nodes=sum(tree.nodes.size for tree in trees),
        scale=np.ones(len(trees)),
        base=np.ravel(model._baseline_prediction),
        input=InputSpec(
            n_features=n_features,
            feature_names=None if names is None else tuple(names.tolist()),
            dtype="float64",
            ensure_all_finite=False,
            categories=categories,
            numbers="values",
        ),
        origin=Origin(
            "sklearn",
            type(model).__name__,
            {
                "params": _params(model),
                "attributes": {
                    name: encoded(name, getattr(model, name))
                    for name in _ATTRIBUTES
                    if hasattr(model, name)
                },
                "encodings": encodings,
                "n_rows": int(trees[0].nodes["count"][0]),
            },
            link=link,
            objective=model.loss,
            objective_params={"level": float(model.quantile)} if model.loss == "quantile" else {},
            monotone=_monotone(model, names),
            interactions=_interactions(model),
            **_classes(model),
        ),
        tree_output=np.tile(np.arange(n_outputs), len(model._predictors)) if n_outputs > 1 else (),
    )
    return average_of_leaves(forest)


def _link(model: Any) -> Link:
    """Return the link of the model's loss, or refuse the loss."""
    links = _LINKS
    if is_classifier(model):
        links = {"log_loss": "logit" if len(model.classes_) == 2 else "softmax"}
    if not (isinstance(model.loss, str) and model.loss in links):
        raise UnsupportedModelError(
            f"{type(model).__name__} is read if its loss is one of "
            f"{', '.join(map(repr, links))}, got {model.loss!r}: its link is not known."
        )
    return links[model.loss]


def _classes(model: Any) -> dict[str, Any]:
    """Return what there is to say of the classes of a classifier, and nothing of a regressor."""
    # Labels are encoded before they are weighted.
    return described(model, model.class_weight, by_number=True) if is_classifier(model) else {}


def _params(model: Any) -> dict[str, Any]:
    params = model.get_params(deep=False)
    if callable(params["scoring"]):
        params["scoring"] = "loss"
    return {name: encoded(name, param) for name, param in params.items()}


def _monotone(model: Any, names: NDArray[Any] | None) -> tuple[int, ...]:
    """Return the constraints of the columns, which may be given by their names."""
    given = model.monotonic_cst
    if isinstance(given, Mapping):
        return tuple(int(given.get(name, 0)) for name in ([] if names is None else names.tolist()))
    return () if given is None else tuple(np.asarray(given).astype(np.int64).tolist())


def _interactions(model: Any) -> Any:
    """Return the groups of columns that may meet; those that no group names are one more."""
    given, n_features = model.interaction_cst, int(model.n_features_in_)
    if given is None or given == "pairwise":
        return given or ()
    if given == "no_interactions":
        return tuple((column,) for column in range(n_features))
    groups = [tuple(sorted(map(int, group))) for group in given]
    rest = sorted(set(range(n_features)) - {column for group in groups for column in group})
    return (*groups, tuple(rest)) if rest else tuple(groups)


def _plain_categories(categories: NDArray[Any]) -> tuple[Any, ...]:
    """Return the categories of one column in the order of their codes, NaN left out."""
    known = [c.item() if isinstance(c, np.generic) else c for c in categories.tolist()]
    for category in known:
        if categories.dtype.kind in "mM" or not (
            category is None or isinstance(category, str | int | float)
        ):
            raise UnsupportedModelError(
                "Histogram-based boosting is read if its categories are strings, numbers or "
                f"truth values, got {category!r} of type {type(category).__name__}."
            )
    return tuple(known[:-1] if _ends_in_nan(categories) else known)


def _ends_in_nan(categories: NDArray[Any]) -> bool:
    last = categories[-1]
    return isinstance(last, float | np.floating) and bool(np.isnan(last))


def _column_order(
    categories: Sequence[Sequence[Any] | None] | None, n_features: int
) -> NDArray[np.int64]:
    """Return the columns as the trees see them: first those with categories, then the others."""
    if categories is None:
        return np.arange(n_features)
    is_numeric = np.array([known is None for known in categories])
    return np.argsort(is_numeric, kind="stable")


def _read_tree(tree: Any, order: NDArray[np.int64]) -> RawTree:
    nodes = tree.nodes
    unknown = set(nodes.dtype.names) - _NODE_FIELDS
    if unknown:
        raise UnsupportedModelError(
            f"The trees of this scikit-learn store {', '.join(map(repr, sorted(unknown)))}, which "
            "this version of forestprune does not know. Use an older scikit-learn."
        )
    is_leaf = nodes["is_leaf"] != 0
    threshold = nodes["num_threshold"]
    # No number is up to NaN, so all go right; here they go left of a threshold beyond them all.
    turned = np.isnan(threshold)
    left = np.where(turned, nodes["right"], nodes["left"])
    right = np.where(turned, nodes["left"], nodes["right"])
    categorical = np.flatnonzero((nodes["is_categorical"] != 0) & ~is_leaf)
    sets = tree.raw_left_cat_bitsets[nodes["bitset_idx"][categorical]]
    return RawTree(
        left=np.where(is_leaf, -1, left.astype(np.int64)),
        right=np.where(is_leaf, -1, right.astype(np.int64)),
        feature=order[nodes["feature_idx"]],
        threshold=as_finite(threshold, nan=1),
        missing_left=(nodes["missing_go_to_left"] != 0) != turned,
        cover=nodes["count"],
        value=nodes["value"][:, np.newaxis],
        left_categories={
            node: unpack_categories(words)
            for node, words in zip(categorical.tolist(), sets, strict=True)
        },
        extras={"gain": nodes["gain"], "bin_threshold": nodes["bin_threshold"]},
    )


# New splits


def split_limits(forest: Forest) -> SplitLimits:
    """Return which new splits a model can have: by sets on the columns with categories."""
    limits = limits_of_rows(forest)
    known = forest.input.categories or [None] * forest.n_features
    most = np.array([0 if one is None else len(one) for one in known], np.int64)
    return replace(
        limits,
        categorical=np.array([one is not None for one in known], np.bool_),
        max_category=np.minimum(most, 32 * _SET_WORDS),
    )


def new_node_extras(forest: Forest, tree: NewTree) -> dict[str, NDArray[Any]]:
    """Return what scikit-learn keeps of the nodes of a new tree.

    Only a warm start looks at the bins of thresholds, and nothing but the training rows could tell
    those of new ones: they are put between the bins of the column's other splits in `forest`.
    """
    bins = np.zeros(tree.left.size, np.uint8)
    known = (forest.left >= 0) & (forest.category_set < 0 if forest.category_set.size else True)
    most = forest.origin.state["params"]["max_bins"] if forest.origin else 255
    for column in np.unique(tree.feature[tree.left >= 0]):
        here, there = tree.feature == column, known & (forest.feature == column)
        threshold, of_threshold = np.unique(forest.threshold[there], return_index=True)
        of_threshold = forest.node_extras["bin_threshold"][there][of_threshold]
        if threshold.size:
            bins[here] = np.interp(tree.threshold[here], threshold, of_threshold)
        else:
            bins[here] = most // 2
    return {"gain": np.where(tree.left >= 0, tree.gain, _NO_GAIN), "bin_threshold": bins}


# Writing


def to_native(forest: Forest, origin: Origin) -> Any:
    """Write `forest` as a fitted model of the class it was read from."""
    forest = forest.compact()
    _check_sets(forest)
    state = deepcopy(dict(origin.state))  # lists in it become parameters of the model
    params = decoded(state["params"])
    with threadpool_limits(1, user_api="openmp"):  # threads would take longer to start than to run
        model = _fitted_to_made_up_rows(origin, params, forest.input, state["encodings"])
    trees = _write_trees(forest)
    output = forest.tree_output if forest.tree_output.size else np.zeros(len(trees), np.int32)
    model._predictors = in_rounds(
        trees, output, forest.n_outputs, lambda: _tree_that_adds_nothing(state["n_rows"])
    )
    model.set_params(**params).set_params(max_iter=len(model._predictors))
    model._baseline_prediction = np.array(forest.base).reshape(1, -1)
    for name in _ATTRIBUTES:
        if name in state["attributes"]:
            setattr(model, name, state["attributes"][name])
    if model.do_early_stopping_ and model.scoring != "loss":
        model._scorer = check_scoring(model, model.scoring)
    return model


def _check_sets(forest: Forest) -> None:
    """Refuse sets that scikit-learn would look for outside its arrays."""
    if not forest.category_set.size:
        return
    split = forest.feature[forest.category_set >= 0]
    known = forest.input.categories or (None,) * forest.n_features
    strangers = [int(j) for j in np.unique(split) if known[j] is None]
    if strangers or np.diff(forest.set_offsets).max(initial=0) > _SET_WORDS:
        raise UnsupportedModelError(
            "Histogram-based boosting has categorical splits only on columns with categories, at "
            f"most {32 * _SET_WORDS} a column. This forest has more, or has such splits on "
            f"columns without: {strangers}."
        )


def _write_trees(forest: Forest) -> list[TreePredictor]:
    """Return the trees of `forest`; their nodes are filled in for all of them at once."""
    is_split = forest.left >= 0
    number_of_set = forest.category_set
    if not number_of_set.size:
        number_of_set = np.full(forest.n_nodes, -1, np.int32)
    is_categorical = number_of_set >= 0
    is_numeric = is_split & ~is_categorical
    place = np.argsort(_column_order(forest.input.categories, forest.n_features))
    starts = forest.offsets[forest.tree_of_node]
    sets_before: NDArray[np.int64] = np.cumsum(is_categorical) - is_categorical

    nodes = np.zeros(forest.n_nodes, PREDICTOR_RECORD_DTYPE)
    nodes["value"] = forest.scaled_value[:, 0]
    nodes["count"] = np.rint(forest.cover)
    nodes["depth"] = forest.node_depths
    nodes["is_leaf"] = ~is_split
    nodes["gain"] = np.where(is_split, forest.node_extras["gain"], _NO_GAIN)
    nodes["feature_idx"][is_split] = place[forest.feature[is_split]]
    nodes["left"][is_split] = forest.left[is_split]
    nodes["right"][is_split] = forest.left[is_split] + 1
    nodes["missing_go_to_left"] = forest.missing_left
    nodes["num_threshold"][is_numeric] = as_infinite(forest.threshold[is_numeric])
    nodes["bin_threshold"][is_numeric] = forest.node_extras["bin_threshold"][is_numeric]
    nodes["is_categorical"] = is_categorical
    nodes["bitset_idx"] = np.where(is_categorical, sets_before - sets_before[starts], 0)

    sets = _left_sets(forest)
    trees = []
    for a, b in pairwise(forest.offsets.tolist()):
        of_tree = sets[number_of_set[a:b][is_categorical[a:b]]]
        # Codes are their own bins, so the sets of bins are the sets of categories.
        trees.append(TreePredictor(nodes[a:b].copy(), of_tree.copy(), of_tree))
    return trees


def _left_sets(forest: Forest) -> NDArray[np.uint32]:
    """Return the forest's sets of categories, all as long as scikit-learn's."""
    lengths = np.diff(forest.set_offsets)
    sets = np.zeros((lengths.size, _SET_WORDS), np.uint32)
    sets[np.arange(_SET_WORDS) < lengths[:, np.newaxis]] = forest.set_words
    return sets


def _tree_that_adds_nothing(n_rows: int) -> TreePredictor:
    root = np.zeros(1, PREDICTOR_RECORD_DTYPE)
    root["is_leaf"] = True
    root["gain"] = _NO_GAIN
    root["count"] = n_rows
    sets = np.zeros((0, _SET_WORDS), np.uint32)
    return TreePredictor(root, sets.copy(), sets)


def _fitted_to_made_up_rows(
    origin: Origin,
    params: Mapping[str, Any],
    spec: InputSpec,
    encodings: Sequence[Mapping[str, Any]],
) -> Any:
    """Return a model that takes the rows that `spec` describes, fitted to a constant.

    A classifier is fitted to each class once or more.
    """
    model = CLASSES[origin.model_class](
        categorical_features=None, early_stopping=False, max_iter=1, random_state=0
    )
    model.set_params(**{name: params[name] for name in _FIRST if name in params})
    # Numbers will do for labels, which need not be such that every version would take them.
    y = np.arange(len(origin.classes)) if origin.classes else np.ones(1)
    if spec.categories is None:
        model.fit(np.zeros((len(y), spec.n_features)), y)
    else:
        is_categorical = np.array([known is not None for known in spec.categories])
        lists = [known for known in spec.categories if known is not None]
        # Every category must come once, and NaN where there was NaN; codes will do for them.
        codes = [
            np.append(np.arange(len(known)), [np.nan] * encoding["nan"])
            for known, encoding in zip(lists, encodings, strict=True)
        ]
        X = np.zeros((max(len(y), *map(len, codes)), spec.n_features))
        X[:, is_categorical] = np.column_stack([np.resize(column, len(X)) for column in codes])
        model.set_params(categorical_features=is_categorical)
        model.fit(X, np.resize(y, len(X)))
        encoder = model._preprocessor.named_transformers_["encoder"]
        encoder.categories_ = [
            np.array([*known, *[np.nan] * encoding["nan"]], dtype=encoding["dtype"])
            for known, encoding in zip(lists, encodings, strict=True)
        ]
    if origin.classes:
        model.classes_ = labels_of(origin)
        if hasattr(model, "_label_encoder"):  # older versions do not keep theirs
            model._label_encoder.classes_ = model.classes_
    if spec.feature_names is not None:
        _set_names(model, np.array(spec.feature_names, dtype=object))
    return model


def _set_names(model: Any, names: NDArray[np.object_]) -> None:
    """Let a model that was fitted to a matrix know the names of its columns."""
    model.feature_names_in_ = names
    if model._preprocessor is not None:
        model._preprocessor.feature_names_in_ = names
        transformers = model._preprocessor.named_transformers_
        for name, columns in (("encoder", True), ("numerical", False)):
            chosen = names[model.is_categorical_ == columns]
            if chosen.size:
                transformers[name].feature_names_in_ = chosen
