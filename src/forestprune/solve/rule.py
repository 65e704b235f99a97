"""What a rule must offer to the descent: a new rule is one more file."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from forestprune.forest.forest import Forest
from forestprune.solve.correction import Sums
from forestprune.solve.point import Point
from forestprune.solve.problem import Problem

if TYPE_CHECKING:
    from forestprune.solve.descent import Descent

Order = NDArray[np.int64]


class Rule(ABC):
    """How one tree may be pruned, and what of each tree is kept now.

    Begins with nothing kept. A rule has its prices, its exact update of one tree given the others,
    and, if it needs any, its moves out of solutions that no single tree can improve.

    Attributes
    ----------
    problem : Problem
    order : int64 array of shape (n_trees,)
        The order in which a sweep meets the trees.
    searches : bool
        Whether solutions get better by a search: from other beginnings, and by moves.
    by_levels : bool
        Whether levels of symmetric trees are kept, rather than parts from the root on.
    """

    problem: Problem
    order: Order
    searches: bool = False
    by_levels: bool = False

    @staticmethod  # noqa: B027 - most need nothing
    def prepare(forest: Forest, n_rows: int, n_jobs: int | None) -> None:
        """Do what can be done before rows are known, while they are routed."""

    @property
    @abstractmethod
    def depths(self) -> NDArray[np.int64]:
        """How deep what is kept of each tree is now; 0 if nothing is."""

    @abstractmethod
    def n_nodes(self) -> int:
        """Return how many nodes are kept now, roots of trees that are kept included."""

    @abstractmethod
    def is_full(self) -> bool:
        """Tell whether the model is the original now."""

    @abstractmethod
    def alpha_range(self) -> tuple[float, float]:
        """Return the smallest alpha at which nothing is kept, and the last one of use.

        Must be called before anything is solved.
        """

    @abstractmethod
    def sweep(self, alpha: float, order: Order) -> tuple[int, int]:
        """Update some trees, each to its best pruning given the others.

        Returns how many changed, and how many were looked at.
        """

    def begin(self, alpha: float, order: Order) -> None:  # noqa: B027 - most need nothing
        """Prepare for sweeps over some trees at an alpha."""

    def refine(  # by default there is nothing to do
        self,
        alpha: float,  # noqa: ARG002
        order: Order,  # noqa: ARG002
        max_sweeps: int,  # noqa: ARG002
    ) -> tuple[int, int]:
        """Improve trees that are kept, once some have changed.

        Returns how many sweeps that took, and how many trees were looked at.
        """
        return 0, 0

    def holds(self, alpha: float, order: Order) -> bool:  # noqa: ARG002
        """Tell, after a sweep without a change, whether really no tree can improve.

        A rule whose sweeps leave something out looks at that now; if something gains, sweeps to
        come include it.
        """
        return True

    @abstractmethod
    def point(self, alpha: float) -> Point:
        """Return what is kept now, with its objective."""

    @abstractmethod
    def priced(self, point: Point) -> float:
        """Return the objective of a point, whose loss is known."""

    @abstractmethod
    def move_to(self, point: Point) -> None:
        """Keep what `point` keeps."""

    def correct(self, total: Sums) -> None:
        """Let rows stand for others too; `total` are sums over all, at what is kept now."""
        raise NotImplementedError(f"{type(self).__name__} cannot be corrected.")

    def tree_gains(self, alpha: float) -> NDArray[np.float64]:
        """Return by how much each tree alone could lower the objective."""
        raise NotImplementedError(f"{type(self).__name__} does not tell what trees could gain.")

    def search(  # noqa: B027 - most need nothing
        self, descent: "Descent", alpha: float, max_iter: int, *, on_path: bool
    ) -> None:
        """Look for something better around a solution that no single tree can improve."""


class QuadraticRule(Rule):
    """A rule for squared error, which other losses are expanded to."""

    @property
    @abstractmethod
    def residual(self) -> NDArray[np.float64]:
        """What is kept leaves unexplained now, times the weights of rows: (n_outputs, m)."""

    @abstractmethod
    def renew(self, residual: NDArray[np.float64], problem: Problem | None = None) -> None:
        """Take another residual for that of what is kept; with a `problem`, other weights of rows.

        So losses other than squared error are expanded anew around what is kept.
        """


def distance(
    residual: NDArray[np.float64], other: NDArray[np.float64], row_weight: NDArray[np.float64]
) -> float:
    """Return how far two residuals are apart, as kernels measure moves of it.

    Both are times the weights of rows, so squares are divided by these once.
    """
    squares = (residual - other) ** 2
    if row_weight.size:
        squares = np.divide(squares, row_weight, out=np.zeros_like(squares), where=row_weight > 0.0)
    return float(np.sqrt(squares.sum()))
