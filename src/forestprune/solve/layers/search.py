"""Local search: from a solution that no single tree can improve into a better one."""

from itertools import zip_longest
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forestprune.solve.layers.descent import Descent, Solution

LEAST = 1e-10
"""A solution is better if its objective is lower by more than this."""

PATIENCE = 5
"""Failures in a row after which the random search of the paper gives up."""

TRIES = 16
TRIES_OF_WEIGHTS = 32
"""Moves tried at most by the deterministic search; free weights have more ways to get stuck."""

BUDGET = 1.6e7
"""How many moves of how large a problem, in rows times trees, are tried at each alpha, about."""

ON_PATH = 4
"""On a path it is less by this factor: each solution begins with what the last one found."""


def better_of(incumbent: Solution, other: Solution) -> Solution:
    """Return the other solution if it is better, not just by rounding."""
    return other if other.objective < incumbent.objective - LEAST else incumbent


class Move(NamedTuple):
    """Trees to cut and weight anew: from there the descent goes on."""

    trees: tuple[int, ...]
    depths: tuple[int, ...]
    weights: tuple[float, ...]


def search_in_order(
    descent: Descent, alpha: float, max_iter: int, *, on_path: bool = False
) -> None:
    """Try the most promising moves, one after another; keep what is better, undo what is not.

    A tree that was moved is held until the others have answered, then may change too.
    Deterministic.
    """
    forest = descent.problem.encoding.forest
    size = forest.n_trees * descent.problem.encoding.n_rows + forest.n_nodes
    most = TRIES if descent.problem.joint is None else TRIES_OF_WEIGHTS
    affordable = BUDGET / (ON_PATH if on_path else 1) / max(size, 1)
    tries = max(int(min(affordable, most)), 1)
    better = True
    while better and tries > 0:
        better = False
        for move in _promising_moves(descent, alpha)[:tries]:
            tries -= 1
            if _pays(descent, alpha, max_iter, move, hold=True):
                better = True
                break


def search_randomly(
    descent: Descent,
    alpha: float,
    max_iter: int,
    random: np.random.Generator,
    *,
    most_correlated: bool,
) -> None:
    """Section 3.1 of the paper: drop a random tree, let another one in, descend, keep if better.

    In comes, uncut, the first tree that is absent, or the one most correlated with the residual.
    """
    failures = 0
    while failures < PATIENCE and descent.depths.any():
        drop = int(random.choice(np.flatnonzero(descent.depths > 0)))
        absent = _absent(descent)
        if most_correlated:
            descent.look_at(absent)
            absent = _most_correlated_first(descent, absent)
        enter = [int(tree) for tree in absent[:1]]
        depths = [int(descent.problem.depths[tree]) for tree in enter]
        move = Move((drop, *enter), (0, *depths), (1.0, *(1.0 for _ in enter)))
        failures = 0 if _pays(descent, alpha, max_iter, move, hold=False) else failures + 1


def _pays(descent: Descent, alpha: float, max_iter: int, move: Move, *, hold: bool) -> bool:
    """Make a move and descend; go back and return False if that is no better."""
    begun, saved = descent.solution(alpha).objective, descent.save()
    depths, weights = descent.depths.copy(), descent.weights
    depths[list(move.trees)], weights[list(move.trees)] = move.depths, move.weights
    descent.move_to(depths, weights)
    if hold:
        descent.descend(alpha, max_iter, held=move.trees)
    descent.descend(alpha, max_iter)
    if descent.solution(alpha).objective < begun - LEAST:
        return True
    descent.restore(saved)
    return False


def _promising_moves(descent: Descent, alpha: float) -> list[Move]:
    """Return moves worth trying, these by turns.

    - what costs least by itself;
    - a kept tree out, the one that costs least first;
    - an absent tree in, uncut, the one that explains most first;
    - a kept tree out and the first absent one in, as in the paper.
    """
    # Afresh, so that the order does not depend on which trees were passed over.
    descent.look_at(np.arange(descent.depths.size))
    worth, weights = descent.choices(alpha)
    trees, depths, full = np.arange(worth.shape[0]), descent.depths, descent.problem.depths
    cost = worth - worth[trees, depths][:, np.newaxis]
    cost[trees, depths] = np.inf
    cheapest = np.argsort(cost, axis=None, kind="stable")
    cheapest = cheapest[np.isfinite(cost.ravel()[cheapest])][:TRIES_OF_WEIGHTS]
    kept, absent = np.flatnonzero(depths > 0), _absent(descent)
    out = kept[np.argsort(cost[kept, 0], kind="stable")]
    enter = _most_correlated_first(descent, absent)

    def move(*changes: tuple[int, int]) -> Move:
        return Move(
            tuple(int(i) for i, _ in changes),
            tuple(int(k) for _, k in changes),
            tuple(float(weights[i, k]) for i, k in changes),
        )

    by_turns = zip_longest(
        (move((i, k)) for i, k in zip(*np.unravel_index(cheapest, cost.shape), strict=True)),
        (move((i, 0)) for i in out[:TRIES_OF_WEIGHTS]),
        (move((i, full[i])) for i in enter[:TRIES_OF_WEIGHTS]),
        (move((i, 0), (j, full[j])) for i in out[:TRIES_OF_WEIGHTS] for j in absent[:1]),
    )
    return list(dict.fromkeys(move for turn in by_turns for move in turn if move is not None))


def _absent(descent: Descent) -> NDArray[np.int64]:
    """Return the trees that are not kept but could be, in the order in which they are tried."""
    order = descent.order
    absent: NDArray[np.int64] = order[
        (descent.depths[order] == 0) & (descent.problem.depths[order] > 0)
    ]
    return absent


def _most_correlated_first(descent: Descent, absent: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sort absent trees by the correlation of the uncut tree with the residual."""
    return absent[np.argsort(-descent.correlations()[absent], kind="stable")]
