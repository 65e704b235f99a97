"""What `prune` and `path` have in common: a model, rows to prune with, rows to choose by."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forestprune.cli.failures import CommandError, WrongCallError

if TYPE_CHECKING:
    from forestprune.cli.rows import Rows
    from forestprune.opening import HeldOut
    from forestprune.source import Source

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
    """A model, the rows to prune it with, and rows to choose by if there are any."""

    source: "Source"
    rows: "Rows"
    held_out: "Rows | None"

    @property
    def labelled(self) -> bool:
        """Whether there is a target other than the model's own predictions."""
        return self.rows.y is not None

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
        """Return the rows to choose by, as :func:`forestprune.choosing.candidates` takes them."""
        from forestprune.opening import HeldOut

        if self.held_out is None:
            return None
        return HeldOut(self.held_out.X, self.held_out.y, self.held_out.weight)

    def described(self, division: Division, use: str) -> str:
        """Return a line that says what rows are used, and for what."""
        towards = "" if self.labelled else ", towards the model's own predictions"
        line = f"pruned with {len(self.rows):,} rows{towards}"
        if self.held_out is None:
            return f"{line}; none are held out."
        line = f"{line}; {use} {len(self.held_out):,} others: {division}."
        if division.file is not None or not self.labelled:
            return line
        # A model is far better on rows that it was trained on than on any others.
        return f"{line} If the model was trained on all of them, give others with --validation."


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
    from forestprune.cli.rows import Reader, Shares

    targets = _targets(source, target, no_target=no_target)
    reader = Reader(Features.of(source), targets, weight, ignore or (), decimal)
    shares = Shares(division.share, division.seed) if division.share else None
    parts = reader.read(data, shares)
    if division.file is not None:
        parts += reader.read(division.file)
    held_out = parts[1] if len(parts) > 1 else None
    if held_out is not None:
        _check_spread(held_out)
    return Work(source, parts[0], held_out)


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
