"""The few error types. Each is also the built-in type that fits, so that plain handlers work."""


class ForestPruneError(Exception):
    """Base of every error this package raises on its own behalf."""


class InvalidForestError(ForestPruneError, ValueError):
    """The arrays given do not describe a forest."""


class UnsupportedModelError(ForestPruneError, TypeError):
    """The model given is of a kind that cannot come in, or cannot go out."""
