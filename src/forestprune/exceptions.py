"""The few error types, each also the built-in type that fits, so that plain handlers work."""

import sys
import warnings


class ForestPruneError(Exception):
    """Base of every error this package raises on its own behalf."""


class InvalidForestError(ForestPruneError, ValueError):
    """The arrays given do not describe a forest."""


class UnsupportedModelError(ForestPruneError, TypeError):
    """The model given is of a kind that cannot come in, or cannot go out."""


class OutOfReachError(ForestPruneError, ValueError):
    """No model of a path is as small, or as good, as was asked for."""


def warn_caller(message: str, category: type[Warning]) -> None:
    """Issue a warning that points at the line outside this package that led here."""
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("forestprune."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
