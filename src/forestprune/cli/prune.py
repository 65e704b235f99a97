"""`forestprune prune`: a model file in, a small one out."""

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forestprune.cli.arguments import (
    PRINT,
    SIZE,
    Alpha2,
    DataFile,
    Force,
    Holdout,
    Ignore,
    Jobs,
    JointOption,
    Json,
    LocalSearch,
    LocalSearchOption,
    MaxIter,
    ModelFile,
    NAlphas,
    NoTarget,
    PolishOption,
    Quiet,
    Refit,
    Rule,
    RuleOption,
    Seed,
    Shrinkages,
    Solver,
    SubsetSolver,
    Target,
    TimeLimit,
    Trust,
    ValidationFile,
    Weight,
    Weighting,
    WeightingOption,
    checked_options,
)
from forestprune.cli.failures import WrongCallError
from forestprune.cli.output import Output
from forestprune.cli.work import HOLDOUT, Division, Work, prepare

if TYPE_CHECKING:
    from rich.table import Table

    from forestprune.pruned import PrunedForest


def prune(
    model: ModelFile,
    data: DataFile,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Where the small model goes. Its ending says the format: .json, .ubj (XGBoost), "
            ".txt (LightGBM), .cbm, .json (CatBoost), .skops (scikit-learn), .joblib, .pkl (any), "
            ".npz (a Forest).",
            rich_help_panel=PRINT,
        ),
    ],
    target: Target = None,
    no_target: NoTarget = False,
    max_nodes: Annotated[
        int | None,
        typer.Option(min=3, help="Nodes at most, leaves included.", rich_help_panel=SIZE),
    ] = None,
    max_trees: Annotated[
        int | None, typer.Option(min=1, help="Trees at most.", rich_help_panel=SIZE)
    ] = None,
    max_bytes: Annotated[
        int | None,
        typer.Option(min=1, help="Size of the file at most.", rich_help_panel=SIZE),
    ] = None,
    max_depth: Annotated[
        int | None,
        typer.Option(min=1, help="Depth at most; goes with all the others.", rich_help_panel=SIZE),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="What keeping everything costs, in units of the target's variance.",
            rich_help_panel=SIZE,
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="The smallest model that loses no more R squared than this on the rows held out.",
            rich_help_panel=SIZE,
        ),
    ] = None,
    one_standard_error: Annotated[
        bool,
        typer.Option(
            "--one-standard-error",
            help="The smallest model within a standard error of the best.",
            rich_help_panel=SIZE,
        ),
    ] = False,
    rule: RuleOption = Rule.subtree,
    refit: Refit = None,
    shrinkage: Shrinkages = None,
    weighting: WeightingOption = Weighting.node,
    joint: JointOption = None,
    alpha2: Alpha2 = 0.01,
    polish: PolishOption = None,
    local_search: LocalSearchOption = LocalSearch.on,
    max_iter: MaxIter = 1000,
    solver: Solver = SubsetSolver.heuristic,
    time_limit: TimeLimit = 60.0,
    n_alphas: NAlphas = 100,
    jobs: Jobs = None,
    holdout: Holdout = None,
    validation: ValidationFile = None,
    weight: Weight = None,
    ignore: Ignore = None,
    seed: Seed = 0,
    trust: Trust = False,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Prune a model to a budget, and write a model of the same class.

    Without a budget, what does best on the rows held out is taken.
    """
    output = Output(as_json=json, quiet=quiet)
    with output.working():
        size = {
            "max_nodes": max_nodes,
            "max_trees": max_trees,
            "max_bytes": max_bytes,
            "max_depth": max_depth,
            "alpha": alpha,
            "tolerance": tolerance,
            "one_standard_error": one_standard_error or None,
        }
        asked = {name: limit for name, limit in size.items() if limit is not None}
        options = checked_options(
            local_search,
            jobs,
            rule=rule,
            refit=refit,
            shrinkage=shrinkage or None,
            weighting=weighting,
            joint=joint,
            alpha2=alpha2,
            polish=polish,
            max_iter=max_iter,
            solver=solver,
            time_limit=time_limit,
            random_state=seed,
        )
        default = HOLDOUT if alpha is None else 0.0
        division = Division.of(holdout, validation, seed, default=default)
        _check_size(asked, division, polish, shrinkage or ())
        begun = time.perf_counter()

        from forestprune.cli.models import check_ending, check_new_file, read_source, write_small

        check_new_file(out, force=force)
        source = read_source(model, trust=trust)
        check_ending(out, source)
        source = replace(source, ending=out.suffix)
        work = prepare(
            source,
            data,
            division,
            target=target,
            no_target=no_target,
            weight=weight,
            ignore=ignore,
        )
        output.note(work.described(division, "scored on" if alpha is not None else "chosen by"))
        small = _pruned(work, asked, options, n_alphas)
        n_bytes = model.stat().st_size  # before it may be overwritten
        write_small(small, out, force=force)
        document = {
            "model": str(model),
            "out": str(out),
            **_describe(work, small, n_bytes, out.stat().st_size),
            "held_out_from": str(division) if division else None,
            "asked": asked,
            "seconds": round(time.perf_counter() - begun, 3),
        }
        shown = [_table(document), f"written to {out}"]
    output.result(document, *shown)


def _check_size(
    asked: dict[str, Any], division: Division, polish: str | None, shrinkages: Any
) -> None:
    """Refuse what cannot be asked for at once."""
    free = {"alpha", "max_depth"} | ({"max_trees"} if polish == "subset" else set())
    others = [name for name in asked if name not in free]
    if "alpha" in asked and others:
        raise WrongCallError(
            f"--alpha and {_flag(others[0])} exclude each other: say what size costs, or what is "
            "wanted."
        )
    if "tolerance" in asked and "one_standard_error" in asked:
        raise WrongCallError("--tolerance and --one-standard-error exclude each other: give one.")
    by_quality = [name for name in ("tolerance", "one_standard_error") if name in asked]
    if by_quality and not division:
        raise WrongCallError(f"{_flag(by_quality[0])} needs rows to choose by: not --holdout 0.")
    if len(shrinkages) > 1 and ("alpha" in asked or not division):
        raise WrongCallError(
            "--shrinkage can be repeated only where rows that are held out choose: not with "
            "--alpha or --holdout 0."
        )


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _pruned(
    work: Work, asked: dict[str, Any], options: dict[str, Any], n_alphas: int
) -> "PrunedForest":
    from forestprune import api

    # With a given alpha there is nothing to choose: rows that are held out only score.
    held_out = {} if "alpha" in asked else work.validation_arguments()
    shrinkage = options["shrinkage"]
    if shrinkage is not None and len(shrinkage) == 1:
        options = options | {"shrinkage": shrinkage[0]}
    return api.prune(
        work.source, **work.arguments(), **held_out, **asked, n_alphas=n_alphas, **options
    )


def _describe(
    work: Work, small: "PrunedForest", full_bytes: int, small_bytes: int
) -> dict[str, Any]:
    from forestprune.cli.scores import scores
    from forestprune.cli.summary import origin_of, size_of

    full_score, small_score = scores(work, small)
    return {
        **origin_of(work.source.forest),
        "target": "column" if work.labelled else "own predictions",
        "rows": len(work.rows),
        "rows_held_out": 0 if work.held_out is None else len(work.held_out),
        "full": size_of(work.source.forest, full_bytes) | {"r_squared": full_score},
        "small": size_of(small.forest, small_bytes) | {"r_squared": small_score},
        "alpha": small.alpha,
        "loss": small.loss,
    }


def _table(document: dict[str, Any]) -> "Table":
    from rich.table import Table

    full, small = document["full"], document["small"]
    table = Table(box=None, pad_edge=False)
    for heading in ("", "full", "small", "full / small"):
        table.add_column(heading, justify="right" if heading else "left")
    names = {
        "trees": "trees",
        "nodes": "nodes",
        "max_depth": "deepest tree",
        "bytes": "file, bytes",
    }
    for key, name in names.items():
        ratio = f"{full[key] / small[key]:,.1f}" if small[key] else ""
        table.add_row(name, f"{full[key]:,}", f"{small[key]:,}", ratio)
    if full["r_squared"] is not None:
        label = f"R squared, {document['rows_held_out']:,} rows held out"
        table.add_row(label, f"{full['r_squared']:.4f}", f"{small['r_squared']:.4f}")
    return table
