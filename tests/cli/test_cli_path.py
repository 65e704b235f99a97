"""`forestprune path`: the trade-off between size and error."""

import json
from itertools import pairwise

import numpy as np
import pytest
from shops import RF, fails, split, succeeds

import forestprune as fp

pd = pytest.importorskip("pandas")


def test_path_is_the_trade_off(shop, friedman, tmp_path):
    X, y = friedman
    X_fit, X_val, y_fit, y_val = split(X, y)
    same = fp.prune_path(shop / RF, X_fit, y_fit, X_val=X_val, y_val=y_val, n_alphas=6)
    args = ["path", shop / RF, shop / "rows.csv", "--target", "y", "--n-alphas", 6]
    files = ["--csv", tmp_path / "p.csv", "--save", tmp_path / "p.npz"]
    result = succeeds(*args, *files, "--json")
    document = json.loads(result.stdout)
    columns = {
        "alpha": same.alphas,
        "nodes": same.n_nodes,
        "trees": same.n_trees,
        "max_depth": same.max_depths,
        "loss": same.losses,
        "objective": same.objectives,
        "r_squared": same.validation.scores,
        "standard_error": same.validation.standard_errors,
        "rmse": same.validation.rmse,
        "mae": same.validation.mae,
    }
    assert list(document["points"][0]) == list(columns)
    assert document["full"]["r_squared"] == pytest.approx(same.validation.full)
    assert document["full"]["rmse"] == pytest.approx(same.validation.full_rmse)
    table = pd.read_csv(tmp_path / "p.csv")
    for name, column in columns.items():
        np.testing.assert_allclose([p[name] for p in document["points"]], column, atol=1e-12)
        np.testing.assert_allclose(table[name], column, atol=1e-12)
    loaded = fp.PruningPath.load(tmp_path / "p.npz")
    np.testing.assert_array_equal(loaded.n_nodes, same.n_nodes)
    np.testing.assert_array_equal(loaded.validation.scores, same.validation.scores)

    lines = succeeds(*args).stdout.splitlines()
    assert len(lines) == 1 + len(same)  # the last point is the full model, which is there once
    assert lines[0].split()[:4] == ["alpha", "nodes", "trees", "depth"]
    assert [line.split()[1] for line in lines[1:]] == [f"{n:,}" for n in same.n_nodes]
    full = fp.Forest.load(shop / RF)
    shown = ["full", f"{full.n_nodes:,}", f"{full.n_trees:,}", str(full.max_depth)]
    assert lines[-1].split()[:5] == [*shown, f"{same.losses[-1]:.4g}"]


def test_path_shows_a_model_once(shop, tmp_path):
    args = ["path", shop / RF, shop / "rows.csv", "--target", "y", "--n-alphas", 60]
    points = json.loads(succeeds(*args, "--json").stdout)["points"]
    models = [(p["nodes"], p["trees"], p["loss"]) for p in points]
    different = 1 + sum(a != b for a, b in pairwise(models))
    assert different < len(points)
    assert len(succeeds(*args).stdout.splitlines()) == 1 + different


def test_path_does_not_replace_its_rows(shop, tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_bytes((shop / "rows.csv").read_bytes())
    args = ["path", shop / RF, rows, "--target", "y", "--csv", rows, "--force"]
    fails(tmp_path, *args, match="would replace.*which is read", code=2)
    model = tmp_path / "m.npz"
    model.write_bytes((shop / RF).read_bytes())
    args = ["path", model, rows, "--target", "y", "--save", model, "--force"]
    fails(tmp_path, *args, match="would replace.*which is read", code=2)


def test_path_with_nothing_held_out_and_options(shop, friedman, tmp_path):
    args = ["path", shop / RF, shop / "rows.csv", "--target", "y", "--n-alphas", 4]
    options = ["--holdout", 0, "--rule", "layer", "--polish", "subset", "--max-trees", 2]
    document = json.loads(succeeds(*args, *options, "--max-depth", 3, "--json").stdout)
    how = {"rule": "layer", "polish": "subset", "max_trees": 2, "max_depth": 3}
    same = fp.prune_path(shop / RF, *friedman, n_alphas=4, **how)
    assert [point["nodes"] for point in document["points"]] == same.n_nodes.tolist()
    assert "r_squared" not in document["points"][0]
    assert document["full"]["r_squared"] is None
    assert "full" in succeeds(*args, *options).stdout


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--quiet"], "nothing would come out: give --csv or --save"),
        (["--csv", "p.txt"], r"p\.txt must end in \.csv"),
        (["--save", "p.joblib"], r"p\.joblib must end in \.npz"),
        (["--max-trees", 2], "--max-trees needs --polish subset"),
        (["--shrinkage", 2, "--shrinkage", 3, "--holdout", 0], "--shrinkage can be repeated only"),
    ],
)
def test_path_that_is_called_wrongly(options, match, tmp_path):
    fails(tmp_path, "path", "m.json", "d.csv", "--target", "y", *options, code=2, match=match)


def test_path_of_several_shrinkages(shop, friedman):
    X_fit, X_val, y_fit, y_val = split(*friedman)
    args = ["path", shop / RF, shop / "rows.csv", "--target", "y", "--n-alphas", 4, "--json"]
    document = json.loads(succeeds(*args, "--shrinkage", 5, "--shrinkage", 50).stdout)
    held_out = {"X_val": X_val, "y_val": y_val}
    same = fp.prune_path(shop / RF, X_fit, y_fit, n_alphas=4, shrinkage=[5, 50], **held_out)
    assert [point["nodes"] for point in document["points"]] == same.n_nodes.tolist()
    assert {point["shrinkage"] for point in document["points"][:-1]} == {5.0, 50.0}
    assert document["points"][-1]["shrinkage"] is None  # the full model


def test_path_quietly(shop, tmp_path):
    args = ["path", shop / RF, shop / "rows.csv", "--target", "y", "--n-alphas", 3, "--quiet"]
    assert succeeds(*args, "--csv", tmp_path / "p.csv").output == ""
    assert (tmp_path / "p.csv").read_text().startswith("alpha,nodes,")
