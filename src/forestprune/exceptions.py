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


_OPTION = re.compile(r"\{\{|\}\}|\{(\w+)(?:=([^{}]*))?\}")


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
    """Options are wrong, or do not go together.

    In the message ``{max_nodes}`` stands for an option and ``{rule='subtree'}`` for one with a
    value; :func:`named` writes the latter. Who has other names for options, as the command line has
    flags, renders the message with these. Other text that may have braces in it, such as names of
    files, goes through :func:`escaped`.

    >>> error = OptionError("{refit=True} needs {rule='subtree'}.")
    >>> str(error)
    "refit=True needs rule='subtree'."
    >>> error.rendered(lambda name, value: f"--{name}" if value is None else f"--{name} {value}")
    "--refit True needs --rule 'subtree'."
    >>> error.options
    ('refit', 'rule')
    """

    @property
    def options(self) -> tuple[str, ...]:
        """The names of the options that the error is about."""
        found = (match[1] for match in _OPTION.finditer(self.args[0]))
        return tuple(dict.fromkeys(name for name in found if name))

    def rendered(self, option: Callable[[str, str | None], str]) -> str:
        """Return the message with ``option(name, value)`` in place of each option."""
        return _rendered(self.args[0], option)

    def __str__(self) -> str:
        return self.rendered(_as_keyword)


class OptionText(str):
    """A text about options, which warnings hold: as in Python, but it can be rendered otherwise.

    >>> text = OptionText("raise {max_iter}")
    >>> text
    'raise max_iter'
    >>> text.rendered(lambda name, value: f"--{name}")
    'raise --max_iter'
    """

    template: str

    def __new__(cls, template: str) -> "OptionText":  # noqa: D102
        text = super().__new__(cls, _rendered(template, _as_keyword))
        text.template = template
        return text

    def rendered(self, option: Callable[[str, str | None], str]) -> str:
        """Return the text with ``option(name, value)`` in place of each option."""
        return _rendered(self.template, option)


def named(name: str, value: Any) -> str:
    """Return an option with its value, as messages of :class:`OptionError` hold it."""
    return f"{{{name}={str(value).replace('{', '(').replace('}', ')')}}}"


def escaped(text: str) -> str:
    """Return a text that names no option, as messages of :class:`OptionError` hold it.

    >>> str(OptionError(f"{{rule}} must be a rule, got {escaped('{rule}')}."))
    'rule must be a rule, got {rule}.'
    """
    return text.replace("{", "{{").replace("}", "}}")


def _rendered(template: str, option: Callable[[str, str | None], str]) -> str:
    # What matches without a name is a brace, written twice.
    return _OPTION.sub(
        lambda found: option(found[1], found[2]) if found[1] else found[0][0], template
    )


def _as_keyword(name: str, value: str | None) -> str:
    return name if value is None else f"{name}={value}"


class TableError(OptionError):
    """A file cannot be read as a table, or does not have what a model needs.

    Parameters
    ----------
    message : str
        What is wrong, as it is to be read.
    hint : str
        What to do about it; it may name options as messages of :class:`OptionError` do.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{escaped(message)} {hint}".rstrip())

    def __reduce__(self) -> tuple[Any, ...]:
        return OptionError.__new__, (type(self), *self.args)  # not escaped a second time


class OutOfReachError(OptionError):
    """No model of a path is as small, or as good, as was asked for."""


def warn_caller(message: str, category: type[Warning]) -> None:
    """Issue a warning that points at the line outside this package that led here.

    The message may name options as those of :class:`OptionError` do.
    """
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("forestprune."):
        level, frame = level + 1, frame.f_back
    warnings.warn(OptionText(message), category, stacklevel=level)
