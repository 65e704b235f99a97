"""The arguments and options of commands: dataclasses, each a group that several commands share.

Those that say how to prune, and how small, come from the table of options.
"""

import functools
import inspect
import math
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast, get_args, get_type_hints

import typer

from forestprune.cli.errors import WrongCallError, flag, spelled
from forestprune.cli.output import Output
from forestprune.exceptions import OptionError, OptionText
from forestprune.options import (
    TABLE,
    Deployed,
    Joint,
    LocalSearch,
    NamedWeighting,
    Options,
    Polish,
    Rule,
    SolverName,
    about,
    default,
)

if TYPE_CHECKING:
    from typer.models import OptionInfo

DATA, OUTPUT = "Model and rows", "Output"
"""Headings of the help; options of the table have those of their groups."""

HOLDOUT = 0.25
"""Share of the rows to choose by, unless the user says something else."""

Switch = Literal["on", "off"]
Local = Literal[Switch, LocalSearch]


def option(name: str, *flags: str, text: str = "", unset: str = "") -> "OptionInfo":
    """Return how typer knows an option of the table: its flag, its limits, its help.

    Where an option means less than the table says, `text` and `unset` stand in place of that.
    """
    known, value = about(name), default(name)
    shown = f"{value:g}" if isinstance(value, float) else f"{value}"
    unset = unset or known.unset or {None: "", False: "", True: "on"}.get(value, shown)
    words = OptionText(text or known.help).rendered(flag).rstrip(".")
    kind = get_args(TABLE[name].type)[0]
    # A letter stands for a number; choices are listed, and switches take nothing.
    kinds = {kind, *get_args(kind)}
    metavar = "X" if float in kinds else "N" if int in kinds else None
    return taking(
        "" if kind in (bool, bool | None) else metavar,
        f"{words} (default: {unset})." if unset else f"{words}.",
        *(flags or [spelled(name)]),
        panel=known.group,
        min=known.least,
        show_default=False,
    )


def taking(metavar: str | None, text: str, *flags: str, panel: str, **limits: Any) -> "OptionInfo":
    """Return how typer knows another option; one that takes nothing has an empty `metavar`."""
    info = typer.Option(*flags, metavar=metavar, help=text, rich_help_panel=panel, **limits)
    return cast("OptionInfo", info)


_data = functools.partial(taking, panel=DATA)
_switch = functools.partial(taking, "")

ModelFile = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="Model file: .json, .ubj, .txt, .cbm, .skops, .npz; .joblib and .pkl with --trust.",
    ),
]
DataFile = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="Rows to prune with: .csv, .csv.gz, .parquet, .arrow or .feather; also a folder of "
        "such files, or a pattern in quotes.",
    ),
]
Trust = Annotated[
    bool,
    _data("", "Load a pickle, which can run any code: only if you trust its author.", "--trust"),
]
Json = Annotated[bool, _switch("Print one JSON object to stdout.", "--json", panel=OUTPUT)]
Quiet = Annotated[bool, _switch("Print nothing but errors.", "--quiet", "-q", panel=OUTPUT)]
Force = Annotated[bool, _switch("Overwrite files that exist.", "--force", panel=OUTPUT)]


@dataclass(frozen=True)
class Files:
    """What is read."""

    model: ModelFile
    data: DataFile
    trust: Trust = False


@dataclass(frozen=True)
class Division:
    """Where the rows to choose by come from: a share of all, or a file of their own."""

    share: float
    seed: int
    file: Path | None

    def __bool__(self) -> bool:
        return self.share > 0.0 or self.file is not None

    def __str__(self) -> str:
        if self.file is not None:
            return f"the rows of {self.file.name}"
        return f"{self.share:g} of the rows, held out by chance (seed {self.seed})"


@dataclass(frozen=True)
class Data:
    """Which columns and rows of the data are for what."""

    target: Annotated[
        list[str] | None,
        _data(
            "COLUMN",
            "Column to predict: numbers, or labels as the model has them; once for each output. "
            "Not for models whose loss is not known here, such as rankers.",
        ),
    ] = None
    no_target: Annotated[
        bool,
        _data(
            "",
            "Prune towards the model's own predictions, for rows whose target is not known.",
            "--no-target",
        ),
    ] = False
    holdout: Annotated[
        float | None,
        _data(
            "X",
            f"Share of the rows to choose by rather than to prune with (default: {HOLDOUT}, or 0 "
            "if --alpha is given).",
            min=0.0,
            max=0.99,
        ),
    ] = None
    validation: Annotated[
        Path | None,
        _data("FILE", "Rows to choose by, best such as the model was not trained on."),
    ] = None
    weight: Annotated[
        str | None,
        _data("COLUMN", "Column with weights of rows; 2 counts as a row that is there twice."),
    ] = None
    ignore: Annotated[
        list[str] | None,
        _data(
            "COLUMN",
            "Column that is not a feature, for models that do not know the names of theirs; can "
            "be repeated.",
        ),
    ] = None
    decimal: Annotated[
        Literal[".", ","],
        typer.Option(help="Decimal mark of CSV files.", rich_help_panel=DATA),
    ] = "."
    seed: Annotated[
        int | None,
        _data(
            "N",
            "Decides which rows are held out, and what a random search tries (default: 0).",
            min=0,
            max=2**32 - 1,
        ),
    ] = None

    batch_rows: Annotated[
        int | None,
        _data(
            "N",
            "Read so many rows at once and keep none, for more than fit into memory. Folders and "
            "patterns are read so anyhow, by up to 131,072.",
            min=1,
        ),
    ] = None
    dask: Annotated[
        str | None,
        _data(
            "ADDRESS",
            "Let the workers of a Dask scheduler, such as tcp://host:8786, read the rows and go "
            "through them. They must see the files.",
        ),
    ] = None

    def division(self, share: float = HOLDOUT) -> Division:
        """Return where the rows to choose by come from."""
        if self.target and self.no_target:
            raise WrongCallError("--target and --no-target exclude each other: give one.")
        if self.holdout and self.validation is not None:
            raise WrongCallError("--holdout and --validation exclude each other: give one.")
        share = share if self.holdout is None else self.holdout
        return Division(0.0 if self.validation else share, self.seed or 0, self.validation)


@dataclass(frozen=True)
class Size:
    """How small the model is to be."""

    max_nodes: Annotated[int | None, option("max_nodes")] = None
    max_trees: Annotated[int | None, option("max_trees")] = None
    max_bytes: Annotated[int | None, option("max_bytes")] = None
    format: Annotated[
        Deployed | None,
        option(
            "format",
            text="What {max_bytes} counts, if not the file: the model as ONNX, or as C on a "
            "microcontroller, in single precision, or with leaves of 16 or 8 bits besides",
            unset="the file",
        ),
    ] = None
    max_depth: Annotated[int | None, option("max_depth")] = None
    alpha: Annotated[float | None, option("alpha")] = None
    tolerance: Annotated[float | None, option("tolerance")] = None
    confidence: Annotated[float | None, option("confidence")] = None
    one_standard_error: Annotated[bool, option("one_standard_error")] = False

    @property
    def share(self) -> float:
        """Share of the rows that is held out unless the user says something else."""
        return HOLDOUT if self.alpha is None else 0.0

    def asked(self) -> dict[str, Any]:
        """Return what was asked for, by name."""
        return {
            name: value
            for name, value in vars(self).items()
            if value is not None and value is not False
        }

    def check(self, division: Division, options: Options) -> None:
        """Refuse what cannot be asked for at once."""
        asked = self.asked()
        for name in ("alpha", "tolerance"):
            if not math.isfinite(asked.get(name, 0.0)):
                raise WrongCallError(f"{spelled(name)} must be finite, got {asked[name]}.")
        if self.format is not None and self.max_bytes is None:
            raise WrongCallError("--format says what --max-bytes counts: give that too.")
        if options.solver == "exact" and self.alpha is None:
            raise WrongCallError("--solver exact finds the best model for one --alpha: give that.")
        free = {"alpha", "max_depth"} | ({"max_trees"} if options.polish == "subset" else set())
        others = [name for name in asked if name not in free]
        if self.alpha is not None and others:
            raise WrongCallError(
                f"--alpha and {spelled(others[0])} exclude each other: say what size costs, or "
                "what is wanted."
            )
        by_quality = [name for name in ("tolerance", "one_standard_error") if name in asked]
        if len(by_quality) > 1:
            raise WrongCallError(
                "--tolerance and --one-standard-error exclude each other: give one."
            )
        if self.confidence is not None and not self.confidence < 1.0:
            raise WrongCallError(f"--confidence must be below 1, got {self.confidence:g}.")
        if self.confidence is not None and self.tolerance is None:
            raise WrongCallError("--confidence is for --tolerance: give that too.")
        if by_quality and not division:
            raise WrongCallError(
                f"{spelled(by_quality[0])} needs rows to choose by: leave --holdout 0 out."
            )
        several = options.shrinkage is not None and len(options.shrinkages) > 1
        if several and (self.alpha is not None or not division):
            raise WrongCallError(
                "--shrinkage can be repeated only if rows that are held out choose: not with "
                "--alpha or --holdout 0."
            )


@dataclass(frozen=True)
class How:
    """How to prune; None stands for the default of the table."""

    rule: Annotated[Rule | None, option("rule")] = None
    refit: Annotated[bool | None, option("refit", "--refit/--no-refit")] = None
    shrinkage: Annotated[list[float] | None, option("shrinkage")] = None
    polish: Annotated[Polish | None, option("polish")] = None
    scoring: Annotated[str | None, option("scoring")] = None
    weighting: Annotated[NamedWeighting | None, option("weighting")] = None
    max_iter: Annotated[int | None, option("max_iter")] = None
    n_jobs: Annotated[int | None, option("n_jobs", "--jobs", "-j")] = None
    certify: Annotated[bool, option("certify", "--certify")] = False
    n_alphas: Annotated[int | None, option("n_alphas")] = None
    joint: Annotated[Joint | None, option("joint")] = None
    alpha2: Annotated[float | None, option("alpha2")] = None
    local_search: Annotated[Local | None, option("local_search")] = None
    solver: Annotated[SolverName | None, option("solver")] = None
    time_limit: Annotated[float | None, option("time_limit")] = None

    @property
    def points(self) -> int:
        """How many points a path has."""
        return int(default("n_alphas")) if self.n_alphas is None else self.n_alphas

    def options(self, data: Data, division: Division) -> Options:
        """Return the options; refuse what does not go together, or would change nothing."""
        seed, given = (
            data.seed,
            {name: value for name, value in vars(self).items() if value not in (None, [])},
        )
        given.pop("n_alphas", None)
        if self.n_jobs == 0:
            raise WrongCallError("--jobs must be a whole number other than 0, got 0.")
        if self.local_search in get_args(Switch):
            given["local_search"] = self.local_search == "on"
        if self.shrinkage and len(self.shrinkage) == 1:
            [given["shrinkage"]] = self.shrinkage
        if self.scoring is not None and not division:
            raise WrongCallError("--scoring needs rows to choose by: leave --holdout 0 out.")
        if self.scoring is not None and data.no_target:
            raise WrongCallError("--scoring needs a --target: leave --no-target out.")
        try:
            _check_scoring(self.scoring)
            options = Options.of(given | {"random_state": seed or 0})
        except OptionError as error:
            raise WrongCallError(error.rendered(flag)) from error
        subset = options.polish == "subset"
        weighs = options.joint is not None or options.polish in ("ridge", "subset")
        by_chance = division.share > 0.0 or isinstance(options.local_search, str)
        useless = {
            "--solver is for --polish subset, but for exact": "solver" in given
            and not subset
            and options.solver != "exact",
            "--time-limit is for --polish subset and --solver exact": "time_limit" in given
            and not subset
            and options.solver != "exact",
            "--alpha2 is for --joint, --polish ridge and --polish subset": "alpha2" in given
            and not weighs,
            "--seed is for rows held out by chance, or a random search": seed is not None
            and not by_chance,
        }
        for what, is_useless in useless.items():
            if is_useless:
                raise WrongCallError(f"{what}: without these it would change nothing.")
        return options


@dataclass(frozen=True)
class Printing:
    """What comes out, and whether it may replace files."""

    force: Force = False
    json: Json = False
    quiet: Quiet = False

    def output(self) -> Output:
        """Return where to print."""
        return Output(as_json=self.json, quiet=self.quiet)


def _check_scoring(scoring: str | None) -> None:
    if scoring is not None:
        from forestprune.select.scoring import check_scoring

        check_scoring(scoring)


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
            for each in fields(kind):
                value = inspect.Parameter.empty if each.default is MISSING else each.default
                parameters.append(_parameter(each.name, hints[each.name], value))
        else:
            value = inspect.signature(command).parameters[name].default
            parameters.append(_parameter(name, kind, value))

    @functools.wraps(command)
    def call(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{each.name: given.pop(each.name) for each in fields(group)})
        command(**given)

    del call.__wrapped__  # whose parameters are not those of this one
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, annotation=annotation, default=default)
