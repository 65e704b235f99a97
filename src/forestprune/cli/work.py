"""What commands work on: a model, rows to prune with, rows to choose by."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from forestprune.cli.errors import CommandError, WrongCallError
from forestprune.cli.parameters import Data, Division, Files

if TYPE_CHECKING:
    from forestprune.interop.source import Source
    from forestprune.tables.block_rows import BlockRows
    from forestprune.tables.rows import Rows

TIMEOUT = 10.0
"""Seconds within which a scheduler must answer."""

MANY = 0.5
"""Share of the rows held out from which on it is said that they are pruned with, too.

Less than that can be chance: of the wines that the package has, a quarter are there twice."""


@dataclass(frozen=True)
class Work:
    """A model, the rows to prune it with, and rows to choose by if there are any.

    `targets` are the columns to predict, none for the model's own predictions; `repeated` is how
    many rows of a validation file are among those to prune with, too.
    """

    source: "Source"
    rows: "Rows | BlockRows"
    held_out: "Rows | None"
    division: Division
    targets: Sequence[str]
    repeated: int = 0

    def arguments(self) -> dict[str, Any]:
        """Return the rows to prune with, as `prune` and `prune_path` take them."""
        return {"X": self.rows.X, "y": self.rows.y, "sample_weight": self.rows.weight}

    def validation_arguments(self) -> dict[str, Any]:
        """Return the rows to choose by, as `prune` and `prune_path` take them."""
        if self.held_out is None:
            return {}
        rows = self.held_out
        return {"X_val": rows.X, "y_val": rows.y, "sample_weight_val": rows.weight}

    @property
    def n_held_out(self) -> int:
        """How many rows there are to choose by."""
        return 0 if self.held_out is None else len(self.held_out)

    @property
    def caution(self) -> str | None:
        """What to think of before the score of the full model is believed, if anything.

        A model is far better on rows that it was trained on than on any others.
        """
        if self.held_out is None or self.division.file is not None or not self.targets:
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

    def described(self, use: str, doing: str = "pruning") -> list[str]:
        """Return lines that say what rows are used, and for what."""
        towards = "" if self.targets else ", towards the model's own predictions"
        line = f"{doing} with {len(self.rows):,} rows{towards}"
        if self.held_out is None:
            return [f"{line}; none are held out."]
        lines = [f"{line}; {use} {len(self.held_out):,} others: {self.division}."]
        return lines if self.caution is None else [*lines, self.caution]


def check_tables(files: Files, data: Data) -> None:
    """Refuse tables that cannot be read or used, before anything is read."""
    from forestprune.tables.files import check_table, is_table

    if is_table(files.model) and not is_table(files.data):
        raise WrongCallError(
            f"MODEL comes first, then DATA, but {files.model.name} is a table: is "
            f"`{files.data.name} {files.model.name}` meant?"
        )
    if not files.model.exists() or comes_by_block(files, data):
        return  # reading it says so
    tables = [file for file in (files.data, data.validation) if file is not None]
    are_csv = [check_table(file) for file in tables]
    if len(tables) == 2 and files.data.samefile(tables[1]):
        raise WrongCallError(
            f"--validation names {tables[1]}, the rows to prune with: give others, which the "
            "model was not trained on, or leave it out."
        )
    if data.decimal != "." and not any(are_csv):
        raise WrongCallError(f"--decimal is for CSV files, but {files.data.name} is not one.")


def prepare(source: "Source", files: Files, data: Data, division: Division) -> Work:
    """Read the rows for a model."""
    from forestprune.tables.features import Features
    from forestprune.tables.labels import Labels
    from forestprune.tables.reader import Reader
    from forestprune.tables.rows import Shares

    if comes_by_block(files, data):
        return _by_block(source, files, data, division)
    targets, origin = _targets(source, data), source.forest.origin
    labels = Labels(origin.classes) if origin is not None and origin.classes else None
    ignored = data.ignore or ()
    reader = Reader(Features.of(source), targets, data.weight, ignored, data.decimal, labels)
    parts = reader.read(
        files.data, Shares(division.share, division.seed) if division.share else None
    )
    if division.file is not None:
        parts += reader.read(division.file)
    if len(parts) == 1:
        return Work(source, parts[0], None, division, targets)
    rows, held_out = parts
    _check_held_out(held_out, division)
    # Of one file, rows that are equal are equal by chance.
    repeated = 0 if division.file is None else held_out.among(rows)
    return Work(source, rows, held_out, division, targets, repeated)


def comes_by_block(files: Files, data: Data) -> bool:
    """Tell whether rows are to be read by the block, so that they need not fit into memory."""
    pattern = any(letter in str(files.data) for letter in "*?[") and not files.data.exists()
    asked = data.batch_rows is not None or data.dask is not None
    return asked or pattern or files.data.is_dir()


def _by_block(source: "Source", files: Files, data: Data, division: Division) -> Work:
    """Open the rows for a model, and read those that are held out."""
    from forestprune.tables.block_rows import read_by_block
    from forestprune.tables.rows import Shares

    if data.decimal != ".":
        raise WrongCallError("--decimal is for one CSV file that fits into memory.")
    if data.dask is not None and data.batch_rows is not None:
        raise WrongCallError(
            "--batch-rows would change nothing with --dask, whose workers read a file at a time: "
            "leave it out."
        )
    targets = _targets(source, data)
    if data.dask is not None:
        _connect(data.dask)
    rows, held_out = read_by_block(
        source,
        files.data,
        division.file,
        Shares(division.share, division.seed) if division.share else None,
        dask=data.dask is not None,
        target=list(targets) or None,
        sample_weight=data.weight,
        ignore=tuple(data.ignore or ()),
        batch_rows=data.batch_rows,
    )
    if held_out is not None:
        _check_held_out(held_out, division)
    return Work(source, rows, held_out, division, targets)


def _connect(address: str) -> None:
    """Let Dask use the scheduler at an address until the command ends."""
    import atexit

    try:
        from distributed import Client
    except ImportError as error:
        raise ImportError(
            "--dask needs Dask, which is not installed: pip install 'forestprune[dask]'"
        ) from error
    try:
        client = Client(address, timeout=TIMEOUT)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TimeoutError) as error:
        raise CommandError(
            f"No Dask scheduler answers at {address} within {TIMEOUT:g} seconds. Is it running, "
            "and can it be reached from here?"
        ) from error
    atexit.register(client.close)


def _check_held_out(held_out: "Rows", division: Division) -> None:
    """Refuse rows to choose by that tell no models apart."""
    y = held_out.y
    if len(held_out) < 2 or (y is not None and bool((y == y[0]).all())):
        alike = f": all have {_written(y[0])}" if y is not None and y.ndim == 1 and y.size else ""
        instead = "leave --validation out" if division.file is not None else "--holdout 0"
        raise CommandError(
            f"The {len(held_out):,} rows to choose by do not differ in what is to be "
            f"predicted{alike}. So no score can tell models apart: give others, or {instead}."
        )


def _written(entry: Any) -> str:
    return repr(entry) if isinstance(entry, str) else f"{entry:g}"


def _targets(source: "Source", data: Data) -> Sequence[str]:
    """Return the columns to predict; none for the model's own predictions."""
    from forestprune.loss import loss_for

    forest = source.forest
    if data.no_target:
        return ()
    if loss_for(forest.origin, labelled=True) is None:
        if data.target and forest.origin is not None:
            raise WrongCallError(
                f"The trees of this {forest.origin.model_class} add up to "
                f"{forest.origin.predicts}, which cannot be compared with a column: leave --target "
                "out to prune towards the model's own predictions."
            )
        return ()
    if not data.target:
        raise WrongCallError(
            "--target is required: name the column that the model predicts, or give --no-target to "
            "prune towards the model's own predictions."
        )
    is_classes = forest.origin is not None and bool(forest.origin.classes)
    wanted = 1 if is_classes else forest.n_outputs
    if len(data.target) != wanted:
        what = "one class" if is_classes else f"{wanted} numbers"
        raise CommandError(
            f"The model predicts {what} a row, but --target names {len(data.target)}: give it once "
            "for each, in order."
        )
    return data.target
