"""Choosing one of several points: the best within a budget, or the smallest that is good enough."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from forestprune.exceptions import OptionError, OutOfReachError, named
from forestprune.select.budget import Budget, check_quality
from forestprune.select.validation import Validation
from forestprune.solve.point import Point


def choose_point(
    points: Sequence[Point],
    n_bytes: Callable[[int], int],
    validation: Validation | None,
    budget: Budget,
    tolerance: float | None,
    one_standard_error: bool,
    confidence: float | None = None,
) -> int:
    """Return the index of the point to take: see `PruningPath.select`.

    `n_bytes` measures the file of a point, given its index.
    """
    if not budget and validation is None and tolerance is None and not one_standard_error:
        raise OptionError(
            "Say what to select by: {max_nodes}, {max_trees}, {max_depth}, {max_bytes}, "
            "{tolerance} or {one_standard_error}; or give validation rows to take the best."
        )
    check_quality(tolerance, one_standard_error, confidence)
    if not points:
        raise OutOfReachError("This path has no points to select from.")
    if validation is None and (tolerance is not None or one_standard_error):
        raise OptionError(
            "{tolerance} and {one_standard_error} need validation rows: give {X} and {y} to "
            "select(), or {X_val} and {y_val} when the path is made."
        )
    n_nodes = np.array([point.n_nodes for point in points], dtype=np.int64)
    losses = np.array([point.loss for point in points])
    if validation is not None:
        losses = 1.0 - validation.scores
    allowed = np.array([budget.allows(point) for point in points], dtype=np.bool_)
    if validation is not None and tolerance is not None and allowed.any():
        good = validation.within(tolerance, confidence)
        if not (allowed & good).any():
            asked = named("tolerance", tolerance)
            asked += "" if confidence is None else f" with {named('confidence', confidence)}"
            needed = np.where(allowed, validation.needed(confidence), np.inf)
            raise OutOfReachError(_too_small(validation, needed, good, n_nodes, budget, asked))
        allowed &= good
    elif validation is not None and one_standard_error and allowed.any():
        within_budget = np.flatnonzero(allowed)
        within_budget = _within_bytes(within_budget, n_nodes, n_bytes, budget.max_bytes)
        within_budget = within_budget if within_budget.size else np.flatnonzero(allowed)
        best = within_budget[np.argmax(validation.scores[within_budget])]
        lowest = validation.scores[best] - validation.standard_errors[best]
        allowed &= validation.scores >= lowest
    smallest_first = tolerance is not None or one_standard_error
    ranked = np.lexsort((losses, n_nodes) if smallest_first else (n_nodes, losses))
    ranked = _within_bytes(ranked[allowed[ranked]], n_nodes, n_bytes, budget.max_bytes)
    if ranked.size:
        return int(ranked[0])
    smallest = int(np.argmin(n_nodes))
    as_well = " and is good enough as well" if smallest_first else ""
    raise OutOfReachError(
        f"No point of the path keeps to {budget.named}{as_well}. The smallest has "
        f"{n_nodes[smallest]:,} nodes in {points[smallest].n_trees:,} trees and takes "
        f"{n_bytes(smallest):,} bytes."
    )


def _too_small(
    validation: Validation,
    needed: NDArray[np.float64],
    good: NDArray[np.bool_],
    n_nodes: NDArray[np.int64],
    budget: Budget,
    asked: str,
) -> str:
    """Return what is out of reach, and what would be within."""
    best = int(np.argmin(needed))
    within = f" within {budget.named}" if budget else ""
    message = (
        f"No model{within} comes within {asked} of the full model's validation {validation.name}, "
        f"{validation.full:.4g}. The best that was found{within} has "
        f"{validation.scores[best]:.4g}, which needs "
        f"{named('tolerance', _rounded_up(float(needed[best])))} or more."
    )
    if good.any() and not good[:-1].any():
        # The full model is always there; between it and the budget nothing may have been tried.
        message += f" Leave {budget.named} out for the smallest that comes as close."
    elif good.any():
        message += f" The smallest that comes as close has {n_nodes[good].min():,} nodes."
    return message


def _rounded_up(number: float) -> str:
    """Return a number above 0 with two digits, and no smaller: whoever gives it gets a model."""
    step = 10.0 ** (math.floor(math.log10(number)) - 1)
    return f"{float(f'{math.ceil(number / step) * step:.2g}'):g}"


def _within_bytes(
    ranked: NDArray[np.int64],
    n_nodes: NDArray[np.int64],
    n_bytes: Callable[[int], int],
    max_bytes: int | None,
) -> NDArray[np.int64]:
    """Return those of some points whose file is small enough, from the first that is on.

    How many nodes a file may hold is found by halving, since it can only be measured by writing it.
    """
    if max_bytes is None or not ranked.size:
        return ranked
    by_size = ranked[np.argsort(n_nodes[ranked], kind="stable")]
    fitting, size = -1, by_size.size
    while fitting + 1 < size:
        middle = (fitting + 1 + size) // 2
        if n_bytes(int(by_size[middle])) <= max_bytes:
            fitting = middle
        else:
            size = middle
    if fitting < 0:
        return ranked[:0]
    ranked = ranked[n_nodes[ranked] <= n_nodes[by_size[fitting]]]
    for place, index in enumerate(ranked):
        if n_bytes(int(index)) <= max_bytes:
            return ranked[place:]
    return ranked[:0]
