"""Every way to make a model small, each as a list of candidates to choose from."""

import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
from protocols import Parts, Protocol
from sklearn.exceptions import ConvergenceWarning

import forestprune as fp
from forestprune import baselines
from forestprune.polishing.tree_equations import TreeEquations
from forestprune.solve.point import Point, pack_splits, without_trees
from forestprune.solve.problem import pose

SHRINKAGES = (10.0, 100.0, 1000.0)
"""What validation rows choose from; in the authors' protocol it is the one in the middle."""

MOST_NODES_TO_POLISH = 20_000
N_ALPHAS = 50

CURVE = tuple(int(nodes) for nodes in np.geomspace(10, 1e6, 41))
"""Budgets of nodes for which errors are kept, to compare sizes at equal error."""

COMPARED = ("layer + ridge", "subtree + refit")
"""The paper's method and our own, whose curves are kept."""

COMPETITORS = ("fewer trees", "cost-complexity", "LASSO", "best subset")

OURS = ("layer joint", "layer + leaf", "subtree", "subtree + refit")
"""What the paper does not have, or only mentions."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """Models of one kind, by falling alpha: their sizes and their errors."""

    nodes: np.ndarray
    trees: np.ndarray
    val: np.ndarray
    test: np.ndarray
    depths: list[np.ndarray]
    seconds: float = 0.0

    @classmethod
    def of(cls, paths: Iterable[fp.PruningPath], parts: Parts) -> "Candidates":
        """Measure the points of some paths on validation and test rows."""
        paths = list(paths)
        return cls(
            np.concatenate([path.n_nodes for path in paths]),
            np.concatenate([path.n_trees for path in paths]),
            np.concatenate([_errors(path, parts.X_val, parts.y_val) for path in paths]),
            np.concatenate([_errors(path, parts.X_test, parts.y_test) for path in paths]),
            [point.depths for path in paths for point in path.points],
        )

    def within(self, error: float, *, alone: bool = False) -> int:
        """Return the smallest whose validation error is no more than `error`, else the best.

        `alone`: as the authors do, the one with the largest alpha, else that with the smallest.
        """
        good = np.flatnonzero(self.val <= error)
        if alone:
            return int(good[0]) if good.size else self.val.size - 1
        return int(good[np.argmin(self.nodes[good])]) if good.size else int(np.argmin(self.val))

    def best(self, budget: float = np.inf, *, largest: bool = False) -> int | None:
        """Return the best by validation rows within a budget of nodes; None if there is no tree.

        `largest`: as the authors do with a budget, that with the smallest alpha.
        """
        allowed = np.flatnonzero((self.nodes <= budget) & (self.trees > 0))
        if not allowed.size:
            return None
        return int(allowed[-1]) if largest else int(allowed[np.argmin(self.val[allowed])])


def _errors(path: fp.PruningPath, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (1.0 - path.score(X, y)) * y.var()


@dataclass(frozen=True, eq=False)
class Task:
    """A forest to make small, for one protocol.

    `alphas` are those of the authors. In the clean protocol every method has a grid of its own.
    """

    forest: fp.Forest
    parts: Parts
    protocol: Protocol
    alphas: np.ndarray

    @property
    def data(self) -> tuple[fp.Forest, np.ndarray, np.ndarray]:
        """What every way to prune begins with."""
        return self.forest, self.parts.X, self.parts.y

    @classmethod
    def of(cls, model: Any, parts: Parts, protocol: Protocol, alphas: np.ndarray) -> "Task":
        """Read a fitted model."""
        return cls(fp.Forest.from_model(model), parts, protocol, alphas)


def candidates(method: str, task: Task) -> Candidates:
    """Return the models that a method has to offer."""
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = Candidates.of(METHODS[method](task), task.parts)
    return replace(found, seconds=time.perf_counter() - begun)


def _pruned(task: Task, **options) -> fp.PruningPath:
    return fp.prune_path(*task.data, n_jobs=1, n_alphas=N_ALPHAS, **options)


def _layer_ridge(task):
    if task.protocol == "clean":
        return [_pruned(task, rule="layer", polish="ridge")]
    path = _pruned(task, rule="layer", alphas=task.alphas)
    problem = pose(fp.encode(task.forest, task.parts.X), task.parts.y, n_jobs=1)
    equations = TreeEquations(problem)
    return [replace(path, points=tuple(_authors_ridge(equations, point) for point in path.points))]


def _authors_ridge(equations: TreeEquations, point: Point) -> Point:
    """Polish as the authors do: by scikit-learn's Ridge(0.01), on what each tree adds."""
    kept, gram, moments = equations.at(point)
    if not kept.size:
        return point
    beta = scipy.linalg.solve(gram + 0.01 * np.eye(kept.size), moments, assume_a="pos")
    return equations.weighted(point, beta, {})


def _layer_leaf(task):
    # Where there are many nodes, polishing takes long and has nothing to gain.
    plain = _pruned(task, rule="layer", local_search=False)
    small = plain.alphas[plain.n_nodes <= MOST_NODES_TO_POLISH]
    options = {"rule": "layer", "local_search": False, "polish": "leaf", "shrinkage": 100.0}
    return [_pruned(task, alphas=small, **options)]


def _layer_joint(task):
    return [_pruned(task, rule="layer", joint="ridge", local_search=False)]


def _subtree(task):
    return [_pruned(task, refit=False)]


def _subtree_refit(task):
    shrinkages = SHRINKAGES if task.protocol == "clean" else SHRINKAGES[1:2]
    return [_pruned(task, shrinkage=shrinkage) for shrinkage in shrinkages]


def _fewer_trees(task):
    options = {"n_points": task.forest.n_trees + 1, "random_state": 0, "n_jobs": 1}
    if task.protocol == "clean":
        return [baselines.fewer_trees(*task.data, **options)]
    path = baselines.fewer_trees(*task.data, rescale=False, **options)
    return [replace(path, points=path.points[1::10])]


def _lasso(task):
    if task.protocol == "clean":
        return [baselines.lasso(*task.data, n_jobs=1)]
    path = baselines.lasso(*task.data, eps=1e-10, refit=False, n_jobs=1)
    # The authors leave out trees with negative weights, and refit nothing.
    points = tuple(_without_negative(task.forest, point) for point in path.points)
    return [replace(path, points=points)]


def _without_negative(forest: fp.Forest, point: Point) -> Point:
    there = point.weights > 0.0
    splits, values = without_trees(forest, point.splits(forest), point.values, ~there)
    return replace(
        point,
        kept=pack_splits(splits),
        values=values,
        weights=np.where(there, point.weights, 0.0),
        depths=np.where(there, point.depths, 0),
    )


def _cost_complexity(task):
    return [baselines.cost_complexity(*task.data, n_alphas=N_ALPHAS, n_jobs=1)]


METHODS: dict[str, Callable[[Task], list[fp.PruningPath]]] = {
    "layer + ridge": _layer_ridge,
    "layer joint": _layer_joint,
    "layer + leaf": _layer_leaf,
    "subtree": _subtree,
    "subtree + refit": _subtree_refit,
    "fewer trees": _fewer_trees,
    "LASSO": _lasso,
    "cost-complexity": _cost_complexity,
}


def best_subset(task: Task, budget: int, time_limit: float) -> dict[str, Any]:
    """Describe the best whole trees within a budget of nodes, by mixed-integer programming.

    The authors' problem has no penalty on the weights; a little of one is what repairs it.
    """
    parts = task.parts
    if np.diff(task.forest.offsets).min() > budget:
        return constant(parts)
    begun = time.perf_counter()
    small = baselines.best_trees(
        task.forest,
        parts.X,
        parts.y,
        max_nodes=int(budget),
        alpha2=0.0 if task.protocol == "paper" else 0.01,
        solver="scip",
        time_limit=time_limit,
        n_jobs=1,
    )
    return {
        "nodes": small.n_nodes,
        "trees": small.n_trees,
        "val": float(np.mean((small.predict(parts.X_val) - parts.y_val) ** 2)),
        "test": float(np.mean((small.predict(parts.X_test) - parts.y_test) ** 2)),
        "seconds": time.perf_counter() - begun,
        "status": small.report["status"],
        "gap": small.report["gap"],
    }


def described(mine: Candidates, at: int) -> dict[str, Any]:
    """Describe one of some candidates."""
    depths = mine.depths[at][mine.depths[at] > 0]
    counts = np.bincount(depths) if depths.size else np.zeros(0, int)
    return {
        "nodes": int(mine.nodes[at]),
        "trees": int(mine.trees[at]),
        "val": float(mine.val[at]),
        "test": float(mine.test[at]),
        "depths": " ".join(f"{depth}:{n}" for depth, n in enumerate(counts) if n),
        "seconds": mine.seconds,
    }


def curve(mine: Candidates, parts: Parts) -> list[dict[str, Any]]:
    """Describe what is best by validation rows within each of many budgets."""
    rows = []
    for budget in CURVE:
        at = mine.best(budget)
        if at is None:
            row = constant(parts)
        else:
            row = {"nodes": int(mine.nodes[at]), "test": float(mine.test[at])}
        rows.append({"by": "curve", "budget": budget, "nodes": row["nodes"], "test": row["test"]})
    return rows


def constant(parts: Parts) -> dict[str, Any]:
    """Describe what is left if no model is small enough."""
    return {"nodes": 0, "trees": 0, "test": parts.constant_error}
