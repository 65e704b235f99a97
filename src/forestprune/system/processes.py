"""Processes: one that runs a single command, and copies of it in which files are tried first.

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

from forestprune.system import progress

ENDINGS = (".json", ".ubj", ".txt", ".cbm")
"""Of the files that are tried; pickles may do things that must not be done twice."""

PATIENCE, PATIENCE_A_MEGABYTE = 120.0, 20.0
"""Seconds, many times what reading takes: some damaged files are read for ever."""

MEMORY, MEMORY_A_BYTE = 4e9, 400.0
"""What reading may take: a wrong bit can ask for more than there is, at the cost of all others."""

TERMINATED = 128 + signal.SIGTERM

_LONGEST_LINE = 4000  # a pipe can hold that much before anybody reads it

alone = False
"""Whether this process runs one command and nothing else, so that a copy of it is safe."""


def own_process() -> None:
    """Make this process one that runs a single command.

    What is written goes somewhere, and nothing half-written stays when it is told to end.
    """
    global alone
    alone = True
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")
    for stream in (sys.stdout, sys.stderr):
        # Names may have letters that a terminal does not know.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    signal.signal(signal.SIGTERM, _end)


def _end(*_: Any) -> None:
    raise SystemExit(TERMINATED)


def fault_of(
    path: Path, read: Callable[[Path], Any], describe: Callable[[Exception], str]
) -> str | None:
    """Return why a file cannot be read, also if reading it ends the process or never ends.

    It is read in a copy of this process, which says what error it ended in as `describe` has it.
    """
    # Elsewhere a copy of a process cannot be made, or may not call what has been loaded.
    supported = alone and sys.platform == "linux"
    if not supported or path.suffix.lower() not in ENDINGS or not path.is_file():
        return None
    size = path.stat().st_size
    patience = PATIENCE + PATIENCE_A_MEGABYTE * size / 1e6
    reading, writing = os.pipe()
    copy = os.fork()
    if copy == 0:
        _read_and_end(path, read, describe, writing, MEMORY + MEMORY_A_BYTE * size, 2 * patience)
    os.close(writing)
    with progress.bar("checking the model", None), os.fdopen(reading, "rb") as said:
        status = _ended(copy, patience)
        words = said.read().decode() if status == 0 else ""
    if status is None:
        accident = f"has not come to an end after {patience:.0f} seconds"
    elif os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        accident = f"ended the process that tried to ({name})"
    else:
        return words or None
    return f"{path} is damaged: the library that reads it {accident}. Write the model again."


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
    path: Path,
    read: Callable[[Path], Any],
    describe: Callable[[Exception], str],
    told: int,
    memory: float,
    patience: float,
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
