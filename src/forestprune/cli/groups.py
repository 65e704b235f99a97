"""The options of `prune`, `path` and `report`, in groups: which rows, how to prune, what to say."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from forestprune.cli.arguments import (
    Alpha2,
    DataFile,
    Decimal,
    DecimalMark,
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
    Solver,
    Target,
    TimeLimit,
    Trust,
    ValidationFile,
    Weight,
    Weighting,
    WeightingOption,
)
from forestprune.cli.failures import WrongCallError
from forestprune.cli.output import Output
from forestprune.cli.wording import as_flags
from forestprune.cli.work import HOLDOUT, Division, Work, prepare

if TYPE_CHECKING:
    from forestprune.interop.source import Source


@dataclass(frozen=True)
class Files:
    """What is read."""

    model: ModelFile
    data: DataFile
    trust: Trust = False


@dataclass(frozen=True)
class Given:
    """Which rows of the data are for what."""

    target: Target = None
    no_target: NoTarget = False
    holdout: Holdout = None
    validation: ValidationFile = None
    weight: Weight = None
    ignore: Ignore = None
    decimal: Decimal = DecimalMark.point
    seed: Seed = None

    def division(self, default: float = HOLDOUT) -> Division:
        """Return where the rows to choose by come from."""
        return Division.of(self.holdout, self.validation, self.seed or 0, default=default)

    def check(self, files: Files) -> None:
        """Refuse what cannot be read or used, before anything is."""
        from forestprune.cli.tables import check_table, is_table

        if self.target and self.no_target:
            raise WrongCallError("--target and --no-target exclude each other: give one.")
        if is_table(files.model) and not is_table(files.data):
            raise WrongCallError(
                f"MODEL comes first, then DATA, but {files.model.name} is a table: is it "
                f"`{files.data.name} {files.model.name}` that is meant?"
            )
        if not files.model.exists():
            return  # which is what to complain of first
        tables = [file for file in (files.data, self.validation) if file is not None]
        written = [check_table(file) for file in tables]
        if len(tables) == 2 and files.data.samefile(tables[1]):
            raise WrongCallError(
                f"--validation names {tables[1]}, the rows to prune with: give others, which the "
                "model was not trained on, or leave it out."
            )
        if self.decimal != DecimalMark.point and not any(written):
            raise WrongCallError(f"--decimal is for CSV files, and {files.data.name} is none.")

    def read(self, source: "Source", files: Files, division: Division) -> Work:
        """Read the rows for a model."""
        return prepare(
            source,
            files.data,
            division,
            target=self.target,
            no_target=self.no_target,
            weight=self.weight,
            ignore=self.ignore,
            decimal=self.decimal,
        )


@dataclass(frozen=True)
class How:
    """How to prune."""

    rule: RuleOption = Rule.subtree
    refit: Refit = None
    weighting: WeightingOption = Weighting.node
    joint: JointOption = None
    alpha2: Alpha2 = None
    polish: PolishOption = None
    local_search: LocalSearchOption = LocalSearch.on
    max_iter: MaxIter = 1000
    solver: Solver = None
    time_limit: TimeLimit = None
    n_alphas: NAlphas = None
    jobs: Jobs = None

    @property
    def points(self) -> int:
        """How many points a path has."""
        return 100 if self.n_alphas is None else self.n_alphas

    def check(self, seed: int | None, division: Division) -> None:
        """Refuse options that would change nothing."""
        subset = self.polish == "subset"
        weighs = self.joint is not None or self.polish in ("ridge", "subset")
        by_chance = self.local_search in (LocalSearch.random, LocalSearch.correlated)
        useless = {
            "--solver is for --polish subset": self.solver is not None and not subset,
            "--time-limit is for --polish subset": self.time_limit is not None and not subset,
            "--alpha2 is for --joint, --polish ridge and --polish subset": self.alpha2 is not None
            and not weighs,
            "--seed is for rows held out by chance, or a random search": seed is not None
            and not (division.share or by_chance),
        }
        for what, given in useless.items():
            if given:
                raise WrongCallError(f"{what}: without these it would change nothing.")

    def options(self, given: Given, division: Division, shrinkage: Any) -> dict[str, Any]:
        """Return options as `Options` takes them; refuse what does not go together."""
        from forestprune.options import Options

        switch = {LocalSearch.on: True, LocalSearch.off: False}
        unsaid = {name for name in ("alpha2", "solver", "time_limit") if vars(self)[name] is None}
        left_out = {"n_alphas", "jobs", *unsaid}
        options = {name: value for name, value in vars(self).items() if name not in left_out}
        options |= {
            "local_search": switch.get(self.local_search, str(self.local_search)),
            "n_jobs": self.jobs,
            "random_state": given.seed or 0,
            "shrinkage": shrinkage,
        }
        plain = {
            name: str(option) if isinstance(option, StrEnum) else option
            for name, option in options.items()
        }
        try:
            Options.of(plain)
        except ValueError as error:
            raise WrongCallError(as_flags(str(error))) from error
        self.check(given.seed, division)
        return plain


@dataclass(frozen=True)
class Saying:
    """What comes out, and whether it may replace files."""

    force: Force = False
    json: Json = False
    quiet: Quiet = False

    def output(self) -> Output:
        """Return where to say it."""
        return Output(as_json=self.json, quiet=self.quiet)
