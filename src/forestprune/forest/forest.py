"""The one neutral ensemble: every importer makes it, everything else reads it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestprune import kernels
from forestprune.exceptions import InvalidForestError, UnsupportedModelError
from forestprune.forest import cutting, registry
from forestprune.forest.category_sets import sets_of_nodes
from forestprune.forest.checks import check_forest, frozen_array, seal
from forestprune.forest.inputs import InputSpec
from forestprune.forest.origin import Origin, origin_from_metadata
from forestprune.forest.shape import Shape
from forestprune.kernels.records import Splits
from forestprune.system.files import read_archive, write_archive
from forestprune.system.threads import run_in_threads, split_range, thread_count

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
    "tree_output": ("int32", 1),
    "category_set": ("int32", 1),
    "set_offsets": ("int64", 1),
    "set_words": ("uint32", 1),
}
"""The arrays of a Forest: type and number of dimensions."""

_EXTRAS = ("node_extras", "tree_extras")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Forest(Shape):
    """A fitted tree ensemble as flat arrays, one entry a node.

    Trees come one after another, and within a tree nodes are in level order: the root, layer 1,
    layer 2 and so on, siblings side by side. So a layer is a slice, cutting a tree at a depth keeps
    a prefix, and parents come before children. The raw prediction is
    ``base + sum over trees of scale[i] * value[leaf that the row reaches in tree i]``.

    A Forest never changes: its arrays are read-only, and pruning makes a new one. Usually it comes
    from :meth:`from_model`; trees in any other order go through
    :func:`forestprune.forest.build_forest`.

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
    value : float64 array of shape (n_nodes, n_outputs), or (n_nodes, 1) with `tree_output`
        What the tree predicts if it ends here; known for every node, not only for leaves.
    cover : float64 array of shape (n_nodes,)
        Weight of the training rows that passed the node.
    scale : float64 array of shape (n_trees,)
        Factor of each tree: 1 / n_trees for averages, the learning rate for boosting.
    base : float64 array of shape (n_outputs,)
        The constant.
    input : InputSpec
        What rows the forest takes.
    tree_output : int32 array of shape (n_trees,), or empty
        The one output that each tree adds to; empty if every tree adds to all outputs.
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
    tree_output: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    category_set: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    set_offsets: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))
    set_words: NDArray[np.uint32] = field(default_factory=lambda: np.empty(0, np.uint32))
    origin: Origin | None = None
    node_extras: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    tree_extras: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, (dtype, ndim) in _DTYPES.items():
            object.__setattr__(self, name, frozen_array(name, getattr(self, name), dtype, ndim))
        for group in _EXTRAS:
            extras = {
                name: frozen_array(name, array, np.asarray(array).dtype, np.ndim(array))
                for name, array in getattr(self, group).items()
            }
            object.__setattr__(self, group, MappingProxyType(extras))
        check_forest(self)

    # In and out

    @classmethod
    def from_model(cls, model: Any) -> Forest:
        """Read a fitted model of any supported library. The model is not changed or kept.

        Parameters
        ----------
        model : object
            A fitted tree ensemble: DecisionTree, ExtraTree, RandomForest, ExtraTrees, Bagging over
            trees, GradientBoosting and HistGradientBoosting of scikit-learn, XGBoost's,
            LightGBM's and CatBoost's, for regression or classification; their Boosters, and
            rankers. Those that were fitted with Dask become what they are without it.
            Early-stopped models are read as their `predict` uses them by default. Of a Pipeline
            that ends in one of these, the forest at its end: it takes rows as they are after the
            other steps, ``pipeline[:-1].transform(X)``, and its `column_names` are those that
            these steps give.

        Examples
        --------
        >>> from sklearn.ensemble import RandomForestRegressor
        >>> import forestprune as fp
        >>> wine = fp.load_wine_quality()
        >>> model = RandomForestRegressor(5, max_depth=3, random_state=0)
        >>> fp.Forest.from_model(model.fit(wine.data, wine.target))
        Forest(5 trees, 75 nodes, depth 3, 11 features, from sklearn RandomForestRegressor)
        """
        with np.errstate(under="ignore"):  # numbers may round to zero
            model = registry.inside(model)
            forest: Forest = registry.importer_for(model).from_model(model)
        return forest

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], *, trust: bool = False) -> Forest:
        """Read a model file of any supported library.

        A file of XGBoost is read as a Booster, with all its trees, even if training went on beyond
        the best iteration.

        Parameters
        ----------
        path : str or path-like
            ``.json`` of XGBoost or CatBoost, ``.ubj`` of XGBoost, ``.txt`` of LightGBM, ``.cbm``
            of CatBoost, ``.joblib``, ``.pkl`` or ``.pickle`` of anything, ``.skops`` of
            scikit-learn, ``.npz`` of :meth:`save`.
        trust : bool
            Whether you trust whoever wrote the file. Files of joblib and pickle can run any code
            when they are loaded, and so can those of skops with types other than scikit-learn's
            own: they are refused otherwise. All other files hold data only.
        """
        model = registry.load_model(path, trust=trust)
        return model if isinstance(model, cls) else cls.from_model(model)

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
        with np.errstate(under="ignore"):
            return registry.exporter_for(self.origin.library).to_native(self, self.origin)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write this forest to `path`, as an npz archive of plain arrays.

        The file appears under its name only when it is complete.
        """
        write_archive(path, *self.pack())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Forest:
        """Read a forest that :meth:`save` wrote. Reading runs no code from the file.

        Of a pruned model that :meth:`PrunedForest.save` wrote, without its path, the forest.
        """
        arrays, metadata = read_archive(path)
        if "reports" in metadata:
            raise InvalidForestError(
                f"{os.fspath(path)} does not hold a forest, but the path of a pruned one: read it "
                "with PrunedForest.load or PruningPath.load."
            )
        try:
            if "pruned" in metadata:
                own = (name for name in arrays if name.startswith("forest/"))
                arrays = {name.removeprefix("forest/"): arrays[name] for name in own}
                metadata = metadata["forest"]
            return cls.unpack(arrays, metadata)
        except (KeyError, TypeError, AttributeError) as error:
            raise InvalidForestError(
                f"{os.fspath(path)} does not hold a forest, or not all of one ({error})."
            ) from error

    def pack(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return this forest as plain arrays, and as what JSON can hold."""
        origin = None if self.origin is None else asdict(self.origin)
        return self._arrays(), {"input": asdict(self.input), "origin": origin}

    @classmethod
    def unpack(cls, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> Forest:
        """Return the forest that :meth:`pack` took apart."""
        state: dict[str, Any] = {group: {} for group in _EXTRAS}
        for name, array in arrays.items():
            group, slash, key = name.partition("/")
            seal(array)
            if slash:
                state[group][key] = array
            else:
                state[name] = array
        origin = metadata["origin"]
        state["input"] = InputSpec(**metadata["input"])
        state["origin"] = None if origin is None else origin_from_metadata(origin)
        return cls(**state)

    # What is known of it

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
    def column_names(self) -> tuple[str, ...]:
        """What columns are called where they are shown; x0, x1 and so on if nobody named them."""
        names = self.input.feature_names or self.input.display_names
        return names or tuple(f"x{column}" for column in range(self.n_features))

    @property
    def n_features_used(self) -> int:
        """Number of columns that some split asks about."""
        return int(np.unique(self.feature[self.left >= 0]).size)

    @cached_property
    def n_thresholds(self) -> int:
        """Number of different thresholds, or sets of categories, each of one column.

        What is deployed keeps each of them once, or can: see :meth:`PrunedForest.to_c`.
        """
        splits = np.flatnonzero(self.left >= 0)
        if not self.category_set.size:
            pairs = np.column_stack([self.feature[splits], self.threshold[splits]])
            return len(np.unique(pairs, axis=0))
        sets = sets_of_nodes(self, slice(0, self.n_nodes))
        return len(
            {
                (self.feature[node], sets[node].tobytes() if node in sets else self.threshold[node])
                for node in splits.tolist()
            }
        )

    @property
    def scaled_value(self) -> NDArray[np.float64]:
        """What each node adds if the tree ends there: `value` times the scale of its tree."""
        return self.value * self.scale[self.tree_of_node, np.newaxis]

    @property
    def adds_up_to_y(self) -> bool:
        """Whether predictions can be compared with y, as far as the forest knows."""
        return self.origin is None or self.origin.adds_up_to_y

    @property
    def monotone(self) -> NDArray[np.int8]:
        """For each column 1 if predictions never fall as it rises, -1 if they never rise, else 0.

        What the library was told to guarantee. Empty if it was told nothing.
        """
        constraints = () if self.origin is None else self.origin.monotone
        return np.array(constraints if any(constraints) else (), dtype=np.int8)

    @property
    def averages(self) -> bool:
        """Whether the trees are averaged, each a model in itself, rather than added up.

        The library says so; a forest without an origin is an average if its scales are those of
        one and nothing is added to it.
        """
        if self.origin is not None:
            return self.origin.averages
        n = self.n_trees
        return n > 0 and np.allclose(self.scale, 1.0 / n) and not self.base.any()

    @property
    def averages_distributions(self) -> bool:
        """Whether predictions are means of distributions over classes, one for each leaf."""
        origin = self.origin
        return origin is not None and bool(origin.classes) and origin.link == "identity"

    def require_joint_outputs(self, what: str) -> None:
        """Raise UnsupportedModelError if each tree adds to one output only; `what` cannot do so."""
        if self.tree_output.size:
            raise UnsupportedModelError(
                f"{what} takes forests in which every tree adds to all outputs; in this one each "
                f"tree adds to one of {self.n_outputs} outputs."
            )

    @property
    def memory(self) -> int:
        """Bytes that the arrays take."""
        return sum(array.nbytes for array in self._arrays().values())

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
            numpy, pandas, polars or lists; sparse, or a container of the library, if it takes that.
        n_jobs : int or None
            Threads; None takes every core.

        Returns
        -------
        array of shape (m,), or (m, n_outputs) if there are several outputs
        """
        out = self.predict_matrix(self.input.matrix(X), n_jobs)
        return out[:, 0] if self.n_outputs == 1 else out

    def predict_matrix(
        self, matrix: NDArray[Any], n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """Return the raw predictions, (m, n_outputs), for rows that `InputSpec.matrix` checked."""
        rows = len(matrix)
        out = np.tile(self.base, (rows, 1))
        tasks = [
            (matrix, start, stop, self.splits, self.value, self.scale, self.tree_output, out)
            for start, stop in self.row_pieces(rows, at_least=thread_count(n_jobs))
        ]
        run_in_threads(kernels.predict_rows, tasks, n_jobs, "predicting")
        return out

    def row_pieces(self, rows: int, *, at_least: int) -> list[tuple[int, int]]:
        """Cut `rows` rows into pieces to be sent down the trees one after another.

        Long enough to share the reading of a tree, short enough to stay in the cache from tree to
        tree; at least `at_least` of them unless that makes them too short to be worth a thread.
        """
        length = max(16384, self.n_nodes // max(1, self.n_trees))
        return split_range(rows, max(-(-rows // length), min(at_least, -(-rows // 256))))

    # Pruning

    def truncate(self, depths: ArrayLike) -> Forest:
        """Cut trees at given depths.

        Parameters
        ----------
        depths : int or array-like of shape (n_trees,)
            Depth to which each tree may reach. 0 leaves the root, a constant.
        """
        return cutting.keep(self, cutting.mask_of_depths(self, depths))

    def keep(self, mask: ArrayLike) -> Forest:
        """Keep the nodes where `mask` is true; a node that loses its children becomes a leaf.

        Parameters
        ----------
        mask : bool array-like of shape (n_nodes,)
            Must be true at every root, false below a node that is false, and equal for siblings.
        """
        return cutting.keep(self, mask)

    def compact(self) -> Forest:
        """Return the same predictor without trees that are only a root: they join the constant."""
        return cutting.compact(self)

    # Comparing and showing

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Forest):
            return NotImplemented
        mine, theirs = self._arrays(), other._arrays()
        return (
            self.input == other.input
            and self.origin == other.origin
            and mine.keys() == theirs.keys()
            and all(
                np.array_equal(mine[name], theirs[name], equal_nan=mine[name].dtype.kind == "f")
                for name in mine
            )
        )

    def __repr__(self) -> str:
        counts = {"tree": self.n_trees, "node": self.n_nodes, "depth": self.max_depth}
        counts |= {"feature": self.n_features, "output": self.n_outputs}
        parts = [
            f"depth {count}" if noun == "depth" else f"{count:,} {noun}{'s' * (count != 1)}"
            for noun, count in counts.items()
            if (noun, count) != ("output", 1)
        ]
        if self.origin is not None:
            parts.append(f"from {self.origin.library} {self.origin.model_class}")
        return f"Forest({', '.join(parts)})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, so that a copy is checked and read-only too.
        state = {f.name: getattr(self, f.name) for f in fields(self)}
        state |= {"node_extras": dict(self.node_extras), "tree_extras": dict(self.tree_extras)}
        return _forest_from_state, (state,)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Return all arrays, the extras as "node_extras/name"."""
        arrays = {name: getattr(self, name) for name in _DTYPES}
        for group in _EXTRAS:
            arrays |= {f"{group}/{name}": array for name, array in getattr(self, group).items()}
        return arrays


def _forest_from_state(state: dict[str, Any]) -> Forest:
    return Forest(**state)
