"""How kernels are compiled."""

from collections.abc import Callable
from typing import Any

from numba import njit


def kernel(function: Callable[..., Any]) -> Any:
    """Compile on first use, without the interpreter lock, and keep the machine code on disk.

    Where nothing can be kept, as in a container with neither a writable package nor a home, each
    process compiles for itself.
    """
    try:
        return njit(nogil=True, cache=True)(function)
    except RuntimeError:
        return njit(nogil=True)(function)
