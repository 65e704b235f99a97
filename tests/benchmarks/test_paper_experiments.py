"""The paper's experiments with bagging and boosting: protocols, choices, and a quick run of all."""

import subprocess
import sys
from pathlib import Path

import bagging
import bagging_report
import boosting
import boosting_report
import compare
import numpy as np
import pandas as pd
import protocols
import pytest
import run
import sets
import systems
import units
from sklearn.linear_model import Ridge

from forestprune.polishing.subset import search as subset_search


@pytest.fixture
def settings(tmp_path, monkeypatch):
    monkeypatch.setattr(systems, "N_ALPHAS", 12)
    monkeypatch.setattr(protocols, "TREES", 30)
    monkeypatch.setattr(protocols, "BOOSTED_TREES", 60)
    monkeypatch.setattr(subset_search, "SHAKING_WORK", 0.0)
    for module in (bagging, boosting):
        monkeypatch.setattr(module, "QUICK_ROWS", 120)
        monkeypatch.setattr(module, "TIME_LIMIT", 0.2)
    published = tmp_path / "published"
    published.mkdir()
    known = {"dataset": ["diabetes"], "fp_mse": 0.6, "fp_nodes": 300.0, "fp_mse_sd": 0.1}
    authors = {f"{name}_inc_med": [200.0] for name in ("base", "lasso", "l0")}
    pd.DataFrame(known | {"phi": 0.01} | authors).to_csv(published / "bagging.csv")
    budgets = {f"b{b}_fp": [0.7] for b in (50, 100, 1000, 5000, "best")}
    pd.DataFrame(known | budgets).to_csv(published / "boosting.csv")
    return units.Settings(None, tmp_path, quick=True, jobs=1, published=published)


# Protocols


@pytest.mark.parametrize("model", ["bagging", "boosting"])
@pytest.mark.parametrize("protocol", protocols.PROTOCOLS)
def test_who_sees_which_rows(protocol, model):
    # The first column tells rows apart, whatever it is scaled by.
    table = sets.Table(
        "numbered", np.arange(200.0)[:, np.newaxis], np.sqrt(np.arange(200.0)), ["n"]
    )
    parts = protocols.split(table, 1, protocol, model)
    sizes = [len(parts.y), len(parts.y_val), len(parts.y_test)]
    assert sizes == ([160, 20, 20] if (protocol, model) == ("paper", "boosting") else [120, 40, 40])
    targets = (parts.y, parts.y_val, parts.y_test)
    if protocol == "paper":
        for X, y in zip((parts.X, parts.X_val, parts.X_test), targets, strict=True):
            assert [X.mean(), X.std(), y.mean(), y.std()] == pytest.approx([0, 1, 0, 1])
        assert parts.constant_error == pytest.approx(1.0)
    else:
        rows = np.concatenate([parts.X, parts.X_val, parts.X_test]).ravel()
        assert sorted(rows) == list(range(200))
        assert [parts.y.mean(), parts.y.std()] == pytest.approx([0, 1])
        # One scale for all: that of the training rows.
        train = np.sqrt(parts.X.ravel())
        for X, y in ((parts.X_val, parts.y_val), (parts.X_test, parts.y_test)):
            np.testing.assert_allclose(y, (np.sqrt(X.ravel()) - train.mean()) / train.std())


# Choices


def some(nodes, trees, val, test):
    depths = [np.array([1])] * len(nodes)
    return systems.Candidates(*map(np.array, (nodes, trees, val, test)), depths)


def test_what_is_chosen():
    mine = some([0, 5, 9, 30, 20], [0, 1, 2, 4, 3], [1.0, 0.7, 0.5, 0.4, 0.45], [9, 8, 7, 6, 5])
    assert mine.best() == 3
    assert mine.best(29) == 4
    assert mine.best(9) == 2
    assert mine.best(4) is None  # a constant is no tree
    assert mine.best(29, largest=True) == 4
    assert mine.best(9, largest=True) == 2
    assert mine.within(0.5) == 2
    assert mine.within(0.45) == 4  # the smaller of two
    assert mine.within(0.45, alone=True) == 3  # the first on the path
    assert mine.within(0.1) == 3  # none is: the best there is
    assert mine.within(0.1, alone=True) == 4  # or the last


def test_numbers_that_are_compared():
    frame = pd.DataFrame(
        {
            "data": "a",
            "fold": 0,
            "protocol": "clean",
            "method": ["layer + ridge", "LASSO"],
            "test": [0.5, 0.75],
            "full_test": 0.4,
        }
    )
    assert compare.over_full(frame).tolist() == pytest.approx([25.0, 87.5])
    assert compare.over_paper(frame, compare.UNIT).increase.tolist() == pytest.approx([50.0])
    curve = pd.Series([0.9, 0.6, 0.5], index=[10, 20, 40])
    assert compare.nodes_for(curve, 0.6) == 20
    assert compare.nodes_for(curve, 0.1) == np.inf
    assert compare.error_at(curve, 20) == pytest.approx(0.6)
    assert compare.error_at(curve, np.sqrt(20 * 40)) == pytest.approx(0.55)
    assert bagging_report.mean_depth("1:3 4:1") == 1.75


def test_the_authors_ridge_and_lasso():
    table = sets.load(None, "diabetes").first(150)
    parts = protocols.split(table, 0, "paper", "boosting")
    model = protocols.boosting(parts, 0)
    task = systems.Task.of(model, parts, "paper", np.array([3.0]))
    [path] = systems.METHODS["layer + ridge"](task)
    depths = path.points[0].depths
    columns = np.column_stack(
        [_adds(task.forest, i, depths[i], parts.X) for i in np.flatnonzero(depths)]
    )
    ridge = Ridge(0.01).fit(columns, parts.y)
    np.testing.assert_allclose(path[0].predict(parts.X), ridge.predict(columns), atol=1e-6)
    np.testing.assert_allclose(path[0].loss, np.mean((parts.y - ridge.predict(columns)) ** 2))
    [positive] = systems.METHODS["LASSO"](task)
    assert (positive.weights >= 0).all()
    assert (positive.n_trees > 0).any()
    [signed] = systems.METHODS["LASSO"](systems.Task.of(model, parts, "clean", np.array([3.0])))
    assert (signed.weights < 0).any()


def _adds(forest, i, depth, X):
    """Return what tree i, cut at a depth, adds to the rows, its root adding nothing."""
    depths = np.zeros(forest.n_trees, np.int64)
    nothing = forest.truncate(depths).predict(X)
    depths[i] = depth
    return forest.truncate(depths).predict(X) - nothing


# All of it


@pytest.mark.long
@pytest.mark.parametrize(
    ("module", "reporter"), [(bagging, bagging_report), (boosting, boosting_report)]
)
def test_a_quick_run(module, reporter, settings, monkeypatch):
    pytest.importorskip("pyscipopt")
    rows = module.run(settings)
    assert set(rows.data) == {"wine_quality", "diabetes"}
    assert set(rows.protocol) == set(protocols.PROTOCOLS)
    assert set(rows.method) == set(compare.ORDER)
    assert np.isfinite(rows.test).all()
    budget = rows[rows.by.isin(["budget", "50", "100", "1000", "5000", "of best"])]
    if module is boosting:
        limited = budget[budget.by != "of best"]
        assert set(limited.by) == {"50", "100", "1000", "5000"}
        assert (limited.nodes <= limited.by.astype(int)).all()
    # Within what the paper's method has, at each phi or at its best.
    keys = [*compare.UNIT, "phi" if module is bagging else "by"]
    limited = budget[budget.by.isin(["budget", "of best"])]
    most = limited[limited.method == "layer + ridge"].set_index(keys).nodes.rename("most")
    assert set(limited.method) == set(compare.ORDER)
    assert (limited.join(most, on=keys).eval("nodes <= most")).all()
    lines = reporter.report(settings)
    name = "bagging" if module is bagging else "boosting"
    assert (settings.results / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    for method in compare.ORDER:
        assert any(line.startswith(f"| {method} |") for line in lines)
    assert any(line.startswith("| diabetes |") and "-" not in line for line in lines)
    # What is done is not done again.
    before = (settings.results / f"{name}.csv").read_bytes()
    monkeypatch.setattr(module, "one_fold", print)
    assert len(module.run(settings)) == len(rows)
    assert (settings.results / f"{name}.csv").read_bytes() == before


def test_a_run_that_was_stopped_goes_on(tmp_path):
    calls = []

    def work(number):
        calls.append(number)
        if number == 3 and calls.count(3) == 1:
            raise RuntimeError("stopped")
        return [{"square": number**2}, {"square": -1}]

    every = [{"number": n} for n in (1, 2, 3, 4)]
    with pytest.raises(RuntimeError, match="stopped"):
        units.run_units(tmp_path / "a.csv", every, work)
    table = units.run_units(tmp_path / "a.csv", every, work)
    assert calls == [1, 2, 3, 3, 4]
    assert table.number.tolist() == [1, 1, 2, 2, 3, 3, 4, 4]
    assert table.square.tolist()[::2] == [1, 4, 9, 16]


@pytest.mark.long
def test_the_command(tmp_path):
    """Run as a script, it finds its modules, and makes one page of what there is."""
    script = Path(run.__file__)
    command = [sys.executable, str(script), "--quick", "--parts", "case_study"]
    subprocess.run([*command, "--results", str(tmp_path)], check=True, cwd=tmp_path)
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert page.count("\n## ") == 1
    assert "section 4.3" in page
