"""Local search: from a solution that no single tree can improve into a better one."""

from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forestprune.solve.descent import Descent

if TYPE_CHECKING:
    from forestprune.solve.layers.rule import LayerRule

MIN_GAIN = 1e-10
"""A solution is better if its objective is lower by more than this."""


class Move(NamedTuple):
    """Trees to cut and weight anew: from there the descent goes on."""

    trees: tuple[int, ...]
    depths: tuple[int, ...]
    weights: tuple[float, ...]


def search_in_order(
    rule: "LayerRule", descent: Descent, alpha: float, max_iter: int, *, on_path: bool = False
) -> None:
    """Try the most promising moves, one after another; keep what is better, undo what is not.

    A tree that was moved is held until the others have answered, then may change too.
    Deterministic.
    """
    encoding, tuning = rule.problem.encoding, rule.tuning
    size = encoding.forest.n_trees * encoding.n_rows + encoding.forest.n_nodes
    most = tuning.tries if rule.options.joint is None else tuning.tries_of_weights
    affordable = tuning.search_budget / (tuning.on_path if on_path else 1) / max(size, 1)
    tries = max(int(min(affordable, most)), 1)
    better = True
    while better and tries > 0:
        better = False
        for move in _promising_moves(rule, alpha)[:tries]:
            tries -= 1
            if _pays(rule, descent, alpha, max_iter, move, hold=True):
                better = True
                break


def search_randomly(
    rule: "LayerRule", descent: Descent, alpha: float, max_iter: int, random: Any
) -> None:
    """Section 3.1 of the paper: drop a random tree, let another one in, descend, keep if better.

    In comes, uncut, the first tree that is absent, or the one most correlated with the residual.
    """
    failures = 0
    while failures < rule.tuning.patience and rule.depths.any():
        drop = int(random.choice(np.flatnonzero(rule.depths > 0)))
        absent = _absent(rule)
        if rule.options.local_search == "correlated":
            rule.look_at(absent)
            absent = _most_correlated_first(rule, absent)
        enter = [int(tree) for tree in absent[:1]]
        depths = [int(rule.full_depths[tree]) for tree in enter]
        move = Move((drop, *enter), (0, *depths), (1.0, *(1.0 for _ in enter)))
        better = _pays(rule, descent, alpha, max_iter, move, hold=False)
        failures = 0 if better else failures + 1


def _pays(
    rule: "LayerRule", descent: Descent, alpha: float, max_iter: int, move: Move, *, hold: bool
) -> bool:
    """Make a move and descend; go back and return False if that is no better."""
    begun, saved = rule.objective(alpha), rule.save()
    depths, weights = rule.depths.copy(), rule.weights
    depths[list(move.trees)], weights[list(move.trees)] = move.depths, move.weights
    rule.cut_at(depths, weights)
    if hold:
        descent.descend(alpha, max_iter, held=move.trees)
    descent.descend(alpha, max_iter)
    if rule.objective(alpha) < begun - MIN_GAIN:
        return True
    rule.restore(saved)
    return False


def _promising_moves(rule: "LayerRule", alpha: float) -> list[Move]:
    """Return moves worth trying, these by turns.

    - what costs least by itself;
    - a kept tree out, the one that costs least first;
    - an absent tree in, uncut, the one that explains most first;
    - a kept tree out and the first absent one in, as in the paper.
    """
    # Afresh, so that the order does not depend on which trees were passed over.
    most = rule.tuning.tries_of_weights
    rule.look_at(np.arange(rule.depths.size))
    objective, weights = rule.choices(alpha)
    trees, depths, full = np.arange(objective.shape[0]), rule.depths, rule.full_depths
    cost = objective - objective[trees, depths][:, np.newaxis]
    cost[trees, depths] = np.inf
    cheapest = np.argsort(cost, axis=None, kind="stable")
    cheapest = cheapest[np.isfinite(cost.ravel()[cheapest])][:most]
    kept, absent = np.flatnonzero(depths > 0), _absent(rule)
    out = kept[np.argsort(cost[kept, 0], kind="stable")]
    enter = _most_correlated_first(rule, absent)

    def move(*changes: tuple[int, int]) -> Move:
        return Move(
            tuple(int(i) for i, _ in changes),
            tuple(int(k) for _, k in changes),
            tuple(float(weights[i, k]) for i, k in changes),
        )

    by_turns = zip_longest(
        (move((i, k)) for i, k in zip(*np.unravel_index(cheapest, cost.shape), strict=True)),
        (move((i, 0)) for i in out[:most]),
        (move((i, full[i])) for i in enter[:most]),
        (move((i, 0), (j, full[j])) for i in out[:most] for j in absent[:1]),
    )
    return list(dict.fromkeys(move for turn in by_turns for move in turn if move is not None))


def _absent(rule: "LayerRule") -> NDArray[np.int64]:
    """Return the trees that are not kept but could be, in the order in which they are tried."""
    order = rule.order
    absent: NDArray[np.int64] = order[(rule.depths[order] == 0) & (rule.full_depths[order] > 0)]
    return absent


def _most_correlated_first(rule: "LayerRule", absent: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sort absent trees by the correlation of the uncut tree with the residual."""
    return absent[np.argsort(-rule.correlations()[absent], kind="stable")]
