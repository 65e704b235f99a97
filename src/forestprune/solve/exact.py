"""Branch and bound: the best of all prunings, with proof, where there are few splits.

A node of the search says of some splits that they are kept, of others that they are not; the dual
bounds all that is left to choose there. It is done with if the bound is not below the best pruning
that is known. Otherwise it becomes two nodes, by a split that the mixtures neither quite keep nor
quite leave out.
"""

import heapq
from dataclasses import dataclass, field, replace
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from forestprune.exceptions import OptionError, named
from forestprune.forest.checks import seal
from forestprune.forest.forest import Forest
from forestprune.kernels.records import MUST, MUST_NOT
from forestprune.options import Options
from forestprune.rows.trees import first_leaves, first_splits
from forestprune.solve.descent import Descent
from forestprune.solve.dual.bound import Dual, hindrance
from forestprune.solve.dual.certificate import OPTIMAL
from forestprune.solve.layers.rule import LayerRule
from forestprune.solve.point import Point, kept_depths, kept_leaves, pack_splits
from forestprune.solve.rule import Rule
from forestprune.solve.subtrees.rule import SubtreeRule

MOST_CHOICES = 500
"""Splits, or layers, that there may be to choose from."""

ROUNDS, SWEEPS = 40, 3
"""How long the bound of one node is raised before it becomes two."""

CLOSE = 0.1
"""A bound is not raised further if it could come no nearer to the best pruning than this."""


@dataclass(frozen=True)
class Proved:
    """What branch and bound has found.

    Attributes
    ----------
    point : Point
    bound : float
        No pruning has a lower objective.
    timed_out : bool
        Whether it ended before all was proved.
    """

    point: Point
    bound: float
    timed_out: bool


@dataclass(order=True)
class _Node:
    bound: float
    number: int
    said: NDArray[np.int8] = field(compare=False)


def small_rule(rule: Rule, options: Options) -> SubtreeRule | LayerRule:
    """Return a rule that branch and bound is for; refuse others."""
    forest, asked = rule.problem.encoding.forest, named("solver", "'exact'")
    if not isinstance(rule, SubtreeRule | LayerRule):
        raise OptionError(
            f"{asked} is for squared error and trees that add to all outputs, with the rule "
            "'subtree' or 'layer'. For what else there is a bound, {certify=True} tells it."
        )
    reason = hindrance(rule, options)
    if options.refits and (forest.monotone.size or forest.averages_distributions):
        reason = "new values of its leaves must keep to what the model promises"
    if reason is not None:
        raise OptionError(f"{asked} cannot prove anything here: {reason}.")
    layers = isinstance(rule, LayerRule)
    choices = int(forest.depths.sum()) if layers else rule.problem.trees.split.size
    if choices > MOST_CHOICES:
        what = "layers" if layers else "splits"
        raise OptionError(
            f"{asked} is for small models, of up to {MOST_CHOICES} {what}; this one has "
            f"{choices:,}. Use {{max_depth}} to cut the trees first, or {{certify=True}}, which "
            "tells how far from the best a solution can be at most."
        )
    return rule


class BranchAndBound:
    """Finds the best pruning for one alpha.

    Parameters
    ----------
    rule : SubtreeRule or LayerRule
    start : Point
        The best that is known.
    max_iter : int
        Sweeps of a descent at most.
    time_limit : float
        Seconds.
    """

    def __init__(
        self, rule: SubtreeRule | LayerRule, start: Point, max_iter: int, time_limit: float
    ) -> None:
        self._rule, self._best, self._max_iter = rule, start, max_iter
        self._alpha, self._until = start.alpha, perf_counter() + time_limit
        forest = rule.problem.encoding.forest
        self._forest, self._layers = forest, isinstance(rule, LayerRule)
        self._parent, self._owner, self._depth = _parents(forest)
        self._dual = Dual(rule, start, trace=True)
        self._seen: set[bytes] = set()
        self._improve(start.splits(forest))

    def solve(self) -> Proved:
        """Return the best pruning, or the best by the time limit."""
        none = np.zeros(self._parent.size, np.int8)
        waiting, number, done = [_Node(-np.inf, 0, none)], 0, np.inf
        while waiting:
            node = heapq.heappop(waiting)
            if node.bound >= self._cutoff:
                done = min(done, node.bound)
                continue
            bound, split = self._look(node)
            if perf_counter() > self._until:
                done = min(done, bound, *(each.bound for each in waiting))
                return Proved(self._best, min(done, self._best.objective), timed_out=True)
            if split is None:
                done = min(done, bound)
                continue
            for said in self._divided(node.said, split):
                number += 1
                heapq.heappush(waiting, _Node(bound, number, said))
        return Proved(self._best, min(done, self._best.objective), timed_out=False)

    @property
    def _cutoff(self) -> float:
        """From which bound on a node cannot hold anything better that counts."""
        return self._best.objective * (1.0 - 0.5 * OPTIMAL)

    def _look(self, node: _Node) -> tuple[float, int | None]:
        """Return the bound of a node, and the split to divide it by; None if it is done with."""
        dual, open_splits = self._dual, node.said == 0
        if not open_splits.any():
            return self._improve(node.said == MUST), None
        dual.limit(node.said)
        for _ in range(ROUNDS):
            bound = max(node.bound, dual.best)
            if bound >= self._cutoff:
                return bound, None
            if dual.upper - dual.best <= CLOSE * (self._cutoff - bound):
                break
            if perf_counter() > self._until:
                return bound, None
            dual.sweep(SWEEPS, 0.01 * OPTIMAL)
            dual.look()
        bound, kept = max(node.bound, dual.best), dual.kept()
        self._improve((kept >= 0.5) & (node.said != MUST_NOT) | (node.said == MUST))
        if bound >= self._cutoff:
            return bound, None
        torn = np.where(open_splits, np.minimum(kept, 1.0 - kept), -1.0)
        most = np.flatnonzero(torn >= torn.max() - 1e-9)
        return bound, int(most[np.argmin(self._depth[most])])

    def _divided(
        self, said: NDArray[np.int8], split: int
    ) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
        """Return what is said if a split is kept, and if it is not."""
        keeps, does_not = said.copy(), said.copy()
        if self._layers:
            tree = self._owner == self._owner[split]
            keeps[tree & (self._depth <= self._depth[split])] = MUST
            does_not[tree & (self._depth >= self._depth[split])] = MUST_NOT
            return keeps, does_not
        above = split
        while above >= 0:
            keeps[above] = MUST
            above = int(self._parent[above])
        does_not[split] = MUST_NOT
        for other in range(split + 1, said.size):  # children come after their parents
            parent = self._parent[other]
            if parent >= split and does_not[parent] == MUST_NOT:
                does_not[other] = MUST_NOT
        return keeps, does_not

    def _improve(self, splits: NDArray[np.bool_]) -> float:
        """Return the objective of keeping some splits; let it descend and take what is better."""
        rule = self._rule
        point = self._priced(splits)
        if splits.tobytes() not in self._seen:
            self._seen.add(splits.tobytes())
            Descent(rule).descend(self._alpha, self._max_iter)
            found = self._priced(rule.point(self._alpha).splits(self._forest))
            for each in (point, found):
                if each.objective < self._best.objective:
                    self._best = replace(each, n_iter=self._best.n_iter)
        return point.objective

    def _priced(self, splits: NDArray[np.bool_]) -> Point:
        """Return the point that keeps some splits, with the best values of its leaves."""
        rule, forest = self._rule, self._forest
        depths = kept_depths(forest, splits)
        point = Point(
            alpha=self._alpha,
            kept=pack_splits(splits),
            depths=seal(depths),
            weights=seal((depths > 0).astype(np.float64)),
            intercept=seal(np.array(rule.problem.intercept)),
            loss=np.nan,
            objective=np.nan,
            values=self._values(splits),
        )
        rule.move_to(point)
        return rule.point(self._alpha)

    def _values(self, splits: NDArray[np.bool_]) -> NDArray[np.float64] | None:
        """Return the best values of the leaves if some splits are kept, all of them at once."""
        rule = self._rule
        if not isinstance(rule, SubtreeRule) or not rule.refits:
            return None
        problem, forest = rule.problem, self._forest
        leaves = kept_leaves(forest, splits)
        origin = problem.trees.origin[:, leaves]
        design = _design(forest, problem.encoding.codes, leaves)
        weights = np.ones(len(design)) if problem.sample_weight is None else problem.sample_weight
        weighted = design * weights[:, np.newaxis]
        square = design.T @ weighted + rule.shrinkage * np.eye(leaves.size)
        away = problem.target - problem.intercept[:, np.newaxis]
        product = away @ weighted + rule.shrinkage * origin
        return seal(np.ascontiguousarray(np.linalg.solve(square, product.T).T))


def _parents(
    forest: Forest,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the split above each split, -1 at roots; the tree of each, and its depth."""
    is_split = forest.left >= 0
    number = np.cumsum(is_split) - 1
    starts = np.repeat(forest.offsets[:-1], np.diff(forest.offsets))
    above = np.where(forest.parent >= 0, number[starts + np.maximum(forest.parent, 0)], -1)
    owner = np.repeat(np.arange(forest.n_trees), np.diff(first_splits(forest.offsets)))
    return above[is_split], owner, forest.node_depths[is_split].astype(np.int64)


def _design(
    forest: Forest,
    codes: NDArray[np.unsignedinteger],
    leaves: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return which rows are in which leaves of what is kept: 0 and 1, shape (m, n_leaves)."""
    inside = np.full(forest.n_nodes, -1)
    inside[leaves] = np.arange(leaves.size)
    for tree in range(forest.n_trees):
        start = forest.offsets[tree]
        for node in range(start, forest.offsets[tree + 1]):  # parents come first
            parent = forest.parent[node]
            if inside[node] < 0 <= parent:
                inside[node] = inside[start + parent]
    first, ends = first_leaves(forest.offsets), inside[forest.left < 0]
    design = np.zeros((codes.shape[1], leaves.size))
    for tree, code in enumerate(codes):
        columns = ends[first[tree] : first[tree + 1]][code]
        rows = np.flatnonzero(columns >= 0)
        design[rows, columns[rows]] = 1.0
    return design
