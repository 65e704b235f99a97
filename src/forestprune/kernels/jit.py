"""How kernels are compiled, and where their machine code is kept."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba import njit
from numba.core.caching import IndexDataCacheFile

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
    kept = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    try:
        return kept is not None and not kept._load_index()
    except (AttributeError, OSError, ValueError):  # then there is no head start, that is all
        return False


def _compiled(function: Callable[..., Any], **flags: bool) -> Any:
    options: dict[str, Any] = {"nogil": True, **flags}
    try:
        dispatcher: Any = njit(cache=True, **options)(function)
    except RuntimeError:
        return njit(**options)(function)
    cache: Any = getattr(dispatcher, "_cache", None)  # none if kernels are interpreted
    if hasattr(cache, "_cache_file"):
        cache._cache_file = KeptCode(
            cache_path=cache._cache_path,
            filename_base=cache._impl.filename_base,
            source_stamp=cache._impl.locator.get_source_stamp(),
        )
    return dispatcher


class KeptCode(IndexDataCacheFile):
    """The machine code of one kernel on disk: an index, and a file for each signature.

    numba looks only at the file that a function stands in: it would go on with machine code of
    functions elsewhere that it calls, and could not read what it kept if records have moved. So
    here what was kept counts only if all kernels are as they were then.

    And numba numbers the files of signatures: of two processes that compile for two signatures at
    once, one would then find the code of the other under its own. Here they are named by their
    signature, and written before the index is; at worst one has to be compiled again.
    """

    def __init__(self, cache_path: str, filename_base: str, source_stamp: Any) -> None:
        super().__init__(cache_path, filename_base, source_stamp)
        self._version = f"{numba.__version__} {_CONTENTS}"

    def save(self, key: Any, data: Any) -> None:
        """Keep the machine code `data` of a signature, `key`."""
        number = int.from_bytes(hashlib.sha256(repr((key, _CONTENTS)).encode()).digest()[:6], "big")
        name = self._data_name(number)
        self._save_data(name, data)
        self._save_index({**self._load_index(), key: name})


def _contents() -> str:
    """Return a digest of all kernels as they stand in their files."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


_CONTENTS = _contents()

watch_compiler()
