"""The one neutral ensemble: every importer makes it, everything else reads it."""

import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestprune import registry
from forestprune.exceptions import InvalidForestError, UnsupportedModelError
from forestprune.files import write_atomically
from forestprune.inputs import InputSpec
from forestprune.kernels.routing import Splits, predict_rows
from forestprune.threads import run_in_threads, split_range, thread_count
from forestprune.validation import check_forest, frozen_array, level_order_left

_FORMAT = 1

_DTYPES: dict[str, tuple[str, int]] = {
    "offsets": ("int64", 1),
    "left": ("int32", 1),
    "feature": ("int32", 1),
    "threshold": ("float64", 1),
    "missing_left": ("bool", 1),
    "value": ("float64", 2),
    "cover": ("float64", 1),
    "scale": ("float64", 1),
    "base": ("float64", 1),
    "category_set": ("int32", 1),
    "set_offsets": ("int64", 1),
    "set_words": ("uint32", 1),
}
"""The arrays of a Forest: type and number of dimensions."""

_NODE_ARRAYS = ("threshold", "feature", "missing_left", "value", "cover")


@dataclass(frozen=True)
class Origin:
    """Where a forest came from, as plain data: enough to write the same kind of model again.

    Attributes
    ----------
    library : str
        Key of the registry, such as "sklearn".
    model_class : str
        Name of the model's class.
    state : mapping
        What the library's module needs besides the trees. Holds only what JSON can hold.
    """

    library: str
    model_class: str
    state: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Forest:
    """A fitted tree ensemble as flat arrays, one entry a node.

    Trees stand one after another, and inside a tree the nodes stand in level order: the root,
    layer 1, layer 2 and so on, siblings side by side. So a layer is a slice, cutting a tree at a
    depth keeps a prefix, and parents come before children. Prediction is
    ``base + sum over trees of scale[i] * value[leaf that the row reaches in tree i]``.

    A Forest never changes: its arrays are read-only, and pruning makes a new one. Usually it comes
    from :meth:`from_model`; arrays in any other node order go through
    :func:`forestprune.build.build_forest`.

    Attributes
    ----------
    offsets : int64 array of shape (n_trees + 1,)
        Tree i owns the nodes ``offsets[i]`` to ``offsets[i + 1] - 1``.
    left : int32 array of shape (n_nodes,)
        Left child, counted from the root of the same tree; -1 at a leaf.
    feature : int32 array of shape (n_nodes,)
        Column that the node splits on; -1 at a leaf.
    threshold : float64 array of shape (n_nodes,)
        A row goes left if ``x <= threshold``, with x rounded to ``input.dtype`` first.
    missing_left : bool array of shape (n_nodes,)
        Whether NaN goes left.
    value : float64 array of shape (n_nodes, n_outputs)
        What the tree predicts if it ends here; known for every node, not only for leaves.
    cover : float64 array of shape (n_nodes,)
        Weight of the training rows that passed the node.
    scale : float64 array of shape (n_trees,)
        Factor of each tree: 1 / n_trees for averages, the learning rate for boosting.
    base : float64 array of shape (n_outputs,)
        The constant.
    input : InputSpec
        What rows the forest takes.
    category_set : int32 array of shape (n_nodes,), or empty
        At a categorical split, the number of the set of categories that go left (all others go
        right); -1 elsewhere. Empty if no split is categorical.
    set_offsets, set_words : int64 and uint32 arrays
        Set s is the bits of ``set_words[set_offsets[s]:set_offsets[s + 1]]``, 32 categories a word.
    origin : Origin or None
        What :meth:`to_native` writes.
    node_extras, tree_extras : mappings of str to array
        Further columns that the source library keeps for each node or tree. They follow the nodes
        and trees through pruning and are given back on export.
    """

    offsets: NDArray[np.int64]
    left: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    missing_left: NDArray[np.bool_]
    value: NDArray[np.float64]
    cover: NDArray[np.float64]
    scale: NDArray[np.float64]
    base: NDArray[np.float64]
    input: InputSpec
    category_set: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    set_offsets: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))
    set_words: NDArray[np.uint32] = field(default_factory=lambda: np.empty(0, np.uint32))
    origin: Origin | None = None
    node_extras: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    tree_extras: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, (dtype, ndim) in _DTYPES.items():
            object.__setattr__(self, name, frozen_array(name, getattr(self, name), dtype, ndim))
        for name in ("node_extras", "tree_extras"):
            extras = {
                key: frozen_array(key, array, np.asarray(array).dtype, np.ndim(array))
                for key, array in getattr(self, name).items()
            }
            object.__setattr__(self, name, MappingProxyType(extras))
        check_forest(self)

    # In and out

    @classmethod
    def from_model(cls, model: Any) -> "Forest":
        """Read a fitted model of any supported library. The model is not changed or kept.

        Parameters
        ----------
        model : object
            A fitted scikit-learn tree or tree ensemble for regression: DecisionTree, ExtraTree,
            RandomForest, ExtraTrees, Bagging over trees, GradientBoosting.

        Examples
        --------
        >>> from sklearn.ensemble import RandomForestRegressor
        >>> import forestprune as fp
        >>> wine = fp.load_wine_quality()
        >>> model = RandomForestRegressor(5, max_depth=3, random_state=0)
        >>> fp.Forest.from_model(model.fit(wine.data, wine.target))
        Forest(5 trees, 75 nodes, depth 3, 11 features, from sklearn RandomForestRegressor)
        """
        forest: Forest = registry.importer_for(model).from_model(model)
        return forest

    def to_native(self) -> Any:
        """Return a fitted model of the class this forest was read from, without dead weight.

        Trees that are down to their root become part of the constant; the model needs nothing of
        this package to predict.
        """
        if self.origin is None:
            raise UnsupportedModelError(
                "Only a forest that was read from a model can be written as one; this one was "
                "made from arrays and has no origin. Use predict(), or give it an Origin."
            )
        return registry.exporter_for(self.origin.library).to_native(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write this forest to `path`, as an npz archive of plain arrays.

        The file appears under its name only when it is complete.
        """
        metadata = {
            "format": _FORMAT,
            "input": asdict(self.input),
            "origin": None if self.origin is None else asdict(self.origin),
        }
        arrays = {name: getattr(self, name) for name in _DTYPES}
        arrays |= {f"node_extras/{name}": array for name, array in self.node_extras.items()}
        arrays |= {f"tree_extras/{name}": array for name, array in self.tree_extras.items()}
        arrays["metadata"] = np.frombuffer(json.dumps(metadata).encode(), np.uint8)
        with write_atomically(path) as file:
            np.savez(file, **arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Forest":
        """Read a forest that :meth:`save` wrote. Reading runs no code from the file."""
        try:
            with np.load(path, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            metadata = json.loads(arrays.pop("metadata").tobytes())
            version = metadata["format"]
        except (zipfile.BadZipFile, EOFError, KeyError, ValueError, AttributeError) as error:
            raise InvalidForestError(
                f"{os.fspath(path)} is not a file written by Forest.save ({error})."
            ) from error
        if version != _FORMAT:
            raise InvalidForestError(
                f"{os.fspath(path)} has file format {version}, this version reads {_FORMAT}. "
                "Read it with the version of forestprune that wrote it."
            )
        extras: dict[str, dict[str, NDArray[Any]]] = {"node_extras": {}, "tree_extras": {}}
        for name in [name for name in arrays if "/" in name]:
            kind, _, key = name.partition("/")
            extras[kind][key] = arrays.pop(name)
        names = metadata["input"].pop("feature_names")
        for array in arrays.values():
            array.flags.writeable = False
        return cls(
            **arrays,
            **extras,
            input=InputSpec(
                feature_names=None if names is None else tuple(names), **metadata["input"]
            ),
            origin=None if metadata["origin"] is None else Origin(**metadata["origin"]),
        )

    # Size and shape

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return self.offsets.size - 1

    @property
    def n_nodes(self) -> int:
        """Number of nodes, roots and leaves included."""
        return self.left.size

    @property
    def n_outputs(self) -> int:
        """Number of values a prediction has."""
        return self.base.size

    @property
    def n_features(self) -> int:
        """Number of columns that X must have."""
        return self.input.n_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Column names seen at training, if there were any."""
        return self.input.feature_names

    @property
    def right(self) -> NDArray[np.int32]:
        """Right child of each node, -1 at a leaf."""
        return np.where(self.left >= 0, self.left + 1, np.int32(-1))

    @property
    def parent(self) -> NDArray[np.int32]:
        """Parent of each node, counted from the root of the same tree; -1 at a root."""
        parent = np.full(self.n_nodes, -1, np.int32)
        splits = np.flatnonzero(self.left >= 0)
        start = np.repeat(self.offsets[:-1], np.diff(self.offsets))[splits]
        for child in (self.left[splits], self.left[splits] + 1):
            parent[start + child] = splits - start
        return parent

    @cached_property
    def layers(self) -> tuple[NDArray[np.int64], ...]:
        """For each tree, where its layers begin and end: layer k is nodes ``[k]`` to ``[k + 1]``.

        Counted from the root of the tree, like `left`.
        """
        result = []
        for start, end in zip(self.offsets[:-1], self.offsets[1:], strict=True):
            left = self.left[start:end]
            bounds = [0, 1]
            while bounds[-1] < left.size:
                # The last split of a layer has the last two nodes of the next one.
                bounds.append(int(left[bounds[-2] : bounds[-1]].max()) + 2)
            result.append(np.array(bounds, dtype=np.int64))
        return tuple(result)

    @property
    def depths(self) -> NDArray[np.int64]:
        """Depth of each tree; 0 if it is only a root."""
        return np.array([len(bounds) - 2 for bounds in self.layers], dtype=np.int64)

    @property
    def max_depth(self) -> int:
        """Depth of the deepest tree; 0 if there is none."""
        return int(self.depths.max(initial=0))

    @property
    def node_depths(self) -> NDArray[np.int64]:
        """Depth of each node; 0 at a root."""
        pieces = [np.repeat(np.arange(len(b) - 1), np.diff(b)) for b in self.layers]
        return np.concatenate([np.empty(0, np.int64), *pieces])

    def layer_sizes(self) -> NDArray[np.int64]:
        """Return the number of nodes in each layer, roots left out: (n_trees, max_depth)."""
        sizes = np.zeros((self.n_trees, self.max_depth), dtype=np.int64)
        for row, bounds in zip(sizes, self.layers, strict=True):
            row[: len(bounds) - 2] = np.diff(bounds[1:])
        return sizes

    @property
    def memory(self) -> int:
        """Bytes that the arrays take."""
        arrays = [getattr(self, name) for name in _DTYPES]
        return sum(a.nbytes for a in [*arrays, *self._extras()])

    # Prediction

    @cached_property
    def splits(self) -> Splits:
        """The arrays that routing reads, as the kernels take them."""
        return Splits(
            self.offsets,
            self.left,
            self.feature,
            self.threshold,
            self.missing_left,
            self.category_set,
            self.set_offsets,
            self.set_words,
        )

    def predict(self, X: Any, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Return the raw prediction for each row of `X`: the source library's own, if unpruned.

        Parameters
        ----------
        X : array-like of shape (m, n_features)
            numpy, pandas or polars.
        n_jobs : int or None
            Threads; None takes every core.

        Returns
        -------
        array of shape (m,), or (m, n_outputs) if there are several outputs
        """
        matrix = self.input.matrix(X)
        rows = len(matrix)
        out = np.tile(self.base, (rows, 1))
        # Large pieces, so that reading the trees is shared by many rows; but work for each thread.
        pieces = max(-(-rows // 16384), min(thread_count(n_jobs), -(-rows // 256)))
        tasks = [
            (matrix, start, stop, self.splits, self.value, self.scale, out)
            for start, stop in split_range(rows, pieces)
        ]
        run_in_threads(predict_rows, tasks, n_jobs)
        return out[:, 0] if self.n_outputs == 1 else out

    # Pruning

    def truncate(self, depths: ArrayLike) -> "Forest":
        """Cut trees at given depths.

        Parameters
        ----------
        depths : int or array-like of shape (n_trees,)
            Depth to which each tree may reach. 0 leaves the root, a constant.
        """
        wanted = np.asarray(depths)
        if wanted.dtype.kind not in "iu" or wanted.shape not in ((), (self.n_trees,)):
            raise ValueError(
                f"depths must be one whole number, or one for each of the {self.n_trees} trees; "
                f"got an array of type {wanted.dtype} and shape {wanted.shape}."
            )
        if (wanted < 0).any():
            raise ValueError(f"depths must not be negative, got {wanted.min()}.")
        limit = np.repeat(np.broadcast_to(wanted, self.n_trees), np.diff(self.offsets))
        return self.keep(self.node_depths <= limit)

    def keep(self, mask: ArrayLike) -> "Forest":
        """Keep the nodes where `mask` is true; a node that loses its children becomes a leaf.

        Parameters
        ----------
        mask : bool array-like of shape (n_nodes,)
            Must be true at every root; false below a node that is false; and equal for siblings.
        """
        mask = np.asarray(mask)
        if mask.dtype != np.bool_ or mask.shape != (self.n_nodes,):
            raise ValueError(
                f"mask must be of type bool and shape ({self.n_nodes},), "
                f"got type {mask.dtype} and shape {mask.shape}."
            )
        start = np.repeat(self.offsets[:-1], np.diff(self.offsets))
        split = np.flatnonzero(self.left >= 0)
        child = start[split] + self.left[split]
        self._check_mask(mask, split, child)

        is_split = np.zeros(self.n_nodes, dtype=np.bool_)
        is_split[split] = mask[child]
        offsets = np.concatenate([[0], np.cumsum(mask)])[self.offsets]
        kept = np.flatnonzero(mask)
        is_split = is_split[kept]
        arrays: dict[str, NDArray[Any]] = {name: getattr(self, name)[kept] for name in _NODE_ARRAYS}
        arrays["feature"][~is_split] = -1
        arrays["threshold"][~is_split] = 0.0
        arrays["missing_left"][~is_split] = False
        if self.category_set.size:
            arrays |= self._kept_sets(np.where(is_split, self.category_set[kept], -1))
        arrays |= {"offsets": offsets, "left": level_order_left(is_split, offsets)}
        return self._with(
            arrays, node_extras={name: array[kept] for name, array in self.node_extras.items()}
        )

    def compact(self) -> "Forest":
        """Return the same predictor without trees that are only a root: they join the constant."""
        sizes = np.diff(self.offsets)
        trees = sizes > 1
        nodes = np.repeat(trees, sizes)
        roots = self.value[self.offsets[:-1]]
        arrays: dict[str, NDArray[Any]] = {
            name: getattr(self, name)[nodes] for name in (*_NODE_ARRAYS, "left")
        }
        arrays["offsets"] = np.concatenate([[0], np.cumsum(sizes[trees])])
        arrays["scale"] = self.scale[trees]
        arrays["base"] = self.base + self.scale[~trees] @ roots[~trees]
        if self.category_set.size:
            arrays["category_set"] = self.category_set[nodes]
        return self._with(
            arrays,
            node_extras={name: array[nodes] for name, array in self.node_extras.items()},
            tree_extras={name: array[trees] for name, array in self.tree_extras.items()},
        )

    def _with(self, arrays: dict[str, NDArray[Any]], **changes: Any) -> "Forest":
        """Return a copy with fresh arrays in place of some; they are frozen without a copy."""
        extras = [array for mapping in changes.values() for array in mapping.values()]
        for array in [*arrays.values(), *extras]:
            array.flags.writeable = False
        return replace(self, **arrays, **changes)

    def _kept_sets(self, sets: NDArray[np.int32]) -> dict[str, NDArray[Any]]:
        """Renumber the category sets that `sets` still names, and drop the others."""
        used = np.unique(sets[sets >= 0])
        if used.size == 0:
            empty = np.empty(0, np.int32)
            return {
                "category_set": empty,
                "set_offsets": np.zeros(1, np.int64),
                "set_words": np.empty(0, np.uint32),
            }
        lengths = np.diff(self.set_offsets)[used]
        words = [self.set_words[self.set_offsets[s] : self.set_offsets[s + 1]] for s in used]
        return {
            "category_set": np.where(sets >= 0, np.searchsorted(used, sets), -1).astype(np.int32),
            "set_offsets": np.concatenate([[0], np.cumsum(lengths)]),
            "set_words": np.concatenate(words),
        }

    def _check_mask(
        self, mask: NDArray[np.bool_], split: NDArray[np.int64], child: NDArray[np.int64]
    ) -> None:
        roots = self.offsets[:-1]
        if not mask[roots].all():
            tree = int(np.flatnonzero(~mask[roots])[0])
            raise ValueError(
                f"mask must keep every root, but drops that of tree {tree}. To remove a tree, keep "
                "only its root, then call compact()."
            )
        bad = np.zeros(self.n_nodes, dtype=np.bool_)
        bad[split] = mask[child] != mask[child + 1]
        if bad.any():
            raise ValueError(
                "mask must keep both children of a node or none, "
                f"but keeps one of {self._locate(bad)}."
            )
        bad[split] = mask[child] & ~mask[split]
        if bad.any():
            raise ValueError(
                f"mask drops {self._locate(bad)} but keeps its children; a node can only be kept "
                "with all its ancestors."
            )

    # Comparing and showing

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Forest):
            return NotImplemented
        for extras in ("node_extras", "tree_extras"):
            if getattr(self, extras).keys() != getattr(other, extras).keys():
                return False
        mine = [getattr(self, name) for name in _DTYPES] + self._extras()
        theirs = [getattr(other, name) for name in _DTYPES] + [
            *(other.node_extras[name] for name in self.node_extras),
            *(other.tree_extras[name] for name in self.tree_extras),
        ]
        return (
            self.input == other.input
            and self.origin == other.origin
            and all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        def count(number: int, noun: str) -> str:
            return f"{number:,} {noun}" + ("" if number == 1 else "s")

        parts = [
            count(self.n_trees, "tree"),
            count(self.n_nodes, "node"),
            f"depth {self.max_depth}",
            count(self.n_features, "feature"),
        ]
        if self.n_outputs > 1:
            parts.append(count(self.n_outputs, "output"))
        if self.origin is not None:
            parts.append(f"from {self.origin.library} {self.origin.model_class}")
        return f"Forest({', '.join(parts)})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, so that a copy is checked and read-only too.
        state = {f.name: getattr(self, f.name) for f in fields(self)}
        state |= {"node_extras": dict(self.node_extras), "tree_extras": dict(self.tree_extras)}
        return _forest_from_state, (state,)

    def _extras(self) -> list[NDArray[Any]]:
        return [*self.node_extras.values(), *self.tree_extras.values()]

    def _locate(self, nodes: NDArray[np.bool_]) -> str:
        """Name the first node marked in `nodes`, for an error message."""
        node = int(np.flatnonzero(nodes)[0])
        tree = int(np.searchsorted(self.offsets, node, side="right")) - 1
        return f"node {node - self.offsets[tree]} of tree {tree}"


def _forest_from_state(state: dict[str, Any]) -> Forest:
    return Forest(**state)
