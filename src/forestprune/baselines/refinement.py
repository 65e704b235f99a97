"""The leaves of a whole forest on their way down: refitted all at once, and merged by pairs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from forestprune.baselines.setting import Setting
from forestprune.forest.checks import seal
from forestprune.forest.cutting import take_trees
from forestprune.forest.forest import Forest
from forestprune.kernels.records import Trees
from forestprune.polishing.distribution_fit import DistributionFit
from forestprune.polishing.leaf import leaf_boxes
from forestprune.polishing.leaf_fit import LeafFit, Leaves
from forestprune.rows.trees import first_splits, read_trees
from forestprune.solve.point import kept_leaves, kept_nodes

Floats = NDArray[np.float64]

WORK, FEWEST_STEPS, MOST_STEPS = 3e7, 20, 1000
ENOUGH = 1e-3
"""Steps of one solution: as many as go through so many codes of rows, but within bounds, and until
one gains so little beside the first. The next solution goes on from where this one ends."""

ROUNDS, SETTLED = 50, 1e-6
"""How often the loss is expanded anew at most, and by what share the last time may lower it."""

STEEPER, STEEPEST = 4.0, 4.0**8
"""By what Hessians are multiplied if the objective rose, and up to how often."""

ROUNDING = 1e-12


@dataclass(eq=False)
class _Part:
    """Trees that add to the same outputs, as a forest, and what is left of them.

    Attributes
    ----------
    forest : Forest
    codes : unsigned int array of shape (n_trees, m)
    trees : Trees
    outputs : slice
        What the trees add to.
    nodes, splits : int64 arrays
        Where the nodes and splits stand among those of the whole forest.
    kept : bool array
        Which splits are left.
    leaves : Leaves
        Those of what is left.
    value : float64 array of shape (columns of values, n_leaves)
        What these add.
    """

    forest: Forest
    codes: NDArray[np.unsignedinteger]
    trees: Trees
    outputs: slice
    nodes: NDArray[np.int64]
    splits: NDArray[np.int64]
    kept: NDArray[np.bool_]
    leaves: Leaves
    value: Floats

    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the splits whose children are leaves, and the columns of their left children."""
        children = kept_nodes(self.forest.offsets, self.kept).reshape(-1, 2)
        column = np.searchsorted(self.leaves.node, children)
        column = np.minimum(column, self.leaves.node.size - 1)
        both = (self.leaves.node[column] == children).all(axis=1)
        return np.flatnonzero(self.kept)[both], column[both, 0]

    def merge(self, splits: NDArray[np.int64], left: NDArray[np.int64]) -> Floats:
        """Make leaves of some of the :meth:`pairs`; return what trees that are gone have added.

        A new leaf adds what its two did on average.
        """
        weight = np.stack([self.leaves.weight[left], self.leaves.weight[left + 1]])
        weight[:, weight.sum(axis=0) == 0.0] = 1.0
        two = np.stack([self.value[:, left], self.value[:, left + 1]])
        mean = np.einsum("co,cjo->jo", weight / weight.sum(axis=0), two)
        added = np.zeros((len(self.value), self.forest.n_nodes))
        added[:, self.leaves.node] = self.value
        parents = np.flatnonzero(self.forest.left >= 0)[splits]
        added[:, parents] = mean
        roots = np.isin(parents, self.forest.offsets[:-1])
        self.kept[splits] = False
        self.leaves = Leaves.of(self.codes, self.trees, self.kept)
        self.value = np.ascontiguousarray(added[:, self.leaves.node])
        gone: Floats = mean[:, roots].sum(axis=1)
        return gone


class Refinement:
    """All leaves of what is left of a forest, with values that are fitted together.

    With V the loss of the best constant, and c the mean Hessian there, they minimise

        sum over rows of loss(y, constant + sum of values) / V
        + c * penalty * sum over leaves of value^2 / (2 V)

    over the values and the constant. Where leaves are distributions over classes, the constant is
    that of the shares of classes, and values are such that the leaves stay distributions.

    Attributes
    ----------
    constant : float64 array of shape (n_outputs,)
    """

    def __init__(self, setting: Setting, penalty: float) -> None:
        self._problem, self._forest = setting.problem, setting.source.forest
        self._distributions = self._forest.averages_distributions
        self._penalty = self._problem.curvature * penalty
        self._steepness = 1.0
        self.constant = np.array(self._problem.intercept)
        self._parts = [self._part(*group) for group in _groups(self._forest)]
        if self._distributions:
            problem, part = self._problem, self._parts[0]
            self.constant = problem.loss.best_constant(problem.target, problem.sample_weight)
            own = part.forest.value[part.leaves.node].T - self.constant[:, np.newaxis]
            part.value = np.ascontiguousarray(own / max(part.leaves.present.size, 1))

    def _part(self, trees: NDArray[np.int64], outputs: slice) -> _Part:
        """Return some trees with nothing pruned."""
        forest, codes = self._forest, self._problem.encoding.codes
        nodes = np.flatnonzero(np.isin(forest.tree_of_node, trees))
        owner = np.repeat(np.arange(forest.n_trees), np.diff(first_splits(forest.offsets)))
        read = self._problem.trees
        if forest.tree_output.size:
            forest, codes = take_trees(forest, trees, outputs.start), codes[trees]
            read = read_trees(forest, seal(self._problem.node_weights[nodes]))
        kept = np.ones(read.split.size, np.bool_)
        leaves = Leaves.of(codes, read, kept)
        value = np.array(read.origin[:, leaves.node])
        splits = np.flatnonzero(np.isin(owner, trees))
        return _Part(forest, codes, read, outputs, nodes, splits, kept, leaves, value)

    # What is left

    @property
    def n_splits(self) -> int:
        """How many splits are left."""
        return sum(int(np.count_nonzero(part.kept)) for part in self._parts)

    @property
    def n_nodes(self) -> int:
        """How many nodes are left, roots of trees that are gone not counted."""
        return 2 * self.n_splits + sum(part.leaves.present.size for part in self._parts)

    @property
    def splits(self) -> NDArray[np.bool_]:
        """Which splits of the forest are left."""
        splits = np.zeros((self._forest.n_nodes - self._forest.n_trees) // 2, np.bool_)
        for part in self._parts:
            splits[part.splits] = part.kept
        return splits

    @property
    def values(self) -> Floats:
        """What each leaf of what is left adds, in the order of nodes."""
        added = np.zeros((self._forest.value.shape[1], self._forest.n_nodes))
        for part in self._parts:
            added[:, part.nodes[part.leaves.node]] = part.value
        return np.ascontiguousarray(added[:, kept_leaves(self._forest, self.splits)])

    @property
    def squares(self) -> float:
        """What the penalty is, times 2 V."""
        return self._penalty * sum(float((part.value**2).sum()) for part in self._parts)

    # Merging

    def merge(self, share: float) -> None:
        """Merge the pairs of sibling leaves whose values are smallest, a share of all pairs.

        At least one, as long as there is one.
        """
        pairs = [part.pairs() for part in self._parts]
        squares = [
            (part.value[:, left] ** 2 + part.value[:, left + 1] ** 2).sum(axis=0)
            for part, (_, left) in zip(self._parts, pairs, strict=True)
        ]
        together = np.concatenate(squares)
        chosen = np.zeros(together.size, np.bool_)
        order = np.argsort(together, kind="stable")
        chosen[order[: int(np.ceil(share * together.size))]] = True
        ends = np.cumsum([own.size for own in squares])[:-1]
        for part, own, (splits, left) in zip(
            self._parts, np.split(chosen, ends), pairs, strict=True
        ):
            gone = part.merge(splits[own], left[own])
            if not self._distributions:
                self.constant[part.outputs] += gone

    # Fitting

    def fit(self) -> None:
        """Fit all values and the constant: the loss is expanded until it falls no further."""
        if not self.n_splits:
            problem = self._problem
            self.constant = problem.loss.best_constant(problem.target, problem.sample_weight)
            return
        raw = self._raw()
        objective = self._objective(raw)
        for _ in range(ROUNDS):
            before = [part.value for part in self._parts], self.constant
            for part, value in zip(self._parts, before[0], strict=True):
                part.value = value.copy()
            self.constant = self.constant.copy()
            self._solve(raw)
            moved = self._raw()
            found = self._objective(moved)
            if found > objective * (1.0 + ROUNDING):
                for part, value in zip(self._parts, before[0], strict=True):
                    part.value = value
                self.constant = before[1]
                if self._steepness >= STEEPEST:
                    break
                self._steepness *= STEEPER
                continue
            self._steepness = max(1.0, self._steepness / 2.0)
            gained, raw, objective = objective - found, moved, found
            if gained <= SETTLED * objective:
                break

    def _raw(self) -> Floats:
        """Return what is predicted now."""
        raw = np.repeat(self.constant[:, np.newaxis], self._problem.encoding.n_rows, axis=1)
        for part in self._parts:
            part.leaves.add_to(part.value, raw[part.outputs])
        return raw

    def _objective(self, raw: Floats) -> float:
        """Return what is minimised, times V."""
        problem = self._problem
        return problem.loss.value(problem.target, raw, problem.sample_weight) + 0.5 * self.squares

    def _solve(self, raw: Floats) -> None:
        """Fit to the expansion of the loss around raw predictions."""
        problem, rows = self._problem, self._problem.sample_weight
        residual = -problem.loss.gradient(problem.target, raw)
        if rows is not None:
            residual *= rows
        hessian = None
        if not problem.loss.quadratic:
            apart = self._forest.tree_output.size > 0
            of_rows = problem.loss.hessian if apart else problem.loss.row_hessian
            hessian = np.atleast_2d(self._steepness * of_rows(problem.target, raw))
        for part in self._parts:
            weight, leaves = problem.row_weight, part.leaves
            if hessian is not None:
                own = hessian[part.outputs.start if len(hessian) > 1 else 0]
                weight = own * weight if weight.size else own
                leaves = replace(leaves, weight=leaves.sums(weight[np.newaxis])[0])
            self._solve_part(part, leaves, weight, residual[part.outputs])

    def _solve_part(self, part: _Part, leaves: Leaves, weight: Floats, residual: Floats) -> None:
        size = residual.size * max(leaves.present.size, 1)
        steps = int(np.clip(WORK / size, FEWEST_STEPS, MOST_STEPS))
        if self._distributions:
            fit = DistributionFit(
                leaves, weight, residual, part.value, self._penalty, self.constant
            )
            fit.iterate(steps, SETTLED)
            return
        boxes = leaf_boxes(part.forest, part.kept, part.value)
        origin, constant = np.zeros_like(part.value), self.constant[part.outputs]
        LeafFit(leaves, weight, residual, part.value, origin, self._penalty, constant, boxes).solve(
            steps, ENOUGH
        )


def _groups(forest: Forest) -> list[tuple[NDArray[np.int64], slice]]:
    """Return which trees add to the same outputs, and to which."""
    everything = np.arange(forest.n_trees)
    if not forest.tree_output.size:
        return [(everything, slice(0, forest.n_outputs))]
    return [
        (everything[forest.tree_output == output], slice(output, output + 1))
        for output in range(forest.n_outputs)
    ]
