"""Libraries that only some ways of deploying need: an error says how to install them."""

import importlib
from typing import Any


def require(module: str, what: str) -> Any:
    """Return a module of an optional library; `what` is not done without it."""
    library = module.partition(".")[0]
    try:
        importlib.import_module(library)
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
        raise ModuleNotFoundError(
            f"{what} needs {library}, which is not installed: pip install forestprune[{library}]",
            name=library,
        ) from error
    return importlib.import_module(module)
