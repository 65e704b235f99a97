"""Write the commands and their options into docs/command-line.md, as the program has them.

Run it when a command has changed: `python tools/command_line_page.py`. With `--check` nothing is
written, and the exit status is 1 if the page is not up to date.
"""

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import NoneType
from typing import Any, Literal, cast, get_args, get_origin, get_type_hints

from typer.main import get_command
from typer.models import ArgumentInfo, OptionInfo

from forestprune.cli.app import app
from forestprune.cli.parameters import DATA, OUTPUT
from forestprune.options import HOW, PAPER, SIZE

PAGE = Path(__file__).parent.parent / "docs" / "command-line.md"
BEGIN = "<!-- written by tools/command_line_page.py from here -->"
END = "<!-- to here -->"
SLOW = ("bench", "demo")
"""Commands whose examples take long: tests of the page only check that they can be called so."""

NAMES = {int: "INTEGER", float: "NUMBER", str: "TEXT", Path: "FILE"}


def commands() -> Iterator[str]:
    """Return a section for each command."""
    for command in app.registered_commands:
        callback = command.callback
        if callback is None:
            continue
        name = command.name or callback.__name__
        yield f"## forestprune {name}"
        yield inspect.cleandoc(callback.__doc__ or "")
        yield from examples(name, command.epilog or "")
        yield from options(callback, written(name))


def examples(name: str, epilog: str) -> Iterator[str]:
    """Return the calls that the help ends with."""
    calls = [line for line in epilog.splitlines() if line.startswith("forestprune ")]
    if calls:
        if name in SLOW:
            yield "<!-- not run: takes long -->"
        yield "\n".join(["```sh", *calls, "```"])


def written(name: str) -> dict[str, list[str]]:
    """Return how the options of a command are written, by the names of its parameters."""
    parameters = cast(Any, get_command(app)).commands[name].params
    return {each.name: [*each.opts, *each.secondary_opts] for each in parameters}


def options(callback: Any, spelling: dict[str, list[str]]) -> Iterator[str]:
    """Return a table for each group of options, in their order."""
    hints = get_type_hints(callback, include_extras=True)
    groups: dict[str, list[str]] = {
        heading: [] for heading in ("Arguments", SIZE, DATA, HOW, PAPER, OUTPUT)
    }
    for parameter in inspect.signature(callback).parameters.values():
        kind, info = get_args(hints[parameter.name])
        if isinstance(info, ArgumentInfo):
            line = f"| `{info.metavar}` | {as_code(info.help or '')} |"
            groups.setdefault("Arguments", []).append(line)
        elif isinstance(info, OptionInfo):
            panel = info.rich_help_panel
            heading = panel if isinstance(panel, str) else "Options"
            groups.setdefault(heading, []).append(
                option(parameter, kind, info, spelling[parameter.name])
            )
    for heading, lines in groups.items():
        if lines:
            yield "\n".join([f"| {heading} | |", "|---|---|", *lines])


def option(parameter: inspect.Parameter, kind: Any, info: OptionInfo, names: list[str]) -> str:
    """Return the line of a table for one option."""
    shown_names = ", ".join(f"`{name}`" for name in names)
    options = [kind] if get_origin(kind) is Literal else get_args(kind) or [kind]
    first = next(entry for entry in options if entry is not NoneType)
    is_choice = get_origin(first) is Literal
    inner = first if is_choice else (get_args(first) or [first])[0]
    notes = []
    if parameter.default is parameter.empty:
        notes.append("Required.")
    elif parameter.default is not None and inner is not bool:
        notes.append(f"Default: `{parameter.default}`.")
    limits = limits_of(info)
    if limits:
        notes.append(f"{limits}.")
    if inner is not bool:
        choices = [f"`{choice}`" for choice in get_args(inner)] if is_choice else []
        shown_names += " " + (" or ".join(choices) or f"`{info.metavar or NAMES[inner]}`")
    return f"| {shown_names} | {' '.join([as_code(info.help or ''), *notes])} |"


def as_code(text: str) -> str:
    """Return a text in which options are marked as code."""
    return re.sub(r"--[a-z][\w-]*", r"`\g<0>`", text)


def limits_of(info: OptionInfo) -> str:
    """Return which numbers are allowed."""
    if info.min is not None and info.max is not None:
        return f"From {info.min:,g} to {info.max:,}"
    return "" if info.min is None or info.min == 0 else f"At least {info.min:,g}"


def updated(text: str) -> str:
    """Return the page with its commands as they are now."""
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise SystemExit(f"{PAGE.name} must have the lines {BEGIN!r} and {END!r}.")
    return "\n\n".join([before + BEGIN, *commands(), END + after])


def main() -> None:
    """Write the page, or check it."""
    text = PAGE.read_text(encoding="utf-8")
    wanted = updated(text)
    if "--check" in sys.argv[1:]:
        sys.exit(f"{PAGE.name} is not up to date: run {sys.argv[0]}" if wanted != text else 0)
    PAGE.write_text(wanted, encoding="utf-8")


if __name__ == "__main__":
    main()
