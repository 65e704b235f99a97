"""How small a model shall be, on the command line, and the choice of one."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forestprune.cli.arguments import SIZE, Shrinkages
from forestprune.cli.failures import CommandError, WrongCallError
from forestprune.cli.wording import as_flags
from forestprune.cli.work import HOLDOUT, Division, Work

if TYPE_CHECKING:
    from forestprune.select.path import PruningPath
    from forestprune.select.pruned import PrunedForest


@dataclass(frozen=True)
class Size:
    """How small the model shall be."""

    max_nodes: Annotated[
        int | None,
        typer.Option(
            min=3, metavar="N", help="Nodes at most, leaves included.", rich_help_panel=SIZE
        ),
    ] = None
    max_trees: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Trees at most.", rich_help_panel=SIZE)
    ] = None
    max_bytes: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Size of the file at most.", rich_help_panel=SIZE),
    ] = None
    max_depth: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Depth at most; goes with all the others.",
            rich_help_panel=SIZE,
        ),
    ] = None
    alpha: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            metavar="X",
            help="What keeping everything costs, in units of the target's variance.",
            rich_help_panel=SIZE,
        ),
    ] = None
    tolerance: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            metavar="X",
            help="The smallest model that loses no more R squared than this on the rows held out.",
            rich_help_panel=SIZE,
        ),
    ] = None
    one_standard_error: Annotated[
        bool,
        typer.Option(
            "--one-standard-error",
            metavar="",
            help="The smallest model within a standard error of the best.",
            rich_help_panel=SIZE,
        ),
    ] = False
    shrinkage: Shrinkages = None

    @property
    def share(self) -> float:
        """Share of the rows that is held out if nobody says something else."""
        return HOLDOUT if self.alpha is None else 0.0

    @property
    def use(self) -> str:
        """What rows that are held out are for, in words."""
        return "choosing by" if self.alpha is None else "scoring on"

    @property
    def shrinkages(self) -> float | list[float] | None:
        """The shrinkage to take, those to choose from, or None."""
        if not self.shrinkage:
            return None
        return self.shrinkage[0] if len(self.shrinkage) == 1 else self.shrinkage

    def asked(self) -> dict[str, Any]:
        """Return what was asked for, by name."""
        return {
            name: value
            for name, value in vars(self).items()
            if name != "shrinkage" and value is not None and value is not False
        }

    def check(self, division: Division, polish: str | None) -> None:
        """Refuse what cannot be asked for at once."""
        asked = self.asked()
        for name in ("alpha", "tolerance"):
            if not math.isfinite(asked.get(name, 0.0)):
                raise WrongCallError(f"{_flag(name)} must be finite, got {asked[name]}.")
        free = {"alpha", "max_depth"} | ({"max_trees"} if polish == "subset" else set())
        others = [name for name in asked if name not in free]
        if "alpha" in asked and others:
            raise WrongCallError(
                f"--alpha and {_flag(others[0])} exclude each other: say what size costs, or what "
                "is wanted."
            )
        if "tolerance" in asked and "one_standard_error" in asked:
            raise WrongCallError(
                "--tolerance and --one-standard-error exclude each other: give one."
            )
        by_quality = [name for name in ("tolerance", "one_standard_error") if name in asked]
        if by_quality and not division:
            raise WrongCallError(
                f"{_flag(by_quality[0])} needs rows to choose by: not --holdout 0."
            )
        if isinstance(self.shrinkages, list) and ("alpha" in asked or not division):
            raise WrongCallError(
                "--shrinkage can be repeated only where rows that are held out choose: not with "
                "--alpha or --holdout 0."
            )

    def choose(
        self, work: Work, options: dict[str, Any], n_alphas: int, *, whole: bool = False
    ) -> tuple["PruningPath", int]:
        """Return all models that were looked at, and the place of the one to take.

        The `whole` path is for reports. With a given alpha there is none, see `surroundings`.
        """
        from forestprune.exceptions import OutOfReachError
        from forestprune.options import Options
        from forestprune.select import choosing
        from forestprune.select.path import Budget

        wanted = choosing.Wanted(
            alpha=self.alpha,
            budget=Budget(
                max_nodes=self.max_nodes, max_trees=self.max_trees, max_bytes=self.max_bytes
            ),
            max_depth=self.max_depth,
            tolerance=self.tolerance,
            one_standard_error=self.one_standard_error,
            n_alphas=n_alphas,
            whole=whole,
        )
        # With a given alpha there is nothing to choose: rows that are held out only score.
        held_out = None if self.alpha is not None else work.held_out_rows()
        rows, how = work.rows, Options.of(options)
        needed_again = whole and self.alpha is not None
        try:
            return choosing.candidates(
                work.source,
                rows.X if needed_again else rows.hand_over(),
                rows.y,
                rows.weight,
                wanted,
                held_out,
                how,
            )
        except OutOfReachError as error:
            caution = f" {work.caution}" if work.caution and self.tolerance is not None else ""
            raise CommandError(f"{as_flags(str(error))}{caution}") from error

    def too_small(self, small: "PrunedForest") -> str | None:
        """Return what to say if nothing is left at the alpha that was given."""
        if self.alpha is None or small.n_trees:
            return None
        return f"no tree is left at --alpha {self.alpha:g}: a smaller one keeps more."

    def surroundings(
        self, path: "PruningPath", work: Work, options: dict[str, Any], n_alphas: int
    ) -> tuple["PruningPath", int]:
        """Return the path around a single point, with which one can see what it is worth."""
        from forestprune import api
        from forestprune.select.opening import validated

        around = api.prune_path(
            work.source,
            **work.arguments(),
            n_alphas=n_alphas,
            max_depth=self.max_depth,
            max_trees=self.max_trees,
            **options,
        )
        [point] = path.points
        points = sorted((*around.points, point), key=lambda each: -each.alpha)
        joined = validated(
            replace(path, points=tuple(points)), work.held_out_rows(), options["n_jobs"]
        )
        return joined, next(place for place, each in enumerate(points) if each is point)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
