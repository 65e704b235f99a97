"""A command written down again, so that somebody else can run it."""

import shlex
from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from typing import Any

from forestprune.cli.groups import Files


def written_down(command: str, files: Files, out: str, *groups: Any) -> str:
    """Return how to call a command with the options of some groups that are not the default.

    Files have their names only: where they are is nobody else's concern.
    """
    words = ["forestprune", command, files.model.name, files.data.name, "--out", out]
    for group in (files, *groups):
        for field in fields(group):
            value = getattr(group, field.name)
            if field.name not in ("model", "data") and value != field.default:
                words += _option(field.name.replace("_", "-"), value)
    return shlex.join(words)


def _option(name: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    if isinstance(value, list | tuple):
        return [word for each in value for word in _option(name, each)]
    if isinstance(value, Path):
        return [f"--{name}", value.name]
    if isinstance(value, float):
        return [f"--{name}", f"{value:g}" if float(f"{value:g}") == value else repr(value)]
    return [f"--{name}", str(value) if isinstance(value, StrEnum) else f"{value}"]
