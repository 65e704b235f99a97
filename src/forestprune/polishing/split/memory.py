"""What choosing splits anew takes of memory, said before it is taken."""

import os

from forestprune.exceptions import OptionError
from forestprune.forest.forest import Forest
from forestprune.kernels.records import MOST_BINS

BYTES_OF_NODE = MOST_BINS + 100
"""Of a node: which bins go left, and what else is known of it, twice for trees at work."""


def require_memory(forest: Forest, n_rows: int, n_bins: int) -> None:
    """Refuse what would not fit into the memory that this machine has left, if that is known.

    Of so many rows, whose columns have `n_bins` bins all together.
    """
    outputs = forest.value.shape[1]
    largest = int((forest.offsets[1:] - forest.offsets[:-1]).max(initial=1) + 1) // 2
    bins = n_rows * forest.n_features
    leaves = 4 * n_rows * forest.n_trees
    sums = 8 * n_bins * (outputs + 1) * largest
    rows = 8 * n_rows * (6 * forest.n_outputs + 4 * outputs)
    needed = bins + leaves + sums + rows + BYTES_OF_NODE * forest.n_nodes
    free = _free_memory()
    if free is not None and needed > free:
        raise OptionError(
            f"Choosing splits anew takes up to {needed / 1e9:.1f} GB for {n_rows:,} rows of "
            f"{forest.n_features:,} columns and {forest.n_nodes:,} nodes in {forest.n_trees:,} "
            f"trees, and this machine has {free / 1e9:.1f} GB left. Give fewer rows, or prune to "
            "fewer nodes first."
        )


def _free_memory() -> int | None:
    """Return how many bytes are left; None where the system does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:  # noqa: PTH123
            for line in file:
                if line.startswith("MemAvailable:"):
                    return 1024 * int(line.split()[1])
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return None
