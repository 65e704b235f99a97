"""The studies of the paper, each on a small bundled data set."""

import ast
import re
from pathlib import Path
from types import SimpleNamespace

import case_study
import numpy as np
import pandas as pd
import pytest
import sets
import units
import warm_starts
import warm_starts_report
import weighting
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor

import forestprune as fp
from forestprune.solve.problem import pose


@pytest.fixture
def settings(tmp_path):
    return units.Settings(data=None, results=tmp_path, quick=True, jobs=1)


def rows_of(lines, first):
    """Return the cells of the table rows that begin with `first`."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in rows if row[0] == first]


def is_picture(file):
    return file.read_bytes().startswith(b"\x89PNG") and file.stat().st_size > 10_000


def test_bundled_sets_are_read_where_there_is_no_folder():
    assert sets.names(None) == ["wine_quality", "diabetes"]
    for name, shape in (("wine_quality", (6497, 11)), ("diabetes", (442, 10))):
        known = sets.load(None, name)
        assert known.X.shape == shape
        assert known.y.shape == shape[:1]
        assert len(known.columns) == shape[1]
        assert sets.load(Path("nowhere"), name).y[0] == known.y[0]
    # Shuffled, rows and targets together.
    wine, known = fp.load_wine_quality(), sets.load(None, "wine_quality")
    assert not np.array_equal(known.y, wine.target)
    assert sorted(known.X.sum(axis=1) + 1e6 * known.y) == pytest.approx(
        sorted(wine.data.sum(axis=1) + 1e6 * wine.target)
    )


def test_a_split_uses_each_row_once():
    known = sets.load(None, "diabetes").first(100)
    parts = known.split(2)
    assert [part.size for part in parts] == [60, 20, 20]
    assert sorted(np.concatenate(parts)) == list(range(100))
    tests = [known.split(fold)[2] for fold in range(sets.FOLDS)]
    assert sorted(np.concatenate(tests)) == list(range(100))


def test_settings_know_where_to_read_from(tmp_path):
    there = units.Settings(data=tmp_path, results=tmp_path)
    assert there.folder == tmp_path
    assert units.Settings(data=tmp_path, results=tmp_path, quick=True).folder is None
    assert units.Settings(data=tmp_path / "nowhere", results=tmp_path).folder is None
    assert units.Settings(data=None, results=tmp_path).folder is None


def test_weightings_are_compared(settings):
    weighting.run(settings)
    lines = weighting.report(settings)
    rows = pd.read_csv(settings.results / "weighting.csv")
    assert set(rows.weighting) == {"node", "depth"}
    by = rows.groupby(["polish", "tolerance", "weighting"])
    assert len(by) == 2 * len(weighting.TOLERANCES) * 2
    for _, part in by:
        assert part.trees.sum() == part.full_trees.iloc[0]
        assert part[part.depth > 0].trees.sum() == part.kept.iloc[0]
    # With more room for loss, alpha is no smaller.
    alphas = by.alpha.first().unstack("tolerance").to_numpy()
    assert (np.diff(alphas, axis=1) >= 0).all()
    assert len(rows_of(lines, "diabetes")) == 2
    assert is_picture(settings.results / "weighting.png")


def test_the_largest_alpha_within_the_tolerance_is_taken():
    validation = SimpleNamespace(scores=np.array([0.0, 0.5, 0.4, 0.6]), full=0.55)
    assert weighting.first_within(validation, 0.1) == 1
    assert weighting.first_within(validation, 0.01) == 3
    assert weighting.first_within(SimpleNamespace(scores=np.zeros(3), full=1.0), 0.1) == 2


def test_a_run_goes_on_where_it_was(settings, monkeypatch):
    weighting.run(settings)
    before = (settings.results / "weighting.csv").read_text()
    monkeypatch.setattr(weighting, "_compare", lambda *_, **__: pytest.fail("done again"))
    weighting.run(settings)
    assert (settings.results / "weighting.csv").read_text() == before


def test_paths_are_compared(settings):
    warm_starts.run(settings)
    lines = warm_starts_report.report(settings)
    rows = pd.read_csv(settings.results / "warm_starts.csv")
    ways = {*warm_starts.SWEEPS, *warm_starts.QUIET}
    for _, part in rows.groupby(["data", "model"]):
        assert set(part.way) == ways
        first = part[part.step == 0]
        # At the first alpha nothing is kept, however it is solved.
        assert (first.trees == 0).all()
        objective = part.pivot_table(index="step", columns="way", values="objective").dropna()
        assert (objective["warm + ours"] <= objective["warm"] * (1 + 1e-5)).all()
        # Stopping early never pays on average.
        assert objective["3 quiet: cold"].mean() >= objective["cold"].mean()
    sweeps = rows[rows.way.isin(["cold", "warm", "warm + ours"])].passes
    assert (sweeps == sweeps.round()).all()
    assert (sweeps >= 1).all()
    assert len(rows_of(lines, "3 quiet: warm")) == len(warm_starts.MODELS)
    assert sum(line.count("% end at once") for line in lines) >= 2 * len(warm_starts.MODELS)
    assert is_picture(settings.results / "warm_starts.png")


@pytest.fixture(scope="module", params=["boosted", "bagged"])
def problem(request):
    known = sets.load(None, "diabetes").first(150)
    model = GradientBoostingRegressor(n_estimators=12, max_depth=2, random_state=0)
    if request.param == "bagged":
        model = RandomForestRegressor(12, random_state=0)
    model.fit(known.X, known.y)
    encoding = fp.encode(fp.Forest.from_model(model), known.X)
    solver = warm_starts.Counted(pose(encoding, known.y), warm_starts._options(False))
    return known, solver


def test_three_quiet_updates_end_a_descent(problem):
    known, solver = problem
    quiet = warm_starts.ThreeQuiet(solver.problem, known.X, solver.rule.order)
    nothing = quiet.nothing()
    quiet.settle(nothing, 1e9)
    assert quiet.updates == 5
    assert not nothing.any()
    z = quiet.nothing()
    quiet.settle(z, 0.0)
    stopped = quiet.objective(z, 0.0)
    quiet.descend(z, 0.0)
    assert quiet.objective(z, 0.0) <= stopped


def test_literal_and_counted_agree_where_both_sweep_to_the_end(problem):
    known, solver = problem
    literal = warm_starts.Counting(solver.problem, known.X, solver.rule.order)
    for alpha in np.geomspace(30.0, 0.03, 8):
        solver.forget()
        point = solver.solve(alpha)
        z = literal.solve(alpha)
        assert literal.objective(z, alpha) == pytest.approx(point.objective)
        assert list(z.sum(axis=1)) == list(point.depths[solver.rule.order])
    assert literal.updates % literal.n_trees == 0
    assert solver.looks > 0


def test_ten_trees_are_studied(settings, monkeypatch):
    monkeypatch.setattr(case_study, "NODES", 12)
    case_study.run(settings)
    lines = case_study.report(settings)
    rows = pd.read_csv(settings.results / "case_study.csv").set_index("way")
    assert list(rows.index) == [
        case_study.FULL,
        case_study.FIXED,
        case_study.CHOSEN,
        case_study.OURS,
        case_study.SINGLE,
    ]
    for way in (case_study.FIXED, case_study.CHOSEN, case_study.OURS):
        assert rows.trees[way] <= case_study.TREES
        assert rows.features[way] <= rows.all_features[way] == 10
    assert rows.nodes[case_study.OURS] <= 12
    assert rows.nodes[case_study.FULL] > 10 * rows.nodes[case_study.CHOSEN]
    for way in rows.index:
        (cells,) = [row for row in rows_of(lines, way) if len(row) == 7]
        assert float(cells[1]) == pytest.approx(rows.rmse[way], rel=1e-3)
    for name in case_study.PICTURES.values():
        assert is_picture(settings.results / f"case_study_diabetes_{name}.png")
    text = (settings.results / "case_study_diabetes.txt").read_text()
    # One formula for each picture, with a condition for each split.
    formulas = re.findall(r"^\($.*?^\)$", text, re.MULTILINE | re.DOTALL)
    assert len(formulas) == len(case_study.PICTURES)
    for formula, name in zip(formulas, case_study.PICTURES.values(), strict=True):
        forest = fp.Forest.load(settings.results / f"case_study_diabetes_{name}.npz")
        conditions = [node for node in ast.walk(ast.parse(formula)) if isinstance(node, ast.IfExp)]
        assert len(conditions) == np.count_nonzero(forest.left >= 0) > 0
