"""CSV files: their columns, and their rows as text, checked to be as long as the first line."""

import csv
import gzip
import importlib
import io
import threading
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from forestprune.exceptions import TableError
from forestprune.system import progress
from forestprune.tables.optional import import_pandas, import_pyarrow

MISSING_WORDS = (
    *("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "-NaN", "-nan", "NULL", "null"),
    *("None", "#NA", "#N/A N/A", "1.#IND", "1.#QNAN", "-1.#IND", "-1.#QNAN"),
)
"""What stands for a missing value in a CSV file."""

_SEPARATORS = (",", ";", "\t")

_SMALLEST_BLOCK = 2**18
_ROWS_A_BLOCK = 64
"""A block must hold a row, and a row may be longer than the names of its columns."""

_PATIENCE = 1.0
"""Seconds that a thread of pyarrow may take to let go of a file."""

_MARKS_OF_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def columns(path: Path) -> list[str]:
    """Return the columns of a file."""
    with _opened(path) as (file, _):
        return _header(file, path).names


def batches(path: Path, wanted: Sequence[int]) -> Generator[Any, None, None]:
    """Yield the rows of some columns, by their numbers, as pyarrow's batches of text.

    Words for missing values are null. Every row must be as long as the first line.
    """
    arrow = import_pyarrow()
    arrow_csv = importlib.import_module("pyarrow.csv")
    with _opened(path) as (file, raw), progress.bar("reading rows", path.stat().st_size) as show:
        header = _header(file, path)
        file.seek(header.end)
        watched = _Watched(file)
        numbers = [str(number) for number in range(len(header.names))]
        included = [numbers[j] for j in wanted]
        reader = None
        try:
            reader = arrow_csv.open_csv(
                arrow.PythonFile(watched.handle(), mode="r"),
                read_options=arrow_csv.ReadOptions(
                    column_names=numbers,  # names may occur twice
                    block_size=max(_SMALLEST_BLOCK, _ROWS_A_BLOCK * header.end),
                    use_threads=False,
                ),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=header.separator, newlines_in_values=True
                ),
                convert_options=arrow_csv.ConvertOptions(
                    include_columns=included,
                    column_types=dict.fromkeys(included, arrow.string()),
                    null_values=MISSING_WORDS,
                    strings_can_be_null=True,
                ),
            )
            for batch in reader:
                show(raw.tell())
                yield batch
        except arrow.ArrowInvalid as error:
            if not watched.anything:
                return  # there are no rows
            _refuse_lengths(path, header)
            if "UTF" in str(error):
                raise _not_utf8(path) from error
            raise
        finally:
            watched.stopped = True
            with suppress(Exception):  # the last row may be half a row
                for _ in reader or ():
                    pass
            reader = None
            watched.wait_for_handle()
        if watched.quotes % 2:
            raise TableError(
                f'{path} could not be read as a CSV file: it has a quote (") that is not closed, '
                "or one within a cell, which must be doubled."
            )


def frame(path: Path, wanted: list[str], texts: Mapping[str, Sequence[Any]], decimal: str) -> Any:
    """Return some columns as a data frame, of the types that pandas gives them.

    `texts` are columns that hold text even if it looks like numbers, with what stands in them.
    """
    for _ in batches(path, [0]):
        pass  # given columns to look for, pandas does not mind rows that are too long
    pandas = import_pandas()
    # To the last digit, else rows may go another way; later versions do so unasked, and complain.
    asked = tuple(map(int, pandas.__version__.split(".")[:2])) < (3, 1)
    exactly = {"float_precision": "round_trip"} if asked else {}
    with (
        _opened(path) as (file, raw),
        progress.bar("reading columns", path.stat().st_size) as show,
    ):
        separator = _header(file, path).separator
        file.seek(0)
        return pandas.read_csv(
            io.BufferedReader(_Watched(file, lambda: show(raw.tell()))),
            sep=separator,
            decimal=decimal,
            usecols=wanted,
            index_col=False,
            low_memory=False,  # else a column could be numbers here and text there
            dtype=dict.fromkeys(texts, str),
            keep_default_na=False,
            na_values={
                name: [word for word in MISSING_WORDS if word not in texts.get(name, ())]
                for name in wanted
            },
            **exactly,
            encoding="utf-8-sig",
        )


@contextmanager
def _opened(path: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Open a file, unpacked if need be; the second is the file as it is."""
    with path.open("rb") as raw:
        if path.suffix.lower() != ".gz":
            yield raw, raw
            return
        with gzip.open(raw) as unpacked:
            yield unpacked, raw  # type: ignore[misc]


class _Header(NamedTuple):
    """The first line of a file."""

    names: list[str]
    end: int
    separator: str


def _header(file: IO[bytes], path: Path) -> _Header:
    """Return the names of the columns, where the line of names ends, and what separates them.

    That is a comma, unless there is none: then a semicolon or a tab, if one separates anything.
    """
    if file.read(2) in _MARKS_OF_UTF16:
        raise _not_utf8(path, " (it begins as UTF-16 does)")
    headers = (_separated(file, path, separator) for separator in _SEPARATORS)
    first = next(headers)
    return first if len(first.names) > 1 else max(first, *headers, key=lambda each: len(each.names))


def _separated(file: IO[bytes], path: Path, separator: str) -> _Header:
    file.seek(0)
    lines = _Lines(file)
    try:
        rows = csv.reader(lines, delimiter=separator, strict=True)
        names = next((row for row in rows if row), None)
    except UnicodeDecodeError as error:
        raise _not_utf8(path) from error
    except csv.Error as error:
        raise TableError(f"{path} could not be read as a CSV file ({error}).") from error
    if names is None:
        raise TableError(f"{path} is empty: a line with the names of the columns is needed.")
    return _Header(names, lines.taken, separator)


def _not_utf8(path: Path, why: str = "") -> TableError:
    return TableError(
        f"{path} could not be read as a CSV file: it must be encoded as UTF-8, and is not{why}. "
        "Save it so, or convert it: iconv -f WINDOWS-1252 -t UTF-8."
    )


def _refuse_lengths(path: Path, header: _Header) -> None:
    """Say which row is the first that is too long or too short, if there is one."""
    expected = len(header.names)
    with _opened(path) as (file, _), suppress(csv.Error):
        lines = (line.decode("utf-8", errors="replace") for line in _any_lines(file))
        reader = csv.reader(lines, delimiter=header.separator)
        begun = 1
        for row in reader:
            if row and len(row) != expected:
                raise TableError(
                    f"{path} could not be read as a CSV file: its first line names {expected} "
                    f"columns, but the row in line {begun:,} has {len(row):,} cells. Mend or "
                    f"remove that row; a cell with {header.separator!r} in it must be quoted."
                )
            begun = reader.line_num + 1


def _any_lines(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file, whether they end as on Unix, on Windows or on old Macs."""
    for line in file:
        yield from line.splitlines(keepends=True)


class _Lines:
    """The lines of a file, and how much of it was taken."""

    def __init__(self, file: IO[bytes]) -> None:
        self.taken = 0
        self._lines = _any_lines(file)

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        encoding = "utf-8" if self.taken else "utf-8-sig"
        self.taken += len(line)
        return line.decode(encoding)


class _Watched(io.RawIOBase):
    """A file that knows what was read of it, and tells `noted` each time.

    Once it is `stopped`, it is at its end.
    """

    def __init__(self, file: IO[bytes], noted: Callable[[], None] | None = None) -> None:
        self._file = file
        self._noted = noted
        self.anything = self.stopped = False
        self.quotes = 0
        self._let_go = threading.Event()

    def readable(self) -> bool:
        """Tell that this file can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read as much as `buffer` can hold."""
        content = b"" if self.stopped else self._file.read(len(buffer))
        buffer[: len(content)] = content
        self.anything = self.anything or bool(content.strip())
        self.quotes += content.count(b'"')
        if self._noted is not None:
            self._noted()
        return len(content)

    def handle(self) -> "_Handle":
        """Return this file for a thread of pyarrow."""
        handle = _Handle(self)
        weakref.finalize(handle, self._let_go.set).atexit = False
        return handle

    def wait_for_handle(self) -> None:
        """Return once no thread has the handle any more.

        One that still has it when Python ends, for instance after an error, would end the process
        with a signal.
        """
        self._let_go.wait(_PATIENCE)


class _Handle(io.RawIOBase):
    """What reads from a watched file, and is gone once nobody does."""

    def __init__(self, watched: _Watched) -> None:
        self._watched = watched

    def readable(self) -> bool:
        """Tell that this file can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read as much as `buffer` can hold."""
        return self._watched.readinto(buffer)
