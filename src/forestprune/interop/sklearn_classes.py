"""Classifiers of scikit-learn: labels and weights, distributions in leaves, trees by class."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestprune.exceptions import UnsupportedModelError
from forestprune.forest.classes import plain_labels
from forestprune.forest.forest import Forest
from forestprune.forest.origin import Origin

_ROUNDING = 1e-9  # how far sums of floats may be from the distribution that they stand for
_LAST_BITS = 4 * float(np.finfo(np.float64).eps)  # what is not worth a division


def described(model: Any, class_weight: Any, *, by_number: bool = False) -> dict[str, Any]:
    """Return what an :class:`Origin` says of the classes of `model`, or refuse the model.

    `class_weight` is the parameter of that name. `by_number` tells that its keys are the numbers of
    the classes rather than their labels, as they are where labels are encoded before they are
    weighted.
    """
    name = type(model).__name__
    n_targets = int(getattr(model, "n_outputs_", 1))
    if n_targets > 1:
        raise UnsupportedModelError(
            f"{name} is read if it has one target; this one has {n_targets}. Train a model for "
            "each of them."
        )
    labels = plain_labels(model.classes_)
    classes = labels["classes"]
    if len(classes) < 2:
        raise UnsupportedModelError(
            f"{name} is read if it has two classes or more. This one was trained on rows of the "
            f"class {classes[0]!r} only, so that there is nothing to prune."
        )
    if np.dtype(labels["classes_dtype"]).kind not in "biufUO" or not all(
        isinstance(label, str | int | float | bool) for label in classes
    ):
        raise UnsupportedModelError(
            f"{name} is read if its labels are strings, numbers or truth values, got "
            f"{model.classes_[0]!r} of type {type(model.classes_[0]).__name__}."
        )
    weights = _weights(class_weight, classes, by_number)
    return labels | {"class_weight": weights, "response": "class"}


def _weights(given: Any, classes: Sequence[Any], by_number: bool) -> tuple[float, ...] | str:
    """Return the weights of the classes as an :class:`Origin` has them."""
    if given is None:
        return ()
    if isinstance(given, str):  # "balanced", or "balanced_subsample": the same for each tree's rows
        return "balanced"
    numbers = range(len(classes))
    keys = numbers if by_number and set(given) <= set(numbers) else classes
    return tuple(float(given.get(key, 1.0)) for key in keys)


def output_count(classes: Sequence[Any] | NDArray[Any]) -> int:
    """Return how many outputs a forest has for these classes: one for two, else one a class."""
    return 1 if len(classes) == 2 else len(classes)


def check_outputs(forest: Forest, origin: Origin, *, by_class: bool) -> None:
    """Refuse a forest whose outputs are not those of the classes that its origin names."""
    classes = origin.classes
    required = output_count(classes)
    if len(classes) < 2 or forest.n_outputs != required:
        raise UnsupportedModelError(
            f"A {origin.model_class} has two classes or more, and one output for two, else one a "
            f"class; this forest has {forest.n_outputs} outputs and {len(classes)} classes."
        )
    if by_class and required > 1 and forest.n_trees and not forest.tree_output.size:
        raise UnsupportedModelError(
            f"The trees of a {origin.model_class} add to one class each; those of this forest add "
            "to all classes."
        )


# Leaves that hold a distribution


def outputs_of(
    shares: NDArray[np.float64], known: NDArray[np.int64], n_classes: int
) -> NDArray[np.float64]:
    """Return the values of a forest for nodes that hold the shares of the `known` classes.

    Bags of rows may lack classes, and trees that were trained on them do not know these.
    """
    every = np.zeros((len(shares), n_classes))
    every[:, known] = shares[:, : known.size]
    return every[:, 1:] if n_classes == 2 else every


def shares_of(
    values: NDArray[np.float64], is_leaf: NDArray[np.bool_], model_class: str
) -> NDArray[np.float64]:
    """Return the share of each class at each node, given what the forest says there.

    Those of leaves must be distributions. What rounding took from them is given back: by then many
    numbers were added up, and weighted rows are off a little even in scikit-learn's own trees.
    Leaves that are further off are refused. Splits only tell about the tree and are made as good as
    they get.
    """
    shares = np.hstack([1.0 - values, values]) if values.shape[1] == 1 else values
    off = np.maximum(-shares.min(axis=1), np.abs(shares.sum(axis=1) - 1.0))
    wrong = np.flatnonzero(is_leaf & ~(off < _ROUNDING))
    if wrong.size:
        found = np.array2string(shares[wrong[0]], precision=4, separator=", ")
        raise UnsupportedModelError(
            f"Each leaf of a {model_class} must hold a probability for each class; one of this "
            f"forest would hold {found}. Its values or tree weights were changed too much for "
            "that. The forest itself can still predict and be saved."
        )
    clipped = np.clip(shares, 0.0, 1.0)
    total = clipped.sum(axis=1, keepdims=True)
    sound = np.divide(clipped, total, out=np.zeros_like(clipped), where=total > 0.0)
    return np.where((off > _LAST_BITS)[:, np.newaxis], sound, clipped)


# Trees by class


def in_rounds(
    trees: Sequence[Any],
    tree_output: Iterable[int],
    n_outputs: int,
    nothing: Callable[[], Any],
) -> list[list[Any]]:
    """Return trees in rounds of one for each output, at least one round.

    Outputs with fewer trees than others end in trees that `nothing` makes.
    """
    by_output: list[list[Any]] = [[] for _ in range(n_outputs)]
    for tree, output in zip(trees, tree_output, strict=True):
        by_output[output].append(tree)
    n_rounds = max([1, *map(len, by_output)])
    return [[own[i] if i < len(own) else nothing() for own in by_output] for i in range(n_rounds)]
