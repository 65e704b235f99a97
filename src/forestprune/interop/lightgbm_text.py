"""LightGBM's model text: a header, one block a tree, the parameters of training.

It is the only complete account of a model that the library gives and takes. Thresholds and leaf
values have 17 digits in it, so nothing is lost on the way. The sizes of the trees' blocks in bytes,
which the header may list, are left out when a text is written: the library then reads one tree
after the other, and wrong sizes would end the process.
"""

import json
import re
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestprune.exceptions import InvalidForestError, UnsupportedModelError
from forestprune.forest.build import RawTree
from forestprune.forest.category_sets import sets_of_nodes, unpack_categories
from forestprune.forest.forest import Forest
from forestprune.forest.inputs import ZERO
from forestprune.forest.new_splits import NewTree
from forestprune.interop.thresholds import as_finite, as_infinite

NO_MISSING, ZERO_IS_MISSING, NAN_IS_MISSING = 0, 1, 2
"""What a split takes for missing: bits 2 and 3 of its decision type."""

_CATEGORICAL, _DEFAULT_LEFT = 1, 2

_PARAMETER = re.compile(r"\[[^\]:]+: .*\]")

# Numbers this close to zero are zero for LightGBM, when it compares as well.
_BELOW_ZERO = float(np.nextafter(-ZERO, -np.inf))


@dataclass(frozen=True)
class ModelText:
    """A model text, taken apart."""

    header: dict[str, str | None]
    """Keys and values in their order, without the sizes of the trees. Some keys have no value."""
    trees: list[dict[str, str]]
    parameters: str
    """The parameters of training, and whatever follows them; may be empty."""
    pandas_categorical: list[list[Any]] | None
    """The categories of each categorical column of the data frame trained on, if there was one."""


def parse_model(text: str) -> ModelText:
    """Take a model text apart."""
    start, end = text.find("\nTree="), text.find("\nend of trees\n")
    if not text.startswith("tree\n") or end < 0:
        raise InvalidForestError(
            "A LightGBM model text must begin with 'tree' and have a line 'end of trees'; "
            "this one is damaged, or is something else."
        )
    if "\0" in text:
        # There the text would end for LightGBM, which then looks for the rest beyond it.
        raise InvalidForestError(
            "A LightGBM model text must be nothing but text, but this one has zero bytes in it; it "
            "is damaged."
        )
    start = end if start < 0 else start
    header = {}
    for line in text[:start].split("\n"):
        key, equals, value = line.partition("=")
        if key and key != "tree_sizes":
            header[key] = value if equals else None
    rest, _, categories = text[end:].partition("\npandas_categorical:")
    parameters = rest.partition("\nparameters:\n")[2]
    lines = parameters.split("\n")
    if parameters and "end of parameters" not in lines:
        # LightGBM itself would look for the end beyond the end of the text.
        raise InvalidForestError(
            "The parameters in a LightGBM model text must end with a line 'end of parameters'; "
            "this one is cut short."
        )
    for line in takewhile("end of parameters".__ne__, lines):
        if line and not _PARAMETER.fullmatch(line):
            # LightGBM looks for the colon without asking whether there is one.
            raise InvalidForestError(
                "Each parameter in a LightGBM model text must be a line [name: value]; this "
                f"one has {line!r} and is damaged."
            )
    return ModelText(
        header,
        [_fields(block) for block in text[start:end].split("\nTree=")[1:]],
        parameters,
        json.loads(categories) if categories.strip() else None,
    )


def compose_model(model: ModelText) -> str:
    """Put a model text together."""
    lines = [key if value is None else f"{key}={value}" for key, value in model.header.items()]
    for number, fields in enumerate(model.trees):
        lines += ["", f"Tree={number}", *(f"{key}={value}" for key, value in fields.items()), ""]
    lines += ["", "end of trees", ""]
    if model.parameters:
        # Names of columns are what LightGBM writes there but cannot read.
        unnamed = re.sub(
            r"(?m)^\[categorical_feature: name:.*\]$", "[categorical_feature: ]", model.parameters
        )
        lines += ["parameters:", unnamed]
    return "\n".join(lines) + f"\npandas_categorical:{json.dumps(model.pandas_categorical)}\n"


def _fields(block: str) -> dict[str, str]:
    parts = (line.partition("=") for line in block.split("\n")[1:])
    return {key: value for key, _, value in parts if key}


# Trees in


def read_tree(fields: dict[str, str]) -> RawTree:
    """Return a tree as arrays: its splits, then its leaves. Splits have no value and no cover."""
    if fields.get("is_linear", "0") != "0":
        raise UnsupportedModelError(
            "LightGBM models are read if their leaves are constants; this one has linear models "
            "in its leaves. Train it with linear_tree=False."
        )
    leaves = int(fields["num_leaves"])
    splits = leaves - 1
    decision = _numbers(fields, "decision_type", splits, np.uint8)
    threshold = _numbers(fields, "threshold", splits)
    categorical = (decision & _CATEGORICAL) != 0
    left_categories = _left_categories(fields, np.flatnonzero(categorical), threshold)
    threshold = np.where(categorical, 0.0, as_compared(threshold))
    missing = (decision >> 2) & 3
    # Where nothing counts as missing, NaN counts as zero.
    default_left = np.where(missing == NO_MISSING, threshold >= 0, (decision & _DEFAULT_LEFT) != 0)
    at_leaves = np.full(leaves, -1)
    weight = _numbers(fields, "leaf_weight", leaves)
    count = _numbers(fields, "leaf_count", leaves, np.int32)
    children = {}
    for side in ("left", "right"):
        child = _numbers(fields, f"{side}_child", splits, np.int64)
        # Leaf j is written as -1 - j; here leaves follow the splits.
        children[side] = np.append(np.where(child < 0, splits - 1 - child, child), at_leaves)
    return RawTree(
        **children,
        feature=np.append(_numbers(fields, "split_feature", splits, np.int64), at_leaves),
        threshold=np.append(threshold, np.zeros(leaves)),
        missing_left=np.append(default_left & ~categorical, at_leaves >= 0),
        cover=np.append(np.zeros(splits), weight if weight.any() else count),
        value=np.append(np.zeros(splits), _numbers(fields, "leaf_value", leaves))[:, np.newaxis],
        left_categories=left_categories,
        extras={
            "count": np.append(_numbers(fields, "internal_count", splits, np.int32), count),
            "split_gain": np.append(
                _numbers(fields, "split_gain", splits, np.float32), np.zeros(leaves, np.float32)
            ),
            "missing_type": np.append(missing, np.zeros(leaves, np.uint8)),
        },
    )


def _numbers(fields: dict[str, str], key: str, size: int, dtype: Any = np.float64) -> NDArray[Any]:
    """Return the numbers under `key`; zeros if there are none, as in texts of older versions."""
    if not fields.get(key):
        return np.zeros(size, dtype)
    numbers = np.array(fields[key].split(), dtype)
    if numbers.size != size:
        raise InvalidForestError(
            f"A tree of this LightGBM model must have {size} entries in {key}, got {numbers.size}."
        )
    return numbers


def as_compared(threshold: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return thresholds that do the same where numbers close to zero are not made zero."""
    threshold = np.where((threshold >= 0) & (threshold < ZERO), ZERO, threshold)
    threshold = np.where((threshold < 0) & (threshold >= -ZERO), _BELOW_ZERO, threshold)
    return as_finite(threshold)


def _left_categories(
    fields: dict[str, str], nodes: NDArray[np.int64], threshold: NDArray[np.float64]
) -> dict[int, tuple[int, ...]]:
    """Return the categories that go left at the categorical splits `nodes`."""
    sets = int(fields.get("num_cat", 0))
    bounds = _numbers(fields, "cat_boundaries", sets + 1, np.int64)
    words = _numbers(fields, "cat_threshold", int(bounds[-1]), np.uint32)
    named = threshold[nodes]
    known = (named >= 0) & (named < sets)  # NaN is not
    if bounds[0] != 0 or (np.diff(bounds) < 0).any() or not known.all():
        raise InvalidForestError(
            "A categorical split of this LightGBM model must name one of its tree's sets of "
            f"categories; there are {sets}, which end at {bounds.tolist()}."
        )
    return {
        node: unpack_categories(words[bounds[number] : bounds[number + 1]])
        for node, number in zip(nodes.tolist(), named.astype(np.int64), strict=True)
    }


def new_node_extras(_forest: Forest, tree: NewTree) -> dict[str, NDArray[Any]]:
    """Return what LightGBM keeps of the nodes of a new tree."""
    is_split = tree.left >= 0
    missing = np.where(is_split, NAN_IS_MISSING, NO_MISSING)
    return {"count": tree.rows, "split_gain": tree.gain, "missing_type": missing}


# Trees out


def write_tree(
    forest: Forest, nodes: slice, value: NDArray[np.float64], shrinkage: float
) -> dict[str, str]:
    """Return keys and values of one tree, whose nodes have the given values."""
    left, threshold = forest.left[nodes], as_infinite(forest.threshold[nodes])
    is_split = left >= 0
    splits = np.flatnonzero(is_split)
    # Splits and leaves are numbered each for themselves, leaves by -1, -2 and so on.
    number = np.where(is_split, np.cumsum(is_split) - 1, -np.cumsum(~is_split, dtype=np.int64))
    words: list[NDArray[np.uint32]] = []
    if forest.category_set.size:
        for node, chosen in sets_of_nodes(forest, nodes).items():
            threshold[node] = len(words)
            words.append(chosen)
    count, cover = forest.node_extras["count"][nodes], forest.cover[nodes]
    fields = {
        "num_leaves": str(left.size - splits.size),
        "num_cat": str(len(words)),
        "split_feature": _joined(forest.feature[nodes][splits]),
        "split_gain": _rounded(forest.node_extras["split_gain"][nodes][splits]),
        "threshold": _joined(threshold[splits]),
        "decision_type": _joined(_decision_type(forest, nodes)[splits]),
        "left_child": _joined(number[left[splits]]),
        "right_child": _joined(number[left[splits] + 1]),
        "leaf_value": _joined(value[~is_split]),
        "leaf_weight": _joined(cover[~is_split]),
        "leaf_count": _joined(count[~is_split]),
        "internal_value": _rounded(value[splits]),
        "internal_weight": _rounded(cover[splits]),
        "internal_count": _joined(count[splits]),
    }
    if words:
        fields["cat_boundaries"] = _joined(np.cumsum([0, *(w.size for w in words)]))
        fields["cat_threshold"] = _joined(np.concatenate(words))
    return fields | {"is_linear": "0", "shrinkage": f"{shrinkage:g}"}


def constant_tree(value: float) -> dict[str, str]:
    """Return keys and values of a tree that is only a leaf; LightGBM reads no more of one."""
    return {
        "num_leaves": "1",
        "num_cat": "0",
        "leaf_value": repr(value),
        "is_linear": "0",
        "shrinkage": "1",
    }


def _decision_type(forest: Forest, nodes: slice) -> NDArray[np.int64]:
    """Return what LightGBM keeps of each split's kind, in bits."""
    zero = np.zeros(forest.n_features, np.bool_)
    zero[list(forest.input.zero_is_missing)] = True
    missing_left = forest.missing_left[nodes]
    sets = forest.category_set
    categorical = sets[nodes] >= 0 if sets.size else np.zeros(missing_left.size, np.bool_)
    # What routes rows follows from what was checked, and only the rest from what is kept besides.
    as_zero = (forest.node_extras["missing_type"][nodes] == NO_MISSING) & (
        categorical | (missing_left == (forest.threshold[nodes] >= 0))
    )
    missing = np.where(as_zero, NO_MISSING, NAN_IS_MISSING)
    missing = np.where(zero[forest.feature[nodes]] & ~categorical, ZERO_IS_MISSING, missing)
    return missing << 2 | missing_left * _DEFAULT_LEFT | categorical * _CATEGORICAL


def _joined(numbers: NDArray[Any]) -> str:
    """Return numbers as text that reads as the same numbers."""
    return " ".join(map(repr, numbers.tolist()))


def _rounded(numbers: NDArray[Any]) -> str:
    """Return numbers as LightGBM writes those that do not matter to predictions."""
    return " ".join(map("{:g}".format, numbers.tolist()))
