"""The labels of a classifier: which there are, and which output stands for which."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestprune.forest.frames import listed

if TYPE_CHECKING:
    from forestprune.forest.origin import Origin

Label = str | int | float | bool

_ROUNDING = ("catboost",)
"""Libraries that keep numbers among labels in single precision: 0.699999988 in place of 0.7."""

BY_NUMBER = "It knows its classes by number only: write the numbers that they had in training."
"""What helps if :func:`are_by_number`."""


def are_by_number(classes: Sequence[Label], given: Any) -> bool:
    """Whether `given` is a word where a model has numbers for classes, which words may stand for.

    XGBoost and files of LightGBM keep no labels but 0, 1 and so on.
    """
    numbered = list(classes) == list(range(len(classes))) and not isinstance(classes[0], bool)
    return numbered and isinstance(given, str)


def plain_labels(classes: ArrayLike) -> dict[str, Any]:
    """Return the labels of a model as :class:`Origin` holds them: `classes`, `classes_dtype`."""
    labels: NDArray[Any] = np.asarray(classes)
    plain = labels.tolist()
    if not all(isinstance(label, str | int | float | bool) for label in plain):
        plain = [getattr(label, "item", lambda label=label: label)() for label in plain]
    return {"classes": tuple(plain), "classes_dtype": labels.dtype.str.lstrip("|")}


def check_classes(
    classes: Sequence[Label], dtype: str, class_weight: Sequence[float] | str
) -> None:
    """Refuse labels that are none, or weights that do not fit them."""
    if not classes:
        if dtype or class_weight:
            raise ValueError("classes_dtype and class_weight need classes.")
        return
    if len(classes) < 2 or len(set(classes)) < len(classes):
        raise ValueError(f"classes must be two different labels or more, got {classes!r}.")
    if not all(isinstance(label, str | int | float | bool) for label in classes):
        raise TypeError(f"classes must be strings, numbers or truth values, got {classes!r}.")
    if np.dtype(dtype or "O").kind not in "biufUO":
        raise TypeError(f"classes_dtype must be a type of labels, got {dtype!r}.")
    if class_weight and not isinstance(class_weight, str) and len(class_weight) != len(classes):
        raise ValueError(
            f"class_weight must have one number for each of {len(classes)} classes, got "
            f"{len(class_weight)}."
        )


def labels_of(origin: "Origin") -> NDArray[Any]:
    """Return the labels of a classifier as its library has them."""
    return np.array(origin.classes, dtype=np.dtype(origin.classes_dtype or "O"))


def class_numbers(origin: "Origin", y: ArrayLike, rows: int) -> NDArray[np.int64]:
    """Return for each label in `y` the number of its class; refuse what is no label of the model.

    Labels are compared as they are, but for the rounding of the library: nothing is made of "1"
    where 1 is required, or of 0.7.
    """
    given: NDArray[Any] = np.asarray(y)
    if given.ndim == 2 and given.shape[1] == 1:
        given = given[:, 0]
    if given.shape != (rows,):
        several = given.ndim == 2 and len(given) == rows
        raise ValueError(
            f"y must have shape ({rows},): one label for each row of X. Got {given.shape}."
            + several * " Probabilities and several labels a row are not taken."
        )
    classes = origin.classes
    entries = given.tolist()
    if not set(map(type, entries)) <= {str, int, float, bool}:
        entries = [getattr(entry, "item", lambda entry=entry: entry)() for entry in entries]
    different = list(dict.fromkeys(entries))
    text = isinstance(classes[0], str)
    as_kept = _rounded if origin.library in _ROUNDING else _unchanged
    number_of = {as_kept(label): number for number, label in enumerate(classes)}
    numbers = {
        entry: number_of.get(as_kept(entry), -1)
        for entry in different
        if isinstance(entry, str) == text
    }
    strange = [entry for entry in different if numbers.get(entry, -1) < 0]
    if strange:
        raise ValueError(
            f"y must hold labels of the model, which are {listed(classes)}; got {listed(strange)}."
            + (" " + BY_NUMBER) * are_by_number(classes, strange[0])
        )
    return np.fromiter((numbers[entry] for entry in entries), np.int64, len(entries))


def _unchanged(label: Any) -> Any:
    return label


def _rounded(label: Any) -> Any:
    if not isinstance(label, int | float):
        return label
    with np.errstate(over="ignore"):
        return float(np.float32(label))


def row_weights(
    origin: "Origin", numbers: NDArray[np.int64], counts: NDArray[np.int64] | None = None
) -> NDArray[np.float64] | None:
    """Return by what each row counts, given the number of its class; None if all count the same.

    So a model that was trained to treat its classes alike is pruned to do so. `counts` are how many
    rows each class has, if there are others than these.
    """
    weight, n_classes = origin.class_weight, len(origin.classes)
    if not weight:
        return None
    if isinstance(weight, str):
        if counts is None:
            counts = np.bincount(numbers, minlength=n_classes)
        by_class = counts.sum() / (np.count_nonzero(counts) * np.maximum(counts, 1.0))
        if weight == "sqrt_balanced":
            # As CatBoost has it: relative to the largest class, and by the root.
            by_class = np.sqrt(counts.max() / np.maximum(counts, 1.0))
    else:
        by_class = np.array(weight)
    return np.asarray(by_class[numbers], dtype=np.float64)
