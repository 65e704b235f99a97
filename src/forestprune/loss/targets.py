"""Which targets are refused, and how that is said; which are constant."""

import numpy as np
from numpy.typing import NDArray

LARGEST_TARGET = 1e140
"""Squares of larger numbers, added up over many rows, may be beyond all numbers."""

Floats = NDArray[np.float64]


def check_size(target: Floats) -> None:
    """Refuse targets whose squares cannot be added up."""
    if np.abs(target).max(initial=0.0) > LARGEST_TARGET:
        raise ValueError(
            f"y must be at most {LARGEST_TARGET:g} in size, so that its squares can be added "
            "up. Divide it by its standard deviation, and train again."
        )


def refuse(wrong: NDArray[np.bool_], target: Floats, required: str) -> None:
    """Refuse targets if any of them is wrong, naming the first row of them.

    Parameters
    ----------
    wrong : bool array of shape (n_outputs, m)
    target : float64 array of shape (n_outputs, m)
    required : str
        What each target must be, and for which loss.
    """
    rows = wrong.any(axis=0)
    if not rows.any():
        return
    row = int(rows.argmax())
    found = float(target[int(wrong[:, row].argmax()), row])
    raise ValueError(
        f"y must be {required}; got {found:g} in row {row}. Correct such rows or leave them out."
    )


def check_probabilities(target: Floats, loss: str) -> None:
    """Refuse targets that are not from 0 to 1."""
    # Two passes over the rows, and only then one for the message.
    if target.min(initial=0.0) < 0.0 or target.max(initial=1.0) > 1.0:
        refuse((target < 0.0) | (target > 1.0), target, f"from 0 to 1 for {loss}")


def is_constant(target: Floats, weight: Floats | None) -> bool:
    """Tell whether all rows that count have the same target."""
    some = target if weight is None else target[:, weight > 0.0]
    return bool((some == some[:, :1]).all())
