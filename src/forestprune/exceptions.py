"""The few error types, each also the built-in type that fits, so that plain handlers work."""

import re
import sys
import warnings
from collections.abc import Callable
from typing import Any


class ForestPruneError(Exception):
    """Base of every error this package raises on its own behalf."""


class InvalidForestError(ForestPruneError, ValueError):
    """The arrays given do not describe a forest."""


class UnsupportedModelError(ForestPruneError, TypeError):
    """The model given is of a kind that cannot come in, or cannot go out."""


class UntrustedFileError(UnsupportedModelError):
    """Loading the model file could run code that is in it, and nobody has said to trust it."""

    def __init__(self, reason: str, loader: str) -> None:
        super().__init__(reason, loader)
        self.reason, self.loader = reason, loader

    def __str__(self) -> str:
        return (
            f"{self.reason} If you trust whoever wrote it, load it yourself with {self.loader} and "
            "pass the model, or read it with Forest.from_file(path, trust=True)."
        )


class OptionError(ForestPruneError, ValueError):
    """Options cannot be heeded as they are given.

    In the message ``{max_nodes}`` stands for an option and ``{rule='subtree'}`` for one with a
    value; :func:`named` writes the latter. Who has other names for options, as the command line has
    flags, renders the message with these.

    >>> error = OptionError("{refit=True} needs {rule='subtree'}.")
    >>> str(error)
    "refit=True needs rule='subtree'."
    >>> error.rendered(lambda name, value: f"--{name}" if value is None else f"--{name} {value}")
    "--refit True needs --rule 'subtree'."
    >>> error.options
    ('refit', 'rule')
    """

    _OPTION = re.compile(r"\{(\w+)(?:=([^{}]*))?\}")

    @property
    def options(self) -> tuple[str, ...]:
        """The names of the options that the error is about."""
        return tuple(dict.fromkeys(found[1] for found in self._OPTION.finditer(self.args[0])))

    def rendered(self, option: Callable[[str, str | None], str]) -> str:
        """Return the message with ``option(name, value)`` in place of each option."""
        return self._OPTION.sub(lambda found: option(found[1], found[2]), self.args[0])

    def __str__(self) -> str:
        return self.rendered(lambda name, value: name if value is None else f"{name}={value}")


def named(name: str, value: Any) -> str:
    """Return an option with its value, as messages of :class:`OptionError` hold it."""
    return f"{{{name}={str(value).replace('{', '(').replace('}', ')')}}}"


class OutOfReachError(OptionError):
    """No model of a path is as small, or as good, as was asked for."""


def warn_caller(message: str, category: type[Warning]) -> None:
    """Issue a warning that points at the line outside this package that led here."""
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("forestprune."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
