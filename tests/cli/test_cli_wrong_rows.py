"""Tables that cannot be used: one line says why."""

import gzip
import re

import joblib
import pytest
from shops import (
    RF,
    fails,
    fails_noted,
)
from sklearn.ensemble import (
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

pd = pytest.importorskip("pandas")


TABLES = {
    "empty": (b"", "is empty"),
    "no rows": (b"a,b,c,d,e,y\n", "has no rows"),
    "binary": (b"\x00\xff\xfe\x01" * 50, "could not be read as a CSV|lacks|no column"),
    "latin": ("a,b,c,d,é,y\n1,2,3,4,5,6\n".encode("latin-1"), "could not be read as a CSV file"),
    "other columns": (b"u,v,y\n1,2,3\n", "lacks features of the model: 'a', 'b', 'c', 'd', 'e'"),
    "one missing": (b"a,b,c,d,ee,y\n1,2,3,4,5,6\n", "lacks .*'e'.*'ee' meant"),
    "no target": (b"a,b,c,d,e,Y\n1,2,3,4,5,6\n", "no column 'y'"),
    "text target": (b"a,b,c,d,e,y\n1,2,3,4,5,6\n1,2,3,4,5,six\n", "'y' .* 'six' in row 2"),
    "NaN in target": (b"a,b,c,d,e,y\n1,2,3,4,5,6\n1,2,3,4,5,\n", "1 have none; .* row 2"),
    "infinite target": (b"a,b,c,d,e,y\n1,2,3,4,5,inf\n", "finite number.* row 1"),
    "text feature": (b"a,b,c,d,e,y\n1,2,3,4,5,6\n1,2,x,4,5,6\n", "'c' .*no categories.*'x'.*row 2"),
    "twice": (b"a,b,c,d,e,a,y\n1,2,3,4,5,6,7\n", "more than one column named 'a'"),
    "target twice": (b"a,b,c,d,e,y,y\n1,2,3,4,5,6,7\n", "more than one column named 'y'"),
    "one row": (b"a,b,c,d,e,y\n1,2,3,4,5,6\n", "1 rows, too few to hold out"),
    "colons": (b"a:b:c:d:e:y\n1:2:3:4:5:6\n", "no column 'y'"),
    "a long row with semicolons": (
        b"a;b;c;d;e;y\n1;2;3;4;5;6\n1;2;3;4;5;6;7\n",
        "names 6 columns.* line 3 has 7 .*with ';' in it must be quoted",
    ),
    "decimal commas": (
        b"a;b;c;d;e;y\n1,5;2;3;4;5;6\n",
        r"must be numbers \(the model .* '1,5' in row 1\. Give --decimal , if",
    ),
    "a long entry": (b"a,b,c,d,e,y\n" + b"x" * 10_000 + b",2,3,4,5,6\n", r"'x{80}\.\.\.' in row 1"),
    "longer rows": (b"a,b,c,d,e,y\n1,2,3,4,5,6,7\n1,2,3,4,5,6,7\n", "names 6 .* line 2 has 7"),
    "a long row": (b"a,b,c,d,e,y\n1,2,3,4,5,6\n1,2,3,4,5,6,7\n", "names 6 columns.* line 3 has 7"),
    "a long row, columns to spare": (
        b"a,b,c,d,e,y,u,v\r\n1,2,3,4,5,6,7,8\r\n\r\n1,2,3,4,5,6,7,8,9\r\n",
        "names 8 columns.* line 4 has 9",
    ),
    "a short row": (b"y,a,b,c,d,e\n1,2,3,4,5,6\n1,2,3,4\n", "names 6 columns.* line 3 has 4"),
    "a long row behind a cell with lines": (
        b'"a",b,c,d,e,y,u\n1,2,3,4,5,6,"x\n\ny"\n1,2,3,4,5,6,7,8\n',
        "names 7 columns.* line 5 has 8",
    ),
    "old Mac": (b"a,b,c,d,e,y\r1,2,3,4,5,6\r1,2,3\r", "names 6 columns.* line 3 has 3"),
    "an open quote": (b'a,b,c,d,e,y,u\n1,2,3,4,5,6,"7\n1,2,3,4,5,6,8\n', "quote .* not closed"),
    "an open quote in the names": (b'a,b,"c\n1,2,3\n', "could not be read as a CSV"),
    "UTF-16": ("a,b,c,d,e,y\n1,2,3,4,5,6\n".encode("utf-16"), "UTF-8, and is not .*UTF-16"),
    "latin target": ("a,b,c,d,e,y\n1,2,3,4,5,é\n".encode("latin-1"), "UTF-8, and is not"),
    "nothing but an end of line": (b"\n", "is empty"),
    "no end of line": (b"a,b,c,d,e,y", "has no rows"),
    "a date": (b"a,b,c,d,e,y\n1,2,3,4,5,2024-01-31\n", "'2024-01-31' in row 1"),
    "decimal comma": (b'a,b,c,d,e,y\n1,2,3,4,5,"6,5"\n', "'6,5' in row 1"),
    "underscores": (b"a,b,c,d,e,y\n1,2,3,4,5,1_000\n", "'1_000' in row 1"),
    "nul": (b"a,b,c,d,e,y\n1,2,3,4,5,\x006\n", "'y' .* in row 1"),
    "quote": (b'a,b,c,d,e,y\n"1,2,3,4,5,6\n', "could not be read as a CSV"),
}


@pytest.mark.parametrize("case", TABLES)
def test_tables_that_cannot_be_used(case, shop, tmp_path):
    content, match = TABLES[case]
    rows, out = tmp_path / "rows.csv", tmp_path / "small.npz"
    rows.write_bytes(content)
    fails(tmp_path, "prune", shop / RF, rows, "--target", "y", "-o", out, match=match)
    fails(tmp_path, "path", shop / RF, rows, "--target", "y", "--json", match=match)
    packed = tmp_path / "rows.csv.gz"
    packed.write_bytes(gzip.compress(content))
    fails(tmp_path, "prune", shop / RF, packed, "--target", "y", "-o", out, match=match)


def test_a_long_row_is_refused_where_columns_go_through_something_first(friedman, tmp_path):
    X, y = friedman
    model = make_pipeline(StandardScaler(), RandomForestRegressor(2, random_state=0)).fit(X, y)
    joblib.dump(model, tmp_path / "m.joblib")
    lines = X.assign(y=y, u=1).to_csv(index=False).splitlines()
    lines[7] += ",1"
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    args = ["prune", tmp_path / "m.joblib", tmp_path / "rows.csv", "--target", "y", "--trust"]
    fails(tmp_path, *args, "-o", tmp_path / "s.joblib", match="names 7 columns.* line 8 has 8")


def test_points_are_no_decimal_commas(shop, tmp_path):
    (tmp_path / "rows.csv").write_text("a;b;c;d;e;y\n1,5;2;3;4;5;6\n1.000,5;2;3;4;5;6\n")
    args = ["prune", shop / RF, tmp_path / "rows.csv", "--target", "y", "-o", tmp_path / "s.npz"]
    fails(tmp_path, *args, "--decimal", ",", match=r"must be numbers.*'1\.000,5' in row 2")
    rows = tmp_path / "rows.parquet"
    pd.read_csv(shop / "rows.csv").to_parquet(rows)
    args = ["prune", shop / RF, rows, "--target", "y", "-o", tmp_path / "s.npz", "--decimal", ","]
    fails(tmp_path, *args, match="--decimal is for CSV files, but rows.parquet is not one", code=2)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("PREIS in €", "is 'Preis in €' meant"),
        ("preis", "is 'Preis in €' meant"),
        ("quality", r"it has 'a', 'b', 'c', 'd', 'e' and 2 more; the last is 'Preis in €'\)"),
    ],
)
def test_columns_that_may_be_meant(name, hint, shop, tmp_path):
    (tmp_path / "rows.csv").write_text("a,b,c,d,e,z,Preis in €\n", "utf-8")
    args = ["prune", shop / RF, tmp_path / "rows.csv", "--target", name, "-o", tmp_path / "s.npz"]
    fails(tmp_path, *args, match=rf"no column '{name}' \({hint}")


def test_arrow_streams_are_no_files(shop, tmp_path):
    arrow = pytest.importorskip("pyarrow")
    table = arrow.Table.from_pandas(pd.read_csv(shop / "rows.csv"))
    with arrow.ipc.new_stream(str(tmp_path / "rows.arrow"), table.schema) as stream:
        stream.write_table(table)
    args = ["prune", shop / RF, tmp_path / "rows.arrow", "--target", "y"]
    fails(
        tmp_path,
        *args,
        "-o",
        tmp_path / "s.npz",
        match="it is not one, or it is a stream. Write it with",
    )


def test_times_beyond_python_are_no_numbers(shop, tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = arrow.Table.from_pandas(pd.read_csv(shop / "rows.csv"))
    times = arrow.array([2**62] * len(table), arrow.timestamp("us"))
    column = table.column_names.index("a")
    table = table.set_column(column, "a", times)
    parquet.write_table(table, tmp_path / "rows.parquet")
    args = ["prune", shop / RF, tmp_path / "rows.parquet", "--target", "y"]
    fails(tmp_path, *args, "-o", tmp_path / "s.npz", match=r"must be numbers.*a timestamp\[")


@pytest.mark.parametrize("rows", ["one", "alike"])
def test_rows_that_cannot_choose(rows, shop, tmp_path):
    table = pd.read_csv(shop / "rows.csv")
    others = table[:1] if rows == "one" else table.assign(y=3.0)
    others.to_csv(tmp_path / "others.csv", index=False)
    args = [shop / RF, shop / "rows.csv", "--target", "y", "--validation", tmp_path / "others.csv"]
    match = "rows to choose by do not differ in what is to be predicted"
    fails(tmp_path, "prune", *args, "-o", tmp_path / "s.npz", match=match)
    fails(tmp_path, "path", *args, match=match)


def test_rows_to_choose_by_are_not_those_to_prune_with(shop, tmp_path):
    (tmp_path / "link.csv").symlink_to(shop / "rows.csv")
    args = [shop / RF, shop / "rows.csv", "--target", "y", "--validation", tmp_path / "link.csv"]
    match = "--validation names .*link.csv, the rows to prune with"
    fails(tmp_path, "prune", *args, "-o", tmp_path / "s.npz", match=match, code=2)
    fails(tmp_path, "path", *args, match=match, code=2)


@pytest.mark.parametrize("ending", ["csv.gz", "parquet", "feather", "arrow"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_tables_cut_short(ending, share, shop, friedman, tmp_path):
    X, y = friedman
    whole, rows = X.assign(y=y), tmp_path / f"rows.{ending}"
    if ending == "csv.gz":
        whole.to_csv(rows, index=False)
    else:
        pytest.importorskip("pyarrow")
        whole.to_parquet(rows) if ending == "parquet" else whole.to_feather(rows)
    content = rows.read_bytes()
    rows.write_bytes(content[: int(share * len(content))])
    args = ["prune", shop / RF, rows, "--target", "y", "-o", tmp_path / "small.npz"]
    fails(tmp_path, *args, match="could not be read as|is empty")
    rows.write_bytes(b"a,b\n1,2\n" * 20)
    fails(tmp_path, *args, match=f"{re.escape(str(rows))} could not be read as")


@pytest.mark.parametrize(
    ("args", "match"),
    [
        (["nowhere.csv", "--target", "y"], "no file .*nowhere.csv"),
        (["folder.csv", "--target", "y"], "folder folder.csv has no file that ends in"),
        (["rows.xlsx", "--target", "y"], r"must end in \.csv, .*got rows\.xlsx"),
        (["rows.csv", "--target", "why"], "no column 'why'"),
        (["rows.csv", "--target", "a"], "'a' cannot be more than one of"),
        (["rows.csv", "--target", "y", "--weight", "y"], "'y' cannot be more than one of"),
        (["rows.csv", "--target", "y", "--weight", "comment"], "'comment' .*must be numbers"),
        (["rows.csv", "--target", "y", "--ignore", "a"], "'a' cannot be more than one of"),
        (["rows.csv", "--target", "y", "--validation", "nowhere.csv"], "no file .*nowhere.csv"),
        (["rows.csv", "--target", "y", "--validation", "other.csv"], "other.csv has no column 'y'"),
    ],
)
def test_rows_that_are_not_there(args, match, shop, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "rows.xlsx").write_bytes(b"PK")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    (tmp_path / "rows.csv").write_bytes((shop / "rows.csv").read_bytes())
    fails(tmp_path, "prune", shop / RF, *args, "-o", "small.npz", match=match)


def test_negative_weights_are_refused_by_the_package(shop, friedman, tmp_path):
    X, y = friedman
    X.assign(y=y, w=-1.0).to_csv(tmp_path / "rows.csv", index=False)
    fails_noted(
        tmp_path,
        *("prune", shop / RF, tmp_path / "rows.csv", "--target", "y", "--weight", "w"),
        *("-o", tmp_path / "s.npz"),
        match="^forestprune: --weight must be finite",
    )
