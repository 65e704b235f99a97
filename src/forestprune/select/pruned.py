"""What pruning returns: a small forest that is still a model of the original's class."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestprune.deploy.sizes import deployed_bytes
from forestprune.forest import registry, response
from forestprune.forest.build import average_of_leaves
from forestprune.forest.classes import labels_of
from forestprune.forest.cutting import sum_of_roots
from forestprune.forest.forest import Forest
from forestprune.forest.new_splits import new_splits
from forestprune.forest.symmetric import with_levels_first
from forestprune.interop.source import Source
from forestprune.options import DEPLOYED
from forestprune.select.notebook import html_table, new_splits_words, score_words
from forestprune.select.validation import ValidationScore
from forestprune.solve.dual.certificate import Certificate
from forestprune.solve.point import Point, kept_leaves, kept_mask

if TYPE_CHECKING:
    from forestprune.deploy.c_header import CHeader, Layout
    from forestprune.deploy.conditions import Precision
    from forestprune.deploy.leaves import LeafType
    from forestprune.select.path import PruningPath


class ForestSize(NamedTuple):
    """How large a forest is."""

    n_trees: int
    n_nodes: int
    max_depth: int


@dataclass(frozen=True, eq=False, repr=False)
class PrunedForest:
    """A pruned forest, with how it came about.

    Attributes
    ----------
    forest : Forest
        The pruned trees, without those that are gone, their weights in `forest.scale`.
    depths : int64 array of shape (n_trees of the original,)
        How deep what is left of each tree of the original is; 0 if it is gone.
    weights : float64 array of shape (n_trees of the original,)
        How each tree of the original is weighted, relative to before or, if its leaves have new
        values, to these; 0 if it is gone.
    alpha : float
        What cost was weighted with.
    objective : float
        What was minimised, at these depths and weights: see :func:`forestprune.prune`.
    loss : float
        That of the model over that of the best constant, on the rows that it was pruned with.
    n_iter : int
        Sweeps over all trees that it took.
    full : ForestSize
        Size of the original forest: `n_trees`, `n_nodes`, `max_depth`.
    report : dict
        What else there is to say: the shrinkage, if it was chosen; for a best subset the solver,
        its status, gap and seconds; the certificate, if one was asked for.
    ending : str
        Of the file whose size `n_bytes` is.
    validation : ValidationScore or None
        How it and the full model do on the validation rows it was chosen by, if there were some.
    path : PruningPath or None
        All candidates that it was chosen from, with the original forest: ``path[index]`` is this
        model. It ends where what was asked for is reached, so larger models need another call.
        Copies and pickles leave it behind, and so do files unless :meth:`save` is told to
        keep it.
    index : int or None
        Its place in `path`.
    """

    forest: Forest
    depths: NDArray[np.int64]
    weights: NDArray[np.float64]
    alpha: float
    objective: float
    loss: float
    n_iter: int
    full: ForestSize
    report: dict[str, Any] = field(default_factory=dict)
    source: Source | None = None
    ending: str = ".joblib"
    validation: ValidationScore | None = None
    path: PruningPath | None = None
    index: int | None = None

    @classmethod
    def of(
        cls, source: Source, point: Point, path: PruningPath | None = None, index: int = 0
    ) -> PrunedForest:
        """Cut and weight the trees of `source` as `point` says: that of a path, if one is given."""
        original, validation = source.original, None if path is None else path.validation
        return cls(
            forest=forest_at(source.forest, point),
            depths=point.depths,
            weights=point.weights,
            alpha=point.alpha,
            objective=point.objective,
            loss=point.loss,
            n_iter=point.n_iter,
            report=point.report,
            source=source.surroundings(),
            ending=source.ending,
            validation=None if validation is None else validation.at(index),
            full=ForestSize(original.n_trees, original.n_nodes, original.max_depth),
            path=path,
            index=None if path is None else index,
        )

    @property
    def tree_numbers(self) -> NDArray[np.int64]:
        """Which tree of the original each tree of `forest` was, counted from 0."""
        return np.flatnonzero(self.depths)

    @property
    def n_nodes(self) -> int:
        """Number of nodes, roots and leaves included; 0 if only a constant is left."""
        return self.forest.n_nodes

    @property
    def n_trees(self) -> int:
        """Number of trees left."""
        return self.forest.n_trees

    @property
    def n_splits(self) -> int:
        """Number of splits left."""
        return (self.n_nodes - self.n_trees) // 2

    @cached_property
    def n_new_splits(self) -> int:
        """How many of these the original does not have: ``polish="split"`` chose them anew.

        Native models keep no record of that: all splits of one that is read count as its own.
        """
        return int(np.count_nonzero(new_splits(self.forest)))

    @property
    def max_depth(self) -> int:
        """Depth of the deepest tree left."""
        return self.forest.max_depth

    @cached_property
    def certificate(self) -> Certificate | None:
        """How far from the least objective it can be at most; None if that was not asked for.

        ``certify=True`` or ``solver="exact"`` ask for it.
        """
        known = self.report.get("certificate")
        return None if known is None else Certificate.from_dict(known)

    @property
    def bound(self) -> float | None:
        """What no pruned model's objective is below at this alpha; None if that is not known."""
        return None if self.certificate is None else self.certificate.bound

    @property
    def gap(self) -> float | None:
        """``(objective - bound) / objective``; None if no bound is known."""
        return None if self.certificate is None else self.certificate.gap

    @property
    def status(self) -> str | None:
        """What is proved: "optimal", "bounded", "time limit", "unknown"; None if not asked for."""
        return None if self.certificate is None else self.certificate.status

    @cached_property
    def n_bytes(self) -> int:
        """Size of the file that `joblib.dump(small.to_native(), file)` writes.

        In another format if `ending` says so: that which the option `format` names, or that of the
        file which the model was read from. For a forest that did not come from a model, that of
        `small.forest.save(file)`. If it is what the model is deployed as, the bytes of
        :meth:`to_onnx` when it is written, or those that :meth:`to_c` says it takes on a
        microcontroller.
        """
        return model_size(self.forest, self.ending, self.to_native)

    def predict(self, X: Any, *, n_jobs: int | None = None) -> NDArray[Any]:
        """Return what ``to_native().predict(X)`` returns: labels, or values through the link.

        If the model was a pipeline, `X` is what the pipeline takes.
        """
        return response.predicted(self.forest.origin, self._raw(X, n_jobs))

    def predict_proba(self, X: Any, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Return the probability of each class, in the order of `classes_`; for classifiers."""
        response.require_classes(self.forest.origin, "Probabilities")
        return response.probabilities(self.forest.origin, self._raw(X, n_jobs))

    def decision_function(self, X: Any, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Return what the trees add up to: of two classes one number a row, about the second.

        That are log-odds where classes were boosted, and probabilities where trees average these.
        For other models than classifiers, what `predict` says before it goes through the link.
        """
        return self._raw(X, n_jobs)

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels of a classifier."""
        origin = self.forest.origin
        if origin is None or not origin.classes:
            raise AttributeError("This model is no classifier, so it has no classes.")
        return labels_of(origin)

    def _raw(self, X: Any, n_jobs: int | None) -> NDArray[np.float64]:
        rows = X if self.source is None else self.source.transform(X)
        return self.forest.predict(rows, n_jobs=n_jobs)

    def to_native(self) -> Any:
        """Return a fitted model of the original's class; it needs nothing of this package.

        For a pipeline, that pipeline with the small model as its last step.
        """
        native = self.forest.to_native()
        return native if self.source is None else self.source.wrap(native)

    def to_text(self, *, digits: int | None = 4, output: int | None = None) -> str:
        """Return the model in words: a constant, and what each tree adds to it, by conditions.

        The first lines say what that sum is and how predictions follow from it: the log-odds of a
        class, its probability, the log of the mean. Of several classes each tree is followed by its
        own, or each leaf lists what it adds to all. Conditions of splits that the original does not
        have, which ``polish="split"`` makes, are followed by "[new]".

        The tree that matters most comes first; trees have their numbers in the original. Features
        are those that the trees see: in a pipeline, after its other steps. A name that is not a
        plain word is quoted as Python quotes strings; one that several columns share has the number
        of its column behind it.

        Parameters
        ----------
        digits : int or None
            To how many digits numbers are rounded, though no further than to whole ones; None
            writes them exactly. A condition says "<" in place of "<=" if its threshold was
            rounded up, so that numbers as round as that still go the right way.
        output : int or None
            Which output, counted from 0; needed if there are several, but not for classes.

        Examples
        --------
        >>> from sklearn.ensemble import GradientBoostingRegressor
        >>> import forestprune as fp
        >>> wine = fp.load_wine_quality()
        >>> model = GradientBoostingRegressor(n_estimators=50, random_state=0)
        >>> model = model.fit(wine.data, wine.target)
        >>> small = fp.prune(model, wine.data, wine.target, max_trees=2, max_nodes=6)
        >>> print(small.to_text(digits=3))
        Prediction = 5.82 + what one tree adds.
        In brackets: share of the training rows. Numbers are rounded to 3 digits.
        <BLANKLINE>
        Tree 0
          if x10 <= 10.6:
            +0.0909 (16 %) if x1 < 0.238, else -0.421 (43 %)
          else: +0.413 (40 %)
        """
        from forestprune.text import to_text

        return to_text(self.forest, digits=digits, output=output, numbers=self.tree_numbers)

    def to_formula(self, *, digits: int | None = None, output: int | None = None) -> str:
        """Return the model as a Python expression of its features: what its trees add up to.

        That is what `predict` says or, for classifiers and models with a link, what
        `decision_function` says; a comment names it, such as the log-odds of a class. Of several
        classes each has a formula of its own, and none says more than how likely it is beside the
        others.

        What a tree adds on average is in the constant; each term says what it adds beyond that:
        ``(-0.3 if age <= 40 else +1.2)``. Features are called by their names where these are
        Python identifiers; :func:`forestprune.text.identifiers` says how other names are made
        into some, and lists them, one for each column.

        To reproduce it, give numbers as they are, categories as their codes, which comments
        explain, and NaN for what is missing: ``small.forest.input.matrix(X)`` has them like that.
        NaN fails every comparison and so goes to "else", which is why some conditions are turned
        round.

        Parameters
        ----------
        digits : int or None
            None writes numbers exactly, so that the formula agrees with the model but for the
            rounding of sums. Fewer digits are for reading.
        output : int or None
            Which output, counted from 0, which for classifiers is the place of its class in
            `classes_`; needed if there are several.

        Examples
        --------
        >>> from sklearn.ensemble import GradientBoostingRegressor
        >>> import forestprune as fp
        >>> from forestprune.text import identifiers
        >>> wine = fp.load_wine_quality()
        >>> model = GradientBoostingRegressor(n_estimators=50, random_state=0)
        >>> model = model.fit(wine.data, wine.target)
        >>> small = fp.prune(model, wine.data, wine.target, max_trees=2, max_nodes=6)
        >>> print(small.to_formula(digits=3))
        (
            5.82
            + ((+0.0909 if x1 < 0.238 else -0.421) if x10 <= 10.6 else +0.413)
        )
        >>> row = dict(zip(identifiers(small.forest), wine.data[0].tolist()))
        >>> bool(abs(eval(small.to_formula(), row) - small.predict(wine.data[:1])[0]) < 1e-12)
        True
        """
        from forestprune.text import to_formula

        return to_formula(self.forest, digits=digits, output=output)

    def share_thresholds(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        tolerance: float = 0.0,
        sample_weight: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> PrunedForest:
        """Return this model with close thresholds made one, where that makes its program smaller.

        A program in C keeps each threshold once if many splits have it. Here all thresholds of a
        column that lie in one bin, of at most 254 with as many rows in each, become one of them;
        bins are as coarse as rows allow. Trees and their leaves stay what they are, and so do
        constraints: predictions that never fall as a column rises still do not.

        Parameters
        ----------
        X : array-like
            Rows to check by, best such as the model was not pruned with.
        y : array-like or None
            Their targets, or labels; None takes the model's own predictions, so that `tolerance`
            is by how much they may change.
        tolerance : float
            By how much the score of these rows may fall: R squared, or D squared for other losses
            than squared error. With 0 it must not fall.
        sample_weight : array-like or None
            Weights of these rows.
        n_jobs : int or None
            Threads; None takes every core.

        Returns
        -------
        PrunedForest
            This model itself if nothing can be saved within the tolerance. Else `report` has
            "shared_thresholds": thresholds, bytes (as `format` counts them, else as
            ``format="c-float32"``) and scores, before and after. All other figures, such as
            `loss`, are those of before, and there is no `path`.
        """
        from forestprune.select.sharing import share_thresholds

        return share_thresholds(
            self, X, y, tolerance=tolerance, sample_weight=sample_weight, n_jobs=n_jobs
        )

    def to_c(
        self,
        name: str = "model",
        *,
        dtype: Precision = "float64",
        layout: Layout = "tables",
        leaves: LeafType | None = None,
    ) -> CHeader:
        """Return the model as one header in C99 that needs no library.

        It has these functions, their names beginning with `name`; with ``dtype="float32"`` all
        numbers are ``float`` in place of ``double``:

        - ``double model_predict(const double *x)``, what `predict` says; of several outputs
          ``void model_predict(const double *x, double *y)``
        - of classifiers ``void model_predict_proba(const double *x, double *p)``, the probabilities
          in the order of `classes_`, and ``int model_predict(const double *x)``, the number of the
          most probable class in `classes_`
        - ``double model_raw(const double *x)``, what `decision_function` says; of several outputs
          ``void model_raw(const double *x, double *y)``. It needs no libm; define
          ``model_NO_LIBM`` before the header is included, and nothing in it does.

        Rows go exactly where they go in the model: numbers are compared in its precision, NaN and
        whatever else is missing takes its direction. Categories are given as codes, which a
        comment explains; ``small.forest.input.matrix(X)`` has rows like that. Of a pipeline it is
        the last step: `x` is what the other steps make of a row.

        Parameters
        ----------
        name : str
            What functions and tables are called.
        dtype : {"float64", "float32"}
            Type of rows and sums. Models of scikit-learn's trees, XGBoost and CatBoost compare in
            single precision anyway.
        layout : {"tables", "branches"}
            Tables that a loop walks through, of the smallest types that hold them; or a function
            of nested conditions for each tree, which is code, several times as large.
        leaves : {"float64", "float32", "int16", "int8"} or None
            As what the values of leaves are kept; None takes `dtype`. Integers are in steps of a
            share of the range of the largest tree.

        Returns
        -------
        CHeader
            The text, a string that has attributes besides: `error_bound`, by how much raw sums of
            any row differ from `decision_function` at most; `table_bytes`, what its tables take;
            `n_bytes`, what it takes with its functions on a microcontroller (None for branches).

        Examples
        --------
        >>> from sklearn.ensemble import GradientBoostingRegressor
        >>> import forestprune as fp
        >>> wine = fp.load_wine_quality()
        >>> model = GradientBoostingRegressor(n_estimators=50, random_state=0)
        >>> small = fp.prune(model.fit(wine.data, wine.target), wine.data, wine.target, max_nodes=9)
        >>> header = small.to_c("wine", dtype="float32", leaves="int16")
        >>> header.table_bytes
        26
        >>> header.error_bound < 1e-4
        True
        """
        from forestprune.deploy.c_header import to_c

        return to_c(self.forest, name, dtype=dtype, layout=layout, leaves=leaves)

    def to_onnx(self) -> Any:
        """Return the model as one of ONNX, an ``onnx.ModelProto``, for services and browsers.

        Its input ``X`` has a column for each feature: float32 if the model compares in single
        precision, as scikit-learn's trees, XGBoost and CatBoost do, float64 otherwise. Rows go
        where they go in the model; missing values are NaN, and categories are codes, as
        :meth:`to_c` takes them. Its outputs are float32: ``prediction`` of shape (m, n_outputs), or
        of classifiers ``label`` and ``probabilities``. Of a pipeline it is the last step.

        All models go the same way, not through a converter of their library. Needs onnx:
        ``pip install forestprune[onnx]``.

        Examples
        --------
        To write and to run it::

            Path("small.onnx").write_bytes(small.to_onnx().SerializeToString())
            session = onnxruntime.InferenceSession("small.onnx")
            (predicted,) = session.run(None, {"X": X.astype("float32")})
        """
        from forestprune.deploy.onnx_model import to_onnx

        return to_onnx(self.forest)

    def to_treelite(self) -> Any:
        """Return the model as one of treelite, a ``treelite.Model``, to be compiled or served.

        Its rows are float32 if the model compares in single precision, float64 otherwise, missing
        values NaN and categories codes, as :meth:`to_c` takes them. What it predicts has passed the
        link; of two classes it is the probability of the second. Of a pipeline it is the last step.

        Needs treelite: ``pip install forestprune[treelite]``.

        Raises
        ------
        UnsupportedModelError
            If the model counts zero, or another number, as missing: in treelite only NaN is.
        """
        from forestprune.deploy.treelite_model import to_treelite

        return to_treelite(self.forest)

    def save(self, path: str | os.PathLike[str], *, with_path: bool = False) -> None:
        """Write this model to `path`, as an npz archive of plain arrays, without pickle.

        The file has all that this object knows but the candidates it was chosen from, and appears
        under its name only when it is complete. :meth:`load` reads it. To use the model where this
        package is not installed, save ``to_native()`` with its own library instead.

        Parameters
        ----------
        path : str or path-like
        with_path : bool
            Write `self.path` too, for reports: all candidates and the whole original forest, so
            the file is larger than that of the original model.

        Raises
        ------
        TypeError
            If the model was a pipeline: its other steps can only be pickled.
        ValueError
            If `path` ends as files with a library's own model do, such as ``.json``.
        """
        from forestprune.select.pruned_file import write_pruned

        write_pruned(path, self, with_path=with_path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PrunedForest:
        """Read a model that :meth:`save` wrote. Reading runs no code from the file."""
        from forestprune.select.pruned_file import read_pruned

        return read_pruned(path)

    def __getstate__(self) -> dict[str, Any]:
        # The path has the whole original forest, which a copy of a small model should not.
        return vars(self) | {"path": None, "index": None}

    def __repr__(self) -> str:
        words, new = score_words(self.validation), new_splits_words(self)
        proved = "" if self.certificate is None else f", {self.certificate}"
        return (
            f"PrunedForest({self.n_trees:,} of {self.depths.size:,} trees, {self.n_nodes:,} nodes, "
            f"depth {self.max_depth}, {f'{new}, ' if new else ''}alpha={self.alpha:.3g}, "
            f"loss={self.loss:.4g}{proved}"
            f"{f', {words}' if words else ''})"
        )

    def _repr_html_(self) -> str:
        return html_table(self)


class _Counter(io.RawIOBase):
    """A file that only counts: of a large model nobody wants a second copy in memory."""

    def __init__(self) -> None:
        super().__init__()
        self._size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        self._size += size
        return size

    def tell(self) -> int:
        return self._size


def model_size(forest: Forest, ending: str, to_native: Callable[[], Any]) -> int:
    """Return how large a model is as `ending` says: as a file of its library, or deployed."""
    if ending[1:] in DEPLOYED:
        return deployed_bytes(forest, ending[1:])
    is_forest = forest.origin is None or ending == ".npz"
    return file_size(forest if is_forest else to_native(), ending)


def file_size(model: Any, ending: str = ".joblib") -> int:
    """Return how large the file of a model is in the format that `ending` names.

    A Forest is written as npz, whatever `ending` says.
    """
    is_forest = isinstance(model, Forest)
    if ending == ".joblib" and not is_forest:
        file = _Counter()
        joblib.dump(model, file)
        return file.tell()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"model{'.npz' if is_forest else ending}"
        registry.save_model(model, path)
        return path.stat().st_size


def count_new_splits(forest: Forest, point: Point) -> int:
    """Return how many splits of a point are not those of the model that the forest came from."""
    if point.forest is not None:
        return int(np.count_nonzero(new_splits(point.forest)))
    known = new_splits(forest)
    if not known.any():
        return 0
    return int(np.count_nonzero(known[forest.left >= 0] & point.splits(forest)))


def forest_at(forest: Forest, point: Point) -> Forest:
    """Return what `point` has left of a forest: trees that are added up, whatever they were."""
    if point.forest is not None:
        return point.forest
    small = _kept(forest, point).compact()
    if small.origin is None:
        return small
    return replace(small, origin=replace(small.origin, averages=False))


def _kept(forest: Forest, point: Point) -> Forest:
    if point.levels is not None:
        forest = with_levels_first(forest, point.levels)
    splits = point.splits(forest)
    mask = kept_mask(forest, splits)
    kept, weights = forest.keep(mask), np.where(point.depths > 0, point.weights, 1.0)
    if point.values is not None:
        # What leaves add becomes their value, so trees are scaled by their weights alone; that of
        # a split is their mean, as it is in files of libraries that know values of leaves only.
        value = np.zeros_like(forest.value)
        value[kept_leaves(forest, splits)] = point.values.T
        fitted = replace(kept, value=value[mask], scale=weights, base=point.intercept)
        return average_of_leaves(fitted)
    # What roots lose or gain by their trees' weights is in the intercept already.
    everything = np.ones(forest.n_trees, np.bool_)
    before = forest.base + sum_of_roots(forest, everything)
    scale = kept.scale * weights
    lost = sum_of_roots(replace(kept, scale=kept.scale - scale), everything)
    return replace(kept, scale=scale, base=kept.base + (point.intercept - before) + lost)
