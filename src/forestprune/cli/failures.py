"""What ends a command early, and the one line that says why."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from forestprune.cli.wording import as_flags

DEBUG = "FORESTPRUNE_DEBUG"
"""Environment variable that asks for tracebacks."""

FAILED, WRONG_CALL, INTERRUPTED = 1, 2, 130

_PACKAGE = str(Path(__file__).parent.parent)
_MEANT_FOR_USERS = (ValueError, TypeError, ImportError)


class CommandError(Exception):
    """The work cannot be done; the message says why."""

    code = FAILED


class WrongCallError(CommandError):
    """The command line asks for what does not go together."""

    code = WRONG_CALL


def say(line: str) -> None:
    """Print a line where errors and notes go."""
    # Names of files can have anything in them.
    seen = "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)
    typer.echo(f"forestprune: {seen}", err=True)


def debugging() -> bool:
    """Tell whether the user wants to see where errors come from."""
    return os.environ.get(DEBUG, "") not in ("", "0")


def describe(error: BaseException) -> str:
    """Return the one line that a user sees of an error.

    What this package raises itself, or the system says of a file, is written for users. Of anything
    else they get the type too, and are told how to see more.
    """
    lines = [line.strip() for line in str(error).splitlines()]
    text = next((line for line in lines if line), "")
    if isinstance(error, CommandError | OSError):
        return text or type(error).__name__
    if is_meant_for_users(error):
        return as_flags(text) or type(error).__name__
    return f"{type(error).__name__}: {text} ({DEBUG}=1 shows where it comes from)"


def is_meant_for_users(error: BaseException) -> bool:
    """Tell whether a line of this package raised the error, of a kind that explains itself."""
    if not isinstance(error, _MEANT_FOR_USERS):
        return False
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_filename.startswith(_PACKAGE)


def exit_code(error: BaseException) -> int:
    """Return what the program ends with."""
    return error.code if isinstance(error, CommandError) else FAILED


def interrupted(written: Sequence[Path]) -> typer.Exit:
    """Say that the user has stopped the program, and what it wrote; return how it ends."""
    # The line of the terminal has ^C on it.
    if sys.stderr.isatty():
        typer.echo(err=True)
    files = " and ".join(map(str, written)) or "nothing"
    say(f"stopped; {files} {'were' if len(written) > 1 else 'was'} written.")
    return typer.Exit(INTERRUPTED)
