"""Files that nobody ever sees half of, and archives that run no code when they are read."""

import json
import os
import uuid
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from forestprune.exceptions import InvalidForestError

_FORMAT = 1


@contextmanager
def write_atomically(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file beside `path`; it takes the name `path` only if the block succeeds."""
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target} cannot be written: there is no folder {target.parent}.")
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
    try:
        with temporary.open("xb") as file:
            yield file
        if target.exists():
            temporary.chmod(target.stat().st_mode & 0o777)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_archive(
    path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]
) -> None:
    """Write arrays of numbers, and what JSON can hold, into one npz file."""
    text = json.dumps({"format": _FORMAT, **metadata})
    contents: dict[str, Any] = {"metadata": np.frombuffer(text.encode(), np.uint8), **arrays}
    with write_atomically(path) as file:
        np.savez(file, **contents)


def read_archive(path: str | os.PathLike[str]) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return what `write_archive` wrote, the arrays read-only."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        metadata = json.loads(arrays.pop("metadata").tobytes())
        version = metadata.pop("format")
    except (zipfile.BadZipFile, EOFError, KeyError, ValueError, AttributeError) as error:
        raise InvalidForestError(
            f"{os.fspath(path)} is not a file written by forestprune ({error})."
        ) from error
    if version != _FORMAT:
        raise InvalidForestError(
            f"{os.fspath(path)} has file format {version}, this version reads {_FORMAT}. "
            "Read it with the version of forestprune that wrote it."
        )
    for array in arrays.values():
        array.flags.writeable = False
    return arrays, metadata
