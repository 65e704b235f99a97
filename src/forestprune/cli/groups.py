"""The options of `prune`, `path` and `report`, in groups: which rows, how to prune, what to say."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from forestprune.cli.arguments import (
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
    Solver,
    SubsetSolver,
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
    from forestprune.source import Source


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
    seed: Seed = 0

    def division(self, default: float = HOLDOUT) -> Division:
        """Return where the rows to choose by come from."""
        return Division.of(self.holdout, self.validation, self.seed, default=default)

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
        )


@dataclass(frozen=True)
class How:
    """How to prune."""

    rule: RuleOption = Rule.subtree
    refit: Refit = None
    weighting: WeightingOption = Weighting.node
    joint: JointOption = None
    alpha2: Alpha2 = 0.01
    polish: PolishOption = None
    local_search: LocalSearchOption = LocalSearch.on
    max_iter: MaxIter = 1000
    solver: Solver = SubsetSolver.heuristic
    time_limit: TimeLimit = 60.0
    n_alphas: NAlphas = 100
    jobs: Jobs = None

    def options(self, seed: int, shrinkage: Any) -> dict[str, Any]:
        """Return options as `Options` takes them; refuse what does not go together."""
        from forestprune.options import Options

        switch = {LocalSearch.on: True, LocalSearch.off: False}
        options = {name: value for name, value in vars(self).items() if name != "n_alphas"}
        options |= {
            "local_search": switch.get(self.local_search, str(self.local_search)),
            "n_jobs": options.pop("jobs"),
            "random_state": seed,
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
