"""Pages of the documentation as programs: what they show is run, in order, one page at a time.

- ```` ```python ```` blocks of a page share one namespace and one empty folder.
- ```` ```sh ```` blocks are commands, one a line; ```` ```console ```` blocks have commands behind
  `$ ` and, below, what they print. `forestprune` is run, and must succeed, and so is `python FILE`
  if its output is shown; else it is checked that the file exists, and of `make` and `pip install`
  that the target and the extras do.
- ```` ```text ```` blocks are not run. Behind `<!-- output -->` one is what the Python block before
  it prints.
- `<!-- setup` and code up to `-->` is Python that is run but not shown.

What a page shows of output must be what comes out, but for white space. `...` stands for anything;
`<!-- output, numbers within 5 % -->`, also before a console block, says how exact numbers are.
Before a ```` ```sh ```` block `<!-- not run: REASON -->` is for what takes long: only names of
commands and options are checked.
"""

import contextlib
import io
import re
import shlex
import subprocess
import sys
import tomllib
import traceback
from dataclasses import dataclass
from pathlib import Path

from typer.main import get_command
from typer.testing import CliRunner

from forestprune.cli.app import app

ROOT = Path(__file__).parent.parent
LANGUAGES = ("python", "sh", "console", "text")
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "optional-dependencies"
]
TARGETS = re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
COMMANDS = get_command(app).commands

_NUMBER = r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?"
_NOTE = re.compile(r"<!-- (?:output(?:, numbers within ([\d.]+) %)?|(not run): .+) -->")


class PageError(Exception):
    """A page shows what is not so."""


@dataclass(frozen=True)
class Block:
    """A fenced block, or a comment that is run.

    Attributes
    ----------
    language : str
    text : str
    line : int
        Of the page, counted from 1, on which `text` begins.
    checked : bool
        Whether `<!-- output -->` stands before it.
    runs : bool
        Whether `<!-- not run: ... -->` does not.
    tolerance : float
        By how much numbers of output may differ, as a share of themselves.
    """

    language: str
    text: str
    line: int
    checked: bool = False
    runs: bool = True
    tolerance: float = 0.0


def blocks_of(page):
    """Return the blocks of a page, in order."""
    return list(_blocks(page.read_text(encoding="utf-8").splitlines(), page))


def _blocks(lines, page):
    number, note = 0, None
    while number < len(lines):
        line, begun = lines[number], number
        number += 1
        if line.startswith("<!-- setup"):
            number = _find(lines, number, "-->", f"{page}:{begun + 1}")
            yield Block("python", "\n".join(lines[begun + 1 : number - 1]), begun + 2)
        elif match := _NOTE.fullmatch(line):
            note = match
            continue
        elif re.match("<!-- (output|not run)", line):
            raise PageError(f"{page}:{begun + 1}: {line!r} is not understood")
        elif fence := re.match(r"( *)```(.*)", line):
            indent, language = fence.groups()
            number = _find(lines, number, f"{indent}```", f"{page}:{begun + 1}")
            text = "\n".join(entry[len(indent) :] for entry in lines[begun + 1 : number - 1])
            if language not in LANGUAGES:
                raise PageError(f"{page}:{begun + 1}: {language!r} is none of {LANGUAGES}")
            share, resting = note.groups() if note else (None, None)
            if resting and language != "sh":
                raise PageError(f"{page}:{begun + 1}: only a block of sh can rest")
            yield Block(
                language,
                text,
                begun + 2,
                checked=note is not None,
                runs=resting is None,
                tolerance=float(share or 0) / 100,
            )
        if line.strip():
            if note is not None and not line.lstrip().startswith("```"):
                raise PageError(f"{page}:{begun + 1}: a block must follow {note[0]}")
            note = None


def _find(lines, number, end, where):
    for following in range(number, len(lines)):
        if lines[following] == end:
            return following + 1
    raise PageError(f"{where}: does not end")


def run_page(page):
    """Run all blocks of a page in the current folder; the first that fails is a PageError."""
    namespace, printed = {"__name__": "page"}, None
    for block in blocks_of(page):
        where = f"{page.name}:{block.line}"
        if block.language == "python":
            printed = _run_python(block, namespace, page, where)
        elif block.language == "text" and block.checked:
            if printed is None:
                raise PageError(f"{where}: no Python block before this one has printed it")
            _compare(block.text, printed, block.tolerance, where)
        elif block.language in ("sh", "console"):
            for command, shown in commands_of(block, where):
                if not block.runs:
                    check_call(command, where)
                    continue
                output = run_command(command, where, run_files=bool(shown))
                if shown:
                    _compare(shown, output, block.tolerance, where)


def _run_python(block, namespace, page, where):
    printed = io.StringIO()
    # So that errors have the line of the page.
    text = "\n" * (block.line - 1) + block.text
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(text, str(page), "exec"), namespace)
    except Exception as error:
        lines = [
            f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(page)
        ]
        line = lines[-1] if lines else getattr(error, "lineno", block.line)
        raise PageError(f"{page.name}:{line}: {type(error).__name__}: {error}") from error
    return printed.getvalue()


def commands_of(block, where):
    """Return the commands of a block, each with what is shown of its output."""
    text = block.text.replace("\\\n", " ")
    if block.language == "sh":
        return [(line, "") for line in text.splitlines() if shlex.split(line, comments=True)]
    first, *parts = re.split(r"^\$ ", text, flags=re.M)
    if first.strip() or not parts:
        raise PageError(f"{where}: a console block begins with '$ ' and a command")
    return [(line, shown) for line, _, shown in (part.partition("\n") for part in parts)]


def run_command(command, where, *, run_files=False):
    """Run a command of a page, or check that it could be run; return what it prints."""
    words = shlex.split(command, comments=True)
    match words:
        case ["forestprune", *args]:
            result = CliRunner().invoke(app, args, env={"COLUMNS": "80"})
            if result.exit_code != 0:
                raise PageError(
                    f"{where}: {command!r} ends with {result.exit_code}: {result.output}"
                )
            return result.output
        case ["make", *args]:
            _require([a for a in args if "=" not in a], TARGETS, f"{where}: targets of make")
        case ["pip", "install", *args]:
            _require(_extras(args, where), EXTRAS, f"{where}: extras")
        case ["python", file, *args] if (ROOT / file).is_file():
            if run_files:
                return _run_file(ROOT / file, args, where)
        case _:
            raise PageError(f"{where}: {command!r} is nothing that can be run or checked")
    return ""


def _run_file(file, args, where):
    call = [sys.executable, str(file), *args]
    result = subprocess.run(call, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise PageError(f"{where}: {file.name} ends with {result.returncode}: {result.stderr}")
    return result.stdout


def check_call(command, where):
    """Check that a call of `forestprune` names a command, and options that this has."""
    program, name, *words = shlex.split(command, comments=True)
    if program != "forestprune":
        raise PageError(f"{where}: {command!r} is nothing that can be checked without running")
    _require([name], COMMANDS, f"{where}: commands")
    options = [word.partition("=")[0] for word in words if word.startswith("-")]
    _require(options, options_of(name), f"{where}: options of {name}")


def options_of(name):
    """Return the options of a command."""
    params = COMMANDS[name].params
    return {"--help", *(o for p in params for o in (*p.opts, *p.secondary_opts))}


def _extras(packages, where):
    for package in packages:
        match = re.fullmatch(r"(?:forestprune|\.)(?:\[([\w,-]+)\])?", package)
        if match is None:
            raise PageError(f"{where}: {package!r} is not this package")
        yield from (match[1] or "").split(",") if match[1] else ()


def _require(names, known, what):
    unknown = [name for name in names if name not in known]
    if unknown:
        raise PageError(f"{what}: there is no {', '.join(unknown)}")


def _compare(shown, printed, tolerance, where):
    """Raise a PageError unless `printed` is what is `shown`, numbers within a tolerance."""
    parts = re.split(f"({_NUMBER})", " ".join(shown.split()))
    pattern = "".join(
        f"({_NUMBER})" if place % 2 else re.escape(part).replace(r"\.\.\.", ".*?")
        for place, part in enumerate(parts)
    )
    match = re.fullmatch(pattern, " ".join(printed.split()))
    if match is None or not all(map(_close, parts[1::2], match.groups(), [tolerance] * len(parts))):
        raise PageError(f"{where}: shown is\n{shown}\nbut what comes out is\n{printed}")


def _close(shown, printed, tolerance):
    if tolerance == 0.0:
        return shown == printed
    a, b = (float(text.replace(",", "")) for text in (shown, printed))
    return abs(a - b) <= tolerance * abs(a)
