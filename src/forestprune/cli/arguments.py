"""Arguments and options that several commands have."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

SIZE, HOW, ROWS, PRINT = "How small", "How to prune", "Model and rows", "Output"
"""Headings of the help."""


class DecimalMark(StrEnum):
    """What stands between a number's whole part and the rest."""

    point = "."
    comma = ","


class Rule(StrEnum):
    """How one tree is pruned."""

    subtree = "subtree"
    layer = "layer"


class Weighting(StrEnum):
    """What is charged for."""

    node = "node"
    depth = "depth"


class Joint(StrEnum):
    """Penalties of weights that are chosen along with depths."""

    ridge = "ridge"
    subset = "subset"


class Polish(StrEnum):
    """What is refitted in the end."""

    ridge = "ridge"
    subset = "subset"
    leaf = "leaf"


class LocalSearch(StrEnum):
    """How to get out of local optima."""

    on = "on"
    off = "off"
    random = "random"
    correlated = "correlated"


class SubsetSolver(StrEnum):
    """What finds the best subset."""

    heuristic = "heuristic"
    scip = "scip"
    gurobi = "gurobi"


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
        metavar="DATA", help="Rows to prune with: .csv, .csv.gz, .parquet, .arrow or .feather."
    ),
]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        metavar="",
        help="Load a pickle. It can run any code: know who wrote it.",
        rich_help_panel=ROWS,
    ),
]
Json = Annotated[
    bool,
    typer.Option(
        "--json", metavar="", help="Print one JSON object to stdout.", rich_help_panel=PRINT
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", metavar="", help="Print nothing but errors.", rich_help_panel=PRINT
    ),
]
Force = Annotated[
    bool,
    typer.Option("--force", metavar="", help="Overwrite files that exist.", rich_help_panel=PRINT),
]

# Rows

Target = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        metavar="COLUMN",
        help="Column to predict; once for each output. Can be left out for models whose trees add "
        "up to something else, such as a log.",
        rich_help_panel=ROWS,
    ),
]
NoTarget = Annotated[
    bool,
    typer.Option(
        "--no-target",
        metavar="",
        help="Keep to what the model itself predicts, for rows whose target is not known.",
        rich_help_panel=ROWS,
    ),
]
Weight = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column with weights of rows, which count as repetitions: 2 as if a row were there "
        "twice.",
        rich_help_panel=ROWS,
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Column that is no feature, for models that do not know the names of theirs; can be "
        "repeated.",
        rich_help_panel=ROWS,
    ),
]
Decimal = Annotated[
    DecimalMark,
    typer.Option("--decimal", help="Decimal mark of CSV files.", rich_help_panel=ROWS),
]
Holdout = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        max=0.99,
        metavar="X",
        help="Share of the rows to choose by rather than to prune with (default: 0.25, or 0 if "
        "--alpha is given).",
        rich_help_panel=ROWS,
    ),
]
ValidationFile = Annotated[
    Path | None,
    typer.Option(
        "--validation",
        metavar="FILE",
        help="Rows to choose by; best such as the model was not trained on.",
        rich_help_panel=ROWS,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=2**32 - 1,
        metavar="N",
        help="Decides which rows are held out, and what a random search tries (default: 0).",
        rich_help_panel=ROWS,
    ),
]

# How to prune

RuleOption = Annotated[
    Rule,
    typer.Option(
        "--rule",
        help="Keep any part of a tree from its root on, or cut trees at depths.",
        rich_help_panel=HOW,
    ),
]
Refit = Annotated[
    bool | None,
    typer.Option(
        "--refit/--no-refit",
        metavar="",
        help="Give leaves new values (default: with subtrees).",
        show_default=False,
        rich_help_panel=HOW,
    ),
]
Shrinkages = Annotated[
    list[float] | None,
    typer.Option(
        "--shrinkage",
        min=0.0,
        metavar="X",
        help="How strongly new values are drawn to the old ones, in rows. If repeated, the best "
        "is chosen (default: the best of 10, 100, 1000).",
        rich_help_panel=HOW,
    ),
]
Shrinkage = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        metavar="X",
        help="How strongly new values are drawn to the old ones, in rows (default: 100; prune and "
        "report take the best of several).",
        rich_help_panel=HOW,
    ),
]
WeightingOption = Annotated[
    Weighting,
    typer.Option(
        "--weighting", help="Charge for nodes, or for depth (layers only).", rich_help_panel=HOW
    ),
]
JointOption = Annotated[
    Joint | None,
    typer.Option(
        "--joint",
        help="Choose weights of trees along with depths (layers only).",
        rich_help_panel=HOW,
    ),
]
Alpha2 = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        metavar="X",
        help="Penalty of weights, for --joint and --polish (default: 0.01).",
        rich_help_panel=HOW,
    ),
]
PolishOption = Annotated[
    Polish | None,
    typer.Option(
        "--polish", help="Refit weights of trees, or leaves, in the end.", rich_help_panel=HOW
    ),
]
LocalSearchOption = Annotated[
    LocalSearch,
    typer.Option(
        "--local-search",
        help="How to get out of local optima (random, correlated: layers only).",
        rich_help_panel=HOW,
    ),
]
MaxIter = Annotated[
    int, typer.Option(min=1, metavar="N", help="Sweeps for each alpha.", rich_help_panel=HOW)
]
Solver = Annotated[
    SubsetSolver | None,
    typer.Option(
        "--solver",
        help="What finds the best subset, for --polish subset (default: heuristic).",
        rich_help_panel=HOW,
    ),
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        min=0.001,
        metavar="X",
        help="Seconds for an exact solver, each time (default: 60).",
        rich_help_panel=HOW,
    ),
]
NAlphas = Annotated[
    int | None,
    typer.Option(
        "--n-alphas",
        min=1,
        metavar="N",
        help="Points of the path (default: 100).",
        rich_help_panel=HOW,
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", "-j", metavar="N", help="Threads (default: every core).", rich_help_panel=HOW
    ),
]
