"""What ends a command early, and the one line that says why."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from forestprune.blocks.blocks import ABOUT_BLOCK
from forestprune.exceptions import OptionError
from forestprune.options import TABLE

DEBUG = "FORESTPRUNE_DEBUG"
"""Environment variable that asks for tracebacks."""

FAILED, WRONG_CALL, INTERRUPTED = 1, 2, 130

_PACKAGE = str(Path(__file__).parent.parent)
_MEANT_FOR_USERS = (ValueError, TypeError, ImportError)

_SPELLED = {
    "n_jobs": "--jobs",
    "random_state": "--seed",
    "sample_weight": "--weight",
    "held_out": "--holdout",
    "ignored": "--ignore",
    "decimal": "--decimal",
    "name": "--name",
    "dtype": "--dtype",
    "leaves": "--leaves",
}
"""Options of the package that have another name here, or belong to no table."""

_SWITCHES = {"True": "on", "False": "off"}


class CommandError(Exception):
    """The work cannot be done; the message says why."""

    code = FAILED


class WrongCallError(CommandError):
    """The command line asks for what does not go together."""

    code = WRONG_CALL


def spelled(name: str) -> str:
    """Return the flag of an option."""
    return _SPELLED.get(name, "--" + name.replace("_", "-"))


def flag(name: str, value: str | None = None) -> str:
    """Return an option that an error names as it is given here.

    >>> flag("rule", "'subtree'"), flag("refit", "False"), flag("local_search", "False")
    ('--rule subtree', '--no-refit', '--local-search off')
    """
    if name not in TABLE and name not in _SPELLED:
        return name if value is None else f"{name}={value}"
    if value is None:
        return spelled(name)
    if value.startswith("["):
        return " ".join(f"{spelled(name)} {each}" for each in value.strip("[]").split(", "))
    if name == "local_search":
        value = _SWITCHES.get(value, value)
    elif value in _SWITCHES:
        return spelled(name) if value == "True" else f"--no-{spelled(name)[2:]}"
    return f"{spelled(name)} {value.strip(chr(39))}"


def say(line: str) -> None:
    """Print a line where errors and notes go."""
    # Names of files can have anything in them.
    seen = "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)
    typer.echo(f"forestprune: {seen}", err=True)


def debugging() -> bool:
    """Tell whether the user wants to see where errors come from."""
    return os.environ.get(DEBUG, "") not in ("", "0")


def first_line(text: str) -> str:
    """Return the first line of a text that is not empty."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def shortly(error: BaseException) -> str:
    """Return the type of an error, and the first line of what it says."""
    return ": ".join(filter(None, [type(error).__name__, first_line(str(error))]))


def describe(error: BaseException) -> str:
    """Return the one line that a user sees of an error.

    What this package raises itself, or the system says of a file, is written for users. Of anything
    else they get the type too, and are told how to see more.
    """
    text = error.rendered(flag) if isinstance(error, OptionError) else str(error)
    if isinstance(error, CommandError | OSError) or is_meant_for_users(error):
        where = [note for note in getattr(error, "__notes__", ()) if note.startswith(ABOUT_BLOCK)]
        return " ".join([first_line(text) or type(error).__name__, *where])
    return f"{type(error).__name__}: {first_line(text)} ({DEBUG}=1 shows where it comes from)"


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
    say(f"stopped; {were_written(written) or 'nothing was written'}.")
    return typer.Exit(INTERRUPTED)


def were_written(files: Sequence[Path]) -> str:
    """Return that some files were written, if any were."""
    verb = "were" if len(files) > 1 else "was"
    return f"{' and '.join(map(str, files))} {verb} written" if files else ""
