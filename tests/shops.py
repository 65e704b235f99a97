"""Models and rows that tests of the command line share, and how they call it."""

import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.ensemble import (
    RandomForestRegressor,
)
from sklearn.model_selection import train_test_split
from typer.testing import CliRunner

import forestprune as fp
from forestprune.cli.app import app
from forestprune.forest import registry

pd = pytest.importorskip("pandas")

NAMES = ["a", "b", "c", "d", "e"]
OTHER_LIBRARIES = ["xgboost", "lightgbm", "catboost"]
ENDINGS = {
    "sklearn": ["joblib", "pkl", "pickle", "skops", "npz"],
    "xgboost": ["json", "ubj", "joblib", "npz"],
    "lightgbm": ["txt", "pkl", "npz"],
    "catboost": ["cbm", "json", "joblib", "npz"],
}
MODELS = [(library, ending) for library in ENDINGS for ending in ENDINGS[library]]
IDS = [f"{library}-{ending}" for library, ending in MODELS]
RF = "sklearn.npz"
"""A forest that needs no trust and no other library."""

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


def fails_noted(folder, *args, match):
    """Check a failure that comes after the note about the rows."""
    before = sorted(folder.iterdir())
    result = call(*args)
    *notes, line = result.stderr.splitlines()
    assert notes[0].startswith("forestprune: pruning with")
    assert re.search(match, line), line
    assert result.exit_code == 1
    assert sorted(folder.iterdir()) == before


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
def shop(friedman, tmp_path_factory):
    """Return a folder with a table and with models of all libraries that are there."""
    folder = tmp_path_factory.mktemp("shop")
    X, y = friedman
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for library in ENDINGS:
            if library in ("sklearn", *filter(lambda n: there(n), OTHER_LIBRARIES)):
                model = fitted(library, X, y)
                for ending in ENDINGS[library]:
                    if ending == "npz":
                        fp.Forest.from_model(model).save(folder / f"{library}.npz")
                    elif ending != "skops" or there("skops"):
                        registry.save_model(model, folder / f"{library}.{ending}")
    # Another order, and columns that no model knows.
    table = X[NAMES[::-1]].assign(comment="x", y=y, w=np.linspace(0.5, 2.0, len(y)))
    table.to_csv(folder / "rows.csv", index=False)
    return folder


def there(library):
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


def registry_writers():
    from forestprune.interop import model_files

    return model_files._WRITERS
