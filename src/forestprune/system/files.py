"""Files that nobody ever sees half of, and archives that run no code when they are read."""

import json
import math
import os
import uuid
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from forestprune.exceptions import InvalidForestError

_FORMAT = 1

# What reading some other file, or a damaged one, may end in.
_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    AttributeError,
    KeyError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)


@contextmanager
def write_atomically(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file beside `path`; it takes the name `path` only if the block succeeds."""
    with replace_atomically(path) as temporary, temporary.open("xb") as file:
        yield file


@contextmanager
def replace_atomically(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Name a temporary file beside `path`, for those who write by name only.

    It has the ending of `path`, by which some libraries choose a format, and takes its name only if
    the block succeeds.
    """
    target = Path(path).resolve()  # a link stays one, and what it names is written
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target} cannot be written: there is no folder {target.parent}.")
    temporary = target.with_name(f".{uuid.uuid4().hex}.part{target.suffix}")
    try:
        yield temporary
        if target.exists():
            temporary.chmod(target.stat().st_mode & 0o777)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def finite(entry: Any) -> Any:
    """Return what JSON can hold: None for numbers that are none, in whatever they stand."""
    if isinstance(entry, dict):
        return {key: finite(value) for key, value in entry.items()}
    if isinstance(entry, list | tuple):
        return [finite(value) for value in entry]
    return None if isinstance(entry, float) and not math.isfinite(entry) else entry


def write_archive(
    path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]
) -> None:
    """Write arrays of numbers, and what JSON can hold, into one npz file."""
    text = json.dumps({"format": _FORMAT, **metadata})
    contents: dict[str, Any] = {"metadata": np.frombuffer(text.encode(), np.uint8), **arrays}
    with write_atomically(path) as file:
        np.savez(file, **contents)


def read_archive(path: str | os.PathLike[str]) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return what `write_archive` wrote."""
    try:
        with Path(path).open("rb") as file:
            if file.read(2) != b"PK":  # numpy would take it for a pickle, and say how to load that
                raise ValueError("it is no npz archive")
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
        metadata = json.loads(arrays.pop("metadata").tobytes())
        version = metadata.pop("format")
    except _UNREADABLE as error:
        raise InvalidForestError(
            f"{os.fspath(path)} is not a file written by forestprune ({error})."
        ) from error
    if version != _FORMAT:
        raise InvalidForestError(
            f"{os.fspath(path)} has file format {version}, this version reads {_FORMAT}. "
            "Read it with the version of forestprune that wrote it."
        )
    return arrays, metadata
