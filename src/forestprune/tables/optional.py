"""Packages that only tables need: an error says how to install them."""

import importlib
from typing import Any


def import_pandas() -> Any:
    """Return pandas."""
    return _imported("pandas")


def import_pyarrow() -> Any:
    """Return pyarrow."""
    return _imported("pyarrow")


def release_memory() -> None:
    """Give back what pyarrow keeps to read more, once nothing of what was read is left."""
    import_pyarrow().default_memory_pool().release_unused()


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"Reading tables needs {name}, which is not installed: pip install pandas pyarrow"
        ) from error
