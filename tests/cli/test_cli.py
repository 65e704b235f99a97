"""The command line: every command, every format, and one clear line for whatever goes wrong."""

import gzip
import html
import json
import os
import pickle
import re
import shlex
import signal
import subprocess
import sys
import warnings
import weakref
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import joblib
import numpy as np
import pytest
import typer
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_friedman1
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits
from typer.testing import CliRunner

import forestprune as fp
from forestprune.cli import csv_tables, matrices, optional, tables
from forestprune.cli.app import app
from forestprune.cli.failures import CommandError
from forestprune.cli.features import Features
from forestprune.cli.flat import flat
from forestprune.cli.rows import Reader, Rows, Shares
from forestprune.cli.wording import as_flags
from forestprune.forest import registry
from forestprune.interop.source import Source
from forestprune.select import choosing
from forestprune.text import to_formula, to_text

pd = pytest.importorskip("pandas")

NAMES = ["a", "b", "c", "d", "e"]
OTHER_LIBRARIES = ["xgboost", "lightgbm", "catboost"]
ENDINGS = {
    "sklearn": ["joblib", "pkl", "pickle", "skops", "npz"],
    "xgboost": ["json", "ubj", "joblib", "npz"],
    "lightgbm": ["txt", "pkl", "npz"],
    "catboost": ["cbm", "json", "joblib", "npz"],
}

runner = CliRunner()


def call(*args):
    return runner.invoke(app, [str(arg) for arg in args])


def succeeds(*args):
    result = call(*args)
    assert result.exit_code == 0, result.stderr
    return result


def fails(folder, *args, code=1, match):
    """Check that a call ends with one clear line, and changes nothing in the folder."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    result = call(*args)
    assert "Traceback" not in result.output
    assert result.stderr.count("\n") == 1, result.stderr
    assert re.search(match, result.stderr), result.stderr
    assert result.stdout == ""
    assert result.exit_code == code
    assert isinstance(result.exception, SystemExit)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    return result.stderr


# Models and rows, made once


@pytest.fixture(scope="module")
def friedman():
    X, y = make_friedman1(160, n_features=5, noise=0.5, random_state=0)
    return pd.DataFrame(X, columns=NAMES), y


def fitted(library, X, y):
    """Return a small model of a library, as the object whose save_model() writes its files."""
    if library == "sklearn":
        return RandomForestRegressor(8, max_depth=6, random_state=0).fit(X, y)
    module = pytest.importorskip(library)
    if library == "xgboost":
        return module.XGBRegressor(n_estimators=12, max_depth=4, n_jobs=1).fit(X, y)
    if library == "lightgbm":
        model = module.LGBMRegressor(n_estimators=12, num_leaves=12, n_jobs=1, verbose=-1)
        return model.fit(X, y)
    model = module.CatBoostRegressor(
        iterations=12, depth=4, thread_count=1, verbose=0, allow_writing_files=False
    )
    return model.fit(X, y)


@pytest.fixture(scope="module")
def shop(friedman, tmp_path_factory):
    """Return a folder with a table and with models of all libraries that are there."""
    folder = tmp_path_factory.mktemp("shop")
    X, y = friedman
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for library in ENDINGS:
            if library in ("sklearn", *filter(lambda n: _there(n), OTHER_LIBRARIES)):
                model = fitted(library, X, y)
                for ending in ENDINGS[library]:
                    if ending == "npz":
                        fp.Forest.from_model(model).save(folder / f"{library}.npz")
                    elif ending != "skops" or _there("skops"):
                        registry.save_model(model, folder / f"{library}.{ending}")
    # Another order, and columns that no model knows.
    table = X[NAMES[::-1]].assign(comment="x", y=y, w=np.linspace(0.5, 2.0, len(y)))
    table.to_csv(folder / "rows.csv", index=False)
    return folder


def _there(library):
    try:
        __import__(library)
    except ImportError:
        return False
    return True


def need(library, ending):
    if library != "sklearn":
        pytest.importorskip(library)
    if ending == "skops":
        pytest.importorskip("skops")


def split(*columns, share=0.25, seed=0):
    """Return the rows that train_test_split takes, in their order."""
    parts = train_test_split(range(len(columns[0])), test_size=share, random_state=seed)
    return [
        column.iloc[sorted(part)] if hasattr(column, "iloc") else column[sorted(part)]
        for column in columns
        for part in parts
    ]


MODELS = [(library, ending) for library in ENDINGS for ending in ENDINGS[library]]
IDS = [f"{library}-{ending}" for library, ending in MODELS]
RF = "sklearn.npz"
"""A forest that needs no trust and no other library."""


# The program itself


def test_help_and_version():
    listed = succeeds("--help").stdout
    for command in ("inspect", "prune", "path", "report", "demo", "bench"):
        assert command in listed
        text = succeeds(command, "--help").stdout
        assert f"forestprune {command}" in text
        assert "Examples" in text
    assert "--install-completion" in listed
    assert succeeds("--version").stdout == f"forestprune {fp.__version__}\n"
    assert "Usage" in succeeds().stdout


def test_help_says_what_the_program_ends_with():
    text = " ".join(call("--help").stdout.replace("│", " ").split())
    assert "0 if all went well, 1 if not, 2 if it was called wrongly, 130 if it was stopped" in text


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["pr"], ["prune"]),
        ([""], ["inspect", "prune", "path", "demo", "bench"]),
        (["prune", "--max-n"], ["--max-nodes"]),
        (["prune", "--rule", ""], ["subtree", "layer"]),
    ],
)
def test_shells_complete_commands_options_and_choices(words, expected):
    asked = {
        "_FORESTPRUNE_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(["forestprune", *words]),
        "COMP_CWORD": str(len(words)),
    }
    code, stdout, stderr = run(env=asked)
    assert code == 0
    assert set(expected) <= set(stdout.split())
    assert stderr == ""


def test_completion_is_installed_for_the_program_by_its_name(tmp_path):
    # Not looked for among the processes of this machine, which come and go meanwhile.
    undetected = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    env = {"HOME": str(tmp_path), "SHELL": "/bin/bash"} | undetected
    code, stdout, _ = run("--show-completion", "bash", env=env)
    assert code == 0
    assert "_FORESTPRUNE_COMPLETE=complete_bash" in stdout
    assert run("--install-completion", "bash", env=env)[0] == 0
    installed = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any("-F _forestprune_completion forestprune" in p.read_text() for p in installed)


@pytest.mark.parametrize(
    "args",
    [
        ["inspect", "nowhere.json", "--json"],
        ["prune", "nowhere.json", "no.csv", "--target", "y", "-o", "s.json", "--json"],
        ["path", "nowhere.json", "no.csv", "--target", "y", "--json"],
    ],
)
def test_errors_for_machines_are_one_line_on_stderr(args, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fails(tmp_path, *args, match="no file nowhere.json")
    fails(tmp_path, "bench", "--json", "--rows", "1", code=2, match="--rows")


def test_help_says_the_defaults_that_depend():
    text = " ".join(call("prune", "--help").stdout.replace("│", " ").split())
    assert "(default: 0.25, or 0 if --alpha is given)" in text


@pytest.mark.parametrize(
    ("args", "match"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["inspect"], "Missing argument 'MODEL'"),
        (["prune", "m.json", "d.csv", "--target", "y"], "Missing option '--out'"),
        (["prune", "m.json", "d.csv", "-o", "s.json", "--max-nodes", "2"], "--max-nodes.* 3"),
        (["prune", "m.json", "d.csv", "-o", "s.json", "--max-nodes", "x"], "--max-nodes"),
        (["prune", "m.json", "d.csv", "-o", "s.json", "--rule", "magic"], "magic"),
        (["prune", "m.json", "d.csv", "-o", "s.json", "--holdout", "1"], "--holdout"),
        (["prune", "m.json", "d.csv", "-o", "s.json", "--reports", "r.html"], "--reports"),
        (["inspect", "m.json", "n.json"], "unexpected extra argument"),
    ],
)
def test_a_wrong_call_gets_one_line(args, match, tmp_path):
    line = fails(tmp_path, *args, code=2, match=match)
    assert "--help'." in line


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--alpha", 1, "--max-nodes", 9], "--alpha and --max-nodes exclude"),
        (["--alpha", 1, "--one-standard-error"], "--alpha and --one-standard-error exclude"),
        (["--tolerance", 0.1, "--one-standard-error"], "exclude each other"),
        (["--tolerance", 0.1, "--holdout", 0], "--tolerance needs rows to choose by"),
        (["--one-standard-error", "--holdout", 0], "--one-standard-error needs rows"),
        (["--holdout", 0.5, "--validation", "v.csv"], "--holdout and --validation exclude"),
        (["--shrinkage", 1, "--shrinkage", 2, "--alpha", 1], "--shrinkage can be repeated only"),
        (["--shrinkage", 1, "--shrinkage", 2, "--holdout", 0], "--shrinkage can be repeated only"),
        (["--rule", "layer", "--refit"], "--refit needs --rule subtree"),
        (["--joint", "ridge"], "--joint ridge needs --rule layer"),
        (["--weighting", "depth"], "--rule layer"),
        (["--local-search", "random"], "--local-search random needs --rule layer"),
        (["--jobs", 0], "--jobs must be a whole number but 0, got 0"),
        (["--rule", "layer", "--shrinkage", 5], r"--shrinkage .* --refit \(--rule subtree\)"),
        (["--json", "--quiet"], "--json and --quiet exclude"),
    ],
)
def test_what_does_not_go_together_is_told_before_any_file_is_read(options, match, tmp_path):
    args = ["m.json", "d.csv", "--target", "y", "-o", tmp_path / "s.json", *options]
    fails(tmp_path, "prune", *args, code=2, match=match)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            "At alpha=0.1 trees changed after max_iter=5 sweeps: raise max_iter.",
            "At --alpha 0.1 trees changed after --max-iter 5 sweeps: raise --max-iter.",
        ),
        (
            "n_jobs must be None or a whole number but 0, got 0.",
            "--jobs must be a whole number but 0, got 0.",
        ),
        ("local_search=False, or refit=False.", "--local-search off, or --no-refit."),
        ("'max_nodes' and \"max_iter\" are columns; my_rule=1", None),
        ("The tolerance is one; raise tolerance, or polish.", None),
        (
            "shrinkage=[2.0, 30.0] is to be chosen from",
            "--shrinkage [2.0, 30.0] is to be chosen from",
        ),
        ("max_nodes=3, max_bytes=70: no", "--max-nodes 3, --max-bytes 70: no"),
    ],
)
def test_options_are_named_as_on_the_command_line(said, expected):
    assert as_flags(said) == (expected or said)


# inspect


@pytest.mark.parametrize(("library", "ending"), MODELS, ids=IDS)
def test_inspect_says_what_is_in_a_file(library, ending, shop):
    need(library, ending)
    path = shop / f"{library}.{ending}"
    forest = fp.Forest.from_file(path, trust=True)
    text = succeeds("inspect", path, "--trust").stdout
    assert forest.origin.model_class in text
    assert f"{forest.n_nodes:,}" in text
    document = json.loads(succeeds("inspect", path, "--trust", "--json").stdout)
    assert document["library"] == library
    assert document["class"] == forest.origin.model_class
    assert document["predicts"] == "y"
    assert document["trees"] == forest.n_trees
    assert document["nodes"] == forest.n_nodes
    assert document["max_depth"] == forest.max_depth
    assert document["bytes"] == path.stat().st_size
    assert document["features"] == 5
    assert document["features_used"] == len(set(forest.feature.tolist()) - {-1})
    assert {e["from"]: e["trees"] for e in document["depths"] if e["trees"]} == dict(
        zip(*np.unique(forest.depths, return_counts=True), strict=True)
    )


def test_inspect_draws_the_depths(friedman, tmp_path):
    model = RandomForestRegressor(8, random_state=0).fit(*friedman)
    forest = fp.Forest.from_model(model)
    forest.truncate([1, 1, 1, 1, 3, 3, 3, 5]).save(tmp_path / "m.npz")
    lines = succeeds("inspect", tmp_path / "m.npz").stdout.splitlines()
    bars = [line.split() for line in lines[lines.index("trees by depth") + 1 :]]
    assert [bar[0] for bar in bars] == ["1", "2", "3", "4", "5"]
    assert [bar[-1] for bar in bars] == ["4", "0", "3", "0", "1"]
    assert [len(bar[1]) if len(bar) == 3 else 0 for bar in bars] == [40, 0, 30, 0, 10]


def test_inspect_puts_many_depths_together(tmp_path):
    X = np.arange(120.0)[:, np.newaxis]
    y = 1.7 ** X[:, 0]  # each split takes one row off
    forest = fp.Forest.from_model(RandomForestRegressor(30, random_state=0).fit(X, y))
    cuts = np.linspace(1, forest.depths.min(), 30).astype(int)
    forest.truncate(cuts).save(tmp_path / "m.npz")
    document = json.loads(succeeds("inspect", tmp_path / "m.npz", "--json").stdout)
    assert document["max_depth"] > 20
    assert len(document["depths"]) <= 20
    assert sum(entry["trees"] for entry in document["depths"]) == 30
    for entry in document["depths"]:
        assert entry["trees"] == np.sum((cuts >= entry["from"]) & (cuts <= entry["to"]))


def test_inspect_names_the_steps_of_a_pipeline_and_what_is_predicted(friedman, tmp_path):
    X, y = friedman
    boosting = GradientBoostingRegressor(n_estimators=3, loss="quantile", alpha=0.9)
    joblib.dump(make_pipeline(StandardScaler(), boosting).fit(X, y), tmp_path / "m.joblib")
    text = succeeds("inspect", tmp_path / "m.joblib", "--trust").stdout
    assert "StandardScaler, GradientBoostingRegressor" in text
    assert "quantile of y" in text


@pytest.mark.parametrize(("way", "write"), [("text", to_text), ("formula", to_formula)])
def test_inspect_writes_a_small_model_down(way, write, shop, tmp_path):
    small = fp.Forest.from_file(shop / RF, trust=True).truncate([3] * 2 + [0] * 6).compact()
    names = tuple(name + " but much longer than any line" * 9 for name in NAMES)
    small = replace(small, input=replace(small.input, feature_names=names))
    small.save(tmp_path / "m.npz")
    # No line is broken, not even by those who print it.
    expected = write(small) + "\n"
    assert max(map(len, expected.splitlines())) > 250
    assert succeeds("inspect", tmp_path / "m.npz", "--as", way).stdout == expected
    document = json.loads(succeeds("inspect", tmp_path / "m.npz", "--as", way, "--json").stdout)
    assert document[way] == [write(small)]
    assert document["trees"] == small.n_trees


def test_inspect_writes_each_output_down(friedman, tmp_path):
    X, y = friedman
    model = RandomForestRegressor(2, max_depth=1, random_state=0).fit(X, np.column_stack([y, -y]))
    forest = fp.Forest.from_model(model)
    forest.save(tmp_path / "m.npz")
    shown = succeeds("inspect", tmp_path / "m.npz", "--as", "text").stdout
    for output in (0, 1):
        assert f"# Output {output}\n{to_text(forest, output=output)}\n" in shown


def test_a_formula_of_a_large_model_is_refused(friedman, tmp_path):
    model = GradientBoostingRegressor(n_estimators=1001, max_depth=1).fit(*friedman)
    joblib.dump(model, tmp_path / "m.joblib")
    args = ["inspect", tmp_path / "m.joblib", "--trust", "--as", "formula"]
    fails(tmp_path, *args, match="can have 1,000 trees .* but this forest has 1,001")


def test_inspect_quietly_only_checks(shop):
    result = succeeds("inspect", shop / RF, "--quiet")
    assert result.output == ""


# prune: what comes out is what fp.prune returns


@pytest.mark.parametrize(("library", "ending"), MODELS, ids=IDS)
@pytest.mark.filterwarnings("ignore")
def test_the_small_file_predicts_what_prune_would(library, ending, shop, friedman, tmp_path):
    need(library, ending)
    X, y = friedman
    model, out = shop / f"{library}.{ending}", tmp_path / f"small.{ending}"
    result = succeeds(
        *("prune", model, shop / "rows.csv", "--target", "y", "--max-nodes", 60),
        *("--out", out, "--trust", "--json"),
    )
    X_fit, X_val, y_fit, y_val = split(X, y)
    full = registry.load_model(model, trust=True)
    same = fp.prune(full, X_fit, y_fit, max_nodes=60, X_val=X_val, y_val=y_val, random_state=0)
    written = registry.load_model(out, trust=True)
    native = same.forest if ending == "npz" else same.to_native()
    assert type(written) is type(native)
    assert list(tmp_path.iterdir()) == [out]
    small = fp.Forest.from_file(out, trust=True)
    assert small.n_nodes == fp.Forest.from_model(same.to_native()).n_nodes
    np.testing.assert_allclose(small.predict(X), same.predict(X), rtol=1e-5)
    if ending != "npz":
        rows = X
        if type(written).__name__ == "Booster" and library == "xgboost":
            rows = __import__("xgboost").DMatrix(X)
        np.testing.assert_allclose(written.predict(rows), same.predict(X), rtol=1e-5)

    document = json.loads(result.stdout)
    assert document["small"]["nodes"] == same.n_nodes <= 60
    assert document["full"]["nodes"] == fp.Forest.from_file(model, trust=True).n_nodes
    assert document["small"]["bytes"] == out.stat().st_size
    assert document["full"]["bytes"] == model.stat().st_size
    assert document["rows"] == 120
    assert document["rows_held_out"] == 40
    assert document["small"]["r_squared"] == pytest.approx(r2_score(y_val, same.predict(X_val)))
    assert document["full"]["r_squared"] == pytest.approx(
        r2_score(y_val, fp.Forest.from_file(model, trust=True).predict(X_val))
    )
    assert "0.25 of the rows" in document["held_out_from"]
    assert "pruning with 120 rows; choosing by 40 others: 0.25 of the rows" in result.stderr


def test_the_table_for_people(shop, tmp_path):
    result = succeeds(
        *("prune", shop / RF, shop / "rows.csv", "--target", "y", "--max-nodes", 40),
        *("--out", tmp_path / "small.npz"),
    )
    small = fp.Forest.load(tmp_path / "small.npz")
    full = fp.Forest.load(shop / RF)
    (nodes,) = [line for line in result.stdout.splitlines() if line.startswith("nodes")]
    ratio = f"{full.n_nodes / small.n_nodes:,.1f}"
    assert nodes.split() == ["nodes", f"{full.n_nodes:,}", f"{small.n_nodes:,}", ratio]
    assert "R squared, 40 rows held out" in result.stdout
    assert "small.npz" in result.stdout.replace("\n", "")


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        (["--max-trees", 3], {"max_trees": 3}),
        (["--max-depth", 2], {"max_depth": 2}),
        (["--max-depth", 2, "--max-nodes", 30], {"max_depth": 2, "max_nodes": 30}),
        (["--tolerance", 0.2], {"tolerance": 0.2}),
        (["--one-standard-error"], {"one_standard_error": True}),
        ([], {}),
        (["--max-nodes", 40, "--weight", "w"], {"max_nodes": 40}),
        (["--max-nodes", 40, "--shrinkage", 5], {"max_nodes": 40, "shrinkage": 5.0}),
    ],
)
def test_budgets(options, arguments, shop, friedman, tmp_path):
    X, y = friedman
    out = tmp_path / "small.npz"
    succeeds("prune", shop / RF, shop / "rows.csv", "--target", "y", "--out", out, *options)
    X_fit, X_val, y_fit, y_val, w_fit, w_val = split(X, y, np.linspace(0.5, 2.0, len(y)))
    if "--weight" in options:
        arguments = arguments | {"sample_weight": w_fit, "sample_weight_val": w_val}
    same = fp.prune(shop / RF, X_fit, y_fit, X_val=X_val, y_val=y_val, **arguments)
    small = fp.Forest.load(out)
    assert 0 < small.n_nodes < fp.Forest.load(shop / RF).n_nodes
    np.testing.assert_array_equal(small.predict(X), same.predict(X))


def test_with_alpha_all_rows_prune_unless_asked(shop, friedman, tmp_path):
    X, y = friedman
    out, command = tmp_path / "small.npz", ["prune", shop / RF, shop / "rows.csv", "--target", "y"]
    result = succeeds(*command, "--alpha", 0.5, "-o", out)
    same = fp.prune(shop / RF, X, y, alpha=0.5)
    np.testing.assert_array_equal(fp.Forest.load(out).predict(X), same.predict(X))
    assert "160 rows; none are held out" in result.stderr
    # Rows held out have nothing to choose, but they score.
    result = succeeds(
        *(*command, "--alpha", 0.5, "--holdout", 0.5, "--seed", 3, "-o", out, "--force", "--json")
    )
    X_fit, X_val, y_fit, y_val = split(X, y, share=0.5, seed=3)
    same = fp.prune(shop / RF, X_fit, y_fit, alpha=0.5)
    np.testing.assert_array_equal(fp.Forest.load(out).predict(X), same.predict(X))
    score = json.loads(result.stdout)["small"]["r_squared"]
    assert score == pytest.approx(r2_score(y_val, same.predict(X_val)))


def test_nothing_held_out(shop, friedman, tmp_path):
    X, y = friedman
    out = tmp_path / "small.npz"
    result = succeeds(
        *("prune", shop / RF, shop / "rows.csv", "--target", "y", "--holdout", 0),
        *("--max-nodes", 50, "--out", out, "--json"),
    )
    same = fp.prune(shop / RF, X, y, max_nodes=50)
    np.testing.assert_array_equal(fp.Forest.load(out).predict(X), same.predict(X))
    document = json.loads(result.stdout)
    assert document["held_out_from"] is None
    assert document["small"]["r_squared"] is None


def test_a_file_to_choose_by(shop, friedman, tmp_path):
    X, y = friedman
    X_fit, X_val, y_fit, y_val = split(X, y, share=0.4, seed=1)
    for name, rows, target in (("fit", X_fit, y_fit), ("val", X_val, y_val)):
        rows.assign(y=target).to_csv(tmp_path / f"{name}.csv", index=False)
    out = tmp_path / "small.npz"
    result = succeeds(
        *("prune", shop / RF, tmp_path / "fit.csv", "--target", "y", "--max-nodes", 50),
        *("--validation", tmp_path / "val.csv", "--out", out),
    )
    same = fp.prune(shop / RF, X_fit, y_fit, max_nodes=50, X_val=X_val, y_val=y_val)
    np.testing.assert_array_equal(fp.Forest.load(out).predict(X), same.predict(X))
    assert "choosing by 64 others: the rows of" in result.stderr


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("library", "ending"), MODELS, ids=IDS)
def test_a_budget_of_bytes_is_kept_by_the_file(library, ending, shop, tmp_path):
    need(library, ending)
    model, out = shop / f"{library}.{ending}", tmp_path / f"small.{ending}"
    least = tmp_path / f"least.{ending}"
    command = ["prune", model, shop / "rows.csv", "--target", "y", "--trust"]
    succeeds(*command, "--alpha", 1e3, "--out", least)
    smallest, full = least.stat().st_size, model.stat().st_size
    budget = (2 * smallest + full) // 3
    succeeds(*command, "--max-bytes", budget, "--n-alphas", 20, "--out", out)
    assert smallest < out.stat().st_size <= budget


def test_every_option_arrives(shop, tmp_path, monkeypatch):
    seen = []
    original = choosing.candidates

    def listen(model, X, y, sample_weight, wanted, held_out, options):
        size = vars(wanted.budget) | vars(wanted)
        asked = {k: v for k, v in size.items() if k != "budget" and v not in (None, False)}
        seen.append(asked | vars(options))
        return original(model, X, y, sample_weight, wanted, held_out, options)

    monkeypatch.setattr(choosing, "candidates", listen)
    command = ["prune", shop / RF, shop / "rows.csv", "--target", "y", "-o", tmp_path / "s.npz"]
    succeeds(
        *(*command, "--rule", "layer", "--weighting", "depth", "--joint", "ridge"),
        *("--alpha2", 0.5, "--polish", "subset", "--local-search", "random", "--max-iter", 7),
        *("--solver", "heuristic", "--time-limit", 3, "--n-alphas", 5, "--seed", 4, "--jobs", 1),
        *("--max-trees", 2, "--max-nodes", 30, "--no-refit"),
    )
    common = {"alpha2": 0.01, "joint": None, "polish": None, "solver": "heuristic"}
    assert seen.pop() == {
        "rule": "layer",
        "weighting": "depth",
        "joint": "ridge",
        "alpha2": 0.5,
        "polish": "subset",
        "local_search": "random",
        "max_iter": 7,
        "solver": "heuristic",
        "time_limit": 3.0,
        "n_alphas": 5,
        "random_state": 4,
        "n_jobs": 1,
        "max_trees": 2,
        "max_nodes": 30,
        "refit": False,
        "shrinkage": None,
    }
    succeeds(*command, "--force", "--alpha2", 0, "--polish", "ridge", "--n-alphas", 3)
    assert seen.pop()["alpha2"] == 0.0
    succeeds(
        *(*command, "--force", "--refit", "--shrinkage", 2, "--shrinkage", 30, "--max-depth", 2),
        *("--local-search", "off", "--n-alphas", 4),
    )
    assert seen.pop() == common | {
        "rule": "subtree",
        "weighting": "node",
        "refit": True,
        "shrinkage": [2.0, 30.0],
        "max_depth": 2,
        "local_search": False,
        "max_iter": 1000,
        "time_limit": 60.0,
        "n_alphas": 4,
        "random_state": 0,
        "n_jobs": None,
    }
    succeeds(*command, "--force", "--alpha", 1)
    assert seen.pop()["local_search"] is True
    # These are all that there are.
    known = set(fp.Options.__dataclass_fields__)
    assert known == set(common) | {
        *("rule", "weighting", "refit", "shrinkage", "local_search", "max_iter", "time_limit"),
        *("random_state", "n_jobs"),
    }


# prune: models without a target, with several, in pipelines


@pytest.fixture(scope="module")
def poisson(friedman, tmp_path_factory):
    path = tmp_path_factory.mktemp("poisson") / "m.joblib"
    X, y = friedman
    with threadpool_limits(1, user_api="openmp"):
        model = HistGradientBoostingRegressor(loss="poisson", max_iter=10)
        joblib.dump(model.fit(X, y), path)
    return path


def test_models_that_do_not_add_up_to_y_need_no_target(poisson, shop, friedman, tmp_path):
    X, _ = friedman
    out, rows = tmp_path / "small.joblib", shop / "rows.csv"
    result = succeeds(
        *("prune", poisson, rows, "--max-nodes", 40, "--trust", "--out", out, "--json")
    )
    X_fit, X_val = split(X)
    same = fp.prune(joblib.load(poisson), X_fit, max_nodes=40, X_val=X_val)
    np.testing.assert_allclose(joblib.load(out).predict(X), np.exp(same.predict(X)))
    assert json.loads(result.stdout)["target"] is None
    assert json.loads(result.stdout)["full"]["r_squared"] == 1.0
    assert "towards the model's own predictions" in result.stderr
    out.unlink()
    fails(
        tmp_path,
        *("prune", poisson, rows, "--target", "y", "--trust", "--out", out),
        code=2,
        match="log of the mean of y, .*leave --target out",
    )


def test_own_predictions_on_request(shop, friedman, tmp_path):
    X, _ = friedman
    out = tmp_path / "small.npz"
    succeeds(
        *("prune", shop / RF, shop / "rows.csv", "--no-target", "--max-nodes", 40, "--out", out)
    )
    X_fit, X_val = split(X)
    same = fp.prune(shop / RF, X_fit, max_nodes=40, X_val=X_val)
    np.testing.assert_array_equal(fp.Forest.load(out).predict(X), same.predict(X))


def test_a_target_is_required_otherwise(shop, tmp_path):
    args = ["prune", shop / RF, shop / "rows.csv", "--out", tmp_path / "small.npz"]
    fails(tmp_path, *args, code=2, match="--target is required.*--no-target")
    fails(tmp_path, *args, "--target", "y", "--target", "w", match="predicts 1 numbers")


def test_several_outputs(friedman, tmp_path):
    X, y = friedman
    both = np.column_stack([y, -2.0 * y])
    model = RandomForestRegressor(4, max_depth=4, random_state=0).fit(X, both)
    joblib.dump(model, tmp_path / "m.joblib")
    X.assign(u=both[:, 0], v=both[:, 1]).to_csv(tmp_path / "rows.csv", index=False)
    out = tmp_path / "small.joblib"
    succeeds(
        *("prune", tmp_path / "m.joblib", tmp_path / "rows.csv", "--target", "u"),
        *("--target", "v", "--max-nodes", 20, "--out", out, "--trust"),
    )
    X_fit, X_val, y_fit, y_val = split(X, both)
    same = fp.prune(model, X_fit, y_fit, max_nodes=20, X_val=X_val, y_val=y_val)
    np.testing.assert_allclose(joblib.load(out).predict(X), same.predict(X))


@pytest.mark.parametrize("named", [True, False])
def test_pipelines(named, friedman, tmp_path):
    X, y = friedman
    X = X.assign(e=np.where(X["e"] > 0.5, "high", "low"))
    rows = X if named else X.to_numpy()
    by = (lambda *names: list(names)) if named else (lambda *names: [NAMES.index(n) for n in names])
    prepare = make_column_transformer(
        (StandardScaler(), by("a", "b", "c", "d")), (OneHotEncoder(), by("e"))
    )
    model = make_pipeline(prepare, RandomForestRegressor(4, max_depth=4, random_state=0))
    joblib.dump(model.fit(rows, y), tmp_path / "m.joblib")
    table = X.assign(y=y)
    (table[[*NAMES[::-1], "y"]] if named else table).to_csv(tmp_path / "rows.csv", index=False)
    args = ["prune", tmp_path / "m.joblib", tmp_path / "rows.csv", "--target", "y", "--trust"]
    out = tmp_path / "s.npz"
    fails(tmp_path, *args, "-o", out, match=r"a Pipeline can have: .*\.skops", code=2)
    out = tmp_path / "small.joblib"
    succeeds(*args, "--max-nodes", 25, "--out", out)
    X_fit, X_val, y_fit, y_val = split(rows, y)
    same = fp.prune(model, X_fit, y_fit, max_nodes=25, X_val=X_val, y_val=y_val)
    small = joblib.load(out)
    assert type(small) is type(model)
    np.testing.assert_allclose(small.predict(rows), same.predict(rows))
    path = ["path", *args[1:], "--n-alphas", 3]
    fails(tmp_path, *path, "--save", tmp_path / "p.npz", match="pipeline cannot be saved")


def test_a_pipeline_around_another_library_is_pickled(friedman, tmp_path):
    xgboost = pytest.importorskip("xgboost")
    X, y = friedman
    model = make_pipeline(StandardScaler(), xgboost.XGBRegressor(n_estimators=3, n_jobs=1))
    joblib.dump(model.fit(X, y), tmp_path / "m.joblib")
    X.assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    args = ["prune", tmp_path / "m.joblib", tmp_path / "rows.csv", "--target", "y", "--trust"]
    for ending in ("json", "skops"):
        out = tmp_path / f"small.{ending}"
        fails(tmp_path, *args, "--out", out, match=r"ends in \.joblib, \.pkl or \.pickle\.", code=2)


# Rows


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
    assert tables.Table.at(nameless / "rows.parquet").columns == [*NAMES, "y"]
    succeeds(
        *("prune", nameless / "m.npz", nameless / "rows.parquet", "--target", "y"),
        *("--max-nodes", 30, "--out", nameless / "small.npz"),
    )


def test_numbers_are_read_to_the_last_digit(tmp_path):
    numbers = np.random.default_rng(0).normal(size=2000) * 10.0 ** np.arange(-10, 10).repeat(100)
    pd.DataFrame({"a": numbers}).to_csv(tmp_path / "rows.csv", index=False)
    reader = Reader(Features(["a"], 1, "float64"), [], None)
    (rows,) = reader.read(tmp_path / "rows.csv")
    np.testing.assert_array_equal(rows.X["a"], numbers)
    frame = tables.Table.at(tmp_path / "rows.csv").frame(["a"], {})
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


# Categories


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


def fails_noted(folder, *args, match):
    """Check a failure that comes after the note about the rows."""
    before = sorted(folder.iterdir())
    result = call(*args)
    *notes, line = result.stderr.splitlines()
    assert notes[0].startswith("forestprune: pruning with")
    assert re.search(match, line), line
    assert result.exit_code == 1
    assert sorted(folder.iterdir()) == before


# What is wrong with rows


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


def test_a_long_row_is_refused_where_columns_go_through_something_first(friedman, tmp_path):
    X, y = friedman
    model = make_pipeline(StandardScaler(), RandomForestRegressor(2, random_state=0)).fit(X, y)
    joblib.dump(model, tmp_path / "m.joblib")
    lines = X.assign(y=y, u=1).to_csv(index=False).splitlines()
    lines[7] += ",1"
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    args = ["prune", tmp_path / "m.joblib", tmp_path / "rows.csv", "--target", "y", "--trust"]
    fails(tmp_path, *args, "-o", tmp_path / "s.joblib", match="names 7 columns.* line 8 has 8")


def test_a_late_word_makes_a_column_text(tmp_path):
    words = ["1"] * 300_000 + ["x"]
    (tmp_path / "rows.csv").write_text("\n".join(["a,b", *(f"{word},0" for word in words)]))
    frame = tables.Table.at(tmp_path / "rows.csv").frame(["a"], {})
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
    monkeypatch.setattr(tables, "_BATCH", 77)
    monkeypatch.setattr(csv_tables, "_SMALLEST_BLOCK", 3000)
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
        with pytest.raises(CommandError, match=r"'a' of .* must be numbers.* in row 1\."):
            Reader(Features(["a"], 1, "float64"), ["y"], None).read(rows)


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


def test_points_are_no_decimal_commas(shop, tmp_path):
    (tmp_path / "rows.csv").write_text("a;b;c;d;e;y\n1,5;2;3;4;5;6\n1.000,5;2;3;4;5;6\n")
    args = ["prune", shop / RF, tmp_path / "rows.csv", "--target", "y", "-o", tmp_path / "s.npz"]
    fails(tmp_path, *args, "--decimal", ",", match=r"must be numbers.*'1\.000,5' in row 2")
    rows = tmp_path / "rows.parquet"
    pd.read_csv(shop / "rows.csv").to_parquet(rows)
    args = ["prune", shop / RF, rows, "--target", "y", "-o", tmp_path / "s.npz", "--decimal", ","]
    fails(tmp_path, *args, match="--decimal is for CSV files, and rows.parquet is none", code=2)


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


def test_arrow_streams_are_no_files(shop, tmp_path):
    arrow = pytest.importorskip("pyarrow")
    table = arrow.Table.from_pandas(pd.read_csv(shop / "rows.csv"))
    with arrow.ipc.new_stream(str(tmp_path / "rows.arrow"), table.schema) as stream:
        stream.write_table(table)
    args = ["prune", shop / RF, tmp_path / "rows.arrow", "--target", "y"]
    fails(tmp_path, *args, "-o", tmp_path / "s.npz", match="or a stream. Write it with")


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


def test_a_wrong_target_is_doubted(shop, friedman, tmp_path):
    X, y = friedman
    X.assign(y=y, id=np.arange(len(y)) - 5000.0).to_csv(tmp_path / "rows.csv", index=False)
    args = [shop / RF, tmp_path / "rows.csv", "--n-alphas", 5]
    for command in (["prune", *args, "-o", tmp_path / "s.npz", "--force"], ["path", *args]):
        doubt = "does worse than a constant on the rows held out"
        assert doubt in succeeds(*command, "--target", "id").stderr
        assert doubt not in succeeds(*command, "--target", "y").stderr


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
        (["folder.csv", "--target", "y"], "folder.csv is a folder"),
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


# Models


@pytest.mark.parametrize("command", ["inspect", "prune", "path"])
@pytest.mark.parametrize("ending", ["joblib", "pkl", "pickle"])
def test_pickles_need_trust(command, ending, shop, tmp_path):
    class Trap:
        def __reduce__(self):
            return Path.touch, (tmp_path / "sprung",)

    model = tmp_path / f"m.{ending}"
    model.write_bytes(pickle.dumps(Trap()))
    args = {
        "inspect": [],
        "prune": [shop / "rows.csv", "--target", "y", "-o", tmp_path / "s.joblib"],
        "path": [shop / "rows.csv", "--target", "y"],
    }[command]
    fails(tmp_path, command, model, *args, code=2, match="can run any code .* add --trust")
    assert not (tmp_path / "sprung").exists()
    call(command, model, *args, "--trust")
    assert (tmp_path / "sprung").exists()  # so the trap works


@pytest.mark.parametrize(("library", "ending"), MODELS, ids=IDS)
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 0.97])
@pytest.mark.filterwarnings("ignore")
def test_models_cut_short(library, ending, share, shop, tmp_path):
    need(library, ending)
    content = (shop / f"{library}.{ending}").read_bytes()
    model, out = tmp_path / f"m.{ending}", tmp_path / f"small.{ending}"
    model.write_bytes(content[: int(share * len(content))])
    fails(tmp_path, "inspect", model, "--trust", match=rf"m\.{ending}")
    args = ["prune", model, shop / "rows.csv", "--target", "y", "--trust", "-o", out]
    fails(tmp_path, *args, match=rf"m\.{ending}")


@pytest.mark.parametrize("ending", sorted({e for endings in ENDINGS.values() for e in endings}))
@pytest.mark.parametrize("content", [b"Dear all,\n", b"\x00" * 300, b"{}", b"a,b\n1,2\n"])
def test_files_that_are_no_models(ending, content, tmp_path):
    need("sklearn", ending)
    model = tmp_path / f"m.{ending}"
    model.write_bytes(content)
    fails(tmp_path, "inspect", model, "--trust", match=rf"m\.{ending}")


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("nowhere.json", "no file .*nowhere.json"),
        ("nowhere.joblib", "no file .*nowhere.joblib"),
        ("folder.json", "folder.json is a folder"),
        ("folder.joblib", "folder.joblib is a folder"),
        ("model.onnx", r"must end in \.json"),
    ],
)
def test_models_that_are_not_there(name, match, tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"x")
    for ending in ("json", "joblib"):
        (tmp_path / f"folder.{ending}").mkdir()
    fails(tmp_path, "inspect", tmp_path / name, match=match)


def test_models_that_are_no_forests(friedman, tmp_path):
    joblib.dump(LinearRegression().fit(*friedman), tmp_path / "m.joblib")
    fails(tmp_path, "inspect", tmp_path / "m.joblib", "--trust", match="got LinearRegression")


def test_a_saved_path_is_no_model(shop, friedman, tmp_path):
    fp.prune_path(shop / RF, *friedman, n_alphas=3).save(tmp_path / "p.npz")
    fails(tmp_path, "inspect", tmp_path / "p.npz", match="does not hold a forest")


# Files to be written


WRONG_ENDINGS = [
    ("sklearn.npz", "s.json", r"RandomForestRegressor can have.*\.joblib, \.pkl, .* or \.npz"),
    ("sklearn.npz", "s.txt", r"\.skops or \.npz"),
    ("sklearn.npz", "s", r"\.skops or \.npz"),
    ("xgboost.json", "s.txt", r"Booster can have.*\.json, \.ubj, \.joblib"),
    ("xgboost.json", "s.skops", r"Booster can have.*\.json, \.ubj, \.joblib"),
    ("lightgbm.txt", "s.json", r"Booster can have.*\.txt, \.joblib"),
    ("catboost.cbm", "s.ubj", r"CatBoost can have.*\.cbm, \.json, \.joblib"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("model", "out", "match"), WRONG_ENDINGS)
def test_an_ending_that_the_model_cannot_have(model, out, match, shop, tmp_path):
    need(model.partition(".")[0], "")
    (tmp_path / "empty.csv").touch()  # it is not even looked at
    args = ["prune", shop / model, tmp_path / "empty.csv", "--target", "y", "-o", tmp_path / out]
    fails(tmp_path, *args, match=match, code=2)


def test_a_forest_without_a_library_stays_one(friedman, tmp_path):
    X, y = friedman
    forest = fp.Forest.from_model(RandomForestRegressor(3, max_depth=3).fit(X, y))
    from dataclasses import replace

    replace(forest, origin=None).save(tmp_path / "m.npz")
    X.assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    args = ["prune", tmp_path / "m.npz", tmp_path / "rows.csv", "--target", "y", "--max-nodes", 15]
    fails(tmp_path, *args, "-o", tmp_path / "s.joblib", match=r"ends in \.npz\.", code=2)
    succeeds(*args, "-o", tmp_path / "s.npz")
    assert fp.Forest.load(tmp_path / "s.npz").n_nodes <= 15


def test_files_are_not_overwritten_unasked(shop, tmp_path):
    out = tmp_path / "small.npz"
    out.write_bytes(b"precious")
    args = ["prune", shop / RF, shop / "rows.csv", "--target", "y", "--max-nodes", 15, "-o", out]
    fails(tmp_path, "prune", "no.json", "no.csv", "-o", out, match="exists already: add --force")
    fails(tmp_path, *args, match="exists already: add --force")
    succeeds(*args, "--force")
    assert fp.Forest.load(out).n_nodes <= 15
    for option, name in (("--csv", "p.csv"), ("--save", "p.npz")):
        (tmp_path / name).write_bytes(b"precious")
        fails(
            tmp_path,
            *("path", "no.json", "no.csv", option, tmp_path / name),
            match=f"{name} exists already",
        )


def test_the_model_itself_is_never_replaced(shop, tmp_path):
    model, link = tmp_path / "m.npz", tmp_path / "link.npz"
    model.write_bytes((shop / RF).read_bytes())
    link.symlink_to(model)
    args = ["prune", model, shop / "rows.csv", "--target", "y", "--max-nodes", 15, "--force"]
    for out in (model, link):
        fails(tmp_path, *args, "-o", out, match="would replace.*m.npz, which is read", code=2)


def test_a_file_that_came_about_meanwhile_is_kept(shop, tmp_path, monkeypatch):
    original, out = choosing.candidates, tmp_path / "small.npz"

    def slow(*args, **kwargs):
        out.write_bytes(b"precious")
        return original(*args, **kwargs)

    monkeypatch.setattr(choosing, "candidates", slow)
    result = call(
        *("prune", shop / RF, shop / "rows.csv", "--target", "y", "--max-nodes", 15, "-o", out)
    )
    assert result.exit_code == 1
    assert "exists already" in result.stderr
    assert out.read_bytes() == b"precious"


def test_folders_that_cannot_be_written_to(tmp_path):
    call_with = ["prune", "no.json", "no.csv", "--target", "y", "--out"]
    fails(tmp_path, *call_with, tmp_path / "nowhere" / "s.json", match="no folder .*nowhere")
    (tmp_path / "s.json").mkdir()
    fails(tmp_path, *call_with, tmp_path / "s.json", match="is a folder")


@pytest.mark.skipif(os.name != "posix", reason="permissions are a matter of POSIX systems")
def test_folders_without_permission(tmp_path, monkeypatch):
    (tmp_path / "locked").mkdir()
    # The superuser may write anywhere.
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "locked")
    out = tmp_path / "locked" / "s.json"
    fails(tmp_path, "prune", "no.json", "no.csv", "--out", out, match="locked is read-only")


def test_writing_that_fails_leaves_nothing(shop, tmp_path, monkeypatch):
    def half(model, path):
        Path(path).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(registry_writers(), ".joblib", half)
    fails_noted(
        tmp_path,
        *("prune", shop / RF, shop / "rows.csv", "--target", "y", "--max-nodes", 15),
        *("-o", tmp_path / "s.joblib"),
        match="No space left on device",
    )


def registry_writers():
    from forestprune.interop import model_files

    return model_files._WRITERS


# Whatever else happens


def test_an_unexpected_error_is_one_line_with_its_type(shop, tmp_path, monkeypatch):
    def fail(*args, **kwargs):
        raise RuntimeError("\n boom\nand more\n")

    monkeypatch.setattr(choosing, "candidates", fail)
    args = ["prune", shop / RF, shop / "rows.csv", "--target", "y", "-o", tmp_path / "s.npz"]
    fails_noted(tmp_path, *args, match=r"^forestprune: RuntimeError: boom \(FORESTPRUNE_DEBUG=1")
    monkeypatch.setenv("FORESTPRUNE_DEBUG", "1")
    result = call(*args)
    assert isinstance(result.exception, RuntimeError)
    monkeypatch.setenv("FORESTPRUNE_DEBUG", "0")
    assert isinstance(call(*args).exception, SystemExit)


def test_an_error_of_a_library_shows_its_type(shop, tmp_path, friedman):
    X, y = friedman
    X.assign(y=y, a=np.inf).to_csv(tmp_path / "rows.csv", index=False)
    args = ["prune", shop / RF, tmp_path / "rows.csv", "--target", "y", "-o", tmp_path / "s.npz"]
    fails_noted(tmp_path, *args, match=r"ValueError: Input X contains infinity.*FORESTPRUNE_DEBUG")


def test_ctrl_c_ends_with_130(shop, tmp_path, monkeypatch):
    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    args = ["prune", shop / RF, shop / "rows.csv", "--target", "y", "-o", tmp_path / "s.joblib"]
    with monkeypatch.context() as patch:
        patch.setattr(choosing, "candidates", stop)
        result = call(*args)
    assert result.exit_code == 130
    assert result.stderr.endswith("stopped; nothing was written.\n")
    with monkeypatch.context() as patch:

        def half(model, path):
            Path(path).write_bytes(b"half")
            raise KeyboardInterrupt

        patch.setitem(registry_writers(), ".joblib", half)
        assert call(*args, "--max-nodes", 9).exit_code == 130
    assert list(tmp_path.iterdir()) == []


def test_warnings_are_notes_and_said_once(shop, tmp_path, monkeypatch):
    original = choosing.candidates

    def warn(*args, **kwargs):
        print("a library that likes to talk")
        for _ in range(3):
            warnings.warn("mind the gap\nand more", UserWarning, stacklevel=1)
            warnings.warn("old-fashioned", DeprecationWarning, stacklevel=1)
        return original(*args, **kwargs)

    monkeypatch.setattr(choosing, "candidates", warn)
    args = ["prune", shop / RF, shop / "rows.csv", "--target", "y", "--max-nodes", 15]
    result = succeeds(*args, "-o", tmp_path / "s.npz", "--json")
    assert result.stderr.count("forestprune: mind the gap\n") == 1
    assert "old-fashioned" not in result.output
    assert json.loads(result.stdout)["rows"] == 120
    result = succeeds(*args, "-o", tmp_path / "t.npz", "--quiet")
    assert result.output == ""
    assert (tmp_path / "t.npz").exists()


def test_numbers_that_are_none_are_null(shop, tmp_path, monkeypatch):
    from forestprune.cli import scores

    monkeypatch.setattr(scores, "scores", lambda work, small: (float("nan"), float("-inf")))
    args = ["prune", shop / RF, shop / "rows.csv", "--target", "y", "--max-nodes", 15]
    result = succeeds(*args, "-o", tmp_path / "s.npz", "--json")
    document = json.loads(result.stdout, parse_constant=pytest.fail)
    assert document["full"]["r_squared"] is None
    assert document["small"]["r_squared"] is None


def test_pandas_that_is_missing_is_named(shop, tmp_path, monkeypatch):
    original = optional.importlib.import_module

    def look(hidden):
        def find(name):
            if name == hidden:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            return original(name)

        return find

    args = ["prune", shop / RF, shop / "rows.csv", "--target", "y", "-o", tmp_path / "s.npz"]
    monkeypatch.setattr(optional.importlib, "import_module", look("pandas"))
    fails(tmp_path, *args, match="needs pandas.*pip install pandas pyarrow")
    (tmp_path / "rows.parquet").write_bytes(b"PAR1")
    args[2] = tmp_path / "rows.parquet"
    monkeypatch.setattr(optional.importlib, "import_module", look("pyarrow"))
    fails(tmp_path, *args, match="needs pyarrow.*pip install pandas pyarrow")


def test_skops_that_is_missing_is_named_before_anything_is_read(shop, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (tmp_path / "empty.csv").touch()
    args = ["prune", shop / RF, tmp_path / "empty.csv", "--target", "y"]
    fails(tmp_path, *args, "-o", tmp_path / "s.skops", match="pip install skops")


# path


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
        "r_squared": same.validation.scores,
        "standard_error": same.validation.standard_errors,
    }
    assert list(document["points"][0]) == list(columns)
    assert document["full"]["r_squared"] == pytest.approx(same.validation.full)
    table = pd.read_csv(tmp_path / "p.csv")
    for name, column in columns.items():
        np.testing.assert_allclose([p[name] for p in document["points"]], column, atol=1e-12)
        np.testing.assert_allclose(table[name], column, atol=1e-12)
    loaded = fp.PruningPath.load(tmp_path / "p.npz")
    np.testing.assert_array_equal(loaded.n_nodes, same.n_nodes)
    np.testing.assert_array_equal(loaded.validation.scores, same.validation.scores)

    lines = succeeds(*args).stdout.splitlines()
    assert len(lines) == 1 + len(same) + 1
    assert lines[0].split()[:4] == ["alpha", "nodes", "trees", "depth"]
    assert [line.split()[1] for line in lines[1:-1]] == [f"{n:,}" for n in same.n_nodes]
    full = fp.Forest.load(shop / RF)
    assert lines[-1].split()[:3] == ["full", f"{full.n_nodes:,}", f"{full.n_trees:,}"]


def test_path_shows_a_model_once(shop, tmp_path):
    args = ["path", shop / RF, shop / "rows.csv", "--target", "y", "--n-alphas", 60]
    points = json.loads(succeeds(*args, "--json").stdout)["points"]
    models = [(p["nodes"], p["trees"], p["loss"]) for p in points]
    different = 1 + sum(a != b for a, b in pairwise(models))
    assert different < len(points)
    assert len(succeeds(*args).stdout.splitlines()) == 1 + different + 1


def test_path_does_not_replace_its_rows(shop, tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_bytes((shop / "rows.csv").read_bytes())
    args = ["path", shop / RF, rows, "--target", "y", "--csv", rows, "--force"]
    fails(tmp_path, *args, match="would replace.*which is read", code=2)
    model = tmp_path / "m.npz"
    model.write_bytes((shop / RF).read_bytes())
    args = ["path", model, rows, "--target", "y", "--save", model, "--force"]
    fails(tmp_path, *args, match="would replace.*which is read", code=2)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--solver", "heuristic"], "--solver is for --polish subset"),
        (["--time-limit", 5, "--polish", "ridge"], "--time-limit is for --polish subset"),
        (["--alpha2", 0.01], "--alpha2 is for --joint, --polish ridge"),
        (["--alpha2", 0.0], "--alpha2 is for --joint, --polish ridge"),
        (["--seed", 0, "--holdout", 0], "--seed is for rows held out by chance"),
        (["--target", "y", "--no-target"], "--target and --no-target exclude"),
        (["--alpha", 1, "--n-alphas", 5], "--n-alphas is for paths, but --alpha asks for one"),
        (["--alpha", "inf"], "--alpha must be finite, got inf"),
        (["--tolerance", "inf"], "--tolerance must be finite, got inf"),
    ],
)
def test_options_that_would_change_nothing_are_refused(options, match, shop, tmp_path):
    args = ["prune", shop / RF, shop / "rows.csv", "--target", "y", "-o", tmp_path / "s.npz"]
    fails(tmp_path, *args, *options, match=match, code=2)


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
    ],
)
def test_path_that_is_called_wrongly(options, match, tmp_path):
    fails(tmp_path, "path", "m.json", "d.csv", "--target", "y", *options, code=2, match=match)


def test_path_quietly(shop, tmp_path):
    args = ["path", shop / RF, shop / "rows.csv", "--target", "y", "--n-alphas", 3, "--quiet"]
    assert succeeds(*args, "--csv", tmp_path / "p.csv").output == ""
    assert (tmp_path / "p.csv").read_text().startswith("alpha,nodes,")


# report


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("library", "ending"),
    [("sklearn", "skops"), ("xgboost", "ubj"), ("lightgbm", "txt"), ("catboost", "cbm")],
)
def test_prune_with_a_report(library, ending, shop, tmp_path):
    need(library, ending)
    pytest.importorskip("plotly")
    out, page = tmp_path / f"small.{ending}", tmp_path / "report.html"
    args = ["prune", shop / f"{library}.{ending}", shop / "rows.csv", "--target", "y", "--trust"]
    command = [*args, "--max-nodes", 15, "--n-alphas", 10, "--out", out, "--report", page]
    document = json.loads(succeeds(*command, "--json").stdout)
    assert document["report"] == str(page)
    text = page.read_text("utf-8")
    full, small = document["full"], document["small"]
    assert f"{full['nodes']:,} → {small['nodes']:,}" in text
    assert f"R² {full['r_squared']:.4f} → {small['r_squared']:.4f}" in text
    assert f"small.{ending}" in text
    assert "40 rows at once" in text


@pytest.mark.parametrize("size", [["--tolerance", 0.2], ["--max-bytes", 9000], ["--alpha", 2], []])
def test_report_without_a_model(size, shop, tmp_path):
    pytest.importorskip("plotly")
    page = tmp_path / "report.html"
    args = [shop / RF, shop / "rows.csv", "--target", "y", *size]
    titled = ["report", *args, "--n-alphas", 12, "--out", page, "--title", "Sums & <sums>"]
    document = json.loads(succeeds(*titled, "--json").stdout)
    assert list(tmp_path.iterdir()) == [page]
    args += [] if "--alpha" in size else ["--n-alphas", 12]
    pruned = json.loads(succeeds("prune", *args, "--out", tmp_path / "s.npz", "--json").stdout)
    assert document["small"]["nodes"] == pruned["small"]["nodes"]
    assert document["small"]["bytes"] == pruned["small"]["bytes"]
    text = page.read_text("utf-8")
    assert "Sums &amp; &lt;sums&gt;" in text
    data = json.loads(re.search(r'id="data">(.*?)</script>', text)[1])["path"]
    place = {mark["name"]: mark["place"] for mark in data["marks"]}["this model"]
    assert data["points"][place]["nodes"] == document["small"]["nodes"]
    assert len(data["points"]) >= 12
    assert data["held_out"] == (size != ["--alpha", 2])


def test_report_of_an_alpha_that_rows_score(shop, tmp_path):
    pytest.importorskip("plotly")
    page = tmp_path / "report.html"
    args = ["report", shop / RF, shop / "rows.csv", "--target", "y", "--alpha", 1, "-o", page]
    document = json.loads(succeeds(*args, "--holdout", 0.5, "--json").stdout)
    data = json.loads(re.search(r'id="data">(.*?)</script>', page.read_text("utf-8"))[1])["path"]
    place = {mark["name"]: mark["place"] for mark in data["marks"]}["this model"]
    scored = 1 - data["points"][place]["error"]
    assert scored == pytest.approx(document["small"]["r_squared"])


def test_wrong_calls_for_a_report(shop, tmp_path, monkeypatch):
    rows = [shop / RF, shop / "rows.csv", "--target", "y", "--max-nodes", 15]
    fails(tmp_path, "report", *rows, match="Missing option '--out'", code=2)
    fails(tmp_path, "report", *rows, "-o", tmp_path / "r.pdf", match="end in .html or", code=2)
    pruning = ["prune", *rows, "-o", tmp_path / "s.npz", "--report"]
    fails(tmp_path, *pruning, tmp_path / "r.txt", match=r"end in .html or .htm, got r.txt", code=2)
    fails(tmp_path, *pruning, tmp_path / "nowhere" / "r.html", match="no folder .*nowhere")
    (tmp_path / "r.html").write_text("precious")
    fails(tmp_path, *pruning, tmp_path / "r.html", match="exists already")
    fails(tmp_path, "report", *rows, "-o", tmp_path / "r.html", match="exists already")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    match = "pip install jinja2 plotly"
    fails(tmp_path, *pruning, tmp_path / "new.html", match=match)
    assert (tmp_path / "r.html").read_text() == "precious"


def test_what_was_written_is_said_when_the_report_fails(shop, tmp_path, monkeypatch):
    def fail(*args, **kwargs):
        raise OSError(27, "File too large")

    monkeypatch.setattr("forestprune.show.report.write.page", fail)
    out, page = tmp_path / "s.npz", tmp_path / "r.html"
    args = ["prune", shop / RF, shop / "rows.csv", "--target", "y", "--max-nodes", 15]
    result = call(*args, "--out", out, "--report", page)
    assert result.exit_code == 1
    said = f"{page} cannot be written: File too large. But {out} was written.\n"
    assert result.stderr.endswith(said)
    assert list(tmp_path.iterdir()) == [out]


def test_the_command_of_a_report_makes_the_model_again(shop, tmp_path, monkeypatch):
    pytest.importorskip("plotly")
    monkeypatch.chdir(tmp_path)
    for name in (RF, "rows.csv"):
        Path(name).write_bytes((shop / name).read_bytes())
    asked = ["--target", "y", "--max-nodes", 25, "--n-alphas", 12, "--holdout", 0.3, "--seed", 3]
    asked += ["--shrinkage", 10, "--shrinkage", 31.25, "--local-search", "off", "--weight", "w"]
    document = json.loads(
        succeeds(
            "prune", RF, "rows.csv", *asked, "-o", "a.npz", "--report", "r.html", "--json"
        ).stdout
    )
    text = html.unescape(Path("r.html").read_text("utf-8"))
    command = re.search(r"<td>(forestprune prune .*?)</td>", text)[1]
    for option in ("--max-nodes 25", "--shrinkage 10 --shrinkage 31.25", "--weight w", "--seed 3"):
        assert option in command
    assert "--report r.html" in command
    other = command.replace("--out a.npz", "--out b.npz").replace("r.html", "other.html")
    succeeds(*shlex.split(other)[1:])
    assert fp.Forest.load("a.npz") == fp.Forest.load("b.npz")
    assert document["shrinkage"] in (10.0, 31.25)
    assert f"<td>{document['shrinkage']}</td>" in text


def test_the_command_of_a_report_alone_is_its_own(shop, tmp_path, monkeypatch):
    pytest.importorskip("plotly")
    monkeypatch.chdir(tmp_path)
    for name in (RF, "rows.csv"):
        Path(name).write_bytes((shop / name).read_bytes())
    asked = ["--target", "y", "--max-nodes", 25, "--title", "A title"]
    succeeds("report", RF, "rows.csv", *asked, "-o", "a b.html")
    text = html.unescape(Path("a b.html").read_text("utf-8"))
    command = re.search(r"<td>(forestprune .*?)</td>", text)[1]
    assert command == (
        f"forestprune report {RF} rows.csv --out 'a b.html' --target y --max-nodes 25 "
        "--title 'A title'"
    )


def test_the_command_for_another_point_replaces_nothing(shop, tmp_path, monkeypatch):
    pytest.importorskip("plotly")
    monkeypatch.chdir(tmp_path)
    for name in (RF, "rows.csv"):
        Path(name).write_bytes((shop / name).read_bytes())
    asked = ["--target", "y", "--max-nodes", 25, "--max-depth", 3, "--shrinkage", 31.25]
    succeeds("prune", RF, "rows.csv", *asked, "-o", "a b.npz", "--report", "r.html")
    text = Path("r.html").read_text("utf-8")
    points = json.loads(re.search(r'id="data">(.*?)</script>', text)[1])["path"]["points"]
    assert all((point["call"] is None) == (point["nodes"] < 3) for point in points)
    other = next(point for point in points if point["nodes"] > 30)
    command = shlex.split(other["call"])
    size = ["--max-nodes", f"{other['nodes']}", "--max-depth", "3", "--shrinkage", "31.25"]
    assert command[-6:] == size
    succeeds(*command[1:])
    made = fp.Forest.load(f"a b-{other['nodes']}.npz")
    assert made.n_nodes <= other["nodes"]
    assert made.max_depth <= 3


def test_what_was_written_is_said_when_the_report_is_stopped(shop, tmp_path, monkeypatch):
    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("forestprune.show.report.write.page", stop)
    out, page = tmp_path / "s.npz", tmp_path / "r.html"
    args = ["prune", shop / RF, shop / "rows.csv", "--target", "y", "--max-nodes", 15]
    result = call(*args, "--out", out, "--report", page)
    assert result.exit_code == 130
    assert result.stderr.endswith(f"stopped; {out} was written.\n")
    assert list(tmp_path.iterdir()) == [out]


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


def test_pruning_lets_go_of_rows_once_they_are_encoded(shop, tmp_path, monkeypatch):
    gone, original = [], choosing.Solver

    def solver(*args):
        gone.append(held() is None)
        return original(*args)

    def hand_over(rows):
        nonlocal held
        X, rows.X = rows.X, rows.X[:].copy()
        held = weakref.ref(X)
        return X

    held = None
    monkeypatch.setattr(choosing, "Solver", solver)
    monkeypatch.setattr(Rows, "hand_over", hand_over)
    args = ["prune", shop / RF, shop / "rows.csv", "--target", "y", "--max-nodes", 15]
    succeeds(*args, "--out", tmp_path / "s.npz")
    assert gone
    assert all(gone)


def test_options_in_groups_are_the_command_s_own():
    @dataclass
    class Group:
        one: Annotated[int, typer.Option(min=1)]
        two: Annotated[str, typer.Option("--zwei")] = "b"

    seen = []

    def command(group: Group, three: bool = False) -> None:
        """Say what it does."""
        seen.append((group, three))

    program = typer.Typer()
    program.command()(flat(command))
    assert runner.invoke(program, ["--one", "3", "--zwei", "x", "--three"]).exit_code == 0
    assert runner.invoke(program, ["--one", "4"]).exit_code == 0
    assert seen == [(Group(3, "x"), True), (Group(4, "b"), False)]
    assert runner.invoke(program, []).exit_code == 2
    assert runner.invoke(program, ["--one", "0"]).exit_code == 2
    assert "Say what it does." in runner.invoke(program, ["--help"]).output


# demo and bench


def test_demo(tmp_path):
    text = succeeds("demo", "--trees", 3, "--out", tmp_path / "there").stdout
    assert "full model" in text
    assert "max 100 nodes" in text
    assert (tmp_path / "there" / "report.html").exists()


@pytest.mark.parametrize("name", ["path.png", "report.html"])
def test_a_demo_overwrites_nothing_unasked(name, tmp_path, monkeypatch):
    monkeypatch.setattr("forestprune.demo.main", lambda trees, out: (out / name).write_text("new"))
    (tmp_path / name).write_text("precious")
    fails(tmp_path, "demo", "--out", tmp_path, match=f"{name} exists already: add --force")
    succeeds("demo", "--out", tmp_path, "--force")
    assert (tmp_path / name).read_text() == "new"


def test_a_demo_that_could_not_be_written_is_refused_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr("forestprune.demo.main", None)
    (tmp_path / "file").write_text("precious")
    fails(tmp_path, "demo", "--out", tmp_path / "file", match="file is a file: give .* a folder")
    fails(tmp_path, "demo", "--out", tmp_path / "file" / "a" / "b", match="written: .*file is a")
    (tmp_path / "locked").mkdir()

    def may(path, mode):  # of the superuser, who may write anywhere, this would not come true
        return Path(path).name != "locked" or not mode & os.W_OK

    monkeypatch.setattr(os, "access", may)
    for out in ("locked", "locked/a", "locked/a/b"):
        fails(tmp_path, "demo", "--out", tmp_path / out, match="written: .*locked is read-only")
    assert not list((tmp_path / "locked").iterdir())


@pytest.mark.filterwarnings("ignore")
def test_bench():
    args = ["bench", "--rows", 150, "--trees", 5, "--nodes", 25]
    document = json.loads(succeeds(*args, "--json").stdout)
    models = {line["model"]: line for line in document["models"]}
    expected = {"RandomForestRegressor", "HistGradientBoostingRegressor"}
    classes = {"xgboost": "XGBRegressor", "lightgbm": "LGBMRegressor"}
    classes["catboost"] = "CatBoostRegressor"
    assert set(models) == expected | {c for name, c in classes.items() if _there(name)}
    for line in models.values():
        assert all(line[name] > 0 for name in line if name != "model")
    forest = models["RandomForestRegressor"]
    assert forest["nodes"] / 25 <= forest["nodes_ratio"]
    assert forest["file_ratio"] > 1
    text = succeeds(*args).stdout
    assert "RandomForest " in text
    assert "predict error\n" in text


# As a real process


def start(*args, **options):
    env = os.environ | {"PYTHONPATH": str(Path(fp.__file__).parent.parent), "COLUMNS": "200"}
    return subprocess.Popen(
        [sys.executable, "-m", "forestprune", *map(str, args)],
        stderr=subprocess.PIPE,
        text=True,
        env=env | options.pop("env", {}),
        **{"stdout": subprocess.PIPE, **options},
    )


def run(*args, **options):
    process = start(*args, **options)
    stdout, stderr = process.communicate(timeout=300)
    return process.returncode, stdout, stderr


def test_a_process_for_machines(shop, tmp_path):
    out = tmp_path / "s.npz"
    code, stdout, stderr = run(
        *("prune", shop / RF, shop / "rows.csv", "--target", "y", "--max-nodes", 15),
        *("-o", out, "--json"),
    )
    assert code == 0
    assert json.loads(stdout)["small"]["nodes"] == fp.Forest.load(out).n_nodes
    assert [line.split(":")[0] for line in stderr.splitlines()] == ["forestprune"] * 2


@pytest.mark.parametrize(
    "model",
    [
        *("xgboost.ubj", "catboost.cbm"),
        *(pytest.param(name, marks=pytest.mark.long) for name in ("xgboost.json", "lightgbm.txt")),
    ],
)
def test_libraries_do_not_talk_past_us(model, shop, tmp_path):
    need(model.partition(".")[0], "")
    content = (shop / model).read_bytes()
    (tmp_path / model).write_bytes(content[: len(content) // 2])
    code, stdout, stderr = run("inspect", tmp_path / model)
    assert code == 1
    assert stdout == ""
    assert stderr.count("\n") == 1
    assert model in stderr


def test_a_traceback_on_request(tmp_path):
    code, _, stderr = run("inspect", tmp_path / "no.json", env={"FORESTPRUNE_DEBUG": "1"})
    assert code == 1
    assert stderr.startswith("Traceback")
    assert "FileNotFoundError" in stderr


@pytest.mark.skipif(os.name != "posix", reason="signals are a matter of POSIX systems")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
def test_a_result_that_cannot_be_printed(shop, tmp_path):
    out = tmp_path / "s.npz"
    command = ["prune", shop / RF, shop / "rows.csv", "--target", "y", "--max-nodes", 15, "-o", out]
    with Path("/dev/full").open("w") as full:
        code, _, stderr = run(*command, "--json", stdout=full)
    assert code == 1
    assert stderr.splitlines()[-1] == (
        "forestprune: what came out could not be printed: No space left on device. "
        f"But {out} was written."
    )
    assert "Traceback" not in stderr


@pytest.mark.parametrize("closed", [1, 2])
def test_streams_that_are_closed(closed, shop, tmp_path):
    out = tmp_path / "s.npz"
    command = f"prune {shop / RF} {shop / 'rows.csv'} --target y --max-nodes 15 -o {out}"
    program = f"{sys.executable} -m forestprune {command} {closed}>&-"
    subprocess.run(["/bin/sh", "-c", program], check=True, capture_output=True)
    assert fp.Forest.load(out).n_nodes <= 15


def test_letters_that_a_terminal_does_not_know(shop, tmp_path):
    model = tmp_path / "größe\x1b.npz"
    model.write_bytes((shop / RF).read_bytes())
    env = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    code, stdout, _ = run("inspect", model, env=env)
    assert code == 0
    assert "gr\\xf6\\xdfe" in stdout
    code, _, stderr = run("inspect", tmp_path / "größe\x1b.json", env=env)
    assert code == 1
    assert "\x1b" not in stderr


def test_a_process_that_is_told_to_end(tmp_path):
    script = """
import time
from forestprune.cli.process import own_process
from forestprune.system.files import write_atomically
own_process()
with write_atomically("file") as file:
    file.write(b"half")
    file.flush()
    print("begun", flush=True)
    time.sleep(60)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    assert process.stdout.readline() == "begun\n"
    assert len(list(tmp_path.iterdir())) == 1
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 143
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_is_stopped(tmp_path):
    process = start("bench", "--rows", 200_000, "--trees", 500)
    assert "pruned to 500 nodes" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 130
    assert stdout == ""
    assert stderr == "forestprune: stopped; nothing was written.\n"
