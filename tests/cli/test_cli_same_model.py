"""The command line and Python make the same model of the same rows, and say the same of it."""

import json

import numpy as np
import pytest
from shops import fails, fitted, split, succeeds

import forestprune as fp

pd = pytest.importorskip("pandas")

FILES = {"sklearn": "sklearn.joblib", "xgboost": "xgboost.json", "lightgbm": "lightgbm.txt"}


@pytest.fixture(scope="module")
def tables(friedman, tmp_path_factory):
    """Write the rows to prune with and those to choose by to files of their own."""
    folder = tmp_path_factory.mktemp("tables")
    X, y = friedman
    X_fit, X_val, y_fit, y_val = split(X, y)
    for name, rows, target in (("train", X_fit, y_fit), ("validation", X_val, y_val)):
        rows.assign(y=target).to_csv(folder / f"{name}.csv", index=False)
    return folder


@pytest.mark.sampled(5)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("library", FILES)
@pytest.mark.parametrize(
    ("flags", "options"),
    [
        ([], {}),
        (["--max-nodes", 40], {"max_nodes": 40}),
        (
            ["--tolerance", 0.2, "--confidence", 0.9, "--max-depth", 4],
            {"tolerance": 0.2, "confidence": 0.9, "max_depth": 4},
        ),
        (["--max-bytes", 9000], {"max_bytes": 9000}),
    ],
    ids=["best", "max_nodes", "tolerance", "max_bytes"],
)
def test_the_same_model(library, flags, options, shop, friedman, tables, tmp_path):
    X, y = friedman
    model = fitted(library, X, y)  # with the options of its class, where the file has a Booster
    file = FILES[library]
    out = tmp_path / f"small.{file.partition('.')[2]}"
    result = succeeds(
        *("prune", shop / file, tables / "train.csv", "--validation", tables / "validation.csv"),
        *("--target", "y", "--out", out, "--trust", "--json", *flags),
    )
    X_fit, X_val, y_fit, y_val = split(X, y)
    ending = out.suffix[1:]
    small = fp.prune(model, X_fit, y_fit, X_val=X_val, y_val=y_val, format=ending, **options)
    written = fp.Forest.from_file(out, trust=True)
    if "max_bytes" in options and library != "sklearn":
        # The parameters of a class take some bytes that those of a Booster do not.
        assert out.stat().st_size <= 9000
        assert small.n_bytes <= 9000
        return
    assert written.n_nodes == small.n_nodes
    np.testing.assert_allclose(written.predict(X), small.predict(X), rtol=1e-6)
    document, found = json.loads(result.stdout), small.validation
    assert document["alpha"] == pytest.approx(small.alpha)
    for name, score, rmse, mae in (
        ("small", found.score, found.rmse, found.mae),
        ("full", found.full_score, found.full_rmse, found.full_mae),
    ):
        said = document[name]
        assert said["r_squared"] == pytest.approx(score)
        assert said["rmse"] == pytest.approx(rmse)
        assert said["mae"] == pytest.approx(mae)


def test_errors_in_units_of_the_target_are_shown(shop, tables, tmp_path):
    command = ["prune", shop / "sklearn.npz", tables / "train.csv", "--max-nodes", 40]
    command += ["--validation", tables / "validation.csv", "--out", tmp_path / "small.npz"]
    document = json.loads(succeeds(*command, "--target", "y", "--json").stdout)
    shown = succeeds(*command, "--target", "y", "--force").stdout
    for name in ("RMSE", "MAE"):
        (line,) = [line for line in shown.splitlines() if line.startswith(name)]
        assert line.startswith(f"{name}, in units of the target")
        numbers = [f"{document[which][name.lower()]:.4g}" for which in ("full", "small")]
        assert line.split()[-2:] == numbers


def test_without_a_target_nothing_is_in_its_units(shop, tables, tmp_path):
    command = ["prune", shop / "sklearn.npz", tables / "train.csv", "--max-nodes", 40]
    command += ["--validation", tables / "validation.csv", "--out", tmp_path / "small.npz"]
    command += ["--no-target", "--force"]
    document = json.loads(succeeds(*command, "--json").stdout)
    for which in ("full", "small"):
        assert (document[which]["rmse"], document[which]["mae"]) == (None, None)
    shown = succeeds(*command).stdout
    assert "R squared of the model's own prediction" in shown
    assert "RMSE" not in shown
    path = ["path", shop / "sklearn.npz", tables / "train.csv", "--n-alphas", 4, "--no-target"]
    assert "own" in succeeds(*path).stdout
    document = json.loads(succeeds(*path, "--json").stdout)
    assert "rmse" not in document["points"][0]
    assert document["full"]["rmse"] is None


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--confidence", 0.9], "--confidence is for --tolerance: give that too"),
        (["--confidence", 1, "--tolerance", 0.1], "--confidence must be below 1, got 1"),
        (["--confidence", 0.4, "--tolerance", 0.1], "--confidence.*greater than or equal to 0.5"),
    ],
)
def test_confidence_called_wrongly(options, match, tmp_path):
    args = ("prune", "m.json", "d.csv", "--target", "y", "--out", "small.json", *options)
    fails(tmp_path, *args, code=2, match=match)
