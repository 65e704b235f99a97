"""How kernels are compiled, and where their machine code is kept."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba import njit

from forestprune.system.progress import watch_compiler


def kernel(function: Callable[..., Any]) -> Any:
    """Compile on first use, without the interpreter lock, and keep the machine code on disk.

    Where nothing can be kept, as in a container with neither a writable package nor a home, each
    process compiles for itself.
    """
    return _compiled(function, no_cfunc_wrapper=True)


def inner(function: Callable[..., Any]) -> Any:
    """Compile a function that only kernels call: what calls from Python need is left out."""
    return _compiled(function, no_cfunc_wrapper=True, no_cpython_wrapper=True)


def nothing_kept(dispatcher: Any) -> bool:
    """Tell whether a kernel would have to be compiled, and its machine code could be kept."""
    kept = _kept(dispatcher)
    try:
        return kept is not None and not kept._load_index()
    except (AttributeError, OSError, ValueError):  # then there is no head start, that is all
        return False


def _kept(dispatcher: Any) -> Any:
    """Return what numba keeps of a kernel on disk; None if nothing, or if it is interpreted."""
    return getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)


def _compiled(function: Callable[..., Any], **flags: bool) -> Any:
    options: dict[str, Any] = {"nogil": True, **flags}
    try:
        dispatcher: Any = njit(cache=True, **options)(function)
    except RuntimeError:
        return njit(**options)(function)
    # numba looks only at the file that a function stands in: it would go on with machine code of
    # functions elsewhere that it calls, and could not read what it kept if records have moved. So
    # what it kept counts only if all kernels are as they were then.
    kept = _kept(dispatcher)
    if kept is not None:
        kept._version = f"{numba.__version__} {_CONTENTS}"
    return dispatcher


def _contents() -> str:
    """Return a digest of all kernels as they stand in their files."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


_CONTENTS = _contents()

watch_compiler()
