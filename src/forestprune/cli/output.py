"""What a command prints: results to stdout, for people or machines, all else to stderr."""

import io
import json
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import Any

import typer

from forestprune.cli.errors import (
    FAILED,
    WrongCallError,
    debugging,
    describe,
    exit_code,
    first_line,
    flag,
    interrupted,
    say,
    were_written,
)
from forestprune.exceptions import OptionText
from forestprune.system import progress


class Output:
    """Where a command prints what it has to say.

    Parameters
    ----------
    as_json : bool
        Print results as one JSON object.
    quiet : bool
        Print nothing but errors.
    """

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self.written: list[Path] = []
        self.warnings: list[str] = []
        self._said: set[str] = set()

    @contextmanager
    def working(self, *, prints: bool = False) -> Iterator[None]:
        """Turn errors into one line and an exit code, and warnings into notes.

        Libraries like to print: what they say to stdout would end up among the results. So nothing
        goes there meanwhile, unless the work `prints` its results itself.
        """
        try:
            with (
                nullcontext() if prints else redirect_stdout(io.StringIO()),
                warnings.catch_warnings(),
                progress.hidden() if self.quiet else nullcontext(),
            ):
                warnings.simplefilter("ignore")
                warnings.simplefilter("always", UserWarning)
                warnings.showwarning = self._show_warning
                if self.as_json and self.quiet:
                    raise WrongCallError("--json and --quiet exclude each other: give one.")
                yield
        except (typer.Exit, BrokenPipeError):
            raise
        except KeyboardInterrupt as error:
            raise interrupted(self.written) from error
        except Exception as error:
            if debugging():
                raise
            say(f"{describe(error)}{self._kept()}")
            raise typer.Exit(exit_code(error)) from error

    def _kept(self) -> str:
        return f" But {were_written(self.written)}." if self.written else ""

    def note(self, *texts: str | None) -> None:
        """Print a note, once, if there is one."""
        for text in texts:
            if text and not self.quiet and text not in self._said:
                self._said.add(text)
                say(text)

    def warn(self, *texts: str | None) -> None:
        """Print a note that a report should have too."""
        self.note(*texts)
        self.warnings += [text for text in texts if text and text not in self.warnings]

    def result(self, document: dict[str, Any], *shown: Any) -> None:
        """Print what came out: `document` for machines, what is `shown` for people."""
        try:
            self._print(document, shown)
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            say(f"the result could not be printed: {error.strerror}.{self._kept()}")
            sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - else it is tried again
            raise typer.Exit(FAILED) from error

    def _print(self, document: dict[str, Any], shown: Sequence[Any]) -> None:
        if self.as_json:
            from forestprune.system.files import finite

            typer.echo(json.dumps(finite(document), allow_nan=False))
        elif not self.quiet:
            from rich.console import Console

            # Names of files and features may look like markup.
            console = Console(markup=False, emoji=False, highlight=False)
            for part in shown:
                console.print(part, soft_wrap=isinstance(part, str))

    def _show_warning(self, message: Warning | str, *_: Any, **__: Any) -> None:
        self.warn(describe_warning(message))


def describe_warning(message: Warning | str) -> str:
    """Return the first line of a warning, with options as they are given here."""
    text = message.args[0] if isinstance(message, Warning) and message.args else None
    words = text.rendered(flag) if isinstance(text, OptionText) else str(message)
    return first_line(words) or "a warning without words"
