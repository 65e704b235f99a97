"""Least squares on a few columns, from their Gram matrix, updated as columns change."""

from copy import copy

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DEPENDENT = 1e-9
"""A column counts as dependent, and is not selected, if its squared distance to the span of those
selected is below this share of its squared length. A Gram matrix has about 15 digits: this leaves
half a dozen for what only the difference between nearly equal columns can explain."""


class Fit:
    """Least squares on a support, and what adding, dropping or swapping columns would change.

    Attributes
    ----------
    support : list of int
    weights : array of shape (k,)
        inv(A_SS) b_S, in the order of `support`.
    residual : array of shape (p,)
        b - A_:S weights: the inner products of columns and residual; 0 on the support.
    distance : array of shape (p,)
        Squared distance of each column to the span of the support; 0 on the support.
    tableau : array of shape (k, p)
        The columns of the support hold inv(A_SS), the others inv(A_SS) A_S: .
    explained : float
        b_S' weights: how far the support lowers the quadratic.
    """

    def __init__(self, A: Floats, b: Floats, capacity: int) -> None:
        self.A = A
        self.support: list[int] = []
        self.weights = np.zeros(0)
        self.residual = b.copy()
        self.b = b
        self.distance = np.ones(len(b))
        self.explained = 0.0
        self._rows = np.empty((capacity, len(b)))

    @property
    def tableau(self) -> Floats:
        """One row for each column of the support; see above."""
        return self._rows[: len(self.support)]

    @property
    def inverse_diagonal(self) -> Floats:
        """The diagonal of inv(A_SS)."""
        return self.tableau[np.arange(len(self.support)), self.support]

    def copy(self) -> "Fit":
        """Return a fit that changes on its own."""
        other = copy(self)
        other.support, other.weights = list(self.support), self.weights.copy()
        other.residual, other.distance = self.residual.copy(), self.distance.copy()
        other._rows = np.empty_like(self._rows)
        other.tableau[:] = self.tableau
        return other

    def take_all(self, columns: NDArray[np.intp], min_distance: float) -> bool:
        """Fit `columns` at once; return False if one is nearer than this to the others."""
        block = self.A[np.ix_(columns, columns)]
        try:
            np.linalg.cholesky(block)  # fails if rounding makes it indefinite
            inverse = np.linalg.inv(block)
        except np.linalg.LinAlgError:
            return False
        # The inverse of a singular matrix may be anything.
        diagonal = np.diag(inverse) * min_distance
        if not ((diagonal > 0) & (diagonal < 1)).all():
            return False
        self.support = columns.tolist()
        np.matmul(inverse, self.A[columns], out=self.tableau)
        self.weights = inverse @ self.b[columns]
        self.residual = self.b - self.weights @ self.A[columns]
        self.distance = 1 - np.einsum("ij,ij->j", self.A[columns], self.tableau)
        self.explained = float(self.b[columns] @ self.weights)
        self.tableau[:, columns] = inverse
        self._clear_support()
        return True

    def add(self, column: int) -> None:
        """Add a column that is independent of the support."""
        tableau = self.tableau
        others = tableau[:, column].copy()
        distance, step = self.distance[column], self.residual[column] / self.distance[column]
        # The new row: the column's part that is orthogonal to the support, times all columns.
        products = self.A[column] - self.A[column, self.support] @ tableau
        products[self.support] = -others
        row = products / distance
        tableau -= others[:, None] * row
        tableau[:, column] = -others / distance
        row[column] = 1 / distance
        self._rows[len(self.support)] = row

        self.explained += float(self.residual[column] * step)
        self.weights = np.append(self.weights - others * step, step)
        self.residual -= products * step
        self.distance -= products * products / distance
        self.support.append(column)
        self._clear_support()

    def drop(self, position: int) -> None:
        """Drop the column at `position` of the support."""
        tableau, column, weight = self.tableau, self.support[position], self.weights[position]
        inverse = tableau[:, column].copy()
        corner = inverse[position]
        row = tableau[position] / corner
        tableau -= inverse[:, None] * row
        tableau[:, column] = -inverse / corner

        self.explained -= float(weight * weight / corner)
        self.weights = self.weights - inverse * (weight / corner)
        self.residual += row * weight
        self.distance += row * row * corner
        self.residual[column] = weight / corner
        self.distance[column] = 1 / corner
        # The last column takes the free place.
        last = self.support.pop()
        tableau[position] = tableau[-1]
        self.weights[position] = self.weights[-1]
        self.weights = self.weights[:-1]
        if position < len(self.support):
            self.support[position] = last
        self._clear_support()

    def _clear_support(self) -> None:
        self.residual[self.support] = 0.0
        self.distance[self.support] = 0.0

    def can_move(self, position: int | None, column: int, min_distance: float = DEPENDENT) -> bool:
        """Tell if the support stays independent with `column`, and without that at `position`."""
        # The reciprocal of a diagonal entry is the squared distance of a column to all others.
        diagonal, row = self.inverse_diagonal, self.tableau[:, column]
        distance = self.distance[column]
        if position is not None:
            inverse = self.tableau[:, self.support[position]]
            ratio = inverse / diagonal[position]
            distance += row[position] ** 2 / diagonal[position]
            diagonal = diagonal - inverse * ratio
            row = row - ratio * row[position]
            diagonal[position] = row[position] = 0.0
        if distance <= min_distance:
            return False
        return bool(((diagonal + row**2 / distance) * min_distance < 1).all())

    def drop_costs(self) -> Floats:
        """Return by how much dropping each column of the support would raise the quadratic."""
        costs: Floats = self.weights**2 / self.inverse_diagonal
        return costs

    def add_gains(self) -> Floats:
        """Return by how much adding each column would lower the quadratic."""
        return _gains(self.residual, self.distance)

    def swap_gains(self, columns: NDArray[np.intp]) -> Floats:
        """Return by how much swapping each column of the support for each of these lowers it."""
        rows = self.tableau[:, columns]
        ratio = rows / self.inverse_diagonal[:, None]
        residual = self.residual[columns] + ratio * self.weights[:, None]
        distance = self.distance[columns] + ratio * rows
        return _gains(residual, distance) - self.drop_costs()[:, None]

    def refined_weights(self) -> Floats:
        """Return the weights with their last digits corrected."""
        weights = self.weights
        A = self.A[np.ix_(self.support, self.support)]
        for _ in range(2):
            residual = self.b[self.support] - A @ weights
            weights = weights + self.tableau[:, self.support] @ residual
        return weights


def _gains(residual: Floats, distance: Floats) -> Floats:
    """Return what columns would explain; nothing if they depend on the support."""
    gains = residual * residual / np.maximum(distance, DEPENDENT)
    return np.where(distance > DEPENDENT, gains, 0.0)
