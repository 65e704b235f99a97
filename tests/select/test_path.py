"""The path: its grid, its points, scores, choosing, saving."""

import re
import sys
from dataclasses import replace

import joblib
import naive
import numpy as np
import pytest
from hypothesis import given
from sklearn.datasets import make_friedman1
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from strategies import cases

import forestprune as fp
from forestprune.options import Options
from forestprune.select.budget import Budget
from forestprune.select.path import PruningPath
from forestprune.select.pruned import file_size
from forestprune.select.solver import Solver
from forestprune.solve.problem import pose

X, Y = make_friedman1(400, noise=1.0, random_state=0)
X_VAL, Y_VAL = make_friedman1(200, noise=1.0, random_state=1)
FOREST = RandomForestRegressor(15, max_depth=6, random_state=0).fit(X, Y)
BOOSTED = GradientBoostingRegressor(n_estimators=30, max_depth=4, random_state=0).fit(X, Y)


@pytest.fixture(scope="module", params=["forest", "boosted"])
def model(request):
    return {"forest": FOREST, "boosted": BOOSTED}[request.param]


@pytest.fixture(scope="module", params=["layer", "subtree"])
def path(model, request):
    return fp.prune_path(
        model, X, Y, n_alphas=30, rule=request.param, polish="ridge", X_val=X_VAL, y_val=Y_VAL
    )


@given(cases(joint=(None,)))
def test_the_first_alpha_is_the_smallest_at_which_nothing_enters(case):
    solver = Solver(case.pose(), Options(rule="layer", weighting=case.weighting))
    grid = solver.grid(5)
    nothing, ones = [0] * len(case.roots), [1.0] * len(case.roots)
    # By the equation: what each single cut gains for each unit of its cost.
    gains = [0.0]
    base = naive.objective(case, nothing, ones, 0.0)
    costs, K = naive.layer_costs(case.roots, case.weighting)
    for i, deepest in enumerate(case.depths):
        for k in range(1, deepest + 1):
            cost = sum(costs[i][:k]) / (K or 1)
            if cost > 0:
                depths = nothing.copy()
                depths[i] = k
                gains.append((base - naive.objective(case, depths, ones, 0.0)) / cost)
    assert grid[0] == pytest.approx(max(gains), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("joint", [None, "ridge", "subset"])
def test_nothing_enters_at_the_first_alpha_and_something_just_below(model, joint):
    problem = pose(fp.encode(fp.Forest.from_model(model), X), Y)
    options = Options(rule="layer", joint=joint, local_search=False)
    first = Solver(problem, options).grid(5)[0]
    for factor, enters in ((1 + 1e-6, False), (1 - 1e-6, True)):
        assert bool(Solver(problem, options).solve(first * factor).n_trees) == enters


def test_a_path_goes_from_nothing_to_everything(model):
    path = fp.prune_path(model, X, Y, n_alphas=40, rule="layer")
    full = fp.Forest.from_model(model)
    assert (np.diff(path.alphas) < 0).all()
    assert path.n_nodes[0] == path.n_trees[0] == 0
    assert path.n_nodes[-1] >= 0.99 * full.n_nodes
    assert len(path) <= 40
    if path.n_nodes[-1] == full.n_nodes:
        np.testing.assert_allclose(path[-1].predict(X), model.predict(X), rtol=1e-9)
    np.testing.assert_allclose(path[0].predict(X), path[0].predict(X)[0])


def test_a_path_ends_once_the_full_model_is_reached():
    path = fp.prune_path(FOREST, X, Y, alphas=[1e-9, 10.0, 0.0, 1e-12], rule="layer")
    assert path.alphas.tolist() == [10.0, 1e-9]
    np.testing.assert_array_equal(path.depths[-1], fp.Forest.from_model(FOREST).depths)


def test_what_the_arrays_say_is_what_the_models_are(path):
    for i in range(0, len(path), 7):
        small = path[i]
        assert small.n_nodes == path.n_nodes[i]
        assert small.n_trees == path.n_trees[i]
        assert small.max_depth == path.max_depths[i]
        assert small.objective == path.objectives[i]
        np.testing.assert_array_equal(small.depths, path.depths[i])
        np.testing.assert_array_equal(small.weights, path.weights[i])
        assert small.loss == pytest.approx(1 - r2_score(Y, small.predict(X)))
        assert path.losses[i] == small.loss
        assert ((small.depths > 0) == (small.weights != 0)).all()
        native = small.to_native()
        np.testing.assert_allclose(native.predict(X_VAL), small.predict(X_VAL), rtol=1e-9)
    assert len(list(path)) == len(path)
    assert path[-1].n_nodes == path.n_nodes[-1]
    with pytest.raises(IndexError, match=r"The path has \d+ points, so there is no path\["):
        path[len(path)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("options", [{}, {"polish": "ridge"}, {"joint": "ridge"}])
def test_objectives_can_be_recomputed_from_the_model(model, options):
    path = fp.prune_path(model, X, Y, n_alphas=8, rule="layer", **options)
    assert len(path) > 4
    forest = fp.Forest.from_model(model)
    sizes = forest.layer_sizes()
    up_to = np.concatenate([np.zeros((forest.n_trees, 1)), np.cumsum(sizes, axis=1)], axis=1)
    for i, small in enumerate(path):
        loss = 1 - r2_score(Y, small.predict(X))
        cost = up_to[np.arange(forest.n_trees), small.depths].sum() / sizes.sum()
        penalty = 0.0
        if "joint" in options:
            for tree, weight in enumerate(small.weights):
                alone = forest.truncate(np.where(np.arange(forest.n_trees) == tree, 99, 0))
                adds = alone.predict(X) - forest.truncate(0).predict(X)
                penalty += 0.01 * weight**2 * np.mean(adds**2) / np.var(Y)
        expected = loss + path.alphas[i] * cost + penalty
        assert path.objectives[i] == pytest.approx(expected, rel=1e-9)


def test_a_path_is_scored_as_its_models_are(path):
    weights = np.random.default_rng(0).integers(0, 3, len(Y_VAL)).astype(float)
    scores = path.score(X_VAL, Y_VAL)
    weighted = path.score(X_VAL, Y_VAL, sample_weight=weights)
    np.testing.assert_array_equal(scores, path.validation.scores)
    for i in range(0, len(path), 5):
        predicted = path[i].predict(X_VAL)
        assert scores[i] == pytest.approx(r2_score(Y_VAL, predicted))
        assert weighted[i] == pytest.approx(r2_score(Y_VAL, predicted, sample_weight=weights))
        error = np.std((Y_VAL - predicted) ** 2) / np.sqrt(len(Y_VAL)) / np.var(Y_VAL)
        assert path.validation.standard_errors[i] == pytest.approx(error)


def test_the_full_model_is_scored_too(path, model):
    assert path.validation.full == pytest.approx(model.score(X_VAL, Y_VAL))


@pytest.mark.parametrize("limit", [3, 20, 100, 500, 10**6])
def test_a_budget_of_nodes(path, limit):
    small = path.select(max_nodes=limit)
    assert small.n_nodes <= limit
    allowed = path.n_nodes <= limit
    assert small.alpha == path.alphas[allowed][np.argmax(path.validation.scores[allowed])]


def test_without_validation_the_best_is_by_training_error():
    path = fp.prune_path(BOOSTED, X, Y, n_alphas=20)
    small = path.select(max_nodes=200)
    assert small.loss == path.losses[path.n_nodes <= 200].min()


def test_budgets_of_trees_depth_and_bytes(path):
    assert path.select(max_trees=5).n_trees <= 5
    assert path.select(max_depth=2).max_depth <= 2
    both = path.select(max_trees=10, max_nodes=60)
    assert both.n_trees <= 10
    assert both.n_nodes <= 60
    sizes = [small.n_bytes for small in path]
    for limit in (max(sizes), sorted(sizes)[len(sizes) // 2], min(sizes)):
        small = path.select(max_bytes=limit)
        assert small.n_bytes <= limit
        best = max(
            s for s, size in zip(path.validation.scores, sizes, strict=True) if size <= limit
        )
        assert 1 - r2_score(Y_VAL, small.predict(X_VAL)) == pytest.approx(1 - best)


def test_a_tolerance_takes_the_smallest_model_that_is_good_enough(path):
    for tolerance in (0.3, 0.05, 0.02):
        small = path.select(tolerance=tolerance)
        good = path.validation.scores >= path.validation.full - tolerance
        assert small.n_nodes == path.n_nodes[good].min()
        score = r2_score(Y_VAL, small.predict(X_VAL))
        assert score >= path.validation.full - tolerance - 1e-12
    unreachable = replace(path.validation, full=0.9999)
    path = PruningPath(path.source, path.points, unreachable)
    with pytest.raises(ValueError, match=r"within tolerance=0 .*0\.9999.*needs tolerance="):
        path.select(tolerance=0)


def test_one_standard_error_takes_the_smallest_model_near_the_best(path):
    small = path.select(one_standard_error=True)
    v = path.validation
    best = np.argmax(v.scores)
    near = v.scores >= v.scores[best] - v.standard_errors[best]
    assert small.n_nodes == path.n_nodes[near].min()
    assert small.n_nodes < path.n_nodes[best]


def test_validation_rows_may_be_given_later():
    path = fp.prune_path(BOOSTED, X, Y, n_alphas=20)
    small = path.select(tolerance=0.05, X=X_VAL, y=Y_VAL)
    assert r2_score(Y_VAL, small.predict(X_VAL)) >= BOOSTED.score(X_VAL, Y_VAL) - 0.05
    assert path.select(X=X_VAL, y=Y_VAL).alpha == path.alphas[np.argmax(path.score(X_VAL, Y_VAL))]


@pytest.mark.parametrize(
    ("criteria", "complaint"),
    [
        ({}, "Say what to select by"),
        ({"tolerance": 0.1}, "need validation rows"),
        ({"one_standard_error": True}, "need validation rows"),
        ({"tolerance": 0.1, "one_standard_error": True}, "exclude each other"),
        ({"max_nodes": 2}, "at least 3, a root and two leaves, got 2"),
        ({"max_nodes": 10.5}, "whole number"),
        ({"max_trees": 0}, "at least 1"),
        ({"max_depth": 0}, "at least 1"),
        ({"max_bytes": 10}, r"No point of the path keeps to max_bytes=10.*takes \d[\d,]* bytes"),
        ({"max_nodes": 10, "y": Y_VAL}, "X must be given with y"),
    ],
)
def test_what_cannot_be_selected_is_refused(criteria, complaint):
    path = fp.prune_path(BOOSTED, X, Y, n_alphas=5, local_search=False)
    with pytest.raises(ValueError, match=complaint):
        path.select(**criteria)


def test_confidence_asks_for_standard_errors_to_spare(path):
    v = path.validation
    for confidence, factor in ((0.5, 0.0), (0.8, 0.8416212), (0.95, 1.6448536)):
        small = path.select(tolerance=0.05, confidence=confidence)
        good = v.full - v.scores + factor * v.shortfall_errors <= 0.05
        assert small.n_nodes == path.n_nodes[good].min()
    assert path.select(tolerance=0.05).n_nodes <= small.n_nodes
    unreachable = PruningPath(path.source, path.points, replace(v, full=0.9999))
    with pytest.raises(ValueError, match=r"within tolerance=0\.05 with confidence=0\.9"):
        unreachable.select(tolerance=0.05, confidence=0.9)


@pytest.mark.parametrize("confidence", [None, 0.95])
def test_the_tolerance_that_is_said_to_be_needed_is_enough(path, confidence):
    """Rounded to the nearest, 0.402 would become 0.4, which is out of reach again."""
    for max_nodes in (3, 5, 10, 15, 20, 40):
        asked = {"max_nodes": max_nodes, "confidence": confidence}
        with pytest.raises(ValueError, match="which needs") as caught:
            path.select(tolerance=1e-6, **asked)
        needed = float(re.search(r"needs tolerance=(\S+) or more", str(caught.value))[1])
        assert path.select(tolerance=needed, **asked).n_nodes <= max_nodes
        with pytest.raises(ValueError, match="which needs"):
            path.select(tolerance=0.9 * needed, **asked)


def test_a_shortfall_has_the_error_of_a_paired_difference(path, model):
    full = (Y_VAL - model.predict(X_VAL)) ** 2
    for i in range(0, len(path), 7):
        differences = (Y_VAL - path[i].predict(X_VAL)) ** 2 - full
        error = np.std(differences) / np.sqrt(len(Y_VAL)) / np.var(Y_VAL)
        assert path.validation.shortfall_errors[i] == pytest.approx(error, abs=1e-12)
        assert path[i].validation.shortfall == pytest.approx(differences.mean() / np.var(Y_VAL))


@pytest.mark.parametrize(
    ("criteria", "complaint"),
    [
        ({"confidence": 0.9}, "give tolerance too"),
        ({"confidence": 0.9, "one_standard_error": True}, "give tolerance too"),
        ({"confidence": 0.4, "tolerance": 0.1}, "confidence must be a number from 0.5 to below 1"),
        ({"confidence": 1.0, "tolerance": 0.1}, "confidence must be a number from 0.5 to below 1"),
        ({"confidence": "95 %", "tolerance": 0.1}, "confidence must be a number"),
    ],
)
def test_confidence_is_a_probability_about_a_tolerance(path, criteria, complaint):
    with pytest.raises(ValueError, match=complaint):
        path.select(**criteria)


def test_negative_tolerances_are_refused(path):
    with pytest.raises(ValueError, match="tolerance must be a finite number, not negative"):
        path.select(tolerance=-0.1)


def test_a_saved_path_comes_back(path, tmp_path):
    path.save(tmp_path / "path.npz")
    again = PruningPath.load(tmp_path / "path.npz")
    for name in ("alphas", "objectives", "losses", "depths", "weights", "intercepts", "n_nodes"):
        np.testing.assert_array_equal(getattr(again, name), getattr(path, name))
    assert again.source.forest == path.source.forest
    for name, value in vars(path.validation).items():
        if name == "metrics":
            assert value.keys() == {"rmse", "mae"}
            for metric, column in value.items():
                np.testing.assert_array_equal(again.validation.metrics[metric], column)
        else:
            np.testing.assert_array_equal(getattr(again.validation, name), value)
    small, same = path.select(max_nodes=100), again.select(max_nodes=100)
    np.testing.assert_array_equal(small.predict(X_VAL), same.predict(X_VAL))
    assert type(same.to_native()) is type(small.to_native())
    assert repr(same) == repr(small)


def test_a_path_without_validation_or_points_comes_back(tmp_path):
    path = fp.prune_path(FOREST, X, Y, alphas=[1.0])
    path.save(tmp_path / "path.npz")
    again = PruningPath.load(tmp_path / "path.npz")
    assert again.validation is None
    assert len(again) == 1
    np.testing.assert_array_equal(again[0].predict(X), path[0].predict(X))


def test_other_files_are_not_paths(path, tmp_path):
    path.source.forest.save(tmp_path / "forest.npz")
    with pytest.raises(fp.InvalidForestError, match="does not hold a pruning path"):
        PruningPath.load(tmp_path / "forest.npz")


def test_the_path_of_a_pipeline_is_not_saved(tmp_path):
    pipeline = make_pipeline(StandardScaler(), FOREST.__class__(3, random_state=0)).fit(X, Y)
    path = fp.prune_path(pipeline, X, Y, n_alphas=3)
    with pytest.raises(TypeError, match="can only be pickled"):
        path.save(tmp_path / "path.npz")
    assert not list(tmp_path.iterdir())


def test_budgets_say_what_they_are():
    assert str(Budget(max_nodes=5, max_bytes=7)) == "max_nodes=5, max_bytes=7"
    assert not Budget()
    assert Budget(max_depth=1)


def test_showing_a_path(path):
    assert repr(path).startswith(f"PruningPath({len(path)} points, 0 to ")


def test_one_standard_error_within_a_budget(path):
    small = path.select(one_standard_error=True, max_nodes=40)
    assert 0 < small.n_nodes <= 40


def test_a_slice_is_a_path_of_some_points(path):
    some = path[2:-1:3]
    assert isinstance(some, PruningPath)
    assert some.points == path.points[2:-1:3]
    np.testing.assert_array_equal(some.validation.scores, path.validation.scores[2:-1:3])
    assert some[-1].validation == path[2 + 3 * (len(some) - 1)].validation
    assert some[1].path is some
    assert some.select(max_nodes=30).n_nodes <= 30
    assert fp.prune_path(BOOSTED, X, Y, n_alphas=5)[1:3].validation is None
    with pytest.raises(TypeError):
        path["1"]
    with pytest.raises(ValueError, match="no points to select from"):
        path[:0].select(max_nodes=30)


def test_points_know_their_path_and_place(path):
    assert [small.index for small in path] == list(range(len(path)))
    assert path[-2].index == len(path) - 2
    taken = path.select(max_nodes=50)
    assert taken.path is path
    assert path[taken.index].n_nodes == taken.n_nodes
    later = path.select(max_nodes=50, X=X_VAL[:50], y=Y_VAL[:50])
    assert later.validation.n_rows == 50
    assert later.path.points is path.points


def test_a_path_as_a_table(path):
    frame = path.to_frame()
    assert len(frame) == len(path)
    columns = ["alpha", "nodes", "trees", "max_depth", "loss", "objective"]
    assert list(frame.columns) == [*columns, "r_squared", "standard_error", "rmse", "mae"]
    np.testing.assert_array_equal(frame["nodes"], path.n_nodes)
    np.testing.assert_array_equal(frame["max_depth"], path.max_depths)
    np.testing.assert_array_equal(frame["r_squared"], path.validation.scores)
    own = fp.prune_path(BOOSTED, X, n_alphas=5, X_val=X_VAL).to_frame()
    assert list(own.columns) == [*columns, "r_squared", "standard_error"]


def test_a_table_needs_pandas(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match="pip install pandas"):
        path.to_frame()


def test_a_path_of_several_shrinkages_has_the_points_of_all():
    shrinkages, options = [10.0, 1000.0], {"n_alphas": 12, "X_val": X_VAL, "y_val": Y_VAL}
    path = fp.prune_path(BOOSTED, X, Y, shrinkage=shrinkages, **options)
    alone = [fp.prune_path(BOOSTED, X, Y, shrinkage=s, **options) for s in shrinkages]
    assert (np.diff(path.alphas) <= 0).all()
    frame = path.to_frame()
    for shrinkage, each in zip(shrinkages, alone, strict=True):
        mine = frame[frame["shrinkage"] == shrinkage]
        np.testing.assert_array_equal(mine["nodes"], each.n_nodes[:-1])
        np.testing.assert_array_equal(mine["r_squared"], each.validation.scores[:-1])
        assert path.n_nodes[-1] == each.n_nodes[-1]  # the full model, which has no shrinkage
    best = max(each.select(max_nodes=80).validation.score for each in alone)
    assert path.select(max_nodes=80).validation.score == best
    with pytest.raises(ValueError, match="Without validation rows there is one shrinkage"):
        fp.prune_path(BOOSTED, X, Y, shrinkage=shrinkages)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("depths", lambda a: a[:, :1]),
        ("depths", lambda a: a - 1),
        ("depths", lambda a: a + 1),
        ("depths", lambda a: a.astype(float)),
        ("kept", lambda a: a[:, :1]),
        ("kept", lambda a: ~a),
        ("kept", lambda a: a.astype(float)),
        ("weights", lambda a: a[:, :1]),
        ("weights", lambda a: a * np.nan),
        ("intercept", lambda a: np.tile(a, 2)),
        ("alpha", lambda a: a[1:]),
        ("alpha", lambda a: a.astype(str)),
        ("validation/scores", lambda a: a[1:]),
        ("validation/shortfall_errors", lambda a: a * np.nan),
        ("validation/points rmse", lambda a: a[1:]),
        ("validation/full mae", lambda a: np.append(a, a)),
        ("validation/n_rows", lambda a: -a),
        ("validation/n_rows", lambda a: a + 0.5),
    ],
)
def test_damaged_paths_are_refused(path, tmp_path, name, change):
    path.save(tmp_path / "path.npz")
    with np.load(tmp_path / "path.npz") as archive:
        arrays = dict(archive)
    np.savez(tmp_path / "path.npz", **arrays)
    assert len(PruningPath.load(tmp_path / "path.npz")) == len(path)
    arrays[name] = change(arrays[name])
    np.savez(tmp_path / "path.npz", **arrays)
    with pytest.raises(fp.InvalidForestError, match="does not hold a pruning path"):
        PruningPath.load(tmp_path / "path.npz")


@pytest.mark.parametrize(
    "model", [RandomForestRegressor(3, random_state=0), HistGradientBoostingRegressor(max_iter=3)]
)
def test_bytes_are_those_of_the_file(model, tmp_path):
    model.fit(X, Y)
    joblib.dump(model, tmp_path / "model.joblib")
    assert file_size(model) == (tmp_path / "model.joblib").stat().st_size
    forest = fp.Forest.from_model(model)
    forest.save(tmp_path / "forest.npz")
    assert file_size(forest) == (tmp_path / "forest.npz").stat().st_size
