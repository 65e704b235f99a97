"""What makes arrays a forest.

Kernels index without bounds checks, so nothing that fails here may reach them: every Forest is
checked when it is made, also one that was read from a file.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from forestprune import kernels
from forestprune.exceptions import InvalidForestError
from forestprune.kernels import faults

if TYPE_CHECKING:
    from forestprune.forest.forest import Forest

_RULES = {
    faults.NO_SUCH_CHILD: "left must be -1 at a leaf, else a node of the same tree, as its sibling",
    faults.CHILD_BEFORE_PARENT: "left must be after the node itself, or there would be a cycle",
    faults.NOT_LEVEL_ORDER: "left must put the nodes of a tree in level order, siblings side by "
    "side (forestprune.forest.build_forest sorts them)",
    faults.NOBODYS_CHILD: "left must make every node but the root the child of another",
    faults.NO_SUCH_FEATURE: "feature must be -1 at a leaf, else a number below n_features",
    faults.NO_SUCH_SET: "category_set must be -1 at a leaf or a numeric split, else the number of "
    "a set",
    faults.BAD_THRESHOLD: "threshold must be finite",
    faults.BAD_COVER: "cover must be finite and not negative",
    faults.BAD_VALUE: "value must be finite",
}
"""What must hold where a fault was found; the first word is the array's name."""


def seal(array: NDArray[Any]) -> NDArray[Any]:
    """Mark an array of our own, and what it is a view of, as read-only; return it."""
    for part in _bases(array):
        part.flags.writeable = False
    return array


def _is_sealed(array: NDArray[Any]) -> bool:
    *_, last = bases = list(_bases(array))
    return last.base is None and not any(part.flags.writeable for part in bases)


def _bases(array: Any) -> Iterator[NDArray[Any]]:
    """Yield an array, the array that it is a view of, and so on."""
    while isinstance(array, np.ndarray):
        yield array
        array = array.base


def frozen_array(name: str, array: ArrayLike, dtype: DTypeLike, ndim: int) -> NDArray[Any]:
    """Return `array` in `dtype`, contiguous and read-only; copied unless it is sealed."""
    given = np.asarray(array)
    if given.ndim != ndim or ndim == 0:
        raise InvalidForestError(
            f"{name} must have {max(ndim, 1)} dimension(s), got shape {given.shape}."
        )
    dtype = np.dtype(dtype)
    if dtype.hasobject:
        raise InvalidForestError(f"{name} must hold numbers, got type {dtype}.")
    if given.size and not np.can_cast(given.dtype, dtype, "same_kind"):
        raise InvalidForestError(f"{name} must be of type {dtype}, got {given.dtype}.")
    result = np.array(given, dtype=dtype, order="C", copy=None if _is_sealed(given) else True)
    if dtype.kind in "iu" and given.dtype != dtype and not np.array_equal(result, given):
        raise InvalidForestError(f"{name} holds numbers too large for {dtype}.")
    return seal(result)


def check_forest(forest: "Forest") -> None:
    """Raise InvalidForestError unless the arrays of `forest` fit together."""
    _check_offsets("offsets", forest.offsets, forest.left.size, "left", least=1)
    _check_offsets("set_offsets", forest.set_offsets, forest.set_words.size, "set_words", least=0)
    _check_lengths(forest)
    _check_outputs(forest)
    for name in ("scale", "base"):
        if not np.isfinite(getattr(forest, name)).all():
            raise InvalidForestError(f"{name} must be finite, got {getattr(forest, name)}.")
    fault, node = kernels.first_fault(forest.splits, forest.n_features, forest.value, forest.cover)
    if fault != faults.SOUND:
        rule = _RULES[fault]
        name = rule.split()[0]
        raise InvalidForestError(
            f"Not a forest: {rule}. {forest.locate(node).capitalize()} "
            f"has {name} = {getattr(forest, name)[node]}."
        )


def _check_offsets(name: str, offsets: NDArray[np.int64], end: int, of: str, *, least: int) -> None:
    # Numbers beyond the end go first: their differences could overflow.
    out_of_range = offsets.size == 0 or offsets.min() != 0 or offsets.max() > end
    if out_of_range or offsets[0] != 0 or offsets[-1] != end or (np.diff(offsets) < least).any():
        raise InvalidForestError(
            f"{name} must start at 0, rise by at least {least} each time and end at the length of "
            f"{of}, {end}; got {np.array2string(offsets, threshold=8)}."
        )


def _check_lengths(forest: "Forest") -> None:
    nodes, trees = forest.n_nodes, forest.n_trees
    required: dict[str, tuple[NDArray[Any], int, str]] = {
        name: (getattr(forest, name), nodes, "node")
        for name in ("feature", "threshold", "missing_left", "value", "cover")
    }
    required["scale"] = (forest.scale, trees, "tree")
    if forest.tree_output.size:
        required["tree_output"] = (forest.tree_output, trees, "tree")
    if forest.category_set.size:
        required["category_set"] = (forest.category_set, nodes, "node")
    for name, array in forest.node_extras.items():
        required[f"node_extras[{name!r}]"] = (array, nodes, "node")
    for name, array in forest.tree_extras.items():
        required[f"tree_extras[{name!r}]"] = (array, trees, "tree")
    for name, (array, length, unit) in required.items():
        if len(array) != length:
            raise InvalidForestError(
                f"{name} must have one entry a {unit}, that is {length}, got {len(array)}."
            )
    for names in (forest.input.feature_names, forest.input.display_names):
        if names is not None and len(names) != forest.n_features:
            raise InvalidForestError(
                f"There are {forest.n_features} features, but {len(names)} feature names."
            )
    constraints = () if forest.origin is None else forest.origin.monotone
    if constraints and len(constraints) != forest.n_features:
        raise InvalidForestError(
            f"There are {forest.n_features} features, but {len(constraints)} monotone constraints."
        )
    groups: Any = "pairwise" if forest.origin is None else forest.origin.interactions
    columns = [] if groups == "pairwise" else [column for group in groups for column in group]
    if columns and not 0 <= min(columns) <= max(columns) < forest.n_features:
        raise InvalidForestError(
            f"Interaction constraints must be about columns 0 to {forest.n_features - 1}."
        )


def _check_outputs(forest: "Forest") -> None:
    outputs, columns = forest.n_outputs, forest.value.shape[1]
    output = forest.tree_output
    if not output.size:
        if outputs < 1 or columns != outputs:
            raise InvalidForestError(
                "base and value must have the same number of outputs, at least one; "
                f"got {outputs} and {columns}."
            )
    elif columns != 1 or output.min() < 0 or output.max() >= outputs:
        raise InvalidForestError(
            f"tree_output must name one of the {outputs} outputs for each tree, and value then "
            f"have one column; got {np.array2string(output, threshold=8)} and {columns} columns."
        )
