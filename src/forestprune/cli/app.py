"""The program: its commands, and what it does with calls that it cannot understand."""

import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from forestprune._version import __version__
from forestprune.cli.bench import bench
from forestprune.cli.demo import demo
from forestprune.cli.errors import INTERRUPTED, WRONG_CALL, say
from forestprune.cli.export import export
from forestprune.cli.inspect import inspect
from forestprune.cli.parameters import flat
from forestprune.cli.path import path
from forestprune.cli.polish import polish
from forestprune.cli.prune import prune
from forestprune.cli.report import report


class Program(TyperGroup):
    """The commands together. A wrong call gets one line, as any other error does."""

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run a command and end the process, if that is wanted."""
        try:
            code = super().main(*args, standalone_mode=False, **extra)  # type: ignore[misc]
        except typer.Abort:
            code = INTERRUPTED
        except Exception as error:
            # Usage errors have a base class that depends on the version of typer.
            if not hasattr(error, "format_message"):
                raise
            say(_usage(error))
            code = getattr(error, "exit_code", WRONG_CALL)
        if standalone_mode:
            sys.exit(code or 0)
        return code


def _usage(error: Any) -> str:
    message = " ".join(error.format_message().split())
    context = getattr(error, "ctx", None)
    if context is None:
        return message
    end = "" if message.endswith("?") else "."
    return f"{message.rstrip('.')}{end} See '{context.command_path} --help'."


app = typer.Typer(
    cls=Program,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog="Exit status: 0 if all went well, 1 if not, 2 if the call was wrong, 130 if "
    "interrupted. An error is one line on stderr; only results go to stdout.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"forestprune {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def program(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            metavar="",
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    """Make trained tree ensembles small: the same kind of model, a fraction of its size."""
    if context.invoked_subcommand is None and not version:
        typer.echo(context.get_help())


def _add(command: Callable[..., None], *examples: str) -> None:
    """Add a command, whose help ends in examples. Paragraphs stay apart, lines would be joined."""
    calls = (f"forestprune {command.__name__} {example}".strip() for example in examples)
    app.command(epilog="\n\n".join(["Examples:", *calls]))(flat(command))


_add(inspect, "model.json", "model.joblib --trust --json", "model.json --as text")
_add(
    prune,
    "model.json rows.csv --target price --max-nodes 500 --out small.json",
    "model.txt rows.parquet --target price --tolerance 0.01 --out small.txt",
    "forest.joblib rows.csv --target price --trust --max-trees 10 --max-nodes 100 --out "
    "small.joblib",
    "model.json rows.csv --target price --max-nodes 100 --out tiny.json --report tiny.html",
    "classifier.json rows.csv --target kind --scoring roc_auc --tolerance 0.01 --out labels.json",
    "poisson.cbm rows.csv --no-target --max-bytes 20000 --out small.cbm",
    "forest.joblib rows.csv --target price --trust --max-nodes 100 --polish split --out few.joblib",
)
_add(
    polish,
    "small.json rows.csv --target price --out polished.json",
    "small.json rows.csv --target price --holdout 0 --out better.json --report better.html",
)
_add(
    export,
    "small.json --to c --out small.h",
    "small.json --to c --name price --dtype float32 --leaves int8 --out price.h",
    "small.json --to onnx --out small.onnx",
)
_add(
    path,
    "model.json rows.csv --target price",
    "model.json rows.csv --target price --csv path.csv --save path.npz",
)
_add(
    report,
    "model.json rows.csv --target price --max-nodes 500 --out report.html",
    "model.txt rows.parquet --target price --one-standard-error --out small.html",
)
_add(demo, "", "--trees 20")
_add(bench, "", "--rows 20000 --trees 500")
