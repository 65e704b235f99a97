"""What `prune` and `path` have in common: a model, rows to prune with, rows to choose by."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forestprune.cli.failures import CommandError, WrongCallError

if TYPE_CHECKING:
    from forestprune.cli.rows import Rows
    from forestprune.interop.source import Source
    from forestprune.select.opening import HeldOut

MANY = 0.5
"""Share of the rows held out from which on it is said that they are pruned with, too.

Less than that can be chance: of the wines that the package has, a quarter are there twice."""

HOLDOUT = 0.25
"""Share of the rows to choose by, unless the user says something else."""


@dataclass(frozen=True)
class Division:
    """Where the rows to choose by come from.

    Attributes
    ----------
    share : float
        Share of the rows that is held out; 0 for none.
    seed : int
    file : Path or None
        A file of their own.
    """

    share: float
    seed: int
    file: Path | None

    @classmethod
    def of(
        cls, holdout: float | None, validation: Path | None, seed: int, *, default: float = HOLDOUT
    ) -> "Division":
        """Return what the options say."""
        if holdout and validation is not None:
            raise WrongCallError("--holdout and --validation exclude each other: give one.")
        if validation is not None:
            return cls(0.0, seed, validation)
        return cls(default if holdout is None else holdout, seed, None)

    def __bool__(self) -> bool:
        return self.share > 0.0 or self.file is not None

    def __str__(self) -> str:
        if self.file is not None:
            return f"the rows of {self.file.name}"
        return f"{self.share:g} of the rows, held out by chance (seed {self.seed})"


@dataclass(frozen=True)
class Work:
    """A model, the rows to prune it with, and rows to choose by if there are any.

    Attributes
    ----------
    source : Source
    rows : Rows
    held_out : Rows or None
    division : Division
        Where those held out come from.
    targets : sequence of str
        The columns to predict; none for the model's own predictions.
    repeated : int
        How many rows of a file of their own are among those to prune with, too.
    """

    source: "Source"
    rows: "Rows"
    held_out: "Rows | None"
    division: Division
    targets: Sequence[str]
    repeated: int = 0

    @property
    def labelled(self) -> bool:
        """Whether there is a target other than the model's own predictions."""
        return bool(self.targets)

    def arguments(self) -> dict[str, Any]:
        """Return the rows to prune with, as `prune` and `prune_path` take them."""
        return {"X": self.rows.X, "y": self.rows.y, "sample_weight": self.rows.weight}

    def validation_arguments(self) -> dict[str, Any]:
        """Return the rows to choose by, as `prune` and `prune_path` take them."""
        if self.held_out is None:
            return {}
        rows = self.held_out
        return {"X_val": rows.X, "y_val": rows.y, "sample_weight_val": rows.weight}

    def held_out_rows(self) -> "HeldOut | None":
        """Return the rows to choose by, as `select.choosing.candidates` takes them."""
        from forestprune.select.opening import HeldOut

        if self.held_out is None:
            return None
        return HeldOut(self.held_out.X, self.held_out.y, self.held_out.weight)

    @property
    def caution(self) -> str | None:
        """What to think of before R squared of the full model is believed, if anything.

        A model is far better on rows that it was trained on than on any others.
        """
        if self.held_out is None or self.division.file is not None or not self.labelled:
            return None
        return (
            "If the model was trained on the rows held out too, it looks better on them than it "
            "is: then give rows that it has not seen, with --validation."
        )

    @property
    def overlap(self) -> str | None:
        """What to say of rows held out that are pruned with, if these are many."""
        if self.held_out is None or self.repeated < MANY * len(self.held_out):
            return None
        return (
            f"{self.repeated:,} of the {len(self.held_out):,} rows held out are among those to "
            "prune with, too: what does best on them may do so because it has seen them. Give "
            "others with --validation."
        )

    def described(self, use: str) -> list[str]:
        """Return lines that say what rows are used, and for what."""
        towards = "" if self.labelled else ", towards the model's own predictions"
        line = f"pruning with {len(self.rows):,} rows{towards}"
        if self.held_out is None:
            return [f"{line}; none are held out."]
        lines = [f"{line}; {use} {len(self.held_out):,} others: {self.division}."]
        return lines if self.caution is None else [*lines, self.caution]


def prepare(
    source: "Source",
    data: Path,
    division: Division,
    *,
    target: Sequence[str] | None,
    no_target: bool,
    weight: str | None,
    ignore: Sequence[str] | None,
    decimal: str = ".",
) -> Work:
    """Read the rows for a model."""
    from forestprune.cli.features import Features
    from forestprune.cli.overlap import rows_among
    from forestprune.cli.rows import Reader, Shares

    targets = _targets(source, target, no_target=no_target)
    reader = Reader(Features.of(source), targets, weight, ignore or (), decimal)
    shares = Shares(division.share, division.seed) if division.share else None
    parts = reader.read(data, shares)
    if division.file is not None:
        parts += reader.read(division.file)
    rows, held_out = parts[0], parts[1] if len(parts) > 1 else None
    if held_out is None:
        return Work(source, rows, None, division, targets)
    _check_spread(held_out)
    # Of one file, rows that are equal are equal by chance.
    repeated = 0 if division.file is None else rows_among(held_out, rows)
    return Work(source, rows, held_out, division, targets, repeated)


def _check_spread(rows: "Rows") -> None:
    """Refuse rows to choose by of which R squared knows nothing."""
    y = rows.y
    if len(rows) < 2 or (y is not None and bool((y == y[0]).all())):
        raise CommandError(
            f"The {len(rows):,} rows to choose by do not differ in what is to be predicted, so R "
            "squared cannot tell models apart: give others, or --holdout 0."
        )


def _targets(source: "Source", target: Sequence[str] | None, *, no_target: bool) -> Sequence[str]:
    """Return the columns to predict; none for the model's own predictions."""
    forest = source.forest
    if no_target:
        return ()
    if not forest.adds_up_to_y:
        if target and forest.origin is not None:
            raise WrongCallError(
                f"The trees of this {forest.origin.model_class} add up to "
                f"{forest.origin.predicts}, which cannot be compared with a column: leave --target "
                "out, then what the model itself says is kept to."
            )
        return ()
    if not target:
        raise WrongCallError(
            "--target is required: name the column that the model predicts, or give --no-target to "
            "keep to what the model itself says."
        )
    if len(target) != forest.n_outputs:
        raise CommandError(
            f"The model predicts {forest.n_outputs} numbers a row, but --target names "
            f"{len(target)}: give it once for each, in order."
        )
    return target
