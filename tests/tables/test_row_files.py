"""Rows in files, read batch by batch: what is read, and what is refused, by name."""

import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.ensemble import RandomForestRegressor

import forestprune as fp

FRAME = pd.DataFrame(
    {
        "a": np.arange(20),
        "b": np.linspace(0.0, 1.0, 20),
        "kind": pd.Categorical(list("xyzxy") * 4),
        "y": np.arange(20.0) ** 2,
        "w": np.tile([1.0, 2.0], 10),
    }
)


def write(frame, file):
    writers = {".csv": frame.to_csv, ".gz": frame.to_csv}
    if file.suffix in writers:
        writers[file.suffix](file, index=False)
    elif file.suffix == ".parquet":
        frame.to_parquet(file, index=False)
    else:
        frame.to_feather(file)


@pytest.mark.parametrize("ending", ["parquet", "arrow", "feather", "csv", "csv.gz"])
def test_all_rows_come_in_order_as_often_as_wanted(ending, tmp_path):
    for number, part in enumerate((FRAME[:12], FRAME[12:])):
        write(part.reset_index(drop=True), tmp_path / f"part-{number}.{ending}")
    rows = fp.open_rows(tmp_path, target="y", sample_weight="w", batch_rows=5)
    assert "2 files" in repr(rows)
    for _ in range(2):
        parts = list(rows)
        assert max(len(X) for X, _, _ in parts) <= 5
        X = pd.concat([X for X, _, _ in parts], ignore_index=True)
        assert list(X.columns) == ["a", "b", "kind"]
        np.testing.assert_allclose(X[["a", "b"]], FRAME[["a", "b"]])
        assert X.kind.astype(str).tolist() == FRAME.kind.astype(str).tolist()
        np.testing.assert_allclose(np.concatenate([y for _, y, _ in parts]), FRAME.y)
        np.testing.assert_allclose(np.concatenate([w for _, _, w in parts]), FRAME.w)
    first = [block.first for block in rows.blocks()]
    assert first == [0, 5, 10, 12, 17]


def test_files_patterns_and_lists(tmp_path):
    for number in (2, 0, 1):
        write(FRAME[:3].assign(a=number), tmp_path / f"p{number}.parquet")
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / "notes.txt").write_text("")
    files = sorted(tmp_path.glob("*.parquet"))
    for where in (tmp_path, str(tmp_path / "p*.parquet"), files, [str(tmp_path / "p?.parquet")]):
        rows = fp.open_rows(where, target="y", ignore=["kind", "w"])
        assert [int(X.a.iloc[0]) for X, _, _ in rows] == [0, 1, 2]
        assert rows.features == ("a", "b")
    assert next(iter(fp.open_rows(files[0])))[1] is None


def test_folders_can_tell_columns(tmp_path):
    for year in (2025, 2026):
        folder = tmp_path / f"year={year}"
        folder.mkdir()
        write(FRAME[["a", "y"]], folder / "part.parquet")
    rows = fp.open_rows(tmp_path, target="y")
    assert rows.features == ("a", "year")
    assert [X.year.unique().tolist() for X, _, _ in rows] == [[2025], [2026]]


def test_numbers_in_csv_files_may_be_whole_at_first(tmp_path):
    write(pd.DataFrame({"a": [1, 2], "y": [1, 2]}), tmp_path / "0.csv")
    write(pd.DataFrame({"a": [1.5, 2], "y": [1, np.nan]}), tmp_path / "1.csv")
    rows = fp.open_rows(tmp_path, target="a")
    assert [y.tolist() for _, y, _ in rows] == [[1.0, 2.0], [1.5, 2.0]]
    assert np.isnan(list(rows)[1][0].y.iloc[1])


def test_columns_that_a_model_does_not_know_are_not_read(tmp_path):
    write(FRAME, tmp_path / "rows.parquet")
    model = RandomForestRegressor(3, max_depth=3, random_state=0).fit(FRAME[["b", "a"]], FRAME.y)
    rows = fp.open_rows(tmp_path, target="y")
    assert rows.with_features(("b", "a")).features == ("b", "a")
    small = fp.prune(model, rows, max_nodes=9)
    expected = fp.prune(model, FRAME[["b", "a"]], FRAME.y, max_nodes=9)
    np.testing.assert_array_equal(
        small.predict(FRAME[["b", "a"]]), expected.predict(FRAME[["b", "a"]])
    )
    model = RandomForestRegressor(3).fit(FRAME[["a", "b"]].rename(columns={"a": "aa"}), FRAME.y)
    with pytest.raises(ValueError, match=r"no column 'aa', which the model was trained with"):
        fp.prune(model, rows, max_nodes=9)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_text_is_categories_for_models_that_know_some(library, ending, tmp_path):
    module = pytest.importorskip(library)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.random(300), "kind": rng.choice(list("wxyz"), 300)})
    target = frame.a + frame.kind.map(dict(zip("wxyz", (0, 2, -1, 5), strict=True)))
    known = frame.assign(kind=frame.kind.astype("category"))
    if library == "lightgbm":
        model = module.LGBMRegressor(n_estimators=9, n_jobs=1, verbose=-1)
    else:
        model = module.XGBRegressor(n_estimators=9, n_jobs=1, enable_categorical=True)
    model.fit(known, target)
    for number in range(3):
        write(frame.assign(y=target)[number::3], tmp_path / f"{number}.{ending}")
    small = fp.prune(model, fp.open_rows(tmp_path, target="y", batch_rows=40), max_nodes=30)
    expected = fp.prune(model, known, target, max_nodes=30)
    np.testing.assert_allclose(small.predict(known), expected.predict(known), rtol=1e-6)


def test_what_cannot_be_opened_is_said(tmp_path):
    with pytest.raises(ValueError, match="There is no file"):
        fp.open_rows(tmp_path / "none" / "*.parquet", target="y")
    with pytest.raises(ValueError, match=r"has no file that ends in \.parquet"):
        fp.open_rows(tmp_path, target="y")
    write(FRAME, tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="is 'y' meant"):
        fp.open_rows(tmp_path, target="yy")
    with pytest.raises(ValueError, match="no column 'price'"):
        fp.open_rows(tmp_path, target="price")
    with pytest.raises(ValueError, match="batch_rows"):
        fp.open_rows(tmp_path, target="y", batch_rows=0)
    write(FRAME.drop(columns="b"), tmp_path / "second.parquet")
    with pytest.raises(ValueError, match=r"second.parquet has other columns .* lacks 'b'"):
        fp.open_rows(tmp_path, target="y")
    write(FRAME.assign(b="text"), tmp_path / "second.parquet")
    with pytest.raises(ValueError, match=r"Column 'b' holds text in .*second.parquet"):
        fp.open_rows(tmp_path, target="y")
    write(FRAME, tmp_path / "third.csv")
    with pytest.raises(ValueError, match="files of several kinds"):
        fp.open_rows(tmp_path, target="y")
    (tmp_path / "rows.xls").write_text("")
    with pytest.raises(ValueError, match="must be in files that end in"):
        fp.open_rows(tmp_path / "rows.xls", target="y")


def test_what_cannot_be_read_is_said_with_file_and_row(tmp_path):
    table = pa.Table.from_pandas(FRAME.drop(columns="kind"))
    file = tmp_path / "rows.parquet"
    pq.write_table(table, file, row_group_size=5)
    content = bytearray(file.read_bytes())
    begin = pq.ParquetFile(file).metadata.row_group(2).column(0).data_page_offset
    content[begin : begin + 60] = bytes(60)
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"rows\.parquet could not be read beyond row \d+ "):
        list(fp.open_rows(file, target="y", batch_rows=5))
    file.write_bytes(b"no table")
    with pytest.raises(ValueError, match=r"rows\.parquet could not be read \("):
        fp.open_rows(file, target="y")
    with gzip.open(tmp_path / "rows.csv.gz", "wt") as out:
        out.write("a,y\n" + "1,2\n" * 400_000 + "1,word\n")
    with pytest.raises(ValueError, match=r"rows\.csv\.gz could not be read beyond row"):
        list(fp.open_rows(tmp_path / "rows.csv.gz", target="y"))


def test_gaps_in_the_target_are_named(tmp_path):
    write(FRAME, tmp_path / "0.parquet")
    write(FRAME.assign(y=FRAME.y.where(FRAME.index != 7)), tmp_path / "1.parquet")
    with pytest.raises(ValueError, match=r"Column 'y' is empty in 1 of .*1\.parquet, rows 6 to 10"):
        list(fp.open_rows(tmp_path, target="y", batch_rows=5))
    write(FRAME.assign(y="text"), tmp_path / "0.parquet")
    write(FRAME.assign(y="text"), tmp_path / "1.parquet")
    model = RandomForestRegressor(3, max_depth=3).fit(FRAME[["a", "b"]], FRAME.y)
    with pytest.raises(ValueError, match="y must hold numbers") as caught:
        fp.prune(model, fp.open_rows(tmp_path, target="y"), max_nodes=9)
    assert "0.parquet, rows 1 to 20" in caught.value.__notes__[0]
