"""Lines through data along constrained features: predictions on them must not turn back."""

import numpy as np


def turns(predict, X, signs, *, rng, lines=60, steps=25):
    """Return how many of some lines through rows of `X` turn back, and how many there are.

    A line goes through a row along one constrained feature, over the range of the data and a little
    beyond; nothing is allowed for rounding.
    """
    broken = total = 0
    for column, sign in enumerate(signs):
        if not sign:
            continue
        through = X[rng.integers(0, len(X), lines)]
        low, high = np.nanmin(X[:, column]), np.nanmax(X[:, column])
        at = np.sort(rng.uniform(low - 0.1, high + 0.1, steps))
        rows = np.repeat(through, steps, axis=0)
        rows[:, column] = np.tile(at, lines)
        predicted = np.reshape(np.asarray(predict(rows), dtype=np.float64), (lines, steps))
        broken += int((sign * np.diff(predicted, axis=1) < 0.0).any(axis=1).sum())
        total += lines
    return broken, total
