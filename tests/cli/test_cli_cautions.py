"""What the command line says before a number misleads, and of calls that are nearly right."""

import html
import json
import re
import sys

import numpy as np
import pandas as pd
import pytest
from shops import call, run, succeeds
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor

import forestprune as fp
from forestprune.tables.rows import SOME, Rows

pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """Return a folder with a forest, the rows that it was trained on, and others."""
    folder = tmp_path_factory.mktemp("cautions")
    X, y = make_friedman1(240, n_features=5, noise=2.0, random_state=0)
    table = pd.DataFrame(X, columns=list("abcde")).assign(y=y)
    table[:160].to_csv(folder / "rows.csv", index=False)
    table[160:].to_csv(folder / "others.csv", index=False)
    model = RandomForestRegressor(20, random_state=0).fit(table.loc[:159, list("abcde")], y[:160])
    fp.Forest.from_model(model).save(folder / "model.npz")
    return folder


def prune(shop, *more):
    return ["prune", shop / "model.npz", shop / "rows.csv", "--target", "y", *more]


# Rows that the model may have seen


def test_rows_of_the_training_are_spoken_of(shop, tmp_path):
    out, page = tmp_path / "s.npz", tmp_path / "s.html"
    args = prune(shop, "--max-nodes", 15, "--out", out, "--force")
    caution = "If the model was trained on the rows held out too"
    result = succeeds(*args, "--report", page)
    assert caution in result.stderr
    assert f'<p class="caution">{caution}' in page.read_text("utf-8")
    for other in (["--validation", shop / "others.csv"], ["--holdout", 0]):
        result = succeeds(*args, "--report", page, *other)
        assert caution not in result.stderr
        assert caution not in page.read_text("utf-8")
    own = succeeds(*prune(shop)[:3], "--no-target", "--max-nodes", 15, "--out", out, "--force")
    assert caution not in own.stderr


def test_a_tolerance_out_of_reach_names_the_cure(shop, tmp_path):
    args = prune(shop, "--tolerance", 0, "--max-nodes", 15, "--out", tmp_path / "s.npz")
    result = call(*args)
    assert result.exit_code == 1
    last = result.stderr.splitlines()[-1]
    assert re.search("comes within --tolerance 0", last)
    assert "with --validation." in last
    others = call(*args, "--validation", shop / "others.csv").stderr.splitlines()[-1]
    assert "comes within" in others
    assert "--validation" not in others


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("copied", "spoken_of"), [(1.0, True), (0.6, True), (0.4, False)])
def test_rows_to_choose_by_that_are_pruned_with_are_noticed(copied, spoken_of, shop, tmp_path):
    rows, others = (pd.read_csv(shop / name, dtype=str) for name in ("rows.csv", "others.csv"))
    count = int(copied * len(others))
    mixed = pd.concat([rows[:count], others[count:]])
    mixed[list("yedcba")].to_csv(tmp_path / "mixed.csv", index=False)
    args = [*prune(shop, "--max-nodes", 15)[1:], "--validation", tmp_path / "mixed.csv"]
    noted = f"{count} of the 80 rows held out are among those to prune with"
    for command in (["prune", "--out", tmp_path / "s.npz", "--report"], ["report", "--out"]):
        page = tmp_path / f"{command[0]}.html"
        said = succeeds(*command, page, *args).stderr
        assert (noted in said) == (noted in page.read_text("utf-8")) == spoken_of


def test_equal_rows_are_found_as_one_would():
    rng = np.random.default_rng(0)
    some, others = (rng.integers(0, 3, size=(count, 2)) * 1.5 for count in (50, 9))
    some[some == 3.0] = np.nan
    y, z = (rng.integers(0, 2, size=count).astype(float) for count in (50, 9))
    known = {(repr(row.tolist()), v) for row, v in zip(others, z, strict=True)}
    expected = sum((repr(row.tolist()), v) in known for row, v in zip(some, y, strict=True))
    assert 0 < expected < 50
    assert Rows(some, y, None).among(Rows(others, z, None)) == expected
    frames = [pd.DataFrame(X).astype("category") for X in (some, others)]
    assert Rows(frames[0], y, None).among(Rows(frames[1], z, None)) == expected
    without = sum(repr(row.tolist()) in {text for text, _ in known} for row in some)
    assert Rows(some, None, None).among(Rows(others, None, None)) == without > expected


def test_training_rows_to_choose_by_and_others_to_prune_with(shop, tmp_path):
    names = [shop / "rows.csv", shop / "others.csv"]
    for data, validation in (names, names[::-1]):
        many = pd.concat([pd.read_csv(data)] * 2).reset_index(drop=True)
        many.to_csv(tmp_path / "many.csv", index=False)
        for command in (["prune", "--out", tmp_path / "s.npz", "--force"], ["path"]):
            args = [shop / "model.npz", tmp_path / "many.csv", "--target", "y", "--n-alphas", 5]
            said = succeeds(*command, *args, "--validation", validation).stderr
            swapped = "were the former, not the latter, its training rows?" in said
            assert swapped == (validation == names[0])


def test_rows_by_chance_are_not_said_to_be_swapped(shop, tmp_path):
    rows = pd.concat([pd.read_csv(shop / name) for name in ("rows.csv", "others.csv")] * 20)
    rows.sort_values("y").to_csv(tmp_path / "sorted.csv", index=False)
    args = ["prune", shop / "model.npz", tmp_path / "sorted.csv", "--target", "y", "--alpha", 1]
    said = succeeds(*args, "--holdout", 0.5, "--out", tmp_path / "s.npz").stderr
    assert "training rows?" not in said
    assert "among those to prune with" not in said  # all are, by chance


def test_rows_without_weight_say_nothing(shop, tmp_path):
    rows = pd.read_csv(shop / "rows.csv").assign(w=0.0)
    many = pd.concat([rows] * 30).reset_index(drop=True)
    many.loc[1, "w"] = many.loc[2, "w"] = 1.0  # neither of which is among some of the rows
    assert not many["w"].to_numpy()[:: -(-len(many) // SOME)].any()
    many.to_csv(tmp_path / "many.csv", index=False)
    pd.read_csv(shop / "others.csv").assign(w=1.0).to_csv(tmp_path / "val.csv", index=False)
    more = pd.concat([pd.read_csv(tmp_path / "val.csv")] * 2)
    more.to_csv(tmp_path / "val.csv", index=False)
    args = ["prune", shop / "model.npz", tmp_path / "many.csv", "--target", "y", "--weight", "w"]
    validation = ["--validation", tmp_path / "val.csv", "--max-nodes", 15]
    assert "training rows?" not in succeeds(*args, *validation, "-o", tmp_path / "s.npz").stderr


def test_some_rows_are_spread_over_all():
    rows = Rows(np.arange(5000)[:, np.newaxis], np.arange(5000.0), None)
    before = rows.some()
    assert 1500 < len(before) <= SOME
    assert before.y[-1] > 4990
    assert rows.hand_over().shape == (5000, 1)
    assert len(rows) == 5000
    np.testing.assert_array_equal(rows.some().X, before.X)
    np.testing.assert_array_equal(rows.some().X[:, 0], rows.some().y)


def test_cells_that_cannot_be_compared_are_no_reason_to_stop():
    cells = pd.DataFrame({"a": [[1, 2], [3]]})
    assert Rows(cells, None, None).among(Rows(cells, None, None)) == 0


# Where no tree is left


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--tolerance", 5],
            r"A constant comes within --tolerance 5\.0 of the full model",
        ),
        (["--alpha", 1e9], r"no tree is left at --alpha 1e\+09: a smaller one keeps more\."),
    ],
)
def test_a_constant_is_explained(options, said, shop, tmp_path):
    result = call(*prune(shop, *options, "--out", tmp_path / "s.npz"))
    assert re.search(said, result.stderr)
    assert "does best" not in result.stderr


# What machines and reports are told


def test_the_target_and_the_shrinkage_are_told(shop, tmp_path):
    args = ["--json", "--force", "--out", tmp_path / "s.npz"]
    for size in (["--max-nodes", 15], ["--alpha", 5]):
        document = json.loads(succeeds(*prune(shop, *size, "--shrinkage", 31), *args).stdout)
        assert document["target"] == ["y"]
        assert document["shrinkage"] == 31.0
    assert json.loads(succeeds(*prune(shop, "--alpha", 5), *args).stdout)["shrinkage"] == 100.0
    layers = ["--alpha", 5, "--rule", "layer"]
    assert json.loads(succeeds(*prune(shop, *layers), *args).stdout)["shrinkage"] is None


def test_without_rows_held_out_the_loss_is_shown(shop, tmp_path):
    args = prune(shop, "--max-nodes", 15, "--holdout", 0, "--force", "--out", tmp_path / "s.npz")
    loss = json.loads(succeeds(*args, "--json").stdout)["loss"]
    assert f"rows it was pruned with  not measured  {1 - loss:.4f}" in succeeds(*args).stdout


def test_what_was_warned_of_is_said_once_and_reported(tmp_path):
    xgboost = pytest.importorskip("xgboost")
    X, y = make_friedman1(200, n_features=5, random_state=0)
    model = xgboost.XGBRegressor(n_estimators=200, learning_rate=0.9, early_stopping_rounds=3)
    model.fit(X[:100], y[:100], eval_set=[(X[100:], y[100:])], verbose=False)
    model.save_model(tmp_path / "m.json")
    pd.DataFrame(X).assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    code, _, stderr = run(
        *("prune", tmp_path / "m.json", tmp_path / "rows.csv", "--target", "y"),
        *("--max-nodes", 15, "--out", tmp_path / "s.json", "--report", tmp_path / "s.html"),
    )
    assert code == 0
    advice = f"model.get_booster()[:{model.best_iteration + 1}].save_model(...)"
    assert stderr.count(advice) == 1
    assert advice in html.unescape((tmp_path / "s.html").read_text("utf-8"))


# Categories


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Return a folder with a model that knows stores 1, 2 and 3."""
    xgboost = pytest.importorskip("xgboost")
    folder = tmp_path_factory.mktemp("stores")
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"store": rng.integers(1, 4, 300), "size": rng.normal(size=300)})
    y = X["size"] + 2.0 * (X["store"] == 2)
    model = xgboost.XGBRegressor(n_estimators=10, enable_categorical=True)
    model.fit(X.astype({"store": "category"}), y)
    if not any(fp.Forest.from_model(model).input.categories or ()):
        pytest.skip("this XGBoost does not keep the names of categories")
    model.save_model(folder / "m.json")
    X.assign(y=y).to_csv(folder / "rows.csv", index=False)
    return folder


def pruned_stores(stores, folder, table, *more):
    args = ["prune", stores / "m.json", table, "--target", "y", "--max-nodes", 20]
    return call(*args, "--out", folder / "s.json", *more)


def test_whole_numbers_with_gaps_are_categories_still(stores, tmp_path):
    pytest.importorskip("jinja2")
    rows = pd.read_csv(stores / "rows.csv")
    rows.loc[::7, "store"] = np.nan
    rows.to_csv(tmp_path / "gaps.csv", index=False)
    result = pruned_stores(stores, tmp_path, tmp_path / "gaps.csv", "--report", tmp_path / "r.html")
    assert result.exit_code == 0, result.stderr


def test_the_cell_that_is_wrong_is_named(stores, tmp_path):
    rows = pd.read_csv(stores / "rows.csv").astype({"store": object})
    rows.loc[4, "store"] = "red"
    rows.to_csv(tmp_path / "red.csv", index=False)
    said = pruned_stores(stores, tmp_path, tmp_path / "red.csv").stderr
    assert "has 'red' in row 5, a category that the model has not seen in training" in said
    assert "it knows 1, 2, 3. Leave such rows out (1 of 300)" in said
    rows = pd.read_csv(stores / "rows.csv").astype({"store": str})
    rows.to_parquet(tmp_path / "text.parquet")
    said = pruned_stores(stores, tmp_path, tmp_path / "text.parquet").stderr
    assert "but the model knows 1, 2, 3: write them as numbers, or as text" in said


# Calls that are nearly right


def test_a_model_and_its_rows_in_the_wrong_order(shop, tmp_path):
    result = call("prune", shop / "rows.csv", shop / "model.npz", "--out", tmp_path / "s.npz")
    assert result.exit_code == 2
    assert "MODEL comes first, then DATA" in result.stderr
    assert "`model.npz rows.csv`" in result.stderr


def test_a_feature_cannot_be_the_target(shop, tmp_path):
    args = ["prune", shop / "model.npz", shop / "rows.csv", "--target", "a"]
    result = call(*args, "--out", tmp_path / "s.npz")
    assert result.exit_code == 1
    assert "it can be nothing else here: name another column." in result.stderr


def test_points_where_commas_were_said(shop, tmp_path):
    result = call(*prune(shop, "--decimal", ",", "--out", tmp_path / "s.npz"))
    assert result.exit_code == 1
    assert "Leave --decimal , out if that is a decimal point." in result.stderr


def test_a_model_in_words_is_not_quiet(shop):
    result = call("inspect", shop / "model.npz", "--as", "text", "--quiet")
    assert result.exit_code == 2
    assert "nothing would come out" in result.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="a folder of Linux's")
def test_a_folder_that_takes_no_files_is_refused_at_once(shop):
    result = call(*prune(shop, "--max-nodes", 15, "--out", "/proc/s.npz"))
    assert result.exit_code == 1
    assert result.stderr.startswith("forestprune: /proc/s.npz cannot be written")
    assert result.stderr.count("\n") == 1
