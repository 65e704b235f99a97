"""What all baselines begin and end with: a model, rows, and points measured on them."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestprune.forest.checks import seal
from forestprune.select.opening import Opened
from forestprune.select.solver import Point
from forestprune.solve.contributions import Predictions
from forestprune.solve.kept import Subtrees
from forestprune.solve.problem import pose


class Setting:
    """A model and the rows that a baseline makes it small with.

    Attributes
    ----------
    source : Source
    encoding : Encoding
    target : array-like of shape (m,), or (m, n_outputs)
    problem : Problem
        For its residual, the steps of the trees, and the loss.
    """

    def __init__(
        self,
        model: Any,
        X: Any,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        n_jobs: int | None,
    ) -> None:
        opened = Opened.of(model, X, y, sample_weight, n_jobs)
        self.source, self.encoding, self.target = opened.source, opened.encoding, opened.target
        # Nothing is descended here, so there is no need of a sketch, which the rule "layer" has.
        self.problem = pose(self.encoding, self.target, rule="subtree", n_jobs=n_jobs)
        self._predictions = Predictions(self.encoding, self.problem.steps)

    @property
    def averages(self) -> bool:
        """Whether the trees are averaged, rather than added up, as far as the forest knows."""
        return self.source.original.averages

    @property
    def total_weight(self) -> float:
        """Weight of all rows."""
        weights = self.encoding.sample_weight
        return float(self.encoding.n_rows if weights is None else weights.sum())

    @property
    def is_constant(self) -> bool:
        """Whether all targets are the same but for rounding, so that no tree has a say."""
        target = np.asarray(self.target, dtype=np.float64)
        spread = np.ptp(target, axis=0)
        return bool((spread <= 1e-14 * np.abs(target).max(axis=0, initial=0.0)).all())

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of nodes of each tree."""
        return np.diff(self.source.forest.offsets)

    def point(
        self,
        alpha: float,
        weights: NDArray[np.float64],
        intercept: NDArray[np.float64],
        *,
        subtrees: Subtrees | None = None,
        report: dict[str, Any] | None = None,
    ) -> Point:
        """Return the model whose trees have these weights, measured on the rows.

        Trees are whole, or what `subtrees` has of them; a weight of 0 leaves a tree out.
        """
        problem = self.problem
        whole = problem.depths if subtrees is None else subtrees.depths(self.source.forest)
        depths = np.where(weights != 0.0, whole, 0)
        weights = np.where(depths > 0, weights, 0.0)
        self._predictions.move_to(depths, weights, subtrees)
        off = self._predictions.values + (intercept - problem.intercept)[:, np.newaxis]
        row_weights = self.encoding.sample_weight
        loss = problem.loss(problem.residual - (off if row_weights is None else off * row_weights))
        return Point(
            alpha=alpha,
            depths=seal(depths),
            weights=seal(weights),
            intercept=seal(np.array(intercept)),
            objective=loss,
            loss=loss,
            n_iter=0,
            report=report or {},
            subtrees=subtrees,
        )
