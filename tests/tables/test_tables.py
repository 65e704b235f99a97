"""Tables from files: numbers in any dress, in pieces, in the precision of a model."""

import gc
import gzip
import pickle
import weakref

import numpy as np
import pytest
from shops import (
    NAMES,
    split,
)
from sklearn.datasets import make_friedman1
from sklearn.ensemble import (
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from threadpoolctl import threadpool_limits

from forestprune.exceptions import TableError
from forestprune.interop.source import Source
from forestprune.tables import csv_files, matrices
from forestprune.tables import files as table_files
from forestprune.tables.features import Features
from forestprune.tables.labels import Labels
from forestprune.tables.reader import Reader
from forestprune.tables.rows import Rows, Shares

pd = pytest.importorskip("pandas")


def test_numbers_are_read_to_the_last_digit(tmp_path):
    numbers = np.random.default_rng(0).normal(size=2000) * 10.0 ** np.arange(-10, 10).repeat(100)
    pd.DataFrame({"a": numbers}).to_csv(tmp_path / "rows.csv", index=False)
    reader = Reader(Features(["a"], 1, "float64"), [], None)
    (rows,) = reader.read(tmp_path / "rows.csv")
    np.testing.assert_array_equal(rows.X["a"], numbers)
    frame = table_files.Table.at(tmp_path / "rows.csv").frame(["a"], {})
    np.testing.assert_array_equal(frame["a"], numbers)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("named", [True, False])
def test_rows_are_copied_once_and_in_the_precision_of_the_model(dtype, named, tmp_path):
    X, y = make_friedman1(50, n_features=5, random_state=0)
    table = pd.DataFrame(X, columns=NAMES)
    table.assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    kind = RandomForestRegressor(2) if dtype == "float32" else HistGradientBoostingRegressor()
    with threadpool_limits(1, user_api="openmp"):
        source = Source.of(kind.fit(table if named else X, y))
    reader = Reader(Features.of(source), ["y"], None)
    for part, size in zip(
        reader.read(tmp_path / "rows.csv", Shares(0.2, 0)), (40, 10), strict=True
    ):
        numbers = part.X.to_numpy() if named else part.X
        assert numbers.dtype == dtype
        assert numbers.shape == (size, 5)
        assert np.shares_memory(source.forest.input.matrix(part.X), numbers)
    (rows,) = reader.read(tmp_path / "rows.csv")
    owner = rows.y if rows.y.base is None else rows.y.base
    assert owner.shape == (50,)  # else the whole frame would live on
    np.testing.assert_array_equal(rows.y, y)


def test_kinds_of_numbers(tmp_path):
    pytest.importorskip("pyarrow")
    from decimal import Decimal

    table = pd.DataFrame(
        {
            "a": pd.array([1, None, 3], dtype="Int64"),
            "b": [True, False, True],
            "c": pd.Categorical([5.0, 7.0, 5.0]),
            "d": [Decimal("1.5"), Decimal("2.5"), None],
            "e": [None, None, None],
            "y": [1.0, 2.0, 3.0],
        }
    )
    table.to_parquet(tmp_path / "rows.parquet")
    (rows,) = Reader(Features(NAMES, 5, "float64"), ["y"], None).read(tmp_path / "rows.parquet")
    expected = [[1, 1, 5, 1.5, np.nan], [np.nan, 0, 7, 2.5, np.nan], [3, 1, 5, np.nan, np.nan]]
    np.testing.assert_array_equal(rows.X.to_numpy(), expected)


def test_a_late_word_makes_a_column_text(tmp_path):
    words = ["1"] * 300_000 + ["x"]
    (tmp_path / "rows.csv").write_text("\n".join(["a,b", *(f"{word},0" for word in words)]))
    frame = table_files.Table.at(tmp_path / "rows.csv").frame(["a"], {})
    assert set(frame["a"]) == {"1", "x"}


NUMBERS = {
    "plain": (b"a,y\n1,2\n3.5,4\n", [1, 3.5]),
    "Windows": (b"\xef\xbb\xbfa,y\r\n1,2\r\n3.5,4\r\n", [1, 3.5]),
    "old Mac": (b"a,y\r1,2\r3.5,4\r", [1, 3.5]),
    "no last end of line": (b"a,y\n1,2\n3.5,4", [1, 3.5]),
    "empty lines": (b"\n\na,y\n\n1,2\n\n3.5,4\n\n", [1, 3.5]),
    "quotes": (b'"a","y"\n"1","2"\n"3.5","4"\n', [1, 3.5]),
    "spaces": (b"a,y\n 1 ,2\n\t3.5,4\n", [1, 3.5]),
    "signs": (b"a,y\n+1,2\n-3.5,4\n", [1, -3.5]),
    "truth": (b"a,y\nTrue,2\nfalse,4\n", [1, 0]),
    "missing": (b"a,y\n,2\nNA,4\nnull,4\n  ,4\n7,4\n", [np.nan] * 4 + [7]),
    "huge": (b"a,y\n123456789012345678901234567890,2\n1e999,4\n", [1.2345678901234568e29, np.inf]),
    "2**53 + 1": (b"a,y\n9007199254740993,2\n", [9007199254740992]),
    "other columns in other encodings": (b"a,u,y\n1,\xe9,2\n", [1]),
    "names twice": (b"u,a,u,y\n0,1,0,2\n", [1]),
    "a cell with lines": (b'u,a,y\n"x,\n""y""\n",1,2\n', [1]),
}


@pytest.mark.parametrize("case", NUMBERS)
@pytest.mark.parametrize("packed", [False, True])
def test_numbers_in_any_dress(case, packed, tmp_path):
    content, expected = NUMBERS[case]
    rows = tmp_path / f"rows.csv{'.gz' if packed else ''}"
    rows.write_bytes(gzip.compress(content) if packed else content)
    (read,) = Reader(Features(["a"], 1, "float64"), ["y"], None).read(rows)
    np.testing.assert_array_equal(read.X["a"], expected)
    assert set(read.y) <= {2.0, 4.0}


@pytest.mark.parametrize("share", [None, 0.25, 0.7])
def test_rows_in_many_pieces(share, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(matrices, "_PIECE", 1000)
    monkeypatch.setattr(table_files, "_BATCH", 77)
    monkeypatch.setattr(csv_files, "_SMALLEST_BLOCK", 3000)
    X, y = make_friedman1(1003, n_features=5, random_state=0)
    table = pd.DataFrame(X, columns=NAMES).assign(y=y, w=np.arange(1003.0))
    table.to_csv(tmp_path / "rows.csv", index=False)
    table.to_parquet(tmp_path / "rows.parquet")
    table.to_feather(tmp_path / "rows.feather", chunksize=99)
    reader = Reader(Features(NAMES[::-1], 5, "float32"), ["y"], "w")
    shares = None if share is None else Shares(share, 3)
    expected = [table] if share is None else split(table, share=share, seed=3)
    for ending in ("csv", "parquet", "feather"):
        parts = reader.read(tmp_path / f"rows.{ending}", shares)
        for part, rows in zip(parts, expected, strict=True):
            np.testing.assert_array_equal(part.X, rows[NAMES[::-1]].astype("float32"))
            np.testing.assert_array_equal(part.y, rows["y"])
            np.testing.assert_array_equal(part.weight, rows["w"])


def test_columns_of_other_kinds_are_refused_by_name(tmp_path):
    pytest.importorskip("pyarrow")
    kinds = {
        "text": ["1", "2", "3"],
        "date": pd.to_datetime(["2024-01-31"] * 3),
        "span": pd.to_timedelta([1, 2, 3], unit="s"),
        "list": [[1.0], [2.0], [3.0]],
        "words": pd.Categorical(["red", "red", "blue"]),
    }
    for name, column in kinds.items():
        rows = tmp_path / f"{name}.parquet"
        pd.DataFrame({"a": column, "y": [1.0, 2.0, 3.0]}).to_parquet(rows)
        with pytest.raises(TableError, match=r"'a' of .* must be numbers.* in row 1\."):
            Reader(Features(["a"], 1, "float64"), ["y"], None).read(rows)


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_rows_that_are_handed_over_are_forgotten(kind):
    X = np.arange(6000.0).reshape(3000, 2)
    given = X.copy() if kind == "array" else pd.DataFrame(X)
    here = weakref.ref(given)
    rows = Rows(given, None, None)
    taken = rows.hand_over()
    assert taken is given
    assert len(rows) == 3000
    np.testing.assert_array_equal(np.asarray(rows.X), X[::2])  # at most 2,000 of them
    del given, taken
    assert here() is None


def test_errors_name_options_as_data_and_leave_names_alone(tmp_path):
    rows = tmp_path / "{rule}.csv"
    rows.write_text("a,{max_nodes},y\n1,2,3\n")
    with pytest.raises(TableError) as caught:
        Reader(Features(None, 1, "float64"), ["y"], None).read(rows)
    assert caught.value.options == ("ignored",)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert "{rule}.csv has 2 columns besides 'y': 'a', '{max_nodes}'." in str(caught.value)
    assert str(caught.value).endswith("Leave the others out with ignored.")
    rows.write_text("a;y\n1,5;3\n")
    with pytest.raises(TableError, match="Give decimal=',' if that is a decimal comma"):
        Reader(Features(["a"], 1, "float64"), ["y"], None).read(rows)
    rows.write_text("a,y\n1,3\n")
    with pytest.raises(TableError, match="of them: give more, or held_out=0"):
        Reader(Features(["a"], 1, "float64"), ["y"], None).read(rows, Shares(0.5, 0))


def test_no_thread_reads_on_after_an_error(tmp_path):
    """One that did while Python ends would end the process with a signal."""
    table = pd.DataFrame({"a": np.linspace(0.0, 1.0, 40_000), "y": "yes"})
    table.assign(y=["no", *table.y[1:]]).to_csv(tmp_path / "rows.csv", index=False)
    reader = Reader(Features(["a"], 1, "float64"), ["y"], None, labels=Labels(["yes", "never"]))
    with pytest.raises(TableError, match="has 'no' in row 1"):
        reader.read(tmp_path / "rows.csv")
    gc.collect()
    assert not [each for each in gc.get_objects() if type(each) is csv_files._Handle]
