"""Files that are read with trust only, and files that are written."""

import os
import pickle
from dataclasses import replace
from pathlib import Path

import pytest
from shops import RF, call, fails, fails_noted, need, registry_writers, succeeds
from sklearn.ensemble import (
    RandomForestRegressor,
)

import forestprune as fp
from forestprune.select import request as choosing

pytest.importorskip("pandas")


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
    original, out = choosing.choose, tmp_path / "small.npz"

    def slow(*args, **kwargs):
        out.write_bytes(b"precious")
        return original(*args, **kwargs)

    monkeypatch.setattr(choosing, "choose", slow)
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
