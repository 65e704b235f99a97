"""Models in files: reading them, and making sure that the small one can be written."""

import importlib.util
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from forestprune.cli.errors import (
    CommandError,
    WrongCallError,
    debugging,
    describe,
    is_meant_for_users,
    shortly,
)
from forestprune.exceptions import UntrustedFileError
from forestprune.system import progress
from forestprune.system.processes import fault_of, silent_libraries

if TYPE_CHECKING:
    from forestprune.interop.source import Source
    from forestprune.select.pruned import PrunedForest


def read_source(path: Path, *, trust: bool) -> "Source":
    """Return the model in a file. A pickle is only loaded if the user trusts it."""
    read = partial(_read, trust=trust)
    # Tracebacks should begin where the fault is.
    fault = None if debugging() else fault_of(path, read, describe)
    if fault is not None:
        raise CommandError(fault)
    with silent_libraries(), progress.bar("reading the model", None):
        return read(path)


def _read(path: Path, *, trust: bool) -> "Source":
    """Return the model in a file; whatever reading it ends in, the error names the file."""
    from forestprune.interop.source import Source

    try:
        return Source.of(path, trust=trust)
    except UntrustedFileError as error:
        raise WrongCallError(f"{error.reason} If you know who wrote it, add --trust.") from error
    except Exception as error:
        # A damaged file may end in any error, and what it is about may not say where.
        if str(path) in str(error) and (is_meant_for_users(error) or isinstance(error, OSError)):
            raise
        damaged = f"it is damaged, or not a model ({shortly(error)})."
        words = describe(error) if is_meant_for_users(error) else damaged
        raise CommandError(f"{path} cannot be used: {words}") from error


def check_new_file(path: Path, *, force: bool) -> None:
    """Refuse a file that could not be written, before there is anything to write."""
    if path.is_dir():
        raise CommandError(f"{path} is a folder: give the name of a file.")
    if path.exists() and not force:
        raise CommandError(f"{path} exists already: add --force to overwrite it.")
    try:
        folder = path.resolve().parent
    except (OSError, RuntimeError) as error:
        raise CommandError(f"{path} cannot be written: it is a link to itself.") from error
    if not folder.is_dir():
        raise CommandError(f"{path} cannot be written: there is no folder {folder}.")
    _check_access(path, folder)


def check_not_read(path: Path, read: Iterable[Path | None]) -> None:
    """Refuse to write over a file that is read."""
    for other in read:
        if other is not None and other.exists() and path.exists() and path.samefile(other):
            raise WrongCallError(
                f"{path} would replace {other}, which is read: write to another file."
            )


def check_new_folder(path: Path) -> None:
    """Refuse a folder that could not be made or written into, before there is anything to write."""
    place = path.resolve()
    if place.exists() and not place.is_dir():
        raise CommandError(f"{path} is a file: give the name of a folder.")
    folder = next(parent for parent in (place, *place.parents) if parent.exists())
    if not folder.is_dir():
        raise CommandError(f"{path} cannot be written: {folder} is a file.")
    _check_access(path, folder)


def _check_access(path: Path, folder: Path) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise CommandError(f"{path} cannot be written: the folder {folder} is read-only for you.")
    try:  # some folders only say that they can be written to
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise CommandError(
            f"{path} cannot be written: the folder {folder} takes no files "
            f"({error.strerror or error})."
        ) from error


def check_ending(path: Path, source: "Source") -> None:
    """Refuse an ending that the small model cannot have."""
    from forestprune.interop.model_files import listed_endings

    origin, endings = source.forest.origin, source.endings
    kind = "a Forest without a library" if origin is None else f"a {origin.model_class}"
    if source.pipeline is not None:
        kind = "a Pipeline"
    if path.suffix not in endings:
        small = ", in small letters" if path.suffix.lower() in endings else ""
        raise WrongCallError(
            f"{path.name} does not name a format that {kind} can have: use a name that ends in "
            f"{listed_endings(endings)}{small}."
        )
    if path.suffix == ".skops" and importlib.util.find_spec("skops") is None:
        raise CommandError(f"{path.name} needs skops, which is not installed: pip install skops")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say which file could not be written, whatever that ended in."""
    try:
        yield
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror or error}.") from error
    except Exception as error:
        if isinstance(error, CommandError) or is_meant_for_users(error):
            raise
        raise CommandError(f"{path} cannot be written ({shortly(error)}).") from error


def write_small(small: "PrunedForest", path: Path, *, force: bool) -> None:
    """Write a pruned model in the format that the name of the file says."""
    from forestprune.forest import registry

    check_new_file(path, force=force)  # it may exist by now
    with writing(path), silent_libraries(), progress.bar("writing the model", None):
        registry.save_model(small.forest if path.suffix == ".npz" else small.to_native(), path)
