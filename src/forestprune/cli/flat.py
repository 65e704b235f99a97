"""Options that several commands have, declared once: dataclasses whose fields typer sees."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints


def flat(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that takes, in place of each parameter that is a dataclass, its fields.

    A field's annotation is what typer knows an option by, and its default is the option's.
    """
    parameters: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    for name, kind in get_type_hints(command, include_extras=True).items():
        if name == "return":
            continue
        if is_dataclass(kind):
            groups[name] = kind
            hints = get_type_hints(kind, include_extras=True)
            for field in fields(kind):
                default = inspect.Parameter.empty if field.default is MISSING else field.default
                parameters.append(_parameter(field.name, hints[field.name], default))
        else:
            default = inspect.signature(command).parameters[name].default
            parameters.append(_parameter(name, kind, default))

    @functools.wraps(command)
    def call(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        command(**given)

    del call.__wrapped__  # whose parameters are not those of this one
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, annotation=annotation, default=default)
