"""Sweeps over the trees of a small forest: each in turn becomes what is best given all others."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forestprune.forest.build import average_of_leaves
from forestprune.forest.forest import Forest
from forestprune.forest.new_splits import SplitLimits, with_new_trees
from forestprune.kernels.records import SplitPrice
from forestprune.loss import Loss
from forestprune.polishing.split.allowed import Allowed
from forestprune.polishing.split.convert import binned_trees, new_tree
from forestprune.polishing.split.finder import Finder
from forestprune.polishing.split.grow import Growth
from forestprune.polishing.split.reform import Reform
from forestprune.polishing.split.rows import Asked
from forestprune.polishing.split.tree import BinnedTree
from forestprune.polishing.split.values import Distributions, LeafValues
from forestprune.rows.bins import Bins
from forestprune.rows.encoding import Encoding
from forestprune.system.progress import track
from forestprune.system.threads import Crew

Floats = NDArray[np.float64]

LEAST_ROWS = 20
"""Rows, or as much weight, that both sides of a new split must have."""

SETTLED = 1e-3
"""Sweeps end once one lowers the objective by no more than this share of itself."""

LEAST_GAIN = 1e-9
"""Another form of a tree must be better by this share of what it gains."""


@dataclass(frozen=True, eq=False)
class SplitRows:
    """Rows to choose splits by.

    Attributes
    ----------
    bins : uint8 array of shape (n_columns, m)
        The bin of each row: see `rows/bins.py`.
    target : float64 array of shape (n_outputs, m)
    weight : float64 array of shape (m,), or None
        None if each row weighs 1.
    """

    bins: NDArray[np.uint8]
    target: Floats
    weight: Floats | None


class _Form(NamedTuple):
    """What a tree could be: by how much the loss falls, the tree, and in which leaf rows are."""

    fall: float
    tree: BinnedTree
    leaf: NDArray[np.int32]


class SplitDescent:
    """Minimises the loss and a penalty on leaf values over splits and values, tree by tree.

    The loss, summed over rows, plus half of ``shrinkage * curvature * sum of squares of what leaves
    add``. A tree, all others fixed, becomes the best of: what it is, with new values; grown anew
    with as many leaves; its splits chosen anew from the leaves up. The objective never rises, and
    there are never more nodes than at the beginning. Of an average of distributions, leaves that
    are surer than their rows allow are first brought to where they may be.

    Parameters
    ----------
    forest : Forest
    encoding : Encoding
        Of the rows, by this forest.
    rows : SplitRows
    bins : Bins
    limits : SplitLimits
    loss : Loss
    shrinkage : float
        In rows.
    max_depth : int or None
        Trees that are grown are no deeper than this, or than they were.
    original : Forest or None
        What the forest was pruned from.
    values_only : bool
        Whether splits stay as they are.
    n_jobs : int or None

    Attributes
    ----------
    sweeps : int
        Sweeps made so far.
    """

    def __init__(
        self,
        forest: Forest,
        encoding: Encoding,
        rows: SplitRows,
        bins: Bins,
        limits: SplitLimits,
        loss: Loss,
        *,
        shrinkage: float,
        max_depth: int | None = None,
        original: Forest | None = None,
        values_only: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self._original, self._values_only = original, values_only
        self._forest, self._bins, self._limits = forest, bins, limits
        self._rows, self._loss, self._max_depth = rows, loss, max_depth
        curvature = loss.curvature(rows.target, rows.weight)
        self._price = SplitPrice(shrinkage * curvature, LEAST_ROWS * curvature, False)
        distributions = None
        if forest.averages_distributions:
            certain = bool(forest.monotone.size)
            distributions = Distributions(forest.base, forest.n_trees, certain)
        self._values = LeafValues(self._price.shrinkage, distributions)
        self._crew = Crew(n_jobs)
        self._finder = Finder(rows.bins, bins.columns, self._crew)
        weight = rows.weight
        counted = np.arange(encoding.n_rows) if weight is None else np.flatnonzero(weight > 0.0)
        self._used = counted.astype(np.int32)
        groups = tuple(map(frozenset, limits.interactions))
        several = np.diff(bins.columns.first) > 1
        self._allowed = Allowed(
            np.flatnonzero(limits.usable & several), groups, limits.most_columns
        )
        # Constraints tie a split to what is below it and above.
        self._reforms = not (forest.monotone.size or groups or limits.most_columns)
        self._trees = binned_trees(forest, bins)
        self._leaf = [
            tree.leaves[codes].astype(np.int32)
            for tree, codes in zip(self._trees, encoding.codes, strict=True)
        ]
        self._base = forest.base.copy()
        self._raw = np.repeat(self._base[:, np.newaxis], encoding.n_rows, axis=1)
        for i in range(forest.n_trees):
            self._raw[self._outputs(i)] += self._added(i)
        # Trees that stay as they are get asked less often: after 1, 2, 4 and 8 sweeps.
        self._pause = np.zeros(forest.n_trees, np.int64)
        self._rests = np.zeros(forest.n_trees, np.int64)
        self.sweeps = 0

    def loss(self) -> float:
        """Return the loss, summed over rows."""
        return self._loss.value(self._rows.target, self._raw, self._rows.weight)

    def objective(self) -> float:
        """Return the loss and half the penalty on leaf values."""
        return self.loss() + sum(self._values.penalty(tree) for tree in self._trees)

    def descend(self, max_sweeps: int) -> None:
        """Sweep until it stops paying."""
        before = self.objective()
        for _ in track(range(max_sweeps), "choosing splits anew", max_sweeps):
            self.sweep()
            now = self.objective()
            if before - now <= SETTLED * abs(before):
                break
            before = now

    def sweep(self) -> int:
        """Let each tree become the best it can be, the largest first; return how many changed."""
        self._settle_base()
        changed = 0
        sizes = [tree.left.size for tree in self._trees]
        for i in np.argsort(-np.array(sizes, np.int64), kind="stable").tolist():
            if self._forest.scale[i]:  # else it adds nothing, whatever it is
                changed += self._improve(i)
        self.sweeps += 1
        return changed

    def forest(self) -> Forest:
        """Return what the trees are now as a forest; trees that are a root are still there."""
        weight, value = self._rows.weight, self._forest.value.copy()
        cover = np.ones(self._raw.shape[1]) if weight is None else weight
        trees = {}
        for i, (tree, leaf) in enumerate(zip(self._trees, self._leaf, strict=True)):
            if (tree.node[tree.left >= 0] >= 0).all() and tree.left.size == self._size(i):
                value[self._nodes(i)] = tree.value.T / (self._forest.scale[i] or 1.0)
            else:
                trees[i] = new_tree(self._forest, i, self._bins, self._limits, tree, leaf, cover)
        # Splits of trees with other values alone get the mean of their leaves.
        old = average_of_leaves(replace(self._forest, value=value))
        return with_new_trees(old, trees, base=self._base, original=self._original)

    def _nodes(self, i: int) -> slice:
        """Return the nodes of a tree of the forest at the beginning."""
        first, last = self._forest.offsets[i : i + 2]
        return slice(int(first), int(last))

    def _size(self, i: int) -> int:
        """Return how many nodes a tree had at the beginning."""
        return int(np.diff(self._forest.offsets[i : i + 2])[0])

    # One tree

    def _improve(self, i: int) -> bool:
        """Let a tree become the best it can be; tell whether its splits changed."""
        asked = self._asked(i)
        present = self._trees[i].copy()
        forms = [_Form(self._values.settle(present, self._leaf[i], asked), present, self._leaf[i])]
        if self._values_only:
            pass
        elif self._rests[i]:
            self._rests[i] -= 1
        else:
            forms += self._others(i, asked)
        least = forms[0].fall + LEAST_GAIN * abs(forms[0].fall)
        better = [form for form in forms[1:] if form.fall > least]
        for form in sorted(better, key=lambda form: -form.fall):
            if self._take(i, form):
                self._pause[i] = 0
                return True
        self._take(i, forms[0])
        if len(forms) > 1:
            self._rests[i] = self._pause[i]
            self._pause[i] = min(max(1, 2 * self._pause[i]), 8)
        return False

    def _others(self, i: int, asked: Asked) -> list[_Form]:
        """Return the forms with other splits that a tree could have."""
        tree, leaf, columns = self._trees[i], self._leaf[i], self._limits.columns
        allowed = self._allowed
        if columns is not None:
            own = allowed.columns[columns[i, allowed.columns]]
            allowed = replace(allowed, columns=own)
        if not allowed.columns.size or self._used.size < 2 * LEAST_ROWS:
            return []
        found = []
        new = np.zeros_like(leaf)
        grown = Growth(
            self._finder,
            asked,
            self._used,
            allowed,
            tree.n_leaves,
            self._price,
            max_depth=self._max_depth,
            bounded=tree.bounded,
        ).grow(new)
        found.append((grown, new))
        if self._reforms and tree.n_leaves > 1 and _can_keep_to_bins(tree, allowed):
            reform = Reform(
                self._finder, tree, leaf, asked, self._used, allowed.columns, self._price
            )
            reformed = reform.choose()
            if reformed is not None:
                found.append(reformed)
        return [_Form(self._values.settle(tree, leaf, asked), tree, leaf) for tree, leaf in found]

    def _take(self, i: int, form: _Form) -> bool:
        """Let a tree have another form, unless the objective would rise; tell whether it has."""
        outputs, values, rows = self._outputs(i), self._values, self._rows
        before = self._trees[i], self._leaf[i]
        fallen = 0.0
        if not self._loss.quadratic:
            fallen = self.loss() + values.penalty(before[0]) - values.penalty(form.tree)
        old = self._raw[outputs].copy()
        self._raw[outputs] -= self._added(i)
        self._trees[i], self._leaf[i] = form.tree, form.leaf
        self._raw[outputs] += self._added(i)
        if self._loss.quadratic:
            return True
        if self._loss.value(rows.target, self._raw, rows.weight) <= fallen:
            return True
        self._trees[i], self._leaf[i] = before
        self._raw[outputs] = old
        return False

    def _asked(self, i: int) -> Asked:
        """Return what rows ask of a tree, all others fixed."""
        outputs, loss, target = self._outputs(i), self._loss, self._rows.target
        added, weight = self._added(i), self._rows.weight
        if loss.quadratic:
            sums = target[outputs] - self._raw[outputs] + added
            if weight is None:
                return Asked(sums, np.ones(sums.shape[1]))
            return Asked(sums * weight, weight)
        sums = -loss.gradient(target, self._raw)[outputs]
        if self._forest.tree_output.size:
            steep = loss.hessian(target, self._raw)[outputs][0].copy()
        else:
            steep = loss.row_hessian(target, self._raw)
        if weight is not None:
            sums, steep = sums * weight, steep * weight
        return Asked(sums + steep * added, steep)

    def _settle_base(self) -> None:
        """Let the constant be the best, all trees fixed."""
        if self._values.distributions is not None:
            return  # it stands in for trees that are not there
        loss, target, weight = self._loss, self._rows.target, self._rows.weight
        gradient, hessian = loss.gradient(target, self._raw), loss.hessian(target, self._raw)
        if weight is not None:
            gradient, hessian = gradient * weight, hessian * weight
        step = -gradient.sum(axis=1) / hessian.sum(axis=1)
        raw = self._raw + step[:, np.newaxis]
        if loss.quadratic or loss.value(target, raw, weight) <= self.loss():
            self._base, self._raw = self._base + step, raw

    def _outputs(self, i: int) -> slice:
        """Return what a tree adds to."""
        if not self._forest.tree_output.size:
            return slice(None)
        output = int(self._forest.tree_output[i])
        return slice(output, output + 1)

    def _added(self, i: int) -> Floats:
        """Return what a tree adds to each row."""
        added: Floats = np.take(self._trees[i].value, self._leaf[i], axis=1)
        return added


def _can_keep_to_bins(tree: BinnedTree, allowed: Allowed) -> bool:
    """Tell whether all splits that bins come near to may be as these have them."""
    near = ~tree.exact
    askable = np.isin(tree.feature[near], allowed.columns) & (tree.border[near] > -2)
    return bool(askable.all())
