"""Fitting the values of all leaves of a pruned forest at once, its shape being given."""

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.sparse
from numpy.typing import NDArray

from forestprune import kernels
from forestprune.forest.checks import seal
from forestprune.kernels.records import Trees
from forestprune.rows.trees import by_tree, first_leaves, first_splits
from forestprune.system.threads import one_blas_thread

DIRECT_LEAVES = 1000
DIRECT_WORK = 3e7
"""Up to so many leaves, and so many pairs of leaves that share a row, equations are solved
directly; beyond, by conjugate gradients."""

BOUNDED_STEPS = 500
"""Steps at most if values must stay within intervals."""

RESTARTS = 10
"""How often that begins again at most, while it still gains."""

STEPS = 100
ENOUGH = 1e-6
"""Conjugate gradients end after so many steps, or when one gains so little next to the first."""

CORRECTED_WORK, CORRECTED_STEPS, CORRECTED_ENOUGH = 3e9, 200, 1e-9
"""The same where rows stand for others: what is left of one round would be there in the next."""


@dataclass(frozen=True, eq=False)
class Leaves:
    """The leaves of pruned trees, as columns of a matrix A: 1 where a row is in the leaf, else 0.

    Attributes
    ----------
    codes : integer array of shape (n_trees, m)
        The leaf that each row reaches in each unpruned tree.
    trees : Trees
    present : int64 array
        The trees that are not pruned away.
    group : int64 array of shape (n_leaves of the unpruned forest,)
        The column of each leaf; only of trees that are present.
    node : int64 array of shape (n_columns,)
        The node of each column, rising.
    weight : float64 array of shape (n_columns,)
        Weight of the rows in each column.
    """

    codes: NDArray[np.unsignedinteger]
    trees: Trees
    present: NDArray[np.int64]
    group: NDArray[np.int64]
    node: NDArray[np.int64]
    weight: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        codes: NDArray[np.unsignedinteger],
        trees: Trees,
        kept: NDArray[np.bool_],
        levels: NDArray[np.uint32] | None = None,
    ) -> "Leaves":
        """Find the leaves of trees that keep some of their splits, or `levels` of symmetric ones.

        See :class:`Point`.
        """
        first, n_trees = first_leaves(trees.offsets), trees.offsets.size - 1
        present = np.flatnonzero(by_tree(kept, first_splits(trees.offsets)))
        scratch = np.empty(int(np.diff(trees.offsets).max(initial=1)), np.int32)
        leaves, leaf_of = np.zeros(trees.leaf.size, np.uint32), np.zeros(trees.leaf.size, np.uint32)
        counts = np.zeros(n_trees, np.int64)
        kernels.number_all_leaves(trees, present, kept, scratch, leaves, counts, leaf_of)
        if levels is not None:
            kernels.number_level_leaves(present, first, levels.astype(np.int64), leaf_of)
        starts = np.cumsum(counts) - counts
        group = np.repeat(starts, np.diff(first)) + leaf_of.astype(np.int64)
        owner = np.repeat(np.arange(n_trees), counts)
        within = np.arange(owner.size) - starts[owner]
        node = trees.offsets[owner] + leaves[first[owner] + within]
        weight = trees.weight[node]
        if levels is not None:
            leaf = np.repeat(trees.offsets[:-1], np.diff(first)) + trees.leaf
            there = np.repeat(counts > 0, np.diff(first))
            weight = np.bincount(group[there], trees.weight[leaf[there]], minlength=node.size)
        return cls(codes, trees, present, group, node, weight)

    def add_to(self, value: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        """Add to `out`, (n_outputs, m), what rows get if leaf j is given value[:, j]."""
        kernels.add_leaves(self.codes, *self._columns(), value, self._table(), out)

    def sums(self, amount: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sums of `amount`, (n_outputs, m), over the rows in each leaf."""
        out = np.zeros((amount.shape[0], self.node.size))
        kernels.sum_leaves(self.codes, *self._columns(), amount, self._table(), out)
        return out

    def shared(self, row_weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what the rows weigh that each two leaves share."""
        rows = self.codes.shape[1]
        weight = row_weight if row_weight.size else np.ones(rows)
        out = np.zeros((self.node.size, self.node.size))
        column = np.empty(rows, np.int64)
        kernels.share_leaves(self.codes, *self._columns(), seal(weight), column, out)
        return out

    def matrix(self) -> scipy.sparse.csr_matrix:
        """Return A itself, which has an entry for each row and tree."""
        rows, first = self.codes.shape[1], first_leaves(self.trees.offsets)
        columns = np.empty((rows, self.present.size), np.int64)
        for j, tree in enumerate(self.present):
            columns[:, j] = self.group[first[tree] + self.codes[tree].astype(np.int64)]
        starts = np.arange(rows + 1) * self.present.size
        shape = (rows, self.node.size)
        return scipy.sparse.csr_matrix((np.ones(columns.size), columns.ravel(), starts), shape)

    def _columns(self) -> tuple[NDArray[np.int64], ...]:
        first = first_leaves(self.trees.offsets)
        return self.present, first[self.present], first[self.present + 1], self.group

    def _table(self) -> NDArray[np.float64]:
        return np.empty(int(np.diff(first_leaves(self.trees.offsets)).max(initial=1)))


@dataclass(frozen=True, eq=False)
class Correction:
    """What makes rows stand for others too, where the values of leaves are fitted.

    All have a column for each leaf, and one more for the constant.

    Attributes
    ----------
    excess : float64 array of shape (n_outputs, n_columns + 1)
        What is added to the sums of the residual.
    weight : float64 array of shape (n_columns + 1,)
        What is added to the weight of the rows, for steps away from the values `at`.
    at : float64 array of shape (n_outputs, n_columns + 1)
    """

    excess: NDArray[np.float64]
    weight: NDArray[np.float64]
    at: NDArray[np.float64]

    def downhill(self, point: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what is added to half the negative gradient."""
        return self.excess - self.weight * (point - self.at)

    def value(self, point: NDArray[np.float64]) -> float:
        """Return what is added to what is minimised; nothing where all began."""
        step = point - self.at
        return float((step * (self.weight * step - 2.0 * self.excess)).sum())


@dataclass(eq=False)
class LeafFit:
    """Values of leaves on their way to the best ones.

    With r what they leave unexplained, these minimise

        sum of weight * r^2  +  shrinkage * sum of (value - origin)^2

    over the values, within their intervals if they have some, and, if there is a `constant`, over
    that, which is added to them all. A `correction` adds what other rows are known to say.

    Attributes
    ----------
    leaves : Leaves
    row_weight : float64 array of shape (m,), or empty if all weigh 1
    residual : float64 array of shape (n_outputs, m)
        r now, times the rows' weights; changed in place.
    value : float64 array of shape (n_outputs, n_columns)
        The values now; changed in place.
    origin : float64 array of shape (n_outputs, n_columns)
    shrinkage : float
    constant : float64 array of shape (n_outputs,), or None
        What is added besides; changed in place. None adds nothing.
    boxes : pair of float64 arrays of shape (n_outputs, n_columns), or None
        Between what the values must be; None if they may be anything.
    correction : Correction or None
        Only with a constant.
    """

    leaves: Leaves
    row_weight: NDArray[np.float64]
    residual: NDArray[np.float64]
    value: NDArray[np.float64]
    origin: NDArray[np.float64]
    shrinkage: float
    constant: NDArray[np.float64] | None = None
    boxes: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
    correction: Correction | None = None

    def solve(self, most: int = STEPS, enough: float = ENOUGH) -> None:
        """Minimise, directly if there are few leaves, else by :meth:`iterate`."""
        work = DIRECT_WORK
        if self.correction is not None:
            work, most, enough = CORRECTED_WORK, CORRECTED_STEPS, CORRECTED_ENOUGH
        if self.boxes is not None:
            self.solve_within(*self.boxes)
            return
        shared_rows = self.residual.shape[1] * self.leaves.present.size**2
        if self.leaves.node.size <= DIRECT_LEAVES and shared_rows <= work:
            self.solve_directly()
        else:
            self.iterate(most, enough)

    def solve_directly(self) -> None:
        """Solve the normal equations by Cholesky's method."""
        gram = self.leaves.shared(self.row_weight)
        if self.constant is not None:
            sums = np.append(np.diag(gram), 0.0)
            gram = np.pad(gram, (0, 1))
            gram[-1], gram[:, -1] = sums, sums
            gram[-1, -1] = self._total_weight()
        gram[np.diag_indices_from(gram)] += self._penalty()
        length = np.sqrt(np.maximum(np.diag(gram), 0.0))
        length[length == 0.0] = 1.0
        gram /= length
        gram /= length[:, np.newaxis]
        # Leaves of two trees may hold the same rows: enough to choose, too little to matter.
        gram[np.diag_indices_from(gram)] += 1e-12
        with one_blas_thread():
            step = scipy.linalg.solve(gram, (self._downhill() / length).T, assume_a="pos").T
        step /= length
        self._go(step, self._rise(step))

    def solve_within(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> None:
        """Minimise with values between `low` and `high`, by a quasi-Newton method for boxes."""
        begun = np.clip(self.value, low, high) - self.value
        if self.constant is not None:
            low, high, begun = (
                np.pad(each, ((0, 0), (0, 1)), constant_values=end)
                for each, end in ((low, -np.inf), (high, np.inf), (begun, 0.0))
            )
        self._go(begun, self._rise(begun))
        origin, weight = self._point(), np.append(self.leaves.weight, self._total_weight())
        # In units in which all values are about as curved.
        unit = 1.0 / np.sqrt(np.maximum(weight[: origin.shape[1]] + self._penalty(), 1e-300))
        unit[weight[: origin.shape[1]] + self._penalty() <= 0.0] = 1.0

        def fall(scaled: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            step = scaled.reshape(origin.shape) * unit - (self._point() - origin)
            self._go(step, self._rise(step))
            return 0.5 * self._value(), -(self._downhill() * unit).ravel()

        bounds = [((bound - origin) / unit).ravel() for bound in (low, high)]

        def minimise(begin: NDArray[np.float64]) -> scipy.optimize.OptimizeResult:
            return scipy.optimize.minimize(
                fall,
                begin,
                jac=True,
                method="L-BFGS-B",
                bounds=scipy.optimize.Bounds(*bounds),
                options={"maxiter": BOUNDED_STEPS, "maxcor": 20, "ftol": 1e-10, "gtol": 0.0},
            )

        found = minimise(np.zeros(origin.size))
        for _ in range(RESTARTS):  # it ends with one short step, which may have others behind it
            further = minimise(found.x)
            if found.fun - further.fun <= ENOUGH * abs(found.fun):
                break
            found = further
        step = found.x.reshape(origin.shape) * unit - (self._point() - origin)
        self._go(step, self._rise(step))
        np.clip(
            self.value, low[:, : self.value.shape[1]], high[:, : self.value.shape[1]], self.value
        )

    def _point(self) -> NDArray[np.float64]:
        """Return the values now, and the constant behind them."""
        if self.constant is None:
            return self.value.copy()
        return np.column_stack([self.value, self.constant])

    def _value(self) -> float:
        """Return what is minimised."""
        squares = self.residual**2
        if self.row_weight.size:
            weight = self.row_weight
            squares = np.divide(squares, weight, out=np.zeros_like(squares), where=weight > 0.0)
        penalty = self.shrinkage * float(((self.value - self.origin) ** 2).sum())
        if self.correction is not None:
            penalty += self.correction.value(self._point())
        return float(squares.sum()) + penalty

    def iterate(self, most: int, enough: float) -> None:
        """Take conjugate gradient steps until one gains less than `enough` times the first."""
        downhill = self._downhill()
        scale = np.append(self.leaves.weight, self._total_weight())[: downhill.shape[1]]
        scale = scale + self._penalty()
        scale[scale == 0.0] = 1.0
        direction = downhill / scale
        slope = float((downhill * direction).sum())
        first = 0.0
        for _ in range(most):
            rise = self._rise(direction)
            curvature = self._product(rise, rise) + float((self._penalty() * direction**2).sum())
            if slope <= 0.0 or curvature <= 0.0:
                break
            length = slope / curvature
            self._go(length * direction, length * rise)
            gain = length * slope
            first = first or gain
            if gain <= enough * first:
                break
            downhill -= length * (self._sums(rise) + self._penalty() * direction)
            better = downhill / scale
            new_slope = float((downhill * better).sum())
            direction = better + new_slope / slope * direction
            slope = new_slope

    def _penalty(self) -> NDArray[np.float64]:
        """Return the weight of each squared value; the constant's is 0 but for a correction."""
        penalty = np.full(self.leaves.node.size, self.shrinkage)
        if self.constant is not None:
            penalty = np.append(penalty, 0.0)
        return penalty if self.correction is None else penalty + self.correction.weight

    def _total_weight(self) -> float:
        return float(self.row_weight.sum()) if self.row_weight.size else self.residual.shape[1]

    def _downhill(self) -> NDArray[np.float64]:
        """Return half the negative gradient: one column a leaf, then the constant."""
        sums = self.leaves.sums(self.residual) - self.shrinkage * (self.value - self.origin)
        if self.constant is None:
            return sums
        sums = np.column_stack([sums, self.residual.sum(axis=1)])
        return sums if self.correction is None else sums + self.correction.downhill(self._point())

    def _sums(self, rise: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weighted sums of what rows get, in each leaf and in all."""
        weighted = rise * self.row_weight if self.row_weight.size else rise
        sums = self.leaves.sums(weighted)
        if self.constant is None:
            return sums
        return np.column_stack([sums, weighted.sum(axis=1)])

    def _rise(self, step: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what rows get by a step of the values and the constant."""
        rise = np.zeros_like(self.residual)
        if self.constant is not None:
            rise += step[:, -1:]
        self.leaves.add_to(np.ascontiguousarray(step[:, : self.leaves.node.size]), rise)
        return rise

    def _product(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
        if self.row_weight.size:
            return float(np.einsum("ox,ox,x->", a, b, self.row_weight))
        return float(np.einsum("ox,ox->", a, b))

    def _go(self, step: NDArray[np.float64], rise: NDArray[np.float64]) -> None:
        self.value += step[:, : self.leaves.node.size]
        if self.constant is not None:
            self.constant += step[:, -1]
        self.residual -= rise * self.row_weight if self.row_weight.size else rise
