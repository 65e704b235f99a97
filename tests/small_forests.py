"""Forests small enough to be written down."""

import numpy as np

from forestprune import Forest, InputSpec


def small(**changes):
    """Return a forest of a stump and a tree of depth 2, with `changes` made to its arrays."""
    arrays = {
        "offsets": [0, 3, 8],
        "left": [1, -1, -1, 1, -1, 3, -1, -1],
        "feature": [0, -1, -1, 1, -1, 0, -1, -1],
        "threshold": [0.5, 0, 0, 1.5, 0, 2.5, 0, 0],
        "missing_left": [True, False, False, False, False, True, False, False],
        "value": [[1.0], [0.5], [1.5], [2.0], [1.0], [3.0], [2.5], [3.5]],
        "cover": [8.0, 4, 4, 8, 4, 4, 2, 2],
        "scale": [0.5, 0.25],
        "base": [10.0],
        "input": InputSpec(n_features=2, feature_names=("a", "b")),
    }
    arrays |= changes
    return Forest(**{k: np.array(v) if isinstance(v, list) else v for k, v in arrays.items()})
