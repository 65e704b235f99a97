"""`forestprune report`, and `prune --report`."""

import html
import json
import re
import shlex
from pathlib import Path

import pytest
from shops import RF, call, fails, need, succeeds

import forestprune as fp

pytest.importorskip("pandas")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("library", "ending"),
    [("sklearn", "skops"), ("xgboost", "ubj"), ("lightgbm", "txt"), ("catboost", "cbm")],
)
def test_prune_with_a_report(library, ending, shop, tmp_path):
    need(library, ending)
    pytest.importorskip("jinja2")
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
    pytest.importorskip("jinja2")
    page = tmp_path / "report.html"
    args = [shop / RF, shop / "rows.csv", "--target", "y", *size]
    titled = ["report", *args, "--n-alphas", 12, "--out", page, "--title", "Sums & <sums>"]
    document = json.loads(succeeds(*titled, "--json").stdout)
    assert list(tmp_path.iterdir()) == [page]
    args += ["--n-alphas", 12]
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
    pytest.importorskip("jinja2")
    page = tmp_path / "report.html"
    args = ["report", shop / RF, shop / "rows.csv", "--target", "y", "--alpha", 1, "-o", page]
    document = json.loads(succeeds(*args, "--holdout", 0.5, "--json").stdout)
    data = json.loads(re.search(r'id="data">(.*?)</script>', page.read_text("utf-8"))[1])["path"]
    place = {mark["name"]: mark["place"] for mark in data["marks"]}["this model"]
    scored = 1 - data["points"][place]["error"]
    assert scored == pytest.approx(document["small"]["r_squared"])


def test_errors_are_told_in_the_units_of_the_target(shop, tmp_path):
    pytest.importorskip("jinja2")
    page = tmp_path / "report.html"
    rows = [shop / RF, shop / "rows.csv", "--max-nodes", 15, "--n-alphas", 8, "--out", page]
    document = json.loads(succeeds("report", *rows, "--target", "y", "--json").stdout)
    data = json.loads(re.search(r'id="data">(.*?)</script>', page.read_text("utf-8"))[1])["path"]
    place = {mark["name"]: mark["place"] for mark in data["marks"]}["this model"]
    small, full = data["points"][place], data["full"]
    unexplained = [1 - document[name]["r_squared"] for name in ("small", "full")]
    ratio = (unexplained[0] / unexplained[1]) ** 0.5
    assert small["rmse"] / full["rmse"] == pytest.approx(ratio)
    assert 0 < small["mae"] <= small["rmse"]
    assert not data["figures_further"]
    succeeds("report", *rows, "--no-target", "--force")
    data = json.loads(re.search(r'id="data">(.*?)</script>', page.read_text("utf-8"))[1])["path"]
    assert data["full"]["rmse"] is None


def test_many_rows_need_not_be_held_out(shop, tmp_path, monkeypatch):
    """Their features are let go of once they are routed; figures are those of some of them."""
    pytest.importorskip("jinja2")
    monkeypatch.setattr("forestprune.tables.rows.SOME", 50)
    page = tmp_path / "report.html"
    rows = [shop / RF, shop / "rows.csv", "--max-nodes", 15, "--n-alphas", 8, "--out", page]
    succeeds("report", *rows, "--target", "y", "--holdout", 0)
    data = json.loads(re.search(r'id="data">(.*?)</script>', page.read_text("utf-8"))[1])["path"]
    assert data["full"]["rmse"] > 0
    assert "40 rows at once" in page.read_text("utf-8")


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
    match = "pip install jinja2"
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
    pytest.importorskip("jinja2")
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
    pytest.importorskip("jinja2")
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
    pytest.importorskip("jinja2")
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
