"""What is minimised: the objective, what keeping layers costs, and the unit of alpha."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestprune.forest.checks import seal
from forestprune.forest.forest import Forest
from forestprune.kernels.cuts import Price, SplitPrice, Steps
from forestprune.options import Joint, Rule, Weighting
from forestprune.rows.encoding import Encoding
from forestprune.solve.layers.steps import measured_steps

ROUNDING = 1e-11
"""A depth changes only if the objective falls by more than this: less may be rounding."""

WEIGHT_TOLERANCE = 1e-8
"""The same where weights are free, which could be improved for ever by less and less."""

VALUE_TOLERANCE = 1e-6
"""The same where values of leaves are refitted."""

LAST_DIGITS = 1e-14
"""What squares of residuals are uncertain by, relative to those of the intercept alone."""

LARGEST_TARGET = 1e140
"""Squares of larger numbers, added up over many rows, may be beyond all numbers."""

NEXT_TO_NOTHING = 1e-10
"""A cut whose square is a smaller share of its tree's largest one is not given a weight."""


@dataclass(frozen=True, eq=False)
class Problem:
    """The objective of the paper, for one forest and one set of rows.

    With m the weight of all rows, b the intercept, and f_i tree i cut at some depth, without its
    root, times its scale and its weight beta_i,

        minimise  (1 / m) * || y - b - sum of f_i(x) ||^2 / var(y)
                  + (alpha / K) * cost of the layers kept
                  + alpha2 * sum of beta_i^2 * || tree i uncut ||^2 / (m * var(y))    joint="ridge"
                  + alpha2 * number of trees kept                                    joint="subset"

    or with f_i any part of tree i that hangs together from its root (rule="subtree"), and then

                  + (alpha / K) * cost of the nodes kept
                  + shrinkage * sum over leaves of (value - original value)^2 / (m * var(y))   refit

    Divided by var(y), and with each tree measured against itself, alpha and alpha2 have no unit and
    do not depend on the forest's scale. The intercept holds the roots: ``b = base + sum of
    scale_i * value of root i``, so with everything kept the model is the original, and with nothing
    it is the constant b.

    Attributes
    ----------
    encoding : Encoding
    residual : float64 array of shape (n_outputs, m)
        ``y - b``, times the weight of each row.
    variation : float
        ``m * var(y)``, summed over the outputs; m if y is constant but for rounding.
    intercept : float64 array of shape (n_outputs,)
        b.
    costs : float64 array of shape (n_trees, max_depth + 1)
        Cost of a tree that is cut at each depth, divided by K.
    split_costs : float64 array of shape (n_splits,), or empty
        Cost of keeping the two children of each split, divided by K; for the rule "subtree".
    rule : "layer" or "subtree"
    refit : bool
        Whether leaves get new values, rule "subtree".
    shrinkage : float
        How strongly these are drawn to the original ones, in rows of weight 1.
    joint : "ridge", "subset" or None
        How the trees' weights are chosen along with their depths; None leaves them at 1.
    alpha2 : float
        Penalty of the weights, if they are chosen.
    n_jobs : int or None
        Threads; None takes every core.
    """

    encoding: Encoding
    residual: NDArray[np.float64]
    variation: float
    intercept: NDArray[np.float64]
    costs: NDArray[np.float64]
    split_costs: NDArray[np.float64]
    rule: Rule
    refit: bool
    shrinkage: float
    joint: Joint | None
    alpha2: float
    n_jobs: int | None = None

    @cached_property
    def steps(self) -> Steps:
        """The trees, as kernels that cut them at a depth read them; others do without."""
        return measured_steps(self.encoding, self.n_jobs, sketched=self.rule == "layer")

    @property
    def depths(self) -> NDArray[np.int64]:
        """Depth of each tree, uncut."""
        return self.encoding.forest.depths

    def objective(
        self,
        residual: NDArray[np.float64],
        depths: NDArray[np.int64],
        weights: NDArray[np.float64],
        alpha: float,
    ) -> float:
        """Return the objective of trees cut at `depths`, which leave `residual`."""
        return self.loss(residual) + self.penalty(depths, weights, alpha)

    def penalty(
        self, depths: NDArray[np.int64], weights: NDArray[np.float64], alpha: float
    ) -> float:
        """Return what is added to the loss for keeping trees cut at `depths`."""
        penalty = alpha * float(self.costs[np.arange(len(self.costs)), depths].sum())
        if self.joint == "ridge":
            kept = np.where(depths > 0, weights, 0.0)
            penalty += float(self.ridge @ kept**2) / self.variation
        elif self.joint == "subset":
            penalty += self.alpha2 * np.count_nonzero(depths)
        return penalty

    def loss(self, residual: NDArray[np.float64]) -> float:
        """Return the mean squared error over var(y); residuals are given times the rows' weights.

        It is what is left unexplained: 1 minus R squared.
        """
        weights = self.encoding.sample_weight
        if weights is None:
            # Not by BLAS, whose threads cost more than they bring here.
            return float(np.einsum("ox,ox->", residual, residual)) / self.variation
        some = weights > 0.0
        return float((residual[:, some] ** 2 / weights[some]).sum()) / self.variation

    def subtree_penalty(
        self, costs: NDArray[np.float64], off: NDArray[np.float64], alpha: float
    ) -> float:
        """Return what is added to the loss for nodes that cost `costs`, and for changed values.

        `off` has the squared distances of leaves' values from the original ones.
        """
        shrinkage = self.shrinkage if self.refit else 0.0
        return alpha * float(costs.sum()) + shrinkage * float(off.sum()) / self.variation

    @property
    def ridge(self) -> NDArray[np.float64]:
        """What the square of each tree's weight costs, times `variation`."""
        if self.joint != "ridge":
            return np.zeros(len(self.costs))
        full: NDArray[np.float64] = self.steps.square[np.arange(len(self.costs)), self.depths]
        return self.alpha2 * full

    def price(self, alpha: float) -> Price:
        """Return what choices cost at `alpha`, as kernels read it."""
        penalty = alpha * self.variation * self.costs
        if self.joint == "subset":
            penalty[:, 1:] += self.alpha2 * self.variation
        if self.joint is not None:
            # A cut that adds next to nothing beside the rest of its tree would take a weight so
            # large that all else drowned in its rounding.
            square = self.steps.square
            least = NEXT_TO_NOTHING * square.max(axis=1, keepdims=True, initial=0.0)
            penalty[:, 1:][(square <= least)[:, 1:]] = np.inf
        least = self._least(ROUNDING if self.joint is None else WEIGHT_TOLERANCE)
        return Price(seal(penalty), seal(self.ridge), self.joint is not None, least)

    def split_price(self, alpha: float) -> SplitPrice:
        """Return what prunings cost at `alpha`, as kernels read it; rule "subtree"."""
        return SplitPrice(
            self.split_costs,
            alpha * self.variation,
            self.shrinkage if self.refit else 0.0,
            self.refit,
            self._least(VALUE_TOLERANCE if self.refit else ROUNDING),
        )

    def _least(self, tolerance: float) -> float:
        """Return the least gain that counts, as a sum of squares.

        Where targets hardly vary beside what they are, gains are rounding before they get so small.
        """
        return max(tolerance, LAST_DIGITS * self.loss(self.residual)) * self.variation


def pose(
    encoding: Encoding,
    y: ArrayLike,
    *,
    rule: Rule = "layer",
    weighting: Weighting = "node",
    refit: bool = False,
    shrinkage: float = 0.0,
    joint: Joint | None = None,
    alpha2: float = 0.01,
    n_jobs: int | None = None,
) -> Problem:
    """Return the problem of pruning the forest of `encoding` for the targets `y`.

    Parameters
    ----------
    encoding : Encoding
    y : array-like of shape (m,), or (m, n_outputs)
    rule : "layer" or "subtree"
    weighting : "node", "depth" or array-like
        What keeping a layer costs: its nodes, or 1; or costs of your own, not negative, of shape
        (n_trees, max_depth), one a layer, or (n_nodes,), one a node. Roots cost nothing. K is the
        cost of everything; for "depth", n_trees times the greatest depth.
        For the rule "subtree", "node" or one a node.
    refit, joint, alpha2
        See :class:`Problem`.
    shrinkage : float
        How strongly refitted values are drawn to the original ones, in rows of weight 1.
    n_jobs : int or None
        Threads; None takes every core.
    """
    forest = encoding.forest
    forest.require_joint_outputs("Pruning")
    target = check_target(y, encoding.n_rows, forest.n_outputs)
    roots = forest.value[forest.offsets[:-1]]
    intercept = forest.base + forest.scale @ roots
    weights = encoding.sample_weight
    rows = encoding.n_rows if weights is None else float(weights.sum())
    mean = np.average(target, axis=1, weights=weights)[:, np.newaxis]
    variation = float(np.average((target - mean) ** 2, axis=1, weights=weights).sum()) * rows
    # Targets that differ by no more than rounding are constant; errors are then taken as they are.
    size = max(float(np.abs(mean).max()), float(np.abs(intercept).max()))
    if variation <= rows * (1e-15 * size) ** 2:
        variation = float(rows)
    residual = target - intercept[:, np.newaxis]
    if weights is not None:
        residual *= weights
    split_costs = seal(np.empty(0)) if rule == "layer" else _split_costs(forest, weighting)
    return Problem(
        encoding=encoding,
        residual=seal(residual),
        variation=variation,
        intercept=intercept,
        costs=_costs(forest, weighting),
        split_costs=split_costs,
        rule=rule,
        refit=refit,
        shrinkage=shrinkage,
        joint=joint,
        alpha2=alpha2,
        n_jobs=n_jobs,
    )


def check_target(y: ArrayLike, rows: int, outputs: int) -> NDArray[np.float64]:
    """Return `y` as an array of shape (n_outputs, m)."""
    target = np.array(y, dtype=np.float64)
    if target.ndim == 1:
        target = target[:, np.newaxis]
    if target.shape != (rows, outputs):
        shape = f"({rows},)" if outputs == 1 else f"({rows}, {outputs})"
        raise ValueError(
            f"y must have shape {shape}: one row for each row of X and one column for each output "
            f"of the model. Got {np.shape(y)}."
        )
    if not np.isfinite(target).all():
        raise ValueError("y must be finite, but has NaN or infinities. Drop or fill those rows.")
    if np.abs(target).max(initial=0.0) > LARGEST_TARGET:
        raise ValueError(
            f"y must be at most {LARGEST_TARGET:g} in size, so that its squares can be added up. "
            "Divide it by its standard deviation, and train again."
        )
    return np.ascontiguousarray(target.T)


def _costs(forest: Forest, weighting: Weighting) -> NDArray[np.float64]:
    shape = (forest.n_trees, forest.max_depth)
    sizes = forest.layer_sizes()
    if isinstance(weighting, str):
        layers = (sizes if weighting == "node" else sizes > 0).astype(np.float64)
        total = layers.sum() if weighting == "node" else layers.size
    else:
        layers = _custom_layers(forest, np.asarray(weighting, dtype=np.float64), shape)
        layers = np.where(sizes > 0, layers, 0.0)
        total = layers.sum()
    costs = np.zeros((shape[0], shape[1] + 1))
    # A forest whose layers all cost nothing has nothing to divide by either.
    np.cumsum(layers / (total or 1.0), axis=1, out=costs[:, 1:])
    return seal(costs)


def _split_costs(forest: Forest, weighting: Weighting) -> NDArray[np.float64]:
    """Return what the two children of each split cost together, divided by K."""
    if isinstance(weighting, str):
        splits = (forest.n_nodes - forest.n_trees) // 2
        return seal(np.full(splits, 1.0 / max(splits, 1)))
    given = np.array(weighting, dtype=np.float64)
    if given.shape != (forest.n_nodes,):
        raise ValueError(
            f"For rule='subtree', an array of weighting must have shape ({forest.n_nodes},), one "
            f"cost a node; got {given.shape}. Costs of layers need rule='layer'."
        )
    given[forest.offsets[:-1]] = 0.0
    starts = np.repeat(forest.offsets[:-1], np.diff(forest.offsets))
    left = (starts + forest.left)[forest.left >= 0]
    pairs: NDArray[np.float64] = given[left] + given[left + 1]
    return seal(pairs / (given.sum() or 1.0))


def cut_weighting(forest: Forest, weighting: Weighting, depth: int) -> Weighting:
    """Return what is left of costs made for `forest` once it is cut at `depth`."""
    given = np.asarray(weighting)
    if given.shape == (forest.n_trees, forest.max_depth):
        return given[:, :depth]
    return given[forest.node_depths <= depth] if given.shape == (forest.n_nodes,) else weighting


def _custom_layers(
    forest: Forest, given: NDArray[np.float64], shape: tuple[int, int]
) -> NDArray[np.float64]:
    if given.shape not in (shape, (forest.n_nodes,)):
        raise ValueError(
            f"An array of weighting must have shape {shape} (trees, layers below the root) or "
            f"({forest.n_nodes},), one cost a node; got {given.shape}."
        )
    if not np.isfinite(given).all() or (given < 0).any():
        raise ValueError("The costs of weighting must be finite and not negative.")
    if given.shape == shape:
        return given
    layers = np.zeros(shape)
    for row, start, bounds in zip(layers, forest.offsets[:-1], forest.layers, strict=True):
        row[: bounds.size - 2] = [
            given[start + a : start + b].sum() for a, b in pairwise(bounds[1:])
        ]
    return layers
