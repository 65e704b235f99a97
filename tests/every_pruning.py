"""All prunings of tiny forests, one by one: what bounds and exact solvers are held to."""

from dataclasses import dataclass
from itertools import product

import naive
import numpy as np
from scipy.optimize import minimize

from forestprune.solve.problem import Problem


@dataclass
class TreePruning:
    """One pruning of one tree, in plain numbers."""

    splits: np.ndarray  # (n_splits of the tree,): whether each is kept
    depth: int
    inside: np.ndarray  # (m, n_leaves): which rows are in which of its leaves
    origin: np.ndarray  # (n_leaves, n_outputs): what these add in the original

    @property
    def adds(self):
        return self.inside @ self.origin


def of_tree(case, i):
    """Return every pruning of tree i."""
    root, scale = case.roots[i], case.forest.scale[i]
    nodes = naive.level_order(root)
    found = []
    for pruned in naive.prunings(root):
        kept = dict(zip(map(id, nodes), naive.kept_mask(root, pruned), strict=True))
        splits = np.array([kept[id(node.left)] for node in nodes if not node.is_leaf], bool)
        leaves = [] if pruned.is_leaf else naive.ends_of(root, pruned)
        ends = [naive.end_of_row(root, pruned, row, case.dtype) for row in case.X]
        inside = [[float(end is leaf) for leaf in leaves] for end in ends]
        origin = [scale * (np.array(leaf.value) - np.array(root.value)) for leaf in leaves]
        found.append(
            TreePruning(
                splits,
                naive.tree_depth(pruned),
                np.reshape(inside, (len(case.X), len(leaves))),
                np.reshape(origin, (len(leaves), case.forest.n_outputs)),
            )
        )
    return found


def of_layers(case, i):
    """Return those prunings of tree i that cut it at a depth."""
    levels = np.array(
        [
            k
            for k, layer in enumerate(naive.layers(case.roots[i]))
            for node in layer
            if not node.is_leaf
        ]
    )
    return [each for each in of_tree(case, i) if np.array_equal(each.splits, levels < each.depth)]


def objective(problem: Problem, raw, cost, shift, alpha, shrinkage):
    """Return the objective, from its definition; `shift` is the squares of changed values."""
    loss = problem.loss.value(problem.target, raw, problem.sample_weight)
    penalty = problem.curvature * (shrinkage or 0.0) * shift / problem.variation
    return 2.0 * loss / problem.variation + alpha * cost + penalty


def best_values(problem, inside, origin, shrinkage):
    """Return the best values of leaves, all at once: (n_leaves, n_outputs)."""
    if not origin.size:
        return origin
    if not problem.loss.quadratic:
        return _descended(problem, inside, origin, shrinkage)
    weights = np.ones(len(inside)) if problem.sample_weight is None else problem.sample_weight
    away = (problem.target - problem.intercept[:, None]).T
    square = inside.T @ (weights[:, None] * inside) + shrinkage * np.eye(len(origin))
    return np.linalg.solve(square, inside.T @ (weights[:, None] * away) + shrinkage * origin)


def _descended(problem, inside, origin, shrinkage):
    def value(flat):
        values = flat.reshape(origin.shape)
        raw = problem.intercept[:, None] + (inside @ values).T
        return objective(problem, raw, 0.0, ((values - origin) ** 2).sum(), 0.0, shrinkage)

    start = origin.ravel()
    found = minimize(value, start, options={"maxiter": 60})
    return (found.x if found.fun < value(start) else start).reshape(origin.shape)


def everything(problem, case, alpha, costs, shrinkage, of=of_tree):
    """Yield the objective of every pruning of the forest.

    `costs` has for each tree a function from one of its prunings to what that costs; with a
    `shrinkage` leaves have their best values. `of` lists the prunings of one tree.
    """
    trees = [of(case, i) for i in range(len(case.roots))]
    intercept = problem.intercept[:, None]
    for chosen in product(*trees):
        cost = sum(price(each) for price, each in zip(costs, chosen, strict=True))
        shift, added = 0.0, sum((each.adds for each in chosen), np.zeros(problem.target.T.shape))
        if shrinkage is not None:
            inside = np.concatenate(
                [np.zeros((len(added), 0)), *(e.inside for e in chosen)], axis=1
            )
            origin = np.concatenate([np.zeros((0, added.shape[1])), *(e.origin for e in chosen)])
            values = best_values(problem, inside, origin, shrinkage)
            added, shift = inside @ values, float(((values - origin) ** 2).sum())
        yield objective(problem, intercept + added.T, cost, shift, alpha, shrinkage)


def of_levels(case, i):
    """Return every choice of levels of the symmetric tree i; splits are left out."""
    root, scale = case.roots[i], case.forest.scale[i]
    ends = [naive.visited(root, row, case.dtype)[-1] for row in case.X]
    found = []
    for kept in naive.level_choices(root):
        cells = list(naive.cells_of(root, kept).values()) if kept else []
        inside = [[float(any(end is leaf for leaf in cell)) for cell in cells] for end in ends]
        origin = [scale * (naive.mean_of_leaves(cell) - np.array(root.value)) for cell in cells]
        found.append(
            TreePruning(
                np.empty(0, bool),
                len(kept),
                np.reshape(inside, (len(case.X), len(cells))),
                np.reshape(origin, (len(cells), case.forest.n_outputs)),
            )
        )
    return found
