"""`--polish split`, and `forestprune polish`: what comes out, and what is said of it."""

import json

import joblib
import numpy as np
import pytest
from resplit import FOREST, X_TEST, X_VAL, Y_VAL, X, Y, polished
from shops import fails, succeeds

import forestprune as fp

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("polish")
    fp.Forest.from_model(FOREST).save(folder / "model.npz")
    joblib.dump(FOREST, folder / "model.joblib")
    fp.prune(FOREST, X, Y, max_nodes=30).forest.save(folder / "small.npz")
    names = [f"x{column}" for column in range(5)]
    for file, rows, y in (("rows.csv", X, Y), ("others.csv", X_VAL, Y_VAL)):
        pd.DataFrame(rows, columns=names).assign(y=y).to_csv(folder / file, index=False)
    return folder


@pytest.fixture
def call(folder, tmp_path):
    def call(command, *args, model="model.npz", held_out=True):
        given = [command, folder / model, folder / "rows.csv", "--target", "y"]
        given += ["--validation", folder / "others.csv"] if held_out else ["--holdout", 0]
        given += [] if command == "path" else ["--out", tmp_path / "out.npz", "--force"]
        return [*given, *args]

    return call


def test_prune_does_what_fp_prune_does(call, tmp_path):
    args = call("prune", "--max-nodes", 30, "--polish", "split", "--jobs", 1)
    same = polished(X_val=X_VAL, y_val=Y_VAL)
    document = json.loads(succeeds(*args, "--json").stdout)
    assert document["small"]["nodes"] == same.n_nodes
    assert document["small"]["splits"] == same.n_splits
    assert document["small"]["new_splits"] == same.n_new_splits > 0
    assert document["small"]["rmse"] == pytest.approx(same.validation.rmse)
    assert document["polish"]["taken"] is True
    other = document["polish"]["other"]
    assert other["nodes"] == fp.prune(FOREST, X, Y, max_nodes=30, X_val=X_VAL, y_val=Y_VAL).n_nodes
    assert other["new_splits"] == 0
    assert other["rmse"] > document["small"]["rmse"]

    lines = succeeds(*args).stdout.splitlines()
    assert lines[0].split() == ["full", "only", "pruned", "small", "full", "/", "small"]
    [new] = [line.split() for line in lines if "of these new" in line]
    assert new[-2:] == ["0", str(same.n_new_splits)]
    [rmse] = [line.split() for line in lines if line.startswith("RMSE")]
    assert rmse[-2:] == [f"{other['rmse']:.4g}", f"{document['small']['rmse']:.4g}"]
    assert fp.Forest.load(tmp_path / "out.npz") == same.forest


@pytest.mark.parametrize(
    "asked",
    [
        ("--max-trees", 3),
        ("--max-bytes", 12_000),
        ("--tolerance", 0.0),
        ("--one-standard-error",),
        ("--max-nodes", 30, "--scoring", "neg_mean_absolute_error"),
        (),
    ],
    ids=lambda asked: asked[0] if asked else "nothing",
)
def test_every_way_to_say_how_small(call, asked):
    document = json.loads(succeeds(*call("prune", "--polish", "split", *asked), "--json").stdout)
    assert document["small"]["new_splits"] <= document["small"]["splits"]
    assert set(document["polish"]) == {"taken", "other"}


@pytest.mark.parametrize("held_out", [True, False])
def test_a_given_alpha_and_its_report(call, tmp_path, held_out):
    pytest.importorskip("jinja2")
    asked = (
        "--alpha",
        0.5,
        "--polish",
        "split",
        "--report",
        tmp_path / "out.html",
        "--n-alphas",
        8,
    )
    args = call("prune", *asked, held_out=held_out)
    assert "only pruned" in succeeds(*args).stdout
    page = (tmp_path / "out.html").read_text()
    assert "chosen anew" in page
    assert "--polish split" in page


def test_polish_does_what_fp_polish_does(call, tmp_path):
    pytest.importorskip("jinja2")
    small = fp.Forest.load(call("polish", model="small.npz")[1])
    same = fp.polish(small, X, Y, X_val=X_VAL, y_val=Y_VAL)
    args = call("polish", "--report", tmp_path / "out.html", model="small.npz")
    document = json.loads(succeeds(*args, "--json").stdout)
    assert document["full"]["nodes"] == small.n_nodes
    assert document["small"]["new_splits"] == same.n_new_splits > 0
    assert document["small"]["r_squared"] > document["full"]["r_squared"]
    assert fp.Forest.load(tmp_path / "out.npz") == same.forest
    page = (tmp_path / "out.html").read_text()
    assert "small.npz, with new splits" in page
    assert "forestprune polish small.npz rows.csv" in page
    assert "--polish" not in page
    table = succeeds(*args).stdout
    assert "only pruned" not in table  # that would be the full model
    assert "of these new" in table


def test_it_is_said_if_the_model_stays_as_it_was(call):
    stays = call("polish", "--shrinkage", 1e6, model="small.npz")
    result = succeeds(*stays)
    assert "with new splits" in result.stdout.splitlines()[0]
    assert (
        "new splits are no better by more than chance: the small model is the model as it was"
        in (result.stdout)
    )
    document = json.loads(succeeds(*stays, "--json").stdout)
    assert document["polish"]["taken"] is False
    assert document["polish"]["other"]["r_squared"] < document["small"]["r_squared"]


def test_path_counts_new_splits(call, tmp_path):
    args = call("path", "--polish", "split", "--n-alphas", 6, "--csv", tmp_path / "path.csv")
    points = json.loads(succeeds(*args, "--json").stdout)["points"]
    assert max(point["new_splits"] for point in points) > 0
    assert {point["shrinkage"] for point in points} > {None, 30.0, 150.0}
    table = pd.read_csv(tmp_path / "path.csv")
    assert table["new_splits"].tolist() == [point["new_splits"] for point in points]
    lines = succeeds(*args, "--force").stdout.splitlines()
    assert "new splits" in lines[0]
    assert max(map(len, lines[:-1])) <= 80
    [full] = [line for line in lines if line.strip().startswith("full")]
    assert full == lines[-2]


@pytest.mark.parametrize(("file", "known"), [("out.npz", True), ("out.joblib", False)])
def test_inspect_says_how_many_are_new_where_that_is_known(call, tmp_path, file, known):
    out = tmp_path / file
    args = call("prune", "--max-nodes", 30, "--polish", "split", "--trust", model="model.joblib")
    args[args.index(tmp_path / "out.npz")] = out
    document = json.loads(succeeds(*args, "--json").stdout)["small"]
    count = document["new_splits"] if known else None
    inspect = ["inspect", out, "--trust"]
    assert json.loads(succeeds(*inspect, "--json").stdout)["new_splits"] == count
    table = succeeds(*inspect).stdout
    told = (
        f"{document['new_splits']} of {document['splits']}: the original model does not have them"
    )
    assert (told in table) == known
    text = succeeds(*inspect, "--as", "text").stdout
    assert (" new" in text) == known


@pytest.mark.parametrize("with_path", [True, False])
def test_inspect_of_what_save_wrote(tmp_path, with_path):
    small = polished(X_val=X_VAL, y_val=Y_VAL)
    small.save(tmp_path / "small.npz", with_path=with_path)
    if with_path:
        fails(tmp_path, "inspect", tmp_path / "small.npz", match="read it with PrunedForest.load")
        return
    document = json.loads(succeeds("inspect", tmp_path / "small.npz", "--json").stdout)
    assert document["new_splits"] == small.n_new_splits
    np.testing.assert_array_equal(
        fp.Forest.load(tmp_path / "small.npz").predict(X_TEST), small.predict(X_TEST)
    )


@pytest.mark.parametrize(
    ("args", "match"),
    [
        (("--shrinkage", 1, "--shrinkage", 2, "--holdout", 0), "--shrinkage can be repeated only"),
        (("--holdout", 0, "--scoring", "r2"), "--scoring needs rows to choose by"),
    ],
)
def test_what_polish_refuses(folder, tmp_path, args, match):
    given = ["polish", folder / "small.npz", folder / "rows.csv", "--target", "y"]
    fails(tmp_path, *given, "--out", tmp_path / "out.npz", *args, code=2, match=match)
