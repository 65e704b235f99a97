"""What the modules of all libraries need: parameters as plain data, and refusing models."""

from collections.abc import Callable, Collection, Iterable
from typing import Any

import numpy as np

from forestprune.exceptions import UnsupportedModelError
from forestprune.forest.forest import Forest
from forestprune.forest.origin import Origin


def refuse(name: str, param: Any) -> Any:
    """Say that a parameter cannot be kept."""
    raise UnsupportedModelError(
        f"The parameter {name} must be a plain value, got {type(param).__name__}, which could not "
        "be written back."
    )


def plain(name: str, param: Any, other: Callable[[str, Any], Any] = refuse) -> Any:
    """Return `param` as JSON can hold it; `other` says what becomes of what is not plain.

    A random generator becomes None: its state would only matter to another fit.
    """
    if isinstance(param, np.random.RandomState | np.random.Generator):
        return None
    if param is None or isinstance(param, bool | int | float | str):
        return param
    if hasattr(param, "tolist"):  # numpy's scalars and arrays, pandas' series and indices
        return plain(name, param.tolist(), other)
    if isinstance(param, list | tuple):
        return [plain(name, item, other) for item in param]
    if isinstance(param, set | frozenset):
        return [plain(name, item, other) for item in sorted(param)]
    if isinstance(param, dict) and all(isinstance(key, str) for key in param):
        return {key: plain(key, item, other) for key, item in param.items()}
    return other(name, param)


def check_writable(
    forest: Forest,
    origin: Origin,
    classes: Collection[str],
    library: str,
    *,
    by_class: bool = False,
) -> None:
    """Refuse a class that cannot be written, or a forest whose trees add to one output each.

    The latter unless they may, as in boosting `by_class`.
    """
    if origin.model_class not in classes:
        raise UnsupportedModelError(
            f"One of {', '.join(classes)} can be written, not {origin.model_class!r}."
        )
    if not by_class:
        forest.require_joint_outputs(f"Writing a model of {library}")


def refusal(cls: type, classes: Iterable[type], reason: str = "") -> str:
    """Return why a model of class `cls`, which is not one of `classes`, is not read."""
    classes = list(classes)
    parents = [base.__name__ for base in cls.__mro__[1:] if base in classes]
    if parents and not reason:
        reason = (
            f"It is a subclass of {parents[0]}; a subclass may predict differently, so only the "
            "class itself is read."
        )
    *others, last = [known.__name__ for known in classes]
    names = f"{', '.join(others)} or {last}" if others else last
    return f"A fitted {names} is required, got {cls.__name__}. {reason}".rstrip()
