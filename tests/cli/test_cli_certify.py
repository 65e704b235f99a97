"""What commands say of how far from the best a model is."""

import json

import pytest
from shops import RF, fails, succeeds

pytest.importorskip("jinja2")


def test_the_gap_is_printed_and_reported(shop, tmp_path):
    command = ["prune", shop / RF, shop / "rows.csv", "--target", "y", "--max-nodes", 30]
    out = ["-o", tmp_path / "small.npz", "--force"]
    plain = json.loads(succeeds(*command, *out, "--json").stdout)
    assert plain["certificate"] is None
    found = json.loads(succeeds(*command, *out, "--certify", "--json").stdout)["certificate"]
    assert 0.0 <= found["gap"] < 1.0
    assert found["status"] in ("bounded", "optimal")
    page = tmp_path / "report.html"
    told = succeeds(*command, *out, "--certify", "--report", page).stdout
    assert "an objective that is lower by at most" in " ".join(told.split())
    text = page.read_text(encoding="utf-8")
    assert "an objective that is lower by at most" in text
    assert "certificate taken" not in text
    assert "--certify" in text


def test_paths_have_a_column_of_gaps(shop, tmp_path):
    rows = [shop / RF, shop / "rows.csv", "--target", "y", "--n-alphas", 4]
    succeeds("path", *rows, "--csv", tmp_path / "path.csv", "--certify")
    assert "gap" in (tmp_path / "path.csv").read_text().splitlines()[0].split(",")


def test_an_exact_solver_needs_one_alpha_and_a_small_model(shop, tmp_path):
    command = ["prune", shop / RF, shop / "rows.csv", "--target", "y", "-o", tmp_path / "s.npz"]
    exactly = ["--solver", "exact", "--time-limit", 5]
    small = [*("--alpha", 0.5, "--max-depth", 2), "--no-refit"]
    document = json.loads(succeeds(*command, *small, *exactly, "--json").stdout)
    assert document["certificate"]["status"] == "optimal"
    page = tmp_path / "report.html"
    succeeds(*command, *small, *exactly, "--force", "--report", page)
    assert "This is the best pruning" in page.read_text(encoding="utf-8")
    match = "--solver exact finds the best model for one --alpha"
    fails(tmp_path, *command, *exactly, "--max-nodes", 9, match=match, code=2)
