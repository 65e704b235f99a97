"""The arrays of a forest that kernels read together."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Splits(NamedTuple):
    """What routing reads of a forest: tree i owns the nodes offsets[i]..offsets[i + 1]."""

    offsets: NDArray[np.int64]
    left: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    missing_left: NDArray[np.bool_]
    category_set: NDArray[np.int32]  # the node's set, or -1; empty if no split is categorical
    set_offsets: NDArray[np.int64]
    set_words: NDArray[np.uint32]  # 32 categories a word
