"""What the trees of a rule may be in a mixture, and what that costs, as kernels read it."""

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from forestprune import kernels
from forestprune.forest.checks import seal
from forestprune.kernels.records import LevelPrice, Mixture, Prunings
from forestprune.rows.trees import first_splits, splits_and_leaves
from forestprune.solve.layers.rule import LayerRule
from forestprune.solve.levels import leaf_origins
from forestprune.solve.oblivious import ObliviousRule
from forestprune.solve.point import Point, kept_leaves
from forestprune.solve.rule import QuadraticRule
from forestprune.solve.subtrees.rule import SubtreeRule
from forestprune.system.threads import Crew

Floats = NDArray[np.float64]
Order = NDArray[np.int64]


class Choices(ABC):
    """What trees may be, and the lowest choice of each under a tangent."""

    @abstractmethod
    def weigh(self, leaf_weight: Floats) -> None:
        """Take other weights of the rows in each unpruned leaf."""

    @abstractmethod
    def sweep(
        self, row_weight: Floats, mixture: Mixture, order: Order, enough: float, promise: Floats
    ) -> None:
        """Let the mixtures of some trees descend; what promises no more than `enough` stays."""

    @abstractmethod
    def lowest(self, crew: Crew, some: Order, residual: Floats, least: Floats) -> None:
        """Write into least[i] the objective of the lowest choice of some trees."""

    @abstractmethod
    def penalties(self, point: Point) -> Floats:
        """Return what each tree costs at a point, its new values included, times the variation."""

    def limit(self, said: NDArray[np.int8]) -> None:
        """From now on keep some splits and do without others: see `Prunings.said`."""
        raise NotImplementedError(f"{type(self).__name__} cannot be limited.")


def choices_of(rule: QuadraticRule, alpha: float) -> Choices:
    """Return what a rule lets trees be, and what that costs at an alpha of its own problem."""
    return Levels(rule, alpha) if isinstance(rule, ObliviousRule) else PrunedTrees(rule, alpha)


class PrunedTrees(Choices):
    """Subtrees, or layers.

    Parameters
    ----------
    rule : SubtreeRule or LayerRule
    alpha : float
    """

    def __init__(self, rule: QuadraticRule, alpha: float) -> None:
        problem = rule.problem
        self._rule, self._codes = rule, problem.encoding.codes
        forest, trees = problem.encoding.forest, problem.trees
        split, leaf = splits_and_leaves(forest)
        price, outputs = alpha * problem.variation, trees.origin.shape[0]
        cost, layer_cost = np.zeros(split.size), np.zeros((forest.n_trees, 0))
        refit, shrinkage = False, 0.0
        if isinstance(rule, SubtreeRule):
            cost, refit, shrinkage = price * rule.costs, rule.refits, rule.shrinkage
        elif isinstance(rule, LayerRule):
            layer_cost = price * rule.costs
        least, most = np.full(outputs, -np.inf), np.full(outputs, np.inf)
        if refit and forest.averages_distributions:
            # In an average leaves go from the intercept towards a class, at most all the way.
            least, most = -problem.intercept, 1.0 - problem.intercept
        self._prunings = Prunings(
            offsets=forest.offsets,
            split=split,
            leaf=leaf,
            depth=seal(forest.node_depths.astype(np.int64)),
            origin=trees.origin,
            leaf_weight=seal(np.zeros(leaf.size)),
            cost=seal(cost),
            layer_cost=seal(layer_cost),
            shrinkage=shrinkage,
            refit=refit,
            least=seal(np.ascontiguousarray(least)),
            most=seal(np.ascontiguousarray(most)),
            said=seal(np.empty(0, np.int8)),
        )

    def weigh(self, leaf_weight: Floats) -> None:  # noqa: D102
        self._prunings = self._prunings._replace(leaf_weight=leaf_weight)

    def limit(self, said: NDArray[np.int8]) -> None:  # noqa: D102
        self._prunings = self._prunings._replace(said=seal(said.copy()))

    def sweep(  # noqa: D102
        self, row_weight: Floats, mixture: Mixture, order: Order, enough: float, promise: Floats
    ) -> None:
        state = (self._codes, row_weight, self._prunings, mixture)
        kernels.sweep_mixtures(*state, order, enough, promise)

    def lowest(self, crew: Crew, some: Order, residual: Floats, least: Floats) -> None:  # noqa: D102
        crew.share(kernels.lowest_prunings, some, self._codes, self._prunings, residual, least)

    def penalties(self, point: Point) -> Floats:  # noqa: D102
        prunings, forest = self._prunings, self._rule.problem.encoding.forest
        trees = np.arange(forest.n_trees)
        if isinstance(self._rule, LayerRule):
            of_layers: Floats = prunings.layer_cost[trees, point.depths]
            return of_layers
        splits, found = point.splits(forest), np.zeros(forest.n_trees)
        owner = np.repeat(trees, np.diff(first_splits(forest.offsets)))
        np.add.at(found, owner, prunings.cost * splits)
        if prunings.refit and point.values is not None:
            leaves = kept_leaves(forest, splits)
            shift = ((point.values - prunings.origin[:, leaves]) ** 2).sum(axis=0)
            of = np.searchsorted(forest.offsets, leaves, side="right") - 1
            np.add.at(found, of, prunings.shrinkage * shift)
        return found


class Levels(Choices):
    """Levels of symmetric trees; what constraints ask of new values is left out.

    Parameters
    ----------
    rule : ObliviousRule
    alpha : float
    """

    def __init__(self, rule: ObliviousRule, alpha: float) -> None:
        self._rule, self._codes = rule, rule.problem.encoding.codes
        trees, self._places = rule.symmetric
        weightless = seal(np.zeros_like(trees.weight))
        self._trees = trees._replace(weight=weightless)
        if rule.refits:
            none = np.zeros_like(trees.rising)
            self._trees = self._trees._replace(rising=none, falling=none)
        self._price: LevelPrice = rule.price(alpha)
        self._leaf_weight = weightless

    def weigh(self, leaf_weight: Floats) -> None:  # noqa: D102
        self._leaf_weight = leaf_weight

    def sweep(  # noqa: D102
        self, row_weight: Floats, mixture: Mixture, order: Order, enough: float, promise: Floats
    ) -> None:
        state = (self._codes, row_weight, self._trees, self._places, self._price)
        kernels.sweep_level_mixtures(*state, self._leaf_weight, mixture, order, enough, promise)

    def lowest(self, crew: Crew, some: Order, residual: Floats, least: Floats) -> None:  # noqa: D102
        state = (self._codes, self._trees, self._places, self._price)
        crew.share(kernels.lowest_levels, some, *state, residual, least)

    def penalties(self, point: Point) -> Floats:  # noqa: D102
        rule, price = self._rule, self._price
        trees = np.arange(point.depths.size)
        found: Floats = price.alpha * price.cost[trees, point.depths]
        if point.values is not None and price.refit:
            shift = ((point.values - leaf_origins(rule.problem, point)) ** 2).sum(axis=0)
            owner = np.repeat(trees, np.where(point.depths > 0, 2**point.depths, 0))
            np.add.at(found, owner, price.shrinkage * shift)
        return found
