"""Where a path ends: once everything is kept, a budget is filled, or going on does not pay."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from forestprune.select.validation import Scorer, ValidationScore
from forestprune.solve.point import Point

PAYS = 0.01
"""A path goes on as long as what is left could lower the loss by more than this share of it."""

LEAST = 1e-6
"""Or by more than this, in units of the loss of the best constant."""

FURTHER = 5
"""Beyond the grid, alphas fall as fast as this many steps of it."""

SPAN = 1e-5
"""What a grid falls by. One that falls by less, as where all trees enter at nearly the same alpha,
is gone on from as if it had fallen by this: else its steps would take for ever."""

PATIENCE = 10.0
"""By what factor alpha falls without a better score until a path counts as past its best."""


def may_pay(point: Point) -> bool:
    """Tell whether going on from a point, to smaller alphas, could gain enough."""
    return point.alpha > max(PAYS * point.loss, LEAST)


class Falling:
    """The alphas of a grid, and then, by larger steps, ever smaller ones; its length is the grid's.

    Parameters
    ----------
    grid : float64 array
        Falling.
    below : float
        Larger ones, and this one, are left out.
    """

    def __init__(self, grid: NDArray[np.float64], below: float = np.inf) -> None:
        self._grid, self._below = grid, below

    def __len__(self) -> int:
        return int(np.count_nonzero(self._grid < self._below))

    def __iter__(self) -> Iterator[float]:
        return (alpha for alpha in self._all() if alpha < self._below)

    def _all(self) -> Iterator[float]:
        grid = self._grid
        yield from grid.tolist()
        alpha = float(grid[-1])
        step = float(grid[-1] / grid[-2]) if grid.size > 1 else 0.5
        further = min(step**FURTHER, SPAN ** (FURTHER / max(grid.size - 1, 1)))
        step = min(step, max(further, 0.5))
        while alpha > 0.0:
            alpha *= step
            yield alpha


@dataclass
class Ending:
    """Tells, point by point, whether a path has come to its end.

    The objective at alpha is at most alpha above that at 0, since keeping everything costs alpha.
    So alpha bounds what going on can gain: once that is little beside the loss, the path ends.

    Attributes
    ----------
    n_grid : int
        Points that a path has in any case, unless it is cut short by what follows.
    n_nodes : int
        Of the full model.
    max_nodes : int or None
        The path ends with the first point that has more.
    fits : function or None
        Tells whether a point keeps to a budget. Beyond the grid, the path ends if one does not.
    scorer : Scorer or None
        Scores points on validation rows. Once a path is past its best, it ends.
    good : function or None
        Tells whether a score is good enough: the path ends with the first point that has such a
        one and that a budget allows.
    allows : function or None
        Tells whether it does, bytes left aside, which take long to count.
    low : float or None
        A loss on the rows to prune with beyond which, beyond the grid, nothing is looked for.
    hasty : bool
        Whether a path that is past its best ends within the grid, too.
    """

    n_grid: int
    n_nodes: int
    max_nodes: int | None = None
    fits: Callable[[Point], bool] | None = None
    scorer: Scorer | None = None
    good: Callable[[ValidationScore], bool] | None = None
    allows: Callable[[Point], bool] | None = None
    low: float | None = None
    hasty: bool = False
    _seen: int = 0
    _best: Point | None = field(default=None, repr=False)
    _highest: float = -np.inf

    def __call__(self, point: Point) -> bool:
        """Tell whether this point, which follows those before, is the last."""
        self._seen += 1
        in_grid = self._seen < self.n_grid
        if self.scorer is not None:
            found = self.scorer.add(point)
            allowed = self.allows is None or self.allows(point)
            if allowed and self.good is not None and self.good(found):
                return True
            if self._past_best(point, found) and (self.hasty or not in_grid):
                return True
        if self.max_nodes is not None and point.n_nodes > self.max_nodes:
            return True
        if in_grid:
            return False
        if point.n_nodes == self.n_nodes or (self.fits is not None and not self.fits(point)):
            return True
        return not may_pay(point)

    def _past_best(self, point: Point, found: ValidationScore) -> bool:
        """Tell whether points have grown twice as large as the best, and are no better."""
        if self._best is None or found.score > self._highest:
            self._best, self._highest = point, found.score
        return (
            self._highest >= found.full_score
            and PATIENCE * point.alpha < self._best.alpha
            and point.n_nodes > 2 * self._best.n_nodes
        )
