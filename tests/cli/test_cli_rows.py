"""Tables on the command line: formats, columns, categories."""

import joblib
import numpy as np
import pytest
from shops import NAMES, RF, fails, split, succeeds
from sklearn.datasets import make_friedman1
from sklearn.ensemble import (
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import forestprune as fp
from forestprune.tables import files as table_files

pd = pytest.importorskip("pandas")


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "CSV", "parquet", "feather", "arrow"])
def test_tables_of_every_format(ending, shop, friedman, tmp_path):
    X, y = friedman
    table, path = X.assign(y=y, text="x"), tmp_path / f"rows.{ending}"
    if ending.lower().startswith("csv"):
        table.to_csv(path, index=False)
    else:
        pytest.importorskip("pyarrow")
        # A column that was an index is none.
        table.to_parquet(path) if ending == "parquet" else table.to_feather(path)
    out = tmp_path / "small.npz"
    succeeds("prune", shop / RF, path, "--target", "y", "--max-nodes", 40, "--out", out)
    X_fit, X_val, y_fit, y_val = split(X, y)
    same = fp.prune(shop / RF, X_fit, y_fit, max_nodes=40, X_val=X_val, y_val=y_val)
    np.testing.assert_array_equal(fp.Forest.load(out).predict(X), same.predict(X))


@pytest.fixture
def nameless(friedman, tmp_path):
    """Return a model that was fitted to an array, and a table with a column too many."""
    X, y = friedman
    model = RandomForestRegressor(4, max_depth=4, random_state=0).fit(X.to_numpy(), y)
    fp.Forest.from_model(model).save(tmp_path / "m.npz")
    X.assign(y=y, id=range(len(y))).to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path


def test_a_model_without_names_takes_columns_in_order(nameless, friedman):
    X, y = friedman
    out = nameless / "small.npz"
    args = ["prune", nameless / "m.npz", nameless / "rows.csv", "--target", "y", "--out", out]
    fails(nameless, *args, match="takes 5 features .* has 6 columns besides 'y'.*--ignore")
    fails(nameless, *args, "--ignore", "ix", match="no column 'ix'")
    succeeds(*args, "--ignore", "id", "--max-nodes", 30)
    X_fit, X_val, y_fit, y_val = split(X.to_numpy(), y)
    same = fp.prune(nameless / "m.npz", X_fit, y_fit, max_nodes=30, X_val=X_val, y_val=y_val)
    np.testing.assert_array_equal(fp.Forest.load(out).predict(X), same.predict(X.to_numpy()))


def test_an_index_in_a_parquet_file_is_no_feature(nameless, friedman):
    pytest.importorskip("pyarrow")
    X, y = friedman
    table = X.assign(y=y)
    table.index = np.arange(len(y)) * 3 + 1
    table.to_parquet(nameless / "rows.parquet")
    assert table_files.Table.at(nameless / "rows.parquet").columns == [*NAMES, "y"]
    succeeds(
        *("prune", nameless / "m.npz", nameless / "rows.parquet", "--target", "y"),
        *("--max-nodes", 30, "--out", nameless / "small.npz"),
    )


def colours(friedman, names=("red", "green", "NA", "7", "07")):
    """Return rows with a column of text, some of which looks like numbers, or like none."""
    X, y = friedman
    codes = (X["e"].to_numpy() * len(names)).astype(int)
    text = pd.Categorical.from_codes(codes, list(names))
    return X.assign(e=text), y + 3.0 * (codes % 3)


def with_categories(library, X, y):
    if library == "sklearn":
        with threadpool_limits(1, user_api="openmp"):
            model = HistGradientBoostingRegressor(categorical_features=["e"], max_iter=15)
            return model.fit(X, y)
    module = pytest.importorskip(library)
    if library == "xgboost":
        return module.XGBRegressor(
            n_estimators=12, max_depth=4, n_jobs=1, enable_categorical=True
        ).fit(X, y)
    return module.LGBMRegressor(
        n_estimators=12, num_leaves=12, n_jobs=1, verbose=-1, min_data_per_group=5
    ).fit(X, y)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("library", ["sklearn", "xgboost", "lightgbm"])
@pytest.mark.parametrize("names", [("red", "green", "NA", "7", "07"), (10, 20, 30)])
def test_text_becomes_categories_where_the_model_knows_them(library, names, friedman, tmp_path):
    X, y = colours(friedman, names)
    model = with_categories(library, X, y)
    forest = fp.Forest.from_model(model)
    if library == "xgboost" and not any(forest.input.categories):
        pytest.skip("this XGBoost does not keep the names of categories")
    joblib.dump(model, tmp_path / "m.joblib")
    X.assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    out = tmp_path / "small.joblib"
    args = ["prune", tmp_path / "m.joblib", tmp_path / "rows.csv", "--target", "y", "--trust"]
    succeeds(*args, "--max-nodes", 60, "--out", out)
    X_fit, X_val, y_fit, y_val = split(X, y)
    same = fp.prune(model, X_fit, y_fit, max_nodes=60, X_val=X_val, y_val=y_val)
    assert (same.forest.category_set >= 0).any()
    np.testing.assert_allclose(joblib.load(out).predict(X), same.predict(X), rtol=1e-5)


def test_marked_columns_that_cannot_be_told(friedman, tmp_path):
    pytest.importorskip("lightgbm")
    X, y = colours(friedman)
    X = X.assign(d=pd.Categorical(np.zeros(len(y), int)))  # never split on
    model = with_categories("lightgbm", X, y)
    joblib.dump(model, tmp_path / "m.joblib")
    args = ["prune", tmp_path / "m.joblib", tmp_path / "rows.csv", "--target", "y", "--trust"]
    X.assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    out = tmp_path / "small.joblib"
    fails(tmp_path, *args, "-o", out, match="takes 2 columns of categories .* 1 columns .*: 'e'")
    X.assign(y=y, d="0").to_csv(tmp_path / "rows.csv", index=False, quoting=2)
    table = X.assign(y=y, d=["zero"] * len(y))
    table.to_csv(tmp_path / "rows.csv", index=False)
    succeeds(*args, "-o", out, "--max-nodes", 30)


def test_a_category_never_seen_is_refused_where_the_library_refuses(friedman, tmp_path):
    X, y = colours(friedman, ("red", "green"))
    model = with_categories("xgboost", X, y)
    if not any(fp.Forest.from_model(model).input.categories):
        pytest.skip("this XGBoost does not keep the names of categories")
    joblib.dump(model, tmp_path / "m.joblib")
    X.astype({"e": str}).assign(y=y, e="blue").to_csv(tmp_path / "rows.csv", index=False)
    args = ["prune", tmp_path / "m.joblib", tmp_path / "rows.csv", "--target", "y", "--trust"]
    unseen = "'e' of .*rows.csv has 'blue' in row 1, a category that .* it knows .*160 of 160"
    fails(tmp_path, *args, "-o", tmp_path / "s.joblib", match=unseen)


@pytest.mark.parametrize("separator", [";", "\t"])
@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("steps", [0, 1])
def test_other_separators_and_decimal_commas(separator, decimal, steps, friedman, tmp_path):
    X, y = friedman
    forest = RandomForestRegressor(5, max_depth=4, random_state=0)
    # Rows for a pipeline are read by pandas.
    model = make_pipeline(*[StandardScaler()] * steps, forest).fit(X, y)
    joblib.dump(model, tmp_path / "m.joblib")
    table = X.assign(y=y)
    table.loc[3, "comment"] = "one, two"
    table.to_csv(tmp_path / "plain.csv", index=False)
    table.to_csv(tmp_path / "other.csv", index=False, sep=separator, decimal=decimal)
    command = ["prune", tmp_path / "m.joblib", "--trust", "--target", "y", "--max-nodes", 15]
    small = [tmp_path / "a.joblib", tmp_path / "b.joblib"]
    succeeds(*command, tmp_path / "plain.csv", "-o", small[0])
    mark = [] if decimal == "." else ["--decimal", ","]
    succeeds(*command, tmp_path / "other.csv", *mark, "-o", small[1])
    predictions = [joblib.load(file).predict(X) for file in small]
    np.testing.assert_array_equal(*predictions)


def test_names_that_look_like_markup(tmp_path):
    names = ["<script>", "[red]b[/red]", ":smile:", "a,b", "y\tz"]
    X, y = make_friedman1(80, n_features=5, random_state=0)
    X = pd.DataFrame(X, columns=names)
    model = make_pipeline(RandomForestRegressor(3, max_depth=3, random_state=0)).fit(X, y)
    joblib.dump(model, tmp_path / "[bold]m.joblib")
    X.assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    args = ["prune", tmp_path / "[bold]m.joblib", tmp_path / "rows.csv", "--target", "y", "--trust"]
    result = succeeds(*args, "--max-nodes", 15, "-o", tmp_path / "[red]s.joblib")
    assert "[red]s.joblib" in result.stdout.replace("\n", "")
    assert fp.Forest.from_model(joblib.load(tmp_path / "[red]s.joblib")[-1]).n_nodes <= 15
    shown = succeeds("inspect", tmp_path / "[bold]m.joblib", "--trust").stdout
    assert "[bold]m.joblib" in shown.replace("\n", "").replace(" ", "")
    X.drop(columns="<script>").assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    fails(tmp_path, *args, "-o", tmp_path / "t.joblib", match="lacks .*'<script>'")


def test_ten_thousand_features(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 10000)), columns=[f"f{j}" for j in range(10000)])
    y = X["f7"] + X["f9999"]
    model = RandomForestRegressor(3, max_depth=3, random_state=0).fit(X, y)
    joblib.dump(model, tmp_path / "m.joblib")
    X.assign(y=y)[["y", *X.columns[::-1]]].to_csv(tmp_path / "rows.csv", index=False)
    args = ["prune", tmp_path / "m.joblib", tmp_path / "rows.csv", "--target", "y", "--trust"]
    out = tmp_path / "s.joblib"
    succeeds(*args, "--max-nodes", 15, "-o", out)
    X_fit, X_val, y_fit, y_val = split(X, y)
    same = fp.prune(model, X_fit, y_fit, max_nodes=15, X_val=X_val, y_val=y_val)
    np.testing.assert_allclose(joblib.load(out).predict(X), same.predict(X))
    X.iloc[:, :-3].assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    line = fails(tmp_path, *args, "-o", tmp_path / "t.joblib", match="lacks .*'f9997', 'f9998'")
    assert len(line) < 500


def test_a_wrong_target_is_doubted(shop, friedman, tmp_path):
    X, y = friedman
    X.assign(y=y, id=np.arange(len(y)) - 5000.0).to_csv(tmp_path / "rows.csv", index=False)
    args = [shop / RF, tmp_path / "rows.csv", "--n-alphas", 5]
    for command in (["prune", *args, "-o", tmp_path / "s.npz", "--force"], ["path", *args]):
        doubt = "does worse than a constant on the rows held out"
        assert doubt in succeeds(*command, "--target", "id").stderr
        assert doubt not in succeeds(*command, "--target", "y").stderr
