"""Files that only a library can read: tried in a process of its own, which they may end.

One wrong bit in a file of XGBoost, LightGBM or CatBoost is enough for some of their readers to
write beyond an array, and no error can be caught then.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from forestprune.cli.failures import CommandError

ENDINGS = (".json", ".ubj", ".txt", ".cbm")
"""Of the files that are tried; pickles may do things that must not be done twice."""

SECONDS, SECONDS_A_BYTE = 60.0, 1e-6
"""How long reading may take; a library has to be imported first."""

MEMORY, MEMORY_A_BYTE = 4 * 2**30, 200
"""Bytes that a process may hold which reads a file, and how many more a byte of the file."""

NO_MEMORY = 3

alone = False
"""Whether this process runs one command and nothing else, so that a copy of it is safe."""


def try_to_read(path: Path, read: Callable[[Path], Any]) -> None:
    """Refuse a file that ends the process that reads it."""
    # Elsewhere a copy of a process cannot be made, or may not call what has been loaded.
    if not alone or sys.platform != "linux" or path.suffix.lower() not in ENDINGS:
        return
    size = path.stat().st_size
    copy = os.fork()
    if copy == 0:
        _read_and_end(path, read, MEMORY + MEMORY_A_BYTE * size)
    status = _wait(copy, SECONDS + SECONDS_A_BYTE * size)
    if status is None:
        why = "reading it does not come to an end"
    elif os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        why = f"the library that reads it ended the process that tried to ({name})"
    elif os.WEXITSTATUS(status) == NO_MEMORY:
        why = "it asks for far more memory than a model of its size takes"
    else:
        return
    raise CommandError(f"{path} is damaged: {why}. Write the model again.")


def _wait(copy: int, seconds: float) -> int | None:
    """Return how a process ended; None if it had to be ended because it took too long."""
    until = time.monotonic() + seconds
    pause = 0.001
    while True:
        done, status = os.waitpid(copy, os.WNOHANG)
        if done:
            return status
        if time.monotonic() > until:
            os.kill(copy, signal.SIGKILL)
            os.waitpid(copy, 0)
            return None
        time.sleep(pause)
        pause = min(2 * pause, 0.05)


def _read_and_end(path: Path, read: Callable[[Path], Any], memory: int) -> None:
    """Read a file, whatever comes of it: what else is wrong with it is said later."""
    code = 0
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        limit = memory if most == resource.RLIM_INFINITY else min(memory, most)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, most))
        with silent_libraries():
            read(path)
    except BaseException as error:
        if isinstance(error, MemoryError) or "bad_alloc" in str(error):
            code = NO_MEMORY
    finally:
        os._exit(code)


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
