"""How hard the tests look.

Compiled they draw a few cases, or many if FORESTPRUNE_TESTS is "deep"; interpreted always a few
small ones, because a kernel then takes a thousand times as long.
"""

import os

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT") == "1"
DEEP = os.environ.get("FORESTPRUNE_TESTS") == "deep" and not INTERPRETED
EXAMPLES = 150 if DEEP else 25


def examples(some):
    """Return how many cases to draw where each takes long: some, fewer, or more."""
    if INTERPRETED:
        return some
    return 2 * some if DEEP else -(-some // 3)
