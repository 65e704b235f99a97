"""Files with tables: which columns they have, and reading some of them."""

import importlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from forestprune.cli.failures import CommandError

MISSING_WORDS = (
    *("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "-NaN", "-nan", "NULL", "null"),
    *("None", "#NA", "#N/A N/A", "1.#IND", "1.#QNAN", "-1.#IND", "-1.#QNAN"),
)
"""What stands for a missing value in a CSV file."""


def import_pandas(needed: Sequence[str] = ("pandas",)) -> Any:
    """Return pandas; say how to install it if it, or what it needs, is not there."""
    for name in needed:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise CommandError(
                f"Reading tables needs {name}, which is not installed: pip install "
                '"forestprune[data]"'
            ) from error
    return importlib.import_module("pandas")


@dataclass(frozen=True)
class Table:
    """A file with a table.

    Attributes
    ----------
    path : Path
    columns : list of str
        Its columns, in order.
    """

    path: Path
    columns: list[str]

    @classmethod
    def at(cls, path: Path) -> "Table":
        """Look at the columns of a file."""
        if path.is_dir():
            raise CommandError(f"A file with a table is required, but {path} is a folder.")
        if not path.exists():
            raise CommandError(f"A file with a table is required, but there is no file {path}.")
        format_ = _format_of(path)
        columns = _attempt(path, format_.name, partial(format_.columns, path))
        return cls(path, columns)

    def read(self, columns: list[str], texts: Mapping[str, Sequence[Any]]) -> Any:
        """Return some columns as a data frame, in any order.

        Parameters
        ----------
        columns : list of str
            Each must be there once.
        texts : mapping of str to sequence
            Columns that hold text even if it looks like numbers, with what stands in them.
        """
        format_ = _format_of(self.path)
        frame = _attempt(self.path, format_.name, partial(format_.read, self.path, columns, texts))
        if not len(frame):
            raise CommandError(f"{self.path} has no rows.")
        return frame


def _attempt(path: Path, name: str, read: Callable[[], Any]) -> Any:
    """Call `read`; whatever it ends in, say which file could not be read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return read()
    except (CommandError, MemoryError):
        raise
    except OSError as error:
        reason = error.strerror or str(error)
    except Exception as error:
        lines = str(error).strip().splitlines()
        reason = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    raise CommandError(f"{path} could not be read as {name} ({reason}).")


# One pair of functions a format


def _csv_columns(path: Path) -> list[str]:
    pandas = import_pandas()
    try:
        first = pandas.read_csv(
            path,
            header=None,
            nrows=1,
            dtype=str,
            keep_default_na=False,
            encoding="utf-8-sig",
            compression=_compression(path),
        )
    except pandas.errors.EmptyDataError as error:
        raise CommandError(
            f"{path} is empty: a line with the names of the columns is needed."
        ) from error
    return [str(name) for name in first.iloc[0]]


def _read_csv(path: Path, columns: list[str], texts: Mapping[str, Sequence[Any]]) -> Any:
    pandas = import_pandas()
    with warnings.catch_warnings():
        # Rows that are longer than the first line would be cut, and only a warning says so.
        warnings.simplefilter("error", pandas.errors.ParserWarning)
        return pandas.read_csv(
            path,
            # Given columns to look for, pandas no longer minds rows that are too long.
            usecols=None if len(columns) == len(_csv_columns(path)) else columns,
            index_col=False,
            dtype=dict.fromkeys(texts, str),
            keep_default_na=False,
            na_values={
                name: [word for word in MISSING_WORDS if word not in texts.get(name, ())]
                for name in columns
            },
            **_exactly(pandas),
            encoding="utf-8-sig",
            compression=_compression(path),
        )


def _exactly(pandas: Any) -> dict[str, str]:
    """Return what makes pandas read numbers to the last digit: else rows may go another way."""
    major, minor = (int(part) for part in pandas.__version__.split(".")[:2])
    # Later versions always do, and do not like to be asked.
    return {"float_precision": "round_trip"} if (major, minor) < (3, 1) else {}


def _compression(path: Path) -> str | None:
    return "gzip" if path.suffix.lower() == ".gz" else None


def _parquet_columns(path: Path) -> list[str]:
    import_pandas(("pandas", "pyarrow"))
    return _named_columns(importlib.import_module("pyarrow.parquet").read_schema(path))


def _read_parquet(path: Path, columns: list[str], _texts: Mapping[str, Sequence[Any]]) -> Any:
    return import_pandas().read_parquet(path, engine="pyarrow", columns=columns)


def _arrow_columns(path: Path) -> list[str]:
    import_pandas(("pandas", "pyarrow"))
    arrow = importlib.import_module("pyarrow")
    with arrow.memory_map(str(path)) as file:
        return _named_columns(importlib.import_module("pyarrow.ipc").open_file(file).schema)


def _read_arrow(path: Path, columns: list[str], _texts: Mapping[str, Sequence[Any]]) -> Any:
    return import_pandas().read_feather(path, columns=columns)


def _named_columns(schema: Any) -> list[str]:
    """Return the columns of a schema, but for those that were the index of a pandas frame."""
    metadata = schema.pandas_metadata or {}
    index = [name for name in metadata.get("index_columns", ()) if isinstance(name, str)]
    return [name for name in schema.names if name not in index]


@dataclass(frozen=True)
class _Format:
    name: str
    columns: Callable[[Path], list[str]]
    read: Callable[[Path, list[str], Mapping[str, Sequence[Any]]], Any]


_CSV = _Format("a CSV file", _csv_columns, _read_csv)
_ARROW = _Format("an Arrow file", _arrow_columns, _read_arrow)
_FORMATS = {
    ".csv": _CSV,
    ".csv.gz": _CSV,
    ".parquet": _Format("a Parquet file", _parquet_columns, _read_parquet),
    ".arrow": _ARROW,
    ".feather": _ARROW,
}


def _format_of(path: Path) -> _Format:
    for ending, format_ in _FORMATS.items():
        if path.name.lower().endswith(ending):
            return format_
    raise CommandError(f"A table must end in {', '.join(_FORMATS)}; got {path.name}.")
