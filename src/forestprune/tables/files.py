"""Files with tables: which columns they have, and reading some of them."""

import importlib
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forestprune.exceptions import TableError
from forestprune.system import progress
from forestprune.tables import csv_files
from forestprune.tables.optional import import_pandas, import_pyarrow

_BATCH = 2**15
"""Rows to be read at once."""

_BUFFER = 2**16
"""Bytes of each column to be read at once."""


@dataclass(frozen=True)
class Table:
    """A file with a table, and the names of its columns in order."""

    path: Path
    columns: list[str]

    @classmethod
    def at(cls, path: Path) -> "Table":
        """Look at the columns of a file."""
        check_table(path)
        format_ = _format_of(path)
        with _attempt(path, format_.name):
            return cls(path, format_.columns(path))

    @property
    def is_written(self) -> bool:
        """Whether numbers are written as text."""
        return _format_of(self.path) is _CSV

    def batches(self, columns: list[str]) -> Generator[Any, None, None]:
        """Yield some columns, in this order, as pyarrow's batches; of a CSV file as text.

        Each must be there once.
        """
        format_, some = _format_of(self.path), False
        with _attempt(self.path, format_.name):
            wanted = [self.columns.index(name) for name in columns]
            with closing(format_.batches(self.path, wanted)) as found:
                for batch in found:
                    some = some or batch.num_rows > 0
                    yield batch
        if not some:
            raise TableError(f"{self.path} has no rows.")

    def frame(
        self, columns: list[str], texts: Mapping[str, Sequence[Any]], decimal: str = "."
    ) -> Any:
        """Return some columns as a data frame, in any order; each must be there once.

        `texts` are columns that hold text even if it looks like numbers, with what stands in them.
        """
        format_ = _format_of(self.path)
        with _attempt(self.path, format_.name), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            frame = format_.frame(self.path, columns, texts, decimal)
        if not len(frame):
            raise TableError(f"{self.path} has no rows.")
        return frame


def check_table(path: Path) -> bool:
    """Refuse what is not a file with a table; tell whether it is a CSV file."""
    if path.is_dir():
        raise TableError(f"A file with a table is required, but {path} is a folder.")
    if not path.exists():
        raise TableError(f"A file with a table is required, but there is no file {path}.")
    return _format_of(path) is _CSV


@contextmanager
def _attempt(path: Path, name: str) -> Iterator[None]:
    """Say which file could not be read, whatever an attempt ends in."""
    try:
        yield
    except (TableError, ImportError, MemoryError):
        raise
    except OSError as error:
        reason = error.strerror or str(error)
    except Exception as error:
        lines = str(error).strip().splitlines()
        reason = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    else:
        return
    raise TableError(f"{path} could not be read as {name} ({reason}).")


# Formats of pyarrow; CSV files have a module of their own


def _parquet_columns(path: Path) -> list[str]:
    return _named_columns(_parquet_file(path).schema_arrow)


def _parquet_batches(path: Path, wanted: Sequence[int]) -> Generator[Any, None, None]:
    file = _parquet_file(path)
    names = [_named_columns(file.schema_arrow)[j] for j in wanted]
    found = file.iter_batches(_BATCH, columns=names, use_threads=False)
    yield from _shown((batch.select(names) for batch in found), file.metadata.num_rows)


def _parquet_file(path: Path) -> Any:
    import_pyarrow()
    parquet = importlib.import_module("pyarrow.parquet")
    return parquet.ParquetFile(path, buffer_size=_BUFFER, pre_buffer=False)


def _arrow_columns(path: Path) -> list[str]:
    with _arrow_file(path) as file:
        return _named_columns(file.schema)


def _arrow_batches(path: Path, wanted: Sequence[int]) -> Generator[Any, None, None]:
    with _arrow_file(path) as file:
        names = [_named_columns(file.schema)[j] for j in wanted]
        fields = sorted(file.schema.names.index(name) for name in names)
    with _arrow_file(path, fields) as file:
        for number in progress.track(
            range(file.num_record_batches), "reading rows", file.num_record_batches
        ):
            yield file.get_batch(number).select(names)


def _arrow_file(path: Path, fields: list[int] | None = None) -> Any:
    arrow, ipc = import_pyarrow(), importlib.import_module("pyarrow.ipc")
    options = ipc.IpcReadOptions(included_fields=fields or [], use_threads=False)
    # Not mapped into memory, where what was read would stay.
    try:
        return ipc.open_file(arrow.OSFile(str(path)), options=options)
    except arrow.ArrowInvalid as error:
        raise TableError(
            f"{path} could not be read as an Arrow file: it is not one, or it is a stream. Write "
            "it with pyarrow.feather.write_feather, or as Parquet."
        ) from error


def _frame_by(reader: str) -> Callable[..., Any]:
    def frame(path: Path, columns: list[str], *_: Any) -> Any:
        import_pyarrow()
        with progress.bar("reading columns", None):
            return getattr(import_pandas(), reader)(path, columns=columns)

    return frame


def _named_columns(schema: Any) -> list[str]:
    """Return the columns of a schema, but for those that were the index of a pandas frame."""
    metadata = schema.pandas_metadata or {}
    index = [name for name in metadata.get("index_columns", ()) if isinstance(name, str)]
    return [name for name in schema.names if name not in index]


def _shown(batches: Iterator[Any], n_rows: int) -> Iterator[Any]:
    """Yield from `batches`, with a bar that counts their rows."""
    done = 0
    with progress.bar("reading rows", n_rows) as show:
        for batch in batches:
            yield batch
            done += batch.num_rows
            show(done)


@dataclass(frozen=True)
class _Format:
    name: str
    columns: Callable[[Path], list[str]]
    batches: Callable[[Path, Sequence[int]], Generator[Any, None, None]]
    frame: Callable[[Path, list[str], Mapping[str, Sequence[Any]], str], Any]


_CSV = _Format("a CSV file", csv_files.columns, csv_files.batches, csv_files.frame)
_ARROW = _Format("an Arrow file", _arrow_columns, _arrow_batches, _frame_by("read_feather"))
_PARQUET = _Format("a Parquet file", _parquet_columns, _parquet_batches, _frame_by("read_parquet"))
_FORMATS = {
    ".csv": _CSV,
    ".csv.gz": _CSV,
    ".parquet": _PARQUET,
    ".arrow": _ARROW,
    ".feather": _ARROW,
}


def is_table(path: Path) -> bool:
    """Tell whether a file is a table by its name."""
    return path.name.lower().endswith(tuple(_FORMATS))


def _format_of(path: Path) -> _Format:
    for ending, format_ in _FORMATS.items():
        if path.name.lower().endswith(ending):
            return format_
    raise TableError(f"A table must end in {', '.join(_FORMATS)}; got {path.name}.")
