"""Rows from files, read batch by batch: Parquet, Arrow or CSV, one file, a folder or a glob."""

import glob
import importlib
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Self

import numpy as np

from forestprune.blocks.blocks import Block, LocalBlocks
from forestprune.blocks.dask_blocks import DaskBlocks
from forestprune.blocks.lots import lots
from forestprune.exceptions import TableError
from forestprune.forest.frames import listed
from forestprune.options import require_count
from forestprune.tables.optional import import_pandas, import_pyarrow

MOST_ROWS, FEWEST_ROWS = 2**17, 2**12
"""Rows of a batch, if nobody says."""

BATCH_BYTES = 2**25
"""What the numbers of a batch may take, if nobody says."""

FORMATS = {
    ".parquet": "parquet",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".csv": "csv",
    ".csv.gz": "csv",
}


def open_rows(
    where: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    target: str | Sequence[str] | None = None,
    sample_weight: str | None = None,
    *,
    ignore: Sequence[str] = (),
    batch_rows: int | None = None,
) -> "RowFiles":
    """Open rows in files that need not fit into memory, to be given in place of X and y.

    Nothing but the names and types of columns is read yet. :func:`forestprune.prune` goes through
    the files a few times, batch by batch.

    Parameters
    ----------
    where : str, path, or list of them
        A file, a folder with all that is in it, or a pattern such as ``"rows/*.parquet"``. Parquet,
        Arrow (Feather) and CSV files can be read, of one kind at a time.
    target : str, list of str, or None
        The column to predict; several, if the model predicts several numbers. None to prune towards
        the model's own predictions.
    sample_weight : str or None
        The column with weights of rows.
    ignore : list of str
        Columns that are neither. If the model knows the names of its features, columns that it does
        not know are left out anyhow, and are not even read.
    batch_rows : int or None
        Rows that are read at once. None takes up to 131,072, so that their numbers take 32 MB.

    Returns
    -------
    RowFiles
        It can be gone through as often as one likes, and yields batches (X, y, weights), X being
        pandas data frames in which text is of type "category".

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> import forestprune as fp
    >>> wine = fp.load_wine_quality(as_frame=True)
    >>> model = RandomForestRegressor(20, random_state=0).fit(wine.data, wine.target)
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> wine.data.assign(quality=wine.target).to_csv(folder / "wine.csv", index=False)
    >>> rows = fp.open_rows(folder, target="quality")
    >>> fp.prune(model, rows, max_nodes=500).n_nodes <= 500
    True
    """
    require_count("batch_rows", batch_rows, 1)
    files = _files(where)
    schema, partitioned = _common_schema(files, where)
    targets = [target] if isinstance(target, str) else list(target or ())
    others = [*targets, *([sample_weight] if sample_weight is not None else [])]
    for name in [*others, *ignore]:
        _require(name, schema.names, files[0])
    features = [name for name in schema.names if name not in {*others, *ignore}]
    if batch_rows is None:
        fitting = BATCH_BYTES // (8 * max(len(features), 1))
        batch_rows = int(np.clip(fitting, FEWEST_ROWS, MOST_ROWS))
    return RowFiles(
        tuple(files),
        schema,
        tuple(features),
        tuple(targets),
        sample_weight,
        batch_rows,
        partitioned,
    )


@dataclass(frozen=True, eq=False, repr=False)
class RowFiles(LocalBlocks):
    """Rows in files: see :func:`open_rows`.

    Attributes
    ----------
    files : tuple of Path
    schema : pyarrow.Schema
        All columns that there are, of the types that all files can be read as.
    features : tuple of str
        The columns that are features.
    targets : tuple of str
    weight : str or None
    batch_rows : int
    root : Path or None
        The folder that `where` named: folders in it such as "year=2026" are columns.
    within : (float, float)
        Of lots that rows are given by `seed`, those between these two take part.
    seed : int
    """

    files: tuple[Path, ...]
    schema: Any
    features: tuple[str, ...]
    targets: tuple[str, ...]
    weight: str | None
    batch_rows: int
    root: Path | None = None
    within: tuple[float, float] = (0.0, 1.0)
    seed: int = 0

    @property
    def labelled(self) -> bool:  # type: ignore[override]
        """Whether there is a target."""
        return bool(self.targets)

    def with_features(self, names: Sequence[str] | None, *, underscores: bool = False) -> Self:
        """Return the same rows with the columns that a model knows by name, in its order."""
        if names is None:
            return self
        written = {name.replace(" ", "_") if underscores else name: name for name in self.features}
        for name in names:
            _require(name, list(written), self.files[0], "which the model was trained with")
        return replace(self, features=tuple(written[name] for name in names))

    def blocks(self) -> Iterator[Block]:
        """Yield the rows, batch by batch, file after file."""
        first, columns = 0, [*self.features, *self.targets]
        columns += [] if self.weight is None or self.weight in columns else [self.weight]
        for file in self.files:
            row = 0
            try:
                for batch in self._batches(file, columns):
                    where = f"{file}, rows {row + 1} to {row + batch.num_rows}"
                    here = self._taken(file, row, batch.num_rows)
                    row += batch.num_rows
                    block = self._block(batch if here is None else batch.filter(here), where, first)
                    first += len(block)
                    yield block
            except (TableError, ImportError, MemoryError):
                raise
            except Exception as error:
                lines = str(error).strip().splitlines()
                reason = lines[0] if lines else type(error).__name__
                raise TableError(
                    f"{file} could not be read beyond row {row:,} ({reason})."
                ) from error

    def count(self) -> int:
        """Return how many rows there are."""
        total = 0
        for file in self.files:
            rows = int(_dataset([file], self.schema, self.root).count_rows())
            here = self._taken(file, 0, rows)
            total += rows if here is None else int(np.count_nonzero(here))
        return total

    def divided(self, share: float, seed: int) -> tuple["RowFiles", "RowFiles"]:
        """Return these rows without a share of them, and that share, drawn by chance."""
        return (
            replace(self, within=(share, 1.0), seed=seed),
            replace(self, within=(0.0, share), seed=seed),
        )

    def on_dask(self) -> DaskBlocks:
        """Return the same rows for Dask to read, a file at a time."""
        from dask.delayed import delayed

        parts = [delayed(_read, pure=False)(replace(self, files=(file,))) for file in self.files]
        return DaskBlocks(parts, [str(file) for file in self.files], labelled=self.labelled)

    def marked(self, frame: Any) -> Any:
        """Return a frame whose text is marked as categories, as libraries want it."""
        texts = [name for name in self.features if _kind(self.schema.field(name).type) == "text"]
        return frame.astype(dict.fromkeys(texts, "category")) if texts else frame

    def _taken(self, file: Path, first: int, count: int) -> Any:
        """Return which rows of a file take part; None if all do."""
        if self.within == (0.0, 1.0):
            return None
        # Other lots than those by which samples are drawn, and the same wherever the file lies.
        seed = (zlib.crc32(file.name.encode()) << 32) + self.seed + 1
        lot = lots(np.arange(first, first + count), seed)
        return (lot >= self.within[0]) & (lot < self.within[1])

    def __iter__(self) -> Iterator[tuple[Any, Any, Any]]:
        return ((block.X, block.y, block.weight) for block in self.blocks())

    def _batches(self, file: Path, columns: Sequence[str]) -> Iterator[Any]:
        options = {"batch_size": self.batch_rows, "batch_readahead": 1, "fragment_readahead": 1}
        found = _dataset([file], self.schema, self.root)
        for batch in found.to_batches(columns=list(columns), use_threads=False, **options):
            for start in range(0, batch.num_rows, self.batch_rows):  # some readers give more
                yield batch.slice(start, self.batch_rows)

    def _block(self, batch: Any, where: str, first: int) -> Block:
        frame = batch.select(list(self.features)).to_pandas()
        frame = self.marked(frame)
        targets = [_column(batch, name, where) for name in self.targets]
        y = None if not targets else targets[0] if len(targets) == 1 else np.column_stack(targets)
        weight = None if self.weight is None else _column(batch, self.weight, where)
        return Block(frame, y, weight, where, first)

    def __repr__(self) -> str:
        target = ", ".join(self.targets) or "none"
        return (
            f"RowFiles({len(self.files):,} files, {len(self.features):,} features, "
            f"target {target}, {self.batch_rows:,} rows a batch)"
        )


def _read(rows: RowFiles) -> tuple[Any, Any, Any]:
    """Return all rows of some files at once."""
    parts = list(rows)
    # Parts have categories of their own, which leave text where they differ.
    X = rows.marked(import_pandas().concat([X for X, _, _ in parts], ignore_index=True))
    y, weight = ([each[i] for each in parts] for i in (1, 2))
    return (
        X,
        None if not rows.targets else np.concatenate(y),
        None if rows.weight is None else np.concatenate(weight),
    )


def _column(batch: Any, name: str, where: str) -> Any:
    """Return what stands in a column that may have no gaps."""
    column = batch.column(batch.schema.get_field_index(name))
    if column.null_count:
        gap = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise TableError(
            f"Column {name!r} is empty in {column.null_count:,} of {where}; the first of these "
            f"stands {gap:,} rows below the first.",
            "Drop or fill them.",
        )
    return column.to_pandas().to_numpy()


def _require(name: str, names: Sequence[str], file: Path, about: str = "") -> None:
    if name in names:
        return
    close = get_close_matches(name, names, 1)
    meant = f"is {close[0]!r} meant?" if close else f"it has {listed(list(names))}"
    raise TableError(f"{file} has no column {name!r}{about and ', ' + about} ({meant}).")


# Files


def _files(where: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    """Return the files that are meant, by name."""
    if not isinstance(where, str | os.PathLike):
        found = [file for each in where for file in _files(each)]
        if not found:
            raise TableError("A file, a folder or a pattern is required, got an empty list.")
        return found
    path = Path(where)
    if path.is_dir():
        inside = [file for file in sorted(path.rglob("*")) if _is_visible(file, path)]
        found = [file for file in inside if file.is_file() and _ending(file)]
        if not found:
            raise TableError(f"The folder {path} has no file that ends in {', '.join(FORMATS)}.")
    elif path.exists():
        if not _ending(path):
            raise TableError(f"Rows must be in files that end in {', '.join(FORMATS)}; got {path}.")
        found = [path]
    else:
        pattern = os.fspath(where)  # Path.glob() takes none that begins at the root
        named = map(Path, sorted(glob.glob(pattern, recursive=True)))  # noqa: PTH207
        found = [file for file in named if file.is_file()]
        if not found:
            raise TableError(f"There is no file {path}, and none that fits it as a pattern.")
        strange = [file for file in found if not _ending(file)]
        if strange:
            raise TableError(
                f"Rows must be in files that end in {', '.join(FORMATS)}; got {strange[0]}."
            )
    kinds = sorted({FORMATS[_ending(file)] for file in found})
    if len(kinds) > 1:
        raise TableError(
            f"{path} has files of several kinds ({', '.join(kinds)}).",
            "Name those of one kind, as in rows/*.parquet.",
        )
    return found


def _is_visible(file: Path, folder: Path) -> bool:
    """Tell whether a file is no leftover of a writer, as Spark has them."""
    return not any(part.startswith(("_", ".")) for part in file.relative_to(folder).parts)


def _ending(file: Path) -> str:
    fitting = [ending for ending in FORMATS if file.name.lower().endswith(ending)]
    return max(fitting, key=len, default="")


def _dataset(files: Sequence[Path], schema: Any = None, root: Path | None = None) -> Any:
    import_pyarrow()
    import_pandas()
    dataset = importlib.import_module("pyarrow.dataset")
    kind = FORMATS[_ending(files[0])]
    partitioning = None
    if root is not None:
        partitioning = dataset.partitioning(flavor="hive")
        if schema is not None and (keys := _keys(files[0], root)):
            fields = import_pyarrow().schema([schema.field(key) for key in keys])
            partitioning = dataset.partitioning(fields, flavor="hive")
    return dataset.dataset(
        [os.fspath(file) for file in files],
        schema=schema,
        format=kind,
        partitioning=partitioning,
        partition_base_dir=None if root is None else os.fspath(root),
    )


def _keys(file: Path, root: Path) -> list[str]:
    """Return the columns that names of folders tell."""
    return [part.split("=")[0] for part in file.relative_to(root).parts[:-1] if "=" in part]


def _common_schema(files: list[Path], where: Any) -> tuple[Any, Path | None]:
    """Return the columns of all files; refuse files that have others than the first.

    Also the folder whose own folders tell columns, if there are such.
    """
    pyarrow = import_pyarrow()
    root = Path(where) if isinstance(where, str | os.PathLike) and Path(where).is_dir() else None
    if root is not None and not _keys(files[0], root):
        root = None
    schemas = []
    for file in files:
        try:
            schemas.append(_dataset([file], root=root).schema)
        except (ImportError, MemoryError):
            raise
        except Exception as error:
            lines = str(error).strip().splitlines()
            reason = lines[0] if lines else type(error).__name__
            raise TableError(f"{file} could not be read ({reason}).") from error
    first = schemas[0]
    for file, schema in zip(files, schemas, strict=True):
        _check_alike(first, schema, files[0], file)
    fields = []
    for name in first.names:
        types = {schema.field(name).type for schema in schemas}
        fields.append(pyarrow.field(name, _common_type(types, files[0])))
    return pyarrow.schema(fields), root


def _check_alike(first: Any, schema: Any, first_file: Path, file: Path) -> None:
    """Refuse a file with other columns, or with text in place of numbers."""
    missing = [name for name in first.names if name not in schema.names]
    further = [name for name in schema.names if name not in first.names]
    if missing or further:
        lacks = f"lacks {listed(missing)}" if missing else f"also has {listed(further)}"
        raise TableError(f"{file} has other columns than {first_file}: it {lacks}.")
    if len(set(first.names)) < len(first.names):
        twice = [name for name in first.names if list(first.names).count(name) > 1]
        raise TableError(f"{first_file} has {listed(sorted(set(twice)))} more than once.")
    for name in first.names:
        kinds = [_kind(each.field(name).type) for each in (first, schema)]
        if "nothing" not in kinds and kinds[0] != kinds[1]:
            raise TableError(
                f"Column {name!r} holds {kinds[1]} in {file}, but {kinds[0]} in {first_file}."
            )


def _kind(type_: Any) -> str:
    types = import_pyarrow().types
    if types.is_null(type_):
        return "nothing"
    if types.is_integer(type_) or types.is_floating(type_) or types.is_decimal(type_):
        return "numbers"
    if types.is_boolean(type_):
        return "truth values"
    if types.is_dictionary(type_) or types.is_string(type_) or types.is_large_string(type_):
        return "text"
    return str(type_)


def _common_type(types: set[Any], file: Path) -> Any:
    """Return what all files can be read as; types are of one kind, or of nothing."""
    pyarrow = import_pyarrow()
    told = {each for each in types if not pyarrow.types.is_null(each)}
    if not told:
        return pyarrow.float64()
    if _kind(next(iter(told))) == "numbers" and (len(told) > 1 or _ending(file).startswith(".csv")):
        return pyarrow.float64()  # of a CSV file only the beginning has been looked at
    if len(told) > 1:
        return pyarrow.string()
    return told.pop()
