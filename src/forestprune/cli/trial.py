"""Files that only a library can read: tried in a process of its own, which they may end.

One wrong bit in a file of XGBoost, LightGBM or CatBoost is enough for some of their readers to
write beyond an array, to take all memory or never to end, and no error can be caught then.
"""

import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from forestprune.cli.errors import CommandError, debugging, describe
from forestprune.system import progress

ENDINGS = (".json", ".ubj", ".txt", ".cbm")
"""Of the files that are tried; pickles may do things that must not be done twice."""

PATIENCE, PATIENCE_A_MEGABYTE = 120.0, 20.0
"""Seconds, many times what reading takes: some damaged files are read for ever."""

MEMORY, MEMORY_A_BYTE = 4e9, 400.0
"""What reading may take: a wrong bit can ask for more than there is, at the cost of all others."""

_LONGEST_LINE = 4000  # a pipe can hold that much before anybody reads it

alone = False
"""Whether this process runs one command and nothing else, so that a copy of it is safe."""


def try_to_read(path: Path, read: Callable[[Path], Any]) -> None:
    """Refuse a file that cannot be read, also if reading it ends the process or never ends."""
    # Elsewhere a copy of a process cannot be made, or may not call what has been loaded. And one
    # who looks for a fault wants to see it where it happens.
    supported = alone and sys.platform == "linux" and not debugging()
    if not supported or path.suffix.lower() not in ENDINGS or not path.is_file():
        return
    size = path.stat().st_size
    patience = PATIENCE + PATIENCE_A_MEGABYTE * size / 1e6
    reading, writing = os.pipe()
    copy = os.fork()
    if copy == 0:
        _read_and_end(path, read, writing, MEMORY + MEMORY_A_BYTE * size, 2 * patience)
    os.close(writing)
    with progress.bar("checking the model", None), os.fdopen(reading, "rb") as said:
        status = _ended(copy, patience)
        words = said.read().decode() if status == 0 else ""
    if status == 0 and words:
        raise CommandError(words)
    if status is None:
        words = f"has not come to an end after {patience:.0f} seconds"
    elif os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        words = f"ended the process that tried to ({name})"
    if words:
        raise CommandError(
            f"{path} is damaged: the library that reads it {words}. Write the model again."
        )


def _ended(copy: int, patience: float) -> int | None:
    """Return how a process has ended, or None if it had to be ended."""
    last = time.monotonic() + patience
    done, status = 0, 0
    try:
        while not done and time.monotonic() < last:
            done, status = os.waitpid(copy, os.WNOHANG)
            if not done:
                time.sleep(0.01)
    finally:
        if not done:
            os.kill(copy, signal.SIGKILL)
            os.waitpid(copy, 0)
    return status if done else None


def _read_and_end(
    path: Path, read: Callable[[Path], Any], told: int, memory: float, patience: float
) -> None:
    """Read a file, say what is wrong with it, and end this process."""
    try:
        import resource

        # What is written to, not addresses: threads reserve gigabytes of those on large machines.
        resource.setrlimit(resource.RLIMIT_DATA, (int(memory), int(memory)))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # Should nobody be left to end it.
        resource.setrlimit(resource.RLIMIT_CPU, (int(patience), int(patience)))
        with silent_libraries(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it is said when the file is read in earnest
            read(path)
    except Exception as error:
        os.write(told, describe(error).encode()[:_LONGEST_LINE])
    finally:
        os._exit(0)


@contextmanager
def silent_libraries() -> Iterator[None]:
    """Let nothing through that a library writes to stdout or stderr past Python."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    kept = {number: os.dup(number) for number in (1, 2)}
    nowhere = os.open(os.devnull, os.O_WRONLY)
    stderr = sys.stderr
    ours = _number_of(stderr) == 2
    try:
        for number in kept:
            os.dup2(nowhere, number)
        if ours:  # what Python says, such as how far it has come, goes on
            sys.stderr = os.fdopen(os.dup(kept[2]), "w", encoding=stderr.encoding)
        yield
    finally:
        if ours:
            sys.stderr.close()
            sys.stderr = stderr
        for number, copy in kept.items():
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)


def _number_of(stream: Any) -> int | None:
    try:
        number: int = stream.fileno()
    except (AttributeError, OSError, ValueError):
        return None
    return number
